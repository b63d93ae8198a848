//! Selects the samples that get faults, and records the faults.

use std::collections::{BTreeSet, HashMap};
use std::ops::Not;

use tsb_core::{Batch, SeriesId, Timestamp};

use super::ThrottleOptions;
use crate::error::{Error, Result};

/// Maximum number of faults of one kind in one window; after that no more are injected, so that the record,
/// which lists each fault, stays exact and bounded (24 MiB per kind).
pub const MAX_FAULTS: usize = 1 << 20;

/// A sample with a fault, as the caller wrote it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FaultSample {
    /// Its series.
    pub series: SeriesId,
    /// Its timestamp.
    pub at: Timestamp,
    /// The value that was written.
    pub value: f64,
}

/// All faults, in order of injection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// Refused with `Reason::Injected`.
    pub refused: Vec<FaultSample>,
    /// Acknowledged and dropped.
    pub lost: Vec<FaultSample>,
    /// Stored with another value.
    pub altered: Vec<FaultSample>,
    /// Returned twice.
    pub duplicated: Vec<FaultSample>,
    /// Altered in one answer: the row, with the value that was right.
    pub wrong: Vec<FaultSample>,
}

/// The kind of a fault. If two would hit one sample, the first in this order is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FaultKind {
    Error,
    Lose,
    Alter,
    Duplicate,
}

/// The plan of faults: in every `one_in` consecutive samples, one at a seeded position.
#[derive(Clone, Debug)]
pub(super) struct FaultPlan {
    seed: u64,
    kinds: Vec<(FaultKind, u64)>,
    wrong_one_in: Option<u64>,
}

impl FaultPlan {
    /// The plan for these options, or what is wrong with them.
    pub(super) fn new(options: &ThrottleOptions) -> std::result::Result<Self, &'static str> {
        let kinds = [
            (FaultKind::Error, options.error_one_in),
            (FaultKind::Lose, options.lose_one_in),
            (FaultKind::Alter, options.alter_one_in),
            (FaultKind::Duplicate, options.duplicate_one_in),
        ];
        let kinds: Vec<_> = kinds
            .into_iter()
            .filter_map(|(fault, one_in)| Some((fault, one_in?)))
            .collect();
        if kinds.iter().any(|&(_, one_in)| one_in == 0) || options.wrong_one_in == Some(0) {
            return Err("one in 0 cannot be");
        }
        Ok(Self {
            seed: options.seed,
            kinds,
            wrong_one_in: options.wrong_one_in,
        })
    }

    /// Whether some answers are wrong.
    pub(super) const fn answers_wrong(&self) -> bool {
        self.wrong_one_in.is_some()
    }

    /// Whether the answer with this number is wrong: in every `one_in` consecutive answers, one at
    /// a seeded position.
    pub(super) fn is_wrong(&self, number: u64) -> bool {
        self.wrong_one_in.is_some_and(|one_in| {
            let group = number / one_in;
            group < MAX_FAULTS as u64 && number % one_in == hash(self.seed, WRONG, group) % one_in
        })
    }

    pub(super) fn has_faults(&self) -> bool {
        self.kinds.is_empty().not()
    }

    /// The faults in a batch whose first sample has the number `first`: ascending indices, each
    /// at most once. The cost grows with the number of faults, not of samples.
    pub(super) fn hits(&self, first: u64, len: usize) -> Vec<(usize, FaultKind)> {
        let mut hits = Vec::new();
        let end = first + len as u64;
        for &(fault, one_in) in &self.kinds {
            let mut group = first / one_in;
            while group.saturating_mul(one_in) < end && len > 0 {
                let number = group * one_in + hash(self.seed, fault as u64, group) % one_in;
                if (first..end).contains(&number) && group < MAX_FAULTS as u64 {
                    hits.push(((number - first) as usize, fault));
                }
                group += 1;
            }
        }
        hits.sort_unstable();
        hits.dedup_by_key(|(index, _)| *index);
        hits
    }
}

/// Stands for wrong answers in [`hash`]; differs from every [`FaultKind`] as a number.
const WRONG: u64 = 4;

