//! The data that the script draws: the time series of each run, as columns.

use serde_json::{Value, json};
use tsb_core::ledger::Counter;
use tsb_core::report::Interval;

use super::Shown;
use crate::render::names::letter;

/// The data of all runs.
pub(super) fn of(shown: &[Shown<'_>]) -> Value {
    let runs: Vec<Value> = shown.iter().map(one).collect();
    json!({ "runs": runs })
}

fn one(shown: &Shown<'_>) -> Value {
    let slices = &shown.run.intervals;
    let is_counted = |counter| shown.run.ledger.counts.get(counter).is_some();
    // A receiver does not know what was sent, nor does a sender that nobody answers know what
    // was accepted.
    let is_sent_known = is_counted(Counter::Sent);
    let is_accepted_known = is_counted(Counter::Accepted) || is_counted(Counter::Confirmed);
    let label = if shown.is_one_of_several {
        letter(shown.index)
    } else {
        String::new()
    };
    json!({
        "label": label,
        "asked": shown.run.rate.asked_per_second,
        "plan": shown.run.plan,
        "names": shown.run.resources.iter().map(|usage| &usage.name).collect::<Vec<_>>(),
        "pids": shown.run.resources.iter().map(|usage| usage.pid).collect::<Vec<_>>(),
        "end_ns": column(slices, |slice| slice.end_ns),
        "asked_samples": column(slices, |slice| slice.asked),
        "sent": column(slices, |slice| is_sent_known.then_some(slice.sent)),
        "accepted": column(slices, |slice| is_accepted_known.then_some(slice.accepted)),
        "response_p50_ns": column(slices, |slice| slice.response_p50_ns),
        "response_p99_ns": column(slices, |slice| slice.response_p99_ns),
        "response_max_ns": column(slices, |slice| slice.response_max_ns),
        "lag_max_ns": column(slices, |slice| slice.lag_max_ns),
        "staleness_max_ms": column(slices, |slice| slice.staleness_max_ms),
        "cpu_ns": column(slices, |slice| slice.cpu_ns),
        "rss_bytes": column(slices, |slice| slice.rss_bytes),
        "read_bytes": column(slices, |slice| slice.read_bytes),
        "written_bytes": column(slices, |slice| slice.written_bytes),
        "watched": column(slices, |slice| slice.watched.clone()),
        "cells": column(slices, cells),
        "curves": shown.run.latency.curves,
    })
}

fn column<T: serde::Serialize>(slices: &[Interval], pick: impl Fn(&Interval) -> T) -> Vec<Value> {
    slices.iter().map(|slice| json!(pick(slice))).collect()
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
