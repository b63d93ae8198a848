//! The loop of one worker: prepare, wait, send, record.

use std::ops::Range;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::cpu::{CpuSampler, Sampled};
use super::live::LiveWorker;
use super::report::{Counts, Ended, Exception, ExceptionKind, Latency, WorkerReport};
use super::run::Run;
use super::{Operation, Outcome, Source, Target};
use crate::latency::Recorder;
use crate::schedule::{Agenda, Frontier, Planned, Slot};

/// The longest wait without a look at the stop flag.
const SLICE_NS: u64 = 50_000_000;
/// How long before the due time the CPU clock is read, where it is.
const AHEAD_NS: u64 = 2_000;

/// What a worker shares with others, or only reads.
pub(super) struct Parts<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) start_ns: u64,
    pub(super) abort: &'a AtomicBool,
    pub(super) live: &'a LiveWorker,
}

/// What a worker has found out; survives a panic of its source or target.
pub(super) struct State {
    counts: Counts,
    response: Recorder,
    service: Recorder,
    lag: Recorder,
    own_lag: Recorder,
    done_samples: u64,
    started_samples: u64,
    // Taken from the agenda, not yet handed to the target.
    pending: Option<Planned>,
    // Handed to the target, which has not returned.
    in_flight: Option<(Slot, u64)>,
    issued: Option<Frontier>,
    due: Option<Frontier>,
    exceptions: Vec<Exception>,
    exceptions_max: usize,
    exceptions_dropped: u64,
    cpu: CpuSampler,
    busy_ns: u64,
    // When the target last returned, on the run's clock.
    pub(super) end_ns: u64,
    // Our own lateness since the worker last was on time.
    own_ns: u64,
    warm_from_ns: u64,
}

impl State {
    pub(super) fn new(run: &Run<'_>, start_ns: u64) -> Self {
        let settings = &run.settings;
        let planned_ns = run.timetable.end_ns.unwrap_or(0).saturating_add(settings.grace_ns);
        let recorder = || Recorder::new(start_ns, settings.interval_ns, planned_ns);
        Self {
            counts: Counts::default(),
            response: recorder(),
            service: recorder(),
            lag: recorder(),
            own_lag: recorder(),
            done_samples: 0,
            started_samples: 0,
            pending: None,
            in_flight: None,
            issued: None,
            due: None,
            exceptions: Vec::with_capacity(settings.exceptions_max),
            exceptions_max: settings.exceptions_max,
            exceptions_dropped: 0,
            cpu: CpuSampler::new(),
            busy_ns: 0,
            end_ns: start_ns,
            own_ns: 0,
            warm_from_ns: start_ns.saturating_add(settings.warmup_ns),
        }
    }

    /// The target panicked: nobody knows what it did with the operation it had.
    pub(super) fn lost_in_panic(&mut self) {
        if let Some((slot, samples)) = self.in_flight.take() {
            self.counts.due.add(samples);
            self.counts.unknown.add(samples);
            self.except(slot, ExceptionKind::Unknown);
        }
    }

    fn except(&mut self, slot: Slot, kind: ExceptionKind) {
        if let Some(last) = self.exceptions.last_mut()
            && (last.group, last.kind, last.ticks.end) == (slot.group, kind, slot.tick)
        {
            last.ticks.end += 1;
        } else if self.exceptions.len() < self.exceptions_max {
            self.exceptions.push(Exception {
                group: slot.group,
                ticks: slot.tick..slot.tick + 1,
                kind,
            });
        } else {
            self.exceptions_dropped += 1;
        }
    }

    /// Accounts for one operation: `due_ns` is `None` in a closed loop.
    #[inline]
    fn account(&mut self, slot: Slot, samples: u64, outcome: Outcome, times: Times) {
        let Times {
            due: due_ns,
            begun: begun_ns,
            done: done_ns,
        } = times;
        let lag_ns = due_ns.map(|due| begun_ns.saturating_sub(due));
        let service_ns = done_ns.saturating_sub(begun_ns);
        self.busy_ns += service_ns;
        self.counts.due.add(samples);
        let is_warm = due_ns.unwrap_or(begun_ns) >= self.warm_from_ns;
        if is_warm && let Some(lag_ns) = lag_ns {
            self.lag.record(lag_ns);
            self.own_lag.record(self.own_ns.min(lag_ns));
            self.started_samples += samples;
        }
        match outcome {
            Outcome::Done { accepted, rejected } => {
                self.counts.done.add(samples);
                self.counts.accepted += u64::from(accepted);
                self.counts.rejected += u64::from(rejected);
                if is_warm && accepted > 0 {
                    self.service.record(service_ns);
                    self.response.record(service_ns + lag_ns.unwrap_or(0));
                    self.done_samples += samples;
                }
            }
            Outcome::Sent => self.counts.handed_over.add(samples),
            Outcome::Shed => {
                self.counts.shed.add(samples);
                self.except(slot, ExceptionKind::Shed);
            }
            Outcome::Unknown | Outcome::Fatal => {
                self.counts.unknown.add(samples);
                self.except(slot, ExceptionKind::Unknown);
            }
        }
    }

