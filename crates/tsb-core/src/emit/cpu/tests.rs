//! The split of a worker's CPU time, in virtual time in which looking at a clock costs time.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};

use super::*;
use crate::batch::BatchBuf;
use crate::emit::{Fill, Live, Operation, Outcome, Run, Settings, Worker, run};
use crate::schedule::{Group, Pace, Roster, Schedule, Slot, Speed, Timetable};
use crate::series::SeriesId;
use crate::time::{ManualClock, SECOND_NS, Timestamp};

/// Looking at it takes time, and so does the end of a wait.
#[derive(Debug, Default)]
struct CostlyClock {
    time: ManualClock,
    now_ns: u64,
    cpu_ns: u64,
}

impl Clock for CostlyClock {
    fn now(&self) -> u64 {
        self.time.work(self.now_ns);
        self.time.now()
    }

    fn wall(&self) -> Timestamp {
        self.time.wall()
    }

    fn wait_until(&self, due: u64) {
        let left = due.saturating_sub(self.time.now());
        if left > SPIN_NS {
            self.time.advance(left - SPIN_NS);
            // Falling asleep and waking up.
            self.time.work(4_000);
        }
        self.time.work(due.saturating_sub(self.time.now()));
    }

    fn thread_cpu_ns(&self) -> u64 {
        self.time.work(self.cpu_ns / 2);
        let cpu_ns = self.time.thread_cpu_ns();
        self.time.work(self.cpu_ns - self.cpu_ns / 2);
        cpu_ns
    }
}

const GENERATING_NS: u64 = 2_000;
const SAMPLES: u64 = 54;

/// Runs one worker whose target takes what `send` says of each operation by its number: work,
/// and time in which it blocks. Returns the split, the operations, and the work.
fn measured(clock: &CostlyClock, pace: Pace, send: impl Fn(u64) -> (u64, u64) + Sync) -> (PhaseCpu, u64, u64) {
    let timetable = Timetable {
        roster: Roster::new(vec![Group::new(1_000_000, 0, SAMPLES as u32)]).unwrap(),
        pace,
        end_ns: Some(2 * SECOND_NS),
        fleet_end_ns: None,
    };
    let (sent, worked) = (AtomicU64::new(0), AtomicU64::new(0));
    let (inner_sent, inner_worked) = (&sent, &worked);
    let worker = Worker {
        groups: 0..1,
        source: Fill::new(|slot: &Slot, into: &mut BatchBuf| {
            clock.time.work(GENERATING_NS);
            (0..SAMPLES as u32).for_each(|id| into.push(SeriesId(id), Timestamp(slot.offset_ns as i64), 1.0));
        }),
        target: |operation: &Operation<'_>| {
            let (work_ns, block_ns) = send(inner_sent.fetch_add(1, Relaxed));
            clock.time.work(work_ns);
            clock.time.advance(block_ns);
            inner_worked.fetch_add(work_ns, Relaxed);
            Outcome::Done {
                accepted: operation.payload.len() as u32,
                rejected: 0,
            }
        },
    };
    let (live, stop) = (Live::new(1), AtomicBool::new(false));
    let run_of = Run {
        clock,
        timetable: &timetable,
        stop: &stop,
        live: &live,
        settings: Settings {
            start_ns: Some(clock.time.now() + SECOND_NS),
            ..Settings::default()
        },
    };
    let cpu = run(&run_of, vec![worker]).unwrap().cpu();
    let parts = cpu.generate_ns + cpu.pace_ns + cpu.send_ns + cpu.measure_ns;
    assert_eq!(parts, cpu.total_ns);
    (cpu, sent.load(Relaxed), worked.load(Relaxed))
}

const CLOSED: Pace = Pace::Shape(Schedule::Unpaced);
const OPEN: Pace = Pace::Fleet(Speed::NATURAL);

#[test]
fn a_commit_in_step_with_any_stride_is_charged_to_the_nanosecond() {
    for (pace, step) in [(CLOSED, 32), (CLOSED, 64), (CLOSED, 200), (OPEN, 32), (OPEN, 200)] {
        // A commit works for a millisecond and waits four for the medium.
        let commit = |number: u64| {
            if number % step == step / 2 {
                (1_000_000, 4_000_000)
            } else {
                (300, 0)
            }
        };
        let (cpu, sent, worked) = measured(&CostlyClock::default(), pace.clone(), commit);
        assert!(sent > 1_000, "{sent}");
        assert_eq!(
            cpu.send_ns, worked,
            "a commit every {step} of {sent} operations, {pace:?}: {cpu:?}"
        );
        // One operation more may have been prepared than there was time to send.
        let prepared = [sent * GENERATING_NS, (sent + 1) * GENERATING_NS];
        assert!(prepared.contains(&cpu.generate_ns), "{cpu:?}");
    }
}

#[test]
fn a_cold_first_operation_counts_once() {
    let cold = |number: u64| if number == 0 { (9_000_000, 0) } else { (500, 0) };
    let (cpu, sent, worked) = measured(&CostlyClock::default(), CLOSED, cold);
    assert_eq!((cpu.send_ns, worked), (worked, 9_000_000 + (sent - 1) * 500));
}

#[test]
fn pacing_is_not_generating() {
    let clock = CostlyClock {
        now_ns: 30,
        cpu_ns: 800,
        ..CostlyClock::default()
    };
    let (cpu, sent, worked) = measured(&clock, OPEN, |_| (1_000, 0));
    // 2,000 operations that are waited for, of which 100 us are spun.
    assert!(cpu.pace_ns > sent * 100_000 && cpu.pace_ns < sent * 110_000, "{cpu:?}");
    assert!(cpu.generate_ns < sent * (GENERATING_NS + 10 * clock.now_ns), "{cpu:?}");
    assert!(cpu.send_ns.abs_diff(worked) <= cpu.uncertain_ns, "{cpu:?} {worked}");
}

#[test]
fn reading_the_clocks_is_not_the_targets() {
    for cost_ns in [0, 5, 400] {
        let clock = CostlyClock {
            now_ns: 40,
            cpu_ns: 900,
            ..CostlyClock::default()
        };
        let (cpu, sent, worked) = measured(&clock, CLOSED, |_| (cost_ns, 0));
        assert!(
            cpu.send_ns.abs_diff(worked) <= cpu.uncertain_ns,
            "{cost_ns} ns: {cpu:?} {worked}"
        );
        // Less than half a nanosecond for a sample.
        assert!(cpu.uncertain_ns < sent * SAMPLES / 2, "{cpu:?}");
        assert!(cpu.measure_ns < cpu.total_ns / 1_000, "{cpu:?}");
    }
}
