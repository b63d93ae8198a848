//! Builds a report from everything that was counted, timed and read back.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tsb_core::Timestamp;
use tsb_core::latency::{Curve, Summary};
use tsb_core::net::{Carrier, ListenerStats};
use tsb_core::report::{
    BreakdownReport, Cost, Curves, DatagramReport, DurabilityReport, EstimatedFrom, Issued, KnownParts, Latency,
    ListenerReport, Offered, PlaceReport, Projection, Rate, Run, Size, Target,
};
use tsb_stores::{Exactness, SlotArchive, SlotArchives, Stats, Store};

use super::cost::{audit_of_each, bytes_of_each, unexplained};
use super::earlier;
use super::judge;
use super::ledger::{LedgerInputs, done_means};
use super::missing::{missing, missing_note};
use super::monitor::LOOK_NS;
use super::path::Wire;
use super::results::{Performed, ReadBack};
use super::run_context::RunContext;
use super::{interval_latencies, peak, phases, recorded};
use crate::audit::{Audit, is_unconfirmed};
use crate::units;

/// The inputs of a report.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    /// The plan, the workload and the timetable.
    pub context: &'a RunContext,
    /// The store that was driven.
    pub store: &'a Arc<dyn Store>,
    /// The timestamp of the start.
    pub base: Timestamp,
    /// The results of driving the load.
    pub performed: &'a Performed,
    /// The results of reading back.
    pub read: &'a ReadBack,
    /// The generator's ceiling in samples per second, if it was measured.
    pub ceiling: Option<f64>,
    /// Size after a day and a week, or why it is not known.
    pub projection: Result<Projection, String>,
}

impl Parts<'_> {
    /// The audit, if the store was read back.
    pub(super) const fn audit(&self) -> Option<&Audit> {
        self.read.audit.as_ref()
    }

    /// The store's first failure, as text.
    pub(super) fn failure(&self) -> Option<&String> {
        self.performed.failure.as_ref().or(self.read.failure.as_ref())
    }
}

/// Builds the report.
pub(super) fn assemble(parts: &Parts<'_>) -> Run {
    let (context, performed) = (parts.context, parts.performed);
    let driven = &performed.driven;
    let capabilities = parts.store.capabilities();
    let ledger_inputs = ledger_inputs(context, performed, &**parts.store, parts.audit());
    let ledger = ledger_inputs.ledger();
    let rate = rate(parts);
    let response = Summary::new(&driven.response.total, driven.timed_samples);
    let intervals = interval_latencies::with_latencies(&performed.observed.intervals, driven);
    let phases = phases::of(&context.plan, &intervals, driven);
    let verdict = judge::verdict(parts, &ledger, &rate, &phases);
    let cost = cost(parts);
    // Reading back may have found some of it.
    let damage = parts.store.stats().damage;
    let mut notes = notes(parts);
    notes.extend(damage.iter().map(ToString::to_string));
    notes.extend(phases::note(&phases).filter(|_| !driven.interrupted));
    notes.extend(unexplained(&cost));
    let protocol = context.plan.transport.is_wire().then_some(context.plan.protocol);
    let mut target = Target::new(
        parts.store.to_string(),
        context.plan.transport.name(),
        exactness(capabilities.exactness),
    );
    target.protocol = protocol.map(|protocol| protocol.to_string());
    let mut run = Run::new(
        target,
        verdict,
        durability(parts, response),
        rate,
        ledger,
        latency(parts, response),
    );
    run.started_at_ns = parts.base.0;
    run.duration_ns = driven.elapsed_ns;
    run.interrupted = driven.interrupted;
    run.plan = serde_json::to_value(&context.plan).unwrap_or_default();
    run.seed = context.plan.workload.seed;
    run.fingerprint = fingerprint(context);
    run.preload = performed.preloaded.map(|preloaded| preloaded.report());
    let streams = performed.queries.iter();
    run.query_latency = streams
        .map(|stream| (stream.name.clone(), stream.latency.clone()))
        .collect();
    run.noise.clone_from(&performed.observed.noise);
    run.staleness = performed.observed.staleness.summary();
    if let Some(staleness) = &mut run.staleness {
        let delay_ms = capabilities.visibility_delay_ms;
        staleness.visibility_delay_ms = (delay_ms > 0).then_some(delay_ms);
    }
    run.cost = cost;
    // The store's figures include what was there before.
    let sized = performed
        .stats
        .as_ref()
        .filter(|_| capabilities.query && context.held.get().is_none());
    run.size = sized.map(size);
    run.place = place(parts);
    run.offered = offered(context, &driven.issued);
    run.intervals = intervals;
    run.phases = phases;
    run.resources.clone_from(&performed.observed.resources);
    run.listener = listener(parts);
    run.issued = issued(&driven.issued);
    run.exceptions = Some(ledger_inputs.exceptions());
    run.damage = damage;
    run.notes = notes;
    run
}