/// Hashes three numbers to one, evenly distributed (splitmix64's finisher over a Weyl sequence).
fn hash(seed: u64, kind: u64, group: u64) -> u64 {
    let mut x = seed
        .wrapping_add(kind.wrapping_mul(0xd1b5_4a32_d192_ed03))
        .wrapping_add(group.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A value that differs from `value` in every exactness class, such as integers or 32-bit floats.
pub(super) fn altered(value: f64) -> f64 {
    if value.abs() < 1_048_576.0 {
        value + 1.0
    } else if value.abs() < 1e38 {
        value / 2.0
    } else {
        0.0
    }
}

/// The record of faults, and the state for answering reads consistently with them.
#[derive(Debug, Default)]
pub(super) struct FaultLog {
    pub(super) faults: Faults,
    // Timestamps to return twice, by series.
    copies: HashMap<SeriesId, BTreeSet<Timestamp>, foldhash::fast::FixedState>,
    defined: std::collections::HashSet<SeriesId, foldhash::fast::FixedState>,
}

impl FaultLog {
    pub(super) fn define(&mut self, series: impl Iterator<Item = SeriesId>) {
        self.defined.extend(series);
    }

    pub(super) fn check_defined(&self, mut series: impl Iterator<Item = SeriesId>) -> Result<()> {
        match series.find(|id| !self.defined.contains(id)) {
            Some(id) => Err(Error::UnknownSeries { id }),
            None => Ok(()),
        }
    }

    pub(super) fn record(&mut self, fault: FaultKind, batch: &Batch<'_>, index: usize) {
        let sample = FaultSample {
            series: batch.id(index),
            at: batch.time(index),
            value: batch.values().get(index).copied().unwrap_or_default(),
        };
        match fault {
            FaultKind::Error => self.faults.refused.push(sample),
            FaultKind::Lose => self.faults.lost.push(sample),
            FaultKind::Alter => self.faults.altered.push(sample),
            FaultKind::Duplicate => {
                // A sample that is hit twice is still returned twice, not three times.
                if self.copies.entry(sample.series).or_default().insert(sample.at) {
                    self.faults.duplicated.push(sample);
                }
            }
        }
    }

    /// The doubled timestamps of `series`; series without any are left out.
    pub(super) fn copies_of(&self, series: &[SeriesId]) -> HashMap<SeriesId, BTreeSet<Timestamp>> {
        let found = series.iter().filter_map(|id| Some((*id, self.copies.get(id)?.clone())));
        if self.copies.is_empty() {
            HashMap::new()
        } else {
            found.collect()
        }
    }
}

/// Copies a chunk, with each doubled sample repeated. Samples that the inner store no longer has
/// (superseded, expired) are not restored.
pub(super) fn twice(copies: &BTreeSet<Timestamp>, times: &[Timestamp], values: &[f64]) -> (Vec<Timestamp>, Vec<f64>) {
    let mut doubled = (
        Vec::with_capacity(times.len() + 1),
        Vec::with_capacity(values.len() + 1),
    );
    for (&at, &value) in times.iter().zip(values) {
        for _ in 0..=usize::from(copies.contains(&at)) {
            doubled.0.push(at);
            doubled.1.push(value);
        }
    }
    doubled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(error_one_in: Option<u64>, lose_one_in: Option<u64>) -> FaultPlan {
        FaultPlan::new(&ThrottleOptions {
            error_one_in,
            lose_one_in,
            seed: 42,
            ..ThrottleOptions::default()
        })
        .unwrap()
    }

    #[test]
    fn one_fault_in_a_thousand_holds_however_batches_are_cut() {
        let whole = plan(None, Some(1_000)).hits(0, 100_000);
        assert_eq!(whole.len(), 100);
        for (group, (index, _)) in whole.iter().enumerate() {
            assert_eq!(index / 1_000, group);
        }
        let places: BTreeSet<_> = whole.iter().map(|(index, _)| index % 1_000).collect();
        assert!(places.len() > 80, "not periodic");
        let mut cut = Vec::new();
        let mut first = 0;
        for len in [0, 1, 999, 54, 7_946, 91_000] {
            let hits = plan(None, Some(1_000)).hits(first as u64, len);
            cut.extend(hits.into_iter().map(|(index, fault)| (index + first, fault)));
            first += len;
        }
        assert_eq!(cut, whole);
    }

    #[test]
    fn one_answer_in_a_hundred_is_wrong_at_a_seeded_place() {
        let plan = FaultPlan::new(&ThrottleOptions {
            wrong_one_in: Some(100),
            ..ThrottleOptions::default()
        })
        .unwrap();
        assert!(plan.answers_wrong() && !plan.has_faults());
        let wrong: Vec<u64> = (0..10_000).filter(|number| plan.is_wrong(*number)).collect();
        let groups: Vec<u64> = wrong.iter().map(|number| number / 100).collect();
        assert_eq!(groups, (0..100).collect::<Vec<_>>());
        let places: BTreeSet<_> = wrong.iter().map(|number| number % 100).collect();
        assert!(places.len() > 50, "not periodic");
        let none = FaultPlan::new(&ThrottleOptions {
            wrong_one_in: Some(0),
            ..ThrottleOptions::default()
        });
        assert!(none.is_err());
    }

    #[test]
    fn a_sample_has_one_fault_at_most() {
        let hits = plan(Some(1), Some(1)).hits(17, 10);
        assert_eq!(hits, (0..10).map(|index| (index, FaultKind::Error)).collect::<Vec<_>>());
        assert!(plan(None, None).hits(0, 10).is_empty());
        assert!(plan(None, Some(1)).hits(MAX_FAULTS as u64, 10).is_empty());
        assert!(plan(None, Some(u64::MAX)).hits(u64::MAX - 20, 10).len() <= 1);
    }

    #[test]
    fn an_altered_value_shows_at_any_exactness() {
        for value in [
            0.0,
            -0.0,
            -1.0,
            -0.5,
            5e-324,
            1e6,
            -1e7,
            1e300,
            f64::MAX,
            f64::INFINITY,
            f64::NAN,
        ] {
            let other = altered(value);
            assert!(!other.is_nan() && (other as f32) != (value as f32), "{value}");
            assert!(value.is_nan() || (other - value).abs() >= 0.5, "{value}");
        }
    }
}
