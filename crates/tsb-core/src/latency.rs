//! Latency: what is recorded, per interval and in all, and what may be printed of it.
//!
//! Three times belong to an operation, and each has a histogram of its own:
//!
//! - **response time**, due to done: what a client of the store feels;
//! - **service time**, start to done: what the store took;
//! - **lag**, due to start: what the operation waited behind others, or for us.
//!
//! On a wire without acknowledgements there is a fourth, **delivery**: from start until the
//! receiver has read it. Service time is then from there to done.
//!
//! Each worker owns plain histograms. At the end of an interval the worker itself packs
//! its counts into a few hundred bytes of an arena of its own: no lock, no queue and no
//! other thread is involved, and results are merged after the run. Counts are never
//! sampled and never dropped. In a long run intervals are folded in pairs as they age, so
//! that they are never more than about [`INTERVALS_MAX`].

mod cells;
mod curve;
mod folding;
mod histogram;
mod interval;
mod log;
mod recorder;

pub use cells::{CELLS, Cells, cell, cell_highest, cell_lowest};
pub use curve::Curve;
pub use folding::{INTERVALS_MAX, Timeline};
pub use histogram::{BUCKETS, Histogram};
pub use interval::Interval;
pub use log::{LogError, LoggedSeries, write_interval_log};
pub use recorder::{Recorder, Recording};

use serde::{Deserialize, Serialize};

/// A quantile is printed only when at least this many recorded values lie beyond it, so
/// p50 needs 20 operations, p99 1,000, p999 10,000. With 10 values beyond, the true
/// quantile lies between the 4th and the 17th of them from the top, 95 times in 100.
pub const BEYOND_MIN: u64 = 10;

/// What a report says of one histogram, under the report's names. A quantile that too few
/// operations stand behind is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Operations.
    pub count: u64,
    /// Samples in these operations.
    pub samples: u64,
    /// The median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<u64>,
    /// 9 of 10 were no slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90_ns: Option<u64>,
    /// 99 of 100 were no slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
    /// 999 of 1,000 were no slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_ns: Option<u64>,
    /// The slowest, exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<u64>,
}

impl Summary {
    /// The summary of a histogram whose operations held `samples` samples.
    pub fn new(histogram: &Histogram, samples: u64) -> Self {
        Self {
            count: histogram.count(),
            samples,
            p50_ns: histogram.supported_quantile(0.5),
            p90_ns: histogram.supported_quantile(0.9),
            p99_ns: histogram.supported_quantile(0.99),
            p999_ns: histogram.supported_quantile(0.999),
            max_ns: histogram.max(),
        }
    }
}
