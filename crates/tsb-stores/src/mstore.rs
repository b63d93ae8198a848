//! DalmatinerDB's files: one point per step at a place that arithmetic decides, without checksum
//! or journal, behind the write caches of the two rounds of its benchmark.
//!
//! A file has the points of all metrics for a stretch of time (a week of seconds by default), 8
//! bytes each; an index beside it says which metric has which number. Files are sparse: a point
//! that was never written is 0. Byte format: docs/formats/mstore.md.
//!
//! A time is rounded down to its step, and of two samples of one step the later write wins. Whole
//! numbers to 2^53 and decimals of 14 digits are exact; any other float loses its last bit
//! ([`Exactness::LastBit`]), and what is not finite is refused.
//!
//! With a cache an ack is `Volatile`: no log protects waiting points, as in DalmatinerDB. A query
//! writes the points of its series first (flush on read), and `flush` writes all; `cache=off`
//! writes before each ack (`Buffered`). Opening reads every point once, to count them and to find
//! the newest. A folder has one writer.
//!
//! It is *not* DalmatinerDB: one folder is one partition with one bucket, and nothing is
//! replicated. What the list of files adds to the format lets damage to an index be seen; a changed
//! value cannot be seen, as in the original.

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, RwLock};

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use crate::error::{Error, Result};
use crate::keys::KeyTable;
use crate::locks::{lock, read, write};
use crate::open_state::OpenState;
use crate::resample::Resampler;
use crate::sharding::Sharding;
use crate::store::{
    Ack, Capabilities, Exactness, Footprint, OnConflict, Position, Query, Refusals, Scope, Stats, Store, Visitor,
};

mod cache;
mod catalog;
mod chunk;
mod files;
mod geometry;
mod index;
mod list;
mod names;
mod options;
mod shard;

pub use cache::CachePolicy;
pub use catalog::{catalog, made_with};
pub use options::MstoreOptions;

use files::Files;
use geometry::{POINT_BYTES, name_of};
use shard::{NotTaken, Series, Shard, Shared};

/// The locks of the waiting points: 64, for blocks of 1,024 series.
const SHARDING: Sharding = Sharding::new(1024, 64);

/// A folder of mstore files.
pub struct MstoreStore {
    folder: PathBuf,
    options: MstoreOptions,
    shared: Shared,
    // By the number of a name: the newest point in files when the store was opened.
    newest_before: Vec<Option<i64>>,
    points_before: u64,
    keys: RwLock<KeyTable>,
    shards: Vec<Mutex<Shard>>,
    state: OpenState,
    accepted: AtomicU64,
    buffered: AtomicU64,
    synced: AtomicU64,
}

impl MstoreStore {
    /// Opens the files of `folder`, which is created if it does not exist, and reads them once.
    ///
    /// # Errors
    /// [`Error::Spec`] for options that no file can have or that are not those of the files,
    /// [`Error::Backend`] if the folder cannot be used or is open as a store,
    /// [`Error::Corrupt`] for an index or a list that is damaged, or files that do not belong
    /// together.
    pub fn open(folder: &Path, options: MstoreOptions) -> Result<Self> {
        let geometry = options.geometry()?;
        let opened = Files::open(folder, geometry, options.max_files)?;
        Ok(Self {
            folder: folder.to_owned(),
            shared: Shared {
                geometry,
                rules: options.rules(),
                files: opened.files,
            },
            newest_before: opened.newest,
            points_before: opened.points,
            keys: RwLock::new(KeyTable::new(options.max_series)),
            shards: (0..SHARDING.shards()).map(|_| Mutex::default()).collect(),
            state: OpenState::default(),
            accepted: AtomicU64::new(0),
            buffered: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            options,
        })
    }

