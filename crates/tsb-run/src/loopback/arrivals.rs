//! Counts the samples that are applied, and wakes the thread that waits for them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

use tsb_core::net::{IntakeSink, Registry};
use tsb_core::time::thread_cpu_ns;
use tsb_core::wire::{Fatal, Malformed, NotAdmitted, Sink};
use tsb_core::{Batch, SeriesId, SeriesKey, Timestamp};
use tsb_stores::parts::lock;

use crate::run::StoreSink;

/// A sample that was kept: its value as bits.
type KeptSample = (SeriesId, Timestamp, u64);

/// What the ingest thread tells the thread that sends.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    applied: AtomicU64,
    /// The waiting thread is woken from this many on.
    goal: AtomicU64,
    /// Held by the waiting thread from setting its goal until it sleeps.
    gate: Mutex<()>,
    has_come: Condvar,
    /// CPU time of the ingest thread when it last applied something.
    ingest_cpu_ns: AtomicU64,
    kept: Option<Mutex<Vec<KeptSample>>>,
    broken: OnceLock<String>,
}

impl Arrivals {
    pub(super) fn new(is_kept: bool) -> Self {
        Self {
            goal: AtomicU64::new(u64::MAX),
            kept: is_kept.then(Mutex::default),
            ..Self::default()
        }
    }

    pub(super) fn applied(&self) -> u64 {
        self.applied.load(Ordering::SeqCst)
    }

    /// Waits for `goal` samples, the first that was not taken, or the end of `patience`; returns
    /// how many were applied by then.
    pub(super) fn wait(&self, goal: u64, patience: Duration) -> u64 {
        let gate = lock(&self.gate);
        self.goal.store(goal, Ordering::SeqCst);
        let is_missing = |(): &mut ()| self.applied() < goal && self.broken.get().is_none();
        drop(self.has_come.wait_timeout_while(gate, patience, is_missing));
        self.goal.store(u64::MAX, Ordering::SeqCst);
        self.applied()
    }

    pub(super) fn ingest_cpu_ns(&self) -> u64 {
        self.ingest_cpu_ns.load(Ordering::Acquire)
    }

    pub(super) fn kept(&self) -> Vec<KeptSample> {
        self.kept.as_ref().map_or_else(Vec::new, |kept| lock(kept).clone())
    }

    /// Why a sample was not taken, the first time.
    pub(super) fn broken(&self) -> Option<&str> {
        self.broken.get().map(String::as_str)
    }

    fn break_off(&self, why: impl FnOnce() -> String) {
        self.broken.get_or_init(why);
        self.wake();
    }

    /// A thread that has looked and not slept yet holds the gate, and would miss the call.
    fn wake(&self) {
        drop(lock(&self.gate));
        self.has_come.notify_one();
    }

    fn add(&self, samples: u64) {
        self.ingest_cpu_ns.store(thread_cpu_ns(), Ordering::Release);
        // In one order with the goal: either this sees the goal, or the waiting thread sees the
        // samples.
        let applied = self.applied.fetch_add(samples, Ordering::SeqCst) + samples;
        if applied >= self.goal.load(Ordering::SeqCst) {
            self.wake();
        }
    }
}

/// The sink of one connection.
#[derive(Debug)]
pub(super) struct ArrivalsSink {
    registry: Arc<Registry>,
    store: Option<StoreSink>,
    arrivals: Arc<Arrivals>,
    pending: u64,
}

impl ArrivalsSink {
    /// Without a `store`, samples are counted only.
    pub(super) fn new(registry: Arc<Registry>, store: Option<StoreSink>, arrivals: Arc<Arrivals>) -> Self {
        Self {
            registry,
            store,
            arrivals,
            pending: 0,
        }
    }
}

impl Sink for ArrivalsSink {
    fn series(&mut self, key: &SeriesKey) -> Result<SeriesId, NotAdmitted> {
        self.registry.resolve(key)
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        self.pending += batch.len() as u64;
        if let Some(kept) = &self.arrivals.kept {
            lock(kept).extend(batch.iter().map(|(id, at, value)| (id, at, value.to_bits())));
        }
        if let Some(store) = &mut self.store {
            store.batch(batch);
        }
    }

    fn refused(&mut self, why: NotAdmitted, samples: usize) {
        let why = || format!("{samples} samples were refused: {}", why.reason());
        self.arrivals.break_off(why);
    }

    fn unannounced(&mut self, samples: usize) {
        let why = || format!("{samples} samples were never announced");
        self.arrivals.break_off(why);
    }

    fn malformed(&mut self, problem: &Malformed<'_>) {
        self.arrivals.break_off(|| problem.what.to_owned());
    }
}

impl IntakeSink for ArrivalsSink {
    fn apply(&mut self, consumed: u64) -> Result<u64, Fatal> {
        if let Some(store) = &mut self.store {
            let rejected = store.apply(consumed).inspect_err(|fatal| {
                self.arrivals.break_off(|| fatal.what.to_owned());
            })?;
            if rejected > 0 {
                self.arrivals
                    .break_off(|| format!("the store refused {rejected} samples"));
            }
        }
        if self.arrivals.broken.get().is_some() {
            return Err(Fatal {
                what: "a sample was not taken",
            });
        }
        self.arrivals.add(std::mem::take(&mut self.pending));
        Ok(0)
    }
}
