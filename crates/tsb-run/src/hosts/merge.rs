//! The report of the whole, from what each host measured. Pure: no I/O, no clock.
//!
//! Counts, histograms and ledgers add; staleness, durations and noise take the worst; costs per
//! sample are weighted by samples. What cannot be said of the whole is absent.

use std::collections::BTreeSet;

use tsb_core::SeriesId;
use tsb_core::latency::{Cells, Curve, Histogram, Recording, Summary};
use tsb_core::ledger::Counter;
use tsb_core::report::{
    Cost, CpuBelow, Curves, DurabilityReport, Exceptions, HostEnd, HostReport, Interval, Latency, LedgerReport,
    ListenerReport, Rate, Run, VerifiedStore,
};
use tsb_core::resource::Noise;
use tsb_core::staleness::Staleness;
use tsb_core::verdict::{Evidence, Status, Verdict};
use tsb_core::workload::FleetPart;
use tsb_stores::Stats;

use super::part::HostPart;
use crate::run::{self, RunContext, by_interval, issued_ranges, read_back};
use crate::units;

/// Named losses that a report keeps.
const LOSSES_MAX: usize = 1_000;

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
pub fn merge(whole: &Whole<'_>, parts: &[MeasuredPart]) -> Option<Run> {
    let measured: Vec<(&MeasuredPart, &HostPart)> = parts
        .iter()
        .filter_map(|part| Some((part, part.result.as_deref().ok()?)))
        .collect();
    let runs: Vec<&Run> = measured.iter().map(|(_, part)| &part.run).collect();
    let first = *runs.first()?;
    let ledger = ledger(whole, parts);
    let rate = rate(&runs);
    let latency = latency(&measured);
    let durability = durability(&measured, latency.response);
    let verdict = verdict(whole, parts, &ledger, &rate);
    let mut run = Run::new(first.target.clone(), verdict, durability, rate, ledger, latency);
    run.started_at_ns = whole.base_ns;
    run.duration_ns = runs.iter().map(|run| run.duration_ns).max().unwrap_or(0);
    run.interrupted = runs.iter().any(|run| run.interrupted);
    run.plan = serde_json::to_value(&whole.context.plan).unwrap_or_default();
    run.seed = whole.context.plan.workload.seed;
    run.fingerprint = run::fingerprint(whole.context);
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
    run.intervals = intervals(&measured);
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
    Some(run)
}

/// Number of the first series of a part in the whole.
fn first_series(whole: &Whole<'_>, part: FleetPart) -> u32 {
    let groups = whole.context.workload.groups();
    groups.get(part.range().start).map_or(0, |group| group.first.0)
}

/// Number of series of a part.
fn series(whole: &Whole<'_>, part: FleetPart) -> u64 {
    let groups = whole.context.workload.groups().get(part.range()).unwrap_or_default();
    groups.iter().map(|group| u64::from(group.len)).sum()
}

fn ledger(whole: &Whole<'_>, parts: &[MeasuredPart]) -> LedgerReport {
    let mut sum = LedgerReport::default();
    let (mut is_bounded, mut at_most) = (false, 0);
    for part in parts {
        let ledger = match &part.result {
            Ok(measured) => measured.run.ledger.clone(),
            Err(lost) => ledger_of_lost(lost),
        };
        sum.counts.merge(&ledger.counts);
        for (reason, samples) in &ledger.rejected_by_reason {
            *sum.rejected_by_reason.entry(reason.clone()).or_default() += samples;
        }
        at_most += ledger
            .lost_at_most
            .unwrap_or_else(|| ledger.counts.count(Counter::Lost));
        is_bounded |= ledger.lost_at_most.is_some();
        let first = first_series(whole, part.part);
        let left = LOSSES_MAX.saturating_sub(sum.losses.len());
        sum.losses.extend(ledger.losses.into_iter().take(left).map(|mut loss| {
            loss.series = SeriesId(loss.series.0 + first);
            loss
        }));
    }
    sum.lost_at_most = is_bounded.then_some(at_most);
    let violations = sum.counts.violations();
    sum.violated = violations.iter().map(ToString::to_string).collect();
    sum
}

/// The counts of a host that was lost. What was acknowledged was looked for; of what it had sent
/// besides, some was found, and the rest was lost on the way, since nobody acknowledged it.
fn ledger_of_lost(lost: &LostPart) -> LedgerReport {
    let (mut ledger, found) = match &lost.verified {
        Ok(verified) => (
            verified.ledger.clone().unwrap_or_default(),
            verified.journal.as_ref().map_or(0, |journal| journal.undecided_found),
        ),
        Err(_) => (LedgerReport::default(), 0),
    };
    let counts = &mut ledger.counts;
    counts.add(Counter::Accepted, found).add(Counter::Verified, found);
    let received = counts.count(Counter::Accepted) + counts.count(Counter::Rejected);
    let sent = lost.sent.max(received);
    counts.set(Counter::Due, sent).set(Counter::Sent, sent);
    counts
        .set(Counter::Received, received)
        .set(Counter::LostInTransport, sent - received);
    ledger
}

