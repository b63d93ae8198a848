//! The time of a quick run: what a sample will take is estimated from the slowest one of its store.

use tsb_core::time::SECOND_NS;

/// What is left of the time.
#[derive(Debug)]
pub(super) struct Budget {
    seconds: Option<u64>,
    /// When it began, in nanoseconds.
    began: u64,
    /// Seconds per key of the slowest sample of each store, with opening and removing its place; 0
    /// before the first.
    slowest: Vec<f64>,
    /// Samples of each store that were left out.
    left_out: Vec<u64>,
}

impl Budget {
    /// Of some stores, from `now` on; without a limit if there are no seconds.
    pub(super) fn new(seconds: Option<u64>, stores: usize, now: u64) -> Self {
        Self {
            seconds,
            began: now,
            slowest: vec![0.0; stores],
            left_out: vec![0; stores],
        }
    }

    /// Whether a sample of this number of keys would probably end in time; counts it if not.
    pub(super) fn allows(&mut self, store: usize, keys: usize, now: u64) -> bool {
        let Some(seconds) = self.seconds else { return true };
        let elapsed = now.saturating_sub(self.began) as f64 / SECOND_NS as f64;
        let is_allowed = elapsed + self.slowest[store] * keys as f64 <= seconds as f64;
        self.left_out[store] += u64::from(!is_allowed);
        is_allowed
    }

    /// Learns from a sample.
    pub(super) fn note(&mut self, store: usize, keys: usize, began: u64, ended: u64) {
        let seconds = ended.saturating_sub(began) as f64 / SECOND_NS as f64;
        self.slowest[store] = self.slowest[store].max(seconds / keys.max(1) as f64);
    }

    /// What was left out, as sentences. `names` are those of the stores.
    pub(super) fn left_out(&self, names: &[String]) -> impl Iterator<Item = String> {
        let counted = names.iter().zip(&self.left_out).filter(|(_, count)| **count > 0);
        let seconds = self.seconds.unwrap_or_default();
        counted.map(move |(name, count)| {
            format!("{name}: {count} samples, as the {seconds} s of a quick run were nearly over")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_end_too_late_is_left_out_and_counted() {
        let mut budget = Budget::new(Some(10), 2, 5 * SECOND_NS);
        // Nothing is known of either store.
        assert!(budget.allows(0, 1_000_000, 5 * SECOND_NS));
        budget.note(0, 500, 5 * SECOND_NS, 6 * SECOND_NS);
        // 2 ms per key: 4,000 keys are 8 s, which end 9 s after the start.
        assert!(budget.allows(0, 4_000, 6 * SECOND_NS));
        assert!(!budget.allows(0, 4_501, 6 * SECOND_NS));
        assert!(budget.allows(1, 4_501, 6 * SECOND_NS));
        budget.note(0, 1_000, 6 * SECOND_NS, 7 * SECOND_NS);
        // The slowest one counts.
        assert!(!budget.allows(0, 4_001, 7 * SECOND_NS));
        assert!(!budget.allows(1, 1, 16 * SECOND_NS));
        let names = ["sqlite:".to_owned(), "memory:".to_owned()];
        let left_out: Vec<String> = budget.left_out(&names).collect();
        assert_eq!(
            left_out,
            [
                "sqlite:: 2 samples, as the 10 s of a quick run were nearly over",
                "memory:: 1 samples, as the 10 s of a quick run were nearly over"
            ]
        );
    }

    #[test]
    fn a_whole_run_has_no_limit() {
        let mut budget = Budget::new(None, 1, 0);
        budget.note(0, 1, 0, 3_600 * SECOND_NS);
        assert!(budget.allows(0, 1_000, u64::MAX));
        assert_eq!(budget.left_out(&["memory:".to_owned()]).count(), 0);
    }
}
