//! What a run says of time: delivery and service, staleness, asked and held.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tsb_cli::args::RunOptions;
use tsb_cli::plan::Plan;
use tsb_cli::run::{Finished, Hooks, run_store};
use tsb_core::report::Run;
use tsb_core::time::MonotonicClock;
use tsb_stores::Store;
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::throttle::{Throttle, ThrottleOptions};

/// The memory store behind a throttle.
fn throttled(options: ThrottleOptions) -> Arc<dyn Store> {
    let memory = MemoryStore::new(MemoryOptions::default());
    Arc::new(Throttle::new(memory, options, Arc::new(MonotonicClock::new())).unwrap())
}

fn memory() -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(MemoryOptions::default()))
}

fn options(change: impl FnOnce(&mut RunOptions)) -> RunOptions {
    let mut options = RunOptions {
        workload: Some("mix".to_owned()),
        series: Some("2160".to_owned()),
        duration: Some("500ms".to_owned()),
        transport: Some("inproc".to_owned()),
        no_calibrate: Some(true),
        ..RunOptions::default()
    };
    change(&mut options);
    options
}

fn finish(store: &Arc<dyn Store>, change: impl FnOnce(&mut RunOptions)) -> Finished {
    let mut plan = Plan::default();
    plan.apply(&options(change)).unwrap();
    let plan = plan.complete().unwrap();
    run_store(&plan, store, &Hooks::new(Arc::new(AtomicBool::new(false)), true)).unwrap()
}

fn run(store: &Arc<dyn Store>, change: impl FnOnce(&mut RunOptions)) -> Run {
    finish(store, change).run
}

#[test]
fn what_waits_in_a_socket_is_delivery_and_not_service() {
    // Five times too slow: most operations wait in the socket, each for many others.
    for transport in ["tcp", "unix", "unixgram"] {
        let slow = throttled(ThrottleOptions {
            rate_per_second: Some(20_000),
            ..ThrottleOptions::default()
        });
        let latency = run(&slow, |options| {
            options.rate = Some("100k".to_owned());
            options.transport = Some(transport.to_owned());
        })
        .latency;
        let delivery = latency.delivery.unwrap();
        assert!(delivery.count > 100, "{transport}: {delivery:?}");
        assert_eq!(
            (delivery.count, latency.service.count),
            (latency.response.count, latency.response.count),
            "{transport}"
        );
        assert!(
            latency.service.p50_ns.unwrap() * 10 < delivery.max_ns.unwrap(),
            "{transport}: service {:?}, delivery {delivery:?}",
            latency.service
        );
        assert!(
            delivery.max_ns.unwrap() <= latency.response.max_ns.unwrap(),
            "{transport}: {latency:?}"
        );
        assert!(latency.curves.unwrap().delivery.is_some());
    }
}

#[test]
fn only_a_wire_without_answers_has_a_delivery() {
    for (transport, protocol) in [("inproc", "tsb"), ("http", "influx")] {
        let finished = finish(&memory(), |options| {
            options.transport = Some(transport.to_owned());
            options.protocol = Some(protocol.to_owned());
        });
        let latency = &finished.run.latency;
        assert!(latency.service.count > 0 && latency.delivery.is_none(), "{latency:?}");
        assert_eq!(finished.driven.delivery.total.count(), 0, "{transport}");
    }
}