fn rate(runs: &[&Run]) -> Rate {
    let seconds = |ns: u64| ns.max(1) as f64 / 1e9;
    let accepted = |run: &Run| run.rate.held_per_second * seconds(run.duration_ns);
    let longest = runs.iter().map(|run| run.duration_ns).max().unwrap_or(0);
    let all: f64 = runs.iter().map(|run| accepted(run)).sum();
    let mut rate = Rate::held(all / seconds(longest));
    let asked: Option<f64> = runs.iter().map(|run| run.rate.asked_per_second).sum();
    rate.asked_per_second = asked;
    let durable_s = runs
        .iter()
        .map(|run| Some(accepted(run) / run.rate.durable_per_second?));
    let durable_s: Option<Vec<f64>> = durable_s.collect();
    let slowest = durable_s.and_then(|all| all.into_iter().filter(|s| s.is_finite()).reduce(f64::max));
    rate.durable_per_second = slowest.filter(|s| *s > 0.0).map(|slowest| all / slowest);
    rate.ceiling_per_second = runs.iter().map(|run| run.rate.ceiling_per_second).sum();
    rate.closed_loop = runs.iter().any(|run| run.rate.closed_loop);
    rate.speed = runs.iter().map(|run| run.rate.speed).fold(f64::INFINITY, f64::min);
    rate
}

fn added<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> Histogram {
    let mut sum = Histogram::new();
    histograms.for_each(|histogram| sum.merge(histogram));
    sum
}

fn latency(measured: &[(&MeasuredPart, &HostPart)]) -> Latency {
    let parts = || measured.iter().map(|(_, part)| *part);
    let done = parts()
        .next()
        .map_or(String::new(), |part| part.run.latency.done.clone());
    let samples = |of: &dyn Fn(&Latency) -> u64| parts().map(|part| of(&part.run.latency)).sum();
    let is_delivered = parts().any(|part| part.run.latency.delivery.is_some());
    let response = added(parts().map(|part| &part.response.total));
    let delivery = added(parts().map(|part| &part.delivery));
    let service = added(parts().map(|part| &part.service));
    let lag = added(parts().map(|part| &part.lag));
    let timed = samples(&|latency| latency.response.samples);
    let mut curves = Curves::default();
    curves.response = Curve::new(&response);
    curves.delivery = is_delivered.then(|| Curve::new(&delivery));
    curves.service = Curve::new(&service);
    curves.lag = Curve::new(&lag);
    let mut latency = Latency::new(done);
    latency.response = Summary::new(&response, timed);
    latency.delivery = is_delivered.then(|| Summary::new(&delivery, timed));
    latency.service = Summary::new(&service, samples(&|latency| latency.service.samples));
    latency.lag = Summary::new(&lag, samples(&|latency| latency.lag.samples));
    latency.untimed = samples(&|latency| latency.untimed);
    latency.missing = samples(&|latency| latency.missing);
    latency.curves = Some(curves);
    latency
}

/// The lowest level of any host: that is what all samples have.
fn durability(measured: &[(&MeasuredPart, &HostPart)], response: Summary) -> DurabilityReport {
    let reports = measured.iter().map(|(_, part)| &part.run.durability);
    let mut sum = DurabilityReport::new(
        reports.clone().map(|one| one.level).min().unwrap_or_default(),
        reports.clone().map(|one| one.copies).min().unwrap_or(1),
    );
    sum.acknowledged = reports.clone().map(|one| one.acknowledged).min().unwrap_or_default();
    sum.untimed = reports.clone().map(|one| one.untimed).sum();
    let waits: Vec<&Histogram> = measured.iter().filter_map(|(_, part)| part.waits.as_ref()).collect();
    let samples = reports.filter_map(|one| Some(one.wait?.samples)).sum();
    sum.wait = Some(if waits.is_empty() {
        response
    } else {
        Summary::new(&added(waits.into_iter()), samples)
    });
    sum
}

