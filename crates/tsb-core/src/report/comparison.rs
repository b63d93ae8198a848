//! The result of `tsb compare` with two reports.

use serde::{Deserialize, Serialize};

use super::{ThresholdReport, Written};

/// The runs of two reports, compared store by store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Comparison {
    /// The program and the machine that compared them.
    #[serde(flatten)]
    pub written: Written,
    /// What was asked for.
    pub plan: ComparisonPlan,
    /// The stores that both reports have, in the order of the second.
    pub stores: Vec<ComparedStore>,
    /// Stores that only one report has, as sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unmatched: Vec<String>,
    /// The figures of all stores.
    pub comparisons: Vec<ComparedMetric>,
    /// The thresholds of all stores.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<StoreThreshold>,
}

impl Comparison {
    /// A comparison of nothing, made here.
    pub fn here(plan: ComparisonPlan) -> Self {
        Self {
            written: Written::here(),
            plan,
            stores: Vec::new(),
            unmatched: Vec::new(),
            comparisons: Vec::new(),
            thresholds: Vec::new(),
        }
    }
}

/// What a comparison was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparisonPlan {
    /// The file of the earlier report.
    pub a: String,
    /// The file of the later one.
    pub b: String,
}

/// A store that both reports have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedStore {
    /// Its name: the label of its runs, or the store and how it was reached.
    pub store: String,
    /// Runs of it in the earlier report.
    pub a_rounds: usize,
    /// Runs of it in the later one.
    pub b_rounds: usize,
    /// What makes its runs unequal, as sentences in which A is the earlier one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unequal: Vec<String>,
    /// Why its figures may mean less than they seem to: verdicts other than VALID, interruptions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub caveats: Vec<String>,
}

/// A figure of two sides. A number that a side does not have exactly is absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ComparedMetric {
    /// The store that it is of.
    pub store: String,
    /// The name of the figure, such as `response.p99`.
    pub metric: String,
    /// Its unit: `ns`, `bytes`, `per_second`, `share`, `count`, and others.
    pub unit: String,
    /// The first side; the median where there are several rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub a: Option<f64>,
    /// The second side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub b: Option<f64>,
    /// `b / a`; of several rounds the geometric mean over pairs in their order, if both sides have
    /// the same number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// The lower end of its 95 % interval; absent for single runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_low: Option<f64>,
    /// The upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio_high: Option<f64>,
    /// The smallest relative difference that these rounds would probably have shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detectable: Option<f64>,
}

/// What came of a threshold for one store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoreThreshold {
    /// The store.
    pub store: String,
    /// The threshold, and what came of it.
    #[serde(flatten)]
    pub threshold: ThresholdReport,
}
