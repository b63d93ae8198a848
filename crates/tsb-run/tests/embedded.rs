//! A store that a program hands over: what its report says of it.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::sync::Arc;

use tsb_core::time::SECOND_NS;
use tsb_run::{AskedRate, Plan};
use tsb_run::{Controls, run_plan, run_store};
use tsb_stores::Store;
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::throttle::{Throttle, ThrottleOptions};

fn plan() -> Plan {
    let mut plan = Plan {
        duration_ns: Some(SECOND_NS / 5),
        rate: AskedRate::PerSecond(20_000),
        calibrate: false,
        ..Plan::default()
    };
    plan.workload.series = Some(540);
    plan.complete().unwrap()
}

fn controls() -> Controls {
    Controls::default()
}

#[test]
fn the_report_of_a_store_that_was_handed_over_names_it_and_no_spec() {
    let plan = plan();
    let named: Vec<String> = plan.stores.iter().map(ToString::to_string).collect();
    assert_eq!(named, ["memory:"], "what a plan without a store is completed by");
    let inner = MemoryStore::new(MemoryOptions::default());
    let clock = Arc::new(tsb_core::time::MonotonicClock::new());
    let store: Arc<dyn Store> = Arc::new(Throttle::new(inner, ThrottleOptions::default(), clock).unwrap());
    let run = run_store(&plan, &store, &controls()).unwrap().run;
    assert_eq!(run.target.store, store.to_string());
    assert_eq!(run.plan["stores"], serde_json::json!([]));
    // A day of another store than this one must not be projected.
    assert!(run.cost.projection.is_none(), "{:?}", run.cost.projection);
}

#[test]
fn the_report_of_a_store_that_the_plan_opened_names_its_spec() {
    let open = |_: &Plan| Ok(Arc::new(MemoryStore::new(MemoryOptions::default())) as Arc<dyn Store>);
    let run = run_plan(&plan(), &controls(), &open).unwrap().run;
    assert_eq!(run.plan["stores"], serde_json::json!(["memory:"]));
}
