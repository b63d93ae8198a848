//! The contract between a store and the code that uses it.
//!
//! The clauses are numbered; the conformance test `cN_*` tests clause N.

use std::fmt::{Debug, Display};
use std::ops::ControlFlow;
use std::sync::Arc;

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use crate::error::{Error, Result};

mod consolidation;
mod slots;
mod stats;

pub use consolidation::{ArchiveRule, Consolidated, Derivation, MAX_ARCHIVES};
pub use slots::{MAX_SLOT_ARCHIVES, SlotArchive, SlotArchives};
pub use stats::{Footprint, Stats};

/// Something that keeps samples.
///
/// # Contract
///
/// 1. Every method may be called from any thread, at the same time as any other.
/// 2. Every method may block. A caller inside an async runtime hands it to a thread.
/// 3. `define` is idempotent and precedes writes. A batch with an undefined id is an
///    [`Error::UnknownSeries`], and nothing of that batch is applied.
/// 4. `accepted + rejected == batch.len()`; each rejected index is in `refused`, once,
///    with its reason.
/// 5. The durability in an ack is a floor that is already reached. [`Store::durable`]
///    only grows, and everything up to the position it names has that level. From
///    `Buffered` on that means: it is there when the place is opened again after this
///    process has died.
/// 6. For one writer, order within a series is batch order. Of two samples with the same
///    series and timestamp the later wins or is rejected, and a late sample is accepted
///    or rejected, as the [`Capabilities`] say.
/// 7. What was accepted before a query starts is in its result (a remote may declare a
///    bounded delay). The visitor must not call the store.
/// 8. `flush` is a barrier: when it returns, every sample in its scope that was accepted
///    before has that level, or it returns an error. A flush of some series may cover more.
/// 9. A failed write may be partly applied, and says so. In an embedded store a failed
///    flush or sync poisons it; a remote client reports unknown outcomes and reconnects.
/// 10. `close` flushes, and releases every lock, file and connection that the store holds,
///     although the value still lives: the place can be opened again at once, and dropping
///     the closed value does not touch it any more. `close` is idempotent; afterwards
///     `define`, `write`, `flush`, `query`, `newest` and `newest_accepted` are
///     [`Error::Closed`], and the others say what they said last.
///     A persistent store that is opened again returns what had reached `Buffered`: after
///     `close`, after a drop without `close`, and after its process was killed. After a
///     power cut it returns what had reached `Synced`. It may return more, of what was
///     accepted, and nothing else. Of a store whose files were damaged, what is missing or
///     changed is said: opening or reading it is an error, or [`Stats`] has the damage. What
///     a format cannot show, its documentation says.
/// 11. `newest` takes no I/O after `define` in an embedded store, and one request for
///     many series in a remote; `newest_accepted` takes neither.
///
/// # Implementors and users
///
/// There are no default methods, so that a wrapper that forgets one does not compile.
/// Conveniences for users are in [`StoreExt`]. `Display` is how the store is named in a
/// report: a stack prints itself, `throttle(memory)`.
pub trait Store: Debug + Display + Send + Sync + 'static {
    /// What this store can do. Constant for the life of the store.
    fn capabilities(&self) -> Capabilities;

    /// Binds ids to keys. Ids are dense in a run but may arrive in any order and in
    /// parts; ids of other runs mean nothing here (clause 3).
    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()>;

    /// Writes a batch. Refused samples are *appended* to `refused` (clauses 3 to 6, 9).
    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack>;

    /// The position up to which everything has `level` (clause 5).
    fn durable(&self, level: Durability) -> Position;

    /// Raises everything accepted before to `level` (clause 8).
    fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()>;

    /// Visits the samples of each asked series, in the order asked, in chunks of
    /// ascending time; never an empty chunk (clause 7).
    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()>;

    /// The newest timestamp that a query would return, one slot per series; `None` if there is no
    /// sample (clause 11). Both slices must have the same length.
    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()>;

    /// The newest timestamp accepted for each series, by this opening or an earlier one; `None`
    /// if there is none, if all have expired, or if the store cannot know without asking. A store that refuses late
    /// samples must always know it, since it admits samples by it (clause 11). Both slices must
    /// have the same length.
    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()>;

    /// What the store holds and occupies; [`Stats`] says since when each figure counts.
    fn stats(&self) -> Stats;

    /// Flushes and closes the store (clause 10).
    fn close(&self) -> Result<()>;
}

