//! Mohawk's memory backend: fixed slots of 30 s for 7 days, overwritten cyclically.
//!
//! As in version 0.15.4, a series is an array of `retention / slot` slots of 16 bytes (20,160 x
//! 16 B = 322,560 B), allocated at the first sample; a sample overwrites slot
//! `floor(t / slot) mod slots`. So of a 1 Hz stream it keeps 1 sample in 30.
//!
//! Two differences let a run's ledger balance. An overwritten sample is counted as superseded
//! (same slot) or expired (one lap ago). A sample more than a lap older than the newest is
//! refused as expired; Mohawk let it destroy a newer one, and then returned neither. It is *not*
//! a good store: it shows what such a design loses.

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use crate::error::{Error, Result};
use crate::keys::KeyTable;
use crate::locks::{read, write};
use crate::open_state::ClosedFlag;
use crate::resample::Resampler;
use crate::sharding::Sharding;
use crate::store::{
    Ack, Capabilities, Exactness, Footprint, OnConflict, Position, Query, Reason, Refusals, Scope, Stats, Store,
    TimeRange, Visitor,
};

mod slots;

use slots::{MAX_SLOTS, PutOutcome, SlotGrid, Slots};

/// The locks of the slots: 64, for blocks of 1,024 series.
const SHARDING: Sharding = Sharding::new(1024, 64);

/// The options of a [`RingStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingOptions {
    /// Length of a slot in nanoseconds, in [1, retention_ns / 2].
    pub slot_ns: i64,
    /// Span of all slots in nanoseconds; rounded down to whole slots.
    pub retention_ns: i64,
    /// Upper bound of the bytes of all slots; samples of a series that gets no slots are refused
    /// as full. Slots are allocated zeroed, so the system commits a page at its first sample.
    pub max_bytes: u64,
    /// Maximum number of series.
    pub max_series: usize,
}

impl Default for RingOptions {
    fn default() -> Self {
        Self {
            slot_ns: 30_000_000_000,
            retention_ns: 7 * 86_400_000_000_000,
            max_bytes: 32 << 30,
            max_series: 1_000_000,
        }
    }
}

/// A store with one slot per interval and series, which overwrites.
pub struct RingStore {
    options: RingOptions,
    grid: SlotGrid,
    keys: RwLock<KeyTable>,
    shards: Vec<RwLock<RingShard>>,
    reserved_bytes: AtomicU64,
    accepted: AtomicU64,
    closed: ClosedFlag,
}

/// The slots of some blocks of series, and counts of their samples.
#[derive(Debug, Default)]
struct RingShard {
    series: Vec<Option<Slots>>,
    samples: u64,
    superseded: u64,
    expired: u64,
}

impl RingStore {
    /// An empty store.
    ///
    /// # Errors
    /// [`Error::Spec`] if there would be fewer than two slots, or too many to allocate.
    pub fn new(options: RingOptions) -> Result<Self> {
        let grid = SlotGrid::new(options.slot_ns, options.retention_ns).ok_or_else(|| Error::Spec {
            spec: "ring:".to_owned(),
            what: format!(
                "retention ({} ns) must hold at least two slots ({} ns each) and at most {MAX_SLOTS}",
                options.retention_ns, options.slot_ns
            ),
        })?;
        Ok(Self {
            options,
            grid,
            keys: RwLock::new(KeyTable::new(options.max_series)),
            shards: (0..SHARDING.shards()).map(|_| RwLock::default()).collect(),
            reserved_bytes: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            closed: ClosedFlag::new(),
        })
    }

    /// Writes a run of samples of `batch` that belong to one shard.
    fn write_run(&self, batch: &Batch<'_>, (shard, run): (usize, Range<usize>), refused: &mut Refusals) {
        let mut shard = write(&self.shards[shard]);
        for index in run {
            let (id, at) = (batch.id(index), batch.time(index));
            let Some(value) = batch.values().get(index) else { break };
            if let Err(reason) = self.put(&mut shard, SHARDING.place_of(id), at, *value) {
                refused.push(index, reason);
            }
        }
    }

    fn put(&self, shard: &mut RingShard, place: usize, at: Timestamp, value: f64) -> std::result::Result<(), Reason> {
        if shard.series.len() <= place {
            shard.series.resize_with(place + 1, || None);
        }
        let Some(entry) = shard.series.get_mut(place) else {
            return Err(Reason::Full);
        };
        let slots = match entry {
            Some(slots) => slots,
            None if self.reserve() => entry.insert(Slots::new(self.grid, at)),
            None => return Err(Reason::Full),
        };
        match slots.put(self.grid, at, value) {
            PutOutcome::TooOld => return Err(Reason::Expired),
            PutOutcome::Stored { expired } => {
                shard.expired += expired;
                shard.samples = shard.samples + 1 - expired;
            }
            PutOutcome::Replaced => shard.superseded += 1,
        }
        Ok(())
    }

