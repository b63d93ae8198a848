//! The result of `tsb conformance`: the clauses of the store contract, checked on one store.

use serde::{Deserialize, Serialize};

use super::Written;

/// The checks of one store.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ConformanceReport {
    /// The program and the machine.
    #[serde(flatten)]
    pub written: Written,
    /// The store, as it was named, without credentials.
    pub store: String,
    /// Whether the user stopped it before the last check.
    pub interrupted: bool,
    /// The checks, by clause.
    pub checks: Vec<CheckReport>,
}

impl ConformanceReport {
    /// A report of no checks, by this program on this machine.
    pub fn new(store: impl Into<String>) -> Self {
        Self {
            written: Written::here(),
            store: store.into(),
            interrupted: false,
            checks: Vec::new(),
        }
    }

    /// Number of checks with this outcome.
    pub fn count(&self, outcome: CheckResult) -> usize {
        self.checks.iter().filter(|check| check.outcome == outcome).count()
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CheckReport {
    /// The clause of the contract, from 1; 0 if the store could not be opened.
    pub clause: u8,
    /// The name of the check, which begins with its clause.
    pub name: String,
    /// The outcome.
    pub outcome: CheckResult,
    /// What does not hold, or why it was skipped; absent if it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl CheckReport {
    /// A check that passed.
    pub fn new(clause: u8, name: impl Into<String>) -> Self {
        Self {
            clause,
            name: name.into(),
            outcome: CheckResult::Pass,
            why: None,
        }
    }

    /// The same check with another outcome.
    #[must_use]
    pub fn because(self, outcome: CheckResult, why: impl Into<String>) -> Self {
        Self {
            outcome,
            why: Some(why.into()),
            ..self
        }
    }
}

/// The outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckResult {
    /// The clause holds.
    Pass,
    /// The clause does not hold.
    Fail,
    /// It was not checked.
    Skip,
}

impl CheckResult {
    /// The word in a list.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Skip => "skip",
        }
    }
}
