//! The roster: which host reports next, in fleet time.
//!
//! A group (one host of a fleet) has an interval and a phase; its tick `k` is at `phase + k *
//! interval`. Groups with the same interval always report in the same order, so the sequence is a
//! merge of one fixed list per interval: memory is a few bytes per group, whatever the intervals
//! are, and no common period is needed. Groups of a recording have ticks at listed times instead:
//! see [`TickTimes`].

use std::ops::Range;
use std::sync::Arc;

use super::ScheduleError;
use super::rate::{Rate, gcd};
use super::tick_times::{TickTimes, TickTimesWalk};

/// Maximum number of different intervals: each step compares one head per interval.
const INTERVALS_MAX: usize = 64;

/// One host of a fleet, or any other source that reports as one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// Nanoseconds from one tick to the next. in [1, ..)
    pub interval_ns: u64,
    /// Fleet time of tick 0. in [0, interval_ns)
    pub phase_ns: u64,
    /// The first tick at which the group is alive.
    pub first_tick: u64,
    /// The first tick at which it is no longer alive; `u64::MAX` for never.
    pub end_tick: u64,
    /// Number of samples per tick, used to convert samples per second into a speed, and to count
    /// operations that were never prepared.
    pub samples: u32,
}

impl Group {
    /// A group that is always alive.
    pub const fn new(interval_ns: u64, phase_ns: u64, samples: u32) -> Self {
        Self {
            interval_ns,
            phase_ns,
            first_tick: 0,
            end_tick: u64::MAX,
            samples,
        }
    }

    fn check(&self) -> Result<(), &'static str> {
        if self.interval_ns == 0 {
            Err("the interval is 0")
        } else if self.phase_ns >= self.interval_ns {
            Err("the phase is not below the interval")
        } else {
            Ok(())
        }
    }
}

/// One operation: a tick of a group, with its fleet time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slot {
    /// The group's index in the roster.
    pub group: u32,
    /// The tick.
    pub tick: u64,
    /// `phase + tick * interval`, or the listed time of the tick: fleet time since the start, independent
    /// of the speed.
    pub offset_ns: u64,
}

/// A position in the roster's order: every slot up to and including this one.
///
/// It describes the exact set of operations that were issued, or were due, without storing them:
/// see [`Roster::ticks_through`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Frontier {
    /// Fleet time of the last slot.
    pub offset_ns: u64,
    /// Its group: of slots at the same time, the lower group comes first.
    pub group: u32,
}

impl From<Slot> for Frontier {
    fn from(slot: Slot) -> Self {
        Self {
            offset_ns: slot.offset_ns,
            group: slot.group,
        }
    }
}

/// The groups of a fleet, and the order of their ticks.
#[derive(Clone, Debug)]
pub struct Roster {
    groups: Arc<[Group]>,
    classes: Vec<Class>,
    // By group, if ticks have listed times; there are no classes then.
    tick_times: Option<Arc<[TickTimes]>>,
    // The roster of which this is a part, if it is one.
    whole: Option<Arc<WholeRoster>>,
}

/// A roster, and where a part of it begins.
#[derive(Debug)]
struct WholeRoster {
    roster: Roster,
    first_group: u32,
}

/// All groups with the same interval, in the order in which they report.
#[derive(Clone, Debug)]
struct Class {
    interval_ns: u64,
    // Invariant: sorted by (phase, group), not empty.
    order: Arc<[(u64, u32)]>,
    // No group of the class is alive at or beyond this tick.
    end_tick: u64,
    // Whether any of its groups begins or ends within the run.
    churns: bool,
}

