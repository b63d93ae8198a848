//! The data that the script draws: the time series of each run, as columns.

use serde::Serialize;
use serde_json::Value;
use tsb_core::ledger::Counter;
use tsb_core::report::{Curves, Interval, PhaseReport, WatchedUsage};

use super::PageRun;
use crate::render::names::letter;

/// The data of all runs.
#[derive(Serialize)]
pub(super) struct PageData<'a> {
    runs: Vec<RunData<'a>>,
}

/// The data of one run. A column has a value for each interval, null where it is not known.
#[derive(Serialize)]
struct RunData<'a> {
    label: String,
    asked: Option<f64>,
    plan: &'a Value,
    names: Vec<&'a str>,
    pids: Vec<u32>,
    end_ns: Vec<u64>,
    asked_samples: Vec<Option<u64>>,
    sent: Vec<Option<u64>>,
    accepted: Vec<Option<u64>>,
    response_p50_ns: Vec<Option<u64>>,
    response_p99_ns: Vec<Option<u64>>,
    response_max_ns: Vec<Option<u64>>,
    lag_max_ns: Vec<Option<u64>>,
    staleness_max_ms: Vec<Option<f64>>,
    cpu_ns: Vec<u64>,
    rss_bytes: Vec<u64>,
    read_bytes: Vec<Option<u64>>,
    written_bytes: Vec<Option<u64>>,
    watched: Vec<&'a [WatchedUsage]>,
    cells: Vec<Vec<u64>>,
    curves: Option<&'a Curves>,
    phases: Vec<PhaseMark<'a>>,
}

/// Where a phase is drawn.
#[derive(Serialize)]
struct PhaseMark<'a> {
    name: &'a str,
    from_ns: u64,
    end_ns: u64,
    has_faults: bool,
}

/// The data of all runs.
pub(super) fn of<'a>(shown: &[PageRun<'a>]) -> PageData<'a> {
    PageData {
        runs: shown.iter().map(one).collect(),
    }
}

fn one<'a>(shown: &PageRun<'a>) -> RunData<'a> {
    let run = shown.run;
    let slices = &run.intervals;
    let is_counted = |counter| run.ledger.counts.get(counter).is_some();
    // A receiver does not know what was sent, nor does a sender that nobody answers know what
    // was accepted.
    let is_sent_known = is_counted(Counter::Sent);
    let is_accepted_known = is_counted(Counter::Accepted) || is_counted(Counter::Confirmed);
    RunData {
        label: if shown.is_one_of_several {
            letter(shown.index)
        } else {
            String::new()
        },
        asked: run.rate.asked_per_second,
        plan: &run.plan,
        names: run.resources.iter().map(|usage| usage.name.as_str()).collect(),
        pids: run.resources.iter().map(|usage| usage.pid).collect(),
        end_ns: column(slices, |slice| slice.end_ns),
        asked_samples: column(slices, |slice| slice.asked),
        sent: column(slices, |slice| is_sent_known.then_some(slice.sent)),
        accepted: column(slices, |slice| is_accepted_known.then_some(slice.accepted)),
        response_p50_ns: column(slices, |slice| slice.response_p50_ns),
        response_p99_ns: column(slices, |slice| slice.response_p99_ns),
        response_max_ns: column(slices, |slice| slice.response_max_ns),
        lag_max_ns: column(slices, |slice| slice.lag_max_ns),
        staleness_max_ms: column(slices, |slice| slice.staleness_max_ms),
        cpu_ns: column(slices, |slice| slice.cpu_ns),
        rss_bytes: column(slices, |slice| slice.rss_bytes),
        read_bytes: column(slices, |slice| slice.read_bytes),
        written_bytes: column(slices, |slice| slice.written_bytes),
        watched: column(slices, |slice| slice.watched.as_slice()),
        cells: column(slices, cells),
        curves: run.latency.curves.as_ref(),
        phases: run.phases.iter().map(mark).collect(),
    }
}

fn mark(phase: &PhaseReport) -> PhaseMark<'_> {
    PhaseMark {
        name: &phase.name,
        from_ns: phase.from_ns,
        end_ns: phase.end_ns,
        has_faults: phase.faults.is_some(),
    }
}

fn column<'a, T>(slices: &'a [Interval], pick: impl Fn(&'a Interval) -> T) -> Vec<T> {
    slices.iter().map(pick).collect()
}

/// The index of the first cell, then the counts; empty if nothing was timed.
fn cells(slice: &Interval) -> Vec<u64> {
    match &slice.response_cells {
        Some(cells) => std::iter::once(cells.first as u64)
            .chain(cells.counts.iter().copied())
            .collect(),
        None => Vec::new(),
    }
}
