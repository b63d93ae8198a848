//! Monitors a run: progress, staleness of every series, resources.
//!
//! A thread of its own polls ten times per second, and a store that answers slowly less often;
//! nothing here is on the emitting path.

mod asked;
mod events;
mod horizon;
mod noise;
mod sender;
mod servers;
mod stale;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tsb_core::Timestamp;
use tsb_core::breakdown::EventLog;
use tsb_core::emit::{Live, LiveTimes};
use tsb_core::latency::Cells;
use tsb_core::net::Timing;
use tsb_core::report::Interval;
use tsb_core::resource::{Noise, Usage};
use tsb_core::staleness::Staleness;
use tsb_core::time::{SECOND_NS, thread_cpu_ns};
use tsb_stores::{Activity, Store};

use super::interval_recorder::{IntervalRecorder, SampleCounters};
use super::path::{Watch, accepted};
use super::run_context::RunContext;
use super::sink::SinkTotals;
use crate::audit::NewestAnswers;
use crate::controls::Controls;
use crate::observer::{IntervalLatencies, Progress};
use crate::units;
use asked::Asked;
use noise::NoiseMonitor;
pub use sender::{Observations, progress};
use stale::{NewestPoll, StalenessPolls};

/// Interval between two polls for the newest samples. An answer that takes longer is noted in the report,
/// because it makes samples look older.
pub(super) const LOOK_NS: u64 = SECOND_NS / 10;
/// Longest single sleep: the end of a run waits at most this long for the thread.
const SLICE_NS: u64 = SECOND_NS / 100;

/// The observations of a run.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// The reporting intervals; latencies are filled in from the histograms later.
    pub intervals: Vec<Interval>,
    /// Age of the newest visible sample, over all series and polls.
    pub staleness: Staleness,
    /// The store's answers about its newest samples.
    pub heard: NewestAnswers,
    /// Resources of the watched processes, tsb first.
    pub resources: Vec<Usage>,
    /// CPU time of the monitoring threads, in nanoseconds.
    pub cpu_ns: u64,
    /// The part of it inside the store's `newest`.
    pub newest_ns: u64,
    /// How long the slowest answer of `newest` took, in nanoseconds.
    pub slowest_answer_ns: u64,
    /// Disturbances of the machine.
    pub noise: Option<Noise>,
    /// What else happened, to be held against slow operations.
    pub events: EventLog,
    /// Set if the monitor panicked, and the observations are incomplete.
    pub broken: Option<String>,
}

impl Observed {
    /// No observations, only the message of a panic.
    pub(super) fn broken(panic: &(dyn std::any::Any + Send)) -> Self {
        let said = crate::error::panic_message(panic);
        Self {
            broken: Some(format!(
                "the monitor thread panicked: {said}; staleness is known up to then only"
            )),
            ..Self::default()
        }
    }
}

/// The inputs of a monitor.
#[derive(Debug)]
pub(super) struct MonitorInputs {
    /// The plan, the workload and the timetable.
    pub context: Arc<RunContext>,
    /// The store that is driven.
    pub store: Arc<dyn Store>,
    /// What the store does beside calls.
    pub activities: Vec<Activity>,
    /// The store's own processes.
    pub processes: Vec<u32>,
    /// Start on the clock, in nanoseconds.
    pub start_ns: u64,
    /// The timestamp of that moment.
    pub base: Timestamp,
    /// The emitter's counters.
    pub live: Arc<Live>,
    /// The sinks' counters.
    pub totals: Arc<SinkTotals>,
    /// The listener; it reports nothing if there is none.
    pub watch: Arc<Watch>,
    /// The observer and the stop flags.
    pub controls: Controls,
}

/// Monitors one run.
pub(super) struct Monitor {
    inputs: MonitorInputs,
    is_over: AtomicBool,
    // IMPORTANT: not locked during a call into the store, so that a supervisor can take the
    // observations while a call is stuck. `None` before the start and after they were taken.
    notes: Mutex<Option<MonitorState>>,
}

impl std::fmt::Debug for Monitor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Monitor")
            .field("inputs", &self.inputs)
            .finish_non_exhaustive()
    }
}