/// The counters of each side of a run.
pub(super) fn ledger_inputs<'a>(
    context: &'a RunContext,
    performed: &'a Performed,
    store: &dyn Store,
    audit: Option<&'a Audit>,
) -> LedgerInputs<'a> {
    let is_unconfirmed = is_unconfirmed(&store.capabilities());
    // Behind a listener, only reading back says which of them came.
    let open = if is_unconfirmed && performed.driven.wire.is_some() && audit.is_some() {
        performed.accepted
    } else {
        0
    };
    LedgerInputs {
        is_unconfirmed,
        transport: context.plan.transport,
        protocol: context.plan.protocol,
        merges: context.plan.wire.gro,
        driven: &performed.driven,
        accepted: performed.accepted - open,
        unsettled: if performed.driven.is_partial {
            // The emitter's counters include them in `unknown` already.
            open
        } else {
            performed.totals.unsettled.load(Ordering::Relaxed) + open
        },
        rejects: &performed.rejects,
        audit,
        heard: &performed.observed.heard,
        has_store_failed: performed.failure.is_some(),
        preloaded: performed.preloaded,
        workload: &context.workload,
    }
}

fn latency(parts: &Parts<'_>, response: Summary) -> Latency {
    let (context, performed) = (parts.context, parts.performed);
    let driven = &performed.driven;
    let transport = context.plan.transport;
    let protocol = transport.is_wire().then_some(context.plan.protocol);
    let is_delivered = protocol.is_some() && !transport.is_answered();
    let mut curves = Curves::default();
    curves.response = Curve::new(&driven.response.total);
    curves.delivery = is_delivered.then(|| Curve::new(&driven.delivery.total));
    curves.service = Curve::new(&driven.service.total);
    curves.lag = Curve::new(&driven.lag.total);
    let mut latency = Latency::new(done_means(
        protocol,
        transport,
        is_unconfirmed(&parts.store.capabilities()),
    ));
    latency.response = response;
    latency.delivery = is_delivered.then(|| Summary::new(&driven.delivery.total, driven.timed_samples));
    latency.service = Summary::new(&driven.service.total, driven.timed_samples);
    latency.lag = Summary::new(&driven.lag.total, driven.started_samples);
    latency.untimed = driven.wire.as_ref().map_or(0, |wire| wire.untimed);
    latency.missing = missing(driven);
    latency.curves = Some(curves);
    let known = match protocol {
        Some(_) if is_delivered => KnownParts::Wire,
        None if driven.most_in_flight == 0 => KnownParts::Store,
        _ => KnownParts::Answer,
    };
    let breakdown = BreakdownReport::new(known, &driven.breakdown, &driven.response.total, driven.start_ns);
    latency.breakdown = breakdown.map(|mut breakdown| {
        breakdown.name_events(&performed.observed.events, driven.start_ns);
        breakdown
    });
    latency
}

/// A store that acknowledges below its highest level was flushed at the end: the report then
/// gives the highest level, and how long samples waited for it.
fn durability(parts: &Parts<'_>, response: Summary) -> DurabilityReport {
    let capabilities = parts.store.capabilities();
    let window = parts.performed.window.as_ref().filter(|_| parts.failure().is_none());
    let (wait, untimed) = window.map_or((response, 0), |window| window.summary());
    let level = if window.is_some() {
        capabilities.reaches
    } else {
        capabilities.acknowledges
    };
    let mut report = DurabilityReport::new(level, capabilities.copies);
    report.acknowledged = capabilities.acknowledges;
    report.wait = Some(wait);
    report.untimed = untimed;
    report
}

fn rate(parts: &Parts<'_>) -> Rate {
    let (context, driven) = (parts.context, &parts.performed.driven);
    let closed_loop = context.plan.is_closed_loop();
    let asked = driven.counts.due.samples as f64 * 1e9 / driven.asked_ns.max(1) as f64;
    let mut rate = Rate::held(parts.performed.held_per_second());
    rate.asked_per_second = (!closed_loop).then_some(asked);
    rate.durable_per_second = parts.performed.durable_per_second();
    rate.peak = peak::of(
        &context.timetable,
        &parts.performed.observed.intervals,
        context.plan.report_interval_ns,
    );
    rate.ceiling_per_second = parts.ceiling;
    rate.closed_loop = closed_loop;
    rate.speed = context.speed().map_or_else(
        || {
            driven.counts.due.samples as f64 * 1e9
                / driven.elapsed_ns.max(1) as f64
                / context.workload.samples_per_second()
        },
        tsb_core::schedule::Speed::as_f64,
    );
    rate
}

