//! Figures that are one number of the report: rates, staleness, cost, sizes, resources, noise.

use tsb_core::report::{Cost, Run};
use tsb_core::resource::{Noise, Usage};

use super::better::Better::{self, Higher, Lower, Neither};
use super::reading::Reading;
use crate::units::Unit;

/// One number of a report.
#[derive(Debug)]
pub(super) struct Scalar {
    pub name: &'static str,
    pub unit: Unit,
    pub better: Better,
    pub of: fn(&Run) -> Option<Reading>,
    /// Why a run does not have it.
    pub absent: &'static str,
}

const fn scalar(
    name: &'static str,
    unit: Unit,
    better: Better,
    absent: &'static str,
    of: fn(&Run) -> Option<Reading>,
) -> Scalar {
    Scalar {
        name,
        unit,
        better,
        of,
        absent,
    }
}

const CLOSED: &str = "a closed loop asks for no rate";
const NOT_MEASURED: &str = "it was not measured in this run";
const NO_PART: &str = "the run has no such part, or it could not be measured";
const NO_STALENESS: &str = "staleness was not measured in this run";
const NO_SIZE: &str = "the size of the store is not known";
const NO_PROJECTION: &str = "there is no projection; projection_absent in the report says why";
const NOBODY: &str = "no other process was watched";

pub(super) const SCALARS: &[Scalar] = &[
    scalar("asked", Unit::Rate, Neither, CLOSED, |run| {
        exact(run.rate.asked_per_second)
    }),
    scalar("held", Unit::Rate, Higher, "", |run| {
        exact(Some(run.rate.held_per_second))
    }),
    scalar("held_share", Unit::Share, Higher, CLOSED, |run| {
        let asked = run.rate.asked_per_second.filter(|asked| *asked > 0.0);
        exact(asked.map(|asked| run.rate.held_per_second / asked))
    }),
    scalar(
        "held_until_durable",
        Unit::Rate,
        Higher,
        "no flush was needed to reach the durability of the report",
        |run| exact(run.rate.durable_per_second),
    ),
    scalar(
        "ceiling",
        Unit::Rate,
        Neither,
        "the ceiling of the generator was not measured",
        |run| exact(run.rate.ceiling_per_second),
    ),
    scalar(
        "peak.kept_share",
        Unit::Share,
        Higher,
        "the rate of this run does not change",
        |run| exact(run.rate.peak.map(|peak| peak.kept_share)),
    ),
    scalar("response.missing", Unit::Count, Lower, "", |run| {
        exact(Some(run.latency.missing as f64))
    }),
    scalar("response.untimed", Unit::Count, Lower, "", |run| {
        exact(Some(run.latency.untimed as f64))
    }),
    scalar("staleness.p50", Unit::Nanos, Lower, NO_STALENESS, |run| {
        exact(run.staleness.map(|summary| summary.p50_ms * 1e6))
    }),
    scalar("staleness.p99", Unit::Nanos, Lower, NO_STALENESS, |run| {
        exact(run.staleness.map(|summary| summary.p99_ms * 1e6))
    }),
    scalar("staleness.max", Unit::Nanos, Lower, NO_STALENESS, |run| {
        exact(run.staleness.map(|summary| summary.max_ms * 1e6))
    }),
    scalar("staleness.never_visible", Unit::Count, Lower, NO_STALENESS, |run| {
        exact(run.staleness?.never_visible.map(|series| series as f64))
    }),
    scalar("cost.generator", Unit::NanosEach, Lower, NO_PART, |run| {
        exact(run.cost.generator_cpu_ns_per_sample)
    }),
    scalar("cost.pacing", Unit::NanosEach, Lower, NO_PART, |run| {
        exact(run.cost.pacing_cpu_ns_per_sample)
    }),
    scalar("cost.wire", Unit::NanosEach, Lower, NO_PART, |run| {
        exact(run.cost.wire_cpu_ns_per_sample)
    }),
    scalar("cost.store", Unit::NanosEach, Lower, NO_PART, |run| {
        cost_of_store(&run.cost)
    }),
    scalar("cost.store.write", Unit::NanosEach, Lower, NO_PART, |run| {
        cost_of_writes(&run.cost)
    }),
    scalar("cost.store.threads", Unit::NanosEach, Lower, NO_PART, |run| {
        exact(run.cost.store_threads_cpu_ns_per_sample)
    }),
    scalar("cost.store.flush", Unit::NanosEach, Lower, NO_PART, |run| {
        exact(run.cost.store_flush_cpu_ns_per_sample)
    }),
    scalar("cost.store.newest", Unit::NanosEach, Lower, NO_PART, |run| {
        exact(run.cost.store_newest_cpu_ns_per_sample)
    }),
    scalar("cost.queries", Unit::NanosEach, Lower, NO_PART, |run| {
        exact(run.cost.queries_cpu_ns_per_sample)
    }),
    scalar("cost.watching", Unit::NanosEach, Lower, NO_PART, |run| {
        exact(run.cost.watching_cpu_ns_per_sample)
    }),
    scalar("cost.parts", Unit::NanosEach, Lower, NO_PART, |run| {
        exact(run.cost.parts_cpu_ns_per_sample)
    }),
    scalar("cost.process", Unit::NanosEach, Lower, NO_PART, |run| {
        exact(run.cost.process_cpu_ns_per_sample)
    }),
    scalar("cost.audit", Unit::NanosEach, Lower, NO_PART, |run| {
        exact(run.cost.audit_cpu_ns_per_sample)
    }),
    scalar("bytes_per_sample", Unit::BytesEach, Lower, NO_SIZE, |run| {
        exact(run.cost.bytes_per_sample)
    }),
    scalar(
        "sealed_bytes_per_sample",
        Unit::BytesEach,
        Lower,
        "nothing is sealed, or the size of the store is not known",
        |run| exact(run.cost.sealed_bytes_per_sample),
    ),
    scalar(
        "disk_bytes_per_sample",
        Unit::BytesEach,
        Lower,
        "the store has no files on this machine",
        |run| exact(run.cost.disk_bytes_per_sample),
    ),
    scalar(
        "wire_bytes_per_sample",
        Unit::BytesEach,
        Lower,
        "the run has no wire",
        |run| exact(run.cost.wire_bytes_per_sample),
    ),
    scalar("size.sealed", Unit::Bytes, Lower, NO_SIZE, |run| {
        exact(run.size.map(|size| size.sealed_bytes as f64))
    }),
    scalar("size.head", Unit::Bytes, Lower, NO_SIZE, |run| {
        exact(run.size.map(|size| size.head_bytes as f64))
    }),
    scalar("size.journal", Unit::Bytes, Lower, NO_SIZE, |run| {
        exact(run.size.map(|size| size.journal_bytes as f64))
    }),
    scalar("size.series", Unit::Bytes, Lower, NO_SIZE, |run| {
        exact(run.size.map(|size| size.series_bytes as f64))
    }),
    scalar("size.free", Unit::Bytes, Lower, NO_SIZE, |run| {
        exact(run.size.map(|size| size.free_bytes as f64))
    }),
    scalar(
        "size.disk",
        Unit::Bytes,
        Lower,
        "the store has no files on this machine",
        |run| exact(run.size?.disk_bytes.map(|bytes| bytes as f64)),
    ),
    scalar("size.day", Unit::Bytes, Lower, NO_PROJECTION, |run| {
        exact(run.cost.projection.as_ref().map(|projection| projection.day_bytes))
    }),
    scalar("size.week", Unit::Bytes, Lower, NO_PROJECTION, |run| {
        exact(run.cost.projection.as_ref().map(|projection| projection.week_bytes))
    }),
    scalar("rss", Unit::Bytes, Lower, NOT_MEASURED, |run| exact(rss(run))),
    scalar("cpu", Unit::Times, Lower, NOT_MEASURED, |run| {
        exact(cores(run, run.resources.get(..1)?))
    }),
    scalar("watched.rss", Unit::Bytes, Lower, NOBODY, |run| exact(watched_rss(run))),
    scalar("watched.cpu", Unit::Times, Lower, NOBODY, |run| {
        exact(cores(run, run.resources.get(1..)?))
    }),
    scalar("noise.stolen", Unit::Share, Lower, NOT_MEASURED, |run| {
        exact(noise(run)?.stolen_share)
    }),
    scalar("noise.foreign", Unit::Share, Lower, NOT_MEASURED, |run| {
        exact(noise(run)?.foreign_share)
    }),
    scalar("noise.late", Unit::Share, Lower, NOT_MEASURED, |run| {
        exact(noise(run).map(|noise| noise.late_share))
    }),
];

