//! Runs over HTTP with several requests outstanding, into a listener of their own.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::sync::Arc;

use tsb_core::ledger::Counter;
use tsb_core::report::Run;
use tsb_core::time::{MonotonicClock, SECOND_NS};
use tsb_core::verdict::Status;
use tsb_core::wire::Protocol;
use tsb_core::workload::BatchMode;
use tsb_run::plan::QueryStream;
use tsb_run::{AskedRate, Controls, Plan, Transport, run_store};
use tsb_stores::Store;
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::throttle::{Throttle, ThrottleOptions};

/// Samples of an operation: the series of a host.
const SAMPLES: u64 = 54;

/// Operations per second: 50 hosts, whose time passes ten times as fast.
const OPERATIONS: u64 = 500;

fn plan(duration_ns: u64, in_flight: usize, connections: usize) -> Plan {
    let mut plan = Plan {
        transport: Transport::Http,
        protocol: Protocol::Influx,
        duration_ns: Some(duration_ns),
        rate: AskedRate::PerSecond(OPERATIONS * SAMPLES),
        in_flight: Some(in_flight),
        calibrate: false,
        ..Plan::default()
    };
    plan.wire.connections = Some(connections);
    plan.workload.fleet = "mix".parse().unwrap();
    plan.workload.series = Some(50 * SAMPLES as usize);
    plan
}

fn memory() -> MemoryStore {
    MemoryStore::new(MemoryOptions::default())
}

fn run(plan: Plan, store: impl Store) -> Run {
    let store: Arc<dyn Store> = Arc::new(store);
    run_store(&plan.complete().unwrap(), &store, &Controls::default())
        .unwrap()
        .run
}

fn count(run: &Run, counter: Counter) -> u64 {
    run.ledger.counts.get(counter).unwrap_or(0)
}

fn assert_balanced(run: &Run) {
    assert!(run.ledger.violated.is_empty(), "{:?}", run.ledger.violated);
    assert!(run.ledger.counts.is_balanced(), "{:?}", run.ledger.counts);
}

/// A store that takes nothing for two seconds, one second after it was made.
fn stalling() -> impl Store {
    let options = ThrottleOptions {
        stall_first_ns: Some(SECOND_NS),
        stall_for_ns: Some(2 * SECOND_NS),
        ..ThrottleOptions::default()
    };
    Throttle::new(memory(), options, Arc::new(MonotonicClock::new())).unwrap()
}

#[test]
fn requests_of_several_workers_share_connections_and_all_samples_are_read_back() {
    for protocol in [Protocol::Influx, Protocol::KairosdbJson] {
        let mut plan = Plan {
            workers: 2,
            protocol,
            ..plan(SECOND_NS, 32, 5)
        };
        if protocol == Protocol::KairosdbJson {
            // It carries no labels of the mix.
            plan.workload.fleet = "kstat".parse().unwrap();
        }
        plan.wire.gzip = true;
        let run = run(plan, memory());
        assert_balanced(&run);
        assert!(count(&run, Counter::Due) > 0);
        assert_eq!(
            count(&run, Counter::Verified),
            count(&run, Counter::Due),
            "{:?}",
            run.ledger.counts
        );
        assert!(run.verdict.status > Status::Unverified, "{:?}", run.verdict);
        assert_eq!(run.latency.response.count, run.latency.lag.count);
        let said = run
            .notes
            .iter()
            .any(|note| note.contains("of 32 writes were in flight"));
        assert!(said, "{:?}", run.notes);
    }
}

