//! A store whose panics are answers: the run goes on to its report.
//!
//! It stands between a store and everything of a run but the writes, which the emitter and
//! the sinks guard by themselves. It is *not* a wrapper that a user can name.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_stores::{Ack, Capabilities, Error, Position, Query, Refusals, Result, Scope, Stats, Store, Visitor};

use crate::failure::panic_message;

/// A store, and what it said when it panicked.
#[derive(Debug)]
pub(super) struct Guarded {
    inner: Arc<dyn Store>,
    // Asked once: what a store is called does not change.
    name: String,
    capabilities: Capabilities,
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
    /// Guards `inner`.
    ///
    /// # Errors
    /// The words of its panic, if it cannot even say what it is.
    pub(super) fn new(inner: &Arc<dyn Store>) -> std::result::Result<Self, String> {
        let (name, capabilities) = caught("capabilities", || (inner.to_string(), inner.capabilities()))?;
        Ok(Self {
            inner: Arc::clone(inner),
            name,
            capabilities,
            stats: Mutex::default(),
            panics: Mutex::default(),
        })
    }

    /// What it said when it panicked in calls that return no error, or one that nobody reads.
    pub(super) fn panics(&self) -> Vec<String> {
        self.panics.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn note(&self, said: &str) {
        let mut panics = self.panics.lock().unwrap_or_else(PoisonError::into_inner);
        let said = format!("{} {said}", self.name);
        if !panics.contains(&said) {
            panics.push(said);
        }
    }
}

/// A call whose answer says what went wrong.
fn ask<T>(what: &str, call: impl FnOnce() -> Result<T>) -> Result<T> {
    caught(what, call).unwrap_or_else(|said| Err(poisoned(&said)))
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
        ask("define", || self.inner.define(series))
    }

    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        ask("write", || self.inner.write(batch, refused))
    }

    fn durable(&self, level: Durability) -> Position {
        caught("durable", || self.inner.durable(level)).unwrap_or_else(|said| {
            self.note(&said);
            Position::default()
        })
    }

    fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        ask("flush", || self.inner.flush(scope, level))
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        ask("query", || self.inner.query(query, visit))
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        caught("newest", || self.inner.newest(series, into)).unwrap_or_else(|said| {
            // Staleness does without an answer: nobody would hear of it.
            self.note(&said);
            Err(poisoned(&said))
        })
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        ask("newest_accepted", || self.inner.newest_accepted(series, into))
    }

    fn stats(&self) -> Stats {
        let mut last = self.stats.lock().unwrap_or_else(PoisonError::into_inner);
        match caught("stats", || self.inner.stats()) {
            Ok(stats) => *last = stats,
            Err(said) => self.note(&said),
        }
        last.clone()
    }

    fn close(&self) -> Result<()> {
        ask("close", || self.inner.close())
    }
}
