//! Gives monitors access to the counters and latencies of our listener, or of a client that is driven
//! directly, during a run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tsb_core::breakdown::Breakdown;
use tsb_core::emit::LiveTotals;
use tsb_core::latency::{Histogram, Interval, Recording, Timeline};
use tsb_core::net::{AnyListener, ListenerStats, ListenerTotals, ListenerView, Timing};
use tsb_core::time::{Clock, SECOND_NS};

use crate::run::in_flight::InFlight;

/// What a watcher sees of a listener, or of the writes in flight, while the pass goes on.
#[derive(Debug, Default)]
pub struct Watch {
    listener: Mutex<Option<AnyListener>>,
    /// The same listener as long as it is there, for those who only look: it may take long to
    /// stop.
    view: Mutex<Option<ListenerView>>,
    /// The writes in flight of a client that is driven directly, or over HTTP.
    in_flight: Mutex<Option<Arc<InFlight>>>,
    timings: Mutex<Timings>,
    /// What the listener had counted and not handed over when it was stopped.
    turned_away: AtomicU64,
}

/// The times of operations by interval, from the listener's mileposts or from the writes in flight.
#[derive(Debug)]
pub(in crate::run) struct Timings {
    pub(in crate::run) response: TimedIntervals,
    pub(in crate::run) delivery: TimedIntervals,
    pub(in crate::run) service: TimedIntervals,
    /// What response times consist of.
    pub(in crate::run) breakdown: Breakdown,
    /// Samples behind those.
    pub(in crate::run) samples: u64,
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
        let timed = || TimedIntervals::new(start_ns, interval_ns);
        Self {
            response: timed(),
            delivery: timed(),
            service: timed(),
            breakdown: Breakdown::new(),
            samples: 0,
            lost: 0,
            named: Vec::new(),
            since_ns: start_ns,
        }
    }

    /// Ends an interval at `now_ns`.
    fn add(&mut self, timing: &Timing, now_ns: u64) {
        let now_ns = now_ns.max(self.since_ns);
        let start_ns = std::mem::replace(&mut self.since_ns, now_ns);
        self.samples += timing.samples;
        self.lost += timing.lost + timing.unfinished;
        let room = NAMED_MAX.saturating_sub(self.named.len());
        self.named.extend(timing.named.iter().take(room));
        self.response.add(start_ns, now_ns, &timing.response);
        self.delivery.add(start_ns, now_ns, &timing.delivery);
        self.service.add(start_ns, now_ns, &timing.service);
        self.breakdown.merge(&timing.breakdown);
    }
}

/// One of the times, with intervals that are folded as they age.
#[derive(Debug)]
pub(in crate::run) struct TimedIntervals {
    pub(super) total: Histogram,
    intervals: Timeline<Interval>,
}

impl TimedIntervals {
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
    pub(in crate::run) fn recording(self) -> Recording {
        Recording {
            total: self.total,
            intervals: self.intervals.into_entries().collect(),
        }
    }
}

impl Watch {
    /// Ends an interval at `now_ns`, and adds what was timed since the last call to its histograms.
    /// Returns the times of that interval.
    pub fn cut(&self, now_ns: u64) -> Option<Timing> {
        let (view, in_flight) = (self.view(), self.in_flight());
        // IMPORTANT: lock before draining. Otherwise `take_timings` could miss what another thread
        // has drained and not added yet.
        let mut timings = lock(&self.timings);
        let mut timing = Timing::new();
        if view.is_none() && in_flight.is_none() {
            return None;
        }
        if let Some(view) = view {
            view.drain_timing(&mut timing);
        }
        if let Some(in_flight) = in_flight {
            in_flight.drain_timing(&mut timing);
        }
        timings.add(&timing, now_ns);
        Some(timing)
    }

    fn view(&self) -> Option<ListenerView> {
        lock(&self.view).clone()
    }

    /// What the listener has counted, while it is there.
    pub(super) fn stats(&self) -> Option<ListenerStats> {
        self.view().map(|view| view.stats())
    }

    /// Samples that the listener has counted and not handed over to the store, so far.
    pub fn turned_away(&self) -> u64 {
        match self.stats() {
            Some(stats) => of_stats(&stats),
            None => self.turned_away.load(Ordering::Acquire),
        }
    }

    /// A listener takes what is sent from now on.
    pub(super) fn begin(&self, listener: AnyListener) {
        *lock(&self.view) = Some(listener.view());
        *lock(&self.listener) = Some(listener);
    }

    /// Writes are handed over from now on.
    pub(super) fn begin_in_flight(&self, in_flight: Arc<InFlight>) {
        *lock(&self.in_flight) = Some(in_flight);
    }

    /// The writes in flight, where the emitter hands them over.
    pub(crate) fn in_flight(&self) -> Option<Arc<InFlight>> {
        lock(&self.in_flight).clone()
    }

    /// Completes the emitter's counters by what has ended of what it handed over.
    pub(in crate::run) fn completed(&self, mut totals: LiveTotals) -> LiveTotals {
        if let Some(in_flight) = self.in_flight() {
            in_flight.add_to(&mut totals);
        }
        totals
    }

    /// Times count from here.
    pub(super) fn since(&self, start_ns: u64, interval_ns: u64) {
        *lock(&self.timings) = Timings::new(start_ns, interval_ns);
    }

    /// Bytes that have come by now.
    pub(super) fn bytes(&self) -> u64 {
        self.stats().map_or(0, |stats| stats.bytes)
    }

    /// Stops the listener, where there is one. What looks at it meanwhile does not wait.
    pub(super) fn stop(&self, clock: &dyn Clock) -> Option<ListenerTotals> {
        let listener = lock(&self.listener).take()?;
        let report = listener.stop();
        self.turned_away.store(of_stats(&report.stats), Ordering::Release);
        *lock(&self.view) = None;
        lock(&self.timings).add(&report.timing, clock.now());
        Some(report)
    }

    /// All that was timed.
    pub(in crate::run) fn take_timings(&self) -> Timings {
        std::mem::take(&mut *lock(&self.timings))
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
