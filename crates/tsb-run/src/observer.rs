//! The interface through which a run reports its progress to a terminal, a log or an embedding
//! program.

use std::fmt;

use serde::{Deserialize, Serialize};
use tsb_core::emit::LiveTotals;
use tsb_core::latency::Cells;
use tsb_core::report::Interval;

use crate::units;

/// Receives the events of a run. All methods are called from threads of the run that are not on
/// the emitting path, possibly several at once; the run waits for each call to return.
pub trait Observer: Send + Sync {
    /// The run of a store begins.
    fn begin(&self, subject: &RunInfo) {
        let _ = subject;
    }

    /// A run of a comparison begins.
    fn round(&self, round: &RoundInfo<'_>) {
        let _ = round;
    }

    /// A new phase begins, or the current one has advanced.
    fn phase(&self, phase: Phase) {
        let _ = phase;
    }

    /// The counters as they are now; ten times per second while samples are sent, and up to a hundred times
    /// by `tsb emit`, which reports no intervals.
    fn progress(&self, progress: &Progress) {
        let _ = progress;
    }

    /// A reporting interval has ended.
    fn interval(&self, interval: &Interval, timed: &IntervalLatencies) {
        let _ = (interval, timed);
    }

    /// Several hosts share the run; this is what is known of each, with every [`Self::progress`].
    fn hosts(&self, hosts: &[HostStatus<'_>]) {
        let _ = hosts;
    }

    /// A message for the user.
    fn message(&self, message: Message<'_>) {
        let _ = message;
    }
}

/// An observer that ignores all events.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullObserver;

impl Observer for NullObserver {}

/// A message for the user who watches a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Message<'a> {
    /// What the run is doing, for observers that print lines. Other events carry the same, except while
    /// history is written before the run.
    Progress(&'a str),
    /// Information that no other event carries.
    Note(&'a str),
    /// A warning: damage of a store, or a store that could not be measured.
    Warning(&'a str),
}

/// The phase of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Before the first phase that is announced: a run on one host does not announce this one.
    #[default]
    Preparing,
    /// Measuring the generator's own ceiling; then also writing history, if the plan asks for it.
    Calibrating,
    /// Sending.
    Running,
    /// Waiting until every sample has reached the store's highest durability level.
    Flushing,
    /// Reading everything back: series done, and series in total.
    ReadingBack(u64, u64),
    /// Building the report.
    Reporting,
}

impl Phase {
    /// The name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Preparing => "preparing",
            Self::Calibrating => "calibrating",
            Self::Running => "running",
            Self::Flushing => "flushing",
            Self::ReadingBack(..) => "reading back",
            Self::Reporting => "reporting",
        }
    }
}

/// Facts that do not change during a run.
#[derive(Clone, Debug, Default)]
pub struct RunInfo {
    /// The store, as it names itself.
    pub store: String,
    /// `inproc`, `tcp`, with the protocol where there is one.
    pub path: String,
    /// Series in the catalog.
    pub series: u64,
    /// Durability level of an acknowledgement.
    pub durability: String,
    /// Samples per second that the schedule asks for; absent for a closed loop or a varying
    /// rate.
    pub asked_per_second: Option<f64>,
    /// Planned length of sending, in nanoseconds, if the plan states it.
    pub planned_ns: Option<u64>,
    /// Length of a reporting interval, in nanoseconds.
    pub interval_ns: u64,
}

/// Where a comparison is.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RoundInfo<'a> {
    /// The round, from 1.
    pub round: u32,
    /// Most rounds.
    pub rounds_max: u32,
    /// The run in the round, from 1.
    pub run: usize,
    /// Runs of a round.
    pub runs: usize,
    /// The side that runs.
    pub side: &'a str,
}

/// A snapshot of a run's counters.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Progress {
    /// Time since sending began, in nanoseconds.
    pub elapsed_ns: u64,
    /// The emitter's counters.
    pub totals: LiveTotals,
    /// Samples accepted; absent where a foreign server receives them.
    pub accepted: Option<u64>,
    /// Samples refused; absent likewise.
    pub rejected: Option<u64>,
    /// Age of the stalest series, in milliseconds, if it was measured.
    pub staleness_ms: Option<f64>,
}

/// What is known of a host of a run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct HostStatus<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its phase, in a word.
    pub phase: &'a str,
    /// Samples sent.
    pub sent: u64,
    /// Samples accepted.
    pub accepted: u64,
    /// Age of its stalest series, in milliseconds, if it was measured.
    pub staleness_ms: Option<f64>,
    /// Why it counts as lost.
    pub lost: Option<&'a str>,
}

impl<'a> HostStatus<'a> {
    /// A host that has sent nothing yet.
    pub const fn new(name: &'a str, phase: &'a str) -> Self {
        Self {
            name,
            phase,
            sent: 0,
            accepted: 0,
            staleness_ms: None,
            lost: None,
        }
    }
}

impl fmt::Display for HostStatus<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sent, accepted) = (units::count(self.sent), units::count(self.accepted));
        write!(f, "{}: {}, {sent} sent, {accepted} accepted", self.name, self.phase)?;
        if let Some(ms) = self.staleness_ms {
            write!(f, ", stalest {ms:.0} ms")?;
        }
        match self.lost {
            Some(why) => write!(f, ", lost: {why}"),
            None => Ok(()),
        }
    }
}

/// The latencies of an interval's operations, except the response times, which are in the
/// interval itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct IntervalLatencies {
    /// Start until read by the listener.
    pub delivery: Option<Cells>,
    /// Start or read until done.
    pub service: Option<Cells>,
    /// Due until start.
    pub lag: Option<Cells>,
}
