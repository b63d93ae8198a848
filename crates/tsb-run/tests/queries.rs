//! Queries beside writes: right answers are right over every wire and with every disturbance, and
//! each wrong one is found.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::sync::Arc;

use tsb_core::ledger::Counter;
use tsb_core::report::Run;
use tsb_core::time::{MonotonicClock, SECOND_NS};
use tsb_core::verdict::Status;
use tsb_core::wire::Protocol;
use tsb_core::workload::{Churn, ChurnMode, Jitter};
use tsb_run::plan::QueryStream;
use tsb_run::{AskedRate, Controls, Plan, Transport, run_store};
use tsb_stores::Store;
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::throttle::{Throttle, ThrottleOptions};

/// All kinds, each often enough to be asked in half a second.
const ALL: &str = "last@200/s,many=last(series=5)@50/s,q1@100/s,q2@50/s,range(30s)@100/s,downsample(by=sum)@50/s,double-groupby@50/s,\
     high-cpu(span=2m,above=50)@50/s,outside(span=30s)@50/s,stats(span=1m,series=2)@50/s,difference@50/s";

fn plan(queries: &str, change: impl FnOnce(&mut Plan)) -> Plan {
    let mut plan = Plan {
        transport: Transport::Inproc,
        queries: QueryStream::parse_list(queries).unwrap(),
        duration_ns: Some(SECOND_NS / 2),
        // Ten minutes of fleet time in half a second.
        rate: AskedRate::PerSecond(540 * 1_200),
        report_interval_ns: SECOND_NS / 10,
        calibrate: false,
        ..Plan::default()
    };
    plan.workload.series = Some(540);
    change(&mut plan);
    plan.complete().unwrap()
}

fn memory(options: MemoryOptions) -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(options))
}

fn throttled(options: ThrottleOptions) -> Arc<Throttle<MemoryStore>> {
    let inner = MemoryStore::new(MemoryOptions::default());
    Arc::new(Throttle::new(inner, options, Arc::new(MonotonicClock::new())).unwrap())
}

fn run(plan: &Plan, store: &Arc<dyn Store>) -> Run {
    run_store(plan, store, &Controls::default()).unwrap().run
}

/// Every stream of a run was answered, and nothing of it was wrong or beyond judgement.
fn assert_right(run: &Run, what: &str) {
    assert!(!run.query_latency.is_empty());
    for (name, stream) in &run.query_latency {
        assert!(stream.answers > 0, "{what}: {name}: {stream:?}");
        assert_eq!((stream.wrong, stream.unjudged), (0, 0), "{what}: {name}: {stream:?}");
        assert_eq!(stream.response.count, stream.answers, "{what}: {name}: {stream:?}");
        assert!(
            stream.rows > 0 && stream.response.max_ns.is_some(),
            "{what}: {name}: {stream:?}"
        );
    }
    let violations = &run.ledger.violated;
    assert!(violations.is_empty(), "{what}: {violations:?}");
    assert_ne!(run.verdict.status, Status::Invalid, "{what}: {:?}", run.verdict);
}

#[test]
fn right_answers_are_right_over_every_wire() {
    for (transport, protocol) in [
        (Transport::Inproc, Protocol::Tsb),
        (Transport::Tcp, Protocol::Tsb),
        (Transport::Tcp, Protocol::Graphite),
        (Transport::Unix, Protocol::Influx),
        (Transport::Http, Protocol::Influx),
    ] {
        let plan = plan(ALL, |plan| {
            (plan.transport, plan.protocol) = (transport, protocol);
            plan.workers = 2;
            plan.query_workers = 2;
        });
        let run = run(&plan, &memory(MemoryOptions::default()));
        assert_right(&run, &format!("{transport:?} {protocol}"));
    }
}

#[test]
fn no_disturbance_of_the_fleet_makes_a_right_answer_wrong() {
    type Change = fn(&mut Plan);
    let disturbances: [(&str, Change); 5] = [
        ("late", |plan| plan.workload.disorder.late = 0.05),
        ("missing, twice, swapped", |plan| {
            let disorder = &mut plan.workload.disorder;
            (disorder.missing, disorder.duplicate, disorder.out_of_order) = (0.1, 0.05, 0.05);
        }),
        ("jitter", |plan| plan.workload.jitter = Jitter::up_to(SECOND_NS / 2)),
        ("churn", |plan| {
            plan.workload.churn = Some(Churn {
                mode: ChurnMode::Steady {
                    lifetime_ns: 60 * SECOND_NS,
                },
                horizon_ns: 0,
                unit: 54,
            });
        }),
        ("as fast as possible", |plan| plan.rate = AskedRate::Max),
    ];
    for (what, change) in disturbances {
        let run = run(&plan(ALL, change), &memory(MemoryOptions::default()));
        assert_right(&run, what);
    }
}

#[test]
fn samples_that_expire_are_not_missed() {
    let options = MemoryOptions {
        retention_ns: Some(60 * SECOND_NS as i64),
        ..MemoryOptions::default()
    };
    let run = run(&plan(ALL, |_| {}), &memory(options));
    assert_right(&run, "retention");
}

