//! Writes the samples that a connection receives into a store, and counts them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tsb_core::net::{IntakeSink, Registry};
use tsb_core::time::Clock;
use tsb_core::wire::{Fatal, Malformed, NotAdmitted, Sink};
use tsb_core::{Batch, SeriesId, SeriesKey};
use tsb_stores::{Error, Reason, Refusals, Store};

use super::calls::{Calls, WriterState};
use super::guarded_store::{caught, poisoned};
use super::loss_window::{LossWindow, WriterWaits};
use super::queries::WrittenTimes;
use super::rejects::Rejects;

/// What all sinks and in-process targets of a run have counted. The sink of a connection adds its counts
/// once per read, an in-process target every 256 operations, a client with each answer.
#[derive(Debug, Default)]
pub struct SinkTotals {
    /// Samples accepted by the store.
    pub accepted: AtomicU64,
    /// Samples refused by the store, or by a listener because the store's server was not reached.
    pub rejected: AtomicU64,
    /// Samples behind a listener of which a server never said what became of them.
    pub unsettled: AtomicU64,
    /// When samples were last accepted, in nanoseconds on the run's clock; 0 if the emitter's own threads
    /// call the store.
    pub last_ns: AtomicU64,
    /// Calls into the store that have not returned.
    pub calls: Arc<Calls>,
    /// The store's first failure.
    failure: std::sync::Mutex<Option<Arc<Error>>>,
    /// The first time that a server did not answer or was not reached.
    hindrance: std::sync::Mutex<Option<Arc<Error>>>,
}

impl SinkTotals {
    /// Nothing yet; open calls are tracked by `calls`.
    pub(super) fn with_calls(calls: &Arc<Calls>) -> Self {
        Self {
            calls: Arc::clone(calls),
            ..Self::default()
        }
    }

    /// Samples that the store has taken or refused by name.
    pub fn applied(&self) -> u64 {
        self.accepted.load(Ordering::Acquire) + self.rejected.load(Ordering::Acquire)
    }

    /// The store's first failure.
    pub fn failure(&self) -> Option<Arc<Error>> {
        self.failure
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    /// Why some operations have no outcome, the first time.
    pub fn hindrance(&self) -> Option<Arc<Error>> {
        let hindrance = self.hindrance.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        hindrance.clone()
    }

    /// Keeps the first reason why an operation has no outcome.
    pub fn hinder(&self, error: Error) {
        let mut hindrance = self.hindrance.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        hindrance.get_or_insert_with(|| Arc::new(error));
    }

    /// Keeps the first failure.
    pub fn fail(&self, error: Error) {
        let mut failure = self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        failure.get_or_insert_with(|| Arc::new(error));
    }
}

/// Writes batches and keeps count: shared by the in-process target and the sinks of
/// connections.
#[derive(Debug)]
pub struct Writer {
    store: Arc<dyn Store>,
    rejects: Arc<Rejects>,
    totals: Arc<SinkTotals>,
    refused: Refusals,
    waits: Option<WriterWaits>,
    writing: Arc<WriterState>,
    // Not yet added to the totals.
    accepted: u64,
    rejected: u64,
}

impl Writer {
    /// A writer to `store`.
    pub fn new(store: Arc<dyn Store>, rejects: Arc<Rejects>, totals: Arc<SinkTotals>) -> Self {
        Self {
            store,
            rejects,
            writing: totals.calls.writer(),
            totals,
            refused: Refusals::new(),
            waits: None,
            accepted: 0,
            rejected: 0,
        }
    }

    /// Also measures how long what was acknowledged waits for the store's highest level.
    #[must_use]
    pub fn with_window(mut self, window: Option<&Arc<LossWindow>>) -> Self {
        self.waits = window.map(|window| WriterWaits::new(Arc::clone(window)));
        self
    }

    /// Writes one batch: how many samples were accepted and rejected. `due_ns`: when it was
    /// due, on the run's clock, where the caller knows it.
    ///
    /// # Errors
    /// The store's own, as it is: who calls knows whether the run can go on.
    pub fn write(&mut self, batch: &Batch<'_>, due_ns: Option<u64>) -> tsb_stores::Result<(usize, usize)> {
        let _write = self.writing.begin();
        let waits = self.waits.as_mut().filter(|_| !batch.is_empty());
        let since_ns = waits.map(|waits| waits.begin(batch.time(0), due_ns));
        let written = self.store.write(batch, &mut self.refused);
        if !self.refused.is_empty() {
            self.rejects.add(batch, self.refused.as_slice());
            self.refused.clear();
        }
        let ack = written?;
        if let Some((waits, since_ns)) = self.waits.as_mut().zip(since_ns) {
            waits.end(&*self.store, ack.position, since_ns, ack.accepted as u64);
        }
        self.accepted += ack.accepted as u64;
        self.rejected += ack.rejected as u64;
        Ok((ack.accepted, ack.rejected))
    }

