//! What a run tells those who want to know what it does.

use tsb_core::emit::LiveTotals;
use tsb_core::latency::Cells;
use tsb_core::report::Interval;

/// Hears what a run does. All methods are called from threads of the run that are not on the
/// emitting path, several at once; the run waits for each call to return.
pub trait Observer: Send + Sync {
    /// The run of a store begins.
    fn begin(&self, subject: &Subject) {
        let _ = subject;
    }

    /// The run does something else now, or has come further with it.
    fn phase(&self, phase: Phase) {
        let _ = phase;
    }

    /// The counters as they are now; ten times per second while samples are sent.
    fn progress(&self, progress: &Progress) {
        let _ = progress;
    }

    /// A reporting interval is over.
    fn interval(&self, interval: &Interval, timed: &Timed) {
        let _ = (interval, timed);
    }

    /// Something to be read.
    fn message(&self, message: Message<'_>) {
        let _ = message;
    }
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;

impl Observer for Nobody {}

/// A sentence for whoever watches a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// What the run is doing. The same is in [`Observer::phase`] or [`Observer::interval`]: for
    /// those who print lines.
    Progress(&'a str),
    /// What nothing else says.
    Note(&'a str),
    /// What must be read: damage of a store, a store that could not be measured.
    Warning(&'a str),
}

/// What a run is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// Getting ready.
    #[default]
    Preparing,
    /// Measuring the generator's own ceiling.
    Calibrating,
    /// Sending.
    Running,
    /// Waiting until everything has reached the level that was asked.
    Flushing,
    /// Reading everything back: series done, and all.
    ReadingBack(u64, u64),
    /// Putting the report together.
    Reporting,
}

impl Phase {
    /// Its name.
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

/// What does not change while a run goes on.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// The store, as it names itself.
    pub store: String,
    /// `inproc`, `tcp`, with the protocol where there is one.
    pub path: String,
    /// Series in the catalog.
    pub series: u64,
    /// What an acknowledgement is worth.
    pub durability: String,
    /// Samples per second that the schedule asks; absent where it asks nothing, or not a
    /// constant rate.
    pub asked_per_second: Option<f64>,
    /// How long sending takes, in nanoseconds, where the plan says so.
    pub planned_ns: Option<u64>,
    /// Length of a reporting interval, in nanoseconds.
    pub slice_ns: u64,
}

/// The counters of a run at one moment.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Time since sending began, in nanoseconds.
    pub elapsed_ns: u64,
    /// The emitter's counters.
    pub totals: LiveTotals,
    /// Samples that the store took; unknown where a foreign server takes them.
    pub accepted: Option<u64>,
    /// Samples that it refused; unknown likewise.
    pub rejected: Option<u64>,
    /// Age of the stalest series, in milliseconds, where it was looked at.
    pub staleness_ms: Option<f64>,
}

/// The times of an interval's operations, but for the response times, which are part of the
/// interval.
#[derive(Clone, Debug, Default)]
pub struct Timed {
    /// Start until read.
    pub delivery: Option<Cells>,
    /// Start or read to done.
    pub service: Option<Cells>,
    /// Due to start.
    pub lag: Option<Cells>,
}
