//! The rate of a run: asked for, held, and at its peak.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// Samples per second.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Rate {
    /// The rate that the schedule asked for: samples due, over the time in which they were due;
    /// absent in a closed loop, which has no schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_per_second: Option<f64>,
    /// Accepted samples, over the time from the first due time to the last acceptance.
    pub held_per_second: f64,
    /// The same, over the time until all samples had the report's durability, if that took a flush
    /// at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable_per_second: Option<f64>,
    /// The interval with the highest asked rate, if the schedule's rate changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<Peak>,
    /// The rate that the generator reached over the same path against a store that discards
    /// everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_per_second: Option<f64>,
    /// Whether the run was a closed loop: it waits for the store, so its latencies omit how long
    /// other clients would wait.
    pub closed_loop: bool,
    /// Seconds of fleet time that pass in one second.
    pub speed: f64,
}

impl Rate {
    /// A held rate in real time, without a schedule.
    pub const fn held(held_per_second: f64) -> Self {
        Self {
            asked_per_second: None,
            held_per_second,
            durable_per_second: None,
            peak: None,
            ceiling_per_second: None,
            closed_loop: false,
            speed: 1.0,
        }
    }
}

/// The interval of a run with the highest asked rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Peak {
    /// Where it begins, in nanoseconds since the run's start.
    pub from_ns: u64,
    /// Where it ends.
    pub end_ns: u64,
    /// Samples that fell due in it, per second.
    pub asked_per_second: f64,
    /// Samples that were accepted in it, per second.
    pub accepted_per_second: f64,
    /// Of the samples due by its end, the share accepted by the end of the next interval. in [0,
    /// 1]
    pub kept_share: f64,
}

impl Peak {
    /// The interval `ns`, with nothing left over at its end.
    pub const fn new(ns: Range<u64>, asked_per_second: f64, accepted_per_second: f64) -> Self {
        Self {
            from_ns: ns.start,
            end_ns: ns.end,
            asked_per_second,
            accepted_per_second,
            kept_share: 1.0,
        }
    }
}
