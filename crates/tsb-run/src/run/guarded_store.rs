//! Wraps the store of a run: a panic becomes an error, and open calls are tracked, so that the
//! run always reaches its report and a call that does not return can be abandoned.
//!
//! Calls of a run go through it except writes, the queries of the plan's streams, and the last close. The
//! code that makes those tracks them in [`Calls`] and catches their panics itself. It is *not* a wrapper
//! that a store spec can name.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_stores::{Ack, Capabilities, Error, Position, Query, Refusals, Result, Scope, Stats, Store, Visitor};

use super::calls::Calls;
use crate::error::{chain, panic_message};

/// Number of failures that are kept; the first ones say what happened.
const FAILURES_MAX: usize = 16;

/// A store, and what failed in it.
#[derive(Debug)]
pub struct GuardedStore {
    // `None` once the store is released.
    inner: Mutex<Option<Arc<dyn Store>>>,
    // Read once: a store's name does not change.
    name: String,
    capabilities: Capabilities,
    calls: Arc<Calls>,
    stats: Mutex<Stats>,
    failures: Mutex<Vec<String>>,
}

/// The result of a call, or the message of its panic.
pub(super) fn caught<T>(what: &str, call: impl FnOnce() -> T) -> std::result::Result<T, String> {
    // After a panic the store is only asked what it holds and closed, so that a broken invariant
    // cannot do further harm.
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| format!("panicked in {what}: {}", panic_message(&*panic)))
}

/// A panic message as the store's error.
pub(super) fn poisoned(said: &str) -> Error {
    Error::Poisoned {
        cause: format!("the store {said}"),
    }
}

impl GuardedStore {
    /// Wraps `inner` and tracks its calls.
    ///
    /// # Errors
    /// The message of its panic, if it panics while stating its name or capabilities.
    pub fn new(inner: &Arc<dyn Store>, calls: &Arc<Calls>) -> std::result::Result<Self, String> {
        let (name, capabilities) = {
            let _call = calls.begin("capabilities");
            caught("capabilities", || (inner.to_string(), inner.capabilities()))?
        };
        Ok(Self {
            inner: Mutex::new(Some(Arc::clone(inner))),
            name,
            capabilities,
            calls: Arc::clone(calls),
            stats: Mutex::default(),
            failures: Mutex::default(),
        })
    }

    /// Messages of failed calls that return no error, or whose error the run ignores.
    pub(super) fn failures(&self) -> Vec<String> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn inner(&self) -> MutexGuard<'_, Option<Arc<dyn Store>>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases the store. Later calls return the last known answer or an error. Dropping the
    /// returned store may block for ever if one of its calls has not returned.
    pub fn leave(&self) -> Option<Arc<dyn Store>> {
        self.inner().take()
    }

    fn note(&self, said: &str) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let said = format!("{} {said}", self.name);
        if failures.len() < FAILURES_MAX && !failures.contains(&said) {
            failures.push(said);
        }
    }

    /// Calls the store unless it was released; a panic becomes its message.
    fn call<T>(
        &self,
        what: &'static str,
        call: impl FnOnce(&Arc<dyn Store>) -> T,
    ) -> std::result::Result<T, CallFailure> {
        let store = self.inner().clone().ok_or(CallFailure::Released)?;
        let _call = self.calls.begin(what);
        caught(what, || call(&store)).map_err(CallFailure::Panicked)
    }

    /// The same for calls that return a result.
    fn ask<T>(&self, what: &'static str, call: impl FnOnce(&Arc<dyn Store>) -> Result<T>) -> Result<T> {
        self.call(what, call).unwrap_or_else(|why| Err(why.into()))
    }
}

/// Why a call had no answer.
enum CallFailure {
    Released,
    Panicked(String),
}

impl From<CallFailure> for Error {
    fn from(why: CallFailure) -> Self {
        match why {
            CallFailure::Released => Self::Unanswered {
                action: "use the store".to_owned(),
                source: "an earlier call has not returned".into(),
            },
            CallFailure::Panicked(said) => poisoned(&said),
        }
    }
}

impl fmt::Display for GuardedStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Store for GuardedStore {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.ask("define", |store| store.define(series))
    }

    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.ask("write", |store| store.write(batch, refused))
    }

    fn durable(&self, level: Durability) -> Position {
        self.call("durable", |store| store.durable(level))
            .unwrap_or_else(|why| {
                if let CallFailure::Panicked(said) = why {
                    self.note(&said);
                }
                Position::default()
            })
    }

    fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.ask("flush", |store| store.flush(scope, level))
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        self.ask("query", |store| store.query(query, visit))
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        let answer = self.call("newest", |store| store.newest(series, into));
        // Staleness ignores errors of this call, so a failure would go unnoticed. Silence is none:
        // the same server is silent to writes and flushes, whose errors are heard.
        match &answer {
            Ok(Err(error)) if !error.is_silence() && !matches!(error, Error::Unsupported { .. }) => {
                self.note(&format!("cannot say its newest samples: {}", chain(error)));
            }
            Err(CallFailure::Panicked(said)) => self.note(said),
            _ => {}
        }
        answer.unwrap_or_else(|why| Err(why.into()))
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.ask("newest_accepted", |store| store.newest_accepted(series, into))
    }

    fn stats(&self) -> Stats {
        let said = self.call("stats", Store::stats);
        // IMPORTANT: lock after the call, which may never return.
        let mut last = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        match said {
            Ok(stats) => *last = stats,
            Err(CallFailure::Panicked(said)) => self.note(&said),
            Err(CallFailure::Released) => {}
        }
        last.clone()
    }

    fn close(&self) -> Result<()> {
        self.ask("close", Store::close)
    }
}
