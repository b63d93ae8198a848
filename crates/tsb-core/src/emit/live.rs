//! Live counters: what a progress line may read while the workers run.
//!
//! Each worker alone writes its counters, and never waits for a reader. Counts are at most an
//! operation old; the `interval_` figures and the live times are those of finished intervals.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::latency::{CELLS, Histogram, cell};

/// The counters of all workers of a run.
#[derive(Debug)]
pub struct Live {
    workers: Box<[LiveWorker]>,
}

/// The counters of one worker. Cache lines of its own, so that workers do not slow
/// each other.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct LiveWorker {
    pub(super) operations: AtomicU64,
    pub(super) samples: AtomicU64,
    pub(super) accepted: AtomicU64,
    pub(super) rejected: AtomicU64,
    pub(super) shed: AtomicU64,
    pub(super) unknown: AtomicU64,
    pub(super) lag_ns: AtomicU64,
    pub(super) fleet_ns: AtomicU64,
    pub(super) excepted: AtomicU64,
    pub(super) issued: AtomicU64,
    pub(super) has_ended: AtomicBool,
    pub(super) interval_p50_ns: AtomicU64,
    pub(super) interval_p99_ns: AtomicU64,
    pub(super) interval_max_ns: AtomicU64,
    pub(super) response: LiveCells,
    pub(super) service: LiveCells,
    pub(super) lag: LiveCells,
}

/// Operations by coarse cell, over all finished intervals of a worker: added to once an
/// interval, so that a reader may take differences.
#[derive(Debug)]
pub(super) struct LiveCells(Box<[AtomicU64]>);

impl Default for LiveCells {
    fn default() -> Self {
        Self((0..CELLS).map(|_| AtomicU64::new(0)).collect())
    }
}

impl LiveCells {
    pub(super) fn add(&self, interval: &Histogram) {
        for (lowest, count) in interval.buckets() {
            if let Some(slot) = self.0.get(cell(lowest)) {
                slot.fetch_add(count, Relaxed);
            }
        }
    }
}

/// Operations by coarse cell over all workers and all their finished intervals; each list
/// is [`CELLS`] long.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveTimes {
    /// Due until done; empty where the target does not time its operations.
    pub response: Vec<u64>,
    /// Start until done; likewise.
    pub service: Vec<u64>,
    /// Due until start.
    pub lag: Vec<u64>,
}

/// What all workers have done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LiveTotals {
    /// Operations that the target took: answered, handed over, or unknown.
    pub operations: u64,
    /// Samples in them.
    pub samples: u64,
    /// Samples that the target took.
    pub accepted: u64,
    /// Samples that the target refused.
    pub rejected: u64,
    /// Samples that the target shed; once the worker has ended, also those never sent.
    pub shed: u64,
    /// Samples of which nothing is known.
    pub unknown: u64,
    /// Lag of the newest operation of the worker that is furthest behind.
    pub lag_ns: u64,
    /// Response time of the last finished interval, the worst of the workers; 0 before
    /// there is one, or where the target does not time its operations.
    pub interval_p50_ns: u64,
    /// The same at 0.99.
    pub interval_p99_ns: u64,
    /// The slowest operation of the last finished interval.
    pub interval_max_ns: u64,
}

impl Live {
    /// Counters for a number of workers.
    pub fn new(workers: usize) -> Self {
        Self {
            workers: (0..workers).map(|_| LiveWorker::default()).collect(),
        }
    }

    /// The counters of each worker.
    pub fn workers(&self) -> &[LiveWorker] {
        &self.workers
    }

    /// The times of all workers, as of their last finished intervals.
    pub fn times(&self) -> LiveTimes {
        let sum = |pick: fn(&LiveWorker) -> &LiveCells| {
            let mut sum = vec![0; CELLS];
            for worker in &self.workers {
                for (total, count) in sum.iter_mut().zip(&pick(worker).0) {
                    *total += count.load(Relaxed);
                }
            }
            sum
        };
        LiveTimes {
            response: sum(|worker| &worker.response),
            service: sum(|worker| &worker.service),
            lag: sum(|worker| &worker.lag),
        }
    }

    /// All workers together, now.
    pub fn totals(&self) -> LiveTotals {
        let mut all = LiveTotals::default();
        for one in self.workers.iter().map(LiveWorker::totals) {
            all.operations += one.operations;
            all.samples += one.samples;
            all.accepted += one.accepted;
            all.rejected += one.rejected;
            all.shed += one.shed;
            all.unknown += one.unknown;
            all.lag_ns = all.lag_ns.max(one.lag_ns);
            all.interval_p50_ns = all.interval_p50_ns.max(one.interval_p50_ns);
            all.interval_p99_ns = all.interval_p99_ns.max(one.interval_p99_ns);
            all.interval_max_ns = all.interval_max_ns.max(one.interval_max_ns);
        }
        all
    }
}

impl LiveWorker {
    /// Fleet time of the newest operation that was handed over.
    pub fn fleet_ns(&self) -> u64 {
        self.fleet_ns.load(Relaxed)
    }

    /// How many operations of its agenda the target has answered or taken, empty ones in
    /// between included. What [`Self::totals`] and [`Self::excepted`] return afterwards covers
    /// at least these.
    pub fn issued(&self) -> u64 {
        self.issued.load(Acquire)
    }

    /// Samples of issued operations that the target shed, or of which nothing is known.
    pub fn excepted(&self) -> u64 {
        self.excepted.load(Relaxed)
    }

    /// The worker has done all that it is to do.
    pub(super) fn end(&self) {
        // A reader of this finds the last counts.
        self.has_ended.store(true, Release);
    }

    /// Whether the worker has done all that it is to do. What [`Self::totals`] returns afterwards includes the
    /// samples that it never sent.
    pub fn has_ended(&self) -> bool {
        self.has_ended.load(Acquire)
    }

    /// This worker, now.
    pub fn totals(&self) -> LiveTotals {
        LiveTotals {
            operations: self.operations.load(Relaxed),
            samples: self.samples.load(Relaxed),
            accepted: self.accepted.load(Relaxed),
            rejected: self.rejected.load(Relaxed),
            shed: self.shed.load(Relaxed),
            unknown: self.unknown.load(Relaxed),
            lag_ns: self.lag_ns.load(Relaxed),
            interval_p50_ns: self.interval_p50_ns.load(Relaxed),
            interval_p99_ns: self.interval_p99_ns.load(Relaxed),
            interval_max_ns: self.interval_max_ns.load(Relaxed),
        }
    }
}
