//! The unit of timestamps, which a request may select.

use super::TIMES;
use crate::time::Timestamp;

/// The unit of a timestamp, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precision(i64);

impl Precision {
    /// Nanoseconds, the default.
    pub const NANOSECONDS: Self = Self(1);

    /// Parses InfluxDB's name of a unit; an empty name is the default.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(Self(match name {
            "" | "n" | "ns" => 1,
            "u" | "us" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        }))
    }

    /// The time of a number in this unit; `None` outside InfluxDB's range.
    #[inline]
    pub(super) fn time(self, number: i64) -> Option<Timestamp> {
        let at = number.checked_mul(self.0)?;
        TIMES.contains(&at).then_some(Timestamp(at))
    }

    /// A time rounded down to the unit, as InfluxDB does with its own clock.
    pub(super) fn cut(self, at: Timestamp) -> Timestamp {
        Timestamp(at.0 - at.0.rem_euclid(self.0))
    }
}