/// The state of the monitor thread.
struct MonitorState {
    observed: Observed,
    intervals: IntervalRecorder,
    noise_monitor: NoiseMonitor,
    polls: StalenessPolls,
    // Staleness is not measured: it is not wanted, or there was a panic.
    is_blind: bool,
    // `None` for a closed loop, which has no due times.
    asked: Option<Asked>,
    // Values at the end of the previous interval.
    times: LiveTimes,
    shown_ns: u64,
    stalest_ns: Option<u64>,
}

impl MonitorState {
    /// Takes note of what was due, or reached, by `elapsed_ns` since the start.
    fn follow(&mut self, inputs: &MonitorInputs, elapsed_ns: u64) {
        if let Some(asked) = &mut self.asked {
            asked.advance(&inputs.context, elapsed_ns);
        }
        self.polls.follow(inputs, elapsed_ns);
    }
}

/// The state was taken, and another thread reports it.
struct Taken;

impl Monitor {
    /// A monitor that has not started.
    pub(super) const fn new(inputs: MonitorInputs) -> Self {
        Self {
            inputs,
            is_over: AtomicBool::new(false),
            notes: Mutex::new(None),
        }
    }

    /// Ends monitoring: [`Self::watch`] returns soon.
    pub(super) fn finish(&self) {
        self.is_over.store(true, Ordering::Release);
    }

    /// Monitors until [`Self::finish`] is called. Observations made before a panic are kept, and
    /// intervals continue after it. Returns `None` if [`Self::take_so_far`] was called first.
    pub(super) fn watch(&self) -> Option<Observed> {
        const TRIES: u32 = 2;
        let mut poll = NewestPoll::new(&self.inputs);
        *self.notes() = Some(self.begin());
        let mut broken = None;
        for _ in 0..TRIES {
            let watched = catch_unwind(AssertUnwindSafe(|| {
                // Both end early if the state was taken.
                let _ = self.watch_into(&mut poll).and_then(|()| self.look_last(&mut poll));
            }));
            let Err(panic) = watched else { break };
            let _ = self.with(|notes| notes.is_blind = true);
            broken = broken.or_else(|| Observed::broken(&*panic).broken);
        }
        let notes = self.notes().take()?;
        let mut observed = self.end(notes);
        observed.cpu_ns += thread_cpu_ns();
        observed.newest_ns = poll.asked_ns();
        observed.slowest_answer_ns = poll.slowest_ns();
        observed.broken = broken;
        Some(observed)
    }

    /// Takes the observations so far, while the monitor thread may be stuck in a call into the
    /// store. The thread observes nothing afterwards.
    pub(super) fn take_so_far(&self) -> Option<Observed> {
        self.finish();
        let mut notes = self.notes().take()?;
        let elapsed_ns = self.elapsed_ns(self.inputs.context.clock.now());
        notes.polls.end(&self.inputs, notes.asked.as_ref(), elapsed_ns);
        Some(self.end(notes))
    }