#[test]
fn samples_that_were_refused_are_not_missed() {
    let refusing = throttled(ThrottleOptions {
        error_one_in: Some(50),
        ..ThrottleOptions::default()
    });
    let run = run(&plan(ALL, |_| {}), &(refusing as Arc<dyn Store>));
    assert_right(&run, "refused");
    assert!(run.ledger.rejected_by_reason.contains_key("injected"));
}

#[test]
fn each_wrong_answer_is_counted_and_named() {
    for transport in [Transport::Inproc, Transport::Tcp] {
        let lying = throttled(ThrottleOptions {
            wrong_one_in: Some(20),
            ..ThrottleOptions::default()
        });
        let store = Arc::clone(&lying) as Arc<dyn Store>;
        let plan = plan(
            "last@400/s,q1@200/s,q2@100/s,range(30s)@200/s,high-cpu(30s)@50/s,outside(30s)@50/s,stats(30s)@50/s,difference@50/s",
            |plan| {
                plan.transport = transport;
                // What is read back would be answered wrong, too.
                plan.verify = false;
            },
        );
        let run = run(&plan, &store);
        let told = lying.faults().wrong.len() as u64;
        let streams = || run.query_latency.values();
        let (wrong, named): (u64, usize) = (
            streams().map(|stream| stream.wrong).sum(),
            streams().map(|stream| stream.wrong_answers.len()).sum(),
        );
        assert!(told > 5, "{told}");
        assert_eq!((wrong, named as u64), (told, told), "{transport:?}");
        for answer in streams().flat_map(|stream| &stream.wrong_answers) {
            assert!(answer.expected != answer.came && answer.after_ns > 0, "{answer:?}");
            assert!(!answer.series.starts_with('#'), "{answer:?}");
        }
        assert_eq!(run.verdict.status, Status::Invalid);
        let said = run
            .verdict
            .reasons
            .iter()
            .any(|reason| reason.contains("answers to q1 were wrong"));
        assert!(said, "{:?}", run.verdict.reasons);
    }
}

#[test]
fn a_store_that_forgets_what_it_acknowledged_is_caught_while_it_is_written() {
    let forgetful = throttled(ThrottleOptions {
        lose_one_in: Some(100),
        ..ThrottleOptions::default()
    });
    let plan = plan("range(30s)@200/s", |plan| plan.verify = false);
    let run = run(&plan, &(forgetful as Arc<dyn Store>));
    let stream = &run.query_latency["range(span=30s)"];
    assert!(stream.wrong > 0, "{stream:?}");
    assert!(stream.wrong_answers[0].came.contains("nothing there"), "{stream:?}");
    assert_eq!(run.verdict.status, Status::Invalid);
}

#[test]
fn closed_loops_ask_until_the_writes_end_and_cost_a_part_of_their_own() {
    let plan = plan("q1@max,last@100/s", |plan| {
        plan.duration_ns = None;
        plan.fleet_time_ns = Some(600 * SECOND_NS);
    });
    let run = run(&plan, &memory(MemoryOptions::default()));
    assert_right(&run, "fleet time");
    let (closed, open) = (&run.query_latency["q1"], &run.query_latency["last"]);
    assert!(closed.asked_per_second.is_none() && closed.lag.is_none());
    assert!(
        closed.response.count > open.response.count,
        "{} {}",
        closed.response.count,
        open.response.count
    );
    assert!(open.asked_per_second.is_some_and(|asked| asked > 80.0), "{open:?}");
    assert!(run.cost.queries_cpu_ns_per_sample.is_some_and(|ns| ns > 0.0));
    assert_eq!(closed.query, "q1@max");
}

#[test]
fn queries_whose_answers_nobody_can_check_are_refused() {
    let plan = plan("last@1/s", |plan| plan.transport = Transport::Udp);
    let refused = run_store(&plan, &memory(MemoryOptions::default()), &Controls::default());
    let said = format!("{:?}", refused.unwrap_err());
    assert!(said.contains("over udp may be lost"), "{said}");
}

#[test]
fn a_history_is_counted_read_back_and_asked_for() {
    for transport in [Transport::Inproc, Transport::Tcp] {
        let plan = plan(ALL, |plan| {
            plan.transport = transport;
            plan.rate = AskedRate::Natural;
            plan.preload_ns = Some(7_200 * SECOND_NS);
            plan.workload.series = Some(108);
            plan.workload.disorder.missing = 0.01;
        });
        let run = run(&plan, &memory(MemoryOptions::default()));
        assert_right(&run, &format!("{transport:?}"));
        let preload = run.preload.unwrap();
        assert_eq!((preload.length_ns, preload.rejected), (7_200 * SECOND_NS, 0));
        assert!((760_000..780_000).contains(&preload.accepted), "{preload:?}");
        let counts = &run.ledger.counts;
        assert!(counts.is_balanced(), "{:?}", run.ledger);
        let verified = counts.count(Counter::Verified);
        assert!(
            verified > preload.accepted && verified < preload.accepted + 1_000,
            "{verified}"
        );
        // Rates are of the run alone.
        assert!(run.rate.held_per_second < 1_000.0, "{:?}", run.rate);
        // An hour at a sample per second, each minute of it; and both its ends.
        let stream = &run.query_latency["q1"];
        let rows = stream.rows as f64 / stream.answers as f64;
        assert!((59.0..=61.0).contains(&rows), "{stream:?}");
    }
}
