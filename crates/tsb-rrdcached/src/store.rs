//! A store that is a client of an rrdcached server, the original daemon or ours, over its Unix
//! socket.
//!
//! An ack means that the daemon has the samples in memory (`Volatile`). This holds even if the
//! daemon has a journal: it never syncs it, and writes records to the system in blocks of 4 KiB,
//! so a kill loses the newest acknowledged samples (rrdcached 1.7.2, measured). A flush asks for
//! every file written since the last one; the daemon reports success even if it wrote nothing,
//! which this client cannot detect. A write is one `BATCH`.
//!
//! Files are named as in `rrd:`, with the run's prefix, below the daemon's base folder. Only rows
//! of the first archive can be read, since `FETCH` chooses archives by itself. It is *not* a
//! pool: one connection, one request at a time.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, RwLock};

use tsb_core::wire::rrdcached as wire;
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use tsb_stores::error::{Error, Result};
use tsb_stores::parts::KeyTable;
use tsb_stores::parts::{lock, read, write};
use tsb_stores::rrd::RrdOptions;
use tsb_stores::rrd::client::{Micros, end_of, in_order, path_of, write_update};
use tsb_stores::store::{
    Ack, Capabilities, Consolidated, Exactness, MAX_ARCHIVES, OnConflict, Position, Query, Reason, Refusals, Resample,
    Scope, Stats, Store, TimeRange, Visitor,
};

mod listing;

use crate::connection::{Connection, Reply};
pub use listing::series;

const SECOND_NS: i64 = 1_000_000_000;

/// The store in front of the daemon at a socket.
pub struct RrdcachedStore {
    socket: PathBuf,
    prefix: String,
    options: RrdOptions,
    /// The layout of every file.
    layout: tsb_rrd::Layout,
    consolidated: Consolidated,
    keys: RwLock<KeyTable>,
    state: Mutex<ClientState>,
    accepted: AtomicU64,
    flushed: AtomicU64,
}

/// The state that one request at a time uses.
#[derive(Debug, Default)]
struct ClientState {
    connection: Option<Connection>,
    series: Vec<Option<SeriesFile>>,
    is_closed: bool,
}

#[derive(Clone, Debug)]
struct SeriesFile {
    file: String,
    /// The time of the newest update that the daemon accepted; `None` if the file does not exist
    /// yet.
    newest: Option<Micros>,
    /// Whether it was written since the last flush.
    is_written: bool,
}

/// What a command of a batch does.
#[derive(Clone, Copy, Debug)]
enum BatchCommand {
    Create,
    Update(usize),
}

impl RrdcachedStore {
    /// Connects to the daemon that listens at `socket`. Files are created with `options`, and
    /// their names begin with `prefix`.
    ///
    /// # Errors
    /// [`Error::Spec`] for options that no file can have, [`Error::Backend`] if the daemon cannot
    /// be reached.
    pub fn open(socket: &Path, prefix: &str, options: RrdOptions) -> Result<Self> {
        let all = options.consolidated()?;
        let layout = options.layout()?;
        let mut archives = [None; MAX_ARCHIVES];
        archives[0] = all.archives[0];
        let store = Self {
            socket: socket.to_owned(),
            prefix: prefix.to_owned(),
            consolidated: Consolidated { archives, ..all },
            keys: RwLock::new(KeyTable::new(options.max_series)),
            options,
            layout,
            state: Mutex::default(),
            accepted: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
        };
        let mut state = store.begin()?;
        let pong = store.ask(&mut state, "PING\n")?;
        drop(state);
        match pong.first() {
            Some(reply) if reply.is_ok => Ok(store),
            other => Err(store.failed("talk to it", format!("it answers {other:?} to PING"))),
        }
    }

