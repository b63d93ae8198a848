//! A wrapper that slows down a store and injects faults, to test the measuring instrument.
//!
//! It adds a service rate, stalls, refusals, and data faults that a run must detect: samples
//! acknowledged and dropped, altered, or returned twice, and answers with a wrong value. Faults are
//! seeded and recorded
//! ([`Throttle::faults`]), so a test can compare them with a run's ledger to the sample. Only
//! writes and flushes are delayed; reads show the faults.
//!
//! It is *not* a rate limiter for the generator: pacing is done by the schedule in `tsb-core`.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tsb_core::time::Clock;
use tsb_core::{Batch, BatchBuf, Durability, SeriesId, SeriesKey, Timestamp};

use crate::error::{Error, Result};
use crate::locks::lock;
use crate::resample::Resampler;
use crate::store::{Ack, Capabilities, Position, Query, Reason, Refusals, Scope, Stats, Store, Visitor};

mod faults;
mod service_queue;

use faults::{FaultKind, FaultLog, FaultPlan, twice};
pub use faults::{FaultSample, Faults, MAX_FAULTS};
use service_queue::ServiceQueue;

/// The options of a [`Throttle`]. The default changes nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThrottleOptions {
    /// Service rate in samples per second: writes queue for their turn.
    pub rate_per_second: Option<u64>,
    /// Nanoseconds from the start of one stall to the next; the first begins after this time.
    pub stall_every_ns: Option<u64>,
    /// Length of a stall in nanoseconds. Must be less than `stall_every_ns`, and is valid only
    /// with it.
    pub stall_for_ns: Option<u64>,
    /// Refuses one in this many samples with [`Reason::Injected`].
    pub error_one_in: Option<u64>,
    /// Acknowledges and drops one in this many samples.
    pub lose_one_in: Option<u64>,
    /// Alters the value of one in this many samples.
    pub alter_one_in: Option<u64>,
    /// Returns one in this many samples twice.
    pub duplicate_one_in: Option<u64>,
    /// Alters a value in one in this many answers that have rows.
    pub wrong_one_in: Option<u64>,
    /// Selects the samples and answers that get faults.
    pub seed: u64,
}

/// A store with stalls, a service rate and faults in front of it.
#[derive(Debug)]
pub struct Throttle<S> {
    inner: S,
    clock: Arc<dyn Clock>,
    queue: Mutex<ServiceQueue>,
    plan: FaultPlan,
    // Number of samples so far: a sample's number decides whether it gets a fault.
    arrivals: AtomicU64,
    // Number of answers with rows so far, likewise.
    answers: AtomicU64,
    fault_log: Mutex<FaultLog>,
}

impl<S: Store> Throttle<S> {
    /// A throttle in front of `inner`; `clock` is its time.
    ///
    /// # Errors
    /// [`Error::Spec`] for a rate or a one-in of zero, and for stalls that do not end.
    pub fn new(inner: S, options: ThrottleOptions, clock: Arc<dyn Clock>) -> Result<Self> {
        let invalid = |what: &str| Error::Spec {
            spec: "throttle+".to_owned(),
            what: what.to_owned(),
        };
        let queue = ServiceQueue::new(&options, clock.now()).map_err(invalid)?;
        let plan = FaultPlan::new(&options).map_err(invalid)?;
        Ok(Self {
            inner,
            clock,
            queue: Mutex::new(queue),
            plan,
            arrivals: AtomicU64::new(0),
            answers: AtomicU64::new(0),
            fault_log: Mutex::new(FaultLog::default()),
        })
    }

    /// The exact record of all faults so far.
    pub fn faults(&self) -> Faults {
        lock(&self.fault_log).faults.clone()
    }

