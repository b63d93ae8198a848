//! Counts operations without a response time, which no quantile includes.

use super::path::PassResult;
use crate::units;

/// Operations that were due and never sent, or never answered.
pub fn missing(driven: &PassResult) -> u64 {
    driven.counts.shed.operations + driven.counts.unknown.operations
}

/// A note on what the quantiles of `timed` operations leave out; `None` if nothing.
pub fn missing_note(timed: u64, missing: u64) -> Option<String> {
    let share = timed as f64 / (timed + missing).max(1) as f64;
    (missing > 0 && timed > 0).then(|| {
        format!(
            "{} of {} operations were due and have no response time, and are in no quantile: counted as infinitely \
             late, {:.1} % of all have an end, and every response quantile beyond that has none",
            units::count(missing),
            units::count(timed + missing),
            share * 100.0
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unanswered_samples_are_reported_with_their_share() {
        let note = missing_note(400, 600).unwrap();
        assert!(
            note.starts_with("600 of 1,000 operations") && note.contains("40.0 %"),
            "{note}"
        );
        assert_eq!((missing_note(400, 0), missing_note(0, 7)), (None, None));
    }
}