    /// Reserves the bytes of one more series. Returns false if the limit is reached.
    fn reserve(&self) -> bool {
        let bytes = self.grid.bytes();
        let take = |reserved: u64| Some(reserved + bytes).filter(|&total| total <= self.options.max_bytes);
        self.reserved_bytes
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, take)
            .is_ok()
    }

    fn shard(&self, id: SeriesId) -> &RwLock<RingShard> {
        &self.shards[SHARDING.shard_of(id)]
    }

    /// Copies the samples of one series, so that no lock is held while they are visited.
    fn copy(&self, id: SeriesId, range: TimeRange, times: &mut Vec<Timestamp>, values: &mut Vec<f64>) {
        let shard = read(self.shard(id));
        if let Some(Some(slots)) = shard.series.get(SHARDING.place_of(id)) {
            for (at, value) in slots.samples(self.grid, range) {
                times.push(at);
                values.push(value);
            }
        }
    }

    fn unsupported(&self, what: &'static str) -> Error {
        Error::Unsupported {
            store: self.to_string(),
            what,
        }
    }
}

impl fmt::Debug for RingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("RingStore");
        debug
            .field("options", &self.options)
            .field("stats", &self.stats())
            .finish()
    }
}

impl fmt::Display for RingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ring")
    }
}

impl Store for RingStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            query: true,
            resample: true,
            exactness: Exactness::OnePerSlot(self.options.slot_ns),
            duplicate: OnConflict::Accepted,
            late: OnConflict::Accepted,
            resolution_ns: 1,
            special_values: true,
            persistent: false,
            retention_ns: Some(self.grid.kept_ns()),
            ..Capabilities::new(Durability::Volatile, Durability::Volatile)
        }
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.closed.check_open()?;
        write(&self.keys).define(series)
    }

    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.closed.check_open()?;
        read(&self.keys).check_batch(batch)?;
        let before = refused.len();
        for run in SHARDING.runs(batch) {
            self.write_run(batch, run, refused);
        }
        let rejected = refused.len() - before;
        let accepted = batch.len() - rejected;
        let position = self.accepted.fetch_add(accepted as u64, Ordering::AcqRel) + accepted as u64;
        Ok(Ack::new(accepted, rejected, Position(position), Durability::Volatile))
    }

    fn durable(&self, level: Durability) -> Position {
        if level > Durability::Volatile {
            Position(0)
        } else {
            Position(self.accepted.load(Ordering::Acquire))
        }
    }

    fn flush(&self, _scope: Scope<'_>, level: Durability) -> Result<()> {
        self.closed.check_open()?;
        if level > Durability::Volatile {
            Err(self.unsupported("flush beyond volatile"))
        } else {
            Ok(())
        }
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        self.closed.check_open()?;
        read(&self.keys).check_each(query.series.iter().copied())?;
        let (mut times, mut values) = (Vec::new(), Vec::new());
        for &id in query.series {
            times.clear();
            values.clear();
            self.copy(id, query.range, &mut times, &mut values);
            if let Some(resample) = query.resample {
                let mut resampler = Resampler::new(resample);
                times
                    .iter()
                    .zip(&values)
                    .for_each(|(&at, &value)| resampler.push(at, value));
                (times, values) = resampler.finish();
            }
            if !times.is_empty() && visit(id, &times, &values) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.closed.check_open()?;
        read(&self.keys).check_each(series.iter().copied())?;
        for (&id, slot) in series.iter().zip(into) {
            let shard = read(self.shard(id));
            let slots = shard.series.get(SHARDING.place_of(id)).and_then(Option::as_ref);
            *slot = slots.and_then(|slots| slots.newest(self.grid));
        }
        Ok(())
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.newest(series, into)
    }

    fn stats(&self) -> Stats {
        let keys = read(&self.keys);
        let mut stats = Stats {
            series: keys.count() as u64,
            accepted: self.accepted.load(Ordering::Acquire),
            footprint: Footprint {
                head_bytes: self.reserved_bytes.load(Ordering::Acquire),
                series_bytes: keys.bytes(),
                ..Footprint::default()
            },
            ..Stats::default()
        };
        for shard in &self.shards {
            let shard = read(shard);
            stats.samples += shard.samples;
            stats.superseded += shard.superseded;
            stats.expired += shard.expired;
        }
        stats
    }

    fn close(&self) -> Result<()> {
        self.closed.close();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