impl Roster {
    /// A roster of these groups; a group's index is its place in the list.
    ///
    /// # Errors
    /// If a group has interval 0 or a phase not below its interval, if there are more than 2^32 groups,
    /// or more than 64 different intervals.
    pub fn new(groups: Vec<Group>) -> Result<Self, ScheduleError> {
        for (group, candidate) in groups.iter().enumerate() {
            candidate.check().map_err(|what| ScheduleError::Group { group, what })?;
        }
        if u32::try_from(groups.len()).is_err() {
            let group = groups.len();
            let what = "there are more than 2^32 groups";
            return Err(ScheduleError::Group { group, what });
        }
        let all = 0..groups.len() as u32;
        let classes = classes(&groups, all);
        if classes.len() > INTERVALS_MAX {
            let (intervals, max) = (classes.len(), INTERVALS_MAX);
            return Err(ScheduleError::Intervals { intervals, max });
        }
        Ok(Self {
            groups: groups.into(),
            classes,
            tick_times: None,
            whole: None,
        })
    }

    /// A roster of groups whose ticks have listed times. The groups are always alive and their phases
    /// are not used; their intervals, which must not be 0, only weigh them in [`Roster::split`].
    ///
    /// # Errors
    /// If the numbers of groups and of lists of tick times differ.
    pub fn of_tick_times(groups: Vec<Group>, tick_times: Vec<TickTimes>) -> Result<Self, ScheduleError> {
        if groups.len() != tick_times.len() {
            let group = groups.len().min(tick_times.len());
            let what = "there is not one list of tick times for each group";
            return Err(ScheduleError::Group { group, what });
        }
        Ok(Self {
            groups: groups.into(),
            classes: Vec::new(),
            tick_times: Some(tick_times.into()),
            whole: None,
        })
    }

    /// The same roster as the part of `whole` whose first group is `first_group` there. A schedule then
    /// counts the events of the whole, and the part has the due times that its operations have in it.
    #[must_use]
    pub fn part_of(mut self, whole: Self, first_group: u32) -> Self {
        self.whole = Some(Arc::new(WholeRoster {
            roster: whole,
            first_group,
        }));
        self
    }

    /// The roster whose events a schedule counts, and the first group of this one in it.
    pub(super) fn scheduled(&self) -> (&Self, u32) {
        match self.whole.as_deref() {
            Some(whole) => (&whole.roster, whole.first_group),
            None => (self, 0),
        }
    }

    /// The share of the samples of a schedule that are those of this roster: 1 unless it is a part.
    pub fn share_of_schedule(&self) -> f64 {
        let weight = |group: &Group| f64::from(group.samples.max(1)) / group.interval_ns as f64;
        let sum = |roster: &Self| roster.groups.iter().map(weight).sum::<f64>();
        let (whole, _) = self.scheduled();
        sum(self) / sum(whole)
    }

    /// The groups.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Iterates over all operations in order of (fleet time, group).
    pub fn walk(&self) -> Walk {
        if self.tick_times.is_some() {
            return self.walk_range(0..u32::MAX);
        }
        Walk::new(self.groups.clone(), &self.classes)
    }

    /// The same for a contiguous range of groups.
    pub fn walk_range(&self, range: Range<u32>) -> Walk {
        let end = range.end.min(self.groups.len() as u32);
        if let Some(tick_times) = &self.tick_times {
            return Walk {
                groups: self.groups.clone(),
                heads: Vec::new(),
                tick_times: Some(Box::new(TickTimesWalk::new(
                    tick_times.clone(),
                    range.start.min(end)..end,
                ))),
            };
        }
        Walk::new(self.groups.clone(), &classes(&self.groups, range.start.min(end)..end))
    }

    /// The natural rate: samples per time of the groups alive at fleet time `offset_ns`. It is exact; with
    /// listed tick times it is the nearest rate that fits.
    ///
    /// # Errors
    /// If the sum has no fraction below 2^56; with listed tick times, if none is near.
    pub fn rate_at(&self, offset_ns: u64) -> Result<Rate, ScheduleError> {
        if let Some(tick_times) = &self.tick_times {
            return sum_tick_times(tick_times, TickTimes::samples);
        }
        self.sum_rates(offset_ns, |group| u64::from(group.samples))
    }

