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

use crate::activity::{Activity, ActivityKind};
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
    /// Makes each write take longer by this share of the time that the wrapped store took, in percent.
    /// A rate has no effect on a write that takes longer than its service; this has.
    pub slower_percent: Option<u64>,
    /// Nanoseconds from the start of one stall to the next.
    pub stall_every_ns: Option<u64>,
    /// Nanoseconds until the first stall; absent: `stall_every_ns`. Without `stall_every_ns` it is the
    /// only stall.
    pub stall_first_ns: Option<u64>,
    /// Length of a stall in nanoseconds. Must be less than `stall_every_ns`, and is valid only
    /// with it or with `stall_first_ns`.
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

/// A time in which a throttle has effect, in nanoseconds after its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThrottleWindow {
    /// Where it begins.
    pub from_ns: u64,
    /// Where it ends: no write is held back beyond it.
    pub end_ns: u64,
    /// The effect. Times in it count from `from_ns`.
    pub options: ThrottleOptions,
}

/// A store with stalls, a service rate and faults in front of it.
#[derive(Debug)]
pub struct Throttle<S> {
    inner: S,
    clock: Arc<dyn Clock>,
    // In time order, without overlaps.
    windows: Vec<Window>,
    // On the clock. `NEVER`: no window has begun.
    began_ns: AtomicU64,
    fault_log: Mutex<FaultLog>,
    activity: Activity,
}

/// The beginning of a throttle whose windows wait for [`Throttle::begin_in`].
const NEVER: u64 = u64::MAX;

/// The state of one window.
#[derive(Debug)]
struct Window {
    from_ns: u64,
    end_ns: u64,
    // Its times count from the window's beginning.
    queue: Mutex<ServiceQueue>,
    slower_percent: Option<u64>,
    plan: FaultPlan,
    // Number of samples so far: a sample's number decides whether it gets a fault.
    arrivals: AtomicU64,
    // Number of answers with rows so far, likewise.
    answers: AtomicU64,
}

impl Window {
    fn new(window: &ThrottleWindow) -> std::result::Result<Self, &'static str> {
        Ok(Self {
            from_ns: window.from_ns,
            end_ns: window.end_ns,
            queue: Mutex::new(ServiceQueue::new(&window.options, 0)?),
            slower_percent: window.options.slower_percent,
            plan: FaultPlan::new(&window.options)?,
            arrivals: AtomicU64::new(0),
            answers: AtomicU64::new(0),
        })
    }

    /// When a write of `samples` samples that arrives at `now_ns` starts and ends, all of it after
    /// the throttle's beginning. A window holds nothing back beyond its end.
    fn admit(&self, now_ns: u64, samples: u64) -> (u64, u64) {
        let service = lock(&self.queue).admit(now_ns - self.from_ns, samples);
        let within = |ns: u64| self.from_ns.saturating_add(ns).min(self.end_ns);
        (within(service.start), within(service.end))
    }

    /// How much longer a write takes that took `took_ns`.
    fn extra_ns(&self, took_ns: u64) -> u64 {
        let percent = self.slower_percent.unwrap_or(0);
        u64::try_from(u128::from(took_ns) * u128::from(percent) / 100).unwrap_or(u64::MAX)
    }
}

impl<S: Store> Throttle<S> {
    /// A throttle in front of `inner`; `clock` is its time.
    ///
    /// # Errors
    /// [`Error::Spec`] for a rate or a one-in of zero, and for stalls that do not end.
    pub fn new(inner: S, options: ThrottleOptions, clock: Arc<dyn Clock>) -> Result<Self> {
        let always = ThrottleWindow {
            from_ns: 0,
            end_ns: u64::MAX,
            options,
        };
        let throttle = Self::in_windows(inner, &[always], clock)?;
        throttle.begin_in(0);
        Ok(throttle)
    }

