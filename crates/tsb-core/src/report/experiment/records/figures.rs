//! Figures over the samples of a cell: a mean with its interval and the standard deviation, of times
//! and of the rates that follow from them.

use serde::{Deserialize, Serialize};

use crate::report::experiment::Figure;
use crate::stats::deviation;

/// A batch that takes less than this, in seconds, is short: a delay of 10 ms, as a scheduler makes
/// them, is a tenth of it or more.
pub const SHORT_SECONDS: f64 = 0.1;
/// Bytes of what the original calls a megabyte.
const MIB: f64 = 1_048_576.0;

/// A figure over samples, with their standard deviation.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The mean with its interval; `rounds` is the number of samples.
    #[serde(flatten)]
    pub figure: Figure,
    /// The standard deviation of the samples; absent for fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sigma: Option<f64>,
}

impl Spread {
    /// From the values of the samples, each of which is finite; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        Some(Self {
            figure: Figure::of(values)?,
            sigma: deviation(values),
        })
    }

    /// The same in another unit.
    #[must_use]
    pub fn scaled(self, by: f64) -> Self {
        Self {
            figure: self.figure.scaled(by),
            sigma: self.sigma.map(|sigma| sigma * by),
        }
    }
}

/// How long batches of one kind took, and the rates of that.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BatchFigures {
    /// Duration of a batch, in seconds.
    pub seconds: Spread,
    /// Records per second: the mean of the rates of the samples.
    pub records_per_second: Spread,
    /// MiB (1,048,576 bytes) of records per second, without keys.
    pub mib_per_second: Spread,
}

impl BatchFigures {
    /// From the seconds of batches of `records` records of `size` bytes; a batch that took no time
    /// at all has no rate and is left out. `None` without any other.
    pub fn of(seconds: &[f64], records: usize, size: usize) -> Option<Self> {
        let seconds: Vec<f64> = seconds.iter().copied().filter(|seconds| *seconds > 0.0).collect();
        let rates: Vec<f64> = seconds.iter().map(|seconds| records as f64 / seconds).collect();
        let records_per_second = Spread::of(&rates)?;
        Some(Self {
            seconds: Spread::of(&seconds)?,
            records_per_second,
            mib_per_second: records_per_second.scaled(size as f64 / MIB),
        })
    }

    /// Whether a batch took less than [`SHORT_SECONDS`], on average.
    pub fn is_short(&self) -> bool {
        self.seconds.figure.mean < SHORT_SECONDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_a_mean_a_sigma_and_an_interval_to_the_digit() {
        // 512 records in 256 ms and 128 ms: 2,000/s and 4,000/s.
        let figures = BatchFigures::of(&[0.256, 0.128], 512, 2_048).unwrap();
        let rate = figures.records_per_second;
        assert!((rate.figure.mean - 3_000.0).abs() < 1e-9, "{rate:?}");
        // The square root of (1,000^2 + 1,000^2) / 1.
        assert!((rate.sigma.unwrap() - 1_414.213_562_373).abs() < 1e-6, "{rate:?}");
        assert_eq!(rate.figure.rounds, 2);
        assert!(rate.figure.low.unwrap() < 2_000.0 && rate.figure.high.unwrap() > 4_000.0);
        // Records of 2 KiB: 512 of them are 1 MiB.
        let mib = figures.mib_per_second;
        assert!((mib.figure.mean - 5.859_375).abs() < 1e-9, "{mib:?}");
        assert!((mib.sigma.unwrap() - 2.762_135_864).abs() < 1e-6, "{mib:?}");
        assert!(!figures.is_short());
        assert!(BatchFigures::of(&[0.05], 512, 128).unwrap().is_short());
        assert_eq!(BatchFigures::of(&[0.5], 512, 128).unwrap().seconds.sigma, None);
        assert_eq!(BatchFigures::of(&[0.0], 512, 128), None);
    }
}
