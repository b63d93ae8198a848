//! Tick times: the ticks of a group that reports at listed times, which repeat in each window.
//!
//! A simulated host reports at an interval, a recorded host at its recorded times. Its tick `k` is
//! the `k`-th time of a list, and after the last the list repeats one window later. Copies of a
//! host share the list, each with a time shift of its own, so a group takes a few bytes however
//! many ticks it has.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use super::roster::Slot;

/// The times of one group's ticks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TickTimes {
    // Invariant: ascending, distinct, below `window_ns`, not empty.
    times: Arc<[u64]>,
    window_ns: u64,
    // in [0, window_ns)
    shift_ns: u64,
    // Index of the first of `times` at or after the shift; `times.len()` if there is none.
    first: u64,
    samples: u64,
}

impl TickTimes {
    /// `times` are offsets within a window of `window_ns`, ascending and distinct; the group
    /// starts `shift_ns` into the window. `samples` is the number of samples per window.
    ///
    /// `None` if the times break these rules, or the shift is not below the window.
    pub fn new(times: Arc<[u64]>, window_ns: u64, shift_ns: u64, samples: u64) -> Option<Self> {
        let is_ascending = times.is_sorted_by(|left, right| left < right);
        let last = *times.last()?;
        if !is_ascending || last >= window_ns || shift_ns >= window_ns {
            return None;
        }
        Some(Self {
            first: times.partition_point(|&time| time < shift_ns) as u64,
            times,
            window_ns,
            shift_ns,
            samples,
        })
    }

    /// Number of ticks per window.
    pub fn per_window(&self) -> u64 {
        self.times.len() as u64
    }

    /// Length of the window, in nanoseconds.
    pub fn window_ns(&self) -> u64 {
        self.window_ns
    }

    /// Number of samples per window.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// Index of tick `tick` in the list of times.
    #[inline]
    pub fn place(&self, tick: u64) -> usize {
        (self.first.wrapping_add(tick) % self.per_window()) as usize
    }

    /// Fleet time of tick `tick`; saturates.
    #[inline]
    pub fn offset_ns(&self, tick: u64) -> u64 {
        let turn = u128::from(self.first) + u128::from(tick);
        let (window, place) = (turn / u128::from(self.per_window()), self.place(tick));
        let time = window * u128::from(self.window_ns) + u128::from(self.times[place]) - u128::from(self.shift_ns);
        u64::try_from(time).unwrap_or(u64::MAX)
    }

    /// Number of ticks before a fleet time, which is also the first tick at or after it.
    pub fn ticks_before(&self, offset_ns: u64) -> u64 {
        let at = u128::from(offset_ns) + u128::from(self.shift_ns);
        let window = u128::from(self.window_ns);
        let within = (at % window) as u64;
        let passed = at / window * u128::from(self.per_window());
        let count = passed + self.times.partition_point(|&time| time < within) as u128 - u128::from(self.first);
        u64::try_from(count).unwrap_or(u64::MAX)
    }

    /// Position of a fleet time within the window.
    pub fn within_window(&self, offset_ns: u64) -> u64 {
        ((u128::from(offset_ns) + u128::from(self.shift_ns)) % u128::from(self.window_ns)) as u64
    }
}

/// Iterates over the ticks of some groups in order of (fleet time, group).
#[derive(Clone, Debug)]
pub(super) struct TickTimesWalk {
    tick_times: Arc<[TickTimes]>,
    // The next tick of each group, as (time, group, tick).
    next: BinaryHeap<Reverse<(u64, u32, u64)>>,
}

impl TickTimesWalk {
    pub(super) fn new(tick_times: Arc<[TickTimes]>, groups: Range<u32>) -> Self {
        let first = |group: u32| Some(Reverse((tick_times.get(group as usize)?.offset_ns(0), group, 0)));
        Self {
            next: groups.filter_map(first).collect(),
            tick_times,
        }
    }
}

impl Iterator for TickTimesWalk {
    type Item = Slot;