    /// Runs a call that writes; its failure poisons the store.
    fn writing<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let open = self.state.begin()?;
        let result = call();
        drop(open);
        result.inspect_err(|error| self.state.poison(error))
    }

    /// Writes a run of samples of `batch` that belong to one shard.
    fn write_run(&self, batch: &Batch<'_>, (shard, run): (usize, Range<usize>), refused: &mut Refusals) -> Result<()> {
        let mut shard = lock(&self.shards[shard]);
        for index in run {
            let (id, at) = (batch.id(index), batch.time(index));
            let Some(value) = batch.values().get(index) else { break };
            match shard.put(&self.shared, SHARDING.place_of(id), at, *value) {
                Ok(()) => {}
                Err(NotTaken::Refused(reason)) => refused.push(index, reason),
                Err(NotTaken::Failed(error)) => return Err(error),
            }
        }
        shard.end_write(&self.shared)
    }

    fn shard(&self, id: SeriesId) -> &Mutex<Shard> {
        &self.shards[SHARDING.shard_of(id)]
    }

    /// Writes the waiting points of a series: its number, and its newest point.
    fn flush_series(&self, id: SeriesId) -> Result<Option<(u32, i64)>> {
        let mut shard = lock(self.shard(id));
        shard.flush(&self.shared, SHARDING.place_of(id))?;
        let series = shard.series.get(SHARDING.place_of(id)).and_then(Option::as_ref);
        Ok(series.and_then(|series| Some((series.number, series.newest()?))))
    }

    /// Writes all waiting points. Returns the position that this covers.
    fn flush_all(&self) -> Result<u64> {
        let covered = self.accepted.load(Ordering::Acquire);
        for shard in &self.shards {
            lock(shard).flush_all(&self.shared)?;
        }
        self.buffered.fetch_max(covered, Ordering::AcqRel);
        Ok(covered)
    }

    fn flush_and_sync(&self) -> Result<()> {
        let covered = self.flush_all()?;
        self.shared.files.sync()?;
        self.synced.fetch_max(covered, Ordering::AcqRel);
        Ok(())
    }

    /// Answers for one series whose waiting points are written. Returns false to end the query.
    fn visit_series(
        &self,
        id: SeriesId,
        (number, newest): (u32, i64),
        query: &Query<'_>,
        visit: &mut Visitor<'_>,
    ) -> Result<bool> {
        let geometry = self.shared.geometry;
        let range = geometry.points(query.range);
        let range = range.start..range.end.min(newest + 1);
        let mut goes_on = true;
        if let Some(resample) = query.resample {
            let mut resampler = Resampler::new(resample);
            self.shared.files.read(number, range, &mut |points, values| {
                let rows = points.iter().zip(values);
                rows.for_each(|(&point, &value)| resampler.push(geometry.time(point), value));
                true
            })?;
            let (times, values) = resampler.finish();
            return Ok(times.is_empty() || visit(id, &times, &values) == ControlFlow::Continue(()));
        }
        let mut times = Vec::new();
        self.shared.files.read(number, range, &mut |points, values| {
            times.clear();
            times.extend(points.iter().map(|&point| geometry.time(point)));
            goes_on = visit(id, &times, values) == ControlFlow::Continue(());
            goes_on
        })?;
        Ok(goes_on)
    }
}

impl fmt::Debug for MstoreStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MstoreStore")
            .field("folder", &self.folder)
            .field("options", &self.options)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}

impl fmt::Display for MstoreStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.options.cache, self.options.has_defect) {
            (CachePolicy::Off, _) => "mstore (no cache)",
            (CachePolicy::Round1, _) => "mstore (round 1)",
            (CachePolicy::Round2, false) => "mstore",
            (CachePolicy::Round2, true) => "mstore (with the defect of round 2)",
        })
    }
}

