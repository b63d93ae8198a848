//! The writes of one worker in flight, shared by the worker, which hands them over, and the lanes,
//! in which they end. No other worker takes its lock.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use tsb_core::breakdown::{Breakdown, Parts};
use tsb_core::emit::{Counts, Exception, ExceptionKind, ExceptionList, LiveTotals, Operation};
use tsb_core::latency::Histogram;
use tsb_core::net::Timing;
use tsb_core::schedule::Slot;
use tsb_core::time::Clock;
use tsb_core::{Batch, BatchBuf};
use tsb_stores::{Ack, Error, Refusals, Result, Store, WriteLane};

use super::slots::{Filled, Slots, Write};
use crate::run::calls::WriterState;
use crate::run::guarded_store::poisoned;
use crate::run::loss_window::WriterWaits;
use crate::run::rejects::Rejects;
use crate::run::sink::SinkTotals;

/// Interval between two looks at the stop flag during a wait.
const LOOK: Duration = Duration::from_millis(50);

/// Operations without an ordinary end that are kept by name, per worker; further ones are counted.
const NAMED_MAX: usize = 1 << 16;

/// What the windows of a pass share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) clock: Arc<dyn Clock>,
    /// Weak, because lanes belong to the store.
    pub(super) store: Weak<dyn Store>,
    pub(super) totals: Arc<SinkTotals>,
    pub(super) rejects: Arc<Rejects>,
    /// Set by the first failure that ends the run.
    pub(super) has_failed: AtomicBool,
}

/// The writes of one worker in flight, and what became of the others.
#[derive(Debug)]
pub(in crate::run) struct Window {
    shared: Arc<Shared>,
    state: Mutex<State>,
    /// Signalled when a write ends while a thread waits for that.
    ended: Condvar,
    /// Marked while the worker waits for the client.
    waiting: Arc<WriterState>,
}

#[derive(Debug)]
struct State {
    slots: Slots,
    is_waited_for: bool,
    /// The operation that was handed over last.
    last: Option<Slot>,
    counts: Counts,
    exceptions: ExceptionList,
    waits: Option<WriterWaits>,
    // Times since they were drained last.
    response: Histogram,
    service: Histogram,
    breakdown: Breakdown,
    timed_samples: u64,
}

/// What became of the writes of a worker. Those still in flight are unknown.
#[derive(Debug)]
pub(in crate::run) struct Completed {
    /// Operations and samples by outcome; nothing is handed over any more.
    pub(in crate::run) counts: Counts,
    /// Those without an ordinary end, by name.
    pub(in crate::run) exceptions: Vec<Exception>,
    /// Operations for which the list had no room.
    pub(in crate::run) exceptions_dropped: u64,
    /// The operation that was handed over last.
    pub(in crate::run) last: Option<Slot>,
}

/// What came of an attempt to hand over an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::run) enum Handed {
    /// A lane has it; `Some`: a new one has to be started for it.
    Over(Option<u32>),
    /// A stop or a failure ended the wait for a free slot: it was not sent.
    Not,
}