/// The verdict on the figures of the whole, or the worst on a part if that is worse.
fn verdict(whole: &Whole<'_>, parts: &[MeasuredPart], ledger: &LedgerReport, rate: &Rate) -> Verdict {
    let measured = || parts.iter().filter_map(|part| part.result.as_deref().ok());
    let counts = &ledger.counts;
    let own_lag = added(measured().map(|part| &part.own_lag));
    let interval_ns = whole
        .context
        .workload
        .groups()
        .iter()
        .map(|group| group.interval_ns)
        .min();
    let runs: Vec<&Run> = measured().map(|part| &part.run).collect();
    let evidence = Evidence {
        received: counts.count(Counter::Accepted) + counts.count(Counter::Rejected),
        refused: counts.count(Counter::Rejected),
        asked_per_second: rate.asked_per_second,
        held_per_second: rate.held_per_second,
        ceiling_per_second: rate.ceiling_per_second,
        own_lag_p99_ns: own_lag.quantile(0.99),
        interval_ns: interval_ns.map(|interval| {
            let speed = whole.context.speed();
            speed.map_or(interval, |speed| speed.wall_ns(interval))
        }),
        noise: noise(&runs),
        ..read_back(ledger)
    };
    let mut verdict = evidence.verdict();
    let mut reasons = if verdict.status == Status::Valid {
        Vec::new()
    } else {
        std::mem::take(&mut verdict.reasons)
    };
    for part in parts {
        let (status, why) = match &part.result {
            Ok(measured) if measured.run.verdict.status == Status::Valid => continue,
            Ok(measured) => (measured.run.verdict.status, measured.run.verdict.reasons.clone()),
            Err(lost) => (lost.status(), lost.reasons()),
        };
        verdict.status = verdict.status.min(status);
        reasons.extend(why.into_iter().map(|why| format!("{}: {why}", part.name)));
    }
    if !reasons.is_empty() {
        verdict.reasons = reasons;
    }
    verdict
}

impl LostPart {
    /// A lost host limits what the generator sent, unless what it had sent is worse off.
    fn status(&self) -> Status {
        match &self.verified {
            Ok(verified) => verified.verdict.status.min(Status::GeneratorLimited),
            Err(_) => Status::Unverified,
        }
    }

    fn reasons(&self) -> Vec<String> {
        let lost = format!("the generator lost this host: {}", self.why);
        let found = match &self.verified {
            Ok(verified) => verified.verdict.reasons.clone(),
            Err(why) => vec![format!("what it had sent was not read back: {why}")],
        };
        std::iter::once(lost).chain(found).collect()
    }
}

/// The worst disturbance of any host.
fn noise(runs: &[&Run]) -> Option<Noise> {
    let most = |one: Option<f64>, other: Option<f64>| match (one, other) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    };
    let all = runs.iter().filter_map(|run| run.noise.clone());
    all.reduce(|mut worst, other| {
        worst.stolen_share = most(worst.stolen_share, other.stolen_share);
        worst.foreign_share = most(worst.foreign_share, other.foreign_share);
        worst.own_wait_share = most(worst.own_wait_share, other.own_wait_share);
        worst.late_share = worst.late_share.max(other.late_share);
        worst.late_max_ms = worst.late_max_ms.max(other.late_max_ms);
        worst
    })
}

fn staleness(
    whole: &Whole<'_>,
    measured: &[(&MeasuredPart, &HostPart)],
) -> Option<tsb_core::staleness::StalenessSummary> {
    let mut all = Staleness::new();
    for (part, of_host) in measured {
        all.merge(&of_host.staleness.clone().from_series(first_series(whole, part.part)));
    }
    let mut summary = all.summary()?;
    let stated = measured.iter().filter_map(|(_, part)| part.run.staleness.as_ref());
    summary.visibility_delay_ms = stated.filter_map(|one| one.visibility_delay_ms).max();
    Some(summary)
}

