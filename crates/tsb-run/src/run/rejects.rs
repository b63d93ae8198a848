//! Collects the samples that a store refused, so that the audit does not count them as lost.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

use tsb_core::{Batch, SeriesId, Timestamp};
use tsb_stores::{Reason, Refusal};

/// The first this many refusals are kept by name; further ones are only counted.
const NAMED_MAX: usize = 1 << 20;

/// All refusals of a run. Writers lock it only when a sample was refused.
#[derive(Debug, Default)]
pub struct Rejects {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    by_reason: BTreeMap<Reason, u64>,
    named: Vec<(SeriesId, Timestamp)>,
}

impl Rejects {
    /// No refusals yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the refusals of one write.
    pub fn add(&self, batch: &Batch<'_>, refused: &[Refusal]) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        for refusal in refused {
            *inner.by_reason.entry(refusal.reason).or_default() += 1;
            if inner.named.len() < NAMED_MAX {
                let index = refusal.index as usize;
                inner.named.push((batch.id(index), batch.time(index)));
            }
        }
    }

    /// Counts by reason.
    pub fn by_reason(&self) -> BTreeMap<String, u64> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner
            .by_reason
            .iter()
            .map(|(reason, count)| (reason.name().to_owned(), *count))
            .collect()
    }

    /// Number of refusals.
    pub fn total(&self) -> u64 {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.by_reason.values().sum()
    }

    /// The refused samples by name, a sample refused n times n times, and the number of refusals
    /// beyond those kept.
    pub fn named(&self) -> (Vec<(SeriesId, Timestamp)>, u64) {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let total: u64 = inner.by_reason.values().sum();
        (inner.named.clone(), total - inner.named.len() as u64)
    }

    /// The named refusals after the first `from`, and the number of all refusals with or without
    /// a name.
    pub fn since(&self, from: usize) -> (Vec<(SeriesId, Timestamp)>, u64) {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let named = inner.named.get(from..).unwrap_or_default().to_vec();
        (named, inner.by_reason.values().sum())
    }

    /// The series with at least one named refusal.
    pub fn series(&self) -> HashSet<SeriesId> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.named.iter().map(|&(series, _)| series).collect()
    }
}