fn cost(parts: &Parts<'_>) -> Cost {
    let (performed, driven) = (parts.performed, &parts.performed.driven);
    let verified = parts.audit().map(|audit| audit.tally.verified);
    let spent = performed.spent;
    let mut cost = spent.map_or_else(Cost::default, |spent| spent.of_each(performed.accepted));
    let history = performed.preloaded.map_or(0, |preloaded| preloaded.accepted());
    let audit_ns = parts.read.cpu_ns;
    cost.audit_cpu_ns_per_sample = audit_ns.and_then(|ns| audit_of_each(ns, performed.accepted, history));
    if let Some(stats) = performed.stats.as_ref().filter(|_| parts.context.held.get().is_none()) {
        bytes_of_each(&mut cost, stats, verified.unwrap_or(performed.accepted));
    }
    let sent = driven.counts.sent().samples.max(1) as f64;
    cost.wire_bytes_per_sample = driven.wire.as_ref().map(|wire| wire.sent_bytes as f64 / sent);
    match &parts.projection {
        Ok(projection) => cost.projection = Some(projection.clone()),
        Err(why) => cost.projection_absent = keeps_something(parts).then(|| why.clone()),
    }
    cost
}

/// The place of the run. What its files occupy is measured again once it is closed.
fn place(parts: &Parts<'_>) -> Option<PlaceReport> {
    // A spec that names no place was refused before the run.
    let place = earlier::place_of(parts.context).ok().flatten()?;
    let mut report = place.report(parts.performed.stats.as_ref());
    report.earlier = parts.context.held.get().map(|held| held.report(parts.base));
    Some(report)
}

/// Whether a size can be projected: not for a store that keeps nothing.
fn keeps_something(parts: &Parts<'_>) -> bool {
    parts.store.capabilities().query
}

/// What a store occupies, by kind.
pub fn size(stats: &Stats) -> Size {
    let footprint = &stats.footprint;
    let mut size = Size::default();
    size.samples = stats.samples;
    size.sealed_bytes = footprint.sealed_bytes;
    size.sealed_samples = footprint.sealed_samples;
    size.head_bytes = footprint.head_bytes;
    size.journal_bytes = footprint.journal_bytes;
    size.series_bytes = footprint.series_bytes;
    size.free_bytes = footprint.free_bytes;
    size.disk_bytes = stats.disk_bytes;
    size
}

/// Properties of the samples in the issued ticks: bits of information per value, and repeats.
pub fn offered(context: &RunContext, issued: &[Range<u64>]) -> Offered {
    let estimate = context.workload.offered(issued);
    let series = context.workload.catalog().len() as u64;
    let mut offered = Offered::new(series, estimate.repeat_rate, estimate.entropy_bits);
    offered.bounded_share = Some(estimate.bounded_share);
    offered.estimated_from = Some(EstimatedFrom::new(estimate.series, estimate.values));
    offered.calculated_bits = estimate.calculated_bits;
    offered.repeats = recorded::repeats(&context.workload, issued);
    offered.recording = recorded::report(&context.workload, issued);
    offered
}

fn listener(parts: &Parts<'_>) -> Option<ListenerReport> {
    let wire = parts.performed.driven.wire.as_ref()?;
    let stats = wire.stats.as_ref()?;
    let kinds = stats.malformed_kinds.iter().map(|kind| (kind.what.clone(), kind.count));
    let mut report = ListenerReport::default();
    report.connections = stats.connections;
    report.refused_connections = stats.refused_connections;
    report.bytes = stats.bytes;
    report.malformed_by_kind = kinds.collect();
    report.receive_buffer_bytes = wire.receive_buffer_bytes;
    report.datagrams = datagrams(parts, wire, stats);
    Some(report)
}

fn datagrams(parts: &Parts<'_>, wire: &Wire, stats: &ListenerStats) -> Option<DatagramReport> {
    let plan = &parts.context.plan;
    if plan.transport.carrier() != Carrier::Datagrams {
        return None;
    }
    let mut report = DatagramReport::default();
    report.sent = wire.sent_datagrams;
    report.received = stats.datagrams;
    report.kernel_drops = plan.transport.may_lose().then_some(stats.kernel_drops);
    report.lost_by_waymarks = stats.missing_datagrams;
    report.lost_samples_by_number = plan.protocol.capabilities().sequenced.then_some(stats.missing_samples);
    report.lost_operations = wire.lost_operations;
    report.sockets = stats.connections;
    report.segments_per_call = wire.segments;
    report.send_buffer_bytes = wire.send_buffer_bytes;
    Some(report)
}

