//! Thresholds: conditions that make a run fail.

use tsb_core::report::{FailWhen, Run, ThresholdOutcome, ThresholdReport};

use super::condition::{Condition, Outcome};
use super::reading::Reading;

/// A condition, and whether a run fails if it is true, or unless it is.
#[derive(Clone, Debug)]
pub struct Threshold {
    /// Whether a run fails if the condition is true, or unless it is.
    pub fail: FailWhen,
    /// The condition.
    pub condition: Condition,
}

impl Threshold {
    /// Fails a run if `condition` is true.
    pub const fn fail_if(condition: Condition) -> Self {
        Self {
            fail: FailWhen::If,
            condition,
        }
    }

    /// Fails a run unless `condition` is true.
    pub const fn fail_unless(condition: Condition) -> Self {
        Self {
            fail: FailWhen::Unless,
            condition,
        }
    }

    /// What comes of it for `run`; a change is one from `baseline`.
    pub fn check(&self, run: &Run, baseline: Option<&Run>) -> ThresholdReport {
        self.check_rounds(&[run], baseline.as_slice())
    }

    /// What comes of it for repeated rounds, as [`Condition::check_rounds`] takes them.
    pub fn check_rounds(&self, runs: &[&Run], baseline: &[&Run]) -> ThresholdReport {
        let evaluation = self.condition.check_rounds(runs, baseline);
        let outcome = match (evaluation.outcome, self.fail) {
            (Outcome::Absent, _) => ThresholdOutcome::Absent,
            (Outcome::True, FailWhen::If) | (Outcome::False, FailWhen::Unless) => ThresholdOutcome::Crossed,
            (Outcome::False, FailWhen::If) | (Outcome::True, FailWhen::Unless) => ThresholdOutcome::Passed,
        };
        let mut report = ThresholdReport::new(self.fail, self.condition.to_string(), outcome, evaluation.sentence);
        report.unit = self.condition.figure().map(|figure| figure.unit().name().to_owned());
        report.measured = evaluation.measured.and_then(Reading::value);
        report.baseline = evaluation.baseline.and_then(Reading::value);
        report.limit = self.condition.limit();
        report
    }
}
