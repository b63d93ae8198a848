//! What a worker has found out so far: counts, times, and operations to name.

use std::ops::Range;
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::Outcome;
use super::cpu::Phases;
use super::exceptions::ExceptionList;
use super::live::LiveWorker;
use super::report::{Counts, Ended, ExceptionKind, Latency, Tally, WorkerReport};
use super::settings::Run;
use crate::breakdown::{Breakdown, Parts};
use crate::latency::Recorder;
use crate::schedule::{Frontier, Planned, Slot};
use crate::time::Clock;

/// What a worker has found out; survives a panic of its source or target.
pub(super) struct WorkerState {
    counts: Counts,
    response: Recorder,
    service: Recorder,
    lag: Recorder,
    own_lag: Recorder,
    breakdown: Breakdown,
    done_samples: u64,
    started_samples: u64,
    /// Taken from the agenda, not yet handed to the target.
    pub(super) pending: Option<Planned>,
    /// Handed to the target, which has not returned.
    pub(super) in_flight: Option<(Slot, u64)>,
    pub(super) issued: Option<Frontier>,
    /// Operations taken from the agenda and issued, the empty ones too.
    pub(super) issued_operations: u64,
    /// Samples of those that were shed or are unknown.
    excepted: u64,
    due: Option<Frontier>,
    exceptions: ExceptionList,
    pub(super) phases: Phases,
    pub(super) busy_ns: u64,
    /// When the target last returned, on the run's clock.
    pub(super) end_ns: u64,
    /// When the newest operation was due, on the run's clock.
    pub(super) last_due_ns: u64,
    /// Our own lateness since the worker last was on time.
    pub(super) own_ns: u64,
    warm_from_ns: u64,
    sent_share: f64,
    /// Samples of operations that were never prepared, before they are rounded.
    never_sent: f64,
}

impl WorkerState {
    pub(super) fn new(run: &Run<'_>, start_ns: u64, groups: &Range<u32>) -> Self {
        let settings = &run.settings;
        let planned_ns = run.timetable.end_ns.unwrap_or(0).saturating_add(settings.grace_ns);
        let recorder = || Recorder::new(start_ns, settings.interval_ns, planned_ns);
        Self {
            counts: Counts::default(),
            response: recorder(),
            service: recorder(),
            lag: recorder(),
            own_lag: recorder(),
            breakdown: Breakdown::new(),
            done_samples: 0,
            started_samples: 0,
            pending: None,
            in_flight: None,
            issued: None,
            issued_operations: 0,
            excepted: 0,
            due: None,
            exceptions: ExceptionList::new(groups, settings.exceptions_max),
            phases: Phases::new(run.clock),
            busy_ns: 0,
            end_ns: start_ns,
            last_due_ns: start_ns,
            own_ns: 0,
            warm_from_ns: start_ns.saturating_add(settings.warmup_ns),
            sent_share: settings.sent_share,
            never_sent: 0.0,
        }
    }

    /// The target panicked: nobody knows what it did with the operation it had.
    pub(super) fn lost_in_panic(&mut self) {
        if let Some((slot, samples)) = self.in_flight.take() {
            self.counts.due.add(samples);
            self.counts.unknown.add(samples);
            self.excepted += samples;
            self.exceptions.add(slot, ExceptionKind::Unknown);
        }
    }

    /// Counts operations that were due and are never sent, of `samples` samples each by the
    /// roster. They are in no latency but the worker's own lag: a worker that stood still until the
    /// end is why they were not sent.
    pub(super) fn never_sent(&mut self, operations: u64, samples: u64) {
        let samples = operations.saturating_mul(samples);
        let before = self.never_sent.round();
        self.never_sent += samples as f64 * self.sent_share;
        let unsent = Tally {
            operations,
            samples: if self.sent_share == 1.0 {
                samples
            } else {
                (self.never_sent.round() - before) as u64
            },
        };
        self.counts.due.merge(unsent);
        self.counts.shed.merge(unsent);
        self.own_lag.record_n(self.own_ns, operations);
    }

    /// Everything up to here was due, the last of it at `due_ns`.
    pub(super) fn due_through(&mut self, frontier: Frontier, due_ns: u64) {
        self.due = Some(frontier);
        self.last_due_ns = self.last_due_ns.max(due_ns);
    }

    /// Ends one operation that reached the target.
    #[inline]
    pub(super) fn done(
        &mut self,
        live: &LiveWorker,
        slot: Slot,
        samples: u64,
        outcome: Outcome,
        times: OperationTimes,
    ) {
        self.in_flight = None;
        self.end_interval(live, times.done);
        self.account(slot, samples, outcome, times);
        self.publish(live, times.begun.saturating_sub(times.due.unwrap_or(times.begun)));
    }

