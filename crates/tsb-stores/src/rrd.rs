//! One RRD file per series, readable by rrdtool, and bit for bit what librrd would have written.
//!
//! An ack means that the samples are in the file as the system sees it (`Buffered`): any process
//! can read them, a crash of ours loses none, a power cut may. `flush` to `Synced` syncs the
//! folder's file system as a whole, which is cheaper than syncing file after file.
//!
//! Queries return consolidated rows only. A raw query returns the known rows of the first
//! archive, each with the timestamp of its end, as `rrdtool fetch` prints them. A resampled query
//! returns the archive with that step and consolidation, each row with the timestamp of its
//! start; it is unsupported if there is no such archive. `newest` is the end of the newest known
//! row, so it is up to one step behind the newest sample: that is what a dashboard sees.
//!
//! A file is created at the first sample of its series, and starts one second before it. This
//! store is *not* a cache: each write makes one pass over each file (`write-cache` is the cache).
//!
//! A damaged or missing file affects its own series only: samples are refused as damaged, and
//! queries return nothing, until the file is whole again; [`Stats::damage`](crate::Stats) names
//! it. docs/formats/rrd.md lists the damage that can be detected.

use std::fmt;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use tsb_core::time::{Clock, MonotonicClock};
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use crate::damage::DamageLog;
use crate::disk;
use crate::error::{Error, Result};
use crate::keys::KeyTable;
use crate::locks::{lock, read, write};
use crate::open_state::OpenState;
use crate::store::{
    Ack, Capabilities, Consolidated, Exactness, Footprint, OnConflict, Position, Query, Refusals, Resample, Scope,
    Stats, Store, TimeRange, Visitor,
};

mod catalog;
mod classify;
mod engine;
#[cfg(feature = "librrd")]
mod librrd;
mod names;
mod native;
mod options;
mod series;
mod update_text;
mod write;

pub use catalog::{file_of, series};
use engine::{Buffers, Engine, RowRange};
pub use options::{EngineKind, FILE_BYTES_MAX, RrdOptions};
use series::{FileStatus, Series, SeriesContext};
pub(crate) use update_text::is_representable;

const SECOND_NS: i64 = 1_000_000_000;
/// Nanoseconds to wait for a file that another process has locked, before that is an error.
const LOCK_TIMEOUT_NS: u64 = 1_000_000_000;
/// Maximum length of a file's path in bytes: the system's limit, less the suffix of a file being
/// created.
const PATH_MAX: usize = 4_095 - 4;
/// Nanoseconds between two attempts to lock a file.
const LOCK_RETRY_NS: u64 = 1_000_000;

/// RRD files in a folder, one per series.
pub struct RrdStore {
    folder: PathBuf,
    // An open descriptor, for syncing the file system of the files.
    folder_file: File,
    options: RrdOptions,
    consolidated: Consolidated,
    file_len: u64,
    engine: Box<dyn Engine>,
    clock: MonotonicClock,
    keys: RwLock<KeyTable>,
    series: RwLock<Vec<Option<Arc<Mutex<Series>>>>>,
    free_buffers: Mutex<Vec<Buffers>>,
    state: OpenState,
    files: AtomicU64,
    damage: DamageLog,
    accepted: AtomicU64,
    synced: AtomicU64,
}

impl RrdStore {
    /// Opens the files in `folder`, which is created if it does not exist.
    ///
    /// # Errors
    /// [`Error::Spec`] for options that no file can have, [`Error::Backend`] if the folder cannot
    /// be used.
    pub fn open(folder: &Path, options: RrdOptions) -> Result<Self> {
        let layout = Arc::new(options.layout()?);
        let consolidated = options.consolidated()?;
        let backend = |action: &str| {
            let action = format!("{action} folder {}", folder.display());
            move |source: std::io::Error| Error::Backend {
                action,
                source: source.into(),
            }
        };
        std::fs::create_dir_all(folder).map_err(backend("make"))?;
        let engine = engine_of(&options, &layout)?;
        Ok(Self {
            folder: folder.to_owned(),
            folder_file: File::open(folder).map_err(backend("open"))?,
            consolidated,
            file_len: layout.file_len(),
            engine,
            clock: MonotonicClock::new(),
            keys: RwLock::new(KeyTable::new(options.max_series)),
            series: RwLock::default(),
            free_buffers: Mutex::default(),
            state: OpenState::default(),
            files: AtomicU64::new(0),
            damage: DamageLog::new(),
            accepted: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            options,
        })
    }

