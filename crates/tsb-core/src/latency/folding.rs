//! How the intervals of a long run stay few: they are folded in pairs as they age.
//!
//! A run keeps its first [`INTERVALS_MAX`] intervals as they are. From then on each new
//! interval has the two oldest that are still single made one, so that the number stays the
//! same. When all are pairs, new intervals are as long as a pair, and it begins again. The
//! intervals of a run therefore have two lengths at most, one twice the other, with the
//! longer ones first; and at which moment which are pairs depends on the time alone, so that
//! workers and watchers agree without a word.

use std::collections::VecDeque;

/// A run keeps about this many intervals: 17 minutes at a second each, a day at one or two
/// minutes each.
pub const INTERVALS_MAX: u64 = 1_024;

/// Which intervals of a run are folded by now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Folding {
    origin_ns: u64,
    // in [1, ..)
    interval_ns: u64,
    // Intervals at the front that are in pairs. Even, in [0, 2 * INTERVALS_MAX].
    folded: u64,
}

/// One step of folding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// All single intervals that begin in this time, two at most, become one.
    Pair { start_ns: u64, end_ns: u64 },
    /// All are pairs: single ones are as long as a pair from now on.
    Doubled,
}

impl Folding {
    /// Intervals of `interval_ns` from `origin_ns` on.
    pub(super) fn new(origin_ns: u64, interval_ns: u64) -> Self {
        Self {
            origin_ns,
            interval_ns: interval_ns.max(1),
            folded: 0,
        }
    }

    /// When the interval that `now_ns` lies in begins and ends.
    pub(super) fn around(&self, now_ns: u64) -> (u64, u64) {
        let passed = now_ns.saturating_sub(self.origin_ns) / self.interval_ns;
        let start_ns = self.origin_ns.saturating_add(passed.saturating_mul(self.interval_ns));
        (start_ns, start_ns.saturating_add(self.interval_ns))
    }

    /// The next step at `now_ns`; `None` while there is room.
    pub(super) fn step(&mut self, now_ns: u64) -> Option<Step> {
        if self.folded == 2 * INTERVALS_MAX {
            self.interval_ns = self.interval_ns.saturating_mul(2);
            self.folded = 0;
            return Some(Step::Doubled);
        }
        let ended = now_ns.saturating_sub(self.origin_ns) / self.interval_ns;
        if ended - self.folded / 2 <= INTERVALS_MAX {
            return None;
        }
        let start_ns = self.origin_ns + self.folded * self.interval_ns;
        self.folded += 2;
        Some(Step::Pair {
            start_ns,
            end_ns: start_ns + 2 * self.interval_ns,
        })
    }
}

/// What belongs to the intervals of a run, folded as they age.
#[derive(Clone, Debug)]
pub struct Timeline<T> {
    folding: Folding,
    // Each with the moment at which it begins.
    pairs: Vec<(u64, T)>,
    single: VecDeque<(u64, T)>,
}

impl<T> Timeline<T> {
    /// Of intervals of `interval_ns` that begin at `origin_ns` of the run's clock.
    pub fn new(origin_ns: u64, interval_ns: u64) -> Self {
        Self {
            folding: Folding::new(origin_ns, interval_ns),
            pairs: Vec::new(),
            single: VecDeque::new(),
        }
    }

    /// Adds what belongs to the time from `start_ns` to `now_ns`, then folds; `merge` adds the
    /// later of two to the earlier.
    pub fn push(&mut self, start_ns: u64, now_ns: u64, entry: T, mut merge: impl FnMut(&mut T, T)) {
        let within = self.folding.around(start_ns);
        match self.single.back_mut() {
            // Single intervals are longer by now than what is added.
            Some((begun_ns, last)) if self.folding.around(*begun_ns) == within => merge(last, entry),
            _ => self.single.push_back((start_ns, entry)),
        }
        self.fold(now_ns, merge);
    }

