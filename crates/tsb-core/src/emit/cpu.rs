//! CPU time of a worker: generating, pacing, sending, and measuring them.
//!
//! The parts add up to the thread's total, to the nanosecond; how they are told apart is in
//! [`crate::cpu`]. The loop reads the clock around each operation anyway, so this costs it a
//! few additions. A wait that sleeps is between two readings of the CPU clock, the second of
//! them ahead of the due time, so that it does not become lag.

use serde::{Deserialize, Serialize};

use crate::cpu::{LONG_NS, Split};
use crate::time::{Clock, SPIN_NS};

/// How long before the due time the CPU clock is read behind a sleep.
pub(super) const AHEAD_NS: u64 = 5_000;

const GENERATE: usize = 0;
const PACE: usize = 1;
const SEND: usize = 2;

/// CPU time by phase. The four parts add up to the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct PhaseCpu {
    /// The worker thread's whole CPU time; exact.
    pub total_ns: u64,
    /// Preparing operations, keeping the schedule, recording times.
    pub generate_ns: u64,
    /// Waiting until operations are due: falling asleep, waking up, spinning.
    pub pace_ns: u64,
    /// Inside the target.
    pub send_ns: u64,
    /// Reading the CPU clock.
    pub measure_ns: u64,
    /// How far `send_ns` may be off: readings of the clock at the ends of each call take a
    /// time that is known only on average.
    pub uncertain_ns: u64,
}

impl PhaseCpu {
    /// Adds another worker.
    pub fn merge(&mut self, other: &Self) {
        self.total_ns += other.total_ns;
        self.generate_ns += other.generate_ns;
        self.pace_ns += other.pace_ns;
        self.send_ns += other.send_ns;
        self.measure_ns += other.measure_ns;
        self.uncertain_ns += other.uncertain_ns;
    }
}

/// Tells the phases of one worker apart.
#[derive(Debug)]
pub(super) struct Phases {
    split: Split<3>,
    calls: u64,
}

impl Phases {
    pub(super) fn new(clock: &dyn Clock) -> Self {
        let mut split = Split::new(clock);
        // What the thread has done so far was getting ready.
        split.assign(GENERATE, clock);
        Self { split, calls: 0 }
    }

    /// The thread is about to sleep: what it did since the last call was generating.
    pub(super) fn before_sleep(&mut self, clock: &dyn Clock) {
        self.split.lap(GENERATE, clock.now());
        self.split.settle(SEND, clock);
    }

    /// It has slept.
    pub(super) fn slept(&mut self, clock: &dyn Clock) {
        self.split.assign(PACE, clock);
    }

    /// Generating ends at `now_ns`, and waiting or a call begins.
    #[inline]
    pub(super) fn generated(&mut self, now_ns: u64) {
        self.split.lap(GENERATE, now_ns);
    }

    /// A call of the target begins at `now_ns`, behind a wait or without one. Returns when it
    /// really begins: behind an interruption the CPU clock is read first.
    #[inline]
    pub(super) fn calling(&mut self, has_waited: bool, now_ns: u64, clock: &dyn Clock) -> u64 {
        let kind = if has_waited { PACE } else { GENERATE };
        let length = self.split.lap(kind, now_ns);
        if length < LONG_NS {
            return now_ns;
        }
        self.split.close(kind, length, clock);
        clock.now()
    }

    /// A call of the target ended at `now_ns`.
    #[inline]
    pub(super) fn called(&mut self, now_ns: u64, clock: &dyn Clock) {
        self.calls += 1;
        self.split.lap_and_close(SEND, now_ns, clock);
    }

    /// The thread has nothing more to do.
    pub(super) fn finish(mut self, clock: &dyn Clock) -> PhaseCpu {
        self.split.assign(GENERATE, clock);
        // A call lies between two readings of the clock, so one is in its time.
        let reading_ns = self.calls * self.split.costs().now_ns;
        self.split.move_over(SEND, GENERATE, reading_ns);
        let [generate_ns, pace_ns, send_ns] = self.split.settled();
        let measure_ns = self.split.measuring_ns();
        PhaseCpu {
            total_ns: generate_ns + pace_ns + send_ns + measure_ns,
            generate_ns,
            pace_ns,
            send_ns,
            measure_ns,
            uncertain_ns: reading_ns / 2,
        }
    }
}

/// Whether the clock sleeps in a wait of this length, and does not only spin.
#[inline]
pub(super) const fn sleeps(wait_ns: u64) -> bool {
    wait_ns > SPIN_NS
}

#[cfg(test)]
mod tests;
