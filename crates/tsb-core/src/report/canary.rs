//! The result of `tsb canary`: what became of a small known stream that was written to a store and
//! read again and again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Written;
use crate::durability::Durability;
use crate::latency::Quantiles;
use crate::time::Timestamp;

/// Number of faults that a report names; further ones are only counted.
pub const NAMED_FAULTS_MAX: usize = 100;

/// What a canary wrote and found, since it was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CanaryReport {
    /// The program and the machine.
    #[serde(flatten)]
    pub written: Written,
    /// The store, as it was named, without credentials.
    pub store: String,
    /// The canary's name, which is a label of its series.
    pub name: String,
    /// Number of series.
    pub series: u64,
    /// From one sample of a series to the next, in nanoseconds.
    pub interval_ns: u64,
    /// How far back it asks, in nanoseconds.
    pub keeps_ns: u64,
    /// For how long it has run, in nanoseconds.
    pub elapsed_ns: u64,
    /// What became of the samples.
    pub samples: CanarySamples,
    /// The faults, by kind, level and age.
    pub faults: Vec<CanaryFault>,
    /// What was asked, by the name of the question.
    pub questions: BTreeMap<String, CanaryQuestion>,
    /// The time of a write, from its call to its answer.
    pub write: Quantiles,
    /// The newest visible timestamp of the stalest series, when the store last said it; absent if a
    /// series has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub newest_visible: Option<Timestamp>,
    /// The first faults by name, at most [`NAMED_FAULTS_MAX`].
    pub named: Vec<NamedFault>,
}

impl CanaryReport {
    /// A report of nothing yet, by this program on this machine.
    pub fn new(store: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            written: Written::here(),
            store: store.into(),
            name: name.into(),
            series: 0,
            interval_ns: 0,
            keeps_ns: 0,
            elapsed_ns: 0,
            samples: CanarySamples::default(),
            faults: Vec::new(),
            questions: BTreeMap::new(),
            write: Quantiles::default(),
            newest_visible: None,
            named: Vec::new(),
        }
    }

    /// The faults of one kind, in samples.
    pub fn count(&self, kind: FaultKind) -> u64 {
        let faults = self.faults.iter().filter(|fault| fault.kind == kind);
        faults.map(|fault| fault.samples).sum()
    }

    /// Whether no data is gone or wrong, and no answer was wrong. Late samples, and answers that lacked
    /// them, are sound.
    pub fn is_sound(&self) -> bool {
        let is_late = |fault: &CanaryFault| fault.kind == FaultKind::Late;
        self.faults.iter().all(is_late) && self.questions.values().all(|question| question.wrong == 0)
    }

    /// Whether each acknowledged sample has one end: seen, lost, altered, let go, or not settled yet.
    pub const fn is_balanced(&self) -> bool {
        let samples = &self.samples;
        let settled = samples.seen + samples.lost_unseen + samples.altered_unseen + samples.let_go_unseen;
        samples.acknowledged == settled + samples.open
    }
}

/// The samples of a canary, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CanarySamples {
    /// Of an earlier canary of this name, found when this one was started.
    pub found_at_start: u64,
    /// Acknowledged by the store.
    pub acknowledged: u64,
    /// Refused by the store.
    pub refused: u64,
    /// Sent, and never answered, or not sent since no server could be reached. They are not judged.
    pub unknown: u64,
    /// Due while an earlier write or question took its time: they were not written.
    pub skipped: u64,
    /// Acknowledged, and seen at least once with the right value.
    pub seen: u64,
    /// Acknowledged, and lost without having been seen.
    pub lost_unseen: u64,
    /// Acknowledged, and altered when first seen.
    pub altered_unseen: u64,
    /// Acknowledged, and let go as too old before an answer settled what became of them.
    pub let_go_unseen: u64,
    /// Acknowledged, and not settled yet.
    pub open: u64,
}

/// Faults of one kind, of samples with one level and of one age.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CanaryFault {
    /// What is wrong with them.
    pub kind: FaultKind,
    /// The level that they are known to have reached; `unconfirmed` for those that an earlier canary wrote.
    pub durability: Durability,
    /// How old they were when it was found.
    pub age: FaultAge,
    /// Number of samples; each counts once for a kind.
    pub samples: u64,
}