    #[inline]
    fn next(&mut self) -> Option<Slot> {
        let mut head = self.next.peek_mut()?;
        let Reverse((offset_ns, group, tick)) = *head;
        let following = self.tick_times[group as usize].offset_ns(tick + 1);
        if following == u64::MAX {
            std::collections::binary_heap::PeekMut::pop(head);
        } else {
            *head = Reverse((following, group, tick + 1));
        }
        Some(Slot { group, tick, offset_ns })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::schedule::{Frontier, Group, Pace, Roster, Speed, Timetable};
    use crate::time::SECOND_NS;

    fn tick_times(times: &[u64], window_ns: u64, shift_ns: u64) -> TickTimes {
        TickTimes::new(times.into(), window_ns, shift_ns, 2 * times.len() as u64).unwrap()
    }

    fn roster(all: &[TickTimes]) -> Roster {
        let groups = all.iter().map(|_| Group::new(100, 0, 2)).collect();
        Roster::of_tick_times(groups, all.to_vec()).unwrap()
    }

    #[test]
    fn the_window_comes_again_and_a_copy_begins_within_it() {
        let offsets = |tick_times: &TickTimes| (0..6).map(|tick| tick_times.offset_ns(tick)).collect::<Vec<_>>();
        assert_eq!(offsets(&tick_times(&[0, 3, 10], 20, 0)), [0, 3, 10, 20, 23, 30]);
        let shifted = tick_times(&[0, 3, 10], 20, 3);
        assert_eq!(offsets(&shifted), [0, 7, 17, 20, 27, 37]);
        assert_eq!((shifted.place(0), shifted.place(2), shifted.place(3)), (1, 0, 1));
        assert_eq!(offsets(&tick_times(&[0, 3, 10], 20, 11)), [9, 12, 19, 29, 32, 39]);
        assert_eq!(shifted.within_window(17), 0);
        for bad in [&[][..], &[3, 3], &[4, 3], &[20]] {
            assert_eq!(TickTimes::new(bad.into(), 20, 0, 1), None, "{bad:?}");
        }
        assert_eq!(TickTimes::new([1].into(), 20, 20, 1), None);
    }

    #[test]
    fn rates_are_those_of_the_window() {
        let both = roster(&[tick_times(&[0, 3, 10], SECOND_NS, 0), tick_times(&[5], SECOND_NS, 2)]);
        assert_eq!(both.rate_at(0).unwrap().as_per_second(), 8.0);
        assert_eq!(both.operations_at(7).unwrap().as_per_second(), 4.0);
        // Three years: no exact fraction of 56 bits, and yet a rate.
        let long = roster(&[tick_times(&[0, 7], 94_608_000 * SECOND_NS + 1, 0)]);
        let natural = long.rate_at(0).unwrap();
        assert!(
            (natural.as_per_second() * 94_608_000.0 - 4.0).abs() < 1e-6,
            "{natural:?}"
        );
        let speed = Speed::from_rates("54000".parse().unwrap(), natural).unwrap();
        assert!(
            (speed.as_f64() / (54_000.0 * 94_608_000.0 / 4.0) - 1.0).abs() < 1e-9,
            "{speed:?}"
        );
        assert!(Roster::of_tick_times(vec![Group::new(100, 0, 1)], Vec::new()).is_err());
    }

    proptest! {
        #[test]
        fn the_walk_is_in_order_and_every_place_of_it_says_what_was_before(
            lists in proptest::collection::vec((proptest::collection::btree_set(0u64..50, 1..6), 0u64..50), 1..5),
            cut in 0usize..60,
        ) {
            let all: Vec<TickTimes> = lists
                .iter()
                .map(|(times, shift)| tick_times(&times.iter().copied().collect::<Vec<_>>(), 50, *shift))
                .collect();
            let roster = roster(&all);
            let slots: Vec<_> = roster.walk().take(60).collect();
            prop_assert!(slots.is_sorted_by_key(|slot| (slot.offset_ns, slot.group)));
            let mut ticks = vec![0; all.len()];
            for slot in &slots {
                prop_assert_eq!(slot.tick, ticks[slot.group as usize]);
                prop_assert_eq!(slot.offset_ns, all[slot.group as usize].offset_ns(slot.tick));
                prop_assert_eq!(all[slot.group as usize].ticks_before(slot.offset_ns), slot.tick);
                ticks[slot.group as usize] += 1;
            }
            let frontier = slots.get(cut).copied().map(Frontier::from);
            for group in 0..all.len() as u32 {
                let before = slots[..(cut + 1).min(slots.len())].iter().filter(|slot| slot.group == group).count();
                if frontier.is_some() {
                    prop_assert_eq!(roster.ticks_through(group, frontier), 0..before as u64);
                }
                prop_assert_eq!(roster.ticks_through(group, None), 0..0);
            }
            let timetable = Timetable {
                roster: roster.clone(),
                pace: Pace::Fleet(Speed::NATURAL),
                end_ns: None,
                fleet_end_ns: Some(100),
            };
            let whole = timetable.agenda(0..all.len() as u32).count();
            prop_assert_eq!(whole as u64, 2 * lists.iter().map(|(times, _)| times.len() as u64).sum::<u64>());
        }
    }
}
