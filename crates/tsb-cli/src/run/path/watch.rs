//! What a watcher sees of a listener of ours while a pass goes on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tsb_core::latency::{Histogram, Interval, Recording, Timeline};
use tsb_core::net::{AnyListener, ListenerReport, ListenerStats, Timing};
use tsb_core::time::{Clock, SECOND_NS};

/// What a watcher sees of a listener while the pass goes on.
#[derive(Debug, Default)]
pub struct Watch {
    listener: Mutex<Option<AnyListener>>,
    timings: Mutex<Timings>,
    /// What the listener had counted and not handed over when it was stopped.
    turned_away: AtomicU64,
}

/// What the mileposts told, the times by interval.
#[derive(Debug)]
pub(super) struct Timings {
    pub(super) response: Told,
    pub(super) delivery: Told,
    pub(super) service: Told,
    /// Samples behind those.
    pub(super) samples: u64,
    /// Operations that did not arrive whole.
    pub(super) lost: u64,
    /// Of these, the group and the tick, as far as they are known.
    pub(super) named: Vec<(u32, u64)>,
    since_ns: u64,
}

impl Default for Timings {
    fn default() -> Self {
        Self::new(0, SECOND_NS)
    }
}

impl Timings {
    fn new(start_ns: u64, interval_ns: u64) -> Self {
        let told = || Told::new(start_ns, interval_ns);
        Self {
            response: told(),
            delivery: told(),
            service: told(),
            samples: 0,
            lost: 0,
            named: Vec::new(),
            since_ns: start_ns,
        }
    }
}

/// One of the times, with intervals that are folded as they age.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) total: Histogram,
    intervals: Timeline<Interval>,
}

impl Told {
    fn new(start_ns: u64, interval_ns: u64) -> Self {
        Self {
            total: Histogram::new(),
            intervals: Timeline::new(start_ns, interval_ns),
        }
    }

    fn add(&mut self, start_ns: u64, now_ns: u64, histogram: &Histogram) {
        self.total.merge(histogram);
        let interval = Interval::new(start_ns, now_ns, histogram);
        self.intervals
            .push(start_ns, now_ns, interval, |one, other| one.merge(&other));
    }

    /// All of it.
    pub(super) fn recording(self) -> Recording {
        Recording {
            total: self.total,
            intervals: self.intervals.into_entries().collect(),
        }
    }
}

impl Watch {
    /// Ends an interval at `now`: what was timed since the last call are its histograms.
    /// Returns the times of that interval.
    pub fn cut(&self, now_ns: u64) -> Option<Timing> {
        let listener = lock(&self.listener);
        let listener = listener.as_ref()?;
        let mut timing = Timing::new();
        listener.drain_timing(&mut timing);
        self.add(&timing, now_ns);
        Some(timing)
    }

    /// Samples that the listener has counted and not handed over to the store, so far.
    pub fn turned_away(&self) -> u64 {
        let listener = lock(&self.listener);
        match listener.as_ref() {
            Some(listener) => of_stats(&listener.stats()),
            None => self.turned_away.load(Ordering::Relaxed),
        }
    }

    /// A listener takes what is sent from now on.
    pub(super) fn begin(&self, listener: AnyListener) {
        *lock(&self.listener) = Some(listener);
    }

    /// Times count from here.
    pub(super) fn since(&self, start_ns: u64, interval_ns: u64) {
        *lock(&self.timings) = Timings::new(start_ns, interval_ns);
    }

    /// Bytes that have come by now.
    pub(super) fn bytes(&self) -> u64 {
        lock(&self.listener)
            .as_ref()
            .map_or(0, |listener| listener.stats().bytes)
    }

    /// Stops the listener, where there is one. Whoever watches waits meanwhile.
    pub(super) fn stop(&self, clock: &dyn Clock) -> Option<ListenerReport> {
        let mut listener = lock(&self.listener);
        let report = listener.take()?.stop();
        self.turned_away.store(of_stats(&report.stats), Ordering::Relaxed);
        self.add(&report.timing, clock.now());
        Some(report)
    }

    /// All that was timed.
    pub(super) fn take_timings(&self) -> Timings {
        std::mem::take(&mut *lock(&self.timings))
    }

    fn add(&self, timing: &Timing, now_ns: u64) {
        let mut timings = lock(&self.timings);
        let start_ns = std::mem::replace(&mut timings.since_ns, now_ns);
        timings.samples += timing.samples;
        timings.lost += timing.lost + timing.unfinished;
        let room = NAMED_MAX.saturating_sub(timings.named.len());
        timings.named.extend(timing.named.iter().take(room));
        timings.response.add(start_ns, now_ns, &timing.response);
        timings.delivery.add(start_ns, now_ns, &timing.delivery);
        timings.service.add(start_ns, now_ns, &timing.service);
    }
}

/// Operations that did not arrive whole are named up to this many.
const NAMED_MAX: usize = 1 << 17;

fn of_stats(stats: &ListenerStats) -> u64 {
    stats.malformed + stats.refused + stats.unannounced
}

pub(in crate::run) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
