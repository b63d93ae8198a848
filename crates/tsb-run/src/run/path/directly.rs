//! Drives a client directly, or the connections of an HTTP interface: hands operations over, waits
//! until each has ended, and puts what became of them into the result.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tsb_core::emit::{ExceptionKind, LiveWorker, Operation, Outcome, Tally, Target};
use tsb_core::schedule::Slot;
use tsb_stores::{AsyncStore, Result as StoreResult, WriteLane};

use super::{Pass, PassResult};
use crate::error::Error;
use crate::run::in_flight::{Handed, InFlight, Lane, Window};
use crate::run::loss_window::LossWindow;
use crate::run::rejects::Rejects;
use crate::run::sink::SinkTotals;

/// Starts to make the writes of a lane.
type Serve<'a> = &'a (dyn Fn(Box<dyn WriteLane>) -> StoreResult<()> + Sync);

/// Hands the operations of one worker over.
struct InFlightTarget<'a> {
    window: Arc<Window>,
    serve: Serve<'a>,
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
                if let Err(error) = (self.serve)(Box::new(lane)) {
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
        let serve = |lane| client.serve(lane);
        let mut driven = self.hand_over((&self.totals, &self.rejects), self.window, &serve)?;
        self.listening.cut(self.context.clock.now());
        driven.time_by(self.listening.take_timings());
        driven.end_with_last_acceptance(&self.totals);
        Ok(driven)
    }

    /// Runs the emitter with a window for each worker, whose lanes `serve` gets, and waits until
    /// every operation has ended. The times stay in the windows.
    pub(super) fn hand_over(
        &self,
        counts: (&Arc<SinkTotals>, &Arc<Rejects>),
        waits: Option<&Arc<LossWindow>>,
        serve: Serve<'_>,
    ) -> Result<PassResult, Error> {
        let in_flight = InFlight::new(self.context, self.timetable, &self.store, counts, waits);
        let in_flight = Arc::new(in_flight);
        self.listening.begin_in_flight(Arc::clone(&in_flight));
        let mut windows = in_flight.windows().iter().zip(self.live.workers());
        let report = self.emit(|| {
            let (window, live) = windows.next().ok_or_else(|| {
                Error::internal("cannot start the emitter").because_of("it has more workers than windows")
            })?;
            Ok(InFlightTarget {
                window: Arc::clone(window),
                serve,
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