/// A position in a store: a number that grows with every accepted sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position(pub u64);

/// The answer to a write. A store makes one with [`Ack::new`]: written out field by field,
/// it would not compile any more when an ack says one thing more.
///
/// ```compile_fail,E0639
/// use tsb_core::Durability;
/// use tsb_stores::{Ack, Position};
///
/// let durability = Durability::Volatile;
/// let ack = Ack { accepted: 1, rejected: 0, position: Position(1), durability };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an ack says how much was refused"]
#[non_exhaustive]
pub struct Ack {
    /// Number of accepted samples.
    pub accepted: usize,
    /// Number of refused samples; each is listed in the refusals.
    pub rejected: usize,
    /// The store's position after this write: compare with [`Store::durable`].
    pub position: Position,
    /// The level that the accepted samples have already reached.
    pub durability: Durability,
}

impl Ack {
    /// An answer: how many samples of the batch were accepted and how many rejected, the
    /// position behind them, and the level that the accepted ones have reached.
    pub const fn new(accepted: usize, rejected: usize, position: Position, durability: Durability) -> Self {
        Self {
            accepted,
            rejected,
            position,
            durability,
        }
    }
}

/// One refused sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Its index in the batch.
    pub index: u32,
    /// The reason.
    pub reason: Reason,
}

/// Why a sample was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Older than the newest sample of its series, in a store that keeps order.
    Late,
    /// Its series already has a sample with this timestamp, and the earlier one is kept.
    Duplicate,
    /// Older than the retention.
    Expired,
    /// The memory or disk bound is reached.
    Full,
    /// The store cannot represent this value or timestamp.
    Unrepresentable,
    /// The file of its series is damaged or missing; other series are not affected.
    Damaged,
    /// A server refused it for another reason.
    Refused,
    /// No server could be reached: it was not sent.
    Unreachable,
    /// A fault injected on purpose (by `throttle`).
    Injected,
}

impl Reason {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Late => "late",
            Self::Duplicate => "duplicate",
            Self::Expired => "expired",
            Self::Full => "full",
            Self::Unrepresentable => "unrepresentable",
            Self::Damaged => "damaged",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Injected => "injected",
        }
    }
}

/// The refused samples of a write: owned and reused by the caller, empty in the fast path.
#[derive(Clone, Debug, Default)]
pub struct Refusals {
    list: Vec<Refusal>,
}

impl Refusals {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Appends one refusal.
    pub fn push(&mut self, index: usize, reason: Reason) {
        self.list.push(Refusal {
            index: index as u32,
            reason,
        });
    }

    /// Removes all refusals and keeps the allocation.
    pub fn clear(&mut self) {
        self.list.clear();
    }

    /// All refusals, in the order in which they were pushed.
    pub fn as_slice(&self) -> &[Refusal] {
        &self.list
    }

    /// Number of refusals.
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether there are no refusals.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// What a store can do. Public and tested both ways: what is claimed works, what is not
/// claimed answers [`Error::Unsupported`].
///
/// A store starts from [`Capabilities::new`] and sets what differs, so that a capability
/// that is added later does not break it:
///
/// ```
/// use tsb_core::Durability;
/// use tsb_stores::Capabilities;
///
/// let mut capabilities = Capabilities::new(Durability::Buffered, Durability::Synced);
/// capabilities.persistent = true;
/// assert!(capabilities.query && !capabilities.resample);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Samples can be read back; if false, `query` and `newest` are unsupported.
    pub query: bool,
    /// `query` can resample (step and consolidation).
    pub resample: bool,
    /// How exactly a value that is read back equals the one written.
    pub exactness: Exactness,
    /// What happens to two samples of one series and timestamp.
    pub duplicate: OnConflict,
    /// What happens to a sample older than the newest of its series.
    pub late: OnConflict,
    /// Timestamps are stored in units of this many nanoseconds; 1 is exact. At least 1.
    pub resolution_ns: i64,
    /// NaN and infinities are kept, to the bit.
    pub special_values: bool,
    /// The level that every ack has at least.
    pub acknowledges: Durability,
    /// Number of machines on which an acknowledged sample has that level: 1 without replication.
    pub copies: u32,
    /// The highest level that `flush` can reach.
    pub reaches: Durability,
    /// A store can be opened again at the same place, with its samples (clause 10).
    pub persistent: bool,
    /// How long samples are kept, in nanoseconds before the newest sample of the whole store;
    /// `None`: for ever. Older samples may be gone, and may be refused as expired.
    pub retention_ns: Option<i64>,
    /// How far before the newest sample of the whole store a sample may be that is written, in
    /// nanoseconds; older ones are refused as late. `None`: as far as any, or it is not known.
    pub takes_back_ns: Option<i64>,
    /// How long an accepted sample may stay invisible to queries, in milliseconds.
    pub visibility_delay_ms: u64,
    /// [`Stats::samples`] and [`Stats::superseded`] are exact. False for the client of a server that
    /// cannot be asked how many samples it holds: then they are what was accepted, and 0.
    pub counts_samples: bool,
}

