//! A complete persistent store as an example: an append-only log with fsync, and the conformance
//! suite for it.
//!
//! `cargo run --release --example file_store -p tsb-stores --features conformance` runs every
//! check: the store is closed, dropped, killed while it writes, and cut off from power, and
//! reopened each time. All data is in memory as well, so it is for small data only.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Write as _};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_stores::conformance::{self, Fault, Faulty, Fixture, LossyDisk, LossyFile, LossyPlace, Place};
use tsb_stores::{
    Ack, Capabilities, Error, Footprint, Position, Query, Refusals, Result, Scope, Stats, Store, Visitor,
};

/// The file operations that the store needs, so that a test can put another medium under it.
trait Log: Debug + Send + Sync {
    fn read(&self) -> io::Result<Vec<u8>>;
    fn append(&self, bytes: &[u8]) -> io::Result<()>;
    fn cut(&self, len: u64) -> io::Result<()>;
    fn sync(&self) -> io::Result<()>;
}

impl Log for File {
    fn read(&self) -> io::Result<Vec<u8>> {
        let (mut file, mut bytes) = (self, Vec::new());
        file.rewind()?;
        file.read_to_end(&mut bytes).map(|_| bytes)
    }
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let mut file = self;
        file.write_all(bytes)
    }
    fn cut(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }
}

/// Sorted maps, and the log from which they are rebuilt.
#[derive(Debug)]
struct FileStore {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// None once closed: dropping a file releases its lock.
    log: Option<Box<dyn Log>>,
    poison: Option<String>,
    /// Keys defined since it was opened, each with its index in `samples`; names of all earlier
    /// openings.
    keys: BTreeMap<SeriesId, (SeriesKey, usize)>,
    names: BTreeMap<String, usize>,
    samples: Vec<BTreeMap<Timestamp, f64>>,
    accepted: u64,
    synced: u64,
    superseded: u64,
    log_bytes: u64,
}

fn failed(action: &str, source: io::Error) -> Error {
    let (action, source) = (action.to_owned(), source.into());
    Error::Backend { action, source }
}

/// Appends a record: a line with a checksum and the text.
fn put(into: &mut String, record: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(into, "{:016x} {record}", checksum(record));
}

/// FNV-1a.
fn checksum(record: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    record.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

impl FileStore {
    /// Opens a file that no other process, and no other value, has open.
    fn open(path: &Path) -> Result<Self> {
        let open = File::options().create(true).read(true).append(true).open(path);
        let file = open.map_err(|error| failed("open the log", error))?;
        file.try_lock().map_err(|error| failed("lock the log", error.into()))?;
        // IMPORTANT: a new file survives a power cut only once its folder is synced.
        let folder = path.parent().unwrap_or(Path::new("."));
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| failed("sync the folder of the log", error))?;
        Self::on(Box::new(file))
    }

    /// Replays a log up to the first invalid record, and truncates the rest, which was never
    /// synced. A record that was damaged later looks the same; a production store would record
    /// how much it had and report the damage in `Stats::damage`.
    fn on(log: Box<dyn Log>) -> Result<Self> {
        let bytes = log.read().map_err(|error| failed("read the log", error))?;
        let mut state = State {
            log: None,
            poison: None,
            keys: BTreeMap::new(),
            names: BTreeMap::new(),
            samples: Vec::new(),
            accepted: 0,
            synced: 0,
            superseded: 0,
            log_bytes: 0,
        };
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            if std::str::from_utf8(line)
                .ok()
                .and_then(|line| state.replay(line))
                .is_none()
            {
                break;
            }
            state.log_bytes += line.len() as u64;
        }
        log.cut(state.log_bytes).map_err(|error| failed("cut the log", error))?;
        state.log = Some(log);
        Ok(Self {
            state: Mutex::new(state),
        })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state of an open store (clause 10) on which nothing has failed (clause 9).
    fn enter(&self) -> Result<MutexGuard<'_, State>> {
        let state = self.state();
        match &state.poison {
            _ if state.log.is_none() => Err(Error::Closed),
            Some(cause) => Err(Error::Poisoned { cause: cause.clone() }),
            None => Ok(state),
        }
    }
}

