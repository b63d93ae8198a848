//! The result of `tsb capacity`: the highest load at which an objective holds, and the probes
//! behind it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Target, Written};
use crate::durability::Durability;
use crate::stats::{Estimate, Scalability};

/// A search for the capacity of a store.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CapacityReport {
    /// The program and the machine.
    #[serde(flatten)]
    pub written: Written,
    /// When the search began, nanoseconds since the Unix epoch.
    pub started_at_ns: i64,
    /// Duration of the whole search.
    pub took_seconds: f64,
    /// Whether the user ended the search early.
    pub interrupted: bool,
    /// The plan of every probe, except the load.
    pub plan: Value,
    /// The seed of the workload and of the search.
    pub seed: u64,
    /// What was searched: `rate`, in samples per second, or `series`, with one sample per second
    /// each.
    pub find: String,
    /// The conditions that had to hold.
    pub slo: Vec<String>,
    /// The store and how it was reached; absent if no probe was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// The durability of an acknowledgement; absent likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
    /// What was found; of several counts, at the one with the highest capacity.
    pub capacity: Capacity,
    /// How the capacity grows with concurrency; absent if one count was searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    /// Sentences that a reader must know before using a figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl CapacityReport {
    /// A search on this machine that has found nothing yet.
    pub fn new(plan: Value, seed: u64, find: impl Into<String>, slo: Vec<String>) -> Self {
        Self {
            written: Written::here(),
            started_at_ns: 0,
            took_seconds: 0.0,
            interrupted: false,
            plan,
            seed,
            find: find.into(),
            slo,
            target: None,
            durability: None,
            capacity: Capacity::default(),
            scaling: None,
            notes: Vec::new(),
        }
    }
}

/// The capacity. Loads are samples per second; with one sample per second each, they are also
/// numbers of series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Capacity {
    /// The load at which half of the probes hold; absent if something else than the store was the
    /// limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_per_second: Option<f64>,
    /// Lower end of the interval; without a capacity the highest load that held, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low_per_second: Option<f64>,
    /// Upper end of the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_per_second: Option<f64>,
    /// `store`, `generator`, `wire`, `machine`, `highest-load`, `lowest-load`, `objective` or
    /// `budget`.
    pub limited_by: String,
    /// The sentence that says so.
    pub why: String,
    /// The condition that broke at the lowest loads; absent if none broke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broke_first: Option<String>,
    /// Whether the interval is as narrow as was asked.
    pub narrow: bool,
    /// How the interval was computed.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub method: String,
    /// The pass upwards against that downwards; absent if they were not completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hysteresis: Option<Hysteresis>,
    /// Every probe, in the order in which they were made.
    pub probes: Vec<ProbeReport>,
}

/// Where each pass over the loads around the knee saw it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Hysteresis {
    /// On the way up.
    pub upwards_per_second: f64,
    /// On the way down, without a rest after an overload.
    pub downwards_per_second: f64,
    /// Distance of neighbouring loads, as a share of a load.
    pub resolution: f64,
    /// Whether the downward pass held only at lower loads, by more than one step.
    pub seen: bool,
}

impl Hysteresis {
    /// Two passes.
    pub const fn new(upwards_per_second: f64, downwards_per_second: f64, resolution: f64, seen: bool) -> Self {
        Self {
            upwards_per_second,
            downwards_per_second,
            resolution,
            seen,
        }
    }
}

/// Capacities at several counts of workers or of requests in flight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Scaling {
    /// What was counted: `workers` or `in-flight`.
    pub over: String,
    /// The capacity at each count, in the order in which they were searched.
    pub points: Vec<ScalingPoint>,
    /// The law that was fitted to the capacities; absent if fewer than
    /// [`COUNTS_MIN`](crate::stats::COUNTS_MIN) were found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub law: Option<ScalingLaw>,
}

/// The capacity at one count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScalingPoint {
    /// Workers, or requests in flight.
    pub count: u32,
    /// The result of its own search.
    pub capacity: Capacity,
}

impl ScalingPoint {
    /// A capacity at a count.
    pub const fn new(count: u32, capacity: Capacity) -> Self {
        Self { count, capacity }
    }

    /// The count and the capacity; `None` if something else than the store was the limit.
    pub fn found(&self) -> Option<(f64, f64)> {
        Some((f64::from(self.count), self.capacity.found_per_second?))
    }
}

/// The universal scalability law, fitted to capacities.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ScalingLaw {
    /// Its parameters.
    #[serde(flatten)]
    pub parameters: Scalability,
    /// The largest relative distance of a capacity from the law: 0.05 is 5 %.
    pub largest_deviation: f64,
    /// The count of the highest throughput; absent if the law grows at every count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_count: Option<f64>,
    /// The count of the prediction: ten times the highest of which a capacity was found.
    pub predicted_count: u32,
    /// Samples per second at that count, by the law: a prediction, not a measurement. Its interval
    /// follows from the intervals of the capacities, and holds only if the law does.
    pub predicted_per_second: Estimate,
}

impl ScalingLaw {
    /// A fitted law; `points` are the counts and capacities to which it was fitted.
    pub fn new(parameters: Scalability, points: &[(f64, f64)], predicted_count: u32, predicted: Estimate) -> Self {
        Self {
            parameters,
            largest_deviation: parameters.largest_deviation(points),
            peak_count: parameters.peak(),
            predicted_count,
            predicted_per_second: predicted,
        }
    }
}

/// One probe: a run at one load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ProbeReport {
    /// Its number, from 1.
    pub number: u32,
    /// `bracket`, `narrow`, `upwards` or `downwards`.
    pub purpose: String,
    /// The load that was asked, in samples per second.
    pub load_per_second: u64,
    /// Wait before it, in seconds.
    pub settle_seconds: f64,
    /// `held`, `broke`, or `void` if it says nothing about the store.
    pub result: String,
    /// What limited a void probe: `generator`, `wire`, `machine` or `objective`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limited_by: Option<String>,
    /// The conditions that did not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broke: Vec<BrokenCondition>,
    /// The run's verdict.
    pub verdict: String,
    /// The rate that was held, in samples per second.
    pub held_per_second: f64,
    /// Growth of what was due and not accepted, as a share of the asked rate; absent if there were
    /// too few intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backlog_growth: Option<f64>,
    /// Median response time, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_p50_ns: Option<u64>,
    /// 0.99 quantile of the response time, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_p99_ns: Option<u64>,
    /// 0.99 quantile of the staleness, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staleness_p99_ms: Option<f64>,
    /// CPU time of the store per sample, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_cpu_ns_per_sample: Option<f64>,
    /// Duration with preparation and audit, without the wait, in seconds.
    pub took_seconds: f64,
}

/// A condition that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BrokenCondition {
    /// The condition.
    pub condition: String,
    /// What was measured.
    pub measured: String,
    /// Whether the run lacks the figure, so that the condition could not be judged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub absent: bool,
}

impl BrokenCondition {
    /// A condition that a measured figure breaks.
    pub fn new(condition: impl Into<String>, measured: impl Into<String>) -> Self {
        Self {
            condition: condition.into(),
            measured: measured.into(),
            absent: false,
        }
    }

    /// A condition whose figure a run does not have.
    pub fn absent(condition: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            absent: true,
            ..Self::new(condition, why)
        }
    }
}