impl Capabilities {
    /// What a plain store claims: raw queries of exact values at exact times, special
    /// values too; later samples win and late ones are accepted; on one machine, kept for
    /// ever, visible at once, not resampled, and gone when the value is dropped.
    /// `acknowledges` is the level of every ack, `reaches` the highest that a flush can give.
    pub const fn new(acknowledges: Durability, reaches: Durability) -> Self {
        Self {
            query: true,
            resample: false,
            exactness: Exactness::Exact,
            duplicate: OnConflict::Accepted,
            late: OnConflict::Accepted,
            resolution_ns: 1,
            special_values: true,
            acknowledges,
            copies: 1,
            reaches,
            persistent: false,
            retention_ns: None,
            takes_back_ns: None,
            visibility_delay_ms: 0,
            counts_samples: true,
        }
    }
}

/// How exactly a value that is read back equals the one written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exactness {
    /// The same bits.
    Exact,
    /// The same bits but for the last one, which may be 0 where it was 1: DalmatinerDB's floats.
    LastBit,
    /// Rounded to a 32-bit float.
    Float32,
    /// Rounded to this many decimals.
    Decimals(u8),
    /// Rounded to this many significant decimal digits of the largest value of its series, by
    /// magnitude.
    Significant(u8),
    /// One sample a slot of this many nanoseconds; the others are superseded.
    OnePerSlot(i64),
    /// Only consolidated rows come back, which follow from the samples by this rule.
    Consolidated(Consolidated),
    /// One value per slot comes back, and longer slots that follow from shorter ones by this rule. Of
    /// the samples of one slot it is the last that arrived, or the one with the latest timestamp.
    Slots(SlotArchives),
    /// Nothing comes back.
    Nothing,
}

/// What happens to a sample that has the timestamp of another one, or is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnConflict {
    /// It is accepted; of two with one timestamp, the later write wins.
    Accepted,
    /// It is rejected with a reason.
    Rejected,
    /// Both copies are kept; a query returns them in any order.
    KeptBoth,
}

/// The samples that a flush covers.
#[derive(Clone, Copy, Debug)]
pub enum Scope<'a> {
    /// Everything accepted so far.
    All,
    /// These series.
    Series(&'a [SeriesId]),
}

/// Timestamps from `start` (included) to `end` (excluded).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// The first timestamp that belongs to the range.
    pub start: Timestamp,
    /// The first timestamp after it.
    pub end: Timestamp,
}

impl TimeRange {
    /// Every timestamp but [`Timestamp::MAX`].
    pub const ALL: Self = Self {
        start: Timestamp::MIN,
        end: Timestamp::MAX,
    };

    /// Whether `at` belongs to the range.
    pub fn contains(&self, at: Timestamp) -> bool {
        self.start <= at && at < self.end
    }

    /// The first and the last number of whole units of `unit_ns` nanoseconds (at least 1) whose timestamp
    /// belongs to the range; `None` if there is none.
    pub fn whole_units(&self, unit_ns: i64) -> Option<(i64, i64)> {
        let start = self.start.0;
        let first = start.div_euclid(unit_ns) + i64::from(start.rem_euclid(unit_ns) > 0);
        let last = self.end.0.saturating_sub(1).div_euclid(unit_ns);
        (self.start < self.end && first <= last).then_some((first, last))
    }
}

/// A query: some series, a range, raw or resampled.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The series, answered in this order.
    pub series: &'a [SeriesId],
    /// The range of timestamps.
    pub range: TimeRange,
    /// `None` asks for raw samples.
    pub resample: Option<Resample>,
}

