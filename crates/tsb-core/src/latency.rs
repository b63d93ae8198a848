//! Latency: what is recorded, per interval and in total, and which quantiles may be printed.
//!
//! A [`Recorder`] holds one kind of time. The emitter records these of an operation:
//!
//! - **response time**, due until done: what a client of the store feels;
//! - **service time**, start until done: what the store took;
//! - **lag**, due until start: what the operation waited for earlier ones, or for the emitter.
//!
//! and beside them the part of the lag that is its own. On a wire without acknowledgements the
//! receiver records **delivery**, too: from start until it has read the operation. Service time
//! then runs from there to done.
//!
//! Each worker owns plain histograms. At the end of an interval the worker itself packs its counts
//! into a few hundred bytes of its own arena: no lock, no queue and no other thread is involved,
//! and results are merged after the run. Counts are never sampled and never dropped. In a long run
//! intervals are merged in pairs as they age, so their number never exceeds about
//! [`INTERVALS_MAX`].

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
pub use histogram::Histogram;
pub use interval::Interval;
pub use log::{LogError, LoggedSeries, write_interval_log};
pub use recorder::{Recorder, Recording};

use serde::{Deserialize, Serialize};

/// A quantile is printed only when at least this many recorded values lie beyond it, so
/// p50 needs 20 operations, p99 1,000, p999 10,000. With 10 values beyond, the true
/// quantile lies between the 4th and the 17th largest of all values, 95 times in 100.
pub const BEYOND_MIN: u64 = 10;

/// The summary of one histogram, under the report's names. A quantile with too few operations
/// beyond it is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Summary {
    /// Number of operations.
    pub count: u64,
    /// Number of samples in these operations.
    pub samples: u64,
    /// The median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<u64>,
    /// 90 % of the operations were no slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90_ns: Option<u64>,
    /// 99 % of the operations were no slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
    /// 99.9 % of the operations were no slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_ns: Option<u64>,
    /// The slowest operation, exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<u64>,
}

impl Summary {
    /// Its quantiles.
    pub const fn quantiles(&self) -> Quantiles {
        Quantiles {
            count: self.count,
            p50_ns: self.p50_ns,
            p90_ns: self.p90_ns,
            p99_ns: self.p99_ns,
            p999_ns: self.p999_ns,
            max_ns: self.max_ns,
        }
    }

    /// The summary of a histogram whose operations held `samples` samples.
    pub fn new(histogram: &Histogram, samples: u64) -> Self {
        let quantiles = Quantiles::new(histogram);
        Self {
            count: quantiles.count,
            samples,
            p50_ns: quantiles.p50_ns,
            p90_ns: quantiles.p90_ns,
            p99_ns: quantiles.p99_ns,
            p999_ns: quantiles.p999_ns,
            max_ns: quantiles.max_ns,
        }
    }
}

/// The quantiles of one histogram of operations that hold no samples, or whose samples are counted
/// elsewhere; a part of other documents. A quantile with too few operations beyond it is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Quantiles {
    /// Number of operations.
    pub count: u64,
    /// The median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ns: Option<u64>,
    /// 90 % of the operations were no slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90_ns: Option<u64>,
    /// 99 % of the operations were no slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ns: Option<u64>,
    /// 99.9 % of the operations were no slower.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_ns: Option<u64>,
    /// The slowest operation, exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_ns: Option<u64>,
}

impl Quantiles {
    /// The quantiles of a histogram.
    pub fn new(histogram: &Histogram) -> Self {
        Self {
            count: histogram.count(),
            p50_ns: histogram.supported_quantile(0.5),
            p90_ns: histogram.supported_quantile(0.9),
            p99_ns: histogram.supported_quantile(0.99),
            p999_ns: histogram.supported_quantile(0.999),
            max_ns: histogram.max(),
        }
    }
}
