//! Statistics of repeated measurements: quantiles, means and ratios with intervals.
//!
//! Two-sided intervals by Student's t. Ratios are compared as logarithms of pairs measured one
//! after the other, so that a disturbance that slows both cancels. Pure arithmetic on the given
//! numbers; the only randomness is the seeded [`order`] of a round. NaN gives no result. Latencies
//! are *not* summarised here: they have histograms.

mod beta;
mod rounds;
mod scalability;
mod steady;
mod student;

use serde::{Deserialize, Serialize};

pub use rounds::{ROUNDS_MIN, RatioOutcome, have_answered, order, rounds_disagree};
pub use scalability::{COUNTS_MIN, Scalability};
pub use steady::{SERIES_MIN, Steady, effective_count, steady};
pub use student::t_quantile;

/// The confidence of every interval that is reported.
pub const CONFIDENCE: f64 = 0.95;
/// Probability with which a difference of [`Ratio::detectable`] is found significant.
pub const POWER: f64 = 0.8;
/// The confidence of the interval that ends a comparison early. It is looked at several times (see
/// [`have_answered`]), and a wider interval keeps the many looks from making a difference out of
/// chance.
pub const CLEAR_CONFIDENCE: f64 = 0.999;

/// The value that a share `quantile` of the values does not exceed, interpolated between
/// neighbours (type 7 of Hyndman and Fan 1996). `None` without values, or with a NaN.
pub fn quantile(values: &[f64], quantile: f64) -> Option<f64> {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let place = quantile.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let (below, part) = (place.floor() as usize, place.fract());
    let low = sorted[below];
    let high = sorted[(below + 1).min(sorted.len() - 1)];
    Some(if part == 0.0 { low } else { low + (high - low) * part })
}

/// The middle value, or the mean of the two middle ones.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// An estimate with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
}

impl Estimate {
    /// An estimate with its interval.
    pub const fn new(value: f64, low: f64, high: f64) -> Self {
        Self { value, low, high }
    }
}

/// Mean, standard error and degrees of freedom of at least two finite values.
fn moments(values: &[f64]) -> Option<(f64, f64, f64)> {
    if values.len() < 2 || !values.iter().all(|value| value.is_finite()) {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some((mean, (squares / (n - 1.0) / n).sqrt(), n - 1.0))
}

/// The mean with its interval; `None` for fewer than two values, or one that is not finite.
pub fn mean(values: &[f64]) -> Option<Estimate> {
    let (value, error, freedom) = moments(values)?;
    let half = t_quantile(f64::midpoint(1.0, CONFIDENCE), freedom) * error;
    Some(Estimate {
        value,
        low: value - half,
        high: value + half,
    })
}

/// The standard deviation of what these values are a sample of: the squares are divided by one less
/// than their number. `None` for fewer than two values, or one that is not finite.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let (_, error, freedom) = moments(values)?;
    Some(error * (freedom + 1.0).sqrt())
}

/// The ratio of `b` to `a`, from pairs measured in turn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Ratio {
    /// The geometric mean of `b / a`.
    pub ratio: f64,
    /// The lower end of its interval.
    pub ratio_low: f64,
    /// The upper end.
    pub ratio_high: f64,
    /// The smallest relative difference that pairs with this scatter show with probability
    /// [`POWER`]: 0.03 is 3 %. A smaller difference cannot be ruled out.
    pub detectable: f64,
    /// Number of pairs, or of blocks.
    pub pairs: usize,
}

impl Ratio {
    /// From pairs `(a, b)`, each measured one after the other. `None` for fewer than two, or when
    /// a value is not positive and finite.
    pub fn from_pairs(pairs: &[(f64, f64)]) -> Option<Self> {
        let logs = pairs.iter().map(|&(a, b)| Some(log(b)? - log(a)?));
        Self::from_logs(&logs.collect::<Option<Vec<f64>>>()?)
    }

    /// From blocks in the order A B B A, which cancels a steady drift of the machine.
    pub fn from_blocks(blocks: &[[f64; 4]]) -> Option<Self> {
        let block = |&[a, b, c, d]: &[f64; 4]| Some(f64::midpoint(log(b)? - log(a)?, log(c)? - log(d)?));
        Self::from_logs(&blocks.iter().map(block).collect::<Option<Vec<f64>>>()?)
    }