/// Costs per sample, each weighted by the samples of its host; sizes from the shared store.
fn cost(whole: &Whole<'_>, runs: &[&Run], ledger: &LedgerReport) -> Cost {
    let weights: Vec<f64> = runs
        .iter()
        .map(|run| {
            run.ledger
                .counts
                .count(Counter::Accepted)
                .max(run.ledger.counts.count(Counter::Confirmed)) as f64
        })
        .collect();
    let all: f64 = weights.iter().sum();
    let mean = |of: &dyn Fn(&Cost) -> Option<f64>| {
        let each = runs.iter().zip(&weights).filter(|(_, weight)| **weight > 0.0);
        let sum: Option<f64> = each.map(|(run, weight)| Some(of(&run.cost)? * weight)).sum();
        sum.filter(|_| all > 0.0).map(|sum| sum / all)
    };
    let mut cost = Cost::default();
    cost.generator_cpu_ns_per_sample = mean(&|cost| cost.generator_cpu_ns_per_sample);
    cost.pacing_cpu_ns_per_sample = mean(&|cost| cost.pacing_cpu_ns_per_sample);
    cost.wire_cpu_ns_per_sample = mean(&|cost| cost.wire_cpu_ns_per_sample);
    cost.store_cpu_ns_per_sample = mean(&|cost| cost.store_cpu_ns_per_sample);
    if cost.store_cpu_ns_per_sample.is_none() {
        let below = mean(&|cost| {
            let below = cost.store_cpu_below.map(|below| below.ns_per_sample);
            cost.store_cpu_ns_per_sample.or(below)
        });
        cost.store_cpu_below = below.map(CpuBelow::new);
    }
    cost.store_threads_cpu_ns_per_sample = mean(&|cost| cost.store_threads_cpu_ns_per_sample);
    cost.store_flush_cpu_ns_per_sample = mean(&|cost| cost.store_flush_cpu_ns_per_sample);
    cost.store_newest_cpu_ns_per_sample = mean(&|cost| cost.store_newest_cpu_ns_per_sample);
    cost.watching_cpu_ns_per_sample = mean(&|cost| cost.watching_cpu_ns_per_sample);
    cost.parts_cpu_ns_per_sample = mean(&|cost| cost.parts_cpu_ns_per_sample);
    cost.process_cpu_ns_per_sample = mean(&|cost| cost.process_cpu_ns_per_sample);
    cost.audit_cpu_ns_per_sample = mean(&|cost| cost.audit_cpu_ns_per_sample);
    cost.wire_bytes_per_sample = mean(&|cost| cost.wire_bytes_per_sample);
    if let Some(stats) = &whole.stats {
        run::bytes_of_each(&mut cost, stats, ledger.counts.count(Counter::Verified));
    } else {
        cost.bytes_per_sample = mean(&|cost| cost.bytes_per_sample);
        cost.sealed_bytes_per_sample = mean(&|cost| cost.sealed_bytes_per_sample);
        cost.disk_bytes_per_sample = mean(&|cost| cost.disk_bytes_per_sample);
    }
    cost.projection_absent = Some("several hosts shared the run".to_owned());
    cost.method = runs.first().map_or(String::new(), |run| run.cost.method.clone());
    cost
}

/// Intervals with one number are added: all hosts began at the same moment.
fn intervals(measured: &[(&MeasuredPart, &HostPart)]) -> Vec<Interval> {
    let longest = measured
        .iter()
        .map(|(_, part)| &part.run.intervals)
        .max_by_key(|all| all.len());
    let mut sums: Vec<Interval> = longest.map_or(Vec::new(), |all| {
        let ends = all.iter().map(|interval| {
            let mut sum = Interval::default();
            sum.end_ns = interval.end_ns;
            sum
        });
        ends.collect()
    });
    let mut response = Recording::default();
    for (_, part) in measured {
        let first = |slot: Option<u64>, more: Option<u64>| slot.map_or(more, |sum| Some(sum + more.unwrap_or(0)));
        for (sum, more) in sums.iter_mut().zip(&part.run.intervals) {
            sum.asked = first(sum.asked, more.asked);
            sum.sent += more.sent;
            sum.accepted += more.accepted;
            sum.lag_max_ns = sum.lag_max_ns.max(more.lag_max_ns);
            sum.staleness_max_ms = match (sum.staleness_max_ms, more.staleness_max_ms) {
                (Some(one), Some(other)) => Some(one.max(other)),
                (one, other) => one.or(other),
            };
            sum.cpu_ns += more.cpu_ns;
            sum.rss_bytes += more.rss_bytes;
            sum.read_bytes = first(sum.read_bytes, more.read_bytes);
            sum.written_bytes = first(sum.written_bytes, more.written_bytes);
        }
        // Each host's recording is on a clock of its own, and begins with the run.
        let mut shifted = part.response.clone();
        for interval in &mut shifted.intervals {
            interval.start_ns = interval.start_ns.saturating_sub(part.start_ns);
            interval.end_ns = interval.end_ns.saturating_sub(part.start_ns);
        }
        response.merge(shifted);
    }
    let ends: Vec<u64> = sums.iter().map(|interval| interval.end_ns).collect();
    by_interval(&response, 0, &ends, |index, histogram| {
        let sum = &mut sums[index];
        sum.response_p50_ns = histogram.supported_quantile(0.5);
        sum.response_p99_ns = histogram.supported_quantile(0.99);
        sum.response_max_ns = histogram.max();
        sum.response_cells = Cells::new(histogram);
    });
    sums
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
        let first = first_series(whole, part.part);
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
    report.series = series(whole, part.part);
    report.first_series = first_series(whole, part.part);
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
            "{} hosts began together to within {}; a staleness may be off by as much, and no response time spans two \
             clocks",
            parts.len(),
            units::nanos(ns)
        )
    }));
    notes
}
