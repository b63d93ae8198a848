//! The timetable of a run (which operations, and when), and the agenda of one worker, which is its
//! part of the timetable.

use std::ops::Range;

use super::roster::{Frontier, Roster, Slot, Walk};
use super::{Cursor, Rate, Schedule, ScheduleError};

/// The speed of a run relative to fleet time, as an exact fraction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed {
    num: u64,
    den: u64,
}

impl Speed {
    /// Fleet time is wall time.
    pub const NATURAL: Self = Self { num: 1, den: 1 };

    /// `num / den` times real time; `None` if either is 0.
    pub const fn new(num: u64, den: u64) -> Option<Self> {
        if num == 0 || den == 0 {
            None
        } else {
            Some(Self { num, den })
        }
    }

    /// The speed at which a fleet whose natural rate is `natural` reports at rate `asked`.
    ///
    /// # Errors
    /// If either rate is 0, or the fraction does not fit.
    pub fn from_rates(asked: Rate, natural: Rate) -> Result<Self, ScheduleError> {
        let ratio = asked.over(natural)?;
        ratio
            .and_then(|(num, den)| Self::new(num, den))
            .ok_or(ScheduleError::NeverDue)
    }

    /// Numerator and denominator.
    pub const fn fraction(self) -> (u64, u64) {
        (self.num, self.den)
    }

    /// The speed as a float, for display.
    pub fn as_f64(self) -> f64 {
        self.num as f64 / self.den as f64
    }

    /// Wall time for a fleet time, rounded up; saturates.
    #[inline]
    pub fn wall_ns(self, fleet_ns: u64) -> u64 {
        if self.num == self.den {
            return fleet_ns;
        }
        // A division of 128 bits takes longer than the rest of a due time.
        if let Some(scaled) = fleet_ns.checked_mul(self.den) {
            return scaled.div_ceil(self.num);
        }
        let scaled = u128::from(fleet_ns) * u128::from(self.den);
        u64::try_from(scaled.div_ceil(u128::from(self.num))).unwrap_or(u64::MAX)
    }

    /// Fleet time for a wall time, rounded down; saturates.
    pub fn fleet_ns(self, wall_ns: u64) -> u64 {
        let scaled = u128::from(wall_ns) * u128::from(self.num) / u128::from(self.den);
        u64::try_from(scaled).unwrap_or(u64::MAX)
    }
}

/// The source of due times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The roster: each group at its own times, at a speed.
    Fleet(Speed),
    /// A schedule gives the times and the roster only the order. A rate or a burst counts samples,
    /// by [`Group::samples`](super::Group), and an operation is due when its first sample is;
    /// Poisson arrivals and recorded times count operations.
    Shape(Schedule),
}

impl Pace {
    /// Whether operations have due times.
    pub const fn is_open_loop(&self) -> bool {
        match self {
            Self::Fleet(_) => true,
            Self::Shape(schedule) => schedule.is_open_loop(),
        }
    }
}

/// All operations of a run, with their due times.
#[derive(Clone, Debug)]
pub struct Timetable {
    /// The operations and their order.
    pub roster: Roster,
    /// Their due times.
    pub pace: Pace,
    /// Operations due at or after this wall time since the start are excluded.
    pub end_ns: Option<u64>,
    /// Operations at or after this fleet time are excluded.
    pub fleet_end_ns: Option<u64>,
}

impl Timetable {
    /// The operations of a contiguous range of groups, in order.
    pub fn agenda(&self, groups: Range<u32>) -> Agenda {
        let (everyone, first_group) = self.roster.scheduled();
        let pacer = match &self.pace {
            Pace::Fleet(speed) => Pacer::Fleet(*speed),
            Pace::Shape(Schedule::Unpaced) => Pacer::Unpaced,
            Pace::Shape(schedule) => Pacer::Shape(Shape {
                cursor: schedule.cursor(),
                everyone: everyone.walk(),
                first_group,
                passed: 0,
            }),
        };
        Agenda {
            walk: self.roster.walk_range(groups),
            pacer,
            end_ns: self.end_ns.unwrap_or(u64::MAX),
            fleet_end_ns: self.fleet_end_ns.unwrap_or(u64::MAX),
        }
    }

    /// Planned duration in wall time, if it is known without walking through the operations.
    pub fn planned_ns(&self) -> Option<u64> {
        let by_fleet = match (&self.pace, self.fleet_end_ns) {
            (Pace::Fleet(speed), Some(end_ns)) => Some(speed.wall_ns(end_ns)),
            _ => None,
        };
        self.end_ns.into_iter().chain(by_fleet).min()
    }

    /// The ticks of `group` at or before a position in the roster's order, exactly.
    pub fn ticks_through(&self, group: u32, frontier: Option<Frontier>) -> Range<u64> {
        self.roster.ticks_through(group, frontier)
    }
}

/// One operation of an agenda.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planned {
    /// The group and tick.
    pub slot: Slot,
    /// Due time, as wall time since the start; `None` in a closed loop.
    pub due_ns: Option<u64>,
}

#[derive(Clone, Debug)]
enum Pacer {
    Fleet(Speed),
    Shape(Shape),
    Unpaced,
}

/// The due times of a schedule, of which each worker picks those of its own operations. Where the roster is
/// a part, the other operations are also those of the other parts.
#[derive(Clone, Debug)]
struct Shape {
    cursor: Cursor,
    everyone: Walk,
    // The worker's roster begins with this group of everyone's.
    first_group: u32,
    passed: u64,
}

/// Number of operations of other workers that are skipped between checks for the end.
const PASSED_CHECK: u64 = 1 << 10;

impl Shape {
    /// Due time of slot `own`, if it is before `end_ns`.
    #[inline]
    fn due(&mut self, mut own: Slot, end_ns: u64) -> Option<u64> {
        own.group += self.first_group;
        loop {
            let slot = self.everyone.next()?;
            if slot == own {
                break;
            }
            self.cursor.advance_by(self.everyone.samples(slot));
            self.passed += 1;
            if self.passed.is_multiple_of(PASSED_CHECK) && self.cursor.due()? >= end_ns {
                return None;
            }
        }
        let due = self.cursor.due()?;
        self.cursor.advance_by(self.everyone.samples(own));
        Some(due)
    }
}

/// One worker's operations in order of due time.
#[derive(Clone, Debug)]
pub struct Agenda {
    // The worker's own groups only.
    walk: Walk,
    pacer: Pacer,
    end_ns: u64,
    fleet_end_ns: u64,
}

impl Iterator for Agenda {
    type Item = Planned;

    #[inline]
    fn next(&mut self) -> Option<Planned> {
        let slot = self.walk.next()?;
        if slot.offset_ns >= self.fleet_end_ns {
            return None;
        }
        let due_ns = match &mut self.pacer {
            Pacer::Unpaced => return Some(Planned { slot, due_ns: None }),
            Pacer::Fleet(speed) => speed.wall_ns(slot.offset_ns),
            Pacer::Shape(shape) => shape.due(slot, self.end_ns)?,
        };
        let planned = Planned {
            slot,
            due_ns: Some(due_ns),
        };
        (due_ns < self.end_ns).then_some(planned)
    }
}
