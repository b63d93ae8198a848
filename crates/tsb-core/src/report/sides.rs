//! The result of `tsb compare` with stores: the same work on several sides, in interleaved rounds.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::comparison::StoreThreshold;
use super::{Run, Written};
use crate::stats::Estimate;
use crate::verdict::Status;

/// Sides that did the same work in interleaved rounds.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SideComparison {
    /// The program and the machine.
    #[serde(flatten)]
    pub written: Written,
    /// What was asked for.
    pub plan: RoundsPlan,
    /// The sides, in the order in which they were named.
    pub sides: Vec<ComparedSide>,
    /// What makes the sides unequal, as sentences: work, durability, exactness, losses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unequal: Vec<String>,
    /// Whether the ratios say which side is better: the sides are equal, or ranking them was asked
    /// for.
    pub is_ranked: bool,
    /// Why there were no more rounds.
    pub ended: ComparisonEnd,
    /// Duration of the whole comparison, in nanoseconds.
    pub took_ns: u64,
    /// The complete rounds.
    pub rounds: Vec<RoundReport>,
    /// Ratios of every two sides, for each figure that both have in every round.
    pub comparisons: Vec<SideRatio>,
    /// The thresholds of each side but the first, which is their baseline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<StoreThreshold>,
    /// What a reader must know: runs that were disturbed, drifted or failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The reports of all runs, in the order in which they ran; without distributions, which make
    /// up most of a report.
    pub runs: Vec<Run>,
}

impl SideComparison {
    /// A comparison without a round, made here.
    pub fn here(plan: RoundsPlan, sides: Vec<ComparedSide>) -> Self {
        Self {
            written: Written::here(),
            plan,
            sides,
            unequal: Vec::new(),
            is_ranked: false,
            ended: ComparisonEnd::Rounds,
            took_ns: 0,
            rounds: Vec::new(),
            comparisons: Vec::new(),
            thresholds: Vec::new(),
            notes: Vec::new(),
            runs: Vec::new(),
        }
    }
}

/// What a comparison was asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundsPlan {
    /// From which the order of the runs follows.
    pub seed: u64,
    /// Most rounds.
    pub rounds_max: u32,
    /// After this time no round begins, in nanoseconds.
    pub budget_ns: u64,
    /// Rounds end early once a relative difference of this would have been seen: 0.02 is 2 %.
    pub enough: f64,
    /// Whether unequal sides are ranked, too.
    pub rank_unequal: bool,
}

/// One side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ComparedSide {
    /// Its name: `A` and so on.
    pub name: String,
    /// The store, and what is set for this side alone.
    pub about: String,
    /// The mean of each figure over all runs of complete rounds, with its 95 % interval.
    pub figures: BTreeMap<String, Estimate>,
}

impl ComparedSide {
    /// A side without figures.
    pub fn new(name: impl Into<String>, about: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            about: about.into(),
            figures: BTreeMap::new(),
        }
    }
}

/// Why a comparison had no more rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ComparisonEnd {
    /// The answer is clear.
    Clear,
    /// All rounds were made.
    Rounds,
    /// Another round would not have fitted into the budget.
    Budget,
    /// The user stopped it.
    Stopped,
    /// A run could not be made.
    Failed,
}

/// A round: each side ran twice; a single side once.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RoundReport {
    /// Its runs, in the order in which they ran.
    pub runs: Vec<RoundRun>,
}

/// What a comparison takes from one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RoundRun {
    /// The side, from 0.
    pub side: usize,
    /// Its verdict.
    pub verdict: Status,
    /// The warm-up that was cut, in nanoseconds; absent where the run has too few intervals to
    /// find one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up_ns: Option<u64>,
    /// Whether the rest was steady; absent likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_steady: Option<bool>,
    /// The figures by name. The held rate and the quantiles of response, delivery, service and lag
    /// are those of the run without its warm-up, all others those of the whole run.
    pub figures: BTreeMap<String, f64>,
}

impl RoundRun {
    /// A run of `side` without figures, in which no steady state was looked for.
    pub const fn new(side: usize, verdict: Status) -> Self {
        Self {
            side,
            verdict,
            warm_up_ns: None,
            is_steady: None,
            figures: BTreeMap::new(),
        }
    }
}

/// The ratio of a figure on two sides.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SideRatio {
    /// The name of the figure, such as `response.p99`.
    pub metric: String,
    /// Its unit: `ns`, `bytes`, `per_second`, and others.
    pub unit: String,
    /// The number of the first side.
    pub a_side: usize,
    /// The number of the second side.
    pub b_side: usize,
    /// The mean of the first side over all rounds.
    pub a: f64,
    /// The mean of the second side.
    pub b: f64,
    /// The geometric mean of `b / a` over all rounds.
    pub ratio: f64,
    /// The lower end of its 95 % interval.
    pub ratio_low: f64,
    /// The upper end.
    pub ratio_high: f64,
    /// The smallest relative difference that these rounds would have shown in 8 of 10 cases.
    pub detectable: f64,
    /// `lower` or `higher`, if the interval excludes 1; `not_seen`, or `erratic` where the rounds
    /// contradict each other.
    pub outcome: String,
    /// Whether the rounds differ by more than the two ratios within a round do.
    pub erratic: bool,
}

impl SideRatio {
    /// The ratio of `b_side` to `a_side`, without its numbers.
    pub fn new(metric: impl Into<String>, unit: impl Into<String>, a_side: usize, b_side: usize) -> Self {
        Self {
            metric: metric.into(),
            unit: unit.into(),
            a_side,
            b_side,
            a: f64::NAN,
            b: f64::NAN,
            ratio: f64::NAN,
            ratio_low: f64::NAN,
            ratio_high: f64::NAN,
            detectable: f64::NAN,
            outcome: String::new(),
            erratic: false,
        }
    }
}
