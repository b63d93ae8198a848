//! The report of the whole, from what each host measured. Pure: no I/O, no clock.
//!
//! Counts, histograms and ledgers add; staleness, durations and noise take the worst; costs per
//! sample are weighted by samples. What cannot be said of the whole is absent.

mod cost;
mod figures;
mod intervals;
mod ledger;
mod queries;
mod verdict;

use std::collections::BTreeSet;

use tsb_core::SeriesId;
use tsb_core::ledger::Counter;
use tsb_core::report::{
    Exceptions, HostEnd, HostReport, Interval, LedgerReport, ListenerReport, PhaseReport, PreloadReport, Run,
    VerifiedStore,
};
use tsb_core::verdict::Verdict;
use tsb_core::workload::FleetPart;
use tsb_stores::Stats;

use super::part::HostPart;
use crate::plan::Plan;
use crate::run::phases::of_emitters;
use crate::run::{self, EmitterTimes, MadeRun, RunContext, issued_ranges, peak};
use crate::units;

use cost::cost;
use figures::{durability, latency, noise, rate, staleness};
pub(super) use intervals::add as add_interval;
use intervals::intervals;
use ledger::{ledger, ledger_of_lost};
use queries::queries;
use verdict::verdict;

/// The part of one host.
#[derive(Debug)]
pub struct MeasuredPart {
    /// Its name.
    pub name: String,
    /// Its groups in the whole.
    pub part: FleetPart,
    /// What it measured; or what is known of it since it was lost.
    pub result: Result<Box<HostPart>, LostPart>,
}

/// What is known of a host that was lost.
#[derive(Debug)]
pub struct LostPart {
    /// Why it counts as lost.
    pub why: String,
    /// Samples that it had sent by its last word.
    pub sent: u64,
    /// What reading back its part found, or why it could not be read.
    pub verified: Result<Box<VerifiedStore>, String>,
    /// Its clock before the run: offset and uncertainty, in nanoseconds.
    pub clock: (i64, u64),
}

/// What is known of the whole.
#[derive(Debug)]
pub struct Whole<'a> {
    /// The plan, the workload and the times.
    pub context: &'a RunContext,
    /// The timestamp of the start, in nanoseconds since the Unix epoch.
    pub base_ns: i64,
    /// What a store that all hosts share holds at the end; absent where each has its own.
    pub stats: Option<Stats>,
}

/// Adds the parts. `None` if no host reported.
pub fn merge(whole: &Whole<'_>, parts: &[MeasuredPart]) -> Option<MadeRun> {
    let measured: Vec<(&MeasuredPart, &HostPart)> = parts
        .iter()
        .filter_map(|part| Some((part, part.result.as_deref().ok()?)))
        .collect();
    let runs: Vec<&Run> = measured.iter().map(|(_, part)| &part.run).collect();
    let first = *runs.first()?;
    let ledger = ledger(whole, parts);
    let intervals = intervals(&measured);
    let mut rate = rate(&runs);
    let plan = &whole.context.plan;
    if let Some(asked) = rate.asked_per_second.filter(|_| whole.context.speed().is_none()) {
        rate.speed = asked / whole.context.workload.samples_per_second();
    }
    rate.peak = peak::of(&whole.context.timetable, &intervals, plan.report_interval_ns);
    let emitters: Vec<EmitterTimes> = measured.iter().map(|(_, part)| part.times.clone()).collect();
    let is_partial = measured.iter().any(|(_, part)| part.is_partial);
    let phases = phases(plan, &intervals, &runs, if is_partial { &[] } else { &emitters });
    let latency = latency(&measured);
    let durability = durability(&measured, latency.response);
    let verdict = verdict(whole, parts, (&ledger, &rate, &phases));
    let mut run = Run::new(first.target.clone(), verdict, durability, rate, ledger, latency);
    run.started_at_ns = whole.base_ns;
    run.duration_ns = runs.iter().map(|run| run.duration_ns).max().unwrap_or(0);
    run.interrupted = runs.iter().any(|run| run.interrupted);
    run.plan = serde_json::to_value(plan).unwrap_or_default();
    run.seed = plan.workload.seed;
    run.fingerprint = run::fingerprint(whole.context);
    run.preload = preload(&runs);
    run.query_latency = queries(&measured);
    run.noise = noise(&runs);
    run.place.clone_from(&first.place);
    run.staleness = staleness(whole, &measured);
    run.cost = cost(whole, &runs, &run.ledger);
    run.size = whole.stats.as_ref().map(run::size);
    let mut ticks = vec![0..0; whole.context.workload.groups().len()];
    for (part, of_host) in &measured {
        if let Some(of_part) = ticks.get_mut(part.part.range()) {
            of_part.clone_from_slice(&issued_ranges(&of_host.run, of_part.len()));
        }
    }
    run.offered = run::offered(whole.context, &ticks);
    run.issued = run::issued(&ticks);
    run.intervals = intervals;
    run.phases = phases;
    run.resources = runs
        .iter()
        .flat_map(|run| run.resources.iter().take(1).cloned())
        .collect();
    let servers = runs.iter().flat_map(|run| run.resources.iter().skip(1));
    let mut seen: BTreeSet<u32> = run.resources.iter().map(|usage| usage.pid).collect();
    run.resources
        .extend(servers.filter(|usage| seen.insert(usage.pid)).cloned());
    run.listener = listener(&runs);
    run.exceptions = Some(exceptions(whole, &measured));
    run.damage = runs.iter().flat_map(|run| run.damage.iter().cloned()).collect();
    run.hosts = parts.iter().map(|part| host(whole, part)).collect();
    run.notes = notes(parts);
    Some(MadeRun::new(run, emitters))
}