    #[inline]
    fn publish(&self, live: &LiveWorker, lag_ns: u64) {
        let sent = self.counts.sent();
        live.operations.store(sent.operations, Relaxed);
        live.samples.store(sent.samples, Relaxed);
        live.accepted.store(self.counts.accepted, Relaxed);
        live.rejected.store(self.counts.rejected, Relaxed);
        live.shed.store(self.counts.shed.samples, Relaxed);
        live.unknown.store(self.counts.unknown.samples, Relaxed);
        live.lag_ns.store(lag_ns, Relaxed);
    }

    #[cold]
    fn cut(&mut self, live: &LiveWorker, now_ns: u64) {
        let interval = self.response.current();
        live.interval_p50_ns.store(interval.quantile(0.5).unwrap_or(0), Relaxed);
        live.interval_p99_ns
            .store(interval.quantile(0.99).unwrap_or(0), Relaxed);
        live.interval_max_ns.store(interval.max().unwrap_or(0), Relaxed);
        for recorder in [&mut self.response, &mut self.service, &mut self.lag, &mut self.own_lag] {
            recorder.cut(now_ns);
        }
    }

    pub(super) fn finish<S, T>(
        self,
        groups: Range<u32>,
        ended: Ended,
        source: S,
        target: T,
    ) -> (WorkerReport<S, T>, Latency) {
        let latency = Latency {
            response: self.response.finish(),
            service: self.service.finish(),
            lag: self.lag.finish(),
            own_lag: self.own_lag.finish(),
            done_samples: self.done_samples,
            started_samples: self.started_samples,
        };
        let report = WorkerReport {
            groups,
            ended,
            counts: self.counts,
            issued: self.issued,
            due: self.due.max(self.issued),
            exceptions: self.exceptions,
            exceptions_dropped: self.exceptions_dropped,
            cpu: self.cpu.finish(),
            busy_ns: self.busy_ns,
            source,
            target,
        };
        (report, latency)
    }
}

/// When an operation was due, begun and done, in nanoseconds of the run's clock.
#[derive(Clone, Copy)]
struct Times {
    due: Option<u64>,
    begun: u64,
    done: u64,
}

impl Parts<'_> {
    #[inline]
    fn is_stopped(&self) -> Option<Ended> {
        if self.run.stop.load(Relaxed) {
            Some(Ended::Stopped)
        } else if self.abort.load(Relaxed) {
            Some(Ended::Aborted)
        } else {
            None
        }
    }

    /// Waits until `until`, with a look at the stop flags now and then.
    #[inline]
    fn wait(&self, until: u64) -> Option<Ended> {
        let clock = self.run.clock;
        loop {
            let slice_end = clock.now().saturating_add(SLICE_NS);
            if until <= slice_end {
                clock.wait_until(until);
                return None;
            }
            clock.wait_until(slice_end);
            if let Some(ended) = self.is_stopped() {
                return Some(ended);
            }
        }
    }

    /// Waits for an operation's due time, if there is one to wait for; of a sampled
    /// operation, with its CPU reading.
    #[inline]
    fn wait_for(&self, due_ns: Option<u64>, sampled: Option<&mut Sampled>) -> Option<Ended> {
        let (due_ns, sampled) = match (due_ns, sampled) {
            (None, None) => return None,
            (Some(due_ns), None) => return self.wait(due_ns),
            (due_ns, Some(sampled)) => (due_ns, sampled),
        };
        let ended = due_ns.and_then(|due| self.wait(due.saturating_sub(AHEAD_NS)));
        CpuSampler::about_to_send(sampled);
        if ended.is_none()
            && let Some(due) = due_ns
        {
            self.run.clock.wait_until(due);
        }
        ended
    }

    /// When nothing may be sent any more, on the run's clock.
    fn last_call_ns(&self) -> u64 {
        let timetable = self.run.timetable;
        let grace_ns = if timetable.pace.is_open_loop() {
            self.run.settings.grace_ns
        } else {
            0
        };
        let end_ns = timetable.end_ns.map(|end| self.start_ns.saturating_add(end));
        end_ns.map_or(u64::MAX, |end| end.saturating_add(grace_ns))
    }
}