    /// Counts every sample of a batch as refused.
    fn refuse_all(&mut self, batch: &Batch<'_>, reason: Reason) {
        self.refused.clear();
        (0..batch.len()).for_each(|index| self.refused.push(index, reason));
        self.rejects.add(batch, self.refused.as_slice());
        self.refused.clear();
        self.rejected += batch.len() as u64;
    }

    /// Adds what was counted since the last call to the totals. Returns the samples that the store
    /// has accepted and refused since then.
    pub fn publish(&mut self) -> (u64, u64) {
        let accepted = std::mem::take(&mut self.accepted);
        if accepted > 0 {
            self.totals.accepted.fetch_add(accepted, Ordering::Release);
        }
        let rejected = std::mem::take(&mut self.rejected);
        if rejected > 0 {
            self.totals.rejected.fetch_add(rejected, Ordering::Release);
        }
        (accepted, rejected)
    }
}

/// The sink of one connection.
#[derive(Debug)]
pub struct StoreSink {
    writer: Writer,
    registry: Arc<Registry>,
    clock: Option<Arc<dyn Clock>>,
    written: Option<Arc<WrittenTimes>>,
    has_failed: bool,
}

impl StoreSink {
    /// A sink that writes with `writer` and names series by `registry`.
    pub fn new(writer: Writer, registry: Arc<Registry>) -> Self {
        Self {
            writer,
            registry,
            clock: None,
            written: None,
            has_failed: false,
        }
    }

    /// Also notes when the store last accepted samples.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Also notes how far each worker's samples have been written, for queries that ask for them.
    #[must_use]
    pub fn with_written(mut self, written: Option<Arc<WrittenTimes>>) -> Self {
        self.written = written;
        self
    }
}

impl Sink for StoreSink {
    fn series(&mut self, key: &SeriesKey) -> Result<SeriesId, NotAdmitted> {
        self.registry.resolve(key)
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        // The listener would close the connection, and nobody would hear why.
        let written = caught("write", || self.writer.write(batch, None)).unwrap_or_else(|said| Err(poisoned(&said)));
        match written {
            Ok(_) => {
                if let Some(written) = &self.written {
                    written.note(batch);
                }
            }
            // A server may come back: what comes later is tried again.
            Err(error @ (Error::Unknown { .. } | Error::Unanswered { .. })) => {
                let samples = batch.len() as u64;
                self.writer.totals.unsettled.fetch_add(samples, Ordering::Release);
                self.writer.totals.hinder(error);
            }
            Err(error @ Error::Unreachable { .. }) => {
                self.writer.refuse_all(batch, Reason::Unreachable);
                self.writer.totals.hinder(error);
            }
            Err(error) => {
                self.has_failed = true;
                self.writer.totals.fail(error);
            }
        }
    }

    // The listener counts these three.
    fn refused(&mut self, _why: NotAdmitted, _samples: usize) {}

    fn unannounced(&mut self, _samples: usize) {}

    fn malformed(&mut self, _problem: &Malformed<'_>) {}
}

impl IntakeSink for StoreSink {
    fn apply(&mut self, _consumed: u64) -> Result<u64, Fatal> {
        let (accepted, rejected) = self.writer.publish();
        // Bytes without samples, such as the messages that end a sender's stream, take no time of
        // the store.
        if let Some(clock) = self.clock.as_ref().filter(|_| accepted > 0) {
            self.writer.totals.last_ns.fetch_max(clock.now(), Ordering::Relaxed);
        }
        if self.has_failed {
            return Err(Fatal {
                what: "the store failed",
            });
        }
        Ok(rejected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::route;
    use tsb_core::Timestamp;
    use tsb_core::series::Catalog;
    use tsb_core::time::{ManualClock, SECOND_NS};
    use tsb_stores::memory::{MemoryOptions, MemoryStore};

    /// Datagrams end with messages that carry no samples; their time was counted in the rate held.
    #[test]
    fn the_last_acceptance_is_that_of_samples() {
        let store = MemoryStore::new(MemoryOptions::default());
        let mut catalog = Catalog::new();
        let id = catalog.intern(SeriesKey::new("cpu"));
        store.define(&[(id, SeriesKey::new("cpu"))]).unwrap();
        let totals = Arc::new(SinkTotals::default());
        let clock = Arc::new(ManualClock::new());
        let writer = Writer::new(Arc::new(store), Arc::new(Rejects::new()), Arc::clone(&totals));
        let shared: Arc<dyn Clock> = Arc::clone(&clock) as Arc<dyn Clock>;
        let mut sink = StoreSink::new(writer, route::only(catalog, 1)).with_clock(shared);

        clock.wait_until(SECOND_NS);
        sink.batch(&Batch::tick(id, Timestamp(SECOND_NS as i64), &[1.0]));
        sink.apply(100).unwrap();
        clock.wait_until(2 * SECOND_NS);
        sink.apply(16).unwrap();
        assert_eq!(totals.accepted.load(Ordering::Relaxed), 1);
        assert_eq!(totals.last_ns.load(Ordering::Relaxed), SECOND_NS);
    }
}
