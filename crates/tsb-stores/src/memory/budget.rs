//! The store's byte bound: one count that every growth asks first.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes taken and the most that may be. Memory is asked for before it is allocated, so
/// the bound holds at every moment.
#[derive(Debug)]
pub(super) struct Budget {
    taken: AtomicU64,
    max: u64,
}

impl Budget {
    pub(super) fn new(max: Option<u64>) -> Self {
        Self {
            taken: AtomicU64::new(0),
            max: max.unwrap_or(u64::MAX),
        }
    }

    /// The most bytes that may be taken.
    pub(super) fn max(&self) -> u64 {
        self.max
    }

    /// Takes `bytes`, or nothing and says false.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let before = self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
        let fits = before.saturating_add(bytes as u64) <= self.max;
        if !fits {
            self.give(bytes);
        }
        fits
    }

    /// Gives `bytes` back.
    pub(super) fn give(&self, bytes: usize) {
        self.taken.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// Replaces what was taken in advance by what was used.
    pub(super) fn settle(&self, taken: usize, used: usize) {
        if used <= taken {
            self.give(taken - used);
        } else {
            // It is needed to keep what was accepted.
            self.taken.fetch_add((used - taken) as u64, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_never_passed_and_room_comes_back() {
        let budget = Budget::new(Some(100));
        assert!(budget.take(60));
        assert!(!budget.take(41));
        assert!(budget.take(40));
        budget.give(60);
        assert!(budget.take(60));
        assert!(!budget.take(1));
        assert!(Budget::new(None).take(usize::MAX / 2));
    }
}