    /// Operations per time of the groups alive at fleet time `offset_ns`.
    ///
    /// # Errors
    /// If the sum has no fraction below 2^56.
    pub fn operations_at(&self, offset_ns: u64) -> Result<Rate, ScheduleError> {
        if let Some(tick_times) = &self.tick_times {
            return sum_tick_times(tick_times, TickTimes::per_window);
        }
        self.sum_rates(offset_ns, |_| 1)
    }

    fn sum_rates(&self, offset_ns: u64, weight: impl Fn(&Group) -> u64) -> Result<Rate, ScheduleError> {
        let (mut events, mut per) = (0u128, 1u128);
        for class in &self.classes {
            let interval = u128::from(class.interval_ns);
            let groups = class.order.iter().map(|&(_, group)| &self.groups[group as usize]);
            let living = groups.filter(|group| {
                let tick = offset_ns / group.interval_ns;
                (group.first_tick..group.end_tick).contains(&tick)
            });
            let sum: u128 = living.map(|group| u128::from(weight(group))).sum();
            let divisor = gcd(per, interval);
            let (left, right) = (interval / divisor, per / divisor);
            let too_large = ScheduleError::RateRange { events, per_ns: per };
            let wide = |a: u128, b: u128| a.checked_mul(b).ok_or_else(|| too_large.clone());
            events = wide(events, left)?.saturating_add(wide(sum, right)?);
            per = wide(per, left)?;
        }
        Rate::from_wide(events, per)
    }

    /// The ticks of `group` at or before a position in the order, which is its share of the issued
    /// operations. Empty for `None`.
    pub fn ticks_through(&self, group: u32, frontier: Option<Frontier>) -> Range<u64> {
        let Some(&Group {
            interval_ns,
            phase_ns,
            first_tick,
            end_tick,
            ..
        }) = self.groups.get(group as usize)
        else {
            return 0..0;
        };
        if let Some(tick_times) = self.tick_times.as_ref().map(|tick_times| &tick_times[group as usize]) {
            // At the exact time of the position, only groups up to its own have reported.
            let end = frontier.map_or(0, |place| {
                tick_times.ticks_before(place.offset_ns.saturating_add(u64::from(group <= place.group)))
            });
            return 0..end;
        }
        let end = frontier.map_or(0, |place| {
            // At the exact time of the position, only groups up to its own have reported.
            let up_to = if group <= place.group {
                place.offset_ns.checked_sub(phase_ns)
            } else {
                place.offset_ns.checked_sub(phase_ns.saturating_add(1))
            };
            up_to.map_or(0, |time| (time / interval_ns).saturating_add(1))
        });
        let end = end.min(end_tick);
        first_tick.min(end)..end
    }

    /// Contiguous ranges of groups for `workers` workers, with about the same number of samples
    /// per second each. At least one range, and never more ranges than groups.
    pub fn split(&self, workers: usize) -> Vec<Range<u32>> {
        let weight = |group: &Group| f64::from(group.samples.max(1)) / group.interval_ns as f64;
        let total: f64 = self.groups.iter().map(weight).sum();
        let count = workers.clamp(1, self.groups.len().max(1));
        let mut ranges = Vec::with_capacity(count);
        let (mut start, mut sum) = (0, 0.0);
        for (index, group) in self.groups.iter().enumerate() {
            sum += weight(group);
            let made = ranges.len() + 1;
            let groups_left = self.groups.len() - index - 1;
            let is_full = sum >= total * made as f64 / count as f64 || groups_left == count - made;
            if is_full && made < count {
                ranges.push(start..index as u32 + 1);
                start = index as u32 + 1;
            }
        }
        ranges.push(start..self.groups.len() as u32);
        ranges
    }
}

/// The sum of `count` over the groups of one recording, which share one window.
fn sum_tick_times(tick_times: &[TickTimes], count: impl Fn(&TickTimes) -> u64) -> Result<Rate, ScheduleError> {
    let window_ns = tick_times.first().map_or(1, TickTimes::window_ns);
    let events: u128 = tick_times.iter().map(|tick_times| u128::from(count(tick_times))).sum();
    Rate::near(events, u128::from(window_ns))
}

