//! A client that is driven directly, with many writes in flight: what its report says of servers
//! that answer late, in another order, or not at all.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

mod client;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use client::{Answer, connect, connect_in_order, for_run};
use tsb_core::ledger::Counter;
use tsb_core::report::Run;
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::verdict::Status;
use tsb_core::workload::BatchMode;
use tsb_run::journal::Journal;
use tsb_run::{AskedRate, Controls, Plan, StoreTimeouts, Transport, run_client, run_store};
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::{AsyncStore, Store};

const MS: Duration = Duration::from_millis(1);

/// Samples of an operation: the series of a host.
const SAMPLES: u64 = 54;

/// 1,000 operations per second: 100 hosts, whose time passes ten times as fast.
fn plan(duration_ns: u64, in_flight: usize) -> Plan {
    let mut plan = Plan {
        transport: Transport::Inproc,
        duration_ns: Some(duration_ns),
        rate: AskedRate::PerSecond(1_000 * SAMPLES),
        in_flight: Some(in_flight),
        calibrate: false,
        ..Plan::default()
    };
    plan.workload.fleet = "mix".parse().unwrap();
    plan.workload.series = Some(100 * SAMPLES as usize);
    plan.complete().unwrap()
}

fn run(plan: &Plan, client: &Arc<dyn AsyncStore>) -> Run {
    run_client(plan, client, &Controls::default()).unwrap().run
}

fn count(run: &Run, counter: Counter) -> u64 {
    run.ledger.counts.get(counter).unwrap_or(0)
}

/// Every sample that was due is in exactly one of the ledger's counts.
fn assert_balanced(run: &Run) {
    assert!(run.ledger.violated.is_empty(), "{:?}", run.ledger.violated);
    assert!(run.ledger.counts.is_balanced(), "{:?}", run.ledger.counts);
}

fn p99_ns(latency: &tsb_core::latency::Summary) -> u64 {
    latency.p99_ns.unwrap_or(u64::MAX)
}

#[test]
fn many_writes_are_in_flight_and_each_is_timed_and_read_back() {
    let server = connect(|_| Answer::After(20 * MS));
    let plan = Plan {
        workers: 2,
        ..plan(SECOND_NS, 64)
    };
    let run = run(&plan.complete().unwrap(), &for_run(&server));
    assert_balanced(&run);
    assert_eq!(run.latency.response.count, 1_000);
    assert_eq!(count(&run, Counter::Verified), 1_000 * SAMPLES);
    let fastest_ms = run.latency.service.p50_ns.unwrap() / 1_000_000;
    assert!(fastest_ms >= 20, "{fastest_ms}");
    // 1,000 per second for 20 ms each.
    let most = server.client().most.load(Ordering::Relaxed);
    assert!((10..=64).contains(&most), "{most}");
    assert!(
        run.notes
            .iter()
            .any(|note| note.contains("of 64 writes were in flight")),
        "{:?}",
        run.notes
    );
}

#[test]
fn a_server_that_stalls_delays_its_answers_and_nothing_else() {
    const STALL: Duration = Duration::from_secs(2);
    let run_with = |in_flight| {
        // The hundredth write and those behind it are answered when the stall is over.
        let clock = MonotonicClock::new();
        let begun = std::sync::OnceLock::new();
        let server = connect(move |number| {
            if number < 100 {
                return Answer::After(Duration::ZERO);
            }
            let begun_ns = *begun.get_or_init(|| clock.now());
            Answer::After(STALL.saturating_sub(Duration::from_nanos(clock.now() - begun_ns)))
        });
        run(&plan(3 * SECOND_NS, in_flight), &for_run(&server))
    };
    let roomy = run_with(4_096);
    assert_balanced(&roomy);
    assert_eq!(roomy.latency.response.count, 3_000);
    assert!(
        roomy.latency.response.max_ns.unwrap() >= 1_990_000_000,
        "{:?}",
        roomy.latency.response
    );
    let mut in_process = plan(SECOND_NS, 1);
    in_process.in_flight = None;
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new(MemoryOptions::default()));
    let memory = run_store(&in_process, &memory, &Controls::default()).unwrap().run;
    println!("lag with a stall of 2 s: {:?}", roomy.latency.lag);
    println!("lag of a store in memory: {:?}", memory.latency.lag);
    assert!(p99_ns(&roomy.latency.lag) < 100_000_000, "{:?}", roomy.latency.lag);
    let narrow = run_with(1);
    assert_balanced(&narrow);
    assert!(
        narrow.latency.lag.max_ns.unwrap() >= 1_900_000_000,
        "{:?}",
        narrow.latency.lag
    );
    assert!(narrow.latency.service.count <= narrow.latency.lag.count);
}

