//! The verdict: whether a run's figures are meaningful, and why.
//!
//! Every rule that applies adds a reason with a status; the verdict is the one of these that stands
//! first in [`Status::ALL`]. The thresholds are the constants here. The verdict keeps the
//! measured figure for each of them, whether it was crossed or not.

mod measured;
mod queries;
mod rules;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use measured::{Bound, Measured, beside};
pub use queries::QueryEvidence;

use crate::resource::Noise;

/// Minimum share of the accepted samples that must be compared with what was sent.
pub const COMPARED_SHARE_MIN: f64 = 0.99;
/// An asked rate above this share of the ceiling says nothing about the store.
pub const CEILING_SHARE_MAX: f64 = 0.9;
/// A p99 of the emitter's own lag above this share of the interval invalidates the schedule.
pub const LAG_SHARE_MAX: f64 = 0.1;
/// A p99 of the emitter's own lag above this, in nanoseconds, invalidates the response times,
/// however long the interval is.
pub const LAG_NS_MAX: u64 = 100_000_000;
/// Maximum share of the sent samples that may be lost between emitter and store; above it the
/// transport was the limit.
pub const STRAYED_SHARE_MAX: f64 = 0.01;
/// Minimum ratio of the held to the asked rate; below it the store was the limit.
pub const HELD_SHARE_MIN: f64 = 0.99;
/// Maximum share of the received samples that the store may refuse; above it the store was the
/// limit.
pub const REFUSED_SHARE_MAX: f64 = 0.01;
/// Maximum share of the time in which the machine may be disturbed; above it a run is noisy.
pub const NOISE_SHARE_MAX: f64 = 0.02;

/// The possible verdicts, in the order in which they are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
#[non_exhaustive]
pub enum Status {
    /// The ledger is unbalanced, acknowledged data is lost, altered, duplicated or invented, or the
    /// emitter or the listener failed.
    Invalid,
    /// Too little of what was accepted was read back and compared.
    Unverified,
    /// The generator limited the rate, or may have.
    GeneratorLimited,
    /// Too much was lost between emitter and store.
    TransportLimited,
    /// The store did not hold the asked rate, or refused too much of what it received.
    StoreLimited,
    /// The machine was disturbed.
    Noisy,
    /// None of these.
    Valid,
}

impl Status {
    /// All statuses, in the order in which they are decided.
    pub const ALL: [Self; 7] = [
        Self::Invalid,
        Self::Unverified,
        Self::GeneratorLimited,
        Self::TransportLimited,
        Self::StoreLimited,
        Self::Noisy,
        Self::Valid,
    ];

    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Invalid => "INVALID",
            Self::Unverified => "UNVERIFIED",
            Self::GeneratorLimited => "GENERATOR-LIMITED",
            Self::TransportLimited => "TRANSPORT-LIMITED",
            Self::StoreLimited => "STORE-LIMITED",
            Self::Noisy => "NOISY",
            Self::Valid => "VALID",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A status and the reasons for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Verdict {
    /// The first status that applies.
    pub status: Status,
    /// Every reason that applies, or why the run is valid; with measured figures.
    pub reasons: Vec<String>,
    /// Every figure that was measured and has a threshold, crossed or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<Measured>,
}

impl Verdict {
    /// A verdict without measured figures.
    pub const fn new(status: Status, reasons: Vec<String>) -> Self {
        Self {
            status,
            reasons,
            measured: Vec::new(),
        }
    }
}

/// Samples that were lost between emitter and store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undelivered {
    /// Number of samples.
    pub samples: u64,
    /// Where they were lost, and what to do about it: the end of a sentence.
    pub place: String,
}

/// Samples that the store accepted and that cannot be compared with what was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncompared {
    /// Number of samples.
    pub samples: u64,
    /// Why, and what to do about it: the end of a sentence.
    pub why: String,
}

/// A phase of a run, and how far the store was behind at its end.
#[derive(Clone, Debug, PartialEq)]
pub struct PhaseKept {
    /// Its name.
    pub name: String,
    /// As [`PhaseReport::kept_share`](crate::report::PhaseReport::kept_share).
    pub kept_share: f64,
}

/// The figures that a verdict is based on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Ledger equations that do not hold, and failures of emitter or listener.
    pub violations: Vec<String>,
    /// Samples accepted, but not in the store.
    pub lost: u64,
    /// Upper bound of `lost`, where it is not known of some samples whether the store lost them.
    pub lost_at_most: Option<u64>,
    /// Samples with another value.
    pub altered: u64,
    /// Extra copies, and samples that were never sent.
    pub duplicated: u64,
    /// Why nothing was read back; `None` if it was.
    pub unread: Option<String>,
    /// Samples due by the schedule.
    pub due: u64,
    /// Samples handed to the wire or the store.
    pub sent: u64,
    /// Of these, samples that did not reach the store.
    pub undelivered: Vec<Undelivered>,
    /// Samples that the store received.
    pub received: u64,
    /// Of these, samples that the store refused.
    pub refused: u64,
    /// Of these, samples that the store accepted.
    pub accepted: u64,
    /// Accepted samples that were compared with what was sent, whatever the result.
    pub compared: u64,
    /// The others, by reason.
    pub uncompared: Vec<Uncompared>,
    /// Samples read back with the value that was sent.
    pub verified: u64,
    /// Asked samples per second; `None` in a closed loop.
    pub asked_per_second: Option<f64>,
    /// Held samples per second.
    pub held_per_second: f64,
    /// The highest asked rate in an interval, in samples per second, where the schedule's rate
    /// changes.
    pub peak_asked_per_second: Option<f64>,
    /// Of the samples due by the end of that interval, the share accepted in time.
    pub peak_kept_share: Option<f64>,
    /// The phases that are judged each by itself, in place of that interval.
    pub phases: Vec<PhaseKept>,
    /// The generator's ceiling, if it was measured.
    pub ceiling_per_second: Option<f64>,
    /// p99 of the emitter's own part of the lag: what arose while it was not inside a call of the
    /// target.
    pub own_lag_p99_ns: Option<u64>,
    /// Shortest interval of the workload in real time.
    pub interval_ns: Option<u64>,
    /// How much the machine was disturbed, if that was measured.
    pub noise: Option<Noise>,
    /// Streams of queries that were asked meanwhile.
    pub queries: Vec<QueryEvidence>,
}

#[cfg(test)]
mod tests;