    fn take_buffers(&self) -> Buffers {
        lock(&self.free_buffers).pop().unwrap_or_default()
    }

    fn context(&self) -> SeriesContext<'_> {
        SeriesContext {
            engine: &*self.engine,
            derivation: self.options.derivation,
            clock: &self.clock,
            files: &self.files,
            damage: &self.damage,
        }
    }

    /// The file of a series.
    fn path_of(&self, key: &SeriesKey) -> Result<PathBuf> {
        let path = self.folder.join(names::path_of(key));
        if path.as_os_str().len() > PATH_MAX {
            return Err(self.unsupported("a name that is longer than any path"));
        }
        Ok(path)
    }

    /// If the store has files with the right layout, a file with another layout has a damaged
    /// header. If it has none, the options are wrong.
    fn check_layout(&self, found: &mut [(SeriesId, (Series, FileStatus))]) -> Result<()> {
        let is_sound = |(_, (_, found)): &(SeriesId, (Series, FileStatus))| matches!(found, FileStatus::Sound);
        let has_sound = self.files.load(Ordering::Acquire) > 0 || found.iter().any(is_sound);
        for (_, (_, found)) in found {
            *found = match std::mem::replace(found, FileStatus::Absent) {
                FileStatus::Foreign(_, error) if !has_sound => return Err(error),
                FileStatus::Foreign(damage, _) => FileStatus::Damaged(damage),
                other => other,
            };
        }
        Ok(())
    }

    /// Updates the counts with the result of opening a file.
    fn count(&self, found: FileStatus) {
        match found {
            FileStatus::Absent => {}
            FileStatus::Sound => {
                self.files.fetch_add(1, Ordering::AcqRel);
            }
            FileStatus::Damaged(damage) | FileStatus::Foreign(damage, _) => self.damage.note(damage),
        }
    }

    /// The archive that answers, and the nanoseconds to add to the end of a row for its
    /// timestamp.
    fn archive_for(&self, resample: Option<Resample>) -> Result<(usize, i64)> {
        let Some(resample) = resample else {
            return Ok((0, 0));
        };
        let span_ns = |steps: u32| (self.options.step_s * u64::from(steps)) as i64 * SECOND_NS;
        let archives = self.options.archives.iter();
        let found = archives.enumerate().find(|(_, archive)| {
            archive.consolidation == resample.consolidation && span_ns(archive.steps) == resample.step_ns
        });
        match found {
            Some((index, archive)) => Ok((index, -span_ns(archive.steps))),
            None => Err(self.unsupported("resampling to what no archive keeps")),
        }
    }

    /// The known rows of a series with timestamps in `range`.
    fn known_rows(&self, id: SeriesId, archive: usize, shift_ns: i64, range: TimeRange) -> Result<Vec<(i64, f64)>> {
        let mut found = Vec::new();
        let series = read(&self.series).get(id.index()).cloned().flatten();
        let Some(series) = series else { return Ok(found) };
        let rows = RowRange {
            archive,
            from_s: end_of(range.start, shift_ns),
            to_s: end_of(range.end, shift_ns),
        };
        if rows.from_s < rows.to_s {
            let mut buffers = self.take_buffers();
            let result = lock(&series).read(&self.context(), &mut buffers, &rows, &mut found);
            lock(&self.free_buffers).push(buffers);
            result?;
        }
        Ok(found)
    }

    /// Fills each slot of `into` with the result of `newest_of` for its series.
    fn each_series(
        &self,
        series: &[SeriesId],
        into: &mut [Option<Timestamp>],
        newest_of: fn(&Series) -> Option<Timestamp>,
    ) -> Result<()> {
        let _open = self.state.begin()?;
        read(&self.keys).check_each(series.iter().copied())?;
        let all = read(&self.series);
        for (id, slot) in series.iter().zip(into) {
            let series = all.get(id.index()).and_then(Option::as_ref);
            *slot = series.and_then(|series| newest_of(&lock(series)));
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        let covered = self.accepted.load(Ordering::Acquire);
        rustix::fs::syncfs(&self.folder_file).map_err(|error| Error::Backend {
            action: format!("sync the file system of {}", self.folder.display()),
            source: std::io::Error::from(error).into(),
        })?;
        self.synced.fetch_max(covered, Ordering::AcqRel);
        Ok(())
    }

    fn unsupported(&self, what: &'static str) -> Error {
        Error::Unsupported {
            store: self.to_string(),
            what,
        }
    }
}