#[test]
fn a_listener_that_stalls_delays_its_answers_and_not_the_schedule() {
    let roomy = run(plan(4 * SECOND_NS, 4_096, 8), stalling());
    assert_balanced(&roomy);
    let (response, lag) = (&roomy.latency.response, &roomy.latency.lag);
    assert_eq!(count(&roomy, Counter::Verified), 4 * OPERATIONS * SAMPLES);
    assert_eq!(response.count, 4 * OPERATIONS);
    // A stall of 2 s makes slow answers of all that was due in it, not of one.
    assert!(response.p90_ns.unwrap() > SECOND_NS / 2, "{response:?}");
    assert!(response.max_ns.unwrap() > SECOND_NS, "{response:?}");
    println!("lag with a stall of 2 s: {lag:?}");
    assert!(lag.p99_ns.unwrap() < SECOND_NS / 10, "{lag:?}");
    // With room for eight, what is due behind them waits.
    let narrow = run(plan(4 * SECOND_NS, 8, 8), stalling());
    assert_balanced(&narrow);
    assert!(
        narrow.latency.lag.max_ns.unwrap() > SECOND_NS,
        "{:?}",
        narrow.latency.lag
    );
}

#[test]
fn order_is_kept_where_two_samples_may_have_one_timestamp() {
    // Two ticks may get one timestamp, and the later sample replaces the earlier.
    let mut plan = plan(2 * SECOND_NS, 64, 8);
    plan.workload.jitter.max_ns = 9 * SECOND_NS / 10;
    plan.workload.resolution_ns = SECOND_NS / 2;
    let run = run(plan, memory());
    assert_balanced(&run);
    assert!(run.verdict.status > Status::Unverified, "{:?}", run.verdict);
    assert_eq!(count(&run, Counter::Lost) + count(&run, Counter::Altered), 0);
}

#[test]
fn a_hundred_thousand_requests_behind_a_stall_take_bounded_memory() {
    let mut plan = plan(SECOND_NS, 100_000, 8);
    // 1,000 operations for each second of the fleet, as fast as they can be handed over.
    plan.workload.series = Some(10_000);
    plan.workload.batch = BatchMode::Series(10);
    (plan.rate, plan.duration_ns) = (AskedRate::Max, None);
    plan.fleet_time_ns = Some(100 * SECOND_NS);
    let options = ThrottleOptions {
        stall_first_ns: Some(0),
        stall_for_ns: Some(6 * SECOND_NS),
        ..ThrottleOptions::default()
    };
    let store = Throttle::new(memory(), options, Arc::new(MonotonicClock::new())).unwrap();
    let run = run(plan, store);
    let peak = peak_rss_bytes();
    let in_flight = run.notes.iter().find(|note| note.contains("writes were in flight"));
    println!("{in_flight:?}, {} MB", peak / 1_000_000);
    assert_balanced(&run);
    assert_eq!(count(&run, Counter::Verified), count(&run, Counter::Sent));
    assert!(run.latency.response.count >= 100_000);
    assert!(peak < 900_000_000, "{peak}");
}

fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    digits.parse::<u64>().unwrap() * 1_024
}

#[test]
fn what_requests_in_flight_exclude_is_refused_with_a_reason() {
    let mut queried = plan(SECOND_NS, 8, 8);
    queried.queries = QueryStream::parse_list("last@10/s").unwrap();
    let store: Arc<dyn Store> = Arc::new(memory());
    let refused = run_store(&queried.complete().unwrap(), &store, &Controls::default()).unwrap_err();
    let words = format!("{refused:?}");
    assert!(
        words.contains("in any order") && words.contains("leave out --in-flight"),
        "{words}"
    );
    let over_tcp = Plan {
        transport: Transport::Tcp,
        protocol: Protocol::Graphite,
        ..plan(SECOND_NS, 8, 8)
    };
    let no_bound = Plan {
        in_flight: None,
        ..over_tcp.clone()
    };
    let too_many = plan(SECOND_NS, 8, 1_025);
    for (plan, why) in [
        (over_tcp, "--connections"),
        (no_bound, "--connections"),
        (too_many, "from 1 to 1024"),
    ] {
        let words = format!("{:?}", plan.complete().unwrap_err());
        assert!(words.contains(why), "{words}");
    }
}