impl Window {
    /// A window of `bound` writes of these groups, in order within each if `is_ordered`.
    pub(super) fn new(
        shared: Arc<Shared>,
        bound: usize,
        groups: &Range<u32>,
        is_ordered: bool,
        waits: Option<WriterWaits>,
    ) -> Self {
        Self {
            waiting: shared.totals.calls.writer(),
            shared,
            state: Mutex::new(State {
                slots: Slots::new(bound, groups, is_ordered),
                is_waited_for: false,
                last: None,
                counts: Counts::default(),
                exceptions: ExceptionList::new(groups, NAMED_MAX),
                waits,
                response: Histogram::new(),
                service: Histogram::new(),
                breakdown: Breakdown::new(),
                timed_samples: 0,
            }),
            ended: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands an operation over. `preceding` operations of the worker came before it.
    pub(in crate::run) fn hand_over(&self, operation: &Operation<'_>, preceding: u64, stop: &AtomicBool) -> Handed {
        let mut state = self.room(stop);
        let begun_ns = self.shared.clock.now();
        let batch = &operation.payload;
        let since_ns = state
            .waits
            .as_mut()
            .map(|waits| waits.begin(batch.time(0), Some(operation.due)));
        let write = Write {
            operation: operation.slot,
            due_ns: operation.due,
            late_ns: operation.late_ns,
            begun_ns,
            preceding,
            since_ns,
            samples: batch.len() as u32,
        };
        let Some(Filled { slot, is_new }) = state.slots.fill(write, batch) else {
            return Handed::Not;
        };
        state.last = Some(operation.slot);
        state.counts.handed_over.add(batch.len() as u64);
        Handed::Over(is_new.then_some(slot))
    }

    /// Waits until another operation can be handed over, a stop or a failure.
    pub(in crate::run) fn await_room(&self, stop: &AtomicBool) {
        drop(self.room(stop));
    }

    fn room(&self, stop: &AtomicBool) -> MutexGuard<'_, State> {
        let mut state = self.lock();
        if state.slots.has_room() {
            return state;
        }
        let _call = self.waiting.begin();
        while !state.slots.has_room() && !stop.load(Ordering::Relaxed) && !self.has_failed() {
            state = self.await_end(state);
        }
        state
    }

    /// Waits until every write has ended.
    pub(in crate::run) fn await_all(&self) {
        let mut state = self.lock();
        while state.slots.in_flight() > 0 {
            // A call of its own for each write that ends, so that one that does not end is noticed.
            let _call = self.waiting.begin();
            let left = state.slots.in_flight();
            while state.slots.in_flight() == left {
                state = self.await_end(state);
            }
        }
    }

    /// Waits until a write ends, or for a while.
    fn await_end<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.is_waited_for = true;
        let waited = self.ended.wait_timeout(state, LOOK);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Whether a failure has ended the run.
    pub(in crate::run) fn has_failed(&self) -> bool {
        self.shared.has_failed.load(Ordering::Acquire)
    }

    /// Ends the run because of a failure.
    pub(in crate::run) fn fail(&self, error: Error) {
        self.shared.totals.fail(error);
        self.shared.has_failed.store(true, Ordering::Release);
    }

    /// Ends all lanes, and the measurement of waits. Call it when every write has ended.
    pub(in crate::run) fn finish(&self) {
        let mut state = self.lock();
        state.slots.finish();
        // Adds the waits to the run's.
        drop(state.waits.take());
    }

    /// A write has ended. Each write ends once: a second end is ignored.
    fn end(&self, slot: u32, outcome: Result<Ack>, batch: &Batch<'_>, refused: &Refusals) {
        let Shared {
            clock, totals, rejects, ..
        } = &*self.shared;
        // IMPORTANT: named before it is counted, so that the journal counts none without a name.
        if outcome.is_ok() && !refused.is_empty() {
            rejects.add(batch, refused.as_slice());
        }
        let now = clock.now();
        let mut state = self.lock();
        let Some(write) = state.slots.under_way(slot) else {
            return;
        };
        let samples = u64::from(write.samples);
        match outcome {
            Ok(ack) => state.acknowledged(&write, &ack, now, &self.shared),
            // A server may come back: what is due later is tried again.
            Err(error @ Error::Unreachable { .. }) => {
                state.counts.shed.add(samples);
                state.exceptions.add(write.operation, ExceptionKind::Shed);
                totals.hinder(error);
            }
            Err(error) => {
                state.counts.unknown.add(samples);
                state.exceptions.add(write.operation, ExceptionKind::Unknown);
                if matches!(error, Error::Unknown { .. } | Error::Unanswered { .. }) {
                    totals.hinder(error);
                } else {
                    self.fail(error);
                }
            }
        }
        state.slots.end(slot);
        if std::mem::take(&mut state.is_waited_for) {
            self.ended.notify_one();
        }
    }

    /// A lane is gone. If it had a write, the client panicked or has ended.
    fn abandon(&self, slot: u32) {
        let mut state = self.lock();
        let is_sent = state.slots.under_way(slot).is_some();
        let Some(write) = state.slots.abandon(slot) else {
            return;
        };
        let samples = u64::from(write.samples);
        if is_sent {
            state.counts.unknown.add(samples);
            state.exceptions.add(write.operation, ExceptionKind::Unknown);
        } else {
            state.counts.shed.add(samples);
            state.exceptions.add(write.operation, ExceptionKind::Shed);
        }
        self.fail(poisoned("panicked in write, or ended before its writes had"));
        if std::mem::take(&mut state.is_waited_for) {
            self.ended.notify_one();
        }
    }

    /// Of the first `issued` operations of the worker, those before the oldest that has not ended.
    pub(super) fn settled(&self, issued: u64) -> u64 {
        let state = self.lock();
        state.slots.oldest().map_or(issued, |write| write.preceding.min(issued))
    }

    /// Adds what has ended to the live counters, which count it as handed over.
    pub(super) fn add_to(&self, totals: &mut LiveTotals) {
        let state = self.lock();
        totals.accepted += state.counts.accepted;
        totals.rejected += state.counts.rejected;
        totals.unknown += state.counts.unknown.samples;
        totals.shed += state.counts.shed.samples;
        totals.operations = totals.operations.saturating_sub(state.counts.shed.operations);
        totals.samples = totals.samples.saturating_sub(state.counts.shed.samples);
    }

    /// Samples refused, and samples of operations that were not sent or have no known outcome.
    pub(super) fn refused_and_excepted(&self) -> (u64, u64) {
        let counts = self.lock().counts;
        (counts.rejected, counts.shed.samples + counts.unknown.samples)
    }

    /// Takes the times since the last call.
    pub(super) fn drain_timing(&self, into: &mut Timing) {
        let mut state = self.lock();
        into.response.merge(&state.response);
        into.service.merge(&state.service);
        into.breakdown.merge(&state.breakdown);
        into.samples += std::mem::take(&mut state.timed_samples);
        state.response.clear();
        state.service.clear();
        state.breakdown.clear();
    }

    /// The most writes that were in flight at a time.
    pub(super) fn most(&self) -> usize {
        self.lock().slots.most()
    }

    /// What became of all writes so far.
    pub(in crate::run) fn completed(&self) -> Completed {
        let state = self.lock();
        let mut counts = Counts {
            handed_over: tsb_core::emit::Tally::default(),
            ..state.counts
        };
        let mut exceptions = state.exceptions.clone();
        for write in state.slots.writes() {
            counts.unknown.add(u64::from(write.samples));
            exceptions.add(write.operation, ExceptionKind::Unknown);
        }
        let (exceptions, exceptions_dropped) = exceptions.finish();
        Completed {
            counts,
            exceptions,
            exceptions_dropped,
            last: state.last,
        }
    }
}

impl State {
    /// Counts and times a write that was answered.
    fn acknowledged(&mut self, write: &Write, ack: &Ack, now: u64, shared: &Shared) {
        let (accepted, rejected) = (ack.accepted as u64, ack.rejected as u64);
        self.counts.done.add(u64::from(write.samples));
        self.counts.accepted += accepted;
        self.counts.rejected += rejected;
        if let Some((waits, since_ns)) = self.waits.as_mut().zip(write.since_ns)
            && let Some(store) = shared.store.upgrade()
        {
            waits.end(&*store, ack.position, since_ns, accepted);
        }
        if rejected > 0 {
            shared.totals.rejected.fetch_add(rejected, Ordering::Release);
        }
        if accepted > 0 {
            self.response.record(now.saturating_sub(write.due_ns));
            self.service.record(now.saturating_sub(write.begun_ns));
            let mut parts = Parts::of_lag(write.begun_ns.saturating_sub(write.due_ns), write.late_ns);
            parts.store_ns = now.saturating_sub(write.begun_ns);
            self.breakdown.record(write.operation, write.due_ns, &parts);
            self.timed_samples += u64::from(write.samples);
            shared.totals.accepted.fetch_add(accepted, Ordering::Release);
            shared.totals.last_ns.fetch_max(now, Ordering::Relaxed);
        }
    }
}

/// The lane of one slot: the client makes its writes one after the other.
#[derive(Debug)]
pub(in crate::run) struct Lane {
    window: Arc<Window>,
    slot: u32,
    batch: BatchBuf,
}

impl Lane {
    pub(in crate::run) fn new(window: Arc<Window>, slot: u32) -> Self {
        Self {
            window,
            slot,
            batch: BatchBuf::new(),
        }
    }
}

impl WriteLane for Lane {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<bool> {
        self.window.lock().slots.take(self.slot, &mut self.batch, context)
    }

    fn batch(&self) -> Batch<'_> {
        self.batch.as_batch()
    }

    fn done(&mut self, outcome: Result<Ack>, refused: &Refusals) {
        self.window.end(self.slot, outcome, &self.batch.as_batch(), refused);
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.window.abandon(self.slot);
    }
}
