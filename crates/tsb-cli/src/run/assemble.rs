//! From everything that was counted, timed and read back to one report.

use std::ops::Range;
use std::sync::Arc;

use tsb_core::Timestamp;
use tsb_core::latency::{Histogram, Recording, Summary};
use tsb_core::report::{
    Cost, DurabilityReport, Interval, Issued, Latency, ListenerReport, Offered, Projection, Rate, Run, Size, Target,
};
use tsb_core::resource::Machine;
use tsb_core::verdict::{Evidence, Verdict};
use tsb_stores::{Exactness, Store};

use super::engine::Performed;
use super::ledger::{Sides, done_means};
use super::stage::Stage;
use crate::audit::Audit;
use crate::plan::Transport;

/// What a report is made of.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    /// The run.
    pub stage: &'a Stage,
    /// Its store.
    pub store: &'a Arc<dyn Store>,
    /// The timestamp of the start.
    pub base: Timestamp,
    /// What was done.
    pub performed: &'a Performed,
    /// What was read back.
    pub audit: Option<&'a Audit>,
    /// The generator's ceiling.
    pub ceiling: Option<f64>,
    /// What longer times would cost.
    pub projection: Option<Projection>,
}

/// Puts a report together.
pub(super) fn assemble(parts: &Parts<'_>) -> Run {
    let (stage, performed) = (parts.stage, parts.performed);
    let driven = &performed.driven;
    let capabilities = parts.store.capabilities();
    let ledger = Sides {
        driven,
        accepted: performed.accepted,
        rejects: &performed.rejects,
        audit: parts.audit,
    }
    .ledger();
    let rate = rate(parts);
    let response = Summary::new(&driven.response.total, driven.timed_samples);
    let verdict = verdict(parts, &ledger, &rate);
    let protocol = (stage.plan.transport == Transport::Tcp).then_some(stage.plan.protocol);
    Run {
        started_at_ns: parts.base.0,
        duration_ns: driven.elapsed_ns,
        interrupted: driven.interrupted,
        plan: serde_json::to_value(&stage.plan).unwrap_or_default(),
        seed: stage.plan.workload.seed,
        fingerprint: fingerprint(stage),
        machine: Machine::examine(),
        target: Target {
            store: parts.store.to_string(),
            transport: stage.plan.transport.name().to_owned(),
            protocol: protocol.map(|protocol| protocol.to_string()),
            exactness: exactness(capabilities.exactness),
        },
        verdict,
        durability: DurabilityReport {
            level: capabilities.acknowledges,
            copies: 1,
            wait: Some(response),
        },
        rate,
        ledger,
        latency: Latency {
            done: done_means(protocol),
            response,
            service: Summary::new(&driven.service.total, driven.timed_samples),
            lag: Summary::new(&driven.lag.total, driven.started_samples),
            untimed: driven.wire.as_ref().map_or(0, |wire| wire.untimed),
        },
        staleness: performed.observed.staleness.summary(),
        cost: cost(parts),
        size: capabilities.query.then(|| size(&**parts.store)),
        offered: offered(stage, performed),
        intervals: intervals(parts),
        resources: performed.observed.resources.clone(),
        listener: listener(parts),
        issued: issued(parts),
        notes: notes(parts),
    }
}

fn rate(parts: &Parts<'_>) -> Rate {
    let (stage, driven) = (parts.stage, &parts.performed.driven);
    let closed_loop = stage.plan.is_closed_loop();
    let planned_ns = stage
        .plan
        .duration_ns
        .filter(|_| !driven.interrupted)
        .unwrap_or(driven.elapsed_ns)
        .max(1);
    let asked = driven.counts.due.samples as f64 * 1e9 / planned_ns as f64;
    Rate {
        asked_per_second: (!closed_loop).then_some(asked),
        held_per_second: parts.performed.held_per_second(),
        ceiling_per_second: parts.ceiling,
        closed_loop,
        speed: stage.speed().map_or_else(
            || {
                driven.counts.due.samples as f64 * 1e9
                    / driven.elapsed_ns.max(1) as f64
                    / stage.workload.samples_per_second()
            },
            tsb_core::schedule::Speed::as_f64,
        ),
    }
}