/// Works through the agenda.
pub(super) fn drive<S: Source, T: Target>(
    parts: &Parts<'_>,
    agenda: &mut Agenda,
    source: &mut S,
    target: &mut T,
    state: &mut State,
) -> Ended {
    let clock = parts.run.clock;
    let last_call_ns = parts.last_call_ns();
    if let Some(ended) = parts.wait(parts.start_ns) {
        return ended;
    }
    let mut free_ns = parts.start_ns;
    let ended = loop {
        if let Some(ended) = parts.is_stopped() {
            break ended;
        }
        state.pending = agenda.next();
        let Some(Planned { slot, due_ns }) = state.pending else {
            break Ended::Planned;
        };
        let due_ns = due_ns.map(|due| parts.start_ns.saturating_add(due));
        let spare_ns = due_ns.map_or(0, |due| due.saturating_sub(free_ns));
        if spare_ns > 0 {
            state.own_ns = 0;
            target.idle();
            let idle_from_ns = free_ns;
            free_ns = clock.now();
            state.busy_ns += free_ns.saturating_sub(idle_from_ns);
        }
        let mut sampled = state.cpu.begin(spare_ns, &slot);
        let batch = source.prepare(&slot);
        if let Some(sampled) = &mut sampled {
            state.cpu.prepared(sampled);
        }
        let wait_until_ns = due_ns.filter(|_| spare_ns > 0);
        if let Some(ended) = parts.wait_for(wait_until_ns, sampled.as_mut()) {
            break ended;
        }
        let begun_ns = clock.now();
        if begun_ns >= last_call_ns {
            break Ended::Planned;
        }
        state.own_ns += begun_ns.saturating_sub(free_ns.max(due_ns.unwrap_or(free_ns)));
        let samples = batch.len() as u64;
        state.pending = None;
        state.issued = Some(slot.into());
        if samples == 0 {
            continue;
        }
        state.in_flight = Some((slot, samples));
        let due = due_ns.unwrap_or(begun_ns);
        let outcome = target.send(&Operation { batch, due });
        let done_ns = clock.now();
        state.in_flight = None;
        if let Some(sampled) = sampled {
            state.cpu.sent(sampled);
        }
        let times = Times {
            due: due_ns,
            begun: begun_ns,
            done: done_ns,
        };
        if state.lag.is_over(done_ns) {
            state.cut(parts.live, done_ns);
        }
        state.account(slot, samples, outcome, times);
        state.publish(parts.live, begun_ns.saturating_sub(due));
        (free_ns, state.end_ns) = (done_ns, done_ns);
        if outcome == Outcome::Fatal {
            break Ended::Fatal;
        }
    };
    if ended != Ended::Fatal {
        target.idle();
    }
    ended
}

/// Counts what was due by the end and never issued.
pub(super) fn settle(parts: &Parts<'_>, agenda: &mut Agenda, ended: &Ended, state: &mut State) {
    let timetable = parts.run.timetable;
    if timetable.pace.is_open_loop() {
        count_unsent(parts, agenda, ended, state);
    }
    state.publish(parts.live, 0);
}

fn count_unsent(parts: &Parts<'_>, agenda: &mut Agenda, ended: &Ended, state: &mut State) {
    let timetable = parts.run.timetable;
    let elapsed_ns = parts.run.clock.now().saturating_sub(parts.start_ns);
    let until_ns = if *ended == Ended::Planned { u64::MAX } else { elapsed_ns };
    let pending = state.pending.take();
    let left = pending.into_iter().chain(agenda);
    for planned in left.take_while(|planned| planned.due_ns.is_some_and(|due| due <= until_ns)) {
        let group = timetable.roster.groups().get(planned.slot.group as usize);
        let samples = group.map_or(0, |group| u64::from(group.samples));
        state.counts.due.add(samples);
        state.counts.shed.add(samples);
        state.due = Some(planned.slot.into());
    }
}