#[test]
fn time_outs_and_late_answers_are_each_counted_once_and_settled_by_reading_back() {
    // Of ten writes one times out without an effect, and one has an effect although it timed out.
    let server = connect(|number| match number % 10 {
        3 => Answer::TimesOut(30 * MS, false),
        6 => Answer::TimesOut(30 * MS, true),
        _ => Answer::After(5 * MS),
    });
    let run = run(&plan(SECOND_NS, 128), &for_run(&server));
    assert_balanced(&run);
    assert_eq!(count(&run, Counter::Unknown), 200 * SAMPLES);
    assert_eq!(count(&run, Counter::LostInTransport), 100 * SAMPLES);
    assert_eq!(count(&run, Counter::Accepted), 900 * SAMPLES);
    assert_eq!(count(&run, Counter::Verified), 900 * SAMPLES);
    assert_eq!(run.latency.response.count, 800);
    assert!(run.verdict.status > Status::Unverified, "{:?}", run.verdict);
}

#[test]
fn a_server_that_fails_twice_and_comes_back_costs_what_was_sent_meanwhile() {
    let server = connect(|number| match number {
        200..300 | 500..650 => Answer::Unreachable,
        _ => Answer::After(MS),
    });
    let run = run(&plan(SECOND_NS, 64), &for_run(&server));
    assert_balanced(&run);
    assert_eq!(count(&run, Counter::Shed), 250 * SAMPLES);
    assert_eq!(count(&run, Counter::Sent), 750 * SAMPLES);
    assert_eq!(count(&run, Counter::Verified), 750 * SAMPLES);
    let sent: u64 = run.intervals.iter().map(|interval| interval.sent).sum();
    assert_eq!(sent, 750 * SAMPLES);
}

#[test]
fn a_write_that_is_never_answered_is_unknown_and_named() {
    let server = connect(|number| match number {
        500 => Answer::Never,
        _ => Answer::After(MS),
    });
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.journal");
    let controls = Controls {
        store_timeouts: StoreTimeouts::of(Duration::from_millis(300)).unwrap(),
        journal: Some(Arc::new(Journal::named(&path))),
        ..Controls::default()
    };
    let run = run_client(&plan(SECOND_NS, 64), &for_run(&server), &controls)
        .unwrap()
        .run;
    assert_eq!(run.verdict.status, Status::Unverified, "{:?}", run.verdict);
    assert_balanced(&run);
    assert_eq!(count(&run, Counter::Due), 1_000 * SAMPLES);
    assert_eq!(count(&run, Counter::Confirmed), 999 * SAMPLES);
    assert_eq!(count(&run, Counter::Unknown), SAMPLES);
    let named = run.exceptions.as_ref().unwrap();
    let [operation] = named.operations.as_slice() else {
        panic!("{named:?}")
    };
    assert_eq!((operation.groups, operation.end_tick - operation.first_tick), (1, 1));
    assert_eq!(named.operations_unnamed + named.never_arrived, 0, "{named:?}");
    // Half of the operations came behind it and were answered: the journal claims none of them.
    let journal = tsb_run::journal::read(&path).unwrap();
    let claims = &journal.sections[0].reached.levels;
    let claimed = claims[0].operations[0];
    assert!((400..=510).contains(&claimed), "{claims:?}");
}