impl Store for MstoreStore {
    fn capabilities(&self) -> Capabilities {
        let acknowledges = match self.options.cache {
            CachePolicy::Off => Durability::Buffered,
            CachePolicy::Round1 | CachePolicy::Round2 => Durability::Volatile,
        };
        Capabilities {
            query: true,
            resample: true,
            exactness: Exactness::LastBit,
            duplicate: OnConflict::Accepted,
            late: OnConflict::Accepted,
            resolution_ns: self.options.step_ns,
            special_values: false,
            persistent: true,
            ..Capabilities::new(acknowledges, Durability::Synced)
        }
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        let _open = self.state.begin()?;
        if series.iter().any(|(_, key)| name_of(key).len() > index::NAME_MAX) {
            return Err(Error::Unsupported {
                store: self.to_string(),
                what: "a name longer than 65,535 bytes",
            });
        }
        write(&self.keys).define(series)?;
        let numbers: Vec<u32> = {
            let mut names = write(&self.shared.files.names);
            series.iter().map(|(_, key)| names.define(&name_of(key))).collect()
        };
        // IMPORTANT: not under the lock of the names, which a writer takes under that of its shard.
        for ((id, _), number) in series.iter().zip(numbers) {
            let mut shard = lock(self.shard(*id));
            let place = SHARDING.place_of(*id);
            if shard.series.len() <= place {
                shard.series.resize_with(place + 1, || None);
            }
            let newest = self.newest_before.get(number as usize).copied().flatten();
            shard.series[place].get_or_insert_with(|| Series::new(number, newest));
        }
        Ok(())
    }

    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        drop(self.state.begin()?);
        read(&self.keys).check_batch(batch)?;
        self.writing(|| {
            let before = refused.len();
            for run in SHARDING.runs(batch) {
                self.write_run(batch, run, refused)?;
            }
            let rejected = refused.len() - before;
            let accepted = batch.len() - rejected;
            let position = self.accepted.fetch_add(accepted as u64, Ordering::AcqRel) + accepted as u64;
            let level = self.capabilities().acknowledges;
            Ok(Ack::new(accepted, rejected, Position(position), level))
        })
    }

    fn durable(&self, level: Durability) -> Position {
        Position(match level {
            Durability::Synced => self.synced.load(Ordering::Acquire),
            Durability::Buffered if self.options.cache != CachePolicy::Off => self.buffered.load(Ordering::Acquire),
            _ => self.accepted.load(Ordering::Acquire),
        })
    }

    fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.writing(|| match (level, scope) {
            (Durability::Unconfirmed | Durability::Volatile, _) => Ok(()),
            (Durability::Buffered, Scope::Series(ids)) => {
                ids.iter().try_for_each(|&id| self.flush_series(id).map(drop))
            }
            (Durability::Buffered, Scope::All) => self.flush_all().map(drop),
            (Durability::Synced, _) => self.flush_and_sync(),
        })
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        drop(self.state.begin()?);
        read(&self.keys).check_each(query.series.iter().copied())?;
        for &id in query.series {
            let Some(series) = self.writing(|| self.flush_series(id))? else {
                continue;
            };
            let _open = self.state.begin()?;
            if !self.visit_series(id, series, query, visit)? {
                break;
            }
        }
        Ok(())
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        let _open = self.state.begin()?;
        read(&self.keys).check_each(series.iter().copied())?;
        for (&id, slot) in series.iter().zip(into) {
            let shard = lock(self.shard(id));
            let found = shard.series.get(SHARDING.place_of(id)).and_then(Option::as_ref);
            let point = found.and_then(Series::newest);
            *slot = point.map(|point| self.shared.geometry.time(point));
        }
        Ok(())
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.newest(series, into)
    }

    fn stats(&self) -> Stats {
        let keys = read(&self.keys);
        let files = &self.shared.files;
        let (disk_bytes, index_bytes) = files.bytes();
        let (mut samples, mut head_bytes) = (self.points_before as i64, 0);
        let mut stats = Stats {
            series: keys.count() as u64,
            accepted: self.accepted.load(Ordering::Acquire),
            disk_bytes,
            damage: files.damage.list(),
            ..Stats::default()
        };
        for shard in &self.shards {
            let shard = lock(shard);
            samples += shard.added;
            stats.superseded += shard.superseded;
            head_bytes += shard.bytes();
        }
        stats.samples = samples.max(0) as u64;
        stats.footprint = Footprint {
            sealed_bytes: stats.samples * POINT_BYTES + index_bytes,
            sealed_samples: stats.samples,
            head_bytes,
            series_bytes: keys.bytes() + read(&files.names).bytes(),
            ..Footprint::default()
        };
        stats
    }

    fn close(&self) -> Result<()> {
        self.state.close(|was| {
            let result = was.and_then(|()| self.flush_and_sync());
            self.shared.files.close();
            result
        })
    }
}

#[cfg(test)]
mod tests;
