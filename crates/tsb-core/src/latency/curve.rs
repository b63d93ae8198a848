//! A latency distribution as a curve of value by quantile, up to the highest quantile that the
//! number of operations supports.

use serde::{Deserialize, Serialize};

use super::histogram::Histogram;

/// The quantiles of a curve, denser towards 1 to show the tail.
const QUANTILES: [f64; 33] = [
    0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.965, 0.975, 0.98, 0.985, 0.99,
    0.9925, 0.995, 0.9965, 0.9975, 0.998, 0.999, 0.9995, 0.99975, 0.9999, 0.99995, 0.99999, 0.999995, 0.999999,
];

/// (quantile, value in nanoseconds), ascending. Only quantiles with enough operations beyond them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Curve(pub Vec<(f64, u64)>);

impl Curve {
    /// The curve of a histogram; empty when it holds too few operations.
    pub fn new(histogram: &Histogram) -> Self {
        let supported = QUANTILES
            .iter()
            .filter_map(|&quantile| Some((quantile, histogram.supported_quantile(quantile)?)));
        Self(supported.collect())
    }

    /// The value at a quantile, which must be one of the curve's own.
    pub fn at(&self, quantile: f64) -> Option<u64> {
        let found = self.0.iter().find(|(at, _)| *at == quantile);
        found.map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::latency::Summary;

    #[test]
    fn a_curve_says_what_the_summary_says_and_ends_where_support_ends() {
        let mut histogram = Histogram::new();
        for value in 0..5_000u64 {
            histogram.record(value * value);
        }
        let (curve, summary) = (Curve::new(&histogram), Summary::new(&histogram, 0));
        for (quantile, value) in [
            (0.5, summary.p50_ns),
            (0.9, summary.p90_ns),
            (0.99, summary.p99_ns),
            (0.999, summary.p999_ns),
        ] {
            assert_eq!(curve.at(quantile), value, "{quantile}");
        }
        assert!(summary.p99_ns.is_some() && summary.p999_ns.is_none());
        assert!(curve.0.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1));
        assert_eq!(Curve::new(&Histogram::new()), Curve::default());
    }
}
