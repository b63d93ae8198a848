//! Laws: how the values of one series come about, as arithmetic on draws.
//!
//! A law keeps at most one number of running state, an integer held in an `f64`: sums
//! of integers below 2^53 are exact, so adding tick by tick, or summing a stretch of
//! ticks at once, ends at the same bits. Reflection at bounds is a fold of that sum, not
//! a step of its own, so it needs no history. What the user writes is in
//! [`super::fleet`]; how laws are run over rows and columns is in `rows` and `columns`.

use super::hash::{self, Purpose};

/// 1.5 * 2^52: adding and subtracting it rounds an `f64` below 2^51 to an integer.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// The nearest integer, ties to even, for |x| < 2^51.
#[inline(always)]
pub(crate) fn round(x: f64) -> f64 {
    (x + ROUND) - ROUND
}

/// Turns a uniform draw into a uniform integer, or a clipped one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    /// Width of the range over 2^32.
    pub(crate) scale: f64,
    /// Where the range begins, half a unit below its first integer.
    pub(crate) offset: f64,
}

impl Step {
    /// Uniform over the integers `low ..= low + count - 1`.
    pub(crate) fn uniform(low: f64, count: f64) -> Self {
        let scale = count / 4_294_967_296.0;
        // Half a draw further in, so that no draw lies on the border of two integers.
        Self {
            scale,
            offset: low - 0.5 + scale / 2.0,
        }
    }

    /// 0 with probability `still`, otherwise uniform over `1 ..= highest`; for
    /// [`Step::clipped`].
    pub(crate) fn still(still: f64, highest: f64) -> Self {
        let width = highest / (1.0 - still);
        let scale = width / 4_294_967_296.0;
        Self {
            scale,
            offset: 0.5 - still * width + scale / 2.0,
        }
    }

    /// The integer of a draw.
    #[inline(always)]
    pub(crate) fn at(self, draw: f64) -> f64 {
        round(draw * self.scale + self.offset)
    }

    /// The integer of a draw, or 0 where it would be negative.
    #[inline(always)]
    pub(crate) fn clipped(self, draw: f64) -> f64 {
        let x = draw * self.scale + self.offset;
        // Not f64::max: its care for NaN costs, and there is none here.
        round(if x > 0.0 { x } else { 0.0 })
    }
}

/// Where a walk turns round: the triangle wave over the unbounded sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Fold {
    /// Twice the height of the band; 0 when there is no upper bound.
    pub(crate) period: f64,
    /// 1 / period, or 0.
    pub(crate) inverse: f64,
}

impl Fold {
    /// Reflects at 0 only.
    pub(crate) const AT_ZERO: Self = Self {
        period: 0.0,
        inverse: 0.0,
    };

    /// Reflects at 0 and at `height`.
    pub(crate) fn band(height: f64) -> Self {
        Self {
            period: 2.0 * height,
            inverse: 0.5 / height,
        }
    }

    /// The sum, folded into the band. Exact: all three numbers are integers, and a
    /// rounding slip of `sum * inverse` would need a sum beyond 2^50.
    #[inline(always)]
    pub(crate) fn apply(self, sum: f64) -> f64 {
        (sum - self.period * round(sum * self.inverse)).abs()
    }
}

/// From integer steps to the value that is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Output {
    /// Times this.
    pub(crate) multiple: f64,
    /// Plus this.
    pub(crate) base: f64,
    /// Divided by this power of ten: division, so that two decimals print as two.
    pub(crate) divisor: f64,
}

impl Output {
    /// The integers themselves.
    pub(crate) const PLAIN: Self = Self {
        multiple: 1.0,
        base: 0.0,
        divisor: 1.0,
    };

    /// The value of an integer.
    #[inline(always)]
    pub(crate) fn apply(self, x: f64) -> f64 {
        (x * self.multiple + self.base) / self.divisor
    }
}

/// The law of one series, its parameters drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Law {
    /// Never changes.
    Constant { value: f64 },
    /// Keeps its value and now and then draws a new one out of `levels`.
    Repeated { change: u64, levels: u64, output: Output },
    /// Only grows, but for resets to 0.
    Counter { start: f64, step: Step, reset: u64 },
    /// Up and down, between reflecting bounds.
    Walk {
        start: f64,
        step: Step,
        fold: Fold,
        output: Output,
    },
    /// Without memory: a base, a slope, and a clipped draw on top.
    Noise { step: Step, slope: f64, output: Output },
    /// Taken from a recording: no arithmetic, no state.
    Recorded,
}

/// The keys of one series: what makes its draws its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    seed: u64,
    series: u64,
}

impl Keys {
    pub(crate) fn new(seed: u64, series: u32) -> Self {
        Self {
            seed,
            series: u64::from(series),
        }
    }

    /// The key for one purpose.
    pub(crate) fn of(self, purpose: Purpose) -> u64 {
        hash::key(self.seed, purpose, self.series)
    }
}

/// The key of a tick.
#[inline]
pub(crate) fn tick_key(seed: u64, tick: u64) -> u64 {
    hash::key(seed, Purpose::Tick, tick)
}

/// Which of `levels` a repeated series takes when it changes at a tick.
#[inline]
pub(crate) fn level(level_key: u64, tick_key: u64, levels: u64) -> f64 {
    let mixed = hash::mix64(level_key ^ tick_key);
    ((u128::from(mixed) * u128::from(levels)) >> 64) as f64
}

impl Law {
    /// The running state before the first tick of the series.
    pub(crate) fn start(&self, keys: Keys) -> f64 {
        match *self {
            Self::Constant { value } => value,
            // The level before any change: drawn as if it had changed at birth.
            Self::Repeated { levels, output, .. } => output.apply(level(keys.of(Purpose::Level), 0, levels)),
            Self::Counter { start, .. } | Self::Walk { start, .. } => start,
            Self::Noise { .. } | Self::Recorded => 0.0,
        }
    }
}