    fn notes(&self) -> MutexGuard<'_, Option<MonitorState>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, what: impl FnOnce(&mut MonitorState) -> T) -> Result<T, Taken> {
        self.notes().as_mut().map(what).ok_or(Taken)
    }

    fn watch_into(&self, poll: &mut NewestPoll) -> Result<(), Taken> {
        let inputs = &self.inputs;
        let clock = &inputs.context.clock;
        let mut look_ns = inputs.start_ns + LOOK_NS;
        loop {
            let interval_end_ns = self.with(|notes| notes.intervals.end_ns())?;
            while clock.now() < look_ns.min(interval_end_ns) && !self.is_over.load(Ordering::Acquire) {
                clock.wait_until((clock.now() + SLICE_NS).min(look_ns).min(interval_end_ns));
                self.with(|notes| notes.polls.follow(inputs, self.elapsed_ns(clock.now())))?;
            }
            if self.is_over.load(Ordering::Acquire) {
                return Ok(());
            }
            let now = clock.now();
            if now >= look_ns {
                let stalest_ns = self.look(poll)?;
                self.with(|notes| notes.stalest_ns = notes.stalest_ns.max(stalest_ns))?;
                self.show(now, stalest_ns);
                look_ns += LOOK_NS * (1 + (now - look_ns) / LOOK_NS);
            }
            if now >= interval_end_ns {
                self.with(|notes| {
                    let interval = self.cut(notes, now);
                    notes.intervals.push(now, interval);
                })?;
            }
        }
    }

    fn begin(&self) -> MonitorState {
        let inputs = &self.inputs;
        let servers = servers::with_servers(&inputs.context.plan, &inputs.processes);
        MonitorState {
            observed: Observed::default(),
            intervals: IntervalRecorder::new(inputs.start_ns, inputs.context.plan.report_interval_ns, &servers),
            noise_monitor: NoiseMonitor::start(
                Arc::clone(&inputs.context.clock),
                inputs.start_ns,
                &servers,
                inputs.activities.clone(),
            ),
            polls: StalenessPolls::new(inputs),
            is_blind: !inputs.controls.measures_staleness,
            asked: Asked::new(&inputs.context),
            times: inputs.live.times(),
            shown_ns: inputs.start_ns,
            stalest_ns: None,
        }
    }

    /// Measures the staleness of every series. Returns the largest age, in nanoseconds.
    fn look(&self, poll: &mut NewestPoll) -> Result<Option<u64>, Taken> {
        let inputs = &self.inputs;
        let now_ns = inputs.context.clock.now();
        let elapsed_ns = self.elapsed_ns(now_ns);
        let is_wanted = self.with(|notes| {
            notes.follow(inputs, elapsed_ns);
            !notes.is_blind
                && poll.may_ask(now_ns)
                && StalenessPolls::is_wanted(inputs, notes.asked.as_ref(), elapsed_ns)
        })?;
        if !is_wanted || poll.ask(inputs).is_none() {
            return Ok(None);
        }
        // The moment of the answer: a slow one has samples that came after the question.
        let elapsed_ns = self.elapsed_ns(inputs.context.clock.now());
        self.with(|notes| {
            notes.follow(inputs, elapsed_ns);
            notes.polls.look(inputs, poll, notes.asked.as_ref(), elapsed_ns)
        })
    }

    /// The last poll: counts the series that never became visible.
    fn look_last(&self, poll: &mut NewestPoll) -> Result<(), Taken> {
        let inputs = &self.inputs;
        let elapsed_ns = self.elapsed_ns(inputs.context.clock.now());
        let (is_blind, is_first) = self.with(|notes| {
            notes.follow(inputs, elapsed_ns);
            (notes.is_blind, notes.polls.is_first())
        })?;
        if is_blind {
            return Ok(());
        }
        if is_first && poll.ask(inputs).is_some() {
            self.with(|notes| notes.polls.look_first(inputs, poll, notes.asked.as_ref(), elapsed_ns))?;
        }
        // If the store cannot answer any more, the earlier answers are used.
        let is_answered = poll.ask(inputs).is_some();
        self.with(|notes| {
            if is_answered {
                notes.polls.see(inputs, poll);
            }
            notes.polls.end(inputs, notes.asked.as_ref(), elapsed_ns);
        })
    }

    /// Passes the current counters to the observer.
    fn show(&self, now: u64, stalest_ns: Option<u64>) {
        let inputs = &self.inputs;
        let totals = inputs.watch.completed(inputs.live.totals());
        let refused = inputs.totals.rejected.load(Ordering::Relaxed);
        inputs.controls.observer.progress(&Progress {
            elapsed_ns: now.saturating_sub(inputs.start_ns),
            totals,
            accepted: Some(accepted(&inputs.live, &inputs.totals, inputs.context.plan.transport)),
            rejected: Some(totals.rejected.max(refused)),
            staleness_ms: stalest_ns.map(|ns| ns as f64 / 1e6),
        });
    }

    /// Ends a reporting interval.
    fn cut(&self, notes: &mut MonitorState, now: u64) -> Interval {
        let inputs = &self.inputs;
        let totals = inputs.watch.completed(inputs.live.totals());
        let taken = accepted(&inputs.live, &inputs.totals, inputs.context.plan.transport);
        let counted = SampleCounters {
            sent: totals.samples,
            accepted: taken,
        };
        // A server that was started again has other processes.
        let find = || servers::with_servers(&inputs.context.plan, &inputs.processes);
        let mut interval = notes.intervals.cut_and_find(now, counted, find);
        interval.asked = self.asked(notes, now);
        interval.staleness_max_ms = notes.stalest_ns.take().map(|ns| ns as f64 / 1e6);
        let timed = inputs.watch.cut(now);
        let response = timed.as_ref().map(|timing| &timing.response);
        // `now` is before `shown_ns` if the run ends before its start.
        let length_ns = now.saturating_sub(notes.shown_ns);
        if length_ns >= SECOND_NS * 9 / 10 && !self.is_over.load(Ordering::Acquire) {
            let length = length_ns as f64 / 1e9;
            notes.shown_ns = now;
            let p99_ns = response
                .and_then(|response| response.quantile(0.99))
                .unwrap_or(totals.interval_p99_ns);
            inputs
                .controls
                .progress(&line(&interval, length, p99_ns, totals.lag_ns));
        }
        self.tell(notes, &interval, timed.as_ref());
        interval
    }

    /// Passes an interval to the observer, with latencies from the listener if there is one,
    /// else from the emitter.
    fn tell(&self, notes: &mut MonitorState, interval: &Interval, timed: Option<&Timing>) {
        let times = self.inputs.live.times();
        let before = std::mem::replace(&mut notes.times, times);
        let since =
            |now: &[u64], before: &[u64]| Cells::of_counts(now.iter().zip(before).map(|(now, before)| now - before));
        let (response, delivery, service) = match timed {
            Some(timing) => (
                Cells::new(&timing.response),
                Cells::new(&timing.delivery),
                Cells::new(&timing.service),
            ),
            None => (
                since(&notes.times.response, &before.response),
                None,
                since(&notes.times.service, &before.service),
            ),
        };
        let lag = since(&notes.times.lag, &before.lag);
        let mut interval = interval.clone();
        interval.response_cells = response;
        let timed = IntervalLatencies { delivery, service, lag };
        self.inputs.controls.observer.interval(&interval, &timed);
    }

    /// Nanoseconds since the start.
    fn elapsed_ns(&self, now: u64) -> u64 {
        now.saturating_sub(self.inputs.start_ns)
    }

    /// Samples that became due in the interval that ends now.
    fn asked(&self, notes: &mut MonitorState, now: u64) -> Option<u64> {
        let asked = notes.asked.as_mut()?;
        Some(asked.since(&self.inputs.context, self.elapsed_ns(now)))
    }

    fn end(&self, mut notes: MonitorState) -> Observed {
        let now = self.inputs.context.clock.now();
        let rest = self.cut(&mut notes, now);
        (notes.observed.intervals, notes.observed.resources) = notes.intervals.finish(now, rest);
        if let Some(watched) = notes.noise_monitor.finish() {
            notes.observed.noise = Some(watched.noise);
            notes.observed.events = watched.events;
            notes.observed.cpu_ns = watched.cpu_ns;
        }
        let (staleness, heard) = notes.polls.finish();
        Observed {
            staleness,
            heard,
            ..notes.observed
        }
    }
}

/// One progress line.
fn line(interval: &Interval, length: f64, response_p99_ns: u64, lag_ns: u64) -> String {
    let rate = |samples: u64| units::scaled(samples as f64 / length);
    let staleness = interval
        .staleness_max_ms
        .map_or(String::new(), |ms| format!(", stalest {ms:.0} ms"));
    // An interval in which no operation ended has no latencies.
    let time = |ns: u64| {
        if ns == 0 { "-".to_owned() } else { units::nanos(ns) }
    };
    format!(
        "{:>6.0} s  sent {}/s, accepted {}/s, response p99 {}, lag {}{staleness}",
        interval.end_ns as f64 / 1e9,
        rate(interval.sent),
        rate(interval.accepted),
        time(response_p99_ns),
        time(lag_ns),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_without_an_operation_has_no_times() {
        let interval = Interval::default();
        let timed = line(&interval, 1.0, 137_000, 44);
        assert!(timed.ends_with("response p99 137 us, lag 44 ns"), "{timed}");
        let empty = line(&interval, 1.0, 0, 0);
        assert!(empty.ends_with("response p99 -, lag -"), "{empty}");
    }
}
