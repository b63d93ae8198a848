//! Drives a client directly: hands its operations over, waits until each has ended, and puts what
//! became of them into the result.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tsb_core::emit::{ExceptionKind, LiveWorker, Operation, Outcome, Tally, Target};
use tsb_core::schedule::Slot;
use tsb_stores::AsyncStore;

use super::{Pass, PassResult};
use crate::error::Error;
use crate::run::in_flight::{Handed, InFlight, Lane, Window};

/// Hands the operations of one worker to the client.
struct InFlightTarget<'a> {
    window: Arc<Window>,
    client: &'a Arc<dyn AsyncStore>,
    live: &'a LiveWorker,
    stop: &'a AtomicBool,
    /// The operation that was due when the client had failed, and its samples: it was not sent.
    unsent: Option<(Slot, u64)>,
}

impl InFlightTarget<'_> {
    fn refuse(&mut self, operation: &Operation<'_>) -> Outcome {
        self.unsent = Some((operation.slot, operation.payload.len() as u64));
        Outcome::Fatal
    }
}

impl Target for InFlightTarget<'_> {
    fn send(&mut self, operation: &Operation<'_>) -> Outcome {
        if self.window.has_failed() {
            return self.refuse(operation);
        }
        // The worker has published everything before this operation.
        match self.window.hand_over(operation, self.live.issued(), self.stop) {
            Handed::Over(None) => {}
            Handed::Over(Some(slot)) => {
                let lane = Lane::new(Arc::clone(&self.window), slot);
                if let Err(error) = self.client.serve(Box::new(lane)) {
                    self.window.fail(error);
                }
            }
            Handed::Not if self.window.has_failed() => return self.refuse(operation),
            Handed::Not => return Outcome::Shed,
        }
        // IMPORTANT: wait here. A wait in the next call would be part of that operation's service
        // time, and not of its lag.
        self.window.await_room(self.stop);
        Outcome::Sent
    }
}

impl Pass<'_> {
    /// Drives the client, and waits until every operation has ended.
    pub(super) fn directly(&self, client: &Arc<dyn AsyncStore>) -> Result<PassResult, Error> {
        self.listening
            .since(self.start_ns, self.context.plan.report_interval_ns);
        let in_flight = Arc::new(InFlight::new(
            self.context,
            self.timetable,
            &self.store,
            (&self.totals, &self.rejects),
            self.window,
        ));
        self.listening.begin_in_flight(Arc::clone(&in_flight));
        let mut windows = in_flight.windows().iter().zip(self.live.workers());
        let report = self.emit(|| {
            let (window, live) = windows.next().ok_or_else(|| {
                Error::internal("cannot start the emitter").because_of("it has more workers than windows")
            })?;
            Ok(InFlightTarget {
                window: Arc::clone(window),
                client,
                live,
                stop: self.stop,
                unsent: None,
            })
        })?;
        in_flight.windows().iter().for_each(|window| window.await_all());
        in_flight.windows().iter().for_each(|window| window.finish());
        let (mut driven, targets) = self.driven(report);
        for target in targets {
            settle(&mut driven, &target.window, target.unsent);
        }
        self.listening.cut(self.context.clock.now());
        driven.time_by(self.listening.take_timings());
        driven.end_with_last_acceptance(&self.totals);
        driven.most_in_flight = in_flight.most();
        Ok(driven)
    }
}

/// Puts what became of a worker's operations in the place of what it had handed over. `unsent` is an
/// operation that the emitter takes for unknown, and that was not sent.
fn settle(driven: &mut PassResult, window: &Window, unsent: Option<(Slot, u64)>) {
    let counts = &mut driven.counts;
    if let Some((slot, samples)) = unsent {
        counts.unknown.operations = counts.unknown.operations.saturating_sub(1);
        counts.unknown.samples = counts.unknown.samples.saturating_sub(samples);
        counts.shed.add(samples);
        let found = driven.exceptions.iter_mut().find(|(group, ticks, kind)| {
            *group == slot.group && ticks.contains(&slot.tick) && *kind == ExceptionKind::Unknown
        });
        if let Some((_, _, kind)) = found {
            *kind = ExceptionKind::Shed;
        }
    }
    let completed = window.completed();
    counts.handed_over = Tally::default();
    counts.merge(&completed.counts);
    driven.exceptions_dropped += completed.exceptions_dropped;
    let named = completed.exceptions.into_iter();
    driven
        .exceptions
        .extend(named.map(|exception| (exception.group, exception.ticks, exception.kind)));
}