fn verdict(parts: &Parts<'_>, ledger: &tsb_core::report::LedgerReport, rate: &Rate) -> Verdict {
    let (stage, performed) = (parts.stage, parts.performed);
    let mut violations = ledger.violated.clone();
    violations.extend(performed.failure.clone());
    violations.extend(performed.driven.failures.iter().cloned());
    let tally = parts.audit.map(|audit| audit.tally).unwrap_or_default();
    let interval_ns = stage.workload.groups().iter().map(|group| group.interval_ns).min();
    let unverified = if !stage.plan.verify {
        Some("nothing was read back: --no-verify was given".to_owned())
    } else if !parts.store.capabilities().query {
        Some(format!("nothing was read back: {} cannot return samples", parts.store))
    } else {
        None
    };
    Evidence {
        violations,
        lost: ledger.counts.count(tsb_core::ledger::Counter::Lost),
        altered: tally.altered,
        duplicated: tally.duplicated,
        verified: tally.verified,
        unverified,
        asked_per_second: rate.asked_per_second,
        held_per_second: rate.held_per_second,
        ceiling_per_second: rate.ceiling_per_second,
        own_lag_p99_ns: performed.driven.own_lag.total.quantile(0.99),
        interval_ns: interval_ns.map(|interval| stage.speed().map_or(interval, |speed| speed.wall_ns(interval))),
        noise_share: performed.observed.noise_share,
    }
    .verdict()
}

fn cost(parts: &Parts<'_>) -> Cost {
    let (performed, driven) = (parts.performed, &parts.performed.driven);
    let samples = performed.accepted.max(1) as f64;
    let store_ns = performed.totals.store_cpu_ns_per_sample();
    let generator_ns = driven.cpu.total_ns as f64 / samples;
    let is_wire = driven.wire.is_some();
    let footprint = parts.store.stats().footprint;
    let held = parts.store.stats().samples;
    let sealed =
        (footprint.sealed_samples > 0).then(|| footprint.sealed_bytes as f64 / footprint.sealed_samples as f64);
    Cost {
        // In process the emitting thread is also the store's.
        generator_cpu_ns_per_sample: Some(if is_wire { generator_ns } else { (generator_ns - store_ns.unwrap_or(0.0)).max(0.0) }),
        wire_cpu_ns_per_sample: is_wire
            .then(|| (performed.observed.ingest_cpu_ns as f64 / samples - store_ns.unwrap_or(0.0)).max(0.0)),
        store_cpu_ns_per_sample: store_ns,
        bytes_per_sample: (held > 0).then(|| footprint.total_bytes() as f64 / held as f64),
        sealed_bytes_per_sample: sealed,
        disk_bytes_per_sample: None,
        wire_bytes_per_sample: driven.wire.as_ref().map(|wire| wire.sent_bytes as f64 / driven.counts.sent().samples.max(1) as f64),
        projection: parts.projection.clone(),
        method: "CPU clocks of the emitting and ingest threads, waiting and pacing included; the store's part by the thread \
            clock around one batch in 32"
            .to_owned(),
    }
}

fn size(store: &dyn Store) -> Size {
    let stats = store.stats();
    Size {
        samples: stats.samples,
        sealed_bytes: stats.footprint.sealed_bytes,
        sealed_samples: stats.footprint.sealed_samples,
        head_bytes: stats.footprint.head_bytes,
        journal_bytes: stats.footprint.journal_bytes,
        series_bytes: stats.footprint.series_bytes,
        free_bytes: stats.footprint.free_bytes,
    }
}

fn offered(stage: &Stage, performed: &Performed) -> Offered {
    let issued = &performed.driven.issued;
    let estimate = stage.workload.offered(issued);
    Offered {
        series: stage.workload.catalog().len() as u64,
        repeat_rate: estimate.repeat_rate,
        entropy_bits: estimate.entropy_bits,
        calculated_bits: estimate.calculated_bits,
        repeats: repeats(stage, issued),
    }
}

/// What of a recording came more than once, in words.
fn repeats(stage: &Stage, issued: &[Range<u64>]) -> Option<String> {
    let window = stage.workload.window()?;
    let ticks = issued.iter().map(|ticks| ticks.end).max().unwrap_or(0);
    let passes = window.passes(ticks);
    let copies = if window.copies > 1 {
        format!(
            ", and each of its {} series is replayed as up to {} copies, shifted in time",
            window.series, window.copies
        )
    } else {
        String::new()
    };
    (passes > 1.0 || window.copies > 1).then(|| {
        format!(
            "a recorded window of {} ticks was passed {passes:.2} times{copies}",
            window.ticks
        )
    })
}

