//! CPU time of an ingest thread, divided into waiting, wire (receive, decode, answer), applying
//! and measuring. The parts add up to the thread's total.
//!
//! The thread works in turns: it waits, reads, decodes, and passes batches to the sink. A measured
//! turn divides its time with [`crate::cpu`], which costs two clock readings per batch: too much
//! for a thread that is busy. So every turn is measured while the thread waits long between turns,
//! and otherwise one random turn in eight. Of the unmeasured turns only the exact sum is known:
//! each is assumed to spend as much on waiting and on the wire as a measured turn does on average,
//! which is steady enough, and the rest of the sum is applying, however irregular it is.

use std::sync::Arc;

use crate::cpu::Split;
use crate::time::Clock;

const WAIT: usize = 0;
const WIRE: usize = 1;
const APPLY: usize = 2;

/// A wait of at least this many nanoseconds means that the thread has time to spare.
const SPARE_NS: u64 = 50_000;
/// A busy thread measures one turn in this many, at random.
const ONE_IN: u64 = 8;

/// CPU time of ingest threads. The four parts add up to the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IngestCpu {
    /// Total CPU time of the threads; exact.
    pub total_ns: u64,
    /// Going to sleep and waking up to wait for input.
    pub wait_ns: u64,
    /// Receiving, decoding, answering.
    pub wire_ns: u64,
    /// In the sink's `batch`.
    pub apply_ns: u64,
    /// Reading the clocks.
    pub measure_ns: u64,
    /// Uncertainty of `apply_ns`: twice its standard error, plus the clock readings whose cost is
    /// known only as an average.
    pub uncertain_ns: u64,
    /// Number of measured turns.
    pub measured_turns: u64,
    /// Number of unmeasured turns.
    pub other_turns: u64,
}

impl IngestCpu {
    /// Adds the figures of another thread.
    pub fn merge(&mut self, other: &Self) {
        self.total_ns += other.total_ns;
        self.wait_ns += other.wait_ns;
        self.wire_ns += other.wire_ns;
        self.apply_ns += other.apply_ns;
        self.measure_ns += other.measure_ns;
        self.uncertain_ns += other.uncertain_ns;
        self.measured_turns += other.measured_turns;
        self.other_turns += other.other_turns;
    }
}

/// Measured turns of a busy thread.
#[derive(Debug, Default)]
struct BusyTurns {
    turns: u64,
    wait_ns: u64,
    wire_ns: u64,
    squares: f64,
}

impl BusyTurns {
    fn add(&mut self, wait_ns: u64, wire_ns: u64) {
        self.turns += 1;
        self.wait_ns += wait_ns;
        self.wire_ns += wire_ns;
        self.squares += ((wait_ns + wire_ns) as f64).powi(2);
    }

    /// The average of the measured turns, times `turns`.
    fn scaled(&self, sum_ns: u64, turns: u64) -> u64 {
        let scaled = u128::from(sum_ns) * u128::from(turns);
        scaled.checked_div(u128::from(self.turns)).unwrap_or(0) as u64
    }

    /// The standard error of a sum over `others` other turns.
    fn error_ns(&self, others: u64) -> f64 {
        let turns = self.turns.max(1) as f64;
        let mean = (self.wait_ns + self.wire_ns) as f64 / turns;
        let variance = (self.squares / turns - mean * mean).max(0.0);
        others as f64 * (variance / turns).sqrt()
    }
}

/// Measures the CPU time of one ingest thread.
#[derive(Debug)]
pub(super) struct Meter {
    clock: Arc<dyn Clock>,
    split: Split<3>,
    random: u64,
    /// Whether this turn is measured, and whether it was measured because the thread had time to
    /// spare.
    is_on: bool,
    is_spare: bool,
    /// The settled parts at the start of the measured turn.
    before: [u64; 3],
    batches: u64,
    busy_turns: BusyTurns,
    measured: u64,
    others: u64,
    unsplit_ns: u64,
}

impl Meter {
    /// A meter of the calling thread, from the thread's start. `seed` decides which turns are
    /// measured.
    pub(super) fn new(clock: Arc<dyn Clock>, seed: u64) -> Self {
        let mut split = Split::new(&*clock);
        // The CPU time before this point was start-up work; it counts as wire.
        split.assign(WIRE, &*clock);
        Self {
            before: split.settled(),
            split,
            random: seed,
            is_on: true,
            is_spare: true,
            batches: 0,
            busy_turns: BusyTurns::default(),
            measured: 0,
            others: 0,
            unsplit_ns: 0,
            clock,
        }
    }

    /// The meter itself in a measured turn, `None` in any other.
    #[inline]
    pub(super) fn when_on(&mut self) -> Option<&mut Self> {
        self.is_on.then_some(self)
    }

    /// Ends a turn and starts the next. The first turn is always measured.
    pub(super) fn turn(&mut self, has_spare_time: bool) {
        let was_on = self.is_on;
        if was_on {
            self.split.lap(WIRE, self.clock.now());
            self.split.settle(APPLY, &*self.clock);
            self.measured += 1;
            if !self.is_spare {
                self.note();
            }
        } else {
            self.others += 1;
        }
        self.random = crate::schedule::mix(self.random);
        self.is_spare = has_spare_time;
        self.is_on = has_spare_time || self.random.is_multiple_of(ONE_IN);
        if self.is_on && !was_on {
            self.unsplit_ns += self.split.take(&*self.clock);
        }
        self.before = self.split.settled();
    }

    fn note(&mut self) {
        let [wait, wire, _] = self.split.settled();
        let [wait_before, wire_before, _] = self.before;
        self.busy_turns.add(wait - wait_before, wire - wire_before);
    }

