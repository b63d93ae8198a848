//! The memory store: whole ticks side by side, sealed into compressed blocks.
//!
//! Series that were first written together share an *extent*, which has one lock; an extent has
//! *tiles* of up to 240 series, and a tick of a tile is one row copy. Tiles are sealed one after
//! the other, so no write waits for more than a few of them. A sample that fits no row (it is
//! late, or has a timestamp of its own) is kept per series as *loose*, and merged in when read; a
//! later write wins. Only retention drops samples, and it counts them.
//!
//! It keeps nothing when the process ends, and evicts nothing to make room: a full store refuses
//! samples. Byte format of a block: `docs/formats/block.md`.

mod budget;
mod clock;
mod directory;
mod extent;
mod index;
mod loose;
mod placement;
mod query;
mod rows;
mod series;
mod tile;
mod write;

#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use tsb_core::{Batch, Durability, Ids, SeriesId, SeriesKey, Timestamp};

use crate::block::{Fold, MAX_ROWS};
#[cfg(feature = "sqlite")]
use crate::block::{Part, Wanted};
use crate::error::{Error, Result};
use crate::open_state::ClosedFlag;
use crate::store::{
    Ack, Capabilities, Exactness, Footprint, OnConflict, Position, Query, Refusals, Scope, Stats, Store, Visitor,
};
use budget::Budget;
use clock::RetentionClock;
use directory::{Directory, IdState};
use extent::{Extent, Tiles};
use query::QueryBuffers;
use series::SeriesTable;
use tile::TileContext;

/// Limits of a memory store. The default has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryOptions {
    /// Nanoseconds for which a sample is kept, measured against the newest timestamp that the
    /// store has accepted for any series. A write of an older sample is refused as
    /// [`Reason::Expired`](crate::Reason::Expired), queries do not return it, and blocks that
    /// hold nothing newer are freed. One timestamp from far in the future therefore expires
    /// everything before it. At least 0.
    pub retention_ns: Option<i64>,
    /// Upper bound, in bytes, of samples, their bookkeeping and the keys of the series. A sample
    /// that does not fit is refused as [`Reason::Full`](crate::Reason::Full), and a definition as
    /// [`Error::TooManyNameBytes`].
    pub max_bytes: Option<u64>,
    /// Maximum number of series.
    pub max_series: Option<usize>,
}

/// A store in memory; see the module's documentation.
#[derive(Debug)]
pub struct MemoryStore {
    options: MemoryOptions,
    shared: SharedState,
    series: Mutex<SeriesTable>,
    accepted: AtomicU64,
    superseded: AtomicU64,
    expired: AtomicU64,
    /// The extent that is checked next for expired samples.
    swept: AtomicU32,
    /// Samples accepted since the last check of an extent.
    unswept: AtomicI64,
    closed: ClosedFlag,
}

/// The state shared by writers.
#[derive(Debug)]
struct SharedState {
    directory: Directory,
    budget: Budget,
    clock: RetentionClock,
    /// Number of series: the more there are, the fewer rows a tile keeps open.
    series: AtomicU32,
    /// Upper bound of the open rows of a tile, in [1, 256].
    max_rows: usize,
    /// Number of tiles; its lock serializes the creation of extents.
    tiles: Mutex<u32>,
}

/// Upper bound of the open rows of all tiles together, if the series are defined before they are
/// written, and are not more than a million.
const HEAD_BYTES: usize = 256 << 20;

/// Open rows per tile for this number of series, in [32, 256].
fn rows_for(series: usize) -> usize {
    let fitting = HEAD_BYTES / size_of::<f64>() / series.max(1);
    match fitting {
        256.. => 256,
        128.. => 128,
        64.. => 64,
        _ => 32,
    }
}

/// Accepted samples per series after which an extent is checked for expired ones.
const SAMPLES_A_SWEEP: i64 = 8;

fn poisoned(what: &str) -> Error {
    Error::Poisoned {
        cause: format!("{what} panicked"),
    }
}