#[test]
fn a_failure_ends_the_run_and_so_does_a_panic() {
    for answer in [Answer::Breaks, Answer::Panics] {
        let server = connect(move |number| if number == 300 { answer } else { Answer::After(5 * MS) });
        let run = run(&plan(30 * SECOND_NS, 64), &for_run(&server));
        assert_eq!(run.verdict.status, Status::Invalid);
        let reasons = format!("{:?}", run.verdict.reasons);
        assert!(
            reasons.contains("the disk is gone") || reasons.contains("panicked in write"),
            "{reasons}"
        );
        assert!(run.duration_ns < 10 * SECOND_NS, "{}", run.duration_ns);
        assert_eq!(count(&run, Counter::Unknown), SAMPLES, "{:?}", run.ledger.counts);
    }
}

#[test]
fn a_server_that_refuses_late_samples_gets_each_series_in_order() {
    // Later writes are answered faster: without an order they would overtake.
    let server = connect_in_order(|number| Answer::After((11 - (number % 11) as u32) * 4 * MS));
    let mut plan = plan(SECOND_NS, 256);
    // Two hosts, each of which reports every 5 ms or so.
    plan.workload.series = Some(100);
    plan.rate = AskedRate::PerSecond(20_000);
    let run = run(&plan, &for_run(&server));
    assert_balanced(&run);
    assert!(run.verdict.status > Status::Unverified, "{:?}", run.verdict);
    assert_eq!(count(&run, Counter::Accepted), count(&run, Counter::Verified));
}

#[test]
fn a_stop_ends_the_wait_for_a_free_place() {
    let server = connect(|_| Answer::TimesOut(Duration::from_millis(700), false));
    let controls = Controls::default();
    let stop = Arc::clone(&controls.stops.stop);
    let stopping = std::thread::spawn(move || {
        let clock = MonotonicClock::new();
        clock.wait_until(2 * SECOND_NS);
        stop.store(true, Ordering::SeqCst);
    });
    let run = run_client(&plan(60 * SECOND_NS, 1), &for_run(&server), &controls)
        .unwrap()
        .run;
    stopping.join().unwrap();
    assert!(run.interrupted);
    assert_balanced(&run);
    assert!(run.duration_ns < 10 * SECOND_NS, "{}", run.duration_ns);
}

#[test]
fn a_bound_is_refused_where_it_has_no_effect_or_is_too_small() {
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new(MemoryOptions::default()));
    let refused = run_store(&plan(SECOND_NS, 8), &memory, &Controls::default()).unwrap_err();
    let words = format!("{refused:?}");
    assert!(
        words.contains("--in-flight") && words.contains("before its call returns"),
        "{words}"
    );
    let over_tcp = Plan {
        transport: Transport::Tcp,
        ..plan(SECOND_NS, 8)
    };
    let too_few = Plan {
        workers: 4,
        ..plan(SECOND_NS, 3)
    };
    for (plan, why) in [(over_tcp, "nothing is answered"), (too_few, "--workers, 4")] {
        let words = format!("{:?}", plan.complete().unwrap_err());
        assert!(words.contains(why), "{words}");
    }
}

#[test]
fn a_hundred_thousand_writes_in_flight_take_bounded_memory() {
    const WRITES: usize = 100_000;
    let server = connect(|_| Answer::After(Duration::from_secs(4)));
    let mut plan = plan(SECOND_NS, WRITES);
    plan.rate = AskedRate::PerSecond(2_000_000);
    plan.workload.series = Some(10_800);
    plan.workload.batch = BatchMode::Series(10);
    plan.verify = false;
    let before = rss_bytes();
    let run = run(&plan, &for_run(&server));
    let peak = peak_rss_bytes();
    assert_balanced(&run);
    let most = server.client().most.load(Ordering::Relaxed);
    println!("{most} writes in flight took {} MB", (peak - before) / 1_000_000);
    assert_eq!(most, WRITES as u64);
    assert!(peak - before < 400_000_000, "{before} to {peak}");
}

/// A figure of `/proc/self/status`, in bytes.
fn status_bytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    digits.parse::<u64>().unwrap() * 1_024
}

fn rss_bytes() -> u64 {
    status_bytes("VmRSS:")
}

fn peak_rss_bytes() -> u64 {
    status_bytes("VmHWM:")
}