    /// The wrapped store.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    /// Answers a query, with the samples that are returned twice.
    fn answer(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        let copies = lock(&self.fault_log).copies_of(query.series);
        if copies.is_empty() {
            return self.inner.query(query, visit);
        }
        let Some(resample) = query.resample else {
            return self.inner.query(query, &mut |id, times, values| match copies.get(&id) {
                None => visit(id, times, values),
                Some(copies) => {
                    let (times, values) = twice(copies, times, values);
                    visit(id, &times, &values)
                }
            });
        };
        if !self.inner.capabilities().resample {
            return self.inner.query(query, visit);
        }
        for id in query.series {
            let one = Query {
                series: std::slice::from_ref(id),
                ..*query
            };
            let mut flow = ControlFlow::Continue(());
            if let Some(copies) = copies.get(id) {
                let mut resampler = Resampler::new(resample);
                let raw = Query { resample: None, ..one };
                self.inner.query(&raw, &mut |_, times, values| {
                    let (times, values) = twice(copies, times, values);
                    times
                        .iter()
                        .zip(&values)
                        .for_each(|(&at, &value)| resampler.push(at, value));
                    ControlFlow::Continue(())
                })?;
                let (times, values) = resampler.finish();
                if !times.is_empty() {
                    flow = visit(*id, &times, &values);
                }
            } else {
                self.inner.query(&one, &mut |id, times, values| {
                    flow = visit(id, times, values);
                    flow
                })?;
            }
            if flow.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// Writes a batch with its faults, without delays.
    fn pass(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        let first = self.arrivals.fetch_add(batch.len() as u64, Ordering::Relaxed);
        let hits = self.plan.hits(first, batch.len());
        if hits.is_empty() {
            return self.inner.write(batch, refused);
        }
        // If the only sample of an unknown series is dropped, the inner store cannot report the
        // series: check it here.
        lock(&self.fault_log).check_defined(hits.iter().map(|&(index, _)| batch.id(index)))?;
        let faulty = FaultyBatch::new(batch, &hits);
        let mut inner_refused = Refusals::new();
        let mut ack = self.inner.write(&faulty.samples.as_batch(), &mut inner_refused)?;
        // The original index of each refused sample, ascending.
        let inner_refused = inner_refused.as_slice().iter();
        let mut original: Vec<(usize, Reason)> = inner_refused
            .filter_map(|refusal| Some((*faulty.indices.get(refusal.index as usize)?, refusal.reason)))
            .collect();
        original.sort_unstable_by_key(|&(index, _)| index);
        let mut fault_log = lock(&self.fault_log);
        for &(index, fault) in &hits {
            let is_refused = original.binary_search_by_key(&index, |&(index, _)| index).is_ok();
            match fault {
                FaultKind::Error => ack.rejected += 1,
                FaultKind::Lose => ack.accepted += 1,
                FaultKind::Alter | FaultKind::Duplicate if is_refused => continue,
                FaultKind::Alter | FaultKind::Duplicate => {}
            }
            fault_log.record(fault, batch, index);
        }
        drop(fault_log);
        let injected = hits.iter().filter(|(_, fault)| *fault == FaultKind::Error);
        let injected = injected.map(|&(index, _)| (index, Reason::Injected));
        for (index, reason) in original.into_iter().chain(injected) {
            refused.push(index, reason);
        }
        Ok(ack)
    }
}

/// A batch after its faults are applied, as the inner store gets it.
struct FaultyBatch {
    samples: BatchBuf,
    // The original index of each sample that is passed on.
    indices: Vec<usize>,
}

impl FaultyBatch {
    fn new(batch: &Batch<'_>, hits: &[(usize, FaultKind)]) -> Self {
        let mut samples = BatchBuf::with_capacity(batch.len());
        let mut indices = Vec::with_capacity(batch.len());
        let mut hits = hits.iter().peekable();
        for (index, (id, at, value)) in batch.iter().enumerate() {
            let fault = hits.next_if(|(hit, _)| *hit == index).map(|&(_, fault)| fault);
            let value = match fault {
                Some(FaultKind::Error | FaultKind::Lose) => continue,
                Some(FaultKind::Alter) => faults::altered(value),
                Some(FaultKind::Duplicate) | None => value,
            };
            samples.push(id, at, value);
            indices.push(index);
        }
        Self { samples, indices }
    }
}

impl<S: Store> fmt::Display for Throttle<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "throttle({})", self.inner)
    }
}

impl<S: Store> Store for Throttle<S> {
    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.inner.define(series)?;
        if self.plan.has_faults() {
            lock(&self.fault_log).define(series.iter().map(|(id, _)| *id));
        }
        Ok(())
    }

    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        let service = lock(&self.queue).admit(self.clock.now(), batch.len() as u64);
        self.clock.wait_until(service.start);
        let result = self.pass(batch, refused);
        self.clock.wait_until(service.end);
        result
    }

    fn durable(&self, level: Durability) -> Position {
        self.inner.durable(level)
    }

    fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        let service = lock(&self.queue).admit(self.clock.now(), 0);
        self.clock.wait_until(service.start);
        self.inner.flush(scope, level)
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        if !self.plan.answers_wrong() {
            return self.answer(query, visit);
        }
        let (mut is_first, mut altered) = (true, Vec::new());
        self.answer(query, &mut |id, times, values| {
            let is_hit = is_first && self.plan.is_wrong(self.answers.fetch_add(1, Ordering::Relaxed));
            is_first = false;
            let (true, Some((&at, &value))) = (is_hit, times.last().zip(values.last())) else {
                return visit(id, times, values);
            };
            altered.clear();
            altered.extend_from_slice(values);
            if let Some(last) = altered.last_mut() {
                *last = faults::altered(value);
            }
            lock(&self.fault_log)
                .faults
                .wrong
                .push(FaultSample { series: id, at, value });
            visit(id, times, &altered)
        })
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.inner.newest(series, into)
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.inner.newest_accepted(series, into)
    }

    fn stats(&self) -> Stats {
        let inner = self.inner.stats();
        let fault_log = lock(&self.fault_log);
        Stats {
            accepted: inner.accepted + fault_log.faults.lost.len() as u64,
            samples: inner.samples + fault_log.faults.duplicated.len() as u64,
            ..inner
        }
    }

    fn close(&self) -> Result<()> {
        self.inner.close()
    }
}

#[cfg(test)]
mod tests;