fn exact(value: Option<f64>) -> Option<Reading> {
    value.filter(|value| value.is_finite()).map(Reading::exact)
}

fn noise(run: &Run) -> Option<&Noise> {
    run.noise.as_ref()
}

/// The store's write calls; bounds where they are below what can be measured.
fn cost_of_writes(cost: &Cost) -> Option<Reading> {
    let bound = || {
        cost.store_cpu_below
            .map(|below| Reading::between(0.0, below.ns_per_sample))
    };
    exact(cost.store_cpu_ns_per_sample).or_else(bound)
}

/// All that the store used to take the samples: write calls, its own threads, and the flush at the
/// end.
fn cost_of_store(cost: &Cost) -> Option<Reading> {
    let writes = cost_of_writes(cost)?;
    let parts = [cost.store_threads_cpu_ns_per_sample, cost.store_flush_cpu_ns_per_sample];
    let more: f64 = parts.into_iter().flatten().sum();
    Some(Reading::between(writes.low() + more, writes.high() + more))
}

/// The highest resident memory of this process that was seen in the run. The kernel's own peak is
/// that of the process, which may have made other runs before.
fn rss(run: &Run) -> Option<f64> {
    let at_end = run.resources.first().map(|usage| usage.rss_bytes);
    let seen = run.intervals.iter().map(|interval| interval.rss_bytes).chain(at_end);
    seen.max().map(|bytes| bytes as f64)
}

/// The peaks of the other watched processes, added.
fn watched_rss(run: &Run) -> Option<f64> {
    let others = run.resources.get(1..).filter(|others| !others.is_empty())?;
    let peaks = others
        .iter()
        .map(|usage| usage.rss_bytes_max.unwrap_or(usage.rss_bytes));
    Some(peaks.sum::<u64>() as f64)
}

/// CPU time over the duration of the run: how many cores were busy.
fn cores(run: &Run, processes: &[Usage]) -> Option<f64> {
    let cpu_ns = processes.iter().map(Usage::cpu_ns);
    let is_known = !processes.is_empty() && run.duration_ns > 0;
    is_known.then(|| cpu_ns.sum::<u64>() as f64 / run.duration_ns as f64)
}
