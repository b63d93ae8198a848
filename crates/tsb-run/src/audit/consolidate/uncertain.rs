//! Finds the steps that depend on samples which may not have arrived. Pure: no I/O, no clock.
//!
//! A sample gives the rate since the previous one, so a sample that may be absent affects the
//! time from the sample before it to the sample after it, and nothing else.

use std::collections::HashMap;

use tsb_core::Timestamp;

use super::super::compare::Columns;

/// Of which samples of a series it is not known whether they came.
#[derive(Clone, Debug, Default)]
pub(in crate::audit) enum UncertainSamples {
    /// Of none.
    #[default]
    None,
    /// Of these, by timestamp.
    Of(HashMap<Timestamp, u32>),
    /// Of any: samples are missing, and it is unknown which.
    OfAny,
}

impl UncertainSamples {
    fn covers(&self, at: Timestamp) -> bool {
        match self {
            Self::None => false,
            Self::Of(samples) => samples.contains_key(&at),
            Self::OfAny => true,
        }
    }
}

/// The samples of a series in the order of time, and the steps that cannot be computed.
#[derive(Debug)]
pub(super) struct Samples {
    /// In microseconds, with the value.
    pub(super) all: Vec<(i64, f64)>,
    /// Of these, those that came.
    pub(super) sure: Vec<(i64, f64)>,
    // First and last step of each stretch in doubt; both columns ascend.
    in_doubt: Vec<(i64, i64)>,
}

impl Samples {
    /// If a series `is_continued`, its first sample gives the rate since one that is not in `sent`:
    /// the steps up to the one that it is in cannot be computed.
    pub(super) fn new(sent: &Columns, uncertain: &UncertainSamples, step_us: i64, is_continued: bool) -> Self {
        let mut marked: Vec<(i64, f64, bool)> = sent
            .times
            .iter()
            .zip(&sent.values)
            .map(|(at, value)| (at.0.div_euclid(1_000), *value, uncertain.covers(*at)))
            .collect();
        marked.sort_by_key(|sample| sample.0);
        let step_of = |index: usize| marked.get(index).map(|sample| sample.0.div_euclid(step_us));
        let first = step_of(0).filter(|_| is_continued);
        let mut in_doubt: Vec<(i64, i64)> = first.map(|first| (i64::MIN, first)).into_iter().collect();
        let mut from = 0;
        for run in marked.chunk_by(|one, next| one.2 == next.2) {
            let end = from + run.len();
            if run.first().is_some_and(|first| first.2) {
                let before = from.checked_sub(1).and_then(step_of);
                in_doubt.push((before.unwrap_or(i64::MIN), step_of(end).unwrap_or(i64::MAX)));
            }
            from = end;
        }
        let sure = marked.iter().filter(|sample| !sample.2);
        Self {
            sure: sure.map(|&(at, value, _)| (at, value)).collect(),
            in_doubt,
            all: marked.into_iter().map(|(at, value, _)| (at, value)).collect(),
        }
    }

    /// The step in which the first of all samples begins a file: a second before it.
    pub(super) fn first_step(&self, step_s: u64) -> i64 {
        let first_s = self.all.first().map_or(0, |sample| sample.0.div_euclid(1_000_000));
        (first_s - 1).div_euclid(step_s as i64)
    }

    /// Whether any of `steps` cannot be computed.
    pub(super) fn is_uncertain(&self, steps: std::ops::RangeInclusive<i64>) -> bool {
        let next = self.in_doubt.partition_point(|(_, last)| last < steps.start());
        self.in_doubt.get(next).is_some_and(|(first, _)| first <= steps.end())
    }
}
