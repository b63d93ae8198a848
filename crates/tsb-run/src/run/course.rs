//! How far a run has come, for whoever has to report it without the thread that makes it.
//!
//! Each part is put here when it is there, and nothing here is held while a store is called:
//! what a stuck call leaves behind can always be read.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tsb_core::Timestamp;
use tsb_core::emit::Live;
use tsb_core::report::Projection;
use tsb_stores::Store;

use super::aftermath;
use super::assemble::{Parts, assemble};
use super::engine::{Finished, Performed, ReadBack};
use super::guarded::Guarded;
use super::monitor::{Monitor, Observed};
use super::path::{Driven, Watch, accepted};
use super::patience::Over;
use super::rejects::Rejects;
use super::sink::SinkTotals;
use super::so_far;
use super::stage::Stage;
use crate::controls::Controls;
use crate::error::Error;

/// What is there from the beginning of a run.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) stage: Arc<Stage>,
    pub(super) store: Arc<Guarded>,
    pub(super) live: Arc<Live>,
}

/// A run on its way.
#[derive(Debug, Default)]
pub(super) struct Course {
    /// Ends the emitter.
    pub(super) stop: Arc<AtomicBool>,
    /// When only the store can still take time.
    pub(super) over: Over,
    pub(super) totals: Arc<SinkTotals>,
    pub(super) rejects: Arc<Rejects>,
    pub(super) watch: Arc<Watch>,
    /// Ends the thread that keeps the journal.
    pub(super) is_over: AtomicBool,
    begun: OnceLock<Begun>,
    pub(super) ceiling: OnceLock<f64>,
    /// When it starts, on the clock, and the timestamp of that moment.
    pub(super) start: OnceLock<(u64, Timestamp)>,
    pub(super) monitor: OnceLock<Arc<Monitor>>,
    pub(super) driven: OnceLock<(Arc<Driven>, Arc<Observed>)>,
    pub(super) performed: OnceLock<Arc<Performed>>,
    pub(super) projection: OnceLock<Result<Projection, String>>,
    finished: Mutex<Option<Finished>>,
    is_left: Mutex<bool>,
}

/// What the thread of a run says that was left behind: nobody listens.
fn left() -> Error {
    Error::interrupted("cannot go on").because_of("the run was given up")
}

impl Course {
    /// The run has a plan and a store.
    pub(super) fn begin(&self, stage: Arc<Stage>, store: Arc<Guarded>) -> &Begun {
        self.begun.get_or_init(|| Begun {
            live: Arc::new(Live::new(stage.plan.workers)),
            stage,
            store,
        })
    }

    /// Does something that must not happen once the run was given up.
    ///
    /// # Errors
    /// When it was.
    pub(super) fn unless_left<T>(&self, what: impl FnOnce() -> T) -> Result<T, Error> {
        let is_left = self.is_left.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_left { Err(left()) } else { Ok(what()) }
    }

    /// What the store is called.
    pub(super) fn store_name(&self) -> String {
        self.begun
            .get()
            .map_or_else(String::new, |begun| begun.store.to_string())
    }

    /// The run calls its store no more.
    pub(super) fn forget_store(&self) {
        drop(self.begun.get().and_then(|begun| begun.store.leave()));
    }

    /// The report is whole but for what closing the store comes to.
    pub(super) fn keep(&self, finished: Finished) {
        *self.finished.lock().unwrap_or_else(PoisonError::into_inner) = Some(finished);
    }

    /// Takes that report back.
    ///
    /// # Errors
    /// When the run was given up meanwhile.
    pub(super) fn kept(&self) -> Result<Finished, Error> {
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        finished.take().ok_or_else(left)
    }

    /// Gives the run up, and reports what there is of it.
    ///
    /// # Errors
    /// When there is nothing.
    pub(super) fn give_up(&self, why: &str, controls: &Controls) -> Result<Finished, Error> {
        *self.is_left.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.stop.store(true, Ordering::SeqCst);
        self.is_over.store(true, Ordering::Release);
        let Some(begun) = self.begun.get() else {
            return Err(Error::interrupted("cannot begin the run").because_of(why));
        };
        // Its end may never come.
        std::mem::forget(begun.store.leave());
        if let Some(journal) = &controls.journal {
            journal.keep();
        }
        let (mut finished, note) = match self.kept() {
            Ok(finished) => (finished, "the store was left behind while it was being closed"),
            Err(_) => (self.so_far(begun, why), "the store was left behind, and not closed"),
        };
        let run = &mut finished.run;
        run.interrupted |= controls.stops.stop.load(Ordering::SeqCst);
        aftermath::doubt(run, why);
        run.notes
            .push(format!("{note}: what it had not made durable by itself may be gone"));
        Ok(finished)
    }

    /// The report of a run before it was read back.
    fn so_far(&self, begun: &Begun, why: &str) -> Finished {
        let performed = self.performed.get().cloned();
        let performed = performed.unwrap_or_else(|| Arc::new(self.performed_so_far(begun)));
        let store: Arc<dyn Store> = Arc::clone(&begun.store) as Arc<dyn Store>;
        let (_, base) = self.start.get().copied().unwrap_or((0, begun.stage.clock.wall()));
        let projection = self.projection.get().cloned();
        let run = assemble(&Parts {
            stage: &begun.stage,
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
        Finished {
            run,
            driven: Arc::clone(&performed.driven),
        }
    }

    /// What was done before everything was flushed.
    fn performed_so_far(&self, begun: &Begun) -> Performed {
        let (driven, observed) = self.driven.get().cloned().unwrap_or_else(|| {
            let observed = self.monitor.get().and_then(|monitor| monitor.take_so_far());
            let driven = match self.start.get() {
                Some(&start) => so_far::driven(begun, self, start),
                None => Driven::default(),
            };
            (Arc::new(driven), Arc::new(observed.unwrap_or_default()))
        });
        Performed {
            accepted: if driven.is_partial {
                driven.counts.accepted
            } else {
                accepted(&begun.live, &self.totals, begun.stage.plan.transport)
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
            unflushed: None,
        }
    }
}
