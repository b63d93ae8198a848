//! A sink that keeps everything, for the tests of the codecs.

use crate::batch::{Batch, Ids, Times};
use crate::series::{Catalog, SeriesId, SeriesKey};
use crate::time::Timestamp;
use crate::wire::{Malformed, Sink};

/// What a decoder handed over.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    pub(crate) catalog: Catalog,
    pub(crate) samples: Vec<(SeriesId, Timestamp, f64)>,
    pub(crate) shapes: Vec<(&'static str, usize)>,
    pub(crate) malformed: Vec<(&'static str, Vec<u8>)>,
    pub(crate) refused: usize,
    pub(crate) asked: usize,
    /// How many series are admitted; 0 is no limit.
    pub(crate) limit: usize,
}

impl Heap {
    /// Samples by key, with the bits of the value, so that NaN compares too.
    pub(crate) fn named(&self) -> Vec<(String, i64, u64)> {
        let name = |id| {
            self.catalog
                .key(id)
                .map_or_else(|| format!("?{id}"), ToString::to_string)
        };
        let samples = self.samples.iter();
        samples
            .map(|(id, at, value)| (name(*id), at.0, value.to_bits()))
            .collect()
    }

    /// The sentences of what was malformed.
    pub(crate) fn problems(&self) -> Vec<&'static str> {
        self.malformed.iter().map(|(what, _)| *what).collect()
    }
}

impl Sink for Heap {
    fn series(&mut self, key: &SeriesKey) -> Option<SeriesId> {
        self.asked += 1;
        if let Some(id) = self.catalog.id(key) {
            return Some(id);
        }
        if self.limit > 0 && self.catalog.len() >= self.limit {
            return None;
        }
        Some(self.catalog.intern(key.clone()))
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        assert!(!batch.is_empty(), "an empty batch says nothing");
        let shape = match (batch.ids(), batch.times()) {
            (Ids::Range(_), Times::One(_)) => "tick",
            _ => "columns",
        };
        self.shapes.push((shape, batch.len()));
        self.samples.extend(batch.iter());
    }

    fn refused(&mut self, samples: usize) {
        self.refused += samples;
    }

    fn malformed(&mut self, problem: &Malformed<'_>) {
        self.malformed.push((problem.what, problem.bytes.to_vec()));
    }
}
