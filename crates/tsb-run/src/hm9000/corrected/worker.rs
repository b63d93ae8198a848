//! A worker: puts heartbeats when they are due, and times them from then.

use std::sync::atomic::Ordering;

use tsb_core::latency::Histogram;
use tsb_core::time::SECOND_NS;
use tsb_stores::Refusals;

use super::Context;
use super::schedule::{Due, Schedule};
use crate::hm9000::simulator::HEARTBEAT_INTERVAL_S;

/// What is due at the end and not sent may be sent for this long, in nanoseconds.
const DRAIN_NS: u64 = HEARTBEAT_INTERVAL_S * SECOND_NS;

/// What a worker did.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// From due to acknowledged, of each put that succeeded.
    pub(super) responses: Histogram,
    /// Response times of the puts due in the last interval, in seconds; of one that was never
    /// sent, the time that it waited.
    pub(super) last_interval_s: Vec<f64>,
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

/// Puts everything that is due.
pub(super) fn run(context: &Context<'_>, schedule: &Schedule) -> Written {
    let mut written = Written::default();
    let mut puts = Vec::new();
    let mut refused = Refusals::new();
    for due in schedule.due() {
        context.beats.puts(due, &mut puts);
        wait(context, context.start + due.ns());
        let is_over = context.clock.now() > context.end + DRAIN_NS;
        if is_over || context.stop.load(Ordering::Relaxed) {
            let waited = context.clock.now().saturating_sub(context.start + due.ns());
            written.finish(context, due, waited);
            continue;
        }
        context.beats.attempt(due);
        let outcome = context.store.put(&puts, &mut refused);
        let done = context.clock.now() - context.start;
        let response = done.saturating_sub(due.ns());
        match outcome {
            Ok(ack) if ack.rejected == 0 => {
                context.beats.acknowledge(due);
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
        written.last_done = written.last_done.max(done);
        written.finish(context, due, response);
    }
    written
}

/// Waits until `due`, or until up to a second after the user has ended the run: each look costs
/// CPU time that is counted.
fn wait(context: &Context<'_>, due: u64) {
    while context.clock.now() < due && !context.stop.load(Ordering::Relaxed) {
        let look = context.clock.now() + SECOND_NS;
        context.clock.wait_until(look.min(due));
    }
}

impl Written {
    fn finish(&mut self, context: &Context<'_>, due: Due<'_>, response: u64) {
        if context.start + due.ns() + HEARTBEAT_INTERVAL_S * SECOND_NS >= context.end {
            self.last_interval_s.push(response as f64 / SECOND_NS as f64);
        }
    }
}
