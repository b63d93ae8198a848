//! What a run of the emitter hands back.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::cpu::PhaseCpu;
use crate::breakdown::Breakdown;
use crate::latency::{Recording, Summary};
use crate::schedule::{Frontier, Timetable};
use crate::time::SECOND_NS;

/// Operations and the samples in them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations.
    pub operations: u64,
    /// Samples.
    pub samples: u64,
}

impl Tally {
    /// One more operation.
    #[inline]
    pub fn add(&mut self, samples: u64) {
        self.operations += 1;
        self.samples += samples;
    }

    /// Adds another tally.
    pub fn merge(&mut self, other: Self) {
        self.operations += other.operations;
        self.samples += other.samples;
    }
}

/// What became of the operations. `due = shed + done + handed_over + unknown`, and
/// `done.samples = accepted + rejected`. Batches that were empty are in none of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All that was due, whatever became of it.
    pub due: Tally,
    /// Due but never sent: refused by the target with [`super::Outcome::Shed`], or not
    /// sent before the run ended. Samples of operations that were never prepared are
    /// counted as the roster declares them, times [`super::Settings::sent_share`].
    pub shed: Tally,
    /// Answered by the target.
    pub done: Tally,
    /// Handed over, to be timed by somebody else.
    pub handed_over: Tally,
    /// Sent, outcome unknown.
    pub unknown: Tally,
    /// Samples taken by the target.
    pub accepted: u64,
    /// Samples refused by the target.
    pub rejected: u64,
}

impl Counts {
    /// Operations that reached the target, and their samples.
    pub fn sent(&self) -> Tally {
        let mut sent = self.done;
        sent.merge(self.handed_over);
        sent.merge(self.unknown);
        sent
    }

    /// Adds another worker.
    pub fn merge(&mut self, other: &Self) {
        self.due.merge(other.due);
        self.shed.merge(other.shed);
        self.done.merge(other.done);
        self.handed_over.merge(other.handed_over);
        self.unknown.merge(other.unknown);
        self.accepted += other.accepted;
        self.rejected += other.rejected;
    }
}

/// The times of a run, each as intervals and in all. Operations due within the warm-up are not in it,
/// except those never sent, which are in `own_lag`.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    /// Due until done, of operations of which at least one sample was accepted.
    pub response: Recording,
    /// Start until done, of the same.
    pub service: Recording,
    /// Due until start, of every operation that was started. Empty in a closed loop.
    pub lag: Recording,
    /// The part of the lag during which the target was *not* inside `send` or `idle`:
    /// our own lateness, as opposed to waiting behind a slow target. Preparing, waking
    /// up late and being preempted are in it, and so are operations that were never sent.
    pub own_lag: Recording,
    /// What response times consist of: lag in two parts, and the time in the target.
    pub breakdown: Breakdown,
    /// Samples behind `response` and `service`.
    pub done_samples: u64,
    /// Samples behind `lag`.
    pub started_samples: u64,
}

impl Latency {
    /// Adds another worker.
    pub fn merge(&mut self, other: Self) {
        self.response.merge(other.response);
        self.service.merge(other.service);
        self.lag.merge(other.lag);
        self.own_lag.merge(other.own_lag);
        self.breakdown.merge(&other.breakdown);
        self.done_samples += other.done_samples;
        self.started_samples += other.started_samples;
    }

    /// Response time, for the report.
    pub fn response_summary(&self) -> Summary {
        Summary::new(&self.response.total, self.done_samples)
    }

    /// Service time, for the report.
    pub fn service_summary(&self) -> Summary {
        Summary::new(&self.service.total, self.done_samples)
    }

    /// Lag, for the report.
    pub fn lag_summary(&self) -> Summary {
        Summary::new(&self.lag.total, self.started_samples)
    }
}

/// Why a worker ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// Its agenda was done, or the planned time was over.
    Planned,
    /// It was told to stop.
    Stopped,
    /// Another worker ended the run.
    Aborted,
    /// The target answered [`super::Outcome::Fatal`].
    Fatal,
    /// The source or the target panicked, with this message.
    Panicked(String),
}

/// Why an issued operation did not end normally.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ExceptionKind {
    /// The target took nothing of it.
    Shed,
    /// It may have been applied or not.
    Unknown,
    /// It was sent, and at least a part of it was lost on the way to the receiver.
    Lost,
}