/// The monitor's slices, with the latencies of the emitter's own intervals.
fn intervals(parts: &Parts<'_>) -> Vec<Interval> {
    let driven = &parts.performed.driven;
    let at = |recording: &Recording, index: usize, pick: fn(&Histogram) -> Option<u64>| {
        recording
            .intervals
            .get(index)
            .and_then(|interval| pick(&interval.histogram))
    };
    let slices = parts.performed.observed.intervals.iter().enumerate();
    slices
        .map(|(index, slice)| Interval {
            response_p50_ns: slice
                .response_p50_ns
                .or_else(|| at(&driven.response, index, |h| h.supported_quantile(0.5))),
            response_p99_ns: slice
                .response_p99_ns
                .or_else(|| at(&driven.response, index, |h| h.supported_quantile(0.99))),
            response_max_ns: slice
                .response_max_ns
                .or_else(|| at(&driven.response, index, Histogram::max)),
            lag_max_ns: at(&driven.lag, index, Histogram::max),
            ..*slice
        })
        .collect()
}

fn listener(parts: &Parts<'_>) -> Option<ListenerReport> {
    let wire = parts.performed.driven.wire.as_ref()?;
    let stats = wire.stats.as_ref()?;
    let kinds = stats.malformed_kinds.iter().map(|kind| (kind.what.clone(), kind.count));
    Some(ListenerReport {
        connections: stats.connections,
        refused_connections: stats.refused_connections,
        bytes: stats.bytes,
        malformed_by_kind: kinds.collect(),
        receive_buffer_bytes: wire.receive_buffer_bytes,
    })
}

/// Runs of groups with the same ticks, so that a report of a large fleet stays small.
fn issued(parts: &Parts<'_>) -> Vec<Issued> {
    let mut all: Vec<Issued> = Vec::new();
    for (group, ticks) in parts.performed.driven.issued.iter().enumerate() {
        match all.last_mut() {
            Some(last) if last.first_tick == ticks.start && last.end_tick == ticks.end => last.groups += 1,
            _ => all.push(Issued {
                first_group: group as u32,
                groups: 1,
                first_tick: ticks.start,
                end_tick: ticks.end,
            }),
        }
    }
    all
}

fn exactness(exactness: Exactness) -> String {
    match exactness {
        Exactness::Exact => "exact".to_owned(),
        Exactness::Float32 => "float32".to_owned(),
        Exactness::Decimals(n) => format!("{n} decimals"),
        Exactness::OnePerSlot(ns) => format!("one value per slot of {} s", ns as f64 / 1e9),
        Exactness::Consolidated => "consolidated".to_owned(),
        Exactness::Nothing => "nothing comes back".to_owned(),
    }
}

/// The same specification gives the same samples: it is hashed (FNV-1a), with the first
/// tick of every group, so that another generator shows too.
fn fingerprint(stage: &Stage) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    let mut eat = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    eat(serde_json::to_string(&stage.plan.workload)
        .unwrap_or_default()
        .as_bytes());
    let groups = stage.workload.groups();
    let mut generator = stage.workload.generator(0..groups.len(), Timestamp(0));
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
    let stage = parts.stage;
    let mut notes = Vec::new();
    if cfg!(debug_assertions) {
        notes.push("this is a debug build: no figure of it means anything; use cargo run --release".to_owned());
    }
    if stage.plan.is_closed_loop() {
        notes.push("closed loop: response times leave out how long others would have waited".to_owned());
    }
    if stage.plan.workload.resolution_ns > 1 {
        notes.push(format!(
            "timestamps are cut to {} s, which is what the wire or the store can tell apart; staleness includes it",
            stage.plan.workload.resolution_ns as f64 / 1e9
        ));
    }
    notes.extend(repeats(stage, &parts.performed.driven.issued));
    if parts.performed.driven.exceptions_dropped > 0 {
        notes.push(format!(
            "{} operations of unknown outcome could not be named",
            parts.performed.driven.exceptions_dropped
        ));
    }
    notes
}
