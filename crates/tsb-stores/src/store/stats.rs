//! Statistics: what a store holds and occupies.

use crate::activity::Activity;
use crate::damage::Damage;
use crate::own_threads::OwnThreads;

/// What a store holds.
///
/// A life of a store is the time from one opening of its place to the closing. `samples`,
/// `footprint` and `disk_bytes` describe the place: they include samples of earlier lives, and of
/// keys that this life has not defined. The counts `series`, `accepted`, `superseded` and `expired`
/// start at 0 when the store is opened. So does `samples` of a store that consolidates, or whose
/// [`Capabilities::counts_samples`](crate::Capabilities::counts_samples) is false.
///
/// A store starts from [`Stats::new`] and sets what differs:
///
/// ```
/// use tsb_stores::{Footprint, Stats};
///
/// let mut stats = Stats::new(3, 1_000, 1_010);
/// stats.superseded = 10;
/// stats.footprint = Footprint::of_heads(16_000);
/// assert_eq!(stats.footprint.total_bytes(), 16_000);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Series that `define` has bound since the store was opened. A stored key counts once it is
    /// defined again.
    pub series: u64,
    /// Samples that the place holds: a query returns them once their series is defined.
    pub samples: u64,
    /// Samples accepted since the store was opened.
    pub accepted: u64,
    /// Samples replaced since the store was opened, by a later write of the same timestamp (or
    /// slot), whenever they were written.
    pub superseded: u64,
    /// Samples that retention has removed since the store was opened.
    pub expired: u64,
    /// Bytes that the place occupies.
    pub footprint: Footprint,
    /// Bytes of the file-system blocks of the store's files; `None` if the store has no files on
    /// this machine, or cannot tell which they are.
    pub disk_bytes: Option<u64>,
    /// CPU time that the store's own threads have used since it was opened, in nanoseconds
    /// ([`crate::OwnThreads`] counts it); `None` if there are none, or the store cannot know.
    /// Time of callers' threads inside the store is not included.
    pub own_cpu_ns: Option<u64>,
    /// Damage that the store has found in its files since it was opened, and works around; see
    /// [`crate::DamageLog`]. Empty for a store without files.
    pub damage: Vec<Damage>,
    /// Processes of this machine that do the work of the store, by id; a run reports their
    /// resources. Empty for a store without processes of its own.
    pub processes: Vec<u32>,
    /// What those processes have written to their standard error, as lines; the store bounds
    /// their number and length. Untrusted text.
    pub messages: Vec<String>,
    /// What the store does beside the calls into it, as counters to be watched; those of a wrapper
    /// before those of the store inside. Empty for a store that does nothing of its own.
    pub activity: Vec<Activity>,
}

impl Stats {
    /// The figures of a store that has replaced and removed nothing, and occupies nothing.
    pub const fn new(series: u64, samples: u64, accepted: u64) -> Self {
        Self {
            series,
            samples,
            accepted,
            superseded: 0,
            expired: 0,
            footprint: Footprint::of_heads(0),
            disk_bytes: None,
            own_cpu_ns: None,
            damage: Vec::new(),
            processes: Vec::new(),
            messages: Vec::new(),
            activity: Vec::new(),
        }
    }

    /// Adds the CPU time of further threads of the store.
    #[must_use]
    pub fn with_threads(mut self, threads: &OwnThreads) -> Self {
        self.own_cpu_ns = match (self.own_cpu_ns, threads.cpu_ns()) {
            (Some(one), Some(other)) => Some(one + other),
            (one, other) => one.or(other),
        };
        self
    }
}

/// Bytes by kind; 0 for kinds that a store does not have. Start from [`Footprint::of_heads`],
/// [`Footprint::of_sealed`] or `default`, and set what differs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Footprint {
    /// Sealed data with its index entries.
    pub sealed_bytes: u64,
    /// Number of samples in sealed data.
    pub sealed_samples: u64,
    /// Open heads: samples that are not sealed yet.
    pub head_bytes: u64,
    /// Journal or write-ahead log.
    pub journal_bytes: u64,
    /// Key table and other per-series state.
    pub series_bytes: u64,
    /// Allocated, but unused.
    pub free_bytes: u64,
}

impl Footprint {
    /// `bytes` bytes of open heads, and nothing else.
    pub const fn of_heads(head_bytes: u64) -> Self {
        Self {
            sealed_bytes: 0,
            sealed_samples: 0,
            head_bytes,
            journal_bytes: 0,
            series_bytes: 0,
            free_bytes: 0,
        }
    }

    /// Sealed data, and nothing else.
    pub const fn of_sealed(sealed_bytes: u64, sealed_samples: u64) -> Self {
        Self {
            sealed_bytes,
            sealed_samples,
            ..Self::of_heads(0)
        }
    }

    /// The sum of all kinds.
    pub const fn total_bytes(&self) -> u64 {
        self.sealed_bytes + self.head_bytes + self.journal_bytes + self.series_bytes + self.free_bytes
    }
}
