//! The instrument tested on itself, in virtual time.

use std::cell::Cell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::batch::BatchBuf;
use crate::schedule::{Group, Pace, Roster, Schedule, Slot, Speed, Timetable};
use crate::series::SeriesId;
use crate::time::{Clock, ManualClock, MonotonicClock, SECOND_NS, Timestamp};
use crate::verdict::{Evidence, Status};

mod taken_apart;

const MS: u64 = 1_000_000;

/// One group that reports every millisecond, with 54 samples, for `length_ns`.
fn thousand_per_second(length_ns: u64) -> Timetable {
    Timetable {
        roster: Roster::new(vec![Group::new(MS, 0, 54)]).unwrap(),
        pace: Pace::Fleet(Speed::NATURAL),
        end_ns: Some(length_ns),
        fleet_end_ns: None,
    }
}

fn row(slot: &Slot, into: &mut BatchBuf) {
    for series in 0..54 {
        into.push(SeriesId(series), Timestamp(slot.offset_ns as i64), slot.tick as f64);
    }
}

/// What the verdict's function says of a run of which everything was read back.
fn verdict<S, T>(report: &Report<S, T>) -> Status {
    let own_lag = &report.latency.own_lag.total;
    let accepted = report.counts.accepted;
    let evidence = Evidence {
        due: accepted,
        sent: accepted,
        received: accepted,
        accepted,
        compared: accepted,
        verified: accepted,
        asked_per_second: Some(54_000.0),
        held_per_second: report.per_second(report.counts.accepted),
        ceiling_per_second: Some(1e9),
        own_lag_p99_ns: own_lag.supported_quantile(0.99).or_else(|| own_lag.quantile(0.9)),
        interval_ns: Some(MS),
        ..Evidence::default()
    };
    evidence.verdict().status
}

type Filled = Fill<fn(&Slot, &mut BatchBuf)>;

fn accept(operation: &Operation<'_>) -> Outcome {
    Outcome::Done {
        accepted: operation.payload.len() as u32,
        rejected: 0,
    }
}

/// Runs with one worker a group, each of which sends `row`.
fn run_all<T: Target + Send>(
    clock: &dyn Clock,
    timetable: &Timetable,
    stop: &AtomicBool,
    target: impl Fn(usize) -> T,
) -> Report<Filled, T> {
    run_sources(clock, timetable, stop, |_| Filled::new(row), target)
}

/// Runs with one worker a group in virtual time that starts at 0.
fn run_sources<S: Source + Send, T: Target<S::Kind> + Send>(
    clock: &dyn Clock,
    timetable: &Timetable,
    stop: &AtomicBool,
    source: impl Fn(usize) -> S,
    target: impl Fn(usize) -> T,
) -> Report<S, T> {
    let ranges = timetable.roster.split(timetable.roster.groups().len());
    let live = Live::new(ranges.len());
    let worker = |(index, groups): (usize, Range<u32>)| Worker {
        groups,
        source: source(index),
        target: target(index),
    };
    let workers = ranges.into_iter().enumerate().map(worker).collect();
    let settings = Settings {
        start_ns: Some(0),
        ..Settings::default()
    };
    let run_of = Run {
        clock,
        timetable,
        stop,
        live: &live,
        settings,
    };
    let report = run(&run_of, workers).unwrap();
    let totals = live.totals();
    assert_eq!(totals.samples, report.counts.sent().samples);
    assert_eq!(totals.accepted, report.counts.accepted);
    report
}

/// Runs one worker whose source lets time pass with each row, and a target that takes none.
fn run_generator<'a>(
    clock: &'a ManualClock,
    timetable: &Timetable,
    pass: impl Fn(&Slot) -> u64 + Copy + Send + Sync + 'a,
) -> Report<impl Source, impl Target> {
    let source = |_| {
        Fill::new(move |slot: &Slot, into: &mut BatchBuf| {
            clock.advance(pass(slot));
            row(slot, into);
        })
    };
    run_sources(clock, timetable, &AtomicBool::new(false), source, |_| accept)
}

