//! The results of the stages of a run, each complete in itself: what was driven, what was read
//! back, and the finished report with its histograms.

use std::collections::BTreeMap;
use std::sync::Arc;

use tsb_core::latency::Histogram;
use tsb_core::report::Run;
use tsb_core::staleness::Staleness;
use tsb_stores::Stats;

use super::cost::CpuByPart;
use super::loss_window::LossWindow;
use super::monitor::Observed;
use super::path::PassResult;
use super::preload::Preloaded;
use super::queries::{JudgedStream, QueryTimes};
use super::rejects::Rejects;
use super::sink::SinkTotals;
use crate::audit::Audit;

/// A finished run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Finished {
    /// Its report.
    pub run: Run,
    /// Its histograms.
    pub driven: Arc<PassResult>,
    /// Ages of the newest visible samples.
    pub staleness: Staleness,
    /// Due until the store's highest level; absent if acknowledgements state that level.
    pub waits: Option<Histogram>,
    /// Times of each stream of queries, by its name.
    pub queries: BTreeMap<String, QueryTimes>,
}

impl Finished {
    /// A report, and what it was made of.
    pub(super) fn new(run: Run, performed: &Performed) -> Self {
        Self {
            run,
            driven: Arc::clone(&performed.driven),
            staleness: performed.observed.staleness.clone(),
            waits: performed.window.as_ref().map(|window| window.waits()),
            queries: performed
                .queries
                .iter()
                .filter_map(|stream| Some((stream.name.clone(), stream.times.clone()?)))
                .collect(),
        }
    }
}

/// The results of driving the load, before anything is read back.
#[derive(Debug)]
pub(super) struct Performed {
    /// Counters and histograms of the emitter and the listener.
    pub driven: Arc<PassResult>,
    /// What the monitor saw.
    pub observed: Arc<Observed>,
    /// Waits for the store's highest level; absent if acknowledgements state that level.
    pub window: Option<Arc<LossWindow>>,
    /// When everything had reached that level, on the clock; absent likewise.
    pub flushed_ns: Option<u64>,
    /// Samples accepted by the store.
    pub accepted: u64,
    /// Samples refused by the store.
    pub rejects: Arc<Rejects>,
    /// CPU time by part; absent for an abandoned run.
    pub spent: Option<CpuByPart>,
    /// The store's statistics after the flush; absent likewise.
    pub stats: Option<Stats>,
    /// What sinks and in-process targets counted.
    pub totals: Arc<SinkTotals>,
    /// The store's first failure, as text.
    pub failure: Option<String>,
    /// What was written before the run.
    pub preloaded: Option<Preloaded>,
    /// What the streams of queries came to; empty for an abandoned run.
    pub queries: Vec<JudgedStream>,
    /// Why the store was not flushed: its server did not answer.
    pub unflushed: Option<String>,
}

/// The results of reading back.
#[derive(Debug, Default)]
pub(super) struct ReadBack {
    /// The audit.
    pub audit: Option<Audit>,
    /// CPU time of the audit, in nanoseconds.
    pub cpu_ns: Option<u64>,
    /// Why nothing was read back: the server did not answer, or the run was abandoned.
    pub unread: Option<String>,
    /// The store's failure while it was read, as text.
    pub failure: Option<String>,
}

impl Performed {
    /// Accepted samples per second.
    pub(super) fn held_per_second(&self) -> f64 {
        self.accepted as f64 * 1e9 / self.driven.elapsed_ns.max(1) as f64
    }

    /// The same, measured until all samples had reached the store's highest level.
    pub(super) fn durable_per_second(&self) -> Option<f64> {
        let flushed_ns = self.flushed_ns.filter(|_| self.failure.is_none())?;
        let taken_ns = flushed_ns
            .saturating_sub(self.driven.start_ns)
            .max(self.driven.elapsed_ns);
        Some(self.accepted as f64 * 1e9 / taken_ns.max(1) as f64)
    }
}
