//! A worker: puts heartbeats when they are due, and times them from then.

use std::sync::atomic::Ordering;

use tsb_core::latency::Histogram;
use tsb_core::time::SECOND_NS;
use tsb_stores::Refusals;

use super::Context;
use super::schedule::Schedule;
use crate::hm9000::simulator::HEARTBEAT_INTERVAL_S;

/// What is due at the end and not sent may be sent for this long, in nanoseconds.
const DRAIN_NS: u64 = HEARTBEAT_INTERVAL_S * SECOND_NS;

/// What a worker did.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// From due to acknowledged, of each put that succeeded.
    pub(super) responses: Histogram,
    /// Every put, in the order in which they were due.
    pub(super) puts: Vec<PutTimes>,
    /// Keys acknowledged.
    pub(super) acknowledged: u64,
    /// Keys that failed or were refused.
    pub(super) failed: u64,
    /// Keys acknowledged after the next heartbeat was due.
    pub(super) late: u64,
    /// When the last put ended, in nanoseconds from the start.
    pub(super) last_done: u64,
    /// The first error.
    pub(super) first_error: Option<String>,
}

/// When a put of heartbeats was due and when it ended, in nanoseconds from the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PutTimes {
    pub(super) due: u64,
    /// The answer; of a put that was never sent, when it was given up.
    pub(super) ended: u64,
    /// Number of keys.
    pub(super) keys: u64,
    /// Whether all of its keys were acknowledged.
    pub(super) is_acknowledged: bool,
}

impl PutTimes {
    /// From due to the end, in seconds.
    pub(super) fn took_seconds(self) -> f64 {
        self.ended.saturating_sub(self.due) as f64 / SECOND_NS as f64
    }
}

/// Puts everything that is due.
pub(super) fn run(context: &Context<'_>, schedule: &Schedule) -> Written {
    let mut written = Written::default();
    let mut puts = Vec::new();
    let mut refused = Refusals::new();
    for due in schedule.due() {
        context.beats.puts(due, &mut puts);
        wait(context, due.ns());
        if due.ns() >= context.end() || context.stop.load(Ordering::Relaxed) {
            break;
        }
        let mut times = PutTimes {
            due: due.ns(),
            ended: context.now(),
            keys: due.keys,
            is_acknowledged: false,
        };
        if times.ended > context.end() + DRAIN_NS {
            written.puts.push(times);
            continue;
        }
        context.beats.attempt(due);
        let outcome = context.store.put(&puts, &mut refused);
        times.ended = context.now();
        let response = times.ended.saturating_sub(due.ns());
        match outcome {
            Ok(ack) if ack.rejected == 0 => {
                context.beats.acknowledge(due);
                times.is_acknowledged = true;
                written.responses.record(response);
                written.acknowledged += due.keys;
                let is_late = response > HEARTBEAT_INTERVAL_S * SECOND_NS;
                written.late += if is_late { due.keys } else { 0 };
            }
            Ok(ack) => {
                written.acknowledged += ack.accepted as u64;
                written.failed += ack.rejected as u64;
            }
            Err(error) => {
                written.failed += due.keys;
                written.first_error.get_or_insert_with(|| crate::error::chain(&error));
            }
        }
        refused.clear();
        written.last_done = written.last_done.max(times.ended);
        written.puts.push(times);
    }
    written
}

/// Waits until `due`, or until up to a second after the run has ended: each look costs CPU time
/// that is counted.
fn wait(context: &Context<'_>, due: u64) {
    while context.now() < due && due < context.end() && !context.stop.load(Ordering::Relaxed) {
        let look = context.now() + SECOND_NS;
        context.clock.wait_until(context.start + look.min(due));
    }
}
