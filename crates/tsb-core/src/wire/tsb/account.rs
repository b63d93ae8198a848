//! Counts which samples of a session arrived, are missing, or arrived twice.

use std::collections::VecDeque;
use std::ops::Range;

use crate::wire::Sequence;

/// Maximum number of gaps that are remembered, to distinguish late samples from repeated ones.
const HOLES: usize = 1024;

/// The account of one session.
#[derive(Clone, Debug, Default)]
pub(super) struct Account {
    sequence: Sequence,
    /// The latest gaps in order: samples that have not arrived.
    holes: VecDeque<Range<u64>>,
}

impl Account {
    pub(super) fn sequence(&self) -> Sequence {
        self.sequence
    }

    /// Records `count` samples starting at number `first`. Returns false if they arrived before,
    /// or too late to decide.
    #[inline]
    pub(super) fn book(&mut self, first: u64, count: u64) -> bool {
        if first < self.sequence.next {
            return self.late(first, count);
        }
        self.reach(first);
        self.sequence.next = first.saturating_add(count);
        true
    }

    /// Records that the sender has reached number `next`: samples before it that have not arrived
    /// are missing.
    pub(super) fn reach(&mut self, next: u64) {
        let expected = self.sequence.next;
        if next <= expected {
            return;
        }
        self.sequence.gaps += 1;
        self.sequence.missing = self.sequence.missing.saturating_add(next - expected);
        self.sequence.next = next;
        if self.holes.len() == HOLES {
            self.holes.pop_front();
        }
        self.holes.push_back(expected..next);
    }

    /// Records the end of the data.
    pub(super) fn end(&mut self, total: u64) {
        self.reach(total);
        self.sequence.has_ended = true;
    }

    #[cold]
    fn late(&mut self, first: u64, count: u64) -> bool {
        let end = first.saturating_add(count);
        let fits = |hole: &Range<u64>| hole.start <= first && end <= hole.end;
        let Some(index) = self.holes.iter().position(fits) else {
            self.sequence.repeated += count;
            return false;
        };
        self.sequence.missing -= count;
        let hole = self.holes[index].clone();
        let parts = [hole.start..first, end..hole.end];
        self.holes.remove(index);
        for part in parts.into_iter().rev().filter(|part| !part.is_empty()) {
            self.holes.insert(index, part);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn missing_samples_are_counted_exactly() {
        let mut account = Account::default();
        assert!(account.book(0, 10));
        assert!(account.book(30, 10));
        assert_eq!((account.sequence().gaps, account.sequence().missing), (1, 20));
        // In the middle of the hole, once.
        assert!(account.book(15, 5));
        assert!(!account.book(15, 5));
        assert_eq!((account.sequence().missing, account.sequence().repeated), (15, 5));
        assert!(account.book(10, 5));
        assert!(account.book(20, 10));
        assert_eq!(account.sequence().missing, 0);
        account.end(47);
        let last = account.sequence();
        assert_eq!((last.missing, last.gaps, last.next, last.has_ended), (7, 2, 47, true));
    }

    #[test]
    fn numbers_at_the_end_of_the_world_do_not_wrap() {
        let mut account = Account::default();
        assert!(account.book(u64::MAX - 1, 100));
        assert!(!account.book(u64::MAX - 1, 100));
        assert_eq!(account.sequence().missing, u64::MAX - 1);
    }

    proptest! {
        /// Whatever is lost, repeated or late by less than the holes that are kept.
        #[test]
        fn the_account_is_that_of_a_set(
            parts in proptest::collection::vec((1..50_u64, any::<bool>(), 0..6_usize), 1..200),
        ) {
            let mut at = 0;
            let mut order = Vec::new();
            for (index, (count, comes, delay)) in parts.iter().enumerate() {
                if *comes {
                    order.push((index + delay, at, *count));
                }
                at += count;
            }
            order.sort_by_key(|(place, ..)| *place);
            let mut account = Account::default();
            let mut came = 0;
            for (_, first, count) in &order {
                prop_assert!(account.book(*first, *count));
                came += count;
            }
            account.end(at);
            prop_assert_eq!(account.sequence().missing, at - came);
            for (_, first, count) in &order {
                prop_assert!(!account.book(*first, *count));
            }
            prop_assert_eq!(account.sequence().repeated, came);
        }
    }
}