/// Notes about losses on the wire.
fn on_the_way(parts: &Parts<'_>) -> Vec<String> {
    let Some(wire) = &parts.performed.driven.wire else {
        return Vec::new();
    };
    let mut notes = Vec::new();
    let plan = &parts.context.plan;
    if plan.transport.carrier() == Carrier::Datagrams {
        let asked = plan.wire.receive_buffer(parts.context.workload.catalog().len()) as u64;
        let granted = wire.receive_buffer_bytes.unwrap_or(0);
        if granted < asked {
            notes.push(format!(
                "a receive buffer of {asked} bytes was asked for, and {granted} were granted: raise net.core.rmem_max"
            ));
        }
    }
    if wire.lost_operations > 0 {
        notes.push(format!(
            "{} operations did not arrive whole; response, delivery and service times are of those that did",
            wire.lost_operations
        ));
    }
    notes
}

/// The issued ticks, with consecutive groups of equal ticks merged, so that the report of a
/// large fleet stays small.
pub fn issued(ticks: &[Range<u64>]) -> Vec<Issued> {
    let mut all: Vec<Issued> = Vec::new();
    for (group, ticks) in ticks.iter().enumerate() {
        match all.last_mut() {
            Some(last) if last.first_tick == ticks.start && last.end_tick == ticks.end => last.groups += 1,
            _ => all.push(Issued::new(group as u32, ticks.clone())),
        }
    }
    all
}

pub(crate) fn exactness(exactness: Exactness) -> String {
    match exactness {
        Exactness::Exact => "exact".to_owned(),
        Exactness::LastBit => "exact but for a float's last bit".to_owned(),
        Exactness::Float32 => "float32".to_owned(),
        Exactness::Decimals(n) => format!("{n} decimals"),
        Exactness::Significant(n) => format!("{n} significant digits of the largest value"),
        Exactness::OnePerSlot(ns) => format!("one value per slot of {} s", ns as f64 / 1e9),
        Exactness::Consolidated(_) => "consolidated".to_owned(),
        Exactness::Slots(rule) => slots(&rule),
        Exactness::Nothing => "nothing comes back".to_owned(),
    }
}

fn slots(rule: &SlotArchives) -> String {
    let archive = |archive: SlotArchive| format!("{} s for {} s", archive.slot_s, archive.retention_s());
    let archives: Vec<String> = rule.archives().map(archive).collect();
    format!("the last value of each slot, consolidated: {}", archives.join(", "))
}

/// A hash (FNV-1a) of the workload's specification and of the first tick of every group. Equal
/// specifications give equal hashes, unless the generator has changed.
pub fn fingerprint(context: &RunContext) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut eat = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    eat(serde_json::to_string(&context.plan.workload)
        .unwrap_or_default()
        .as_bytes());
    let groups = context.workload.groups();
    let mut generator = context.workload.generator(0..groups.len(), Timestamp(0));
    for (index, group) in groups.iter().enumerate() {
        for (series, at, value) in generator.operation(index, group.ticks.start).iter() {
            eat(&series.0.to_le_bytes());
            eat(&at.0.to_le_bytes());
            eat(&value.to_bits().to_le_bytes());
        }
    }
    format!("{hash:016x}")
}

fn notes(parts: &Parts<'_>) -> Vec<String> {
    let context = parts.context;
    let mut notes = Vec::new();
    if cfg!(debug_assertions) {
        notes.push("this is a debug build: no figure of it means anything; use cargo run --release".to_owned());
    }
    if context.plan.is_closed_loop() {
        notes.push("closed loop: response times leave out how long others would have waited".to_owned());
    }
    if context.plan.workload.resolution_ns > 1 {
        notes.push(format!(
            "timestamps are cut to {} s, which is what the wire or the store can tell apart; staleness includes it",
            context.plan.workload.resolution_ns as f64 / 1e9
        ));
    }
    notes.extend(context.held.get().map(earlier::Held::note));
    notes.extend(recorded::notes(context));
    notes.extend(parts.performed.preloaded.map(|preloaded| preloaded.note()));
    notes.extend(on_the_way(parts));
    notes.extend(parts.performed.queries.iter().flat_map(|stream| stream.notes.clone()));
    notes.extend(recorded::repeats(&context.workload, &parts.performed.driven.issued));
    if parts.performed.driven.exceptions_dropped > 0 {
        notes.push(format!(
            "{} operations of unknown outcome could not be named",
            parts.performed.driven.exceptions_dropped
        ));
    }
    notes.extend(missing_note(
        parts.performed.driven.response.total.count(),
        missing(&parts.performed.driven),
    ));
    notes.extend(parts.performed.driven.late_start_note(context));
    notes.extend(slow_answers(parts));
    notes.extend(driven_directly(parts));
    notes.extend(in_flight(parts));
    notes.extend(unacknowledged(parts));
    notes.extend(unanswered(parts));
    notes.extend(parts.performed.unflushed.clone());
    notes.extend(repeated_reads(parts));
    notes.extend(seen_from_outside(parts));
    notes
}

