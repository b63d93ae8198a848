//! A store with a known stall: the stall is the store's share, what was due meanwhile waited, and
//! the slowest operations name what held them back.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::sync::Arc;

use tsb_core::report::{BreakdownReport, EventKind, QuantileShares, SlowOperation};
use tsb_core::time::{MonotonicClock, SECOND_NS};
use tsb_run::{AskedRate, Controls, Plan, Transport, run_store};
use tsb_stores::Store;
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::throttle::{Throttle, ThrottleOptions};

/// Three seconds of 1,000 operations per second into a store that stalls for one second at least
/// once in them.
fn stalled(transport: Transport) -> BreakdownReport {
    let mut plan = Plan {
        transport,
        duration_ns: Some(3 * SECOND_NS),
        rate: AskedRate::PerSecond(54_000),
        workers: 1,
        calibrate: false,
        ..Plan::default()
    };
    plan.workload.series = Some(540);
    let options = ThrottleOptions {
        stall_every_ns: Some(3 * SECOND_NS / 2),
        stall_for_ns: Some(SECOND_NS),
        ..ThrottleOptions::default()
    };
    let inner = MemoryStore::new(MemoryOptions::default());
    let throttle = Throttle::new(inner, options, Arc::new(MonotonicClock::new())).unwrap();
    let store: Arc<dyn Store> = Arc::new(throttle);
    let run = run_store(&plan.complete().unwrap(), &store, &Controls::default());
    let breakdown = run.unwrap().run.latency.breakdown.unwrap();
    for one in &breakdown.quantiles {
        let shares = one.shares;
        let on_wire = shares.encoding.unwrap_or(0.0) + shares.transport.unwrap_or(0.0);
        let sum = shares.waiting + shares.late + on_wire + shares.store.unwrap();
        assert!((sum - 1.0).abs() < 1e-9, "{one:?}");
        assert_eq!(shares.encoding.is_some(), transport.is_wire(), "{one:?}");
    }
    breakdown
}

fn quantile(breakdown: &BreakdownReport, quantile: f64) -> QuantileShares {
    let mut all = breakdown.quantiles.iter();
    all.find(|one| one.quantile == quantile).unwrap().clone()
}

#[test]
fn each_share_lies_where_it_was_put() {
    for transport in [Transport::Inproc, Transport::Tcp] {
        let breakdown = stalled(transport);
        // Behind the stall, operations wait in the worker, or in the socket for the receiver.
        let p90 = quantile(&breakdown, 0.9);
        assert!(p90.response_ns > SECOND_NS / 3, "{transport:?}: {p90:?}");
        assert!(p90.shares.waiting > 0.9, "{transport:?}: {p90:?}");
        let max = quantile(&breakdown, 1.0);
        assert!(max.response_ns > SECOND_NS * 9 / 10, "{transport:?}: {max:?}");
        // One of the slowest was in the store for the whole of it. The next can be slower still,
        // because the worker can be interrupted between the two.
        let was_in_store = |one: &SlowOperation| {
            let store_ns = one.parts.store_ns.unwrap();
            one.response_ns > SECOND_NS * 9 / 10 && store_ns > one.response_ns * 9 / 10
        };
        assert!(breakdown.worst.iter().any(was_in_store), "{transport:?}: {max:?}");
        assert_eq!(breakdown.worst.len(), 100);
        for one in &breakdown.worst {
            let held_back = one.during.iter().find(|event| event.kind == EventKind::HeldBack);
            let overlap_ns = held_back.map_or(0, |event| event.overlap_ns);
            assert!(overlap_ns > one.response_ns / 2, "{transport:?}: {one:?}");
        }
    }
}