    fn begin(&self) -> Result<MutexGuard<'_, ClientState>> {
        let state = lock(&self.state);
        if state.is_closed {
            return Err(Error::Closed);
        }
        Ok(state)
    }

    /// Asks for what changes no sample.
    ///
    /// # Errors
    /// [`Error::Unreachable`] without a connection, [`Error::Unanswered`] without a reply.
    fn ask(&self, state: &mut ClientState, commands: &str) -> Result<Vec<Reply>> {
        self.exchange(state, |connection| {
            connection.ask(commands).map_err(|error| Error::Unanswered {
                action: self.named("ask it"),
                source: error.into(),
            })
        })
    }

    /// Writes a batch of updates, and returns the failures among them.
    ///
    /// # Errors
    /// [`Error::Unreachable`] without a connection, [`Error::Unknown`] without a reply.
    fn update(&self, state: &mut ClientState, updates: &str) -> Result<Vec<(usize, String)>> {
        self.exchange(state, |connection| {
            connection.batch(updates).map_err(|error| Error::Unknown {
                action: self.named("write updates"),
                source: error.into(),
            })
        })
    }

    /// Runs one exchange, on a new connection if there is none. After an error the connection is
    /// dropped.
    fn exchange<T>(&self, state: &mut ClientState, request: impl FnOnce(&mut Connection) -> Result<T>) -> Result<T> {
        let mut connection = match state.connection.take() {
            Some(connection) => connection,
            None => Connection::open(&self.socket).map_err(|error| Error::Unreachable {
                action: self.named("connect"),
                source: error.into(),
            })?,
        };
        let answer = request(&mut connection)?;
        state.connection = Some(connection);
        Ok(answer)
    }

    /// An action with the server's name.
    fn named(&self, action: &str) -> String {
        format!("{action} (rrdcached at {})", self.socket.display())
    }

    fn failed(&self, action: &str, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        Error::Backend {
            action: self.named(action),
            source: source.into(),
        }
    }

    fn check_each(&self, series: &[SeriesId]) -> Result<()> {
        let keys = read(&self.keys);
        keys.check_each(series.iter().copied())
    }

    /// The time of the newest update of each file, as the daemon reports it; `None` for files
    /// that do not exist.
    fn newest_updates(&self, state: &mut ClientState, files: &[String]) -> Result<Vec<Option<Micros>>> {
        let mut commands = String::new();
        for file in files {
            // INFO reads the file, so queued updates must be written first.
            wire::command(&mut commands, &["FLUSH", file]);
            wire::command(&mut commands, &["INFO", file]);
        }
        let replies = self.ask(state, &commands)?;
        let infos = replies.iter().skip(1).step_by(2);
        let newest = infos.map(|reply| {
            let seconds = reply.lines.iter().find_map(|line| wire::last_update(line));
            seconds.map(|seconds| Micros(seconds * 1_000_000))
        });
        Ok(newest.collect())
    }

    fn create(&self, into: &mut String, file: &str, first: Micros) {
        let (start, step) = ((first.seconds() - 1).to_string(), self.options.step_s.to_string());
        let mut words = vec!["CREATE", file, "-b", &start, "-s", &step, "-O"];
        let sources = self.layout.sources().iter().map(|source| {
            let mut text = String::new();
            wire::source(&mut text, &source.name, source.kind.name(), source.heartbeat_s);
            text
        });
        let archives = self.layout.archives().iter().map(|archive| {
            let mut text = String::new();
            wire::archive(&mut text, archive.cf.name(), archive.xff, archive.steps, archive.rows);
            text
        });
        let definitions: Vec<String> = sources.chain(archives).collect();
        words.extend(definitions.iter().map(String::as_str));
        wire::command(into, &words);
    }

    /// The commands for a batch. Samples refused here get no command.
    fn commands(
        &self,
        series: &[Option<SeriesFile>],
        batch: &Batch<'_>,
        refused: &mut Refusals,
    ) -> (String, Vec<BatchCommand>) {
        let (mut commands, mut batch_commands, mut text) =
            (String::new(), Vec::with_capacity(batch.len()), String::new());
        let mut newest: std::collections::HashMap<SeriesId, Micros> = std::collections::HashMap::new();
        for (index, (id, at, value)) in batch.iter().enumerate() {
            let Some(Some(series)) = series.get(id.index()) else {
                continue;
            };
            let before = newest.get(&id).copied().or(series.newest);
            let admitted = Micros::of(at)
                .ok_or(Reason::Unrepresentable)
                .and_then(|at| in_order(before, at).map(|()| at))
                .and_then(|at| write_update(&mut text, at, value, self.options.derivation).map(|()| at));
            match admitted {
                Ok(at) => {
                    if before.is_none() {
                        self.create(&mut commands, &series.file, at);
                        batch_commands.push(BatchCommand::Create);
                    }
                    newest.insert(id, at);
                    wire::command(&mut commands, &["UPDATE", &series.file, &text]);
                    batch_commands.push(BatchCommand::Update(index));
                }
                Err(reason) => refused.push(index, reason),
            }
        }
        (commands, batch_commands)
    }

    /// Turns the daemon's failures into refusals. Returns an error for failures that are not
    /// about one sample.
    fn convert_failures(
        &self,
        failures: &[(usize, String)],
        batch_commands: &[BatchCommand],
        refused: &mut Refusals,
    ) -> Option<Error> {
        let mut error = None;
        for (number, what) in failures {
            match batch_commands.get(number - 1) {
                Some(BatchCommand::Create) if wire::is_there(what) => {}
                Some(BatchCommand::Update(index)) if wire::is_not_later(what) => refused.push(*index, Reason::Late),
                _ => error = error.or_else(|| Some(self.failed("update", what.clone()))),
            }
        }
        error
    }

    fn flush_files(&self, state: &mut ClientState, ids: impl Iterator<Item = usize>) -> Result<()> {
        let mut commands = String::new();
        let mut asked = Vec::new();
        for index in ids {
            if let Some(Some(series)) = state.series.get(index)
                && series.is_written
            {
                wire::command(&mut commands, &["FLUSH", &series.file]);
                asked.push(index);
            }
        }
        let replies = self.ask(state, &commands)?;
        if let Some(reply) = replies.iter().find(|reply| !reply.is_ok) {
            return Err(self.failed("flush", reply.text.clone()));
        }
        for index in asked {
            if let Some(Some(series)) = state.series.get_mut(index) {
                series.is_written = false;
            }
        }
        Ok(())
    }

    fn row_ns(&self) -> i64 {
        let steps = self.options.archives.first().map_or(1, |rule| rule.steps);
        self.options.step_s as i64 * i64::from(steps) * SECOND_NS
    }

    /// The nanoseconds to add to the end of a row to get its timestamp.
    fn shift_of(&self, resample: Option<Resample>) -> Result<i64> {
        let first = self.options.archives.first();
        match resample {
            None => Ok(0),
            Some(resample)
                if resample.step_ns == self.row_ns()
                    && first.is_some_and(|rule| rule.consolidation == resample.consolidation) =>
            {
                Ok(-self.row_ns())
            }
            Some(_) => Err(self.unsupported("resampling to what the first archive does not keep")),
        }
    }

    /// The known rows of a series that end in `[from_s, to_s)`, at most the newest `most` of
    /// them.
    fn rows(
        &self,
        state: &mut ClientState,
        id: SeriesId,
        from_s: i64,
        to_s: i64,
        most: i64,
    ) -> Result<Vec<(i64, f64)>> {
        let Some((file, newest)) = state
            .series
            .get(id.index())
            .and_then(Option::as_ref)
            .and_then(|series| Some((series.file.clone(), series.newest?)))
        else {
            return Ok(Vec::new());
        };
        let Some(archive) = self.layout.archives().first() else {
            return Ok(Vec::new());
        };
        let row_s = self.row_ns() / SECOND_NS;
        let last_s = newest.seconds().div_euclid(row_s) * row_s;
        // Before this time only a coarser archive could have rows, and FETCH would choose it.
        let oldest_s = last_s - row_s * (archive.rows as i64).min(most);
        let start = from_s.saturating_sub(row_s).max(oldest_s).to_string();
        let end = to_s.min(last_s + row_s).to_string();
        let mut command = String::new();
        wire::command(&mut command, &["FETCH", &file, archive.cf.name(), &start, &end]);
        let mut replies = self.ask(state, &command)?;
        let reply = replies.pop().ok_or_else(|| self.failed("fetch", "no reply"))?;
        if !reply.is_ok {
            return Err(self.failed("fetch", reply.text));
        }
        self.parse_rows(&reply, from_s, to_s)
    }

    fn parse_rows(&self, reply: &Reply, from_s: i64, to_s: i64) -> Result<Vec<(i64, f64)>> {
        let mut rows = Vec::with_capacity(reply.lines.len());
        for line in &reply.lines {
            match wire::fetched(line) {
                Some(wire::Fetched::Row(end_s, value)) if !value.is_nan() && (from_s..to_s).contains(&end_s) => {
                    rows.push((end_s, value));
                }
                Some(_) => {}
                None => return Err(self.failed("fetch", format!("it answers {line:?}"))),
            }
        }
        Ok(rows)
    }

    fn unsupported(&self, what: &'static str) -> Error {
        Error::Unsupported {
            store: self.to_string(),
            what,
        }
    }
}

