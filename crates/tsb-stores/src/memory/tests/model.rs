//! The naive model: what a store must say, by the simplest means there are.

use std::collections::BTreeMap;

use super::*;

pub(super) const CONSOLIDATIONS: [Consolidation; 7] = [
    Consolidation::Min,
    Consolidation::Max,
    Consolidation::Average,
    Consolidation::Sum,
    Consolidation::Count,
    Consolidation::First,
    Consolidation::Last,
];

/// A cheap hash: the same numbers in every run.
pub(super) fn mixed(index: u64) -> u64 {
    let mut x = index.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// A sorted map a series, and the counts.
#[derive(Debug)]
pub(super) struct NaiveModel {
    series: Vec<BTreeMap<i64, f64>>,
    retention: Option<i64>,
    newest: i64,
    accepted: u64,
    superseded: u64,
}

fn bits(rows: &[(Timestamp, f64)]) -> Vec<(i64, u64)> {
    rows.iter().map(|(at, value)| (at.0, value.to_bits())).collect()
}

/// Equal, any NaN being like any other and 0.0 like -0.0: what arithmetic leaves open.
fn same(left: f64, right: f64) -> bool {
    left == right || (left.is_nan() && right.is_nan())
}

impl NaiveModel {
    pub(super) fn new(series: u32, retention: Option<i64>) -> Self {
        Self {
            series: vec![BTreeMap::new(); series as usize],
            retention,
            newest: i64::MIN,
            accepted: 0,
            superseded: 0,
        }
    }

    fn cutoff(&self) -> i64 {
        self.retention
            .map_or(i64::MIN, |retention| self.newest.saturating_sub(retention))
    }

    /// Takes what the store did not refuse; a refusal must have a reason that holds.
    pub(super) fn write(&mut self, batch: &Batch<'_>, refused: &Refusals) {
        let mut refusals = refused.as_slice().to_vec();
        refusals.sort_by_key(|refusal| refusal.index);
        let mut refusals = refusals.into_iter().peekable();
        for (index, (id, at, value)) in batch.iter().enumerate() {
            if let Some(refusal) = refusals.next_if(|refusal| refusal.index as usize == index) {
                let expired = at.0 < self.cutoff();
                assert!(
                    refusal.reason == Reason::Full || (refusal.reason == Reason::Expired && expired),
                    "{refusal:?}"
                );
                continue;
            }
            assert!(at.0 >= self.cutoff(), "sample {index} at {at} has expired");
            self.newest = self.newest.max(at.0);
            self.accepted += 1;
            let before = self.series[id.index()].insert(at.0, value);
            self.superseded += u64::from(before.is_some());
        }
        assert_eq!(refusals.next(), None, "a refusal names a sample of the batch, once");
    }

    fn visible(&self, series: usize, range: TimeRange) -> Vec<(Timestamp, f64)> {
        let from = range.start.0.max(self.cutoff());
        let rows = self.series[series]
            .range(from..)
            .take_while(|(at, _)| **at < range.end.0);
        rows.map(|(at, value)| (Timestamp(*at), *value)).collect()
    }

    pub(super) fn span(&self) -> (i64, i64) {
        let first = self
            .series
            .iter()
            .filter_map(|series| series.keys().next())
            .min()
            .copied();
        let last = self
            .series
            .iter()
            .filter_map(|series| series.keys().next_back())
            .max()
            .copied();
        (first.unwrap_or(0), last.unwrap_or(0))
    }

    pub(super) fn check_raw(&self, store: &MemoryStore, range: TimeRange) {
        for id in 0..self.series.len() {
            let expected = self.visible(id, range);
            let answer = store.samples(SeriesId(id as u32), range).unwrap();
            assert_eq!(bits(&answer), bits(&expected), "series {id} in {range:?}");
        }
    }

    pub(super) fn check_newest(&self, store: &MemoryStore) {
        let ids: Vec<SeriesId> = (0..self.series.len() as u32).map(SeriesId).collect();
        let mut newest = vec![Some(Timestamp(1)); ids.len()];
        store.newest(&ids, &mut newest).unwrap();
        for (id, newest) in newest.iter().enumerate() {
            let last = self.series[id].keys().next_back().filter(|at| **at >= self.cutoff());
            assert_eq!(newest.map(|at| at.0), last.copied(), "series {id}");
        }
    }

    pub(super) fn check_resampled(&self, store: &MemoryStore, range: TimeRange, resample: Resample) {
        for id in 0..self.series.len() {
            let mut steps: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
            for (at, value) in self.visible(id, range) {
                steps
                    .entry(at.0 - at.0.rem_euclid(resample.step_ns))
                    .or_default()
                    .push(value);
            }
            let answer = store.rows(SeriesId(id as u32), range, Some(resample)).unwrap();
            assert_eq!(answer.len(), steps.len(), "series {id}, {resample:?}");
            for ((at, value), (step, samples)) in answer.iter().zip(steps) {
                let expected = consolidate(&samples, resample.consolidation);
                assert!(
                    at.0 == step && same(*value, expected),
                    "series {id}, {resample:?}: {value} for {samples:?}"
                );
            }
        }
    }

    pub(super) fn check_stats(&self, stats: &Stats) {
        let held: usize = self.series.iter().map(BTreeMap::len).sum();
        let visible = self
            .series
            .iter()
            .map(|series| series.range(self.cutoff()..).count())
            .sum::<usize>();
        assert_eq!(stats.accepted, self.accepted);
        assert_eq!(stats.superseded, self.superseded);
        assert_eq!(stats.samples, visible as u64);
        assert_eq!(stats.expired, (held - visible) as u64);
        assert!(stats.footprint.sealed_samples <= held as u64);
    }
}

fn consolidate(samples: &[f64], consolidation: Consolidation) -> f64 {
    let numbers: Vec<f64> = samples.iter().copied().filter(|value| !value.is_nan()).collect();
    let mut sum = 0.0;
    for number in &numbers {
        sum += number;
    }
    match consolidation {
        Consolidation::Min => numbers.iter().copied().reduce(f64::min).unwrap_or(f64::NAN),
        Consolidation::Max => numbers.iter().copied().reduce(f64::max).unwrap_or(f64::NAN),
        Consolidation::Average => sum / numbers.len() as f64,
        Consolidation::Sum => sum,
        Consolidation::Count => samples.len() as f64,
        Consolidation::First => samples[0],
        Consolidation::Last => samples[samples.len() - 1],
    }
}
