//! A store that a program hands over: what its report says of it.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::sync::Arc;

use tsb_core::time::SECOND_NS;
use tsb_core::verdict::Status;
use tsb_run::{AskedRate, Plan};
use tsb_run::{Controls, run_plan, run_store};
use tsb_stores::Store;
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::rrd::{RrdOptions, RrdStore};
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
    let open = |_: &Plan| {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(MemoryOptions::default()));
        Ok(store.into())
    };
    let run = run_plan(&plan(), &controls(), &open).unwrap().run;
    assert_eq!(run.plan["stores"], serde_json::json!(["memory:"]));
}

/// At the fleet's own pace, so that a second run begins after the end of the first.
fn natural(append: bool) -> Plan {
    let mut plan = Plan {
        rate: AskedRate::Natural,
        append,
        ..plan()
    };
    plan.workload.interval_ns = Some(SECOND_NS / 10);
    plan.complete().unwrap()
}

#[test]
fn a_store_that_was_handed_over_is_appended_to_only_when_told() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(MemoryOptions::default()));
    run_store(&natural(false), &store, &controls()).unwrap();
    let held = store.stats().samples;
    let refused = run_store(&natural(false), &store, &controls()).unwrap_err();
    let words = format!("it already holds {} samples", tsb_run::units::count(held));
    assert!(refused.to_string().contains(&words), "{refused}");
    assert_eq!(store.stats().samples, held);
    let run = run_store(&natural(true), &store, &controls()).unwrap().run;
    assert_ne!(run.verdict.status, Status::Invalid, "{:?}", run.verdict);
    assert!(run.place.is_none() && run.size.is_none() && run.cost.bytes_per_sample.is_none());
    assert!(
        run.notes.iter().any(|note| note.contains("before this run")),
        "{:?}",
        run.notes
    );
}

/// Such a store counts no samples of an earlier opening, and without a spec its files are not
/// listed: its newest samples tell.
#[test]
fn a_consolidating_store_that_was_handed_over_is_not_empty_if_it_has_a_newest_sample() {
    let folder = tempfile::tempdir().unwrap();
    let open = || -> Arc<dyn Store> { Arc::new(RrdStore::open(folder.path(), RrdOptions::default()).unwrap()) };
    let store = open();
    run_store(&natural(false), &store, &controls()).unwrap();
    store.close().unwrap();
    let store = open();
    let refused = run_store(&natural(false), &store, &controls()).unwrap_err();
    assert!(refused.to_string().contains("it already holds 540 series"), "{refused}");
    store.close().unwrap();
    let store = open();
    let run = run_store(&natural(true), &store, &controls()).unwrap().run;
    assert!(run.ledger.violated.is_empty(), "{:?}", run.ledger.violated);
    assert!(
        run.notes.iter().any(|note| note.contains("540 series before")),
        "{:?}",
        run.notes
    );
}
