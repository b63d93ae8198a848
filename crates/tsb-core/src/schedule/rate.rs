//! An exact rate: a number of events in a number of nanoseconds, as a reduced fraction.

use super::ScheduleError;
use crate::time::SECOND_NS;

/// Both parts of a reduced rate are below this, so that every product of the schedule
/// fits 128 bits.
const LIMIT: u128 = 1 << 56;

/// Events per time, exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    // in [0, 2^56)
    events: u64,
    // in [1, 2^56); no common divisor with `events`
    per_ns: u64,
}

impl Rate {
    /// The rate 0.
    pub const ZERO: Self = Self { events: 0, per_ns: 1 };

    /// `events` operations in every `per_ns` nanoseconds.
    ///
    /// # Errors
    /// If `per_ns` is 0, or a part of the reduced fraction is 2^56 or more.
    pub fn new(events: u64, per_ns: u64) -> Result<Self, ScheduleError> {
        Self::from_wide(u128::from(events), u128::from(per_ns))
    }

    /// `events` operations per second.
    ///
    /// # Errors
    /// As [`Rate::new`].
    pub fn per_second(events: u64) -> Result<Self, ScheduleError> {
        Self::new(events, SECOND_NS)
    }

    pub(super) fn from_wide(events: u128, per_ns: u128) -> Result<Self, ScheduleError> {
        let divisor = gcd(events, per_ns).max(1);
        let (reduced_events, reduced_per) = (events / divisor, per_ns / divisor);
        if reduced_per == 0 || reduced_events >= LIMIT || reduced_per >= LIMIT {
            return Err(ScheduleError::RateRange { events, per_ns });
        }
        Ok(Self {
            events: reduced_events as u64,
            per_ns: reduced_per as u64,
        })
    }

    /// The exact rate if it fits, else the nearest that fits, with a relative error below 2^-50.
    ///
    /// # Errors
    /// If it is too large or too small for any near fraction.
    pub(super) fn near(events: u128, per_ns: u128) -> Result<Self, ScheduleError> {
        Self::from_wide(events, per_ns).or_else(|error| {
            let (ratio, room) = (events as f64 / per_ns as f64, (LIMIT / 2) as f64);
            if events == 0 || per_ns == 0 {
                return Err(error);
            }
            // The larger part is rounded: it is about 2^55, so an error of a half is negligible.
            let (events, per_ns) = if ratio < 1.0 {
                let events = (room * ratio).floor().max(1.0);
                (events, (events / ratio).round())
            } else {
                let per_ns = (room / ratio).floor().max(1.0);
                ((per_ns * ratio).round(), per_ns)
            };
            Self::from_wide(events as u128, per_ns as u128)
        })
    }

    /// The events in [`Rate::per_ns`] nanoseconds, as a reduced fraction.
    pub const fn events(self) -> u64 {
        self.events
    }

    /// The nanoseconds that belong to [`Rate::events`].
    pub const fn per_ns(self) -> u64 {
        self.per_ns
    }

    /// Whether the rate is 0.
    pub const fn is_zero(self) -> bool {
        self.events == 0
    }

    /// The rate as a float, for display; the schedule itself never rounds.
    pub fn as_per_second(self) -> f64 {
        self.events as f64 * SECOND_NS as f64 / self.per_ns as f64
    }

    /// `num / den` times this rate.
    ///
    /// # Errors
    /// If the result has no exact fraction below 2^56.
    pub fn scaled(self, num: u64, den: u64) -> Result<Self, ScheduleError> {
        // Common factors are cancelled crosswise first, to keep the products small.
        let (events, per) = (u128::from(self.events), u128::from(self.per_ns));
        let (num, den) = (u128::from(num), u128::from(den));
        let (left, right) = (gcd(events, den).max(1), gcd(num, per).max(1));
        Self::from_wide((events / left) * (num / right), (per / right) * (den / left))
    }

    /// The quotient of this rate and `other` as a fraction, or the nearest one if the exact
    /// fraction does not fit; `None` if `other` is 0.
    ///
    /// # Errors
    /// If no fraction is near.
    pub fn over(self, other: Self) -> Result<Option<(u64, u64)>, ScheduleError> {
        if other.is_zero() {
            return Ok(None);
        }
        let num = u128::from(self.events) * u128::from(other.per_ns);
        let den = u128::from(self.per_ns) * u128::from(other.events);
        Self::near(num, den).map(|ratio| Some((ratio.events, ratio.per_ns)))
    }
}

/// The greatest common divisor; 0 only for two zeros.
pub(super) const fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
