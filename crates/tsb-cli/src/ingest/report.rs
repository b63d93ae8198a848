//! The report of `tsb ingest`: the figures of a receiver, as a document and as text.

use std::sync::atomic::Ordering;

use tsb_core::ledger::{Counter, Ledger};
use tsb_core::net::{IngestCpu, ListenerStats};
use tsb_core::report::{Cost, CpuBelow, DurabilityReport, LedgerReport, Offered, Rate, Target};
use tsb_core::verdict::{Status, Verdict};
use tsb_run::ends::{IngestReport, WholeSize};
use tsb_run::run::size;
use tsb_run::units;
use tsb_stores::{Stats, Store};

use super::{ReportInput, Service};

impl Service {
    /// The part of the ledger that a receiver knows, and the samples that the store accepted.
    fn ledger(&self, listeners: &[ListenerStats], is_left: bool) -> (LedgerReport, u64) {
        let sum = |count: fn(&ListenerStats) -> u64| listeners.iter().map(count).sum::<u64>();
        let turned_away = sum(|stats| stats.refused + stats.unannounced);
        let accepted = self.totals.accepted.load(Ordering::Relaxed);
        let rejected = self.totals.rejected.load(Ordering::Relaxed) + turned_away;
        let malformed = sum(|stats| stats.malformed);
        let received = if is_left {
            // What is in a read that has not ended is in no count.
            malformed + rejected + accepted
        } else {
            sum(ListenerStats::received)
        };
        let mut ledger = Ledger::new();
        ledger
            .set(Counter::Received, received)
            .set(Counter::Malformed, malformed);
        ledger.set(Counter::Rejected, rejected).set(Counter::Accepted, accepted);
        let mut rejected_by_reason = self.rejects.by_reason();
        for (reason, samples) in listeners.iter().flat_map(ListenerStats::turned_away) {
            *rejected_by_reason.entry(reason.to_owned()).or_default() += samples;
        }
        let mut report = LedgerReport::default();
        report.counts = ledger;
        report.rejected_by_reason = rejected_by_reason;
        (report, accepted)
    }

    /// The report; what a receiver cannot know is absent.
    pub(super) fn result(&self, listeners: Vec<ListenerStats>, cpu: &IngestCpu, input: &ReportInput) -> IngestReport {
        let (ledger, accepted) = self.ledger(&listeners, input.abandoned.is_some());
        let (capabilities, stats) = (self.store.capabilities(), self.store.stats());
        let abandoned = input.abandoned.as_ref();
        // A store that was left behind does not say it.
        let size = abandoned.is_none().then(|| whole_size(&stats));
        let per_sample = size.filter(|size| size.parts.samples > 0);
        let per_sample = per_sample.map(|size| size.bytes as f64 / size.parts.samples as f64);
        let target = Target::new(self.store.to_string(), "listeners", "not read back");
        let durability = DurabilityReport::new(capabilities.acknowledges, capabilities.copies);
        let rate = Rate::held(accepted as f64 * 1e9 / input.elapsed_ns.max(1) as f64);
        let verdict = verdict(input, &ledger);
        let mut report = IngestReport::new(input.plan.clone(), target, verdict, durability, rate);
        report.started_at_ns = input.base.0;
        report.duration_ns = input.elapsed_ns;
        report.interrupted = abandoned.is_some_and(|abandoned| abandoned.is_stopped);
        report.ledger = ledger;
        "nothing is timed: a listener does not know when samples were due".clone_into(&mut report.latency.done);
        report.series.admitted = self.registry.len() as u64;
        report.series.name_bytes = self.registry.name_bytes();
        report.series.refused_names = self.registry.refused();
        report.series.first_error = self.registry.first_error();
        report.size = size;
        report.cost = cost(cpu, accepted, per_sample);
        report.offered = Offered::of_strangers(self.registry.len() as u64);
        report.intervals.clone_from(&input.intervals);
        report.resources.clone_from(&input.resources);
        report.damage = stats.damage;
        report.listeners = listeners;
        report
    }
}

