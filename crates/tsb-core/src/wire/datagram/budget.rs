//! Memory budgets that all peers of a listener share, since a single host can pretend to be many
//! peers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A number of bytes that all decoders of a listener together may hold.
#[derive(Clone, Debug)]
pub struct Budget(Arc<AtomicUsize>);

impl Budget {
    /// A budget of `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Bytes not taken yet.
    pub fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes `bytes`; false, and nothing taken, if fewer are left.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken.is_ok()
    }

    /// Returns bytes that were taken.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Memory that the decoders of one listener share.
#[derive(Clone, Debug, Default)]
pub struct Room {
    /// For names: tables of names, and of announced series. When it is used up, a text decoder
    /// asks its sink for the series of each sample, which is slower but loses nothing; a further
    /// announcement counts as malformed.
    pub names: Budget,
    /// For samples that wait for their announcement, and for bodies of requests.
    pub held: Budget,
}

impl Room {
    /// Budgets of `bytes` bytes each.
    pub fn of(bytes: usize) -> Self {
        Self {
            names: Budget::new(bytes),
            held: Budget::new(bytes),
        }
    }
}

impl Default for Budget {
    /// 256 MiB each: enough for the tables of 32 million announced series.
    fn default() -> Self {
        Self::new(256 << 20)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_never_overdrawn() {
        let budget = Budget::new(10);
        let same = budget.clone();
        assert!(budget.take(8));
        assert!(!same.take(3));
        assert!(same.take(2));
        budget.give_back(5);
        assert_eq!(same.left(), 5);
    }
}
