//! The hosts of a run that several shared.

use serde::{Deserialize, Serialize};

use crate::verdict::Verdict;

/// What one host did in a run of several.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HostReport {
    /// Its name in the run.
    pub name: String,
    /// Number of its series.
    pub series: u64,
    /// Its first series, by the number in the whole fleet.
    pub first_series: u32,
    /// The leader's time of day minus its own before the run, in nanoseconds.
    pub offset_ns: i64,
    /// The true offset is at most this far from `offset_ns`, in nanoseconds: the start of this host
    /// is common with the others' to within it, and staleness may be off by it.
    pub uncertainty_ns: u64,
    /// The offset and its uncertainty before, during and after the run, in nanoseconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clock: Vec<(i64, u64)>,
    /// How its part ended.
    pub ended: HostEnd,
    /// Samples that it sent; of a host that was lost, as it last reported.
    pub sent: u64,
    /// Samples that were accepted from it; likewise.
    pub accepted: u64,
    /// Samples per second that it can generate, if that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_per_second: Option<f64>,
    /// The verdict on its part: of a host that was lost, what reading back its part found.
    pub verdict: Verdict,
}

impl HostReport {
    /// A host that has sent nothing.
    pub fn new(name: impl Into<String>, ended: HostEnd, verdict: Verdict) -> Self {
        Self {
            name: name.into(),
            series: 0,
            first_series: 0,
            offset_ns: 0,
            uncertainty_ns: 0,
            clock: Vec::new(),
            ended,
            sent: 0,
            accepted: 0,
            ceiling_per_second: None,
            verdict,
        }
    }
}

/// How the part of a host ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HostEnd {
    /// It published what it measured.
    Reported,
    /// It was not heard of any more, or failed.
    Lost,
}
