//! The guarantees of every decoder, for any bytes.

use std::sync::Arc;

use tsb_core::time::{Clock, ManualClock, SECOND_NS};
use tsb_core::wire::{Decoder, MAX_RECORD, Malformed, NotAdmitted, Protocol, Sink};
use tsb_core::{Batch, Catalog, SeriesId, SeriesKey};

/// Everything decoded that can be compared; samples by key, in wire order.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Found {
    pub(super) samples: Vec<(String, i64, u64)>,
    pub(super) malformed: Vec<&'static str>,
    pub(super) refused: usize,
    pub(super) unannounced: usize,
    pub(super) fatal: Option<&'static str>,
}

/// Number of series admitted, small so that refusals are fuzzed as well.
const ADMITTED: usize = 24;

#[derive(Default)]
pub(super) struct Heap {
    catalog: Catalog,
    pub(super) found: Found,
}

impl Sink for Heap {
    fn series(&mut self, key: &SeriesKey) -> Result<SeriesId, NotAdmitted> {
        let known = self.catalog.id(key);
        let admitted = known.or_else(|| (self.catalog.len() < ADMITTED).then(|| self.catalog.intern(key.clone())));
        admitted.ok_or(NotAdmitted::SeriesLimit)
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        assert!(!batch.is_empty(), "an empty batch");
        for (id, at, value) in batch.iter() {
            let key = self.catalog.key(id).map(ToString::to_string);
            let key = key.unwrap_or_else(|| panic!("{id} was never given out"));
            self.found.samples.push((key, at.as_nanos(), value.to_bits()));
        }
    }

    fn refused(&mut self, _why: NotAdmitted, samples: usize) {
        self.found.refused += samples;
    }

    fn unannounced(&mut self, samples: usize) {
        self.found.unannounced += samples;
    }

    fn malformed(&mut self, problem: &Malformed<'_>) {
        self.found.malformed.push(problem.what);
    }
}

/// The clock of all targets, 1,000 s after the epoch.
pub(super) fn clock() -> Arc<dyn Clock> {
    let clock = ManualClock::new();
    clock.advance(1_000 * SECOND_NS);
    Arc::new(clock)
}

/// Decodes in pieces, as a connection delivers them.
pub(super) fn decode(protocol: Protocol, bytes: &[u8], piece: usize) -> Found {
    let mut decoder = protocol.decoder(clock());
    let mut heap = Heap::default();
    let (mut start, mut end) = (0, 0);
    while end < bytes.len() {
        end = bytes.len().min(end + piece);
        let waiting = &bytes[start..end];
        match decoder.decode(waiting, &mut heap) {
            Ok(consumed) => {
                assert!(consumed <= waiting.len(), "consumed more than there is");
                let left = waiting.len() - consumed;
                assert!(left < MAX_RECORD, "neither consumed nor refused a full buffer");
                start += consumed;
            }
            Err(fatal) => {
                heap.found.fatal = Some(fatal.what);
                assert_eq!(
                    heap.found.malformed.last(),
                    Some(&fatal.what),
                    "a fatal offence is reported"
                );
                return heap.found;
            }
        }
    }
    decoder.finish(&bytes[start..], &mut heap);
    heap.found
}

/// The result does not depend on how the bytes are split.
pub(super) fn check_pieces(protocol: Protocol, bytes: &[u8]) -> Found {
    let whole = decode(protocol, bytes, bytes.len().max(1));
    for piece in [1 + bytes.len() / 3, 61, 5] {
        // Small pieces of long inputs would only take time.
        if piece * 400 > bytes.len() {
            assert_eq!(decode(protocol, bytes, piece), whole, "in pieces of {piece}");
        }
    }
    whole
}

/// The decoder accepts the same bytes a second time on one connection without a panic.
pub(super) fn check_twice(decoder: &mut dyn Decoder, bytes: &[u8]) {
    let mut heap = Heap::default();
    for _ in 0..2 {
        if decoder.decode(bytes, &mut heap).is_err() {
            return;
        }
    }
}

/// The same bytes give the same result a second time, when their names are known already, if the
/// first time consumed them all.
pub(super) fn check_again(decoder: &mut dyn Decoder, bytes: &[u8]) {
    let mut heap = Heap::default();
    let first = decoder.decode(bytes, &mut heap);
    let found = std::mem::take(&mut heap.found);
    if first == Ok(bytes.len()) {
        let second = decoder.decode(bytes, &mut heap);
        assert_eq!((second, heap.found), (first, found), "the second time");
    }
}