    /// Folds what is old enough at `now_ns`.
    pub fn fold(&mut self, now_ns: u64, mut merge: impl FnMut(&mut T, T)) {
        while let Some(step) = self.folding.step(now_ns) {
            match step {
                Step::Pair { end_ns, .. } => {
                    let mut pair: Option<(u64, T)> = None;
                    while let Some((begun_ns, entry)) = self.single.pop_front_if(|(begun_ns, _)| *begun_ns < end_ns) {
                        match &mut pair {
                            Some((_, pair)) => merge(pair, entry),
                            None => pair = Some((begun_ns, entry)),
                        }
                    }
                    self.pairs.extend(pair);
                }
                Step::Doubled => {
                    self.pairs.extend(self.single.drain(..));
                    self.single = std::mem::take(&mut self.pairs).into();
                }
            }
        }
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.pairs.len() + self.single.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All entries, the oldest first.
    pub fn into_entries(self) -> impl Iterator<Item = T> {
        self.pairs.into_iter().chain(self.single).map(|(_, entry)| entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A day of intervals of `interval_ns`, each of which counts one.
    fn timeline(interval_ns: u64, intervals: u64) -> Timeline<(u64, u64, u64)> {
        let mut timeline = Timeline::new(500, interval_ns);
        for index in 0..intervals {
            let start_ns = 500 + index * interval_ns;
            let end_ns = start_ns + interval_ns;
            timeline.push(start_ns, end_ns, (start_ns, end_ns, 1), |one, other| {
                assert_eq!(one.1, other.0, "neighbours only");
                *one = (one.0, other.1, one.2 + other.2);
            });
        }
        timeline
    }

    #[test]
    fn a_run_of_any_length_has_a_bounded_number_of_intervals() {
        for intervals in [0, 1, 1_023, 1_024, 1_025, 2_047, 2_048, 2_049, 3_600, 86_400, 604_800] {
            let timeline = timeline(1_000, intervals);
            let length = timeline.len() as u64;
            assert!(
                length <= INTERVALS_MAX + 1,
                "the last is not over: {intervals}: {length}"
            );
            assert!(length >= intervals.min(INTERVALS_MAX), "{intervals}: {length}");
            let entries: Vec<_> = timeline.into_entries().collect();
            assert_eq!(entries.iter().map(|entry| entry.2).sum::<u64>(), intervals);
            assert!(entries.windows(2).all(|two| two[0].1 == two[1].0), "no gap");
            let lengths: Vec<u64> = entries.iter().map(|entry| entry.1 - entry.0).collect();
            // But for the last, which may not be over.
            let whole = &lengths[..lengths.len().saturating_sub(1)];
            let (first, last) = (whole.first().copied(), whole.last().copied());
            assert!(
                lengths.is_sorted_by(|one, other| one >= other),
                "the oldest are the longest"
            );
            assert!(
                first.unwrap_or(0) <= 2 * last.unwrap_or(0),
                "{intervals}: {first:?} {last:?}"
            );
        }
    }

    #[test]
    fn a_pause_of_hours_folds_what_was_before_it() {
        let mut timeline = timeline(1_000, 1_500);
        let before = timeline.len();
        timeline.push(1_500_500, 90_000_000, (1_500_500, 90_000_000, 1), |one, other| {
            *one = (one.0, other.1, one.2 + other.2);
        });
        assert!(timeline.len() < before);
        let entries: Vec<_> = timeline.into_entries().collect();
        assert_eq!(entries.iter().map(|entry| entry.2).sum::<u64>(), 1_501);
    }

    #[test]
    fn who_folds_at_the_same_moment_folds_the_same() {
        let (mut steady, mut late) = (Folding::new(0, 10), Folding::new(0, 10));
        for now in (0..1_000_000).step_by(10) {
            while steady.step(now).is_some() {}
        }
        while late.step(999_990).is_some() {}
        assert_eq!(steady, late);
        assert_eq!(steady.around(999_995).1 % steady.interval_ns, 0);
    }
}