impl CanaryFault {
    /// Faults of this number of samples.
    pub const fn new(kind: FaultKind, durability: Durability, age: FaultAge, samples: u64) -> Self {
        Self {
            kind,
            durability,
            age,
            samples,
        }
    }
}

/// What is wrong with a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// It was missing in an answer that had to have it, and came later.
    Late,
    /// It was acknowledged or seen, and is not there.
    Lost,
    /// Two answers had another value.
    Altered,
    /// It had been counted as lost, and is there again.
    Returned,
    /// It was never written, and is there.
    Invented,
    /// An answer had it more than once.
    Duplicated,
}

impl FaultKind {
    /// All kinds, in the order of reports.
    pub const ALL: [Self; 6] = [
        Self::Late,
        Self::Lost,
        Self::Returned,
        Self::Altered,
        Self::Invented,
        Self::Duplicated,
    ];

    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Late => "late",
            Self::Lost => "lost",
            Self::Returned => "returned",
            Self::Altered => "altered",
            Self::Invented => "invented",
            Self::Duplicated => "duplicated",
        }
    }
}

/// How old a sample was when its fault was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultAge {
    /// At most a minute.
    Minute,
    /// At most an hour.
    Hour,
    /// At most a day.
    Day,
    /// At most a week.
    Week,
    /// More than a week.
    Longer,
}

impl FaultAge {
    /// All ages, in their order.
    pub const ALL: [Self; 5] = [Self::Minute, Self::Hour, Self::Day, Self::Week, Self::Longer];

    /// The age of a sample that is this many nanoseconds old.
    pub const fn of(age_ns: i64) -> Self {
        const MINUTE_NS: i64 = 60_000_000_000;
        const HOUR_NS: i64 = 60 * MINUTE_NS;
        const DAY_NS: i64 = 24 * HOUR_NS;
        const WEEK_NS: i64 = 7 * DAY_NS;
        if age_ns <= MINUTE_NS {
            Self::Minute
        } else if age_ns <= HOUR_NS {
            Self::Hour
        } else if age_ns <= DAY_NS {
            Self::Day
        } else if age_ns <= WEEK_NS {
            Self::Week
        } else {
            Self::Longer
        }
    }

    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Week => "week",
            Self::Longer => "longer",
        }
    }
}

impl CanaryQuestion {
    /// The answers to one question: how many were right, late, wrong and failed, and their times.
    pub const fn new([right, late, wrong, failed]: [u64; 4], answer: Quantiles) -> Self {
        Self {
            right,
            late,
            wrong,
            failed,
            answer,
        }
    }
}

/// One question that a canary asks, and the answers to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CanaryQuestion {
    /// Answers in which everything was right.
    pub right: u64,
    /// Answers that lacked a sample which had to be visible and was in no answer before, and had no
    /// other fault.
    #[serde(default)]
    pub late: u64,
    /// Answers in which something was lost, altered, invented or duplicated, or lacked a sample that an
    /// earlier answer had. A fault does not count against later answers again.
    pub wrong: u64,
    /// Questions that were not answered.
    pub failed: u64,
    /// The time of an answer, failed ones left out.
    pub answer: Quantiles,
}

/// Samples of one series that follow each other and have the same fault.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NamedFault {
    /// What is wrong with them.
    pub kind: FaultKind,
    /// The series, as `name{label=value,...}`.
    pub series: String,
    /// The timestamp of the first.
    pub first: Timestamp,
    /// The timestamp of the last.
    pub last: Timestamp,
    /// Number of samples.
    pub samples: u64,
    /// The level that they are known to have reached.
    pub durability: Durability,
    /// The value of the first as it was written; absent if it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<f64>,
    /// The value of the first as it was found; absent if it was not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<f64>,
    /// When it was found.
    pub noticed: Timestamp,
    /// The question whose answer showed it.
    pub question: String,
}

impl NamedFault {
    /// A fault of one sample of a series, noticed at its own time.
    pub const fn new(kind: FaultKind, series: String, at: Timestamp, durability: Durability) -> Self {
        Self {
            kind,
            series,
            first: at,
            last: at,
            samples: 1,
            durability,
            expected: None,
            found: None,
            noticed: at,
            question: String::new(),
        }
    }
}
