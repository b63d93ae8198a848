//! What came of the thresholds of a run, and the attempts before it, as text.

use tsb_core::report::{AttemptReport, FailWhen, Run, ThresholdOutcome, ThresholdReport};

use super::lines::Lines;
use tsb_run::units::{nanos, scaled};

/// The lines; none where a run has neither.
pub(super) fn text(run: &Run, lines: &mut Lines) {
    if !run.attempts.is_empty() {
        lines.heading("Attempts before this one, which was repeated");
        for (index, attempt) in run.attempts.iter().enumerate() {
            lines.sentence(format!("{}. {}", index + 1, of_attempt(attempt)));
        }
    }
    if !run.thresholds.is_empty() {
        lines.heading("Thresholds");
        for threshold in &run.thresholds {
            lines.sentence(sentence(threshold));
        }
    }
}

/// An attempt in one sentence.
pub(super) fn of_attempt(attempt: &AttemptReport) -> String {
    let p99 = attempt.response.p99_ns.map_or("-".to_owned(), nanos);
    let reason = attempt.verdict.reasons.first().map_or("", String::as_str);
    format!(
        "{}: held {} samples per second, response p99 {p99}; {reason}",
        attempt.verdict.status,
        scaled(attempt.held_per_second),
    )
}

/// What came of a threshold, with its flag: `threshold crossed: ...`.
pub fn sentence(threshold: &ThresholdReport) -> String {
    let outcome = match threshold.outcome {
        ThresholdOutcome::Passed => "threshold passed",
        ThresholdOutcome::Crossed => "threshold crossed",
        _ => "threshold not decided",
    };
    let flag = match threshold.fail {
        FailWhen::If => "--fail-if",
        FailWhen::Unless => "--fail-unless",
    };
    format!("{outcome}: {} ({flag} '{}')", threshold.why, threshold.condition)
}