#[test]
fn a_stall_of_a_second_is_felt_by_a_thousand_responses_and_one_service() {
    let clock = ManualClock::new();
    let timetable = thousand_per_second(10 * SECOND_NS);
    let stop = AtomicBool::new(false);
    let target = |_| {
        let (clock, mut sent) = (&clock, 0);
        move |operation: &Operation<'_>| {
            sent += 1;
            clock.advance(if sent == 3_000 { SECOND_NS } else { 10_000 });
            accept(operation)
        }
    };
    let report = run_all(&clock, &timetable, &stop, target);
    let latency = &report.latency;
    assert_eq!(latency.service.total.count_above(MS), 1);
    // The stalled one; those due behind it start late, and the backlog drains at 10 us
    // an operation while a new one comes each millisecond: 1000 / 0.99.
    let slow = latency.response.total.count_above(MS);
    assert!((1_000..=1_011).contains(&slow), "{slow}");
    assert_eq!(latency.lag.total.count_above(MS), slow - 1);
    // None of it was our own lateness.
    assert_eq!(latency.own_lag.total.max(), Some(0));
    assert_eq!(verdict(&report), Status::Valid);
    assert_eq!(report.counts.done, report.counts.due);
    assert_eq!(report.counts.due.operations, 10_000);
    assert_eq!(latency.response_summary().samples, 540_000);
    assert_eq!(latency.response_summary().p50_ns, Some(10_047));
    // The slow ones are in the intervals in which they were done, and nowhere else.
    let slow_at: Vec<u64> = latency
        .response
        .intervals
        .iter()
        .map(|i| i.histogram().count_above(MS))
        .collect();
    assert_eq!(slow_at.iter().sum::<u64>(), slow);
    assert_eq!(slow_at[..3], [0, 0, 0]);
    assert!(slow_at[3] > 0 && slow_at[4] > slow_at[3]);
    assert_eq!(slow_at[5..], [0; 5]);
}

/// As a process that is stopped before the start and goes on after it.
#[test]
fn a_worker_that_begins_late_is_its_own_lag() {
    let clock = ManualClock::new();
    clock.advance(SECOND_NS / 2);
    let timetable = Timetable {
        roster: Roster::new(vec![Group::new(MS, MS / 2, 54)]).unwrap(),
        ..thousand_per_second(SECOND_NS)
    };
    let report = run_all(&clock, &timetable, &AtomicBool::new(false), |_| accept);
    let latency = &report.latency;
    assert_eq!(latency.lag.total.max(), Some(SECOND_NS / 2 - MS / 2));
    assert_eq!(latency.own_lag.total, latency.lag.total);
    assert_eq!(verdict(&report), Status::GeneratorLimited);
}

/// As a process that is stopped until after the end: what it never sends is not the store's doing.
#[test]
fn a_worker_that_stands_still_until_the_end_is_its_own_lag() {
    let clock = ManualClock::new();
    let timetable = thousand_per_second(SECOND_NS);
    let pass = |slot: &Slot| if slot.tick == 99 { 5 * SECOND_NS } else { 0 };
    let report = run_generator(&clock, &timetable, pass);
    assert_eq!(
        (report.counts.done.operations, report.counts.shed.operations),
        (99, 901)
    );
    assert!(report.latency.own_lag.total.quantile(0.5).unwrap() > 4 * SECOND_NS);
    assert_eq!(verdict(&report), Status::GeneratorLimited);
}

#[test]
fn a_slow_generator_is_its_own_lag() {
    let clock = ManualClock::new();
    let timetable = thousand_per_second(SECOND_NS);
    let report = run_generator(&clock, &timetable, |_| 2 * MS);
    let latency = &report.latency;
    assert_eq!(latency.own_lag.total.count(), report.counts.due.operations);
    assert!(latency.own_lag.total.quantile(0.99).unwrap() > 500 * MS);
    assert_eq!(verdict(&report), Status::GeneratorLimited);
    // 2 ms each until the end and the 100 ms of grace, which is over with the 550th: 549.
    let counts = report.counts;
    assert_eq!(
        (counts.done.operations, counts.shed.operations, counts.due.operations),
        (549, 451, 1_000)
    );
    assert_eq!(counts.shed.samples, 451 * 54);
    assert_eq!(report.workers[0].unsent_ticks(&timetable, 0), 549..1_000);
    assert_eq!(report.workers[0].issued_ticks(&timetable, 0), 0..549);
}