/// Ticks of one group that were issued and did not end as done or handed over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exception {
    /// Which group.
    pub group: u32,
    /// Which of its ticks.
    pub ticks: Range<u64>,
    /// What became of them.
    pub kind: ExceptionKind,
}

/// One worker's part of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct WorkerReport<S, T> {
    /// Its groups.
    pub groups: Range<u32>,
    /// Why it ended.
    pub ended: Ended,
    /// What became of its operations.
    pub counts: Counts,
    /// Everything up to here was issued (handed to the target, or empty).
    pub issued: Option<Frontier>,
    /// Everything up to here was due. What lies between `issued` and this was shed.
    pub due: Option<Frontier>,
    /// Issued operations that were shed by the target or are of unknown outcome.
    pub exceptions: Vec<Exception>,
    /// Operations for which `exceptions` had no room: 0, or the audit cannot be exact.
    pub exceptions_dropped: u64,
    /// CPU time of its thread.
    pub cpu: PhaseCpu,
    /// Time inside the target, in nanoseconds.
    pub busy_ns: u64,
    /// The source, to be asked what it knows.
    pub source: S,
    /// The target, to be asked what it knows.
    pub target: T,
}

impl<S, T> WorkerReport<S, T> {
    /// The ticks of a group of this worker that were issued.
    pub fn issued_ticks(&self, timetable: &Timetable, group: u32) -> Range<u64> {
        timetable.ticks_through(group, self.issued)
    }

    /// The ticks of a group of this worker that were due and never issued.
    pub fn unsent_ticks(&self, timetable: &Timetable, group: u32) -> Range<u64> {
        let issued = timetable.ticks_through(group, self.issued);
        let due = timetable.ticks_through(group, self.due);
        if issued.is_empty() {
            due
        } else {
            issued.end..due.end.max(issued.end)
        }
    }
}

/// A whole run.
#[derive(Debug)]
pub struct Report<S, T> {
    /// When it started, on the run's clock: due times count from here.
    pub start_ns: u64,
    /// When the last worker was done, on the run's clock.
    pub end_ns: u64,
    /// When the last operation was due, on the run's clock.
    pub last_due_ns: u64,
    /// The planned length, where there was one.
    pub planned_ns: Option<u64>,
    /// What became of the operations of all workers.
    pub counts: Counts,
    /// The times of all workers.
    pub latency: Latency,
    /// Each worker.
    pub workers: Vec<WorkerReport<S, T>>,
}

impl<S, T> Report<S, T> {
    /// How long the run took: to its planned end, or longer if the last operation was
    /// done later; when it was cut short, until then.
    pub fn elapsed_ns(&self) -> u64 {
        let taken = self.end_ns.saturating_sub(self.start_ns);
        match self.planned_ns {
            Some(planned) if self.is_whole() => taken.max(planned),
            _ => taken,
        }
    }

    /// Over how long what was due was due: the planned length, without what it took beyond
    /// that; when the run was cut short, until then.
    pub fn asked_ns(&self) -> u64 {
        match self.planned_ns {
            Some(planned) if self.is_whole() => planned,
            // No plan says it: until the last operation was due.
            None if self.is_whole() => self.last_due_ns.saturating_sub(self.start_ns),
            _ => self.end_ns.saturating_sub(self.start_ns),
        }
    }

    fn is_whole(&self) -> bool {
        self.workers.iter().all(|worker| worker.ended == Ended::Planned)
    }

    /// The rate of `things` over the whole run, per second.
    pub fn per_second(&self, things: u64) -> f64 {
        let elapsed = self.elapsed_ns().max(1);
        things as f64 * SECOND_NS as f64 / elapsed as f64
    }

    /// CPU time of all workers.
    pub fn cpu(&self) -> PhaseCpu {
        let mut all = PhaseCpu::default();
        self.workers.iter().for_each(|worker| all.merge(&worker.cpu));
        all
    }

    /// The first worker that did not end as planned, with its reason.
    pub fn first_failure(&self) -> Option<(usize, &Ended)> {
        let ends = self.workers.iter().map(|worker| &worker.ended).enumerate();
        let mut failed = ends.filter(|(_, ended)| matches!(ended, Ended::Fatal | Ended::Panicked(_)));
        failed.next()
    }
}
