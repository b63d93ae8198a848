//! The oracle: a sorted map that fulfils the contract in the simplest way.
//!
//! It shares no code with any store, and has its own resampler.

use std::collections::BTreeMap;

use tsb_core::{SeriesId, Timestamp};

use crate::store::{Capabilities, Consolidation, Exactness, OnConflict, Reason, Resample, TimeRange};

/// A row: a timestamp and a value.
pub(super) type Row = (Timestamp, f64);

/// Timestamps that every store must represent: 1970 to 2096, without the first second, since 0
/// means no timestamp on some wires. Stores may refuse others.
const ORDINARY: std::ops::Range<i64> = 1_000_000_000..4_000_000_000_000_000_000;

/// The samples that a store with these capabilities must hold.
#[derive(Debug)]
pub(super) struct Model {
    capabilities: Capabilities,
    series: BTreeMap<SeriesId, ModelSeries>,
    // The newest timestamp of any series, from which retention is measured.
    newest: Option<Timestamp>,
    pub(super) accepted: u64,
    pub(super) superseded: u64,
}

/// One series. Two samples with the same key are in conflict: the key is the timestamp, or the
/// slot.
#[derive(Debug, Default)]
struct ModelSeries {
    samples: BTreeMap<i64, Vec<Row>>,
    newest_written: Option<Timestamp>,
}

/// What a store may do with a sample.
#[derive(Debug)]
pub(super) struct Admission {
    pub(super) may_accept: bool,
    pub(super) may_refuse_as: Vec<Reason>,
}

impl Model {
    pub(super) fn new(capabilities: Capabilities) -> Self {
        Self {
            capabilities,
            newest: None,
            series: BTreeMap::new(),
            accepted: 0,
            superseded: 0,
        }
    }

    /// Whether the sample must be accepted or refused now, and for which reason.
    pub(super) fn admission(&self, id: SeriesId, at: Timestamp, value: f64) -> Admission {
        let line = self.series.get(&id);
        let newest = line.and_then(|line| line.newest_written);
        let mut admission = Admission {
            may_accept: true,
            may_refuse_as: Vec::new(),
        };
        if !ORDINARY.contains(&at.0) {
            admission.may_refuse_as.push(Reason::Unrepresentable);
        }
        if self.newest.is_some_and(|newest| self.may_expire(at, newest)) {
            admission.may_refuse_as.push(Reason::Expired);
        }
        if !self.capabilities.special_values && !value.is_finite() {
            admission.may_accept = false;
            admission.may_refuse_as.push(Reason::Unrepresentable);
        }
        if self.capabilities.late == OnConflict::Rejected && newest.is_some_and(|newest| at < newest) {
            admission.may_accept = false;
            admission.may_refuse_as.push(Reason::Late);
        }
        let is_taken = line.is_some_and(|line| line.samples.contains_key(&self.key(at)));
        if self.capabilities.duplicate == OnConflict::Rejected && is_taken {
            admission.may_accept = false;
            admission.may_refuse_as.push(Reason::Duplicate);
        }
        admission
    }

    /// Adds a sample that the store accepted.
    pub(super) fn apply(&mut self, id: SeriesId, at: Timestamp, value: f64) {
        let key = self.key(at);
        let line = self.series.entry(id).or_default();
        let there = line.samples.entry(key).or_default();
        if self.capabilities.duplicate != OnConflict::KeptBoth {
            self.superseded += there.len() as u64;
            there.clear();
        }
        there.push((at, value));
        line.newest_written = line.newest_written.max(Some(at));
        self.newest = self.newest.max(Some(at));
        self.accepted += 1;
    }

    /// The rows of one series in a range: all that were accepted and not superseded.
    pub(super) fn rows(&self, id: SeriesId, range: TimeRange) -> Vec<Row> {
        let Some(line) = self.series.get(&id).filter(|_| range.start < range.end) else {
            return Vec::new();
        };
        let near = line.samples.range(self.key(range.start)..=self.key(range.end));
        let rows = near.flat_map(|(_, rows)| rows.iter().copied());
        rows.filter(|(at, _)| *at >= range.start && *at < range.end).collect()
    }

    /// The rows of a resampled query, with each value that a row may have.
    pub(super) fn resampled(&self, id: SeriesId, range: TimeRange, resample: Resample) -> Vec<(Timestamp, Vec<f64>)> {
        let mut steps: BTreeMap<i128, Vec<Row>> = BTreeMap::new();
        let step_ns = i128::from(resample.step_ns);
        for (at, value) in self.rows(id, range) {
            let start = i128::from(at.0).div_euclid(step_ns) * step_ns;
            steps.entry(start).or_default().push((at, value));
        }
        let row = |(start, rows): (i128, Vec<Row>)| {
            let at = Timestamp(i64::try_from(start).unwrap_or(i64::MIN));
            (at, consolidated(resample.consolidation, &rows))
        };
        steps.into_iter().map(row).collect()
    }