#[test]
fn a_slow_store_is_not_the_generators_fault() {
    let clock = ManualClock::new();
    let target = |_| {
        let clock = &clock;
        move |operation: &Operation<'_>| {
            clock.advance(2 * MS);
            accept(operation)
        }
    };
    let timetable = thousand_per_second(SECOND_NS);
    let report = run_all(&clock, &timetable, &AtomicBool::new(false), target);
    assert_eq!(report.latency.own_lag.total.max(), Some(0));
    assert!(report.latency.lag.total.max().unwrap() > 500 * MS);
    assert_eq!(verdict(&report), Status::StoreLimited);
    assert_eq!(report.workers[0].busy_ns, 2 * MS * report.counts.done.operations);
}

#[test]
fn nothing_is_skipped_and_idle_is_called_only_with_time_to_spare() {
    struct Buffered<'a> {
        clock: &'a ManualClock,
        dues: Vec<u64>,
        idles: Vec<usize>,
    }
    impl Target for Buffered<'_> {
        fn send(&mut self, operation: &Operation<'_>) -> Outcome {
            self.dues.push(operation.due);
            if self.dues.len() == 3 {
                self.clock.advance(4 * MS + MS / 2);
            }
            Outcome::Sent
        }
        fn idle(&mut self) {
            self.idles.push(self.dues.len());
        }
    }
    let clock = ManualClock::new();
    let target = |_| Buffered {
        clock: &clock,
        dues: Vec::new(),
        idles: Vec::new(),
    };
    let report = run_all(&clock, &thousand_per_second(10 * MS), &AtomicBool::new(false), target);
    let target = &report.workers[0].target;
    assert_eq!(target.dues, (0..10).map(|n| n * MS).collect::<Vec<_>>());
    // Behind after the third: sent at once until the eighth, which is not yet due.
    assert_eq!(target.idles, [1, 2, 7, 8, 9, 10]);
    assert_eq!(report.counts.handed_over.operations, 10);
    assert_eq!(report.latency.response.total.count(), 0);
    assert_eq!(report.latency.lag.total.count(), 10);
    assert_eq!(report.latency.lag.total.max(), Some(3 * MS + MS / 2));
}

#[test]
fn outcomes_are_counted_and_named() {
    let clock = ManualClock::new();
    let target = |_| {
        let sent = Cell::new(0u32);
        move |operation: &Operation<'_>| {
            sent.set(sent.get() + 1);
            match sent.get() {
                3..=5 => Outcome::Shed,
                6 => Outcome::Unknown,
                7 => Outcome::Done {
                    accepted: 50,
                    rejected: 4,
                },
                8 => Outcome::Done {
                    accepted: 0,
                    rejected: 54,
                },
                _ => accept(operation),
            }
        }
    };
    let report = run_all(&clock, &thousand_per_second(10 * MS), &AtomicBool::new(false), target);
    let counts = report.counts;
    assert_eq!(
        (counts.due.operations, counts.shed.operations, counts.unknown.operations),
        (10, 3, 1)
    );
    assert_eq!((counts.accepted, counts.rejected), (4 * 54 + 50, 58));
    assert_eq!(counts.due.samples, counts.shed.samples + counts.sent().samples);
    let exception = |ticks, kind| Exception { group: 0, ticks, kind };
    let expected = [
        exception(2..5, ExceptionKind::Shed),
        exception(5..6, ExceptionKind::Unknown),
    ];
    assert_eq!(report.workers[0].exceptions, expected);
    // An operation that was refused whole is no fast success.
    assert_eq!(report.latency.response.total.count(), 5);
}

