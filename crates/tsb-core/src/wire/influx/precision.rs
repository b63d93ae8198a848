//! The unit of timestamps, which a request may choose.

use super::TIMES;
use crate::time::Timestamp;

/// What a timestamp counts: so many nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Precision(i64);

impl Precision {
    /// Nanoseconds, which is usual.
    pub const NANOSECONDS: Self = Self(1);

    /// By the name that InfluxDB has for it; empty for the usual one.
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

    /// The time that a number means; `None` outside the range of InfluxDB.
    #[inline]
    pub(super) fn time(self, number: i64) -> Option<Timestamp> {
        let at = number.checked_mul(self.0)?;
        TIMES.contains(&at).then_some(Timestamp(at))
    }

    /// A time cut to the unit, as InfluxDB does with that of its own clock.
    pub(super) fn cut(self, at: Timestamp) -> Timestamp {
        Timestamp(at.0 - at.0.rem_euclid(self.0))
    }
}
