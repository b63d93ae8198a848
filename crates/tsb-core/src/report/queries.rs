//! Queries that were asked while samples were written, and the history that was there for them.

use serde::{Deserialize, Serialize};

use super::is_zero;
use crate::latency::{Quantiles, Summary};

/// What a stream of queries came to.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueryLatency {
    /// What was asked and how often: `q1@10/s`.
    pub query: String,
    /// Due to answered; in a closed loop, asked to answered. Its count: queries that were answered.
    #[serde(flatten)]
    pub response: Quantiles,
    /// Answers that were compared with what was sent.
    pub answers: u64,
    /// Of these, wrong ones.
    pub wrong: u64,
    /// Asked to answered.
    #[serde(default)]
    pub service: Summary,
    /// Due to asked; absent in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<Summary>,
    /// Queries due per second while there was something to ask for; absent in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_per_second: Option<f64>,
    /// Queries answered per second.
    #[serde(default)]
    pub held_per_second: f64,
    /// Rows in all answers.
    #[serde(default)]
    pub rows: u64,
    /// CPU time that the store took for a query in the thread that asked, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_cpu_ns_per_query: Option<f64>,
    /// Queries that were due while there was nothing to ask for; they were not asked.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub early: u64,
    /// Queries that were due and not asked before the end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub shed: u64,
    /// Queries that were asked and never answered.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unanswered: u64,
    /// Answers that differ from what was sent and may still be right, because samples were lost or
    /// refused.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unjudged: u64,
    /// The first wrong answers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wrong_answers: Vec<WrongAnswer>,
}

/// History that was written before the clock of a run started. The ledger counts its samples; rates,
/// times and costs leave it out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PreloadReport {
    /// Fleet time in nanoseconds: it ends where the timestamps of the run begin.
    pub length_ns: u64,
    /// Samples that the store accepted.
    pub accepted: u64,
    /// Samples that it refused.
    pub rejected: u64,
    /// How long writing and flushing took, in nanoseconds.
    pub took_ns: u64,
}

/// An answer that was wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WrongAnswer {
    /// When it was noticed, in nanoseconds since the run began.
    pub after_ns: u64,
    /// The first series of which it was wrong.
    pub series: String,
    /// The first timestamp of the range that was asked for; absent for the newest sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ns: Option<i64>,
    /// The first timestamp behind that range.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<i64>,
    /// What was sent.
    pub expected: String,
    /// What came instead.
    pub came: String,
}

impl WrongAnswer {
    /// An answer about `series`, noticed when the run began, to a query without a range.
    pub fn new(series: impl Into<String>, expected: impl Into<String>, came: impl Into<String>) -> Self {
        Self {
            after_ns: 0,
            series: series.into(),
            start_ns: None,
            end_ns: None,
            expected: expected.into(),
            came: came.into(),
        }
    }
}

impl QueryLatency {
    /// No query was answered yet of a stream that asks `query`.
    pub fn new(query: impl Into<String>) -> Self {
        Self {
            query: query.into(),
            ..Self::default()
        }
    }
}