#[test]
fn a_panic_and_a_fatal_target_end_the_run_with_what_was_measured() {
    for (kill, ended) in [
        (true, Ended::Panicked("the store is gone".to_owned())),
        (false, Ended::Fatal),
    ] {
        let clock = ManualClock::new();
        let mut sent = 0;
        let target = move |operation: &Operation<'_>| {
            sent += 1;
            if sent <= 4 {
                return accept(operation);
            }
            assert!(!kill, "the store is gone");
            Outcome::Fatal
        };
        let report = run_all(&clock, &thousand_per_second(SECOND_NS), &AtomicBool::new(false), |_| {
            target
        });
        let worker = &report.workers[0];
        assert_eq!(worker.ended, ended);
        assert_eq!(report.first_failure(), Some((0, &ended)));
        assert_eq!(report.latency.response.total.count(), 4);
        let counts = report.counts;
        // Due by then: ticks 0 to 4, all issued, the last of unknown outcome.
        assert_eq!(
            (counts.due.operations, counts.done.operations, counts.unknown.operations),
            (5, 4, 1)
        );
        assert_eq!(worker.exceptions.len(), 1);
        assert_eq!(worker.exceptions[0].ticks, 4..5);
        assert_eq!(worker.issued_ticks(&thousand_per_second(SECOND_NS), 0), 0..5);
    }
}

#[test]
fn a_rate_far_beyond_what_can_be_sent_is_counted_without_walking_there() {
    let clock = ManualClock::new();
    let stop = AtomicBool::new(false);
    let groups = vec![Group::new(1_000, 0, 54), Group::new(3_000, 2_000, 7)];
    let timetable = Timetable {
        roster: Roster::new(groups).unwrap(),
        // A million operations each nanosecond: a walk would take weeks.
        pace: Pace::Fleet(Speed::new(1_000_000_000, 1).unwrap()),
        end_ns: Some(SECOND_NS),
        fleet_end_ns: None,
    };
    let target = |_| {
        let clock = &clock;
        move |operation: &Operation<'_>| {
            clock.advance(SECOND_NS / 4);
            accept(operation)
        }
    };
    let report = run_all(&clock, &timetable, &stop, target);
    // Due before the end, in fleet time: ticks k with k * interval + phase below 10^18 ns.
    let fast = 1_000_000_000_000_000;
    let slow = (1_000_000_000_000_000_000 - 1_000_000_000 - 2_000) / 3_000 + 1;
    let due = report.counts.due;
    assert_eq!(
        due.operations,
        report.counts.shed.operations + report.counts.done.operations
    );
    let ends = [0, 1].map(|group| report.workers[group].unsent_ticks(&timetable, group as u32).end);
    // The last due time is a nanosecond before the end: a million ticks less.
    assert_eq!(ends, [fast - 1_000_000 + 1, slow]);
    assert_eq!(due.operations, ends[0] + ends[1]);
    assert!(report.counts.done.operations < 10, "{:?}", report.counts);
}

#[test]
fn unsent_operations_leave_out_samples_that_would_have_been_missing() {
    let clock = ManualClock::new();
    let stop = AtomicBool::new(false);
    let timetable = Timetable {
        // Of 7 samples 0.9 are sent: 6.3 each.
        roster: Roster::new(vec![Group::new(1_000_000, 0, 7)]).unwrap(),
        pace: Pace::Fleet(Speed::NATURAL),
        end_ns: Some(SECOND_NS),
        fleet_end_ns: None,
    };
    for pace in [
        Pace::Fleet(Speed::NATURAL),
        Pace::Shape("poisson:1000".parse().unwrap()),
    ] {
        let timetable = Timetable {
            pace,
            ..timetable.clone()
        };
        let live = Live::new(1);
        let run = Run {
            clock: &clock,
            timetable: &timetable,
            stop: &stop,
            live: &live,
            settings: Settings {
                sent_share: 0.9,
                ..Settings::default()
            },
        };
        let worker = Worker {
            groups: 0..1,
            source: Fill::new(|_: &Slot, buffer: &mut BatchBuf| buffer.push(SeriesId(0), Timestamp(0), 1.0)),
            // The first takes longer than the whole run.
            target: |operation: &Operation<'_>| {
                clock.advance(2 * SECOND_NS);
                accept(operation)
            },
        };
        let counts = super::run(&run, vec![worker]).unwrap().counts;
        let shed = counts.shed;
        assert!(shed.operations > 900, "{counts:?}");
        let expected = shed.operations as f64 * 6.3;
        assert!((shed.samples as f64 - expected).abs() <= 0.5, "{counts:?}");
        assert_eq!(counts.due.samples, shed.samples + counts.done.samples);
    }
}

