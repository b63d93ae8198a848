//! The state of a run in progress, so that a supervisor can report it without the thread that
//! executes it.
//!
//! Every result is put here as soon as it exists, and no lock here is held during a call into
//! the store: after a stuck call, everything can still be read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tsb_core::Timestamp;
use tsb_core::emit::Live;
use tsb_core::report::Projection;
use tsb_stores::Store;

use super::aftermath;
use super::assemble::{Parts, assemble};
use super::guarded_store::GuardedStore;
use super::monitor::{Monitor, Observed};
use super::path::{PassResult, Watch, accepted};
use super::preload::Preloaded;
use super::rejects::Rejects;
use super::results::{Finished, Performed, ReadBack};
use super::run_context::RunContext;
use super::sink::SinkTotals;
use super::so_far;
use super::store_timeouts::WorkEnd;
use crate::controls::Controls;
use crate::error::Error;
use crate::place::RunMark;

/// What exists from the beginning of a run.
#[derive(Debug)]
pub(super) struct StartedRun {
    pub(super) context: Arc<RunContext>,
    pub(super) store: Arc<GuardedStore>,
    pub(super) live: Arc<Live>,
}

/// The state of a run in progress.
#[derive(Debug, Default)]
pub(super) struct RunState {
    /// Stops the emitter.
    pub(super) stop: Arc<AtomicBool>,
    /// The time from which only the store can delay the end.
    pub(super) over: WorkEnd,
    pub(super) totals: Arc<SinkTotals>,
    pub(super) rejects: Arc<Rejects>,
    pub(super) watch: Arc<Watch>,
    /// Stops the thread that writes the journal.
    pub(super) is_over: AtomicBool,
    started: OnceLock<StartedRun>,
    pub(super) ceiling: OnceLock<f64>,
    pub(super) preloaded: OnceLock<Preloaded>,
    /// Start on the clock, and the timestamp of that moment.
    pub(super) start: OnceLock<(u64, Timestamp)>,
    pub(super) monitor: OnceLock<Arc<Monitor>>,
    pub(super) driven: OnceLock<(Arc<PassResult>, Arc<Observed>)>,
    pub(super) performed: OnceLock<Arc<Performed>>,
    pub(super) projection: OnceLock<Result<Projection, String>>,
    /// The mark of this run at its place.
    run_mark: Mutex<Option<RunMark>>,
    finished: Mutex<Option<Finished>>,
    is_left: Mutex<bool>,
}

/// The error of a run that was abandoned by its supervisor; it is not shown to the user.
fn left() -> Error {
    Error::interrupted("cannot go on").because_of("the run was given up")
}

impl RunState {
    /// Stores the plan and the store.
    pub(super) fn begin(&self, context: Arc<RunContext>, store: Arc<GuardedStore>) -> &StartedRun {
        self.started.get_or_init(|| StartedRun {
            live: Arc::new(Live::new(context.plan.workers)),
            context,
            store,
        })
    }

    /// Calls `what` unless the run was abandoned. Holds a lock meanwhile, so that the run cannot
    /// be abandoned during the call.
    ///
    /// # Errors
    /// If the run was abandoned.
    pub(super) fn unless_left<T>(&self, what: impl FnOnce() -> T) -> Result<T, Error> {
        let is_left = self.is_left.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_left { Err(left()) } else { Ok(what()) }
    }

    /// The store's name; empty before it is known.
    pub(super) fn store_name(&self) -> String {
        self.started
            .get()
            .map_or_else(String::new, |started| started.store.to_string())
    }

    /// Keeps the mark of this run at its place.
    pub(super) fn mark(&self, run_mark: Option<RunMark>) {
        *self.run_mark.lock().unwrap_or_else(PoisonError::into_inner) = run_mark;
    }

    /// Removes the mark: the place is closed, or nothing was written to it.
    ///
    /// # Errors
    /// If the file cannot be removed.
    pub(super) fn unmark(&self) -> Result<(), Error> {
        let run_mark = self.run_mark.lock().unwrap_or_else(PoisonError::into_inner).take();
        run_mark.map_or(Ok(()), RunMark::remove)
    }

