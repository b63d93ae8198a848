//! Carries out a search: each probe is a run in a fresh place, which is removed after it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tsb_core::report::Run;
use tsb_core::report::capacity::{CapacityReport, ProbeReport};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};

use super::finding::capacity;
use super::judge::{Judgement, Objective, judge};
use super::load::Find;
use super::search::{Probe, ProbeResult, Search, SearchOptions, Step};
use crate::controls::Controls;
use crate::error::Error;
use crate::observer::{Message, Observer};
use crate::plan::Plan;
use crate::run::{MakeRun, run_in_round_place};
use crate::units;

/// Longest sleep between two looks at the stop flag.
const SLEEP_NS: u64 = SECOND_NS / 10;

/// What is searched.
#[derive(Clone, Debug)]
pub struct CapacityRequest {
    /// The plan of every probe, except the load; from [`Find::prepare`].
    pub plan: Plan,
    /// What is varied.
    pub find: Find,
    /// The bounds of the search.
    pub search: SearchOptions,
    /// The conditions of the objective, as text.
    pub slo: Vec<String>,
}

/// Passes on warnings only: a search reports its probes, not their phases and intervals.
struct WarningsOnly(Arc<dyn Observer>);

impl Observer for WarningsOnly {
    fn message(&self, message: Message<'_>) {
        if matches!(message, Message::Warning(_)) {
            self.0.message(message);
        }
    }
}

/// Searches for the capacity of the plan's store.
///
/// # Errors
/// If the first probe could not be made. A later failure ends the search with what is known, and is
/// in the notes of the report.
pub fn find_capacity(
    request: &CapacityRequest,
    objective: Objective<'_>,
    controls: &Controls,
    maker: &dyn MakeRun,
) -> Result<CapacityReport, Error> {
    let clock = MonotonicClock::new();
    let mut search = Search::new(request.search);
    let plan = serde_json::to_value(&request.plan)
        .map_err(|error| Error::internal("cannot write the plan into the report").because(&error))?;
    let mut report = CapacityReport::new(plan, request.search.seed, request.find.name(), request.slo.clone());
    report.started_at_ns = clock.wall().0;
    let mut probes = Vec::new();
    let finding = loop {
        let probe = match search.step() {
            Step::Done(finding) => break finding,
            Step::Probe(probe) => probe,
        };
        announce(&probe, request.find, controls);
        let began_ns = clock.now();
        settle(probe.settle_ns, &clock, controls);
        let settled_ns = clock.now();
        let made = (!is_stopped(controls)).then(|| one(request, &probe, controls, maker));
        let run = match made.transpose() {
            Ok(run) => run.filter(|run| !run.interrupted),
            Err(error) if probes.is_empty() => return Err(error),
            Err(error) => {
                let note = format!("the search ended at probe {}: {error}", probe.number);
                report.notes.push(note);
                search.stop();
                continue;
            }
        };
        let Some(run) = run else {
            report.interrupted = true;
            search.stop();
            continue;
        };
        let judgement = judge(&run, objective);
        let ended_ns = clock.now();
        search.record(judgement.result, ended_ns - began_ns);
        report.target.get_or_insert_with(|| run.target.clone());
        report.durability.get_or_insert(run.durability.level);
        let probe = reported(&probe, &run, judgement, ended_ns - settled_ns);
        controls.progress(&said(&probe, request.find));
        probes.push(probe);
    };
    report.took_seconds = clock.now() as f64 / SECOND_NS as f64;
    report.capacity = capacity(&finding, probes, request.find);
    Ok(report)
}

/// Makes one probe.
fn one(request: &CapacityRequest, probe: &Probe, controls: &Controls, maker: &dyn MakeRun) -> Result<Run, Error> {
    let plan = request.find.at(&request.plan, probe.load)?;
    let controls = Controls {
        observer: Arc::new(WarningsOnly(Arc::clone(&controls.observer))),
        ..controls.clone()
    };
    let (made, place) = run_in_round_place(plan, probe.number, &controls, maker)?;
    // What was measured counts all the same; the next probe has another place.
    place.remove().unwrap_or_else(|error| controls.warn(&error.to_string()));
    Ok(made.run)
}

fn is_stopped(controls: &Controls) -> bool {
    let stops = &controls.stops;
    stops.stop.load(Ordering::Acquire) || stops.at_once.load(Ordering::Acquire)
}

/// Waits before a probe, unless the search is stopped.
fn settle(ns: u64, clock: &dyn Clock, controls: &Controls) {
    let until = clock.now().saturating_add(ns);
    while clock.now() < until && !is_stopped(controls) {
        clock.wait_until(until.min(clock.now() + SLEEP_NS));
    }
}

fn announce(probe: &Probe, find: Find, controls: &Controls) {
    let wait = if probe.settle_ns == 0 {
        String::new()
    } else {
        format!(" after a rest of {}", units::nanos(probe.settle_ns))
    };
    controls.progress(&format!(
        "probe {}: {}{wait}",
        probe.number,
        load_words(probe.load as f64, find)
    ));
}

/// A load with its unit.
pub(super) fn load_words(load: f64, find: Find) -> String {
    let unit = match find {
        Find::Rate => " samples/s",
        Find::Series => " series",
    };
    format!("{}{unit}", units::count(load.round() as u64))
}

/// What is said of a probe when it has ended.
fn said(probe: &ProbeReport, find: Find) -> String {
    let load = load_words(probe.load_per_second as f64, find);
    let broke: Vec<String> = probe
        .broke
        .iter()
        .map(|broken| format!("{}: {}", broken.condition, broken.measured))
        .collect();
    match probe.result.as_str() {
        "held" => format!("probe {}: {load} held", probe.number),
        "broke" => format!("probe {}: {load} broke {}", probe.number, broke.join("; ")),
        _ => format!(
            "probe {}: {load} says nothing of the store, it was limited by the {}; {}",
            probe.number,
            probe.limited_by.as_deref().unwrap_or("run"),
            broke.join("; ")
        ),
    }
}

fn reported(probe: &Probe, run: &Run, judgement: Judgement, took_ns: u64) -> ProbeReport {
    let mut report = ProbeReport::default();
    report.number = probe.number;
    probe.purpose.name().clone_into(&mut report.purpose);
    report.load_per_second = probe.load;
    report.settle_seconds = probe.settle_ns as f64 / SECOND_NS as f64;
    let (result, limit) = match judgement.result {
        ProbeResult::Held => ("held", None),
        ProbeResult::Broke => ("broke", None),
        ProbeResult::Void(limit) => ("void", Some(limit.name().to_owned())),
    };
    (report.result, report.limited_by) = (result.to_owned(), limit);
    report.broke = judgement.broke;
    run.verdict.status.name().clone_into(&mut report.verdict);
    report.held_per_second = run.rate.held_per_second;
    report.backlog_growth = judgement.backlog.map(|backlog| backlog.growth);
    report.response_p50_ns = run.latency.response.p50_ns;
    report.response_p99_ns = run.latency.response.p99_ns;
    report.staleness_p99_ms = run.staleness.as_ref().map(|staleness| staleness.p99_ms);
    report.store_cpu_ns_per_sample = run.cost.store_cpu_ns_per_sample;
    report.took_seconds = took_ns as f64 / SECOND_NS as f64;
    report
}
