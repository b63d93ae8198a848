//! A store whose panics are answers, and whose calls are noted: the run goes on to its report,
//! and a call that does not return can be left behind.
//!
//! It stands between a store and everything of a run but the writes, which the emitter and
//! the sinks guard by themselves. It is *not* a wrapper that a user can name.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_stores::{Ack, Capabilities, Error, Position, Query, Refusals, Result, Scope, Stats, Store, Visitor};

use super::calls::Calls;
use crate::error::panic_message;

/// A store, and what it said when it panicked.
#[derive(Debug)]
pub struct Guarded {
    // Taken out for the store's own end.
    inner: Mutex<Option<Arc<dyn Store>>>,
    // Asked once: what a store is called does not change.
    name: String,
    capabilities: Capabilities,
    calls: Arc<Calls>,
    stats: Mutex<Stats>,
    panics: Mutex<Vec<String>>,
}

/// What a call came to, or the words of its panic.
pub(super) fn caught<T>(what: &str, call: impl FnOnce() -> T) -> std::result::Result<T, String> {
    // The store is not used for anything that a broken invariant could make worse: it says
    // what it holds, and is closed.
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| format!("panicked in {what}: {}", panic_message(&*panic)))
}

/// A panic as the store's own error.
pub(super) fn poisoned(said: &str) -> Error {
    Error::Poisoned {
        cause: format!("the store {said}"),
    }
}

impl Guarded {
    /// Guards `inner`, and notes its calls.
    ///
    /// # Errors
    /// The words of its panic, if it cannot even say what it is.
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
            panics: Mutex::default(),
        })
    }

    /// What it said when it panicked in calls that return no error, or one that nobody reads.
    pub(super) fn panics(&self) -> Vec<String> {
        self.panics.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn inner(&self) -> MutexGuard<'_, Option<Arc<dyn Store>>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on the store is not called any more: what it said last is its answer, or an
    /// error. Returns the store, whose end may never come if one of its calls has not returned.
    pub fn leave(&self) -> Option<Arc<dyn Store>> {
        self.inner().take()
    }

    fn note(&self, said: &str) {
        let mut panics = self.panics.lock().unwrap_or_else(PoisonError::into_inner);
        let said = format!("{} {said}", self.name);
        if !panics.contains(&said) {
            panics.push(said);
        }
    }

    /// Makes a call, unless the store was left; a panic is its words.
    fn call<T>(&self, what: &'static str, call: impl FnOnce(&Arc<dyn Store>) -> T) -> std::result::Result<T, Uncalled> {
        let store = self.inner().clone().ok_or(Uncalled::Left)?;
        let _call = self.calls.begin(what);
        caught(what, || call(&store)).map_err(Uncalled::Panicked)
    }

    /// A call whose answer says what went wrong.
    fn ask<T>(&self, what: &'static str, call: impl FnOnce(&Arc<dyn Store>) -> Result<T>) -> Result<T> {
        self.call(what, call).unwrap_or_else(|why| Err(why.into()))
    }
}

/// Why there is no answer of a store.
enum Uncalled {
    Left,
    Panicked(String),
}

impl From<Uncalled> for Error {
    fn from(why: Uncalled) -> Self {
        match why {
            Uncalled::Left => Self::Unanswered {
                action: "use the store".to_owned(),
                source: "an earlier call has not returned".into(),
            },
            Uncalled::Panicked(said) => poisoned(&said),
        }
    }
}

impl fmt::Display for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Store for Guarded {
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
                if let Uncalled::Panicked(said) = why {
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
        self.call("newest", |store| store.newest(series, into))
            .unwrap_or_else(|why| {
                // Staleness does without an answer: nobody would hear of it.
                if let Uncalled::Panicked(said) = &why {
                    self.note(said);
                }
                Err(why.into())
            })
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.ask("newest_accepted", |store| store.newest_accepted(series, into))
    }

    fn stats(&self) -> Stats {
        let said = self.call("stats", Store::stats);
        // Not before: the store may never return.
        let mut last = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        match said {
            Ok(stats) => *last = stats,
            Err(Uncalled::Panicked(said)) => self.note(&said),
            Err(Uncalled::Left) => {}
        }
        last.clone()
    }

    fn close(&self) -> Result<()> {
        self.ask("close", Store::close)
    }
}