    /// Runs `wait`; returns whether it lasted long enough that the thread has time to spare.
    pub(super) fn wait(&mut self, wait: impl FnOnce()) -> bool {
        let begun = self.clock.now();
        if self.is_on {
            self.split.lap(WIRE, begun);
            self.split.settle(APPLY, &*self.clock);
        }
        wait();
        let taken = self.clock.now().saturating_sub(begun);
        if self.is_on {
            self.split.assign(WAIT, &*self.clock);
        }
        taken >= SPARE_NS
    }

    /// Marks the start of applying a batch.
    #[inline]
    pub(super) fn applying(&mut self) {
        let now = self.clock.now();
        self.split.lap_and_close(WIRE, now, &*self.clock);
    }

    /// Marks the end of applying a batch.
    #[inline]
    pub(super) fn applied(&mut self) {
        self.batches += 1;
        let now = self.clock.now();
        self.split.lap_and_close(APPLY, now, &*self.clock);
    }

    /// Ends the measurement, at the end of the thread.
    pub(super) fn finish(mut self) -> IngestCpu {
        self.turn(false);
        if self.is_on {
            self.split.assign(WIRE, &*self.clock);
        } else {
            self.unsplit_ns += self.split.take(&*self.clock);
        }
        let reading_ns = self.batches * self.split.costs().now_ns;
        let [wait, wire, apply] = self.split.settled();
        let (wire_reading, apply_reading) = (reading_ns.min(wire), reading_ns.min(apply));
        let mut left_ns = self.unsplit_ns;
        let mut share = |sum_ns| {
            let part_ns = self.busy_turns.scaled(sum_ns, self.others).min(left_ns);
            left_ns -= part_ns;
            part_ns
        };
        let (wait_more, wire_more) = (share(self.busy_turns.wait_ns), share(self.busy_turns.wire_ns));
        let measure_ns = self.split.measuring_ns() + wire_reading + apply_reading;
        let (wait_ns, wire_ns) = (wait + wait_more, wire - wire_reading + wire_more);
        let apply_ns = apply - apply_reading + left_ns;
        IngestCpu {
            total_ns: wait_ns + wire_ns + apply_ns + measure_ns,
            wait_ns,
            wire_ns,
            apply_ns,
            measure_ns,
            uncertain_ns: reading_ns / 2 + (2.0 * self.busy_turns.error_ns(self.others)) as u64,
            measured_turns: self.measured,
            other_turns: self.others,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::ManualClock;

    /// Turns of a wait, some decoding, and a batch whose cost `apply` says by its number.
    fn turns(count: u64, wait_ns: u64, apply: impl Fn(u64) -> u64) -> (IngestCpu, u64) {
        let clock = Arc::new(ManualClock::new());
        let mut meter = Meter::new(Arc::clone(&clock) as Arc<dyn Clock>, 7);
        let mut applied_ns = 0;
        let mut has_spare_time = true;
        for number in 0..count {
            meter.turn(has_spare_time);
            has_spare_time = meter.wait(|| {
                clock.advance(wait_ns);
                clock.work(3_000);
            });
            clock.work(20_000 + number % 7);
            if let Some(meter) = meter.when_on() {
                meter.applying();
            }
            clock.work(apply(number));
            applied_ns += apply(number);
            if let Some(meter) = meter.when_on() {
                meter.applied();
            }
            clock.work(1_000);
        }
        (meter.finish(), applied_ns)
    }

    fn adds_up(cpu: &IngestCpu) {
        assert_eq!(cpu.wait_ns + cpu.wire_ns + cpu.apply_ns + cpu.measure_ns, cpu.total_ns);
    }

    /// `n` percent of `whole`.
    fn percent(n: u64, whole: u64) -> u64 {
        whole * n / 100
    }

    #[test]
    fn a_thread_with_time_to_spare_is_measured_in_every_turn() {
        let (cpu, applied_ns) = turns(1_000, 1_000_000, |number| if number == 0 { 900_000 } else { 400 });
        adds_up(&cpu);
        assert_eq!((cpu.measured_turns, cpu.other_turns), (1_001, 0));
        assert_eq!(cpu.apply_ns, applied_ns);
        assert_eq!(cpu.wait_ns, 3_000_000);
    }

    #[test]
    fn a_commit_in_step_with_any_stride_is_charged_in_full_and_only_once() {
        for step in [2, 8, 32, 64, 200] {
            let (cpu, applied_ns) = turns(20_000, 0, |number| if number % step == 0 { 150_000 } else { 7_000 });
            adds_up(&cpu);
            assert!(cpu.other_turns > 16_000 && cpu.measured_turns > 2_000, "{cpu:?}");
            let off = cpu.apply_ns.abs_diff(applied_ns);
            assert!(off < percent(1, applied_ns), "step {step}: {off} of {applied_ns}");
        }
    }

    #[test]
    fn the_cold_first_batch_is_measured_and_not_multiplied() {
        let (cpu, applied_ns) = turns(20_000, 0, |number| if number == 0 { 50_000_000 } else { 5_000 });
        adds_up(&cpu);
        assert!(
            cpu.apply_ns.abs_diff(applied_ns) < percent(1, applied_ns),
            "{cpu:?} {applied_ns}"
        );
    }

    #[test]
    fn a_sink_that_costs_nothing_is_within_what_is_said_to_be_uncertain() {
        let (cpu, _) = turns(20_000, 0, |_| 0);
        adds_up(&cpu);
        assert!(cpu.apply_ns <= cpu.uncertain_ns, "{cpu:?}");
    }
}
