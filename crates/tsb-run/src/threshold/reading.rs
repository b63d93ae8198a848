//! What a run says of a figure: a number, or bounds where it does not know the number.

use crate::units::Unit;

/// A number, or the bounds between which it lies.
///
/// Bounds differ where the report has no exact figure: samples that may be lost, CPU time below
/// what can be measured, quantiles of operations of which some were never answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    low: f64,
    high: f64,
}

impl Reading {
    /// A number.
    pub const fn exact(value: f64) -> Self {
        Self {
            low: value,
            high: value,
        }
    }

    /// A number that lies between two others, `low` not above `high`.
    pub const fn between(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    /// The lower bound.
    pub const fn low(self) -> f64 {
        self.low
    }

    /// The upper bound; infinite where a quantile lies among operations that were never answered.
    pub const fn high(self) -> f64 {
        self.high
    }

    /// The number, where it is known and finite.
    pub fn value(self) -> Option<f64> {
        (self.low == self.high && self.low.is_finite()).then_some(self.low)
    }

    /// Both bounds times a factor.
    pub(super) fn times(self, factor: f64) -> Self {
        Self {
            low: self.low * factor,
            high: self.high * factor,
        }
    }

    /// The number or its bounds, with a unit.
    pub fn show(self, unit: Unit) -> String {
        if self.low == self.high {
            unit.show(self.low)
        } else if self.low == 0.0 && unit != Unit::Count {
            format!("below {}", unit.show(self.high))
        } else {
            format!("between {} and {}", unit.show(self.low), unit.show(self.high))
        }
    }
}
