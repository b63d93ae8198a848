//! The feed: one sample per second of each series, or as fast as a target takes them, with
//! everything read back afterwards; and once more with nothing read, for what writing costs.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tsb_core::ledger::Counter;
use tsb_core::report::Run;
use tsb_core::report::experiment::dalmatiner::{DalmatinerPlan, TargetRun};
use tsb_core::resource::Usage;
use tsb_core::time::SECOND_NS;
use tsb_core::verdict::Status;
use tsb_core::workload::{BatchMode, FleetSpec, WorkloadSpec};

use super::files;
use super::opened::OpenTarget;
use super::target::{DalmatinerTarget, TargetWay};
use crate::controls::Controls;
use crate::error::Error;
use crate::plan::{AskedRate, Plan, Transport};
use crate::run::{open, run_plan};

/// The share of the points that the original feed sent to Graphite.
const GRAPHITE_SHARE: f64 = 0.208;

/// How hard the feed pushes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Load {
    /// One sample per second and series.
    Feed,
    /// A closed loop.
    Peak,
}

impl Load {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Feed => "feed",
            Self::Peak => "peak",
        }
    }
}

/// The workload of the feed: every message has samples of one second, and never two of one metric.
pub(super) fn workload(plan: &DalmatinerPlan, series: u64) -> WorkloadSpec {
    let mut workload = WorkloadSpec::new(FleetSpec::Kstat, plan.seed);
    workload.series = usize::try_from(series).ok();
    workload.batch = BatchMode::Message;
    workload.resolution_ns = SECOND_NS;
    workload
}

fn plan_of(
    target: &DalmatinerTarget,
    opened: &OpenTarget<'_>,
    asked: &DalmatinerPlan,
    (series, load): (u64, Load),
) -> Plan {
    let mut workload = workload(asked, series);
    let disorder = &mut workload.disorder;
    disorder.missing = asked.skipped;
    disorder.duplicate = asked.repeated;
    disorder.late = asked.late;
    disorder.late_ticks = 1;
    if asked.as_it_was && target.is_graphite() {
        disorder.missing = 1.0 - GRAPHITE_SHARE * (1.0 - asked.skipped);
    }
    let seconds = match load {
        Load::Feed => asked.seconds,
        Load::Peak => asked.peak_seconds,
    };
    Plan {
        stores: vec![opened.spec().clone()],
        transport: Transport::Inproc,
        workload,
        rate: match load {
            Load::Feed => AskedRate::Natural,
            Load::Peak => AskedRate::Max,
        },
        duration_ns: Some(seconds * SECOND_NS),
        calibrate: false,
        watch_pids: opened.pid().into_iter().collect(),
        ..Plan::default()
    }
}

/// What feeding a target took.
#[derive(Debug, Default)]
pub(super) struct Fed {
    /// CPU time of the target per million samples until everything was sent, in seconds.
    cpu_seconds_per_million: Option<f64>,
    /// CPU time after that until what waited was in its files, in seconds.
    last_write_cpu_seconds: Option<f64>,
    /// CPU time of this process per million samples, in seconds.
    client_cpu_seconds_per_million: Option<f64>,
    /// The most resident memory of its processes, in bytes.
    rss_bytes: Option<u64>,
    /// Bytes of its files in the page cache.
    page_cache_bytes: Option<u64>,
}

