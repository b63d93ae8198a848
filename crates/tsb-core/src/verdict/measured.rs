//! A measured figure with the limit that it is compared to.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Status;

/// The side of the limit on which a figure must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// The limit or more.
    AtLeast,
    /// The limit or less.
    AtMost,
}

/// A figure that decides a run's verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The status that a run gets when the limit is crossed.
    pub status: Status,
    /// Name of the figure. A share is between 0 and 1.
    pub what: String,
    /// The unit; empty for a share.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// The measured value.
    pub value: f64,
    /// The side of the limit on which it must be.
    pub bound: Bound,
    /// The limit.
    pub limit: f64,
}

impl Measured {
    /// A share that must not be below `limit`.
    pub(super) fn share_at_least(status: Status, what: &str, value: f64, limit: f64) -> Self {
        Self {
            status,
            what: what.to_owned(),
            unit: String::new(),
            value,
            bound: Bound::AtLeast,
            limit,
        }
    }

    /// A share that must not be above `limit`.
    pub(super) fn share_at_most(status: Status, what: &str, value: f64, limit: f64) -> Self {
        Self {
            bound: Bound::AtMost,
            ..Self::share_at_least(status, what, value, limit)
        }
    }

    /// Whether the figure is on the wrong side of its limit.
    pub fn is_crossed(&self) -> bool {
        match self.bound {
            Bound::AtLeast => self.value < self.limit,
            Bound::AtMost => self.value > self.limit,
        }
    }

    /// The figure with its limit: `0.98996 (at least 0.99)`, `312.5 ms (at most 100 ms)`.
    pub fn figure(&self) -> String {
        let (digits, unit) = if self.unit.is_empty() {
            (3, String::new())
        } else {
            (1, format!(" {}", self.unit))
        };
        let bound = match self.bound {
            Bound::AtLeast => "at least",
            Bound::AtMost => "at most",
        };
        format!(
            "{}{unit} ({bound} {}{unit})",
            beside(self.value, self.limit, digits),
            self.limit
        )
    }
}

impl fmt::Display for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.what, self.figure())
    }
}

/// Writes `value` with at least `digits` decimals, and with as many more as are needed to show on
/// which side of `limit` it is: 0.98996 beside 0.99 is not written as `0.990`.
pub fn beside(value: f64, limit: f64, digits: usize) -> String {
    // An f64 never needs more decimals than this to differ visibly from another.
    const DIGITS_MAX: usize = 20;
    let shows = |text: &String| {
        let shown = text.parse::<f64>();
        shown.is_ok_and(|shown| shown.partial_cmp(&limit) == value.partial_cmp(&limit))
    };
    let texts = (digits..=DIGITS_MAX).map(|digits| format!("{value:.digits$}"));
    texts.into_iter().find(shows).unwrap_or_else(|| value.to_string())
}