impl State {
    fn replay(&mut self, line: &str) -> Option<()> {
        let (sum, record) = line.strip_suffix('\n')?.split_once(' ')?;
        if u64::from_str_radix(sum, 16).ok()? != checksum(record) {
            return None;
        }
        if let Some(name) = record.strip_prefix("key ") {
            self.names.insert(name.to_owned(), self.samples.len());
            self.samples.push(BTreeMap::new());
            return Some(());
        }
        let mut words = record.split(' ');
        let (number, at, bits) = (words.next()?, words.next()?, words.next()?);
        let value = f64::from_bits(u64::from_str_radix(bits, 16).ok()?);
        let series = self.samples.get_mut(number.parse::<usize>().ok()?)?;
        series.insert(Timestamp(at.parse().ok()?), value);
        Some(())
    }

    /// Runs an operation on the log; a failure poisons the store (clause 9).
    fn with_log(&mut self, action: &str, run: impl FnOnce(&dyn Log) -> io::Result<()>) -> Result<()> {
        let done = self.log.as_deref().map_or(Ok(()), run);
        if let Err(error) = &done {
            self.poison = Some(format!("cannot {action}: {error}"));
        }
        done.map_err(|error| failed(action, error))
    }

    fn append(&mut self, records: &str) -> Result<()> {
        self.log_bytes += records.len() as u64;
        self.with_log("append to the log", |log| log.append(records.as_bytes()))
    }

    fn sync(&mut self) -> Result<()> {
        self.with_log("sync the log", |log| log.sync())?;
        self.synced = self.accepted;
        Ok(())
    }

    fn number(&self, id: SeriesId) -> Result<usize> {
        self.keys
            .get(&id)
            .map(|(_, number)| *number)
            .ok_or(Error::UnknownSeries { id })
    }
}

impl fmt::Display for FileStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("file")
    }
}

impl Store for FileStore {
    fn capabilities(&self) -> Capabilities {
        // Every write is in the operating system when it returns; a flush can have it synced.
        let mut capabilities = Capabilities::new(Durability::Buffered, Durability::Synced);
        capabilities.persistent = true;
        capabilities
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        let mut state = self.enter()?;
        for (id, key) in series {
            let other = match state.keys.get(id) {
                Some((existing, _)) if existing == key => continue,
                Some((existing, _)) => Some((*id, existing)),
                None => state
                    .keys
                    .iter()
                    .find(|(_, (other, _))| other == key)
                    .map(|(id, (key, _))| (*id, key)),
            };
            if let Some((id, existing)) = other {
                let existing = existing.to_string();
                return Err(Error::Conflict { id, existing });
            }
            let (name, next) = (key.to_string(), state.samples.len());
            let number = state.names.get(&name).copied().unwrap_or(next);
            if number == next {
                let mut record = String::new();
                put(&mut record, &format!("key {name}"));
                state.append(&record)?;
                state.names.insert(name, number);
                state.samples.push(BTreeMap::new());
            }
            state.keys.insert(*id, (key.clone(), number));
        }
        Ok(())
    }

    fn write(&self, batch: &Batch<'_>, _refused: &mut Refusals) -> Result<Ack> {
        let mut state = self.enter()?;
        let mut records = String::new();
        for (id, at, value) in batch.iter() {
            // Before anything is applied (clause 3).
            put(
                &mut records,
                &format!("{} {} {:x}", state.number(id)?, at.0, value.to_bits()),
            );
        }
        state.append(&records)?;
        for (id, at, value) in batch.iter() {
            let number = state.number(id)?;
            let replaced = state.samples[number].insert(at, value);
            state.superseded += u64::from(replaced.is_some());
        }
        state.accepted += batch.len() as u64;
        Ok(Ack::new(batch.len(), 0, Position(state.accepted), Durability::Buffered))
    }

    fn durable(&self, level: Durability) -> Position {
        let state = self.state();
        Position(if level == Durability::Synced {
            state.synced
        } else {
            state.accepted
        })
    }