    fn from_logs(logs: &[f64]) -> Option<Self> {
        let (mean, error, freedom) = moments(logs)?;
        let two_sided = t_quantile(f64::midpoint(1.0, CONFIDENCE), freedom);
        let half = two_sided * error;
        Some(Self {
            ratio: mean.exp(),
            ratio_low: (mean - half).exp(),
            ratio_high: (mean + half).exp(),
            detectable: ((two_sided + t_quantile(POWER, freedom)) * error).exp_m1(),
            pairs: logs.len(),
        })
    }

    /// Whether the interval excludes 1, so that `a` and `b` differ.
    pub fn is_different(&self) -> bool {
        self.ratio_low > 1.0 || self.ratio_high < 1.0
    }

    /// Whether the interval at [`CLEAR_CONFIDENCE`] excludes 1. It is computed from the stored interval,
    /// which must be Student's t of the logarithms.
    pub fn is_sure(&self) -> bool {
        let freedom = self.pairs.saturating_sub(1) as f64;
        let quantile = |confidence| t_quantile(f64::midpoint(1.0, confidence), freedom);
        let half = (self.ratio_high / self.ratio).ln() * quantile(CLEAR_CONFIDENCE) / quantile(CONFIDENCE);
        self.ratio.ln().abs() > half
    }
}

fn log(value: f64) -> Option<f64> {
    (value > 0.0 && value.is_finite()).then(|| value.ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(got: f64, expected: f64) {
        assert!(
            (got - expected).abs() < 1e-6 * expected.abs().max(1.0),
            "{got} {expected}"
        );
    }

    #[test]
    fn quantiles_are_interpolated() {
        assert_eq!(quantile(&[4.0, 1.0, 3.0, 2.0], 0.5), Some(2.5));
        assert_eq!(quantile(&[4.0, 1.0, 3.0, 2.0], 1.0), Some(4.0));
        assert_eq!(median(&[7.0]), Some(7.0));
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, f64::NAN]), None);
        assert_eq!(quantile(&[f64::NEG_INFINITY, f64::INFINITY], 1.0), Some(f64::INFINITY));
    }

    #[test]
    fn the_mean_has_the_interval_of_a_textbook() {
        // Student's sleep data (1908), the differences: mean 1.58, 95 % interval
        // 0.7001142 to 2.4598858, as R's t.test prints it.
        let differences = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4];
        let estimate = mean(&differences).unwrap();
        near(estimate.value, 1.58);
        near(estimate.low, 0.700_114_2);
        near(estimate.high, 2.459_885_8);
        // As R's sd prints it.
        near(deviation(&differences).unwrap(), 1.229_995_5);
        assert_eq!(deviation(&[1.0]), None);
        assert_eq!(mean(&[1.0]), None);
        assert_eq!(mean(&[1.0, f64::INFINITY]), None);
    }

    #[test]
    fn a_ratio_of_pairs_ignores_what_both_share() {
        let noise = [1.0, 7.0, 0.3, 2.0, 5.5];
        let pairs = noise.map(|shared| (shared, 2.0 * shared));
        let ratio = Ratio::from_pairs(&pairs).unwrap();
        near(ratio.ratio, 2.0);
        near(ratio.ratio_low, 2.0);
        near(ratio.ratio_high, 2.0);
        near(ratio.detectable, 0.0);
        assert!(ratio.is_different());
        assert_eq!(Ratio::from_pairs(&[(1.0, 2.0), (0.0, 1.0)]), None);
        assert_eq!(Ratio::from_pairs(&[(1.0, 2.0)]), None);
    }

    #[test]
    fn a_drift_cancels_within_a_block() {
        // Each measurement 1 % slower than the one before; b takes 1.5 times as long.
        let drift = |n: i32| 1.01f64.powi(n);
        let block = |n| [drift(n), 1.5 * drift(n + 1), 1.5 * drift(n + 2), drift(n + 3)];
        let ratio = Ratio::from_blocks(&[block(0), block(4), block(8)]).unwrap();
        near(ratio.ratio, 1.5);
        near(ratio.ratio_high, 1.5);
    }

    #[test]
    fn scatter_widens_the_interval_and_what_could_be_detected() {
        let pairs = [
            (1.0, 1.1),
            (1.0, 0.9),
            (1.0, 1.05),
            (1.0, 0.97),
            (1.0, 1.0),
            (1.0, 1.02),
        ];
        let ratio = Ratio::from_pairs(&pairs).unwrap();
        assert!(!ratio.is_different());
        assert!(ratio.ratio_low < 0.95 && ratio.ratio_high > 1.05);
        assert!(ratio.detectable > ratio.ratio_high - ratio.ratio);
    }
}