    /// The newest timestamp that a query would return.
    pub(super) fn newest(&self, id: SeriesId) -> Option<Timestamp> {
        self.rows(id, TimeRange::ALL).into_iter().map(|(at, _)| at).max()
    }

    /// The time from which on samples must still be there; older ones may have expired.
    pub(super) fn kept_from(&self) -> Timestamp {
        match (self.capabilities.retention_ns, self.newest) {
            (Some(retention_ns), Some(newest)) => newest + (1 - retention_ns),
            _ => Timestamp::MIN,
        }
    }

    /// Number of samples that a query could return if none had expired.
    pub(super) fn samples(&self) -> u64 {
        let lines = self.series.values().flat_map(|line| line.samples.values());
        lines.map(|rows| rows.len() as u64).sum()
    }

    /// Whether the store has a retention.
    pub(super) fn expires(&self) -> bool {
        self.capabilities.retention_ns.is_some()
    }

    /// Resets the counts after a reopening.
    pub(super) fn reopened(&mut self) {
        self.accepted = 0;
        self.superseded = 0;
    }

    fn may_expire(&self, at: Timestamp, newest: Timestamp) -> bool {
        self.capabilities
            .retention_ns
            .is_some_and(|kept| i128::from(at.0) <= i128::from(newest.0) - i128::from(kept))
    }

    fn key(&self, at: Timestamp) -> i64 {
        match self.capabilities.exactness {
            Exactness::OnePerSlot(slot_ns) => at.0.div_euclid(slot_ns),
            _ => at.0,
        }
    }
}

/// The values that a step of these samples may have. Where both of two samples with one timestamp are
/// kept, either is the first or the last.
fn consolidated(consolidation: Consolidation, rows: &[Row]) -> Vec<f64> {
    let at = match consolidation {
        Consolidation::First => rows.first(),
        Consolidation::Last => rows.last(),
        _ => None,
    };
    if let Some((at, _)) = at {
        return rows.iter().filter(|row| row.0 == *at).map(|row| row.1).collect();
    }
    let values: Vec<f64> = rows.iter().map(|row| row.1).collect();
    vec![consolidate(consolidation, &values)]
}

/// Consolidates the samples of a step, which must be in time order and at least one.
fn consolidate(consolidation: Consolidation, values: &[f64]) -> f64 {
    let numbers: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    let sum = numbers.iter().fold(0.0, |sum, value| sum + value);
    let extreme = |is_better: fn(f64, f64) -> bool| {
        let mut best = f64::NAN;
        for &value in &numbers {
            if best.is_nan() || is_better(value, best) {
                best = value;
            }
        }
        best
    };
    match consolidation {
        Consolidation::Min => extreme(|a, b| a < b),
        Consolidation::Max => extreme(|a, b| a > b),
        Consolidation::Average if numbers.is_empty() => f64::NAN,
        Consolidation::Average => sum / numbers.len() as f64,
        Consolidation::Sum => sum,
        Consolidation::Count => values.len() as f64,
        Consolidation::First => values.first().copied().unwrap_or(f64::NAN),
        Consolidation::Last => values.last().copied().unwrap_or(f64::NAN),
    }
}

/// Whether a raw value equals the one written, in this exactness class. Significant digits are
/// those of the value itself: the values of the suite are so few digits long that none is lost
/// to a larger one.
pub(super) fn same_value(exactness: Exactness, got: f64, written: f64) -> bool {
    match exactness {
        Exactness::Exact
        | Exactness::OnePerSlot(_)
        | Exactness::Consolidated(_)
        | Exactness::Slots(_)
        | Exactness::Nothing => got.to_bits() == written.to_bits(),
        Exactness::LastBit => [written.to_bits(), written.to_bits() & !1].contains(&got.to_bits()),
        Exactness::Float32 => same_number(got, f64::from(written as f32)),
        Exactness::Decimals(decimals) => {
            let half = 0.5 * 10_f64.powi(-i32::from(decimals));
            same_number(got, written) || (got - written).abs() <= half + written.abs() * f64::EPSILON
        }
        Exactness::Significant(digits) => {
            same_number(got, written) || (got - written).abs() <= exactness_unit(digits, written)
        }
    }
}

/// Half a unit of the last of some significant digits of a value.
fn exactness_unit(digits: u8, value: f64) -> f64 {
    0.5 * 10_f64.powi(1 - i32::from(digits)) * value.abs()
}

/// Whether a consolidated value is the expected one. Zeros are equal whatever their sign.
pub(super) fn same_row(exactness: Exactness, got: f64, expected: f64) -> bool {
    match exactness {
        Exactness::Exact | Exactness::OnePerSlot(_) => same_number(got, expected),
        _ => same_number(got, expected) || (got - expected).abs() <= 1e-3 + expected.abs() * 1e-5,
    }
}

fn same_number(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan())
}
