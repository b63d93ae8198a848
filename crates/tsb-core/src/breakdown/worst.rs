//! The slowest operations of a run, one by one.

use std::cmp::Reverse;
use std::collections::VecDeque;

use super::Parts;

/// Number of slowest operations that are kept.
pub const WORST_MAX: usize = 100;

/// One of the slowest operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorstOperation {
    /// Its response time, in nanoseconds.
    pub response_ns: u64,
    /// Its group in the roster.
    pub group: u32,
    /// Tick of the group.
    pub tick: u64,
    /// When it was due, in nanoseconds of the run's clock; in a closed loop, when it started.
    pub due_ns: u64,
    /// What its response time consists of.
    pub parts: Parts,
}

impl Ord for WorstOperation {
    /// The slower is the greater; of two that took the same time, that which was due earlier.
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        let key = |one: &Self| (one.response_ns, Reverse((one.due_ns, one.group, one.tick)));
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for WorstOperation {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Keeps the slowest. An operation that is none of them costs one comparison. While response times
/// only grow, as they do behind a store that is too slow, every operation is one of them: it takes
/// the place of the fastest at one end, and goes to the other.
#[derive(Clone, Debug)]
pub(super) struct Worst {
    // Slowest last. Never longer than WORST_MAX.
    sorted: VecDeque<WorstOperation>,
    floor_ns: u64,
}

impl Worst {
    pub(super) fn new() -> Self {
        Self {
            sorted: VecDeque::with_capacity(WORST_MAX),
            floor_ns: 0,
        }
    }

    /// Only what took longer than this can be one of the slowest.
    #[inline]
    pub(super) const fn floor_ns(&self) -> u64 {
        self.floor_ns
    }

    #[inline]
    pub(super) fn keep(&mut self, operation: WorstOperation) {
        if self.sorted.len() == WORST_MAX {
            if self.sorted.front().is_some_and(|fastest| operation < *fastest) {
                return;
            }
            self.sorted.pop_front();
        }
        match self.sorted.back() {
            Some(slowest) if operation.response_ns <= slowest.response_ns => self.insert(operation),
            _ => self.sorted.push_back(operation),
        }
        if self.sorted.len() == WORST_MAX {
            self.floor_ns = self.sorted.front().map_or(0, |fastest| fastest.response_ns);
        }
    }

    #[cold]
    fn insert(&mut self, operation: WorstOperation) {
        let place = self.sorted.partition_point(|one| *one < operation);
        self.sorted.insert(place, operation);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        other.sorted.iter().for_each(|operation| self.keep(*operation));
    }

    pub(super) fn clear(&mut self) {
        self.sorted.clear();
        self.floor_ns = 0;
    }

    /// Slowest first.
    pub(super) fn list(&self) -> Vec<WorstOperation> {
        self.sorted.iter().rev().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(response_ns: u64, tick: u64) -> WorstOperation {
        WorstOperation {
            response_ns,
            group: 0,
            tick,
            due_ns: tick,
            parts: Parts::default(),
        }
    }

    #[test]
    fn the_slowest_are_kept_whatever_the_order() {
        // 7,919 is a prime, so every remainder comes once.
        let mut halves = [Worst::new(), Worst::new()];
        for tick in 0..7_919u64 {
            let response_ns = 1 + tick * 31 % 7_919;
            let worst = &mut halves[(tick % 2) as usize];
            if response_ns > worst.floor_ns() {
                worst.keep(operation(response_ns, tick));
            }
        }
        let [mut one, other] = halves;
        one.merge(&other);
        let kept: Vec<u64> = one.list().iter().map(|one| one.response_ns).collect();
        assert_eq!(kept, (7_820..=7_919).rev().collect::<Vec<u64>>());
        assert_eq!(one.floor_ns(), 7_820);
    }

    #[test]
    fn of_equally_slow_operations_the_first_are_kept() {
        let mut worst = Worst::new();
        (0..300).rev().for_each(|tick| worst.keep(operation(50, tick)));
        let kept: Vec<u64> = worst.list().iter().map(|one| one.tick).collect();
        assert_eq!(kept, (0..WORST_MAX as u64).collect::<Vec<u64>>());
    }
}
