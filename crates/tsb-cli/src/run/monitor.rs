//! Watches a run from beside: progress, staleness of every series, resources.
//!
//! One thread, which wakes ten times a second; nothing here is on the emitting path.

use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::emit::Live;
use tsb_core::report::Interval;
use tsb_core::resource::{Sampler, Usage};
use tsb_core::schedule::Speed;
use tsb_core::staleness::Staleness;
use tsb_core::time::{SECOND_NS, process_cpu_ns};
use tsb_core::{SeriesId, Timestamp};
use tsb_stores::Store;

use super::engine::Hooks;
use super::path::{Watch, accepted};
use super::sink::SinkTotals;
use super::stage::Stage;
use crate::units;

/// From one look to the next.
const LOOK_NS: u64 = SECOND_NS / 10;

/// What was seen.
#[derive(Debug, Default)]
pub struct Observed {
    /// The run slice by slice; latencies are filled in from the histograms later.
    pub intervals: Vec<Interval>,
    /// Age of the newest visible sample, over series and moments.
    pub staleness: Option<Staleness>,
    /// Processes watched, tsb itself first.
    pub resources: Vec<Usage>,
    /// CPU of the ingest threads, in nanoseconds.
    pub ingest_cpu_ns: u64,
    /// Share of time in which the machine gave our CPU to others. in [0, 1]
    pub noise: f64,
}

/// Watches one run.
#[derive(Debug)]
pub struct Monitor<'a> {
    stage: &'a Stage,
    store: &'a dyn Store,
    start_ns: u64,
    base: Timestamp,
    live: &'a Live,
    totals: &'a SinkTotals,
    watch: &'a Watch,
    hooks: &'a Hooks,
    is_over: AtomicBool,
}
