//! Computes how far a schedule has come at a given time without walking to it: a rate far beyond
//! what can be sent has too many operations to iterate over.

use super::{Frontier, Pace, Roster, Schedule, Timetable};

/// Upper bound of the number of operations in any schedule.
const OPERATIONS_MAX: u64 = 1 << 56;

impl Schedule {
    /// Number of events that are due before `end_ns`: samples for a rate or a burst, operations
    /// for a record. `None` for a closed loop, and for Poisson, whose due times can only be
    /// computed one after the other.
    pub fn due_before(&self, end_ns: u64) -> Option<u64> {
        match self {
            Self::Unpaced | Self::Poisson { .. } => None,
            _ => Some(first(OPERATIONS_MAX, |n| self.due(n).is_none_or(|due| due >= end_ns))),
        }
    }
}

/// The smallest number below `end` for which `holds` is true, or `end`. `holds` must be monotonic.
fn first(end: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, end);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

impl Timetable {
    /// Whether [`Self::due_by`] can be computed.
    pub const fn is_countable(&self) -> bool {
        match &self.pace {
            Pace::Fleet(_) => true,
            Pace::Shape(schedule) => !matches!(schedule, Schedule::Unpaced | Schedule::Poisson { .. }),
        }
    }

    /// The position in the order up to which everything is due at or before `wall_ns`. `None` if
    /// nothing is due, or if the timetable is not countable.
    pub fn due_by(&self, wall_ns: u64) -> Option<Frontier> {
        let last = |end: Option<u64>| end.map_or(Some(u64::MAX), |end| end.checked_sub(1));
        let wall_ns = wall_ns.min(last(self.end_ns)?);
        let fleet_last_ns = last(self.fleet_end_ns)?;
        match &self.pace {
            // Due times are rounded up and fleet times down, so this is exact.
            Pace::Fleet(speed) => Some(everything_at(speed.fleet_ns(wall_ns).min(fleet_last_ns))),
            Pace::Shape(schedule) => {
                let due = schedule.due_before(wall_ns.saturating_add(1))?;
                self.place_of(due, matches!(schedule, Schedule::Recorded(_)), fleet_last_ns)
            }
        }
    }

    /// The position of the operation that holds the `count`-th sample, or of the `count`-th
    /// operation; at most the last one at `fleet_last_ns`.
    fn place_of(&self, count: u64, are_operations: bool, fleet_last_ns: u64) -> Option<Frontier> {
        if count == 0 {
            return None;
        }
        let (roster, first_group) = self.roster.scheduled();
        let through = |place: Frontier| counted_through(roster, place, are_operations) >= u128::from(count);
        let offset_ns = first(fleet_last_ns, |offset_ns| through(everything_at(offset_ns)));
        let groups = roster.groups().len() as u64;
        let group = first(groups, |group| {
            through(Frontier {
                offset_ns,
                group: group as u32,
            })
        });
        match (group as u32).checked_sub(first_group) {
            Some(group) => Some(Frontier { offset_ns, group }),
            // None of its groups has reported at that time yet.
            None => offset_ns.checked_sub(1).map(everything_at),
        }
    }
}

/// Number of samples, as a schedule counts them, or of operations, up to and including a position.
fn counted_through(roster: &Roster, place: Frontier, are_operations: bool) -> u128 {
    let groups = (0..).zip(roster.groups());
    let counted = groups.map(|(index, group)| {
        let ticks = roster.ticks_through(index, Some(place));
        let each = if are_operations { 1 } else { group.samples.max(1) };
        u128::from(ticks.end - ticks.start) * u128::from(each)
    });
    counted.sum()
}

/// The position after everything at or before a fleet time.
const fn everything_at(offset_ns: u64) -> Frontier {
    Frontier {
        offset_ns,
        group: u32::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{Group, Planned, Roster, Speed};
    use crate::time::SECOND_NS;

    fn timetable(pace: Pace, end_ns: Option<u64>, fleet_end_ns: Option<u64>) -> Timetable {
        let mut late = Group::new(700, 100, 3);
        (late.first_tick, late.end_tick) = (2, 40);
        let groups = vec![
            Group::new(1_000, 0, 54),
            Group::new(1_000, 0, 1),
            Group::new(300, 20, 7),
            late,
        ];
        Timetable {
            roster: Roster::new(groups).unwrap(),
            pace,
            end_ns,
            fleet_end_ns,
        }
    }

    /// The same for some of its groups.
    fn part(whole: &Timetable, groups: std::ops::Range<usize>) -> Timetable {
        let own = whole.roster.groups()[groups.clone()].to_vec();
        Timetable {
            roster: Roster::new(own)
                .unwrap()
                .part_of(whole.roster.clone(), groups.start as u32),
            ..whole.clone()
        }
    }

    #[test]
    fn the_count_equals_that_of_a_walk() {
        let shapes = [
            "constant:40000000",
            "steps:1000000*2us,30000000*5us",
            "ramp:0..50000000/10us",
            "burst:7/1us",
            "recorded:0s,1us,2us/3us",
        ];
        let shapes = shapes.map(|text| Pace::Shape(text.parse().unwrap()));
        let speeds = [(1, 1), (3, 7), (1_000, 3)].map(|(num, den)| Pace::Fleet(Speed::new(num, den).unwrap()));
        for pace in shapes.into_iter().chain(speeds) {
            for (end_ns, fleet_end_ns, wall_ns) in [
                (Some(20_000), None, u64::MAX),
                (Some(20_000), None, 7_777),
                (Some(20_000), Some(5_000), u64::MAX),
                (Some(20_000), None, 0),
                (Some(1), None, u64::MAX),
            ] {
                let whole = timetable(pace.clone(), end_ns, fleet_end_ns);
                for groups in [0..4, 0..1, 1..3, 3..4] {
                    let timetable = part(&whole, groups.clone());
                    let is_due = |planned: &Planned| planned.due_ns.is_some_and(|due| due <= wall_ns);
                    let walked: Vec<Planned> = timetable.agenda(0..4).take_while(is_due).collect();
                    let place = timetable.due_by(wall_ns);
                    for group in 0..groups.len() as u32 {
                        let ticks = timetable.ticks_through(group, place);
                        let own = walked.iter().filter(|planned| planned.slot.group == group).count() as u64;
                        assert_eq!(
                            ticks.end - ticks.start,
                            own,
                            "{pace:?} {end_ns:?} {fleet_end_ns:?} {wall_ns} {groups:?} {group}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_operations_of_a_schedule_are_counted_without_walking() {
        for (text, seconds, expected) in [
            ("constant:1000", 10, Some(10_000)),
            ("steps:1000*10s,3000*10s", 20, Some(40_000)),
            ("burst:5000/1s", 10, Some(50_000)),
            ("recorded:0s,1ms,2ms", 3, Some(3)),
            ("constant:1000000000", 1_000, Some(1_000_000_000_000)),
            ("poisson:700", 10, None),
            ("max", 10, None),
        ] {
            let schedule: Schedule = text.parse().unwrap();
            assert_eq!(schedule.due_before(seconds * SECOND_NS), expected, "{text}");
        }
    }
}
