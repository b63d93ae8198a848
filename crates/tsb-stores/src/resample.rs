//! Resampling for stores that read samples one by one.
//!
//! It streams, and follows the rules of [`Resample`] exactly. A store that keeps the extremes of
//! blocks has faster methods of its own.

use tsb_core::Timestamp;

use crate::store::{Consolidation, Resample};

/// Turns samples in ascending time into one row per step.
#[derive(Debug)]
pub struct Resampler {
    resample: Resample,
    step: Option<OpenStep>,
    times: Vec<Timestamp>,
    values: Vec<f64>,
}

/// The state of the current step.
#[derive(Clone, Copy, Debug)]
struct OpenStep {
    number: i64,
    first: f64,
    last: f64,
    min: f64,
    max: f64,
    sum: f64,
    // Number of samples, and number of those that are not NaN.
    count: u64,
    numbers: u64,
}

impl OpenStep {
    fn new(number: i64, value: f64) -> Self {
        let mut step = Self {
            number,
            first: value,
            last: value,
            min: f64::NAN,
            max: f64::NAN,
            sum: 0.0,
            count: 0,
            numbers: 0,
        };
        step.add(value);
        step
    }

    fn add(&mut self, value: f64) {
        self.last = value;
        self.count += 1;
        if !value.is_nan() {
            // `min` and `max` give the other operand where one is NaN.
            self.min = self.min.min(value);
            self.max = self.max.max(value);
            self.sum += value;
            self.numbers += 1;
        }
    }

    fn value(&self, consolidation: Consolidation) -> f64 {
        match consolidation {
            Consolidation::Min => self.min,
            Consolidation::Max => self.max,
            Consolidation::Average if self.numbers == 0 => f64::NAN,
            Consolidation::Average => self.sum / self.numbers as f64,
            Consolidation::Sum => self.sum,
            Consolidation::Count => self.count as f64,
            Consolidation::First => self.first,
            Consolidation::Last => self.last,
        }
    }
}

impl Resampler {
    /// No samples yet. A step of less than a nanosecond counts as one nanosecond.
    pub fn new(resample: Resample) -> Self {
        Self {
            resample: Resample {
                step_ns: resample.step_ns.max(1),
                ..resample
            },
            step: None,
            times: Vec::new(),
            values: Vec::new(),
        }
    }

    /// Adds the next sample, which must not be older than the previous one.
    pub fn push(&mut self, at: Timestamp, value: f64) {
        let number = at.0.div_euclid(self.resample.step_ns);
        match &mut self.step {
            Some(step) if step.number == number => step.add(value),
            _ => {
                self.end_step();
                self.step = Some(OpenStep::new(number, value));
            }
        }
    }

    /// The rows of all samples.
    pub fn finish(mut self) -> (Vec<Timestamp>, Vec<f64>) {
        self.end_step();
        (self.times, self.values)
    }

    fn end_step(&mut self) {
        if let Some(step) = self.step.take() {
            // The step of the earliest timestamps may start before the first representable
            // timestamp.
            self.times
                .push(Timestamp(step.number.saturating_mul(self.resample.step_ns)));
            self.values.push(step.value(self.resample.consolidation));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(consolidation: Consolidation, samples: &[(i64, f64)]) -> Vec<(i64, f64)> {
        let mut resampler = Resampler::new(Resample {
            step_ns: 10,
            consolidation,
        });
        for &(at, value) in samples {
            resampler.push(Timestamp(at), value);
        }
        let (times, values) = resampler.finish();
        times.iter().map(|at| at.0).zip(values).collect()
    }

    #[test]
    fn steps_are_aligned_before_the_epoch_too() {
        let samples = [(-11, 1.0), (-10, 2.0), (-1, 3.0), (0, 4.0), (25, 5.0)];
        let expected = [(-20, 1.0), (-10, 3.0), (0, 4.0), (20, 5.0)];
        assert_eq!(rows(Consolidation::Max, &samples), expected);
        assert_eq!(rows(Consolidation::Count, &samples)[1], (-10, 2.0));
        assert_eq!(rows(Consolidation::Average, &samples)[1], (-10, 2.5));
        assert_eq!(rows(Consolidation::First, &samples)[1], (-10, 2.0));
        assert_eq!(rows(Consolidation::Last, &[(i64::MIN, 1.0)]), [(i64::MIN, 1.0)]);
    }

    #[test]
    fn nan_counts_only_for_count_first_and_last() {
        let samples = [(0, f64::NAN), (1, 2.0), (2, 1.0), (3, f64::NAN), (10, f64::NAN)];
        let of = |consolidation| rows(consolidation, &samples);
        assert_eq!(of(Consolidation::Min)[0].1, 1.0);
        assert_eq!(of(Consolidation::Sum)[0].1, 3.0);
        assert_eq!(of(Consolidation::Average)[0].1, 1.5);
        assert_eq!(of(Consolidation::Count)[0].1, 4.0);
        assert!(of(Consolidation::First)[0].1.is_nan() && of(Consolidation::Last)[0].1.is_nan());
        assert!(of(Consolidation::Max)[1].1.is_nan() && of(Consolidation::Average)[1].1.is_nan());
        assert_eq!(of(Consolidation::Sum)[1].1, 0.0);
    }
}
