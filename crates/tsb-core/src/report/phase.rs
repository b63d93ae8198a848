//! The phases of a run: what was asked in each, what was held of it, and how late it was.
//!
//! Figures are sums of whole reporting intervals. A phase that does not begin and end where an
//! interval does has none.

use serde::{Deserialize, Serialize};

use crate::latency::{Histogram, Quantiles};

/// Responses within this time of being due count as on time, in nanoseconds.
pub const ON_TIME_NS: u64 = 100_000_000;

/// One phase of a run, in the order of the plan. A run that was stopped has those that had begun.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PhaseReport {
    /// Its name in the plan.
    pub name: String,
    /// Where it begins in the plan, in nanoseconds since the run's start.
    pub from_ns: u64,
    /// Where it ends in the plan, or where the run was stopped in it.
    pub end_ns: u64,
    /// What the plan does to the store in it, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub faults: Option<String>,
    /// Samples that fell due in its intervals, per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_per_second: Option<f64>,
    /// Samples that were accepted in its intervals, per second. It is above the asked rate where
    /// samples of an earlier phase were accepted late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_per_second: Option<f64>,
    /// How far the store was behind at its end, as a share of what fell due in it: 1 minus the
    /// samples that were due by its end and not accepted by the end of the next interval, over
    /// those that fell due in it. in [0, 1]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_share: Option<f64>,
    /// Latencies of the operations that ended in it; the last phase has those that ended later,
    /// too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<PhaseLatency>,
    /// Staleness of the stalest series in it, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staleness_max_ms: Option<f64>,
    /// From its beginning to where the first interval begins in which every operation was answered
    /// within [`ON_TIME_NS`] of being due, in nanoseconds: 0 where that is its first interval.
    /// Absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_time_after_ns: Option<u64>,
}

impl PhaseReport {
    /// A phase of which only the plan is known.
    pub fn new(name: impl Into<String>, from_ns: u64, end_ns: u64) -> Self {
        Self {
            name: name.into(),
            from_ns,
            end_ns,
            ..Self::default()
        }
    }

    /// Whether the figures of its intervals are known.
    pub const fn is_measured(&self) -> bool {
        self.held_per_second.is_some()
    }
}

/// Latencies of one phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PhaseLatency {
    /// Due until done.
    pub response: Quantiles,
    /// Due until start.
    pub lag: Quantiles,
}

impl PhaseLatency {
    /// The latencies of two histograms.
    pub fn new(response: &Histogram, lag: &Histogram) -> Self {
        Self {
            response: Quantiles::new(response),
            lag: Quantiles::new(lag),
        }
    }
}
