//! What the tests of the codecs share: a sink that keeps everything, fleets, a clock.

use std::sync::Arc;

use proptest::prelude::*;

use crate::batch::{Batch, Ids, Times};
use crate::series::{Catalog, SeriesId, SeriesKey};
use crate::time::{Clock, ManualClock, SECOND_NS, Timestamp};
use crate::wire::{Decoder, Fatal, Malformed, NotAdmitted, Sink};

/// What a decoder handed over.
#[derive(Debug, Default)]
pub(crate) struct Heap {
    pub(crate) catalog: Catalog,
    pub(crate) samples: Vec<(SeriesId, Timestamp, f64)>,
    pub(crate) shapes: Vec<(&'static str, usize)>,
    pub(crate) malformed: Vec<(&'static str, Vec<u8>)>,
    pub(crate) refused: usize,
    pub(crate) unannounced: usize,
    pub(crate) asked: usize,
    /// How many series are admitted; 0 is no limit.
    pub(crate) limit: usize,
}

impl Heap {
    /// Samples by key, with the bits of the value, so that NaN compares too.
    pub(crate) fn named(&self) -> Vec<(String, i64, u64)> {
        named(&self.catalog, &self.samples)
    }

    /// The sentences of what was malformed.
    pub(crate) fn problems(&self) -> Vec<&'static str> {
        self.malformed.iter().map(|(what, _)| *what).collect()
    }
}

/// Samples by key.
pub(crate) fn named(catalog: &Catalog, samples: &[(SeriesId, Timestamp, f64)]) -> Vec<(String, i64, u64)> {
    let name = |id| catalog.key(id).map_or_else(|| format!("?{id}"), ToString::to_string);
    let samples = samples.iter();
    samples
        .map(|(id, at, value)| (name(*id), at.0, value.to_bits()))
        .collect()
}

impl Sink for Heap {
    fn series(&mut self, key: &SeriesKey) -> Result<SeriesId, NotAdmitted> {
        self.asked += 1;
        if let Some(id) = self.catalog.id(key) {
            return Ok(id);
        }
        if self.limit > 0 && self.catalog.len() >= self.limit {
            return Err(NotAdmitted::SeriesLimit);
        }
        Ok(self.catalog.intern(key.clone()))
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

    fn refused(&mut self, _why: NotAdmitted, samples: usize) {
        self.refused += samples;
    }

    fn unannounced(&mut self, samples: usize) {
        self.unannounced += samples;
    }

    fn malformed(&mut self, problem: &Malformed<'_>) {
        self.malformed.push((problem.what, problem.bytes.to_vec()));
    }
}

/// Presents a payload in pieces, as a connection does: what is not consumed comes again.
pub(crate) fn feed(
    decoder: &mut dyn Decoder,
    payload: &[u8],
    pieces: impl Iterator<Item = usize>,
    heap: &mut Heap,
) -> Result<(), Fatal> {
    let (mut start, mut end) = (0, 0);
    let mut pieces = pieces
        .map(|piece| piece.max(1))
        .chain(std::iter::repeat(payload.len().max(1)));
    while end < payload.len() {
        end = payload.len().min(end + pieces.next().unwrap_or(1));
        let consumed = decoder.decode(&payload[start..end], heap)?;
        assert!(consumed <= end - start, "no more than there is");
        start += consumed;
    }
    decoder.finish(&payload[start..], heap);
    Ok(())
}

/// The bytes of hexadecimal digits.
pub(crate) fn hex(digits: &str) -> Vec<u8> {
    let digits: Vec<char> = digits.chars().filter(|c| !c.is_whitespace()).collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

/// A clock at 1,000.5 s after the epoch.
pub(crate) fn clock() -> Arc<dyn Clock> {
    let clock = ManualClock::new();
    clock.advance(1_000 * SECOND_NS + SECOND_NS / 2);
    Arc::new(clock)
}

/// Columns of any shape for a catalog of `series`, whole seconds where `seconds` says so.
pub(crate) fn any_samples(series: u32, seconds: bool) -> impl Strategy<Value = Vec<(SeriesId, Timestamp, f64)>> {
    let time = if seconds {
        prop_oneof![
            3 => Just(1_700_000_000_i64),
            1 => 0_i64..4_000_000_000,
            1 => -4_000_000_000_i64..-1,
        ]
        .prop_map(Timestamp::from_secs)
        .boxed()
    } else {
        any::<i64>().prop_map(Timestamp).boxed()
    };
    let value = prop_oneof![
        4 => (0_u64..2_000_000_000).prop_map(|value| value as f64),
        2 => (-100_000_i32..100_000).prop_map(|cents| f64::from(cents) / 100.0),
        1 => any::<f64>(),
    ];
    let run = (0..series, 1..80_u32, time, proptest::collection::vec(value, 80));
    proptest::collection::vec(run, 1..12).prop_map(move |runs| {
        let mut samples = Vec::new();
        for (first, length, at, values) in runs {
            let ids = first..series.min(first + length);
            samples.extend(ids.zip(values).map(|(id, value)| (SeriesId(id), at, value)));
        }
        samples
    })
}