fn verdict(input: &ReportInput, ledger: &LedgerReport) -> Verdict {
    let mut reasons = input.failures.clone();
    if let Some(abandoned) = &input.abandoned {
        reasons.push(format!(
            "{}: what is in reads that had not ended is not counted, and the store was not closed",
            abandoned.why
        ));
    }
    reasons.push("nothing was read back: who sent the samples is not known here".to_owned());
    let is_sound = input.failures.is_empty() && ledger.counts.is_balanced();
    Verdict::new(if is_sound { Status::Unverified } else { Status::Invalid }, reasons)
}

fn whole_size(stats: &Stats) -> WholeSize {
    WholeSize::new(stats.footprint.total_bytes(), size(stats))
}

/// CPU time and bytes per accepted sample; empty if there are none.
fn cost(cpu: &IngestCpu, accepted: u64, bytes_per_sample: Option<f64>) -> Cost {
    let mut cost = Cost::default();
    "the clocks of the listeners' threads, as METHODOLOGY.md has it".clone_into(&mut cost.method);
    if accepted == 0 {
        return cost;
    }
    let each = |ns: u64| ns as f64 / accepted as f64;
    let is_known = cpu.apply_ns > cpu.uncertain_ns;
    cost.bytes_per_sample = bytes_per_sample;
    cost.wire_cpu_ns_per_sample = Some(each(cpu.wire_ns));
    cost.pacing_cpu_ns_per_sample = Some(each(cpu.wait_ns));
    cost.watching_cpu_ns_per_sample = Some(each(cpu.measure_ns));
    cost.store_cpu_ns_per_sample = is_known.then(|| each(cpu.apply_ns));
    cost.store_cpu_below = (!is_known).then(|| CpuBelow::new(each(cpu.uncertain_ns.max(1))));
    cost
}

/// Reads one counter of a listener.
type Count = fn(&ListenerStats) -> u64;

/// Counters of refused or forgotten peers, with the text for each.
const TURNED_AWAY: [(Count, &str); 4] = [
    (
        |stats| stats.refused_connections,
        "connections refused: --max-connections were open",
    ),
    (
        |stats| stats.accept_errors,
        "failures to accept a connection or to receive a datagram",
    ),
    (
        |stats| stats.idle_closes,
        "connections closed because they were silent (?idle=)",
    ),
    (
        |stats| stats.forgotten_senders,
        "senders of datagrams forgotten to make room for others (--max-connections)",
    ),
];

/// The report as text: the same figures, in order.
pub(super) fn text(result: &IngestReport) -> String {
    let ledger = |counter| units::count(result.ledger.counts.count(counter));
    let mut lines = vec![
        format!(
            "received {}, malformed {}, rejected {}, accepted {} samples of {} series",
            ledger(Counter::Received),
            ledger(Counter::Malformed),
            ledger(Counter::Rejected),
            ledger(Counter::Accepted),
            units::count(result.series.admitted),
        ),
        format!(
            "held {} per second at durability {}",
            units::scaled(result.rate.held_per_second),
            result.durability.level,
        ),
    ];
    for kind in result.listeners.iter().flat_map(|listener| &listener.malformed_kinds) {
        let example = kind.examples.first().map_or("", String::as_str);
        lines.push(format!(
            "malformed, {}: {} (such as {example:?})",
            kind.what, kind.count
        ));
    }
    lines.extend(result.listeners.iter().flat_map(of_listener));
    lines.extend(result.damage.iter().map(ToString::to_string));
    let reasons = result.ledger.rejected_by_reason.iter();
    lines.extend(reasons.map(|(reason, count)| format!("rejected, {reason}: {count}")));
    let error = result.series.first_error.iter();
    lines.extend(error.map(|error| format!("not defined, such as: {error}")));
    lines.join("\n") + "\n"
}

/// Lines about the peers and datagrams that a listener refused or lost.
fn of_listener(listener: &ListenerStats) -> Vec<String> {
    let counts = TURNED_AWAY.map(|(count, what)| (count(listener), what));
    let turned_away = counts.iter().filter(|(count, _)| *count > 0);
    let mut lines: Vec<String> = turned_away
        .map(|(count, what)| format!("{} {what}", units::count(*count)))
        .collect();
    if listener.datagrams > 0 {
        lines.push(format!(
            "{} datagrams; the kernel dropped {}; {} samples missing by their numbers",
            units::count(listener.datagrams),
            units::count(listener.kernel_drops),
            units::count(listener.missing_samples),
        ));
    }
    lines
}