fn classes(groups: &[Group], range: Range<u32>) -> Vec<Class> {
    let mut by_interval = std::collections::BTreeMap::<u64, Vec<(u64, u32)>>::new();
    for index in range {
        let group = &groups[index as usize];
        let class = by_interval.entry(group.interval_ns).or_default();
        class.push((group.phase_ns, index));
    }
    let class = |(interval_ns, mut order): (u64, Vec<(u64, u32)>)| {
        order.sort_unstable();
        let members = || order.iter().map(|&(_, index)| &groups[index as usize]);
        Class {
            interval_ns,
            end_tick: members().map(|group| group.end_tick).max().unwrap_or(0),
            churns: members().any(|group| group.first_tick > 0 || group.end_tick < u64::MAX),
            order: order.into(),
        }
    };
    by_interval.into_iter().map(class).collect()
}

/// Iterates over the operations of a roster in order, for ever or until the last group has ended.
#[derive(Clone, Debug)]
pub struct Walk {
    groups: Arc<[Group]>,
    heads: Vec<Head>,
    // `Some` if ticks have listed times.
    tick_times: Option<Box<TickTimesWalk>>,
}

#[derive(Clone, Debug)]
struct Head {
    class: Class,
    tick: u64,
    // Fleet time at which the tick begins: tick * interval.
    base_ns: u64,
    index: usize,
    // (offset, group) of the slot at the head of the list.
    next: (u64, u32),
}

impl Walk {
    fn new(groups: Arc<[Group]>, classes: &[Class]) -> Self {
        let head = |class: &Class| Head {
            class: class.clone(),
            tick: 0,
            base_ns: 0,
            index: 0,
            next: class.order[0],
        };
        let mut walk = Self {
            groups,
            heads: classes.iter().map(head).collect(),
            tick_times: None,
        };
        let groups = &walk.groups;
        walk.heads
            .retain_mut(|head| head.class.end_tick > 0 && head.settle(groups));
        walk
    }
}

impl Walk {
    /// Number of samples that a schedule counts for an operation: at least 1, so that an empty one
    /// takes its turn too.
    #[inline]
    pub(super) fn samples(&self, slot: Slot) -> u64 {
        let group = self.groups.get(slot.group as usize);
        group.map_or(1, |group| u64::from(group.samples.max(1)))
    }
}

impl Head {
    /// Moves to the next entry of the list; false at the end of time.
    #[inline]
    fn step(&mut self) -> bool {
        self.index += 1;
        if self.index == self.class.order.len() {
            self.index = 0;
            self.tick += 1;
            let Some(base_ns) = self.base_ns.checked_add(self.class.interval_ns) else {
                return false;
            };
            self.base_ns = base_ns;
            if self.tick >= self.class.end_tick {
                return false;
            }
        }
        let (phase, group) = self.class.order[self.index];
        self.next = (self.base_ns.saturating_add(phase), group);
        true
    }

    /// Moves on to a group that is alive; false if there is none.
    #[inline]
    fn settle(&mut self, groups: &[Group]) -> bool {
        if !self.class.churns {
            return true;
        }
        loop {
            let group = &groups[self.next.1 as usize];
            if (group.first_tick..group.end_tick).contains(&self.tick) {
                return true;
            }
            if !self.step() {
                return false;
            }
        }
    }
}

impl Iterator for Walk {
    type Item = Slot;

    #[inline]
    fn next(&mut self) -> Option<Slot> {
        let mut best = 0;
        for index in 1..self.heads.len() {
            if self.heads[index].next < self.heads[best].next {
                best = index;
            }
        }
        let Some(head) = self.heads.get_mut(best) else {
            return self.tick_times.as_mut()?.next();
        };
        let (offset_ns, group) = head.next;
        let tick = head.tick;
        if !(head.step() && head.settle(&self.groups)) {
            self.heads.swap_remove(best);
        }
        Some(Slot { group, tick, offset_ns })
    }
}
