//! The times of one emitter by interval: of this process, or of one of several hosts.

use serde::{Deserialize, Serialize};
use tsb_core::latency::{Histogram, Recording};

use super::interval_latencies::by_interval;
use super::path::PassResult;

/// What one process recorded while it sent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EmitterTimes {
    /// When it began to send, on the clock of its recordings.
    pub start_ns: u64,
    /// Time from when an operation was due until it was done.
    pub response: Recording,
    /// Time from its start until our listener had read it; empty without a listener.
    pub delivery: Recording,
    /// Time from its start, or from when the listener had read it, until it was done.
    pub service: Recording,
    /// Time from when it was due until its start.
    pub lag: Recording,
}

impl EmitterTimes {
    /// Those of a run by this process.
    pub fn of(driven: &PassResult) -> Self {
        Self {
            start_ns: driven.start_ns,
            response: driven.response.clone(),
            delivery: driven.delivery.clone(),
            service: driven.service.clone(),
            lag: driven.lag.clone(),
        }
    }
}

/// Calls `visit` with each interval's histogram of each emitter: every operation is in exactly one of them.
/// `ends` are those of the intervals, in nanoseconds since the start.
pub(crate) fn of_all(
    emitters: &[EmitterTimes],
    of: fn(&EmitterTimes) -> &Recording,
    ends: &[u64],
    mut visit: impl FnMut(usize, &Histogram),
) {
    for times in emitters {
        by_interval(of(times), times.start_ns, ends, &mut visit);
    }
}
