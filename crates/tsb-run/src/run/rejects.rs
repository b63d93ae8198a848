//! Which samples a store or listener refused, so that the audit does not call them lost.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};

use tsb_core::{Batch, SeriesId, Timestamp};
use tsb_stores::{Reason, Refusal};

/// Refusals are kept by name up to this many; beyond it they are only counted.
const NAMED_MAX: usize = 1 << 20;

/// All refusals of a run. Written only when something was refused.
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

    /// Adds what a write refused.
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

    /// How many there were.
    pub fn total(&self) -> u64 {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.by_reason.values().sum()
    }

    /// The refused samples by name, each as often as it was refused; and how many more
    /// there were than could be kept.
    pub fn named(&self) -> (Vec<(SeriesId, Timestamp)>, u64) {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let total: u64 = inner.by_reason.values().sum();
        (inner.named.clone(), total - inner.named.len() as u64)
    }

    /// The refused samples by name behind the first `from` of them; and how many there were in
    /// all, with or without a name.
    pub fn since(&self, from: usize) -> (Vec<(SeriesId, Timestamp)>, u64) {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let named = inner.named.get(from..).unwrap_or_default().to_vec();
        (named, inner.by_reason.values().sum())
    }

    /// The series that had a refusal.
    pub fn series(&self) -> HashSet<SeriesId> {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.named.iter().map(|&(series, _)| series).collect()
    }
}
