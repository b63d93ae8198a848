//! Bounds the number of intervals of a long run: as intervals age, they are merged in pairs
//! ("folded").
//!
//! A run keeps its first [`INTERVALS_MAX`] intervals unchanged. From then on, each new interval
//! causes the two oldest unpaired ones to be merged into one, so the number stays the same. When
//! all are pairs, new intervals are made as long as a pair, and the process starts again. So the
//! intervals of a run have at most two lengths, one twice the other, with the longer ones first.
//! Which intervals are merged at a given time depends only on that time, so workers and observers
//! get the same intervals without communication.

use std::collections::VecDeque;

/// Maximum number of intervals of a run, approximately: 17 minutes at one second each, a day at
/// one or two minutes each.
pub const INTERVALS_MAX: u64 = 1_024;

/// Which intervals of a run are merged so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Folding {
    origin_ns: u64,
    // in [1, ..)
    interval_ns: u64,
    // Number of intervals at the front that are merged in pairs. Even, in [0, 2 * INTERVALS_MAX].
    folded: u64,
}

/// One step of folding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// All unpaired intervals that begin in this time, at most two, become one.
    Pair { start_ns: u64, end_ns: u64 },
    /// All intervals are pairs: from now on a single one is as long as a pair was.
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

    /// The start and the end of the interval that contains `now_ns`.
    pub(super) fn around(&self, now_ns: u64) -> (u64, u64) {
        let passed = now_ns.saturating_sub(self.origin_ns) / self.interval_ns;
        let start_ns = self.origin_ns.saturating_add(passed.saturating_mul(self.interval_ns));
        (start_ns, start_ns.saturating_add(self.interval_ns))
    }

    /// The next step due at `now_ns`; `None` when none is.
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

/// One entry per interval of a run, merged as the intervals age.
#[derive(Clone, Debug)]
pub struct Timeline<T> {
    folding: Folding,
    // Each entry with the start of its interval.
    pairs: Vec<(u64, T)>,
    single: VecDeque<(u64, T)>,
}

impl<T> Timeline<T> {
    /// A timeline of intervals of `interval_ns` that begin at `origin_ns` of the run's clock.
    pub fn new(origin_ns: u64, interval_ns: u64) -> Self {
        Self {
            folding: Folding::new(origin_ns, interval_ns),
            pairs: Vec::new(),
            single: VecDeque::new(),
        }
    }

    /// Adds an entry for the time from `start_ns` to `now_ns`, then merges what is old enough.
    /// `merge` adds the later of two entries to the earlier.
    pub fn push(&mut self, start_ns: u64, now_ns: u64, entry: T, mut merge: impl FnMut(&mut T, T)) {
        let within = self.folding.around(start_ns);
        match self.single.back_mut() {
            // Single intervals have grown longer than the added one.
            Some((begun_ns, last)) if self.folding.around(*begun_ns) == within => merge(last, entry),
            _ => self.single.push_back((start_ns, entry)),
        }
        self.fold(now_ns, merge);
    }

    /// Merges the entries that are old enough at `now_ns`.
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

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.pairs.len() + self.single.len()
    }

    /// Whether there are no entries.
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