impl SharedState {
    /// Creates extents for the series of a batch that have none, `id` among them. If the memory
    /// bound is reached, some stay without.
    fn place(&self, id: u32, batch: &Batch<'_>) -> Result<()> {
        let mut tiles = self.tiles.lock().map_err(|_| poisoned("a write of new series"))?;
        let pairs = batch.iter().map(|(id, at, _)| (id.0, at.0));
        let mut new: Vec<(u32, i64)> = pairs
            .filter(|(id, _)| self.directory.entry(*id) == IdState::Defined)
            .collect();
        new.sort_by_key(|(id, _)| *id);
        new.dedup_by_key(|(id, _)| *id);
        debug_assert!(
            new.iter().any(|new| new.0 == id) || self.directory.entry(id) != IdState::Defined,
            "the batch holds the id"
        );
        let rows = rows_for(self.series.load(Ordering::Relaxed) as usize).min(self.max_rows);
        for (first, len) in placement::extents(&new) {
            if !self.budget.take(Extent::bytes(len)) {
                break;
            }
            let extent = Extent::new(first, len, *tiles, rows);
            *tiles += extent.tile_count();
            self.directory.place(extent);
        }
        Ok(())
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new(options: MemoryOptions) -> Self {
        Self::with_max_rows(options, MAX_ROWS)
    }

    /// An empty store whose tiles keep at most `max_rows` rows open.
    fn with_max_rows(options: MemoryOptions, max_rows: usize) -> Self {
        Self {
            options,
            shared: SharedState {
                directory: Directory::new(),
                budget: Budget::new(options.max_bytes),
                clock: RetentionClock::new(options.retention_ns),
                series: AtomicU32::new(0),
                max_rows,
                tiles: Mutex::new(0),
            },
            series: Mutex::default(),
            accepted: AtomicU64::new(0),
            superseded: AtomicU64::new(0),
            expired: AtomicU64::new(0),
            swept: AtomicU32::new(0),
            unswept: AtomicI64::new(0),
            closed: ClosedFlag::new(),
        }
    }

    fn check_ids(&self, ids: &[SeriesId]) -> Result<()> {
        for id in ids {
            if self.shared.directory.entry(id.0) == IdState::Undefined {
                return Err(Error::UnknownSeries { id: *id });
            }
        }
        Ok(())
    }

    fn check_batch(&self, batch: &Batch<'_>) -> Result<()> {
        let directory = &self.shared.directory;
        match batch.ids() {
            Ids::Range(first) => {
                let last = (first.0).checked_add(batch.len() as u32 - 1);
                let checked = directory.check(first.0, last.unwrap_or(u32::MAX));
                let checked = if last.is_none() {
                    checked.and(Err(u32::MAX))
                } else {
                    checked
                };
                checked.map_err(|id| Error::UnknownSeries { id: SeriesId(id) })
            }
            Ids::Each(ids) => {
                let (_, high) = write::bounds(ids);
                if directory.is_dense(high) {
                    return Ok(());
                }
                self.check_ids(ids)
            }
        }
    }

    /// Drops the expired samples of the next extents, as many as `accepted` further samples make
    /// due.
    fn sweep(&self, accepted: usize) -> Result<()> {
        let shared = &self.shared;
        let Some(cutoff) = shared.clock.cutoff() else {
            return Ok(());
        };
        let mut due = self.unswept.fetch_add(accepted as i64, Ordering::Relaxed) + accepted as i64;
        let extents = shared.directory.extent_count();
        for _ in 0..extents {
            let number = self.swept.load(Ordering::Relaxed) % extents;
            let Some(extent) = shared.directory.extent(number) else {
                break;
            };
            let price = i64::from(extent.len) * SAMPLES_A_SWEEP;
            if due < price {
                break;
            }
            due -= price;
            self.unswept.fetch_sub(price, Ordering::Relaxed);
            self.swept.store(number + 1, Ordering::Relaxed);
            let budget = &shared.budget;
            let context = TileContext { budget, cutoff };
            let expired = extent
                .lock()?
                .iter_mut()
                .map(|tile| tile.expire(context))
                .sum::<usize>();
            self.expired.fetch_add(expired as u64, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Marks ids as defined without a key, for a store that keeps the keys elsewhere.
    #[cfg(feature = "sqlite")]
    pub(crate) fn define_ids(&self, ids: std::ops::Range<u32>) {
        self.shared.series.fetch_add(ids.len() as u32, Ordering::Relaxed);
        for id in ids {
            self.shared.directory.define(id);
        }
    }

    /// Writes a batch of defined ids into a store without limits. Returns how many samples
    /// replaced an earlier one.
    #[cfg(feature = "sqlite")]
    pub(crate) fn apply(&self, batch: &Batch<'_>) -> Result<usize> {
        let superseded = write::write(&self.shared, batch, &mut Refusals::new())?;
        self.accepted.fetch_add(batch.len() as u64, Ordering::Relaxed);
        self.superseded.fetch_add(superseded as u64, Ordering::Relaxed);
        Ok(superseded)
    }

    /// Appends the parts of a series in `range`, sorted by start.
    #[cfg(feature = "sqlite")]
    pub(crate) fn take(&self, id: u32, range: (i64, i64), wanted: Wanted, into: &mut Vec<Part>) -> Result<()> {
        let Some(extent) = self.shared.directory.extent_of(id) else {
            return Ok(());
        };
        let (tile, column) = extent.place(id);
        extent.lock()?[tile].take(column, range, wanted, into);
        Ok(())
    }

    /// Raises each entry of `into` to the newest timestamp of the corresponding id, if that is
    /// newer.
    #[cfg(feature = "sqlite")]
    pub(crate) fn raise_newest(&self, ids: impl Iterator<Item = u32>, into: &mut [i64]) -> Result<()> {
        let mut locked: Option<(&Extent, Tiles<'_>)> = None;
        for (id, into) in ids.zip(into) {
            let Some(extent) = self.shared.directory.extent_of(id) else {
                continue;
            };
            if locked.as_ref().is_none_or(|(other, _)| other.first != extent.first) {
                drop(locked.take());
                locked = Some((extent, extent.lock()?));
            }
            if let Some((extent, tiles)) = &locked {
                let (tile, column) = extent.place(id);
                *into = tiles[tile].newest(column).unwrap_or(i64::MIN).max(*into);
            }
        }
        Ok(())
    }

    /// Number of extents.
    #[cfg(feature = "sqlite")]
    pub(crate) fn extent_count(&self) -> u32 {
        self.shared.directory.extent_count()
    }

    /// Creates extents like some of those of `other`, and allocates their memory, so that the
    /// next writes need not. The ids must be defined, and in no extent here.
    #[cfg(feature = "sqlite")]
    pub(crate) fn prepare_like(&self, other: &Self, extents: std::ops::Range<u32>) -> Result<()> {
        let mut tiles = self
            .shared
            .tiles
            .lock()
            .map_err(|_| poisoned("a write of new series"))?;
        let rows = rows_for(self.shared.series.load(Ordering::Relaxed) as usize).min(self.shared.max_rows);
        for like in extents.filter_map(|number| other.shared.directory.extent(number)) {
            if !like.lock()?.iter().any(tile::Tile::is_written) {
                continue;
            }
            let extent = Extent::new(like.first, like.len as usize, *tiles, rows);
            *tiles += extent.tile_count();
            extent.lock()?.iter_mut().for_each(tile::Tile::prepare);
            self.shared.directory.place(extent);
        }
        Ok(())
    }

    /// Frees the memory of extents whose ids are all below `id`, since their samples are stored
    /// elsewhere now.
    #[cfg(feature = "sqlite")]
    pub(crate) fn release_below(&self, id: u32) -> Result<()> {
        for extent in self
            .shared
            .directory
            .extents()
            .filter(|extent| extent.first + extent.len <= id)
        {
            for tile in extent.lock()?.iter_mut() {
                tile.release();
            }
        }
        Ok(())
    }

    fn series_table(&self) -> Result<MutexGuard<'_, SeriesTable>> {
        self.series.lock().map_err(|_| poisoned("a definition of series"))
    }
}

impl fmt::Display for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("memory")?;
        let MemoryOptions {
            retention_ns,
            max_bytes,
            max_series,
        } = self.options;
        let options = [
            retention_ns.map(|ns| format!("retention={ns}ns")),
            max_bytes.map(|bytes| format!("max_bytes={bytes}")),
            max_series.map(|series| format!("max_series={series}")),
        ];
        let options: Vec<String> = options.into_iter().flatten().collect();
        if options.is_empty() {
            Ok(())
        } else {
            write!(f, "({})", options.join(", "))
        }
    }
}

impl Store for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            query: true,
            resample: true,
            exactness: Exactness::Exact,
            duplicate: OnConflict::Accepted,
            late: OnConflict::Accepted,
            resolution_ns: 1,
            special_values: true,
            persistent: false,
            retention_ns: self.options.retention_ns,
            ..Capabilities::new(Durability::Volatile, Durability::Volatile)
        }
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.closed.check_open()?;
        let mut table = self.series_table()?;
        let new = table.define(series, self.options.max_series, &self.shared.budget)?;
        self.shared.series.store(table.len() as u32, Ordering::Relaxed);
        for id in new {
            self.shared.directory.define(id.0);
        }
        Ok(())
    }

    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.closed.check_open()?;
        let mut rejected = refused.len();
        let mut accepted = 0;
        if batch.is_empty() {
            rejected = 0;
        } else {
            self.check_batch(batch)?;
            let superseded = write::write(&self.shared, batch, refused)?;
            rejected = refused.len() - rejected;
            accepted = batch.len() - rejected;
            if superseded > 0 {
                self.superseded.fetch_add(superseded as u64, Ordering::Relaxed);
            }
            self.sweep(accepted)?;
        }
        let before = self.accepted.fetch_add(accepted as u64, Ordering::AcqRel);
        Ok(Ack::new(
            accepted,
            rejected,
            Position(before + accepted as u64),
            Durability::Volatile,
        ))
    }

    fn durable(&self, level: Durability) -> Position {
        if level > Durability::Volatile {
            Position(0)
        } else {
            Position(self.accepted.load(Ordering::Acquire))
        }
    }

    fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.closed.check_open()?;
        if let Scope::Series(series) = scope {
            self.check_ids(series)?;
        }
        if level > Durability::Volatile {
            return Err(Error::Unsupported {
                store: self.to_string(),
                what: "flush beyond volatile",
            });
        }
        Ok(())
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        self.closed.check_open()?;
        self.check_ids(query.series)?;
        let start = query.range.start.0.max(self.shared.clock.cutoff().unwrap_or(i64::MIN));
        let range = (start, query.range.end.0);
        let mut reader = QueryBuffers::default();
        let mut fold = query.resample.map(Fold::new);
        for series in query.series {
            let Some(extent) = self.shared.directory.extent_of(series.0) else {
                continue;
            };
            if let ControlFlow::Break(()) = reader.series(extent, *series, range, fold.as_mut(), visit)? {
                break;
            }
        }
        Ok(())
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.closed.check_open()?;
        self.check_ids(series)?;
        let cutoff = self.shared.clock.cutoff().unwrap_or(i64::MIN);
        let mut locked: Option<(&Extent, Tiles<'_>)> = None;
        for (series, into) in series.iter().zip(into) {
            *into = None;
            let Some(extent) = self.shared.directory.extent_of(series.0) else {
                continue;
            };
            if locked.as_ref().is_none_or(|(other, _)| other.first != extent.first) {
                drop(locked.take());
                locked = Some((extent, extent.lock()?));
            }
            if let Some((extent, tiles)) = &locked {
                let (tile, column) = extent.place(series.0);
                let newest = tiles[tile].newest(column);
                *into = newest.filter(|at| *at >= cutoff).map(Timestamp);
            }
        }
        Ok(())
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.newest(series, into)
    }

    fn stats(&self) -> Stats {
        let cutoff = self.shared.clock.cutoff();
        let mut footprint = Footprint::default();
        let mut fading = 0;
        let mut extents = 0;
        for extent in self.shared.directory.extents() {
            extents += Extent::bytes(extent.len as usize) as u64;
            // If a writer panicked, its extent is poisoned and its contents are uncertain: skip
            // it.
            let Ok(tiles) = extent.lock() else { continue };
            for tile in tiles.iter() {
                let occupied = tile.occupied();
                fading += cutoff.map_or(0, |cutoff| tile.count_before(cutoff)) as u64;
                footprint.sealed_bytes += occupied.sealed_bytes as u64;
                footprint.sealed_samples += occupied.sealed_samples as u64;
                footprint.head_bytes += occupied.head_bytes as u64;
            }
        }
        let keys = self.series_table().map_or(0, |table| table.bytes());
        footprint.series_bytes = extents + (keys + self.shared.directory.bytes()) as u64;
        let accepted = self.accepted.load(Ordering::Acquire);
        let superseded = self.superseded.load(Ordering::Relaxed);
        let expired = self.expired.load(Ordering::Relaxed) + fading;
        Stats {
            series: u64::from(self.shared.series.load(Ordering::Relaxed)),
            samples: accepted.saturating_sub(superseded + expired),
            accepted,
            superseded,
            expired,
            footprint,
            ..Stats::default()
        }
    }

    fn close(&self) -> Result<()> {
        self.closed.close();
        Ok(())
    }
}