impl fmt::Debug for RrdcachedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RrdcachedStore")
            .field("socket", &self.socket)
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for RrdcachedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rrdcached")
    }
}

impl Store for RrdcachedStore {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::new(Durability::Volatile, Durability::Buffered);
        capabilities.resample = true;
        capabilities.exactness = Exactness::Consolidated(self.consolidated);
        capabilities.duplicate = OnConflict::Rejected;
        capabilities.late = OnConflict::Rejected;
        capabilities.resolution_ns = 1_000_000;
        capabilities.special_values = false;
        capabilities.persistent = true;
        capabilities
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        let mut state = self.begin()?;
        write(&self.keys).define(series)?;
        let known = |state: &ClientState, id: SeriesId| state.series.get(id.index()).is_some_and(Option::is_some);
        let new: Vec<_> = series.iter().filter(|(id, _)| !known(&state, *id)).collect();
        let files: Vec<String> = new
            .iter()
            .map(|(_, key)| format!("{}{}", self.prefix, path_of(key).display()))
            .collect();
        let newest = self.newest_updates(&mut state, &files)?;
        for (((id, _), file), newest) in new.into_iter().zip(files).zip(newest) {
            if state.series.len() <= id.index() {
                state.series.resize(id.index() + 1, None);
            }
            state.series[id.index()] = Some(SeriesFile {
                file,
                newest,
                is_written: false,
            });
        }
        Ok(())
    }

    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        let mut state = self.begin()?;
        read(&self.keys).check_batch(batch)?;
        let before = refused.len();
        let (commands, batch_commands) = self.commands(&state.series, batch, refused);
        if !batch_commands.is_empty() {
            let failures = self.update(&mut state, &commands)?;
            if let Some(error) = self.convert_failures(&failures, &batch_commands, refused) {
                return Err(error);
            }
        }
        let is_refused = |index: usize| {
            refused.as_slice()[before..]
                .iter()
                .any(|one| one.index as usize == index)
        };
        for command in batch_commands {
            if let BatchCommand::Update(index) = command
                && (refused.len() == before || !is_refused(index))
                && let Some(Some(series)) = state.series.get_mut(batch.id(index).index())
            {
                series.newest = Micros::of(batch.time(index));
                series.is_written = true;
            }
        }
        let rejected = refused.len() - before;
        let accepted = batch.len() - rejected;
        Ok(Ack::new(
            accepted,
            rejected,
            Position(self.accepted.fetch_add(accepted as u64, Ordering::AcqRel) + accepted as u64),
            Durability::Volatile,
        ))
    }

    fn durable(&self, level: Durability) -> Position {
        Position(match level {
            Durability::Unconfirmed | Durability::Volatile => self.accepted.load(Ordering::Acquire),
            Durability::Buffered => self.flushed.load(Ordering::Acquire),
            Durability::Synced => 0,
        })
    }

    fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        let mut state = self.begin()?;
        match level {
            Durability::Synced => return Err(self.unsupported("a flush to the medium")),
            Durability::Buffered => {}
            _ => return Ok(()),
        }
        match scope {
            Scope::All => {
                let all = 0..state.series.len();
                self.flush_files(&mut state, all)?;
                let covered = self.accepted.load(Ordering::Acquire);
                self.flushed.fetch_max(covered, Ordering::AcqRel);
                Ok(())
            }
            Scope::Series(series) => {
                self.check_each(series)?;
                self.flush_files(&mut state, series.iter().map(|id| id.index()))
            }
        }
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        self.check_open_and_known(query.series)?;
        let shift_ns = self.shift_of(query.resample)?;
        let range = shifted(query.range, shift_ns);
        for &id in query.series {
            if range.0 >= range.1 {
                break;
            }
            let rows = self.rows(&mut *self.begin()?, id, range.0, range.1, i64::MAX)?;
            let times: Vec<Timestamp> = rows.iter().map(|row| Timestamp::from_secs(row.0) + shift_ns).collect();
            let values: Vec<f64> = rows.iter().map(|row| row.1).collect();
            if !times.is_empty() && visit(id, &times, &values).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.check_open_and_known(series)?;
        for (&id, slot) in series.iter().zip(into) {
            let mut state = self.begin()?;
            let mut rows = self.rows(&mut state, id, i64::MIN, i64::MAX, 4)?;
            if rows.is_empty() {
                rows = self.rows(&mut state, id, i64::MIN, i64::MAX, i64::MAX)?;
            }
            *slot = rows.last().map(|row| Timestamp::from_secs(row.0));
        }
        Ok(())
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.check_open_and_known(series)?;
        let state = self.begin()?;
        for (id, slot) in series.iter().zip(into) {
            let series = state.series.get(id.index()).and_then(Option::as_ref);
            *slot = series
                .and_then(|series| series.newest)
                .map(|at| Timestamp(at.0.saturating_mul(1_000)));
        }
        Ok(())
    }

    fn stats(&self) -> Stats {
        let accepted = self.accepted.load(Ordering::Acquire);
        let keys = read(&self.keys);
        Stats::new(keys.count() as u64, accepted, accepted)
    }

    fn close(&self) -> Result<()> {
        let Ok(mut state) = self.begin() else { return Ok(()) };
        state.is_closed = true;
        let all = 0..state.series.len();
        let flushed = self.flush_files(&mut state, all);
        state.connection = None;
        flushed
    }
}

impl RrdcachedStore {
    fn check_open_and_known(&self, series: &[SeriesId]) -> Result<()> {
        drop(self.begin()?);
        self.check_each(series)
    }
}

/// The times in seconds at which rows end whose timestamps are in `range`.
fn shifted(range: TimeRange, shift_ns: i64) -> (i64, i64) {
    (end_of(range.start, shift_ns), end_of(range.end, shift_ns))
}
