//! Searches for the capacity: of throttled stores in virtual time, where the truth is known, and of
//! a real store, for the places and for a stop.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tsb_core::Timestamp;
use tsb_core::durability::Durability;
use tsb_core::report::capacity::BrokenCondition;
use tsb_core::report::{DurabilityReport, Interval, Latency, LedgerReport, Rate, Run, Target};
use tsb_core::time::{Clock, ManualClock, SECOND_NS};
use tsb_core::verdict::Evidence;
use tsb_run::capacity::{
    CapacityRequest, Find, Finding, Search, SearchOptions, Step, Vary, find_capacity, find_scaling, judge, why_no_law,
};
use tsb_run::run::{RunContext, open};
use tsb_run::threshold::{Condition, Outcome};
use tsb_run::{Controls, Plan, Transport};
use tsb_stores::null::NullStore;
use tsb_stores::throttle::{Throttle, ThrottleOptions};
use tsb_stores::{Refusals, Store};

/// Length of a probe.
const DURATION_NS: u64 = 10 * SECOND_NS;

fn plan(store: &str) -> Plan {
    let mut plan = Plan {
        stores: vec![store.parse().unwrap()],
        transport: Transport::Inproc,
        duration_ns: Some(DURATION_NS),
        ..Plan::default()
    };
    plan.workload.series = Some(5_400);
    plan.complete().unwrap()
}

fn bounds(first: u64) -> SearchOptions {
    SearchOptions {
        first,
        lowest: 1,
        highest: 1_000_000,
        tolerance: 0.02,
        probes_max: 100,
        time_max_ns: 3_600 * SECOND_NS,
        settle_ns: SECOND_NS,
        passes: true,
        seed: 1,
    }
}

fn broken(conditions: &[Condition], run: &Run) -> Vec<BrokenCondition> {
    let checked = conditions
        .iter()
        .map(|condition| (condition, condition.check(run, None)));
    let broken = checked.filter(|(_, evaluation)| evaluation.outcome != Outcome::True);
    broken
        .map(|(condition, evaluation)| BrokenCondition::new(condition.to_string(), evaluation.sentence))
        .collect()
}

/// The report of one worker that writes the plan's operations in virtual time, at their due times or
/// as soon after as the store lets it.
fn virtual_run(plan: &Plan, options: ThrottleOptions) -> Run {
    let context = RunContext::new(plan, 1).unwrap();
    let clock = Arc::new(ManualClock::new());
    let store = Throttle::new(NullStore::new(), options, Arc::clone(&clock) as Arc<dyn Clock>).unwrap();
    let workload = &context.workload;
    store.define(&workload.catalog().definitions()).unwrap();
    let groups = workload.groups().len();
    let mut generator = workload.generator(0..groups, Timestamp::from_secs(1_700_000_000));
    let mut intervals: Vec<Interval> = Vec::new();
    let mut add = |at_ns: u64, asked: u64, accepted: u64| {
        let index = (at_ns / plan.report_interval_ns) as usize;
        while intervals.len() <= index {
            let mut interval = Interval::default();
            interval.end_ns = (intervals.len() as u64 + 1) * plan.report_interval_ns;
            interval.asked = Some(0);
            intervals.push(interval);
        }
        intervals[index].asked = intervals[index].asked.map(|sum| sum + asked);
        intervals[index].accepted += accepted;
    };
    let (mut responses, mut due_samples, mut accepted, mut refused) = (Vec::new(), 0, 0, Refusals::new());
    for planned in context.timetable.agenda(0..groups as u32) {
        let due_ns = planned.due_ns.unwrap();
        let batch = generator.operation(planned.slot.group as usize, planned.slot.tick);
        let samples = batch.len() as u64;
        due_samples += samples;
        clock.wait_until(due_ns);
        let taken = store.write(&batch, &mut refused).unwrap().accepted as u64;
        add(due_ns, samples, 0);
        add(clock.now(), 0, taken);
        accepted += taken;
        responses.push(clock.now() - due_ns);
    }
    responses.sort_unstable();
    let elapsed_ns = clock.now().max(DURATION_NS);
    let asked = due_samples as f64 * 1e9 / DURATION_NS as f64;
    let held = accepted as f64 * 1e9 / elapsed_ns as f64;
    let evidence = Evidence {
        due: due_samples,
        sent: due_samples,
        received: due_samples,
        accepted,
        compared: accepted,
        verified: accepted,
        asked_per_second: Some(asked),
        held_per_second: held,
        ..Evidence::default()
    };
    let mut latency = Latency::new("virtual");
    latency.response.count = responses.len() as u64;
    latency.response.p99_ns = responses.get(responses.len() * 99 / 100).copied();
    let mut rate = Rate::held(held);
    rate.asked_per_second = Some(asked);
    let target = Target::new("throttle+null:", "inproc", "exact");
    let durability = DurabilityReport::new(Durability::Volatile, 1);
    let mut run = Run::new(
        target,
        evidence.verdict(),
        durability,
        rate,
        LedgerReport::default(),
        latency,
    );
    run.intervals = intervals;
    run
}