/// A note on a store whose answers take long enough to show in the ages of its samples.
fn slow_answers(parts: &Parts<'_>) -> Option<String> {
    let slowest_ns = parts.performed.observed.slowest_answer_ns;
    (slowest_ns >= LOOK_NS).then(|| {
        format!(
            "the store took up to {} to say what its newest samples are; a sample grows older meanwhile, and staleness \
             includes that",
            units::nanos(slowest_ns)
        )
    })
}

/// A note on a store that was silent while it was read back.
fn repeated_reads(parts: &Parts<'_>) -> Option<String> {
    let repeated = parts.audit()?.repeated_reads;
    (repeated > 0).then(|| format!("{repeated} reads of the read-back were not answered, and were repeated"))
}

/// A note on what is missing from a report whose emitter is still inside a call into the store.
fn seen_from_outside(parts: &Parts<'_>) -> Option<String> {
    parts.performed.driven.is_partial.then(|| {
        "the emitter did not come back: what it was sending is unknown, its times are those of the report intervals \
         that were over, to an eighth, and what it cost is not known"
            .to_owned()
    })
}

/// A note for a run in which a client sends to a server directly, over its own connection.
fn driven_directly(parts: &Parts<'_>) -> Option<String> {
    let plan = &parts.context.plan;
    let is_direct = !plan.transport.is_wire() && plan.stores.iter().any(crate::spec::Spec::is_client);
    is_direct.then(|| {
        "samples went from this process to the server; --transport tcp puts a wire and a listener of tsb before it"
            .to_owned()
    })
}

/// A note on how many writes of a client were in flight.
fn in_flight(parts: &Parts<'_>) -> Option<String> {
    let (most, bound) = (
        parts.performed.driven.most_in_flight,
        parts.context.plan.writes_in_flight(),
    );
    let full = if most == bound && !parts.context.plan.is_closed_loop() {
        "; what was due beyond them waited, which is lag: --in-flight says how many there may be"
    } else {
        ""
    };
    (most > 0).then(|| format!("at most {most} of {bound} writes were in flight at a time{full}"))
}

/// A note on a server that acknowledges nothing.
fn unacknowledged(parts: &Parts<'_>) -> Option<String> {
    if !is_unconfirmed(&parts.store.capabilities()) {
        return None;
    }
    let settled = match parts.audit() {
        Some(_) => "what was not there when it was read back was lost on the way or by the server",
        None => "nothing was read back, so what became of them stays unknown",
    };
    Some(format!(
        "{} acknowledges nothing: every sample handed to it is unknown; {settled}",
        parts.store
    ))
}

/// A note on operations that a server never answered, or that never reached one.
fn unanswered(parts: &Parts<'_>) -> Option<String> {
    let why = parts.performed.totals.hindrance()?;
    let unsettled = parts.performed.totals.unsettled.load(Ordering::Relaxed);
    if parts.performed.driven.wire.is_some() {
        let read = if parts.audit().is_some() {
            "those that were not there when they were read back"
        } else {
            "all of them, because nothing was read back,"
        };
        return Some(format!(
            "behind the listener {unsettled} samples were never answered for, and {read} are counted as lost on the \
             way; the first time: {}",
            crate::error::chain(&*why)
        ));
    }
    let (unknown, shed) = (
        parts.performed.driven.counts.unknown,
        parts.performed.driven.counts.shed,
    );
    let settled = parts.audit().map(|audit| {
        let absent = audit.absent.min(unknown.samples);
        format!(
            ", of which {} were there when they were read back",
            unknown.samples - absent
        )
    });
    Some(format!(
        "{} operations of {} samples were never answered{}, and {} of {} samples were not sent; the first time: {}",
        unknown.operations,
        unknown.samples,
        settled.unwrap_or_default(),
        shed.operations,
        shed.samples,
        crate::error::chain(&*why),
    ))
}