/// Consolidation into one row per step that holds a sample.
///
/// Steps are aligned to multiples of `step_ns` since the epoch; a row's timestamp is the start of
/// its step. Only samples within the query's range count. NaN samples are ignored, except by
/// [`Consolidation::Count`], `First` and `Last`; a step with no other samples has the value NaN
/// for `Min`, `Max` and `Average`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resample {
    /// Length of a step in nanoseconds; at least 1.
    pub step_ns: i64,
    /// How the samples of a step become one value.
    pub consolidation: Consolidation,
}

/// How the samples of a step become one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Consolidation {
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The arithmetic mean: the sum, added in time order, divided by the count.
    Average,
    /// The sum, added in time order.
    Sum,
    /// Number of samples, NaN included.
    Count,
    /// The earliest, NaN included.
    First,
    /// The latest, NaN included.
    Last,
}

/// Receives chunks of columns, of one series at a time; `Break` ends the query early, which is no
/// error.
pub type Visitor<'v> = dyn FnMut(SeriesId, &[Timestamp], &[f64]) -> ControlFlow<()> + 'v;

/// Conveniences for users of a store. Nothing here can be overridden.
///
/// ```
/// use tsb_core::{Batch, SeriesId, SeriesKey, Timestamp};
/// use tsb_stores::memory::{MemoryOptions, MemoryStore};
/// use tsb_stores::{Consolidation, Resample, Store, StoreExt, TimeRange};
///
/// # fn main() -> tsb_stores::Result<()> {
/// let store = MemoryStore::new(MemoryOptions::default());
/// let id = SeriesId(0);
/// store.define(&[(id, SeriesKey::new("load"))])?;
/// for second in 0..4 {
///     let _ = store.write_all(&Batch::tick(id, Timestamp::from_secs(second), &[second as f64]))?;
/// }
/// let pairs = Resample { step_ns: 2_000_000_000, consolidation: Consolidation::Sum };
/// let rows = store.rows(id, TimeRange::ALL, Some(pairs))?;
/// assert_eq!(rows, [(Timestamp::from_secs(0), 1.0), (Timestamp::from_secs(2), 5.0)]);
/// # Ok(())
/// # }
/// ```
pub trait StoreExt: Store {
    /// Writes a batch; a refused sample is an error.
    fn write_all(&self, batch: &Batch<'_>) -> Result<Ack> {
        let mut refused = Refusals::new();
        let ack = self.write(batch, &mut refused)?;
        match refused.as_slice().first() {
            None => Ok(ack),
            Some(first) => Err(Error::Backend {
                action: format!("write sample {} of {}", first.index, batch.len()),
                source: format!("{} refused it as {}", self, first.reason.name()).into(),
            }),
        }
    }

    /// The raw samples of one series in a range, collected.
    fn samples(&self, series: SeriesId, range: TimeRange) -> Result<Vec<(Timestamp, f64)>> {
        self.rows(series, range, None)
    }

    /// The rows of one series, raw or resampled, collected.
    fn rows(&self, series: SeriesId, range: TimeRange, resample: Option<Resample>) -> Result<Vec<(Timestamp, f64)>> {
        let mut rows = Vec::new();
        let query = Query {
            series: &[series],
            range,
            resample,
        };
        self.query(&query, &mut |_, times, values| {
            rows.extend(times.iter().copied().zip(values.iter().copied()));
            ControlFlow::Continue(())
        })?;
        Ok(rows)
    }
}

impl<S: Store + ?Sized> StoreExt for S {}

/// Implements [`Store`] for a pointer by calling what it points to.
macro_rules! forward {
    ($pointer:ty) => {
        impl<S: Store + ?Sized> Store for $pointer {
            fn capabilities(&self) -> Capabilities {
                (**self).capabilities()
            }
            fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
                (**self).define(series)
            }
            fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
                (**self).write(batch, refused)
            }
            fn durable(&self, level: Durability) -> Position {
                (**self).durable(level)
            }
            fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
                (**self).flush(scope, level)
            }
            fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
                (**self).query(query, visit)
            }
            fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
                (**self).newest(series, into)
            }
            fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
                (**self).newest_accepted(series, into)
            }
            fn stats(&self) -> Stats {
                (**self).stats()
            }
            fn close(&self) -> Result<()> {
                (**self).close()
            }
        }
    };
}

forward!(Box<S>);
forward!(Arc<S>);
