//! CPU time of an ingest thread: waiting, the wire, and what is applied; they add up to the
//! thread's total.
//!
//! The thread works in turns: it waits, reads, decodes, and has batches applied. A turn is
//! measured or not. In a measured turn [`crate::cpu`] divides the time between them; that costs two
//! readings of the clock for each batch, too much for a thread that has no time to spare. So
//! every turn is measured while the thread waits long from turn to turn, and one in eight at
//! random otherwise. Of the others together the exact sum is known: waiting and the wire took
//! as much in each as in a measured one on average, for which they are regular enough, and
//! what was applied took the rest, however irregular it is.

use std::sync::Arc;

use crate::cpu::Split;
use crate::time::Clock;

const WAIT: usize = 0;
const WIRE: usize = 1;
const APPLY: usize = 2;

/// A thread that waited as long as this has time to spare.
const SPARE_NS: u64 = 50_000;
/// Turns are measured with this probability where there is no time to spare.
const ONE_IN: u64 = 8;

/// CPU time of ingest threads. The four parts add up to the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngestCpu {
    /// The whole CPU time of the threads; exact.
    pub total_ns: u64,
    /// Falling asleep and waking up until there is something to read.
    pub wait_ns: u64,
    /// Receiving, decoding, answering.
    pub wire_ns: u64,
    /// In the sink's `batch`.
    pub apply_ns: u64,
    /// Reading the clocks.
    pub measure_ns: u64,
    /// How far `apply_ns` may be off: twice the standard error, and readings of the clock of
    /// which the time is known only on average.
    pub uncertain_ns: u64,
    /// Turns that were measured.
    pub measured_turns: u64,
    /// Turns that were not.
    pub other_turns: u64,
}

impl IngestCpu {
    /// Adds another thread.
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

/// Measured turns without time to spare.
#[derive(Debug, Default)]
struct Regular {
    turns: u64,
    wait_ns: u64,
    wire_ns: u64,
    squares: f64,
}

impl Regular {
    fn add(&mut self, wait_ns: u64, wire_ns: u64) {
        self.turns += 1;
        self.wait_ns += wait_ns;
        self.wire_ns += wire_ns;
        self.squares += ((wait_ns + wire_ns) as f64).powi(2);
    }

    /// As much for each of `turns` as on average.
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

/// Measures one ingest thread.
#[derive(Debug)]
pub(super) struct Meter {
    clock: Arc<dyn Clock>,
    split: Split<3>,
    random: u64,
    /// Whether the turn is measured, and whether that was for certain.
    is_on: bool,
    is_spare: bool,
    /// What was settled when the measured turn began.
    before: [u64; 3],
    batches: u64,
    regular: Regular,
    measured: u64,
    others: u64,
    unsplit_ns: u64,
}

impl Meter {
    /// For the calling thread, from its beginning; `seed` decides which turns are measured.
    pub(super) fn new(clock: Arc<dyn Clock>, seed: u64) -> Self {
        let mut split = Split::new(&*clock);
        // What the thread has done so far was getting ready.
        split.assign(WIRE, &*clock);
        Self {
            before: split.settled(),
            split,
            random: seed,
            is_on: true,
            is_spare: true,
            batches: 0,
            regular: Regular::default(),
            measured: 0,
            others: 0,
            unsplit_ns: 0,
            clock,
        }
    }

    /// Itself, in a turn that is measured.
    #[inline]
    pub(super) fn when_on(&mut self) -> Option<&mut Self> {
        self.is_on.then_some(self)
    }

    /// A turn ends and another begins. The first turn is measured.
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
        self.regular.add(wait - wait_before, wire - wire_before);
    }

    /// Waits, and says whether that took so long that there is time to spare.
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

    /// A batch is about to be applied.
    #[inline]
    pub(super) fn applying(&mut self) {
        let now = self.clock.now();
        self.split.lap_and_close(WIRE, now, &*self.clock);
    }

    /// It is applied.
    #[inline]
    pub(super) fn applied(&mut self) {
        self.batches += 1;
        let now = self.clock.now();
        self.split.lap_and_close(APPLY, now, &*self.clock);
    }

    /// The thread has nothing more to do.
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
            let part_ns = self.regular.scaled(sum_ns, self.others).min(left_ns);
            left_ns -= part_ns;
            part_ns
        };
        let (wait_more, wire_more) = (share(self.regular.wait_ns), share(self.regular.wire_ns));
        let measure_ns = self.split.measuring_ns() + wire_reading + apply_reading;
        let (wait_ns, wire_ns) = (wait + wait_more, wire - wire_reading + wire_more);
        let apply_ns = apply - apply_reading + left_ns;
        IngestCpu {
            total_ns: wait_ns + wire_ns + apply_ns + measure_ns,
            wait_ns,
            wire_ns,
            apply_ns,
            measure_ns,
            uncertain_ns: reading_ns / 2 + (2.0 * self.regular.error_ns(self.others)) as u64,
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