#[test]
fn a_stop_counts_what_was_due_and_no_more() {
    let clock = ManualClock::new();
    let stop = AtomicBool::new(false);
    let timetable = thousand_per_second(10 * SECOND_NS);
    let target = |_| {
        let (clock, stop, mut sent) = (&clock, &stop, 0);
        move |operation: &Operation<'_>| {
            sent += 1;
            if sent == 100 {
                clock.advance(7 * MS + MS / 2);
                stop.store(true, Ordering::Relaxed);
            }
            accept(operation)
        }
    };
    let report = run_all(&clock, &timetable, &stop, target);
    let worker = &report.workers[0];
    assert_eq!(worker.ended, Ended::Stopped);
    assert_eq!(worker.issued_ticks(&timetable, 0), 0..100);
    // The hundredth was due at 99 ms, the stop came at 106.5.
    assert_eq!(worker.unsent_ticks(&timetable, 0), 100..107);
    assert_eq!((report.counts.due.operations, report.counts.shed.operations), (107, 7));
    assert_eq!(report.elapsed_ns(), 106 * MS + MS / 2);
}

#[test]
fn a_closed_loop_has_no_lag_and_sheds_nothing() {
    let clock = ManualClock::new();
    let timetable = Timetable {
        pace: Pace::Shape(Schedule::Unpaced),
        ..thousand_per_second(SECOND_NS)
    };
    let target = |_| {
        let clock = &clock;
        move |operation: &Operation<'_>| {
            clock.advance(20_000);
            accept(operation)
        }
    };
    let report = run_all(&clock, &timetable, &AtomicBool::new(false), target);
    assert_eq!(report.counts.done.operations, 50_000);
    assert_eq!(report.counts.shed.operations, 0);
    assert_eq!(report.latency.lag.total.count(), 0);
    assert_eq!(report.latency.response.total, report.latency.service.total);
    assert!((report.per_second(report.counts.accepted) - 50_000.0 * 54.0).abs() < 1.0);
}

#[test]
fn workers_on_the_machines_clock_keep_their_groups_and_their_times() {
    let clock = MonotonicClock::new();
    let groups = (0..4).map(|group| Group::new(4 * MS, group * MS, 54)).collect();
    let timetable = Timetable {
        roster: Roster::new(groups).unwrap(),
        pace: Pace::Fleet(Speed::new(4, 1).unwrap()),
        end_ns: Some(40 * MS),
        fleet_end_ns: None,
    };
    let live = Live::new(2);
    let workers = timetable.roster.split(2).into_iter().map(|groups| Worker {
        groups: groups.clone(),
        source: Fill::new(move |slot: &Slot, into: &mut BatchBuf| {
            assert!(groups.contains(&slot.group));
            row(slot, into);
        }),
        target: accept,
    });
    let stop = AtomicBool::new(false);
    let run_of = Run {
        clock: &clock,
        timetable: &timetable,
        stop: &stop,
        live: &live,
        settings: Settings {
            warmup_ns: 20 * MS,
            grace_ns: 60 * SECOND_NS,
            ..Settings::default()
        },
    };
    let report = run(&run_of, workers.collect()).unwrap();
    assert!(report.workers.iter().all(|worker| worker.ended == Ended::Planned));
    // 4 groups, every ms of wall time each, for 40 ms; half of it warm.
    assert_eq!(report.counts.done.operations, 160);
    assert_eq!(report.latency.response.total.count(), 80);
    assert!(report.elapsed_ns() >= 40 * MS);
    let cpu = report.cpu();
    assert!(cpu.send_ns > 0 && cpu.generate_ns > 0 && cpu.pace_ns > 0, "{cpu:?}");
    let parts = cpu.generate_ns + cpu.pace_ns + cpu.send_ns + cpu.measure_ns;
    assert_eq!(parts, cpu.total_ns);
    for worker in &report.workers {
        for group in worker.groups.clone() {
            assert_eq!(worker.issued_ticks(&timetable, group), 0..40);
            assert!(worker.unsent_ticks(&timetable, group).is_empty());
        }
    }
}