/// Searches on a throttled store in virtual time.
fn searched(find: Find, options: ThrottleOptions, first: u64) -> (f64, f64, f64) {
    let plan = find.prepare(&plan("null:")).unwrap();
    let conditions = Condition::list("response.p99<50ms").unwrap();
    let mut search = Search::new(bounds(first));
    loop {
        match search.step() {
            Step::Probe(probe) => {
                let run = virtual_run(&find.at(&plan, probe.load).unwrap(), options);
                let judgement = judge(&run, &|run| broken(&conditions, run));
                search.record(judgement.result, DURATION_NS + probe.settle_ns);
            }
            Step::Done(Finding::Found { load, low, high, .. }) => return (load, low, high),
            Step::Done(limited) => panic!("no capacity: {limited:?}"),
        }
    }
}

#[test]
fn the_capacity_of_a_throttle_is_its_service_rate() {
    let steady = ThrottleOptions {
        rate_per_second: Some(20_000),
        ..ThrottleOptions::default()
    };
    // The store stands still for 2 % of the time.
    let stalling = ThrottleOptions {
        stall_every_ns: Some(SECOND_NS),
        stall_for_ns: Some(SECOND_NS / 50),
        ..steady
    };
    for find in [Find::Rate, Find::Series] {
        for (options, truth) in [(steady, 20_000.0), (stalling, 19_600.0)] {
            for first in [5_400, 54_000] {
                let (found, low, high) = searched(find, options, first);
                let error = found / truth - 1.0;
                assert!(error.abs() < 0.03, "{find:?} from {first}: {found} for {truth}");
                assert!(
                    low > 0.95 * truth && high < 1.05 * truth,
                    "{find:?} from {first}: {low} to {high}"
                );
            }
        }
    }
}

#[test]
fn stalls_that_break_the_objective_at_every_load_leave_no_capacity() {
    let options = ThrottleOptions {
        stall_every_ns: Some(SECOND_NS),
        stall_for_ns: Some(SECOND_NS / 5),
        ..ThrottleOptions::default()
    };
    let plan = Find::Rate.prepare(&plan("null:")).unwrap();
    let conditions = Condition::list("response.p99<50ms").unwrap();
    let run = virtual_run(&Find::Rate.at(&plan, 1_000).unwrap(), options);
    let judgement = judge(&run, &|run| broken(&conditions, run));
    assert_eq!(judgement.broke.len(), 1, "{judgement:?}");
    assert_eq!(judgement.broke[0].condition, "response.p99<50ms");
}

fn request(store: &str) -> CapacityRequest {
    let mut plan = plan(store);
    plan.duration_ns = Some(2 * SECOND_NS);
    CapacityRequest {
        plan: Find::Rate.prepare(&plan).unwrap(),
        find: Find::Rate,
        search: SearchOptions {
            probes_max: 1,
            ..bounds(2_000)
        },
        slo: vec!["lost=0".to_owned()],
    }
}

#[test]
fn a_probe_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let request = request(&format!("sqlite:{}", folder.path().join("m.db").display()));
    let report = find_capacity(&request, &|_| Vec::new(), &Controls::default(), &open).unwrap();
    let [probe] = &report.capacity.probes[..] else {
        panic!("{report:?}");
    };
    assert_eq!((probe.number, probe.load_per_second), (1, 2_000));
    assert!(
        probe.response_p50_ns.is_some() && probe.took_seconds >= 2.0,
        "{probe:?}"
    );
    assert_eq!(
        (report.capacity.found_per_second, report.capacity.limited_by.as_str()),
        (None, "budget")
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn each_count_has_a_search_of_its_own_and_few_capacities_have_no_law() {
    let mut request = request("memory:");
    request.search.first = 2_000;
    let report = find_scaling(
        &request,
        Vary::Workers,
        &[1, 2],
        &|_| Vec::new(),
        &Controls::default(),
        &open,
    )
    .unwrap();
    let scaling = report.scaling.as_ref().unwrap();
    let counts: Vec<u32> = scaling.points.iter().map(|point| point.count).collect();
    assert_eq!((counts, scaling.over.as_str()), (vec![1, 2], "workers"));
    assert!(scaling.points.iter().all(|point| point.capacity.probes.len() == 1));
    assert_eq!(scaling.law, None);
    let why = why_no_law(scaling).unwrap();
    assert!(why.contains("0 of 2 counts"), "{why}");
}

#[test]
fn a_search_that_is_stopped_reports_what_it_has() {
    let controls = Controls::default();
    controls.stops.stop.store(true, Ordering::Release);
    let report = find_capacity(&request("memory:"), &|_| Vec::new(), &controls, &open).unwrap();
    assert!(report.interrupted && report.capacity.probes.is_empty(), "{report:?}");
    assert_eq!(report.capacity.limited_by, "budget");
}

#[test]
fn a_first_probe_that_cannot_be_made_is_an_error() {
    let request = request("sqlite:/nowhere/at/all.db");
    assert!(find_capacity(&request, &|_| Vec::new(), &Controls::default(), &open).is_err());
}
