//! A store that fails on purpose: chosen calls of a chosen method return an error or panic.

use std::fmt;
use std::ops::{ControlFlow, Range};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use tsb_core::time::{Clock, MonotonicClock};
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::{Ack, Capabilities, Error, Position, Query, Refusals, Result, Scope, Stats, Store, Visitor};

/// How long a slow call takes.
const SLOW_NS: u64 = 60_000_000;
/// How long a call takes that outlasts the wait for a start.
const LONG_NS: u64 = 1_200_000_000;

/// What every failure says.
pub(crate) const MESSAGE: &str = "boom";

/// A call that a run makes of a store. Opening is the call of the store's maker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Open,
    Define,
    Write,
    Newest,
    Durable,
    Flush,
    Query,
    /// Not a call: a chunk of an answer, which breaks off before it.
    Chunk,
    /// Not a call: the series that a chunk is about; it is said to be series 0.
    ChunkName,
    Stats,
    Close,
    Drop,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    Errs,
    /// It returns the error of a server that does not answer.
    IsSilent,
    /// It takes longer than the interval of a series, and does not fail.
    IsSlow,
    /// It takes longer than a run waits for its start, and does not fail.
    TakesLong,
    Panics,
    /// It panics with a value that panics once more when it is dropped: this gets past the guard
    /// of a single call.
    PanicsTwice,
}

/// Calls of one method that fail, counted from 0.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) method: Method,
    pub(crate) kind: FailureKind,
    pub(crate) calls: Range<u64>,
}

impl Fault {
    /// All calls from the one with number `from` on.
    pub(crate) const fn new(method: Method, kind: FailureKind, from: u64) -> Self {
        let calls = from..u64::MAX;
        Self { method, kind, calls }
    }

    /// Fails if the call with this number has to.
    pub(crate) fn strike(&self, number: u64) -> Result<()> {
        if !self.calls.contains(&number) {
            return Ok(());
        }
        match self.kind {
            FailureKind::Errs => Err(Error::Backend {
                action: "do it".to_owned(),
                source: MESSAGE.into(),
            }),
            FailureKind::IsSilent => Err(Error::Unanswered {
                action: "do it".to_owned(),
                source: MESSAGE.into(),
            }),
            FailureKind::IsSlow => {
                MonotonicClock::new().wait_until(SLOW_NS);
                Ok(())
            }
            FailureKind::TakesLong => {
                MonotonicClock::new().wait_until(LONG_NS);
                Ok(())
            }
            FailureKind::Panics => panic!("{MESSAGE}"),
            FailureKind::PanicsTwice => std::panic::panic_any(Bomb),
        }
    }
}

/// Keeps panics on purpose off the screen: each would print a backtrace, which takes longer than
/// the run.
pub(crate) fn hush() {
    static HUSHED: Once = Once::new();
    HUSHED.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let is_ours = panic.payload_as_str() == Some(MESSAGE) || panic.payload().is::<Bomb>();
            if !is_ours {
                usual(panic);
            }
        }));
    });
}

struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("{MESSAGE}");
    }
}

/// A memory store with faults. It says that a flush makes its samples buffered, so that a run
/// asks how durable they are.
#[derive(Debug)]
pub(crate) struct FaultyStore {
    inner: MemoryStore,
    faults: Vec<(Fault, AtomicU64)>,
    /// Number of queries.
    pub(crate) queries: AtomicU64,
}

impl FaultyStore {
    pub(crate) fn new(faults: Vec<Fault>) -> Self {
        Self {
            inner: MemoryStore::new(MemoryOptions::default()),
            faults: faults.into_iter().map(|fault| (fault, AtomicU64::new(0))).collect(),
            queries: AtomicU64::new(0),
        }
    }

    /// Counts a call, and fails if it has to.
    fn call(&self, method: Method) -> Result<()> {
        let mut faults = self.faults.iter().filter(|(fault, _)| fault.method == method);
        faults.try_for_each(|(fault, calls)| fault.strike(calls.fetch_add(1, Ordering::SeqCst)))
    }

    /// The same for a method that returns no error.
    fn call_infallible(&self, method: Method) {
        self.call(method).unwrap();
    }
}

impl Drop for FaultyStore {
    fn drop(&mut self) {
        self.call_infallible(Method::Drop);
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("trap")
    }
}

impl Store for FaultyStore {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.inner.capabilities();
        capabilities.reaches = Durability::Buffered;
        capabilities
    }
    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.call(Method::Define)?;
        self.inner.define(series)
    }
    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.call(Method::Write)?;
        self.inner.write(batch, refused)
    }
    fn durable(&self, _: Durability) -> Position {
        self.call_infallible(Method::Durable);
        self.inner.durable(Durability::Volatile)
    }
    fn flush(&self, scope: Scope<'_>, _: Durability) -> Result<()> {
        self.call(Method::Flush)?;
        self.inner.flush(scope, Durability::Volatile)
    }
    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        self.queries.fetch_add(1, Ordering::SeqCst);
        self.call(Method::Query)?;
        let mut broken_off = Ok(());
        self.inner.query(query, &mut |series, times, values| {
            broken_off = self.call(Method::Chunk);
            if broken_off.is_err() {
                return ControlFlow::Break(());
            }
            let is_named = self.call(Method::ChunkName).is_ok();
            visit(if is_named { series } else { SeriesId(0) }, times, values)
        })?;
        broken_off
    }
    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.call(Method::Newest)?;
        self.inner.newest(series, into)
    }
    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.inner.newest_accepted(series, into)
    }
    fn stats(&self) -> Stats {
        self.call_infallible(Method::Stats);
        self.inner.stats()
    }
    fn close(&self) -> Result<()> {
        self.call(Method::Close)?;
        self.inner.close()
    }
}