impl Whole<'_> {
    /// Number of the first series of a part in the whole.
    fn first_series(&self, part: FleetPart) -> u32 {
        let groups = self.context.workload.groups();
        groups.get(part.range().start).map_or(0, |group| group.first.0)
    }

    /// Number of series of a part.
    fn series(&self, part: FleetPart) -> u64 {
        let groups = self.context.workload.groups().get(part.range()).unwrap_or_default();
        groups.iter().map(|group| u64::from(group.len)).sum()
    }
}

/// The phases of the whole, as far as its intervals go.
fn phases(plan: &Plan, intervals: &[Interval], runs: &[&Run], emitters: &[EmitterTimes]) -> Vec<PhaseReport> {
    let stopped = runs.iter().filter(|run| run.interrupted);
    let stopped_ns = stopped.map(|run| run.duration_ns).max();
    of_emitters(plan, intervals, stopped_ns, emitters)
}

/// All histories end at the same moment, and were written at the same time.
fn preload(runs: &[&Run]) -> Option<PreloadReport> {
    let all = runs.iter().filter_map(|run| run.preload);
    all.reduce(|mut sum, more| {
        sum.accepted += more.accepted;
        sum.rejected += more.rejected;
        sum.took_ns = sum.took_ns.max(more.took_ns);
        sum
    })
}

fn listener(runs: &[&Run]) -> Option<ListenerReport> {
    let all = runs.iter().filter_map(|run| run.listener.as_ref());
    all.cloned().reduce(|mut sum, more| {
        sum.connections += more.connections;
        sum.refused_connections += more.refused_connections;
        sum.bytes += more.bytes;
        for (kind, count) in more.malformed_by_kind {
            *sum.malformed_by_kind.entry(kind).or_default() += count;
        }
        // Buffers and drops are of each socket.
        sum.datagrams = None;
        sum
    })
}

fn exceptions(whole: &Whole<'_>, measured: &[(&MeasuredPart, &HostPart)]) -> Exceptions {
    let mut sum = Exceptions::default();
    for (part, of_host) in measured {
        let Some(of_host) = &of_host.run.exceptions else {
            continue;
        };
        let first = whole.first_series(part.part);
        sum.operations.extend(of_host.operations.iter().map(|one| {
            let mut one = *one;
            one.first_group += part.part.first_group;
            one
        }));
        sum.rejected.extend(of_host.rejected.iter().map(|one| {
            let mut one = *one;
            one.series = SeriesId(one.series.0 + first);
            one
        }));
        sum.operations_unnamed += of_host.operations_unnamed;
        sum.rejected_unnamed += of_host.rejected_unnamed;
        sum.never_arrived += of_host.never_arrived;
        let unnamed = of_host.never_arrived_unnamed.unwrap_or(of_host.never_arrived);
        sum.never_arrived_unnamed = Some(sum.never_arrived_unnamed.unwrap_or(0) + unnamed);
    }
    sum
}

fn host(whole: &Whole<'_>, part: &MeasuredPart) -> HostReport {
    let mut report = match &part.result {
        Ok(measured) => {
            let run = &measured.run;
            let mut report = HostReport::new(&part.name, HostEnd::Reported, run.verdict.clone());
            report.sent = run.ledger.counts.count(Counter::Sent);
            report.accepted = accepted(&run.ledger);
            report.ceiling_per_second = run.rate.ceiling_per_second;
            report.clock = measured
                .clock
                .iter()
                .map(|reading| (reading.offset_ns, reading.uncertainty_ns))
                .collect();
            report
        }
        Err(lost) => {
            let verdict = Verdict::new(lost.status(), lost.reasons());
            let mut report = HostReport::new(&part.name, HostEnd::Lost, verdict);
            let ledger = ledger_of_lost(lost);
            report.sent = ledger.counts.count(Counter::Sent);
            report.accepted = accepted(&ledger);
            report.clock = vec![lost.clock];
            report
        }
    };
    if let Some((offset_ns, uncertainty_ns)) = report.clock.first() {
        (report.offset_ns, report.uncertainty_ns) = (*offset_ns, *uncertainty_ns);
    }
    report.series = whole.series(part.part);
    report.first_series = whole.first_series(part.part);
    report
}

fn accepted(ledger: &LedgerReport) -> u64 {
    ledger
        .counts
        .get(Counter::Accepted)
        .unwrap_or_else(|| ledger.counts.count(Counter::Confirmed))
}

/// The notes that all hosts have, once; others with the host's name.
fn notes(parts: &[MeasuredPart]) -> Vec<String> {
    let of = |part: &MeasuredPart| part.result.as_deref().map_or(Vec::new(), |part| part.run.notes.clone());
    let all: Vec<(String, Vec<String>)> = parts.iter().map(|part| (part.name.clone(), of(part))).collect();
    let reported = parts.iter().filter(|part| part.result.is_ok()).count();
    let mut notes: Vec<String> = Vec::new();
    for (name, of_host) in &all {
        for note in of_host {
            let sharing = all.iter().filter(|(_, notes)| notes.contains(note)).count();
            let said = if sharing == reported {
                note.clone()
            } else {
                format!("{name}: {note}")
            };
            if !notes.contains(&said) {
                notes.push(said);
            }
        }
    }
    let uncertainty = parts.iter().filter_map(|part| part.result.as_deref().ok());
    let uncertainty = uncertainty
        .filter_map(|part| part.clock.first())
        .map(|reading| reading.uncertainty_ns)
        .max();
    notes.extend(uncertainty.map(|ns| {
        format!(
            "{} hosts began within {} of the leader's start, so two of them up to twice that apart; a staleness may be \
             off by as much, and no response time spans two clocks",
            parts.len(),
            units::nanos(ns)
        )
    }));
    notes
}
