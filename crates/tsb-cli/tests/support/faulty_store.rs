//! A store that works but for what a test says: each method can be taken over.

use std::fmt;
use std::sync::Arc;

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_stores::{Ack, Capabilities, Position, Query, Refusals, Result, Scope, Stats, Store, Visitor};

/// What is wrong with a store; what is not taken over is as the inner store has it.
pub(crate) trait Fault: fmt::Debug + Send + Sync + 'static {
    fn capabilities(&self, inner: &dyn Store) -> Capabilities {
        inner.capabilities()
    }
    fn define(&self, inner: &dyn Store, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        inner.define(series)
    }
    fn write(&self, inner: &dyn Store, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        inner.write(batch, refused)
    }
    fn flush(&self, inner: &dyn Store, scope: Scope<'_>, level: Durability) -> Result<()> {
        inner.flush(scope, level)
    }
    fn query(&self, inner: &dyn Store, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        inner.query(query, visit)
    }
    fn newest(&self, inner: &dyn Store, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        inner.newest(series, into)
    }
    fn stats(&self, inner: &dyn Store) -> Stats {
        inner.stats()
    }
    fn close(&self, inner: &dyn Store) -> Result<()> {
        inner.close()
    }
}

/// A store with a fault.
#[derive(Debug)]
pub(crate) struct FaultyStore<F> {
    inner: Arc<dyn Store>,
    pub(crate) fault: F,
}

impl<F: Fault> FaultyStore<F> {
    /// Puts `fault` in front of `inner`.
    pub(crate) fn new(inner: impl Store, fault: F) -> Arc<Self> {
        let inner: Arc<dyn Store> = Arc::new(inner);
        Arc::new(Self { inner, fault })
    }
}

impl<F: Fault> fmt::Display for FaultyStore<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "wrong({})", self.inner)
    }
}

impl<F: Fault> Store for FaultyStore<F> {
    fn capabilities(&self) -> Capabilities {
        self.fault.capabilities(&*self.inner)
    }
    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.fault.define(&*self.inner, series)
    }
    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.fault.write(&*self.inner, batch, refused)
    }
    fn durable(&self, level: Durability) -> Position {
        self.inner.durable(level)
    }
    fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.fault.flush(&*self.inner, scope, level)
    }
    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        self.fault.query(&*self.inner, query, visit)
    }
    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.fault.newest(&*self.inner, series, into)
    }
    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.inner.newest_accepted(series, into)
    }
    fn stats(&self) -> Stats {
        self.fault.stats(&*self.inner)
    }
    fn close(&self) -> Result<()> {
        self.fault.close(&*self.inner)
    }
}
