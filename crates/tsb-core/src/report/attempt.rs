//! Attempts at a run that were repeated.

use serde::{Deserialize, Serialize};

use super::Run;
use crate::latency::Quantiles;
use crate::verdict::Verdict;

/// An earlier attempt at a run that was noisy, and whose samples were removed from the store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AttemptReport {
    /// When sending began, nanoseconds since the Unix epoch.
    pub started_at_ns: i64,
    /// Its verdict, with the reasons.
    pub verdict: Verdict,
    /// What it held, in samples per second.
    pub held_per_second: f64,
    /// Due until done.
    pub response: Quantiles,
}

impl AttemptReport {
    /// What stays of `run`.
    pub fn of(run: &Run) -> Self {
        Self {
            started_at_ns: run.started_at_ns,
            verdict: run.verdict.clone(),
            held_per_second: run.rate.held_per_second,
            response: run.latency.response.quantiles(),
        }
    }
}