    /// A throttle that has effect in `windows` only. They wait for [`Self::begin_in`]; until then,
    /// and between them, it passes everything on.
    ///
    /// # Errors
    /// As [`Self::new`], and for windows that are empty, overlap, or are not in time order.
    pub fn in_windows(inner: S, windows: &[ThrottleWindow], clock: Arc<dyn Clock>) -> Result<Self> {
        let invalid = |what: &str| Error::Spec {
            spec: "throttle+".to_owned(),
            what: what.to_owned(),
        };
        let mut end_ns = 0;
        for window in windows {
            if window.from_ns < end_ns || window.end_ns <= window.from_ns {
                return Err(invalid("windows must follow each other, and none may be empty"));
            }
            end_ns = window.end_ns;
        }
        let windows = windows.iter().map(Window::new).collect::<std::result::Result<_, _>>();
        Ok(Self {
            inner,
            clock,
            windows: windows.map_err(invalid)?,
            began_ns: AtomicU64::new(NEVER),
            fault_log: Mutex::new(FaultLog::default()),
            activity: Activity::new(),
        })
    }

    /// The windows begin `delay_ns` from now.
    pub fn begin_in(&self, delay_ns: u64) {
        let begin_ns = self.clock.now().saturating_add(delay_ns);
        self.began_ns.store(begin_ns, Ordering::Release);
    }

    /// The window in which a call arrives now, with the beginning of the throttle and how long ago
    /// that was; `None` outside of all.
    fn window(&self) -> Option<(&Window, u64, u64)> {
        let began_ns = self.began_ns.load(Ordering::Acquire);
        let since_ns = self.clock.now().checked_sub(began_ns)?;
        let after = self.windows.partition_point(|window| window.end_ns <= since_ns);
        let window = self.windows.get(after).filter(|window| window.from_ns <= since_ns)?;
        Some((window, began_ns, since_ns))
    }

    /// Waits until `until_ns` of the clock.
    fn hold_back(&self, until_ns: u64) {
        if self.clock.now() < until_ns {
            let _under_way = self.activity.begin(ActivityKind::HoldBack);
            self.clock.wait_until(until_ns);
        }
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

    /// As [`Self::pass`], and longer by a share of the time that it took.
    fn pass_slowly(&self, window: &Window, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        let began = self.clock.now();
        let result = self.pass(window, batch, refused);
        let ended = self.clock.now();
        self.hold_back(ended.saturating_add(window.extra_ns(ended - began)));
        result
    }

    /// Writes a batch with the faults of a window, without delays.
    fn pass(&self, window: &Window, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        let first = window.arrivals.fetch_add(batch.len() as u64, Ordering::Relaxed);
        let hits = window.plan.hits(first, batch.len());
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
        if self.windows.iter().any(|window| window.plan.has_faults()) {
            lock(&self.fault_log).define(series.iter().map(|(id, _)| *id));
        }
        Ok(())
    }

    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        let Some((window, began_ns, since_ns)) = self.window() else {
            return self.inner.write(batch, refused);
        };
        let (start_ns, end_ns) = window.admit(since_ns, batch.len() as u64);
        self.hold_back(began_ns.saturating_add(start_ns));
        let result = if window.slower_percent.is_some() {
            self.pass_slowly(window, batch, refused)
        } else {
            self.pass(window, batch, refused)
        };
        self.hold_back(began_ns.saturating_add(end_ns));
        result
    }

    fn durable(&self, level: Durability) -> Position {
        self.inner.durable(level)
    }

    fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        if let Some((window, began_ns, since_ns)) = self.window() {
            let (start_ns, _) = window.admit(since_ns, 0);
            self.hold_back(began_ns.saturating_add(start_ns));
        }
        self.inner.flush(scope, level)
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        let window = self.window().map(|(window, ..)| window);
        let Some(window) = window.filter(|window| window.plan.answers_wrong()) else {
            return self.answer(query, visit);
        };
        let (mut is_first, mut altered) = (true, Vec::new());
        self.answer(query, &mut |id, times, values| {
            let is_hit = is_first && window.plan.is_wrong(window.answers.fetch_add(1, Ordering::Relaxed));
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
            activity: [vec![self.activity.clone()], inner.activity].concat(),
            ..inner
        }
    }

    fn close(&self) -> Result<()> {
        self.inner.close()
    }
}

#[cfg(test)]
mod tests;