fn engine_of(options: &RrdOptions, layout: &Arc<tsb_rrd::Layout>) -> Result<Box<dyn Engine>> {
    match options.engine {
        EngineKind::Native => Ok(Box::new(native::Native::new(
            Arc::clone(layout),
            options.is_exclusive,
            options.max_open,
        ))),
        EngineKind::Librrd => librrd_engine(options, layout),
    }
}

#[cfg(feature = "librrd")]
fn librrd_engine(options: &RrdOptions, layout: &Arc<tsb_rrd::Layout>) -> Result<Box<dyn Engine>> {
    if options.is_exclusive {
        return Err(options::invalid(
            "exclusive: librrd locks its files at each update".to_owned(),
        ));
    }
    Ok(Box::new(librrd::Librrd::new(Arc::clone(layout))))
}

#[cfg(not(feature = "librrd"))]
fn librrd_engine(_options: &RrdOptions, _layout: &Arc<tsb_rrd::Layout>) -> Result<Box<dyn Engine>> {
    Err(options::invalid(
        "engine librrd is not in this build; feature librrd carries it, and needs the package librrd-dev".to_owned(),
    ))
}

/// The end, in seconds, of the first row whose timestamp is not before `at`. `shift_ns` is the
/// timestamp of a row minus its end. Rounded up.
pub fn end_of(at: Timestamp, shift_ns: i64) -> i64 {
    let nanos = i128::from(at.0) - i128::from(shift_ns) + i128::from(SECOND_NS) - 1;
    nanos.div_euclid(i128::from(SECOND_NS)) as i64
}

/// Functions for clients of other programs that write the same files.
pub mod client {
    pub use super::end_of;
    pub use super::names::{key_of, path_of};
    pub use super::series::in_order;
    pub use super::update_text::{Micros, write_update};
}

/// Returns a function that waits before another attempt to lock a file, and returns false when
/// time is up.
fn lock_timeout(clock: &MonotonicClock) -> impl FnMut() -> bool {
    let mut started = None;
    move || {
        let now = clock.now();
        let is_left = now - *started.get_or_insert(now) < LOCK_TIMEOUT_NS;
        if is_left {
            clock.wait_until(now + LOCK_RETRY_NS);
        }
        is_left
    }
}

impl fmt::Debug for RrdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RrdStore")
            .field("folder", &self.folder)
            .field("options", &self.options)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for RrdStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.options.engine, self.options.is_exclusive) {
            (EngineKind::Native, false) => "rrd",
            (EngineKind::Native, true) => "rrd (exclusive)",
            (EngineKind::Librrd, _) => "rrd (librrd)",
        })
    }
}

