//! Value models: how the values of one series are computed from draws.
//!
//! A model keeps at most one number of state, an integer stored in an `f64`. Sums of integers
//! below 2^53 are exact, so adding tick by tick and summing many ticks at once give the same bits.
//! Reflection at bounds is a function of that sum and needs no history. The user's definitions are
//! in [`super::fleet`]; `rows` and `columns` evaluate the models.

use super::hash::{self, Purpose};

/// 1.5 * 2^52: adding and subtracting it rounds an `f64` below 2^51 to an integer.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// The nearest integer, ties to even, for |x| < 2^51.
#[inline(always)]
pub(crate) fn round(x: f64) -> f64 {
    (x + ROUND) - ROUND
}

/// Uniform integer steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Uniform {
    /// Number of integers.
    pub(crate) count: u32,
    /// 2^52 minus the lowest integer: converts a draw plus 2^52 to its step.
    pub(crate) bias: f64,
}

impl Uniform {
    /// The integers `low ..= low + count - 1`.
    pub(crate) fn new(low: f64, count: u32) -> Self {
        Self {
            count,
            bias: hash::TWO_52 - low,
        }
    }

    /// The step of a series at a tick.
    #[inline(always)]
    pub(crate) fn at(self, key: u64, tick_key: u64) -> f64 {
        hash::below_on_two_52(key, tick_key, self.count) - self.bias
    }
}

/// Integers from 0 on, with a chosen probability of 0 and the others uniform.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Clipped {
    scale: f64,
    offset: f64,
}

impl Clipped {
    /// 0 with probability `still`, otherwise uniform over `1 ..= highest`.
    pub(crate) fn new(still: f64, highest: f64) -> Self {
        let width = highest / (1.0 - still);
        let scale = width / 4_294_967_296.0;
        // Shifted by half a draw, so that no draw falls on the boundary between two integers.
        Self {
            scale,
            offset: 0.5 - still * width + scale / 2.0,
        }
    }

    pub(crate) fn from_parts(scale: f64, offset: f64) -> Self {
        Self { scale, offset }
    }

    /// Scale and offset of a draw.
    pub(crate) fn parts(self) -> (f64, f64) {
        (self.scale, self.offset)
    }

    /// The probability of 0, and the largest integer.
    pub(crate) fn shape(self) -> (f64, f64) {
        let width = self.scale * 4_294_967_296.0;
        if width == 0.0 {
            return (1.0, 0.0);
        }
        let still = (0.5 + self.scale / 2.0 - self.offset) / width;
        (still, (width * (1.0 - still)).round())
    }

    /// The integer for a draw.
    #[inline(always)]
    pub(crate) fn at(self, draw: f64) -> f64 {
        let bits = round(draw * self.scale + self.offset).to_bits();
        // Masks by the sign bit: a comparison would compile to a branch that is mispredicted half
        // the time.
        f64::from_bits(bits & !(((bits as i64) >> 63) as u64))
    }
}

/// Reflection of a walk at its bounds: the triangle wave of the unbounded sum.
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

    /// The sum, reflected into the band. Exact: all three numbers are integers, and only a sum
    /// beyond 2^50 could make the rounding of `sum * inverse` matter.
    #[inline(always)]
    pub(crate) fn apply(self, sum: f64) -> f64 {
        (sum - self.period * round(sum * self.inverse)).abs()
    }
}

/// Converts integer steps to the value that is sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Output {
    /// Factor.
    pub(crate) multiple: f64,
    /// Added to the product.
    pub(crate) base: f64,
    /// The power of ten to divide by. Division, so that values with two decimals print with two.
    pub(crate) divisor: f64,
}

impl Output {
    /// No conversion.
    pub(crate) const PLAIN: Self = Self {
        multiple: 1.0,
        base: 0.0,
        divisor: 1.0,
    };

    /// The value for an integer.
    #[inline(always)]
    pub(crate) fn apply(self, x: f64) -> f64 {
        (x * self.multiple + self.base) / self.divisor
    }
}