/// Runs the feed and reads nothing back, so that the CPU time and the memory are those of writing.
/// Ends the endpoint, which writes what waits.
///
/// # Errors
/// If nothing could be measured.
pub(super) fn cost(
    target: &DalmatinerTarget,
    opened: &mut OpenTarget<'_>,
    asked: &DalmatinerPlan,
    series: u64,
    stop: &Arc<AtomicBool>,
) -> Result<Fed, Error> {
    let mut plan = plan_of(target, opened, asked, (series, Load::Feed));
    plan.verify = false;
    let controls = Controls {
        measures_staleness: false,
        ..Controls::stopped_by(Arc::clone(stop))
    };
    let before = opened.usage();
    let finished = run_plan(&plan.complete()?, &controls, &open)?;
    let run = &finished.run;
    let until_sent = opened.usage();
    let mut fed = Fed {
        page_cache_bytes: opened.files().and_then(files::cached_bytes),
        ..Fed::default()
    };
    let whole = opened.end()?;
    let sent = run.ledger.counts.count(Counter::Sent);
    let per_million = |cpu_ns: u64| (sent > 0).then(|| cpu_ns as f64 / sent as f64 / 1e3);
    let of_target = run.resources.get(1..).unwrap_or_default();
    fed.client_cpu_seconds_per_million = run.resources.first().and_then(|own| per_million(own.cpu_ns()));
    let rss = of_target
        .iter()
        .map(|usage| usage.rss_bytes_max.unwrap_or(usage.rss_bytes));
    fed.rss_bytes = rss.reduce(|sum, bytes| sum + bytes);
    match (target.way(), &until_sent) {
        (TargetWay::InProcess, _) => {
            fed.cpu_seconds_per_million = of_store(run);
            let flush = run.cost.store_flush_cpu_ns_per_sample;
            fed.last_write_cpu_seconds = flush.map(|each| each * sent as f64 / 1e9);
        }
        (TargetWay::Tcp, Some(until_sent)) => {
            let started = before.map_or(0, |before| before.cpu_ns());
            fed.cpu_seconds_per_million = per_million(until_sent.cpu_ns() - started);
            let whole = whole.and_then(|ended| ended.usage);
            fed.last_write_cpu_seconds =
                whole.map(|whole| whole.cpu_ns().saturating_sub(until_sent.cpu_ns()) as f64 / 1e9);
        }
        (TargetWay::Given, _) if !of_target.is_empty() => {
            fed.cpu_seconds_per_million = per_million(of_target.iter().map(Usage::cpu_ns).sum());
        }
        _ => {}
    }
    Ok(fed)
}

/// CPU seconds per million samples of a store in this process: its calls and its threads.
fn of_store(run: &Run) -> Option<f64> {
    let cost = &run.cost;
    let below = cost.store_cpu_below.map(|below| below.ns_per_sample);
    let calls = cost.store_cpu_ns_per_sample.or(below)?;
    // Nanoseconds per sample are milliseconds per million.
    Some((calls + cost.store_threads_cpu_ns_per_sample.unwrap_or_default()) / 1e3)
}

/// Runs the feed, or a closed loop, and reads everything back. `fed` has what another run found
/// that read nothing.
///
/// # Errors
/// If nothing could be measured.
pub(super) fn verified(
    target: &DalmatinerTarget,
    opened: &OpenTarget<'_>,
    asked: &DalmatinerPlan,
    (series, load, round): (u64, Load, u32),
    (fed, stop): (Option<&Fed>, &Arc<AtomicBool>),
) -> Result<TargetRun, Error> {
    let plan = plan_of(target, opened, asked, (series, load)).complete()?;
    let finished = run_plan(&plan, &Controls::stopped_by(Arc::clone(stop)), &open)?;
    let run = &finished.run;
    let count = |counter| run.ledger.counts.count(counter);
    let sent = count(Counter::Sent);
    Ok(TargetRun {
        target: opened.tested(run.durability.acknowledged, &run.target.exactness),
        round,
        series,
        load: load.name().to_owned(),
        status: run.verdict.status,
        reasons: match run.verdict.status {
            Status::Valid => Vec::new(),
            _ => run.verdict.reasons.clone(),
        },
        due: count(Counter::Due),
        sent,
        verified: count(Counter::Verified) + count(Counter::Superseded),
        lost: count(Counter::Lost) + count(Counter::LostInTransport),
        altered: count(Counter::Altered),
        held_per_second: sent as f64 * SECOND_NS as f64 / run.duration_ns.max(1) as f64,
        cpu_seconds_per_million: fed.and_then(|fed| fed.cpu_seconds_per_million),
        last_write_cpu_seconds: fed.and_then(|fed| fed.last_write_cpu_seconds),
        client_cpu_seconds_per_million: fed.and_then(|fed| fed.client_cpu_seconds_per_million),
        rss_bytes: fed.and_then(|fed| fed.rss_bytes),
        page_cache_bytes: fed.and_then(|fed| fed.page_cache_bytes),
        response: run.latency.response.quantiles(),
    })
}