impl Store for RrdStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            query: true,
            resample: true,
            exactness: Exactness::Consolidated(self.consolidated),
            duplicate: OnConflict::Rejected,
            late: OnConflict::Rejected,
            // Files store microseconds, but librrd parses times as floats.
            resolution_ns: 1_000_000,
            special_values: false,
            persistent: true,
            retention_ns: self.options.retention_ns(),
            ..Capabilities::new(Durability::Buffered, Durability::Synced)
        }
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        let _open = self.state.begin()?;
        let mut buffers = self.take_buffers();
        let mut unopened = Vec::with_capacity(series.len());
        {
            let bound = read(&self.series);
            for (id, key) in series {
                // An id that is known already is either bound to the same key, or a conflict that
                // is reported below.
                if bound.get(id.index()).is_none_or(Option::is_none) {
                    unopened.push((*id, self.path_of(key)?));
                }
            }
        }
        let mut found = Vec::with_capacity(unopened.len());
        for (id, path) in unopened {
            found.push((id, Series::inspect(&self.context(), path, &mut buffers)?));
        }
        self.check_layout(&mut found)?;
        // IMPORTANT: bind the ids last, when nothing can fail any more. An id that stayed bound
        // after an error would be in conflict with the next key offered for it.
        write(&self.keys).define(series)?;
        let mut all = write(&self.series);
        for (id, (series, found)) in found {
            if all.len() <= id.index() {
                all.resize(id.index() + 1, None);
            }
            // Another thread may have added the series first: keep its state.
            if let place @ None = &mut all[id.index()] {
                self.count(found);
                *place = Some(Arc::new(Mutex::new(series)));
            }
        }
        drop(all);
        lock(&self.free_buffers).push(buffers);
        Ok(())
    }

    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        let _open = self.state.begin()?;
        read(&self.keys).check_batch(batch)?;
        let before = refused.len();
        let mut buffers = self.take_buffers();
        let result = self.write_series(batch, &mut buffers, refused);
        lock(&self.free_buffers).push(buffers);
        result?;
        let rejected = refused.len() - before;
        Ok(Ack::new(
            batch.len() - rejected,
            rejected,
            Position(self.accepted.load(Ordering::Acquire)),
            Durability::Buffered,
        ))
    }

    fn durable(&self, level: Durability) -> Position {
        Position(match level {
            Durability::Synced => self.synced.load(Ordering::Acquire),
            _ => self.accepted.load(Ordering::Acquire),
        })
    }

    fn flush(&self, _scope: Scope<'_>, level: Durability) -> Result<()> {
        let open = self.state.begin()?;
        if level < Durability::Synced {
            return Ok(());
        }
        let result = self.sync();
        drop(open);
        result.inspect_err(|error| self.state.poison(error))
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        let _open = self.state.begin()?;
        read(&self.keys).check_each(query.series.iter().copied())?;
        let (archive, shift_ns) = self.archive_for(query.resample)?;
        for &id in query.series {
            let rows = self.known_rows(id, archive, shift_ns, query.range)?;
            let times: Vec<_> = rows.iter().map(|row| Timestamp::from_secs(row.0) + shift_ns).collect();
            let values: Vec<_> = rows.iter().map(|row| row.1).collect();
            if !times.is_empty() && visit(id, &times, &values) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.each_series(series, into, Series::newest_row)
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.each_series(series, into, Series::newest_update)
    }

    fn stats(&self) -> Stats {
        let keys = read(&self.keys);
        let accepted = self.accepted.load(Ordering::Acquire);
        let files = self.files.load(Ordering::Acquire);
        Stats {
            series: keys.count() as u64,
            samples: accepted,
            accepted,
            footprint: Footprint {
                sealed_bytes: files * self.file_len,
                sealed_samples: accepted,
                series_bytes: keys.bytes(),
                ..Footprint::default()
            },
            disk_bytes: disk::of_folder(&self.folder, "rrd"),
            damage: self.damage.list(),
            ..Stats::default()
        }
    }

    fn close(&self) -> Result<()> {
        self.state.close(|was| {
            let result = was.and_then(|()| self.sync());
            write(&self.series).clear();
            result
        })
    }
}

#[cfg(test)]
mod tests;