    fn flush(&self, _scope: Scope<'_>, level: Durability) -> Result<()> {
        let mut state = self.enter()?;
        if level == Durability::Synced {
            state.sync()
        } else {
            Ok(())
        }
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        let numbers = query.series.iter().map(|id| self.enter()?.number(*id));
        let numbers = numbers.collect::<Result<Vec<_>>>()?;
        if query.resample.is_some() {
            let (store, what) = (self.to_string(), "resample");
            return Err(Error::Unsupported { store, what });
        }
        let range = query.range;
        for (&id, number) in query.series.iter().zip(numbers).filter(|_| range.start < range.end) {
            // Copied under the lock, visited without it (clause 7).
            let (times, values): (Vec<_>, Vec<_>) = self.enter()?.samples[number].range(range.start..range.end).unzip();
            if !times.is_empty() && visit(id, &times, &values) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        let state = self.enter()?;
        for (id, slot) in series.iter().zip(into) {
            *slot = state.samples[state.number(*id)?].keys().next_back().copied();
        }
        Ok(())
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.newest(series, into)
    }

    fn stats(&self) -> Stats {
        let state = self.state();
        // Includes samples of keys that this opening has not defined.
        let samples = state.samples.iter().map(|series| series.len() as u64).sum();
        let mut stats = Stats::new(state.keys.len() as u64, samples, state.accepted);
        stats.superseded = state.superseded;
        stats.footprint = Footprint::of_sealed(state.log_bytes, samples);
        stats
    }

    fn close(&self) -> Result<()> {
        let mut state = self.state();
        let flushed = if state.poison.is_none() { state.sync() } else { Ok(()) };
        state.log = None;
        flushed
    }
}

// The rest is for the conformance suite and not part of the store.

impl Log for LossyFile {
    fn read(&self) -> io::Result<Vec<u8>> {
        Ok(self.read_all())
    }
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.append(bytes)
    }
    fn cut(&self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }
    fn sync(&self) -> io::Result<()> {
        self.sync()
    }
}

/// Files in a temporary folder that is removed at the end.
struct FileFixture {
    folder: tempfile::TempDir,
    files: std::sync::atomic::AtomicU32,
}

/// A file on the real disk.
struct AtPath(PathBuf);

impl Place for AtPath {
    fn open(&self) -> Result<Box<dyn Store>> {
        Ok(Box::new(FileStore::open(&self.0)?))
    }

    fn address(&self) -> Option<String> {
        Some(self.0.display().to_string())
    }
}

/// A file on a disk that loses what was not synced.
struct OnLossy(LossyDisk);

impl OnLossy {
    fn store(&self) -> Result<FileStore> {
        let file = self.0.open("log");
        self.0
            .sync_folder()
            .map_err(|error| failed("sync the folder of the log", error))?;
        FileStore::on(Box::new(file))
    }
}

impl Place for OnLossy {
    fn open(&self) -> Result<Box<dyn Store>> {
        Ok(Box::new(self.store()?))
    }
}

impl LossyPlace for OnLossy {
    fn after_power_cut(&self, seed: u64) -> Result<Box<dyn Place>> {
        Ok(Box::new(Self(self.0.after_power_cut(seed))))
    }
}

impl Fixture for FileFixture {
    fn name(&self) -> String {
        "file".to_owned()
    }

    fn place(&self) -> Result<Box<dyn Place>> {
        let number = self.files.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(Box::new(AtPath(self.folder.path().join(format!("{number}.log")))))
    }

    fn place_at(&self, address: &str) -> Result<Box<dyn Place>> {
        Ok(Box::new(AtPath(address.into())))
    }

    fn lossy(&self) -> Result<Option<Box<dyn LossyPlace>>> {
        Ok(Some(Box::new(OnLossy(LossyDisk::new()))))
    }

    fn faulty(&self) -> Result<Option<Faulty>> {
        let disk = LossyDisk::new();
        let store = Box::new(OnLossy(disk.clone()).store()?);
        let fail = Box::new(move |fails: bool| disk.set_fault(fails.then_some(Fault::Sync)));
        Ok(Some(Faulty { store, fail }))
    }
}

fn main() -> io::Result<ExitCode> {
    let fixture = FileFixture {
        folder: tempfile::tempdir()?,
        files: std::sync::atomic::AtomicU32::new(0),
    };
    Ok(conformance::main([fixture]))
}
