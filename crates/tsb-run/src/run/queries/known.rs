//! Which samples must be in the store: how far it has answered for the samples of each emitting
//! worker.
//!
//! A worker sends its operations in the order of fleet time. In process, the emitter's counters
//! say how far it has come. Over a connection the sinks of the listener say it, because what a
//! socket has taken may still be on its way.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tsb_core::emit::Live;
use tsb_core::workload::Workload;
use tsb_core::{Batch, SeriesId, Timestamp};

use crate::run::run_context::RunContext;

/// How far the sinks of a listener have written the samples of each emitting worker.
#[derive(Debug)]
pub struct WrittenTimes {
    /// The first series of each worker.
    first_series: Vec<SeriesId>,
    newest: Vec<WrittenTime>,
}

/// The timestamp of the last sample that was written of one worker, in a cache line of its own.
#[derive(Debug)]
#[repr(align(128))]
struct WrittenTime(AtomicI64);

impl WrittenTimes {
    /// Nothing is written yet of a run that starts at `base`.
    pub(in crate::run) fn new(context: &RunContext, base: Timestamp) -> Self {
        let groups = context.workload.groups();
        let ranges = context.timetable.roster.split(context.plan.workers);
        Self {
            newest: ranges.iter().map(|_| WrittenTime(AtomicI64::new(base.0))).collect(),
            first_series: ranges.iter().map(|range| groups[range.start as usize].first).collect(),
        }
    }

    /// The store has answered for this batch and for all that its worker sent before it.
    pub(in crate::run) fn note(&self, batch: &Batch<'_>) {
        let Some(last) = batch.len().checked_sub(1) else {
            return;
        };
        let id = batch.id(last);
        let worker = self.first_series.partition_point(|first| *first <= id);
        if let Some(newest) = worker.checked_sub(1).and_then(|worker| self.newest.get(worker)) {
            newest.0.fetch_max(batch.time(last).0, Ordering::Release);
        }
    }
}

/// Which samples the store has answered for.
#[derive(Debug)]
pub(super) struct KnownSamples {
    workload: Arc<Workload>,
    base: Timestamp,
    /// The first group of each worker.
    first_groups: Vec<u32>,
    /// By how much a timestamp may lie before or behind the fleet time of its tick.
    slack_ns: i64,
    longest_interval_ns: i64,
    live: Arc<Live>,
    written: Option<Arc<WrittenTimes>>,
}

impl KnownSamples {
    /// Of a run that starts at `base`. `written` is filled by the listener, where there is one.
    pub(super) fn new(
        context: &RunContext,
        base: Timestamp,
        live: &Arc<Live>,
        written: Option<&Arc<WrittenTimes>>,
    ) -> Self {
        let workload = &context.workload;
        let spec = workload.spec();
        let intervals = workload.groups().iter().map(|group| group.interval_ns);
        let ranges = context.timetable.roster.split(context.plan.workers);
        Self {
            base,
            first_groups: ranges.iter().map(|range| range.start).collect(),
            slack_ns: (spec.resolution_ns + spec.jitter.max_ns) as i64,
            longest_interval_ns: intervals.max().unwrap_or(0) as i64,
            workload: Arc::clone(workload),
            live: Arc::clone(live),
            written: written.cloned(),
        }
    }

    /// Of the series of this group, the store has answered for every sample with an earlier
    /// timestamp.
    pub(super) fn until(&self, group: usize) -> Timestamp {
        let worker = self.first_groups.partition_point(|first| *first as usize <= group);
        let worker = worker.saturating_sub(1);
        let reached = if let Some(written) = &self.written {
            Timestamp(written.newest[worker].0.load(Ordering::Acquire))
        } else {
            let worker = &self.live.workers()[worker];
            // Acquires what the worker's calls into the store have done.
            let issued = worker.issued();
            self.base + if issued == 0 { 0 } else { worker.fleet_ns() as i64 }
        };
        let interval_ns = self.workload.groups()[group].interval_ns;
        let late_ns = self.workload.late_ticks_max().saturating_mul(interval_ns) as i64;
        reached + -self.slack_ns + -late_ns
    }

    /// No sample with a later timestamp has been handed over yet. A worker may be inside the
    /// operation behind the one that its counters name, at most an interval later.
    pub(super) fn handed_over(&self) -> Timestamp {
        let workers = self.live.workers().iter();
        let newest_ns = workers.map(|worker| worker.fleet_ns() as i64).max().unwrap_or(0);
        self.base + newest_ns + 2 * self.longest_interval_ns + self.slack_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    fn context(workers: usize) -> RunContext {
        let mut plan = Plan {
            workers,
            ..Plan::default()
        };
        plan.workload.series = Some(540);
        RunContext::new(&plan.complete().unwrap(), 1).unwrap()
    }

    #[test]
    fn a_listener_has_written_up_to_the_last_sample_of_each_worker() {
        let (context, base) = (context(2), Timestamp::from_secs(1_700_000_000));
        let written = Arc::new(WrittenTimes::new(&context, base));
        let known = KnownSamples::new(&context, base, &Arc::new(Live::new(2)), Some(&written));
        let groups = context.workload.groups();
        let (first, last) = (0, groups.len() - 1);
        assert!(known.until(first) < base && known.until(last) < base);
        let at = base + 2_500_000_000;
        written.note(&Batch::tick(groups[last].first, at, &[1.0]));
        // Before the last one, and not itself: others may have the same timestamp.
        assert_eq!(known.until(last), at + -1);
        assert!(known.until(first) < base);
        // An older sample that comes later takes nothing back.
        written.note(&Batch::tick(groups[last].first, base, &[1.0]));
        assert_eq!(known.until(last), at + -1);
    }
}