/// The value model of one series, with its parameters drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ValueModel {
    /// Never changes.
    Constant { value: f64 },
    /// Keeps its value, and occasionally draws a new one of `levels`.
    Repeated { change: u64, levels: u64, output: Output },
    /// The running sum of uniform steps, reflected: counters and walks.
    Sum {
        start: f64,
        steps: Uniform,
        fold: Fold,
        output: Output,
    },
    /// A counter that sometimes does not change, or is reset to 0.
    PausingCounter { start: f64, steps: Clipped, reset: u64 },
    /// Without state: a base, a slope, and an added draw.
    Noise { draws: Clipped, slope: f64, output: Output },
    /// Values from a recording: no arithmetic and no state.
    Recorded,
}

/// The keys of one series, which make its draws independent of other series.
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

/// The level that a repeated series changes to at a tick.
#[inline]
pub(crate) fn level(level_key: u64, tick_key: u64, levels: u64) -> f64 {
    let mixed = hash::mix64(level_key ^ tick_key);
    ((u128::from(mixed) * u128::from(levels)) >> 64) as f64
}

impl ValueModel {
    /// The state before the first tick of the series.
    pub(crate) fn start(&self, keys: Keys) -> f64 {
        match *self {
            Self::Constant { value } => value,
            // The level before any change, drawn as if it had changed at birth.
            Self::Repeated { levels, output, .. } => output.apply(level(keys.of(Purpose::Level), 0, levels)),
            Self::Sum { start, .. } | Self::PausingCounter { start, .. } => start,
            Self::Noise { .. } | Self::Recorded => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uniform_steps_cover_their_range_evenly() {
        let steps = Uniform::new(-3.0, 7);
        let mut counts = [0; 7];
        for tick in 0..70_000 {
            let step = steps.at(hash::key(1, Purpose::Step, 1), tick_key(1, tick));
            counts[(step + 3.0) as usize] += 1;
        }
        assert!(counts.iter().all(|count| (9_500..10_500).contains(count)), "{counts:?}");
    }

    #[test]
    fn clipped_steps_stand_still_as_often_as_asked() {
        for (still, highest) in [(0.5, 1.0), (0.9, 4.0), (0.25, 3.0)] {
            let steps = Clipped::new(still, highest);
            let mut counts = [0.0; 5];
            for draw in 0..100_000u64 {
                counts[steps.at((draw * 42_949) as f64) as usize] += 1e-5;
            }
            assert!((counts[0] - still).abs() < 1e-4, "{counts:?}");
            for count in &counts[1..=highest as usize] {
                assert!((count - (1.0 - still) / highest).abs() < 1e-4, "{counts:?}");
            }
            let (shown_still, shown_highest) = steps.shape();
            assert!((shown_still - still).abs() < 1e-6 && shown_highest == highest);
            assert_eq!(steps.at(4_294_967_295.0), highest);
            assert_eq!(steps.at(0.0).to_bits(), 0, "never minus zero");
        }
    }

    #[test]
    fn a_fold_is_a_walk_that_turns_round_at_its_bounds() {
        let fold = Fold::band(10.0);
        let values: Vec<f64> = (-12..=32).map(|sum| fold.apply(f64::from(sum))).collect();
        let mut expected = vec![8.0, 9.0];
        expected.extend((0..=10).rev().map(f64::from));
        expected.extend((1..=10).map(f64::from));
        expected.extend((0..10).rev().map(f64::from));
        expected.extend((1..=10).map(f64::from));
        expected.extend([9.0, 8.0]);
        assert_eq!(values, expected);
        assert_eq!(Fold::AT_ZERO.apply(-4.0), 4.0);
        // Far out, where the product with the inverse is not exact any more.
        let far = 20.0 * 50_000_000_000.0;
        assert_eq!(fold.apply(far + 3.0), 3.0);
        assert_eq!(fold.apply(far + 10.0), 10.0);
        assert_eq!(fold.apply(far + 11.0), 9.0);
    }
}