    /// Releases the store: the run does not call it any more.
    pub(super) fn forget_store(&self) {
        drop(self.started.get().and_then(|started| started.store.leave()));
    }

    /// Keeps the report, which is complete except for the outcome of closing the store.
    pub(super) fn keep(&self, finished: Finished) {
        *self.finished.lock().unwrap_or_else(PoisonError::into_inner) = Some(finished);
    }

    /// Takes the kept report.
    ///
    /// # Errors
    /// If the run was abandoned meanwhile.
    pub(super) fn kept(&self) -> Result<Finished, Error> {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        finished.take().ok_or_else(left)
    }

    /// Abandons the run and reports what is known of it. `why` becomes a reason of the verdict.
    ///
    /// # Errors
    /// If the run had not begun.
    pub(super) fn give_up(&self, why: &str, controls: &Controls) -> Result<Finished, Error> {
        *self.is_left.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.store(true, Ordering::SeqCst);
        self.is_over.store(true, Ordering::Release);
        let Some(started) = self.started.get() else {
            return Err(Error::interrupted("cannot begin the run").because_of(why));
        };
        // IMPORTANT: dropping the store may block for ever, so it is leaked.
        std::mem::forget(started.store.leave());
        if let Some(journal) = &controls.journal {
            journal.keep();
        }
        let (mut finished, note) = match self.kept() {
            Ok(finished) => (finished, "the store was left behind while it was being closed"),
            Err(_) => (self.so_far(started, why), "the store was left behind, and not closed"),
        };
        let run = &mut finished.run;
        run.interrupted |= controls.stops.stop.load(Ordering::SeqCst) || controls.stops.at_once.load(Ordering::SeqCst);
        aftermath::doubt(run, why);
        run.notes
            .push(format!("{note}: what it had not made durable by itself may be gone"));
        Ok(finished)
    }

    /// The report of a run that was not read back.
    fn so_far(&self, started: &StartedRun, why: &str) -> Finished {
        let performed = self.performed.get().cloned();
        let performed = performed.unwrap_or_else(|| Arc::new(self.performed_so_far(started)));
        let store: Arc<dyn Store> = Arc::clone(&started.store) as Arc<dyn Store>;
        let (_, base) = self.start.get().copied().unwrap_or((0, started.context.clock.wall()));
        let projection = self.projection.get().cloned();
        let run = assemble(&Parts {
            context: &started.context,
            store: &store,
            base,
            performed: &performed,
            read: &ReadBack {
                unread: Some(format!("nothing was read back: {why}")),
                ..ReadBack::default()
            },
            ceiling: self.ceiling.get().copied(),
            projection: projection.unwrap_or_else(|| Err("the run was given up".to_owned())),
        });
        Finished::new(run, &performed)
    }

    /// The results up to now, before anything was flushed.
    fn performed_so_far(&self, started: &StartedRun) -> Performed {
        let (driven, observed) = self.driven.get().cloned().unwrap_or_else(|| {
            let observed = self.monitor.get().and_then(|monitor| monitor.take_so_far());
            let driven = match self.start.get() {
                Some(&start) => so_far::driven(started, self, start),
                None => PassResult::default(),
            };
            (Arc::new(driven), Arc::new(observed.unwrap_or_default()))
        });
        Performed {
            accepted: if driven.is_partial {
                driven.counts.accepted
            } else {
                accepted(&started.live, &self.totals, started.context.plan.transport)
            },
            driven,
            observed,
            window: None,
            flushed_ns: None,
            rejects: Arc::clone(&self.rejects),
            spent: None,
            stats: None,
            failure: self.totals.failure().map(|error| crate::error::chain(&*error)),
            totals: Arc::clone(&self.totals),
            preloaded: self.preloaded.get().copied(),
            queries: Vec::new(),
            unflushed: None,
        }
    }
}
