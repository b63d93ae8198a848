//! The result of `tsb reproduce`: a published experiment, and what it measures here.
//!
//! [`Experiment`] has what every experiment states; what only one of them measures is in the
//! module of its name.

pub mod dalmatiner;
pub mod hm9000;
pub mod mohawk;
pub mod records;
pub mod rrdcached;

use serde::{Deserialize, Serialize};

use super::Written;
use crate::stats::{Estimate, mean};

/// A repeated experiment: `P` is what only this one can be asked for, `D` what only this one
/// measures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reproduction<P, D> {
    /// The program and the machine.
    #[serde(flatten)]
    pub written: Written,
    /// What was asked for.
    pub plan: ExperimentPlan<P>,
    /// Duration of the whole experiment.
    pub took_seconds: f64,
    /// What was measured.
    pub experiment: Experiment<D>,
}

/// What an experiment was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExperimentPlan<P> {
    /// The experiment.
    pub experiment: String,
    /// Whether it was the smaller version.
    pub is_quick: bool,
    /// What only this experiment can be asked for.
    #[serde(flatten)]
    pub asked: P,
}

/// What an experiment found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment<D> {
    /// The experiment.
    pub name: String,
    /// Whether it was the smaller version.
    pub is_quick: bool,
    /// Whether the build is unoptimized, so that our own figures are too high.
    pub is_debug_build: bool,
    /// The published figures beside the measured ones.
    pub rows: Vec<Row>,
    /// What the publication got wrong, or left unmeasured.
    pub mistakes: Vec<String>,
    /// What only this experiment measures.
    #[serde(flatten)]
    pub details: D,
}

/// A published figure beside the measured one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was measured.
    pub what: String,
    /// The published figure; absent where none was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// The figure measured here, the mean over its rounds; absent where there is none, and `why`
    /// says for what reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// The lower end of the 95 % interval of `measured`; absent for fewer than two rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end of that interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// The unit of all of these.
    pub unit: String,
    /// `measured / published`; absent where one of them is, or `published` is 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// What each of the two covers, and why they differ.
    pub why: String,
}

impl Row {
    /// A row without a published figure.
    pub fn new(what: impl Into<String>, measured: Option<Figure>, unit: &str, why: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            published: None,
            measured: measured.map(|figure| figure.mean),
            low: measured.and_then(|figure| figure.low),
            high: measured.and_then(|figure| figure.high),
            unit: unit.to_owned(),
            ratio: None,
            why: why.into(),
        }
    }

    /// The same row beside a published figure.
    #[must_use]
    pub fn beside(self, published: f64) -> Self {
        let ratio = self.measured.map(|measured| measured / published);
        Self {
            published: Some(published),
            ratio: ratio.filter(|ratio| ratio.is_finite()),
            ..self
        }
    }
}

/// A figure over the rounds of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The mean.
    pub mean: f64,
    /// The lower end of its 95 % interval; absent for fewer than two rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end of that interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Number of rounds that have it.
    pub rounds: usize,
}

impl Figure {
    /// From the values of the rounds, each of which is finite; `None` without any.
    pub fn of(values: &[f64]) -> Option<Self> {
        let interval = mean(values);
        let mean = match (interval, values) {
            (Some(Estimate { value, .. }), _) => value,
            (None, [only]) => *only,
            (None, _) => return None,
        };
        Some(Self {
            mean,
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            rounds: values.len(),
        })
    }

    /// The same figure in another unit.
    #[must_use]
    pub fn scaled(self, by: f64) -> Self {
        Self {
            mean: self.mean * by,
            low: self.low.map(|low| low * by),
            high: self.high.map(|high| high * by),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_of_one_round_has_no_interval() {
        assert_eq!(Figure::of(&[]), None);
        let one = Figure::of(&[3.0]).unwrap();
        assert_eq!((one.mean, one.low, one.high, one.rounds), (3.0, None, None, 1));
        let two = Figure::of(&[3.0, 5.0]).unwrap();
        assert_eq!((two.mean, two.rounds), (4.0, 2));
        assert!(two.low.unwrap() < 4.0 && two.high.unwrap() > 4.0);
    }

    #[test]
    fn a_ratio_needs_both_figures() {
        let row = |measured, published| Row::new("drain", measured, "s", "").beside(published).ratio;
        assert_eq!(row(Figure::of(&[3.0]), 2.0), Some(1.5));
        assert_eq!(row(None, 2.0), None);
        assert_eq!(row(Figure::of(&[3.0]), 0.0), None);
        assert_eq!(Row::new("drain", Figure::of(&[3.0]), "s", "").ratio, None);
    }
}
