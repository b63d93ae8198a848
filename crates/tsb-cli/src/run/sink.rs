//! Applies what a connection brings to a store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tsb_core::net::{IntakeSink, Registry};
use tsb_core::time::{Clock, thread_cpu_ns};
use tsb_core::wire::{Fatal, Malformed, Sink};
use tsb_core::{Batch, SeriesId, SeriesKey};
use tsb_stores::{Error, Refusals, Store};

use super::rejects::Rejects;

/// The store's CPU is taken around one batch in so many: the thread clock costs 0.4 us.
const CPU_SAMPLED_ONE_IN: u64 = 32;

/// What all sinks of a run came to. Updated once a read, not once a batch.
#[derive(Debug, Default)]
pub struct SinkTotals {
    /// Samples accepted by the store.
    pub accepted: AtomicU64,
    /// Samples refused by the store.
    pub rejected: AtomicU64,
    /// Thread CPU inside the store, over the batches that were timed.
    pub timed_cpu_ns: AtomicU64,
    /// Samples of those batches.
    pub timed_samples: AtomicU64,
    /// When samples were last applied, on the run's clock.
    pub last_ns: AtomicU64,
    /// The store's first failure.
    failure: std::sync::Mutex<Option<Arc<Error>>>,
}

impl SinkTotals {
    /// CPU inside the store, in nanoseconds a sample, as far as it was sampled.
    pub fn store_cpu_ns_per_sample(&self) -> Option<f64> {
        let samples = self.timed_samples.load(Ordering::Relaxed);
        (samples > 0).then(|| self.timed_cpu_ns.load(Ordering::Relaxed) as f64 / samples as f64)
    }

    /// The store's first failure.
    pub fn failure(&self) -> Option<Arc<Error>> {
        self.failure
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
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
    batches: u64,
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
            totals,
            refused: Refusals::new(),
            batches: 0,
            accepted: 0,
            rejected: 0,
        }
    }

    /// Writes one batch; `None` when the store failed.
    pub fn write(&mut self, batch: &Batch<'_>) -> Option<(usize, usize)> {
        let is_timed = self.batches.is_multiple_of(CPU_SAMPLED_ONE_IN);
        self.batches += 1;
        let before = if is_timed { thread_cpu_ns() } else { 0 };
        let written = self.store.write(batch, &mut self.refused);
        if is_timed {
            self.totals
                .timed_cpu_ns
                .fetch_add(thread_cpu_ns() - before, Ordering::Relaxed);
            self.totals
                .timed_samples
                .fetch_add(batch.len() as u64, Ordering::Relaxed);
        }
        if !self.refused.is_empty() {
            self.rejects.add(batch, self.refused.as_slice());
            self.refused.clear();
        }
        match written {
            Ok(ack) => {
                self.accepted += ack.accepted as u64;
                self.rejected += ack.rejected as u64;
                Some((ack.accepted, ack.rejected))
            }
            Err(error) => {
                self.totals.fail(error);
                None
            }
        }
    }

    /// Adds what was counted since the last call to the totals.
    pub fn publish(&mut self) {
        if self.accepted > 0 {
            self.totals
                .accepted
                .fetch_add(std::mem::take(&mut self.accepted), Ordering::Relaxed);
        }
        if self.rejected > 0 {
            self.totals
                .rejected
                .fetch_add(std::mem::take(&mut self.rejected), Ordering::Relaxed);
        }
    }
}

/// The sink of one connection.
#[derive(Debug)]
pub struct StoreSink {
    writer: Writer,
    registry: Arc<Registry>,
    clock: Option<Arc<dyn Clock>>,
    has_failed: bool,
}

impl StoreSink {
    /// A sink that writes with `writer` and names series by `registry`.
    pub fn new(writer: Writer, registry: Arc<Registry>) -> Self {
        Self {
            writer,
            registry,
            clock: None,
            has_failed: false,
        }
    }

    /// Also notes when samples were last applied.
    #[must_use]
    pub fn with_clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.clock = Some(clock);
        self
    }
}

impl Sink for StoreSink {
    fn series(&mut self, key: &SeriesKey) -> Option<SeriesId> {
        self.registry.resolve(key)
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        self.has_failed |= self.writer.write(batch).is_none();
    }

    // The listener counts these two.
    fn refused(&mut self, _samples: usize) {}

    fn malformed(&mut self, _problem: &Malformed<'_>) {}
}

impl IntakeSink for StoreSink {
    fn apply(&mut self, _consumed: u64) -> Result<(), Fatal> {
        self.writer.publish();
        if let Some(clock) = &self.clock {
            self.writer.totals.last_ns.fetch_max(clock.now(), Ordering::Relaxed);
        }
        if self.has_failed {
            return Err(Fatal {
                what: "the store failed",
            });
        }
        Ok(())
    }
}