    /// Accounts for one operation that reached the target.
    #[inline]
    pub(super) fn account(&mut self, slot: Slot, samples: u64, outcome: Outcome, times: OperationTimes) {
        let OperationTimes {
            due: due_ns,
            late: late_ns,
            begun: begun_ns,
            done: done_ns,
        } = times;
        let lag_ns = due_ns.map(|due| begun_ns.saturating_sub(due));
        let service_ns = done_ns.saturating_sub(begun_ns);
        self.busy_ns += service_ns;
        self.counts.due.add(samples);
        self.last_due_ns = self.last_due_ns.max(due_ns.unwrap_or(begun_ns));
        let is_warm = due_ns.unwrap_or(begun_ns) >= self.warm_from_ns;
        if is_warm && let Some(lag_ns) = lag_ns {
            self.lag.record(lag_ns);
            self.own_lag.record(late_ns);
            self.started_samples += samples;
        }
        match outcome {
            Outcome::Done { accepted, rejected } => {
                self.counts.done.add(samples);
                self.counts.accepted += u64::from(accepted);
                self.counts.rejected += u64::from(rejected);
                if is_warm && accepted > 0 {
                    self.service.record(service_ns);
                    let lag_ns = lag_ns.unwrap_or(0);
                    self.response.record(service_ns + lag_ns);
                    let mut parts = Parts::of_lag(lag_ns, late_ns);
                    parts.store_ns = service_ns;
                    self.breakdown.record(slot, due_ns.unwrap_or(begun_ns), &parts);
                    self.done_samples += samples;
                }
            }
            Outcome::Sent => self.counts.handed_over.add(samples),
            Outcome::Shed => {
                self.counts.shed.add(samples);
                self.excepted += samples;
                self.exceptions.add(slot, ExceptionKind::Shed);
            }
            Outcome::Unknown | Outcome::Fatal => {
                self.counts.unknown.add(samples);
                self.excepted += samples;
                self.exceptions.add(slot, ExceptionKind::Unknown);
            }
        }
    }

    #[inline]
    pub(super) fn publish(&self, live: &LiveWorker, lag_ns: u64) {
        let sent = self.counts.sent();
        live.operations.store(sent.operations, Relaxed);
        live.samples.store(sent.samples, Relaxed);
        live.accepted.store(self.counts.accepted, Relaxed);
        live.rejected.store(self.counts.rejected, Relaxed);
        live.shed.store(self.counts.shed.samples, Relaxed);
        live.unknown.store(self.counts.unknown.samples, Relaxed);
        live.lag_ns.store(lag_ns, Relaxed);
        live.fleet_ns
            .store(self.issued.map_or(0, |slot| slot.offset_ns), Relaxed);
        live.excepted.store(self.excepted, Relaxed);
        // Last, so that a reader of this finds the counts of at least these operations.
        live.issued.store(self.issued_operations, Release);
    }

    /// Ends the running interval, if it is over: before what was done after it is recorded.
    #[inline]
    pub(super) fn end_interval(&mut self, live: &LiveWorker, now_ns: u64) {
        if self.lag.is_over(now_ns) {
            self.cut(live, now_ns);
        }
    }

    #[cold]
    fn cut(&mut self, live: &LiveWorker, now_ns: u64) {
        let interval = self.response.current();
        live.interval_p50_ns.store(interval.quantile(0.5).unwrap_or(0), Relaxed);
        live.interval_p99_ns
            .store(interval.quantile(0.99).unwrap_or(0), Relaxed);
        live.interval_max_ns.store(interval.max().unwrap_or(0), Relaxed);
        live.response.add(interval);
        live.service.add(self.service.current());
        live.lag.add(self.lag.current());
        for recorder in [&mut self.response, &mut self.service, &mut self.lag, &mut self.own_lag] {
            recorder.cut(now_ns);
        }
    }

    pub(super) fn finish<S, T>(
        self,
        groups: Range<u32>,
        ended: Ended,
        clock: &dyn Clock,
        source: S,
        target: T,
    ) -> (WorkerReport<S, T>, Latency) {
        let latency = Latency {
            response: self.response.finish(),
            service: self.service.finish(),
            lag: self.lag.finish(),
            own_lag: self.own_lag.finish(),
            breakdown: self.breakdown,
            done_samples: self.done_samples,
            started_samples: self.started_samples,
        };
        let (exceptions, exceptions_dropped) = self.exceptions.finish();
        let report = WorkerReport {
            groups,
            ended,
            counts: self.counts,
            issued: self.issued,
            due: self.due.max(self.issued),
            exceptions,
            exceptions_dropped,
            cpu: self.phases.finish(clock),
            busy_ns: self.busy_ns,
            source,
            target,
        };
        (report, latency)
    }
}

/// When an operation was due, begun and done, and how late it was, in nanoseconds of the run's clock.
#[derive(Clone, Copy)]
pub(super) struct OperationTimes {
    /// `None` in a closed loop.
    pub(super) due: Option<u64>,
    /// How much of the time from due to begun the emitter itself was late.
    pub(super) late: u64,
    pub(super) begun: u64,
    pub(super) done: u64,
}
