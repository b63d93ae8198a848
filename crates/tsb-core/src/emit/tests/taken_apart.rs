//! Each part of a response time lies where it was put: in the store, behind other operations, or in
//! the generator.

use super::*;
use crate::breakdown::WORST_MAX;
use crate::report::{BreakdownReport, KnownParts};

/// Runs one worker in virtual time; `prepare_ns` and `store_ns` say what operation `tick` takes.
fn run_with(
    timetable: &Timetable,
    prepare_ns: impl Fn(u64) -> u64 + Sync,
    store_ns: impl Fn(u64) -> u64 + Sync,
) -> Latency {
    let clock = ManualClock::new();
    let (stop, live) = (AtomicBool::new(false), Live::new(1));
    let run_of = Run {
        clock: &clock,
        timetable,
        stop: &stop,
        live: &live,
        settings: Settings {
            start_ns: Some(0),
            grace_ns: SECOND_NS,
            ..Settings::default()
        },
    };
    let source = Fill::new(|slot: &Slot, into: &mut BatchBuf| {
        clock.advance(prepare_ns(slot.tick));
        row(slot, into);
    });
    let target = |operation: &Operation<'_>| {
        clock.advance(store_ns(operation.slot.tick));
        accept(operation)
    };
    let worker = Worker {
        groups: 0..1,
        source,
        target,
    };
    run(&run_of, vec![worker]).unwrap().latency
}

fn report(latency: &Latency) -> BreakdownReport {
    let response = &latency.response.total;
    let report = BreakdownReport::new(KnownParts::Store, &latency.breakdown, response, 0).unwrap();
    for one in &report.quantiles {
        let shares = one.shares;
        let sum = shares.waiting + shares.late + shares.store.unwrap();
        assert!((sum - 1.0).abs() < 1e-9, "{one:?}");
        assert!((one.from_ns..=one.to_ns).contains(&one.response_ns), "{one:?}");
        assert_eq!((shares.encoding, shares.transport, shares.unknown), (None, None, None));
    }
    for one in &report.worst {
        let parts = one.parts;
        assert_eq!(
            parts.waiting_ns + parts.late_ns + parts.store_ns.unwrap(),
            one.response_ns
        );
    }
    report
}

#[test]
fn a_stall_is_the_stores_share_and_what_was_due_meanwhile_waited() {
    // 10 us each, and 10 ms one time in a hundred: the nine behind it are late by 9, 8, ... 1 ms.
    let stalls = |tick: u64| if tick % 100 == 50 { 10 * MS } else { 10_000 };
    let latency = run_with(&thousand_per_second(20 * SECOND_NS), |_| 0, stalls);
    let report = report(&latency);
    let of = |quantile: f64| report.quantiles.iter().find(|one| one.quantile == quantile).unwrap();
    assert_eq!(of(0.5).shares.store, Some(1.0));
    // Of a hundred operations ten are slow: p99 is the one of 9 ms, which waited.
    let p99 = of(0.99);
    assert!((8 * MS..10 * MS).contains(&p99.response_ns), "{p99:?}");
    assert!(p99.shares.waiting > 0.99 && p99.shares.late == 0.0, "{p99:?}");
    let max = of(1.0);
    assert_eq!(
        (max.response_ns, max.operations, max.shares.store),
        (10 * MS, 1, Some(1.0))
    );
    // The hundred slowest are hundred of the two hundred that stalled, and not one that waited.
    assert_eq!(report.worst.len(), WORST_MAX);
    for (index, one) in report.worst.iter().enumerate() {
        assert_eq!((one.tick, one.parts.store_ns), (50 + 100 * index as u64, Some(10 * MS)));
        assert_eq!(one.due_ns, one.tick * MS);
    }
}

#[test]
fn a_pause_of_the_generator_is_its_own_lateness() {
    // The generator stands still for 300 ms before one operation of a run of three seconds, so the
    // 300 behind it are late, too: a tenth of all. The store takes 500 us each time.
    let pause = |tick: u64| if tick == 1_000 { 300 * MS } else { 0 };
    let latency = run_with(&thousand_per_second(3 * SECOND_NS), pause, |_| 500_000);
    let report = report(&latency);
    let p99 = report.quantiles.iter().find(|one| one.quantile == 0.99).unwrap();
    let max = report.quantiles.last().unwrap();
    assert!((299 * MS..=301 * MS).contains(&max.response_ns), "{max:?}");
    assert!(max.shares.late > 0.99 && max.shares.waiting == 0.0, "{max:?}");
    // While it catches up, each also waits for the store, which takes half of the time.
    let put_late = (300.0 - 0.5) / 300.0;
    assert!(p99.shares.late > 0.9 * put_late, "{p99:?}");
}

#[test]
fn a_closed_loop_has_the_store_and_nothing_else() {
    let timetable = Timetable {
        pace: Pace::Shape(Schedule::Unpaced),
        ..thousand_per_second(SECOND_NS)
    };
    let latency = run_with(&timetable, |_| 3_000, |_| 20_000);
    let report = report(&latency);
    for one in &report.quantiles {
        assert_eq!(
            (one.shares.waiting, one.shares.late, one.shares.store),
            (0.0, 0.0, Some(1.0))
        );
    }
}
