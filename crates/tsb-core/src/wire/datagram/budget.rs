//! Memory that all peers of a listener share, because anybody can pretend to be many.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// So many bytes may be held for peers, all decoders of a listener together.
#[derive(Clone, Debug)]
pub struct Budget(Arc<AtomicUsize>);

impl Budget {
    /// A budget of so many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Bytes that are left.
    pub fn left(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Takes `bytes`, if so many are left.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(bytes));
        taken.is_ok()
    }

    /// Gives back what was taken.
    pub(crate) fn give_back(&self, bytes: usize) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Memory that the decoders of one listener share.
#[derive(Clone, Debug, Default)]
pub struct Room {
    /// Names that decoders remember: tables of names, and of announced series. Where it is used
    /// up, a text decoder asks its sink for the series of each sample, which is slower and loses
    /// nothing; a further announcement is malformed.
    pub names: Budget,
    /// Samples that wait for their announcement, and bodies of requests.
    pub held: Budget,
}

impl Room {
    /// Room for `bytes` bytes of either kind.
    pub fn of(bytes: usize) -> Self {
        Self {
            names: Budget::new(bytes),
            held: Budget::new(bytes),
        }
    }
}

impl Default for Budget {
    /// 256 MiB: the tables of 32 million announced series, or what fell between them.
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
