//! The memory bound: memory of samples and keys is counted here, most of it before it is allocated.

use std::sync::atomic::{AtomicU64, Ordering};

/// The counted bytes and their limit. Sealing reserves an estimate first; what it takes beyond the
/// estimate is counted afterwards, so the growth of a list of blocks may exceed the limit. The table
/// of ids is not counted.
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

    /// The limit, in bytes.
    pub(super) fn max(&self) -> u64 {
        self.max
    }

    /// Counts `bytes`. Returns false, and counts nothing, if they exceed the limit.
    pub(super) fn take(&self, bytes: usize) -> bool {
        let before = self.taken.fetch_add(bytes as u64, Ordering::Relaxed);
        let fits = before.saturating_add(bytes as u64) <= self.max;
        if !fits {
            self.give(bytes);
        }
        fits
    }

    /// Uncounts `bytes`.
    pub(super) fn give(&self, bytes: usize) {
        self.taken.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    /// Replaces the bytes reserved in advance by those actually used.
    pub(super) fn adjust(&self, taken: usize, used: usize) {
        if used <= taken {
            self.give(taken - used);
        } else {
            // Count it even beyond the limit: these samples are accepted already.
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
