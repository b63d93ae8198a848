//! Thresholds that a run was held against.

use serde::{Deserialize, Serialize};

/// What of a condition makes a run fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailWhen {
    /// It fails if the condition is true.
    If,
    /// It fails unless the condition is true.
    Unless,
}

/// What came of a threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ThresholdOutcome {
    /// The run is on the right side of it.
    Passed,
    /// The run is on the wrong side of it.
    Crossed,
    /// The run does not have the figure, or not exactly enough: nothing was decided.
    Absent,
}

/// One threshold, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ThresholdReport {
    /// What of the condition makes the run fail.
    pub fail: FailWhen,
    /// The condition as it was written: `response.p99>50ms`.
    pub condition: String,
    /// What came of it.
    pub outcome: ThresholdOutcome,
    /// The unit of the figures below: `ns`, `bytes`, `per_second`, `share`, `count`, and others.
    /// Absent for a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// The figure of the run, where it is known exactly and finite.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// The figure with which the run was compared, for a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<f64>,
    /// The limit; absent for a change and for a verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// What was measured and what the limit is, or why nothing was decided.
    pub why: String,
}

impl ThresholdReport {
    /// A threshold without figures.
    pub fn new(
        fail: FailWhen,
        condition: impl Into<String>,
        outcome: ThresholdOutcome,
        why: impl Into<String>,
    ) -> Self {
        Self {
            fail,
            condition: condition.into(),
            outcome,
            unit: None,
            measured: None,
            baseline: None,
            limit: None,
            why: why.into(),
        }
    }

    /// Whether the run passed it. One that decided nothing was not passed.
    pub fn is_passed(&self) -> bool {
        self.outcome == ThresholdOutcome::Passed
    }
}
