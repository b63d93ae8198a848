//! The verdict: whether a run's figures mean anything, and why.
//!
//! Decided in one fixed order; the first status that applies is the verdict's, and every
//! rule that applies gives a reason. Thresholds are the constants here; the verdict keeps
//! the measured figure beside each of them, whether it was crossed or not.

mod measured;
mod rules;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use measured::{Bound, Measured, beside};

use crate::resource::Noise;

/// At least this share of what was accepted has to be compared with what was sent.
pub const COMPARED_SHARE_MIN: f64 = 0.99;
/// An asked rate above this share of the ceiling says nothing about the store.
pub const CEILING_SHARE_MAX: f64 = 0.9;
/// A p99 of our own lag above this share of the interval spoils the schedule.
pub const LAG_SHARE_MAX: f64 = 0.1;
/// A p99 of our own lag above this spoils the response times, however long the interval is.
pub const LAG_NS_MAX: u64 = 100_000_000;
/// A larger share of what was sent, lost between emitter and store, is the transport's limit.
pub const STRAYED_SHARE_MAX: f64 = 0.01;
/// A held rate below this share of the asked one is the store's limit.
pub const HELD_SHARE_MIN: f64 = 0.99;
/// A larger share of what the store received, refused by it, is the store's limit.
pub const REFUSED_SHARE_MAX: f64 = 0.01;
/// A disturbance of the machine for more than this share of the time makes a run noisy.
pub const NOISE_SHARE_MAX: f64 = 0.02;

/// The words, in the order in which they are decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING-KEBAB-CASE")]
pub enum Status {
    /// The ledger is unbalanced, or acknowledged data is lost or altered.
    Invalid,
    /// Too little of what was accepted was read back and compared.
    Unverified,
    /// The generator was, or may have been, what limited the rate.
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
    /// All of them, in the order in which they are decided.
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

/// A status and what led to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The first word that applies.
    pub status: Status,
    /// Every reason that applies, or why the run is valid; with measured figures.
    pub reasons: Vec<String>,
    /// Every figure that has a threshold, crossed or not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<Measured>,
}

/// Samples that went astray between emitter and store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Strayed {
    /// How many.
    pub samples: u64,
    /// Where, and what to do about it: the end of a sentence.
    pub place: String,
}

/// Samples that the store accepted and that cannot be compared with what was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Uncompared {
    /// How many.
    pub samples: u64,
    /// Why, and what to do about it: the end of a sentence.
    pub why: String,
}

/// What is judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// Equations of the ledger that do not hold, and failures of either side.
    pub violations: Vec<String>,
    /// Samples accepted and not there.
    pub lost: u64,
    /// The same at the most, where nobody can say of some samples whether the store lost them.
    pub lost_at_most: Option<u64>,
    /// Samples with another value.
    pub altered: u64,
    /// Copies beyond one, and samples that were never sent.
    pub duplicated: u64,
    /// Why nothing was read back; `None`: it was.
    pub unread: Option<String>,
    /// Samples due by the schedule.
    pub due: u64,
    /// Samples handed to the wire or the store.
    pub sent: u64,
    /// Of these, samples that did not get as far as the store.
    pub strayed: Vec<Strayed>,
    /// Samples that the store received.
    pub received: u64,
    /// Of these, samples that the store refused.
    pub refused: u64,
    /// Of these, samples that the store accepted.
    pub accepted: u64,
    /// Accepted samples that were compared with what was sent, whatever came of it.
    pub compared: u64,
    /// The others, by reason.
    pub uncompared: Vec<Uncompared>,
    /// Samples that were read back and found as they were sent.
    pub verified: u64,
    /// Asked samples per second; `None` in a closed loop.
    pub asked_per_second: Option<f64>,
    /// Held samples per second.
    pub held_per_second: f64,
    /// The most that was asked in an interval, per second, where a schedule asks different
    /// rates.
    pub peak_asked_per_second: Option<f64>,
    /// Of what was due by the end of that interval, the share that was accepted in time.
    pub peak_kept_share: Option<f64>,
    /// The generator's ceiling, where it was measured.
    pub ceiling_per_second: Option<f64>,
    /// p99 of our own part of the lag: while the store was idle.
    pub own_lag_p99_ns: Option<u64>,
    /// Shortest interval of the workload in real time.
    pub interval_ns: Option<u64>,
    /// How much the machine was disturbed, where that was watched.
    pub noise: Option<Noise>,
}

#[cfg(test)]
mod tests;
