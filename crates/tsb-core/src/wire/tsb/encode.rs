//! Encodes batches to frames.

use super::announce::{self, Keys};
use super::frame::{self, ANNOUNCE, HEADER, Header, MAX_BODY, SAMPLES, STREAM};
use super::{MAX_KEY, UNKNOWN, known_range, sample_frame};
use crate::batch::{Batch, Ids};
use crate::series::{Catalog, SeriesId};
use crate::wire::{Encoder, UnsupportedSeries};

/// Maximum number of samples per frame, so that it stays in the first-level cache and fits into a
/// record in every shape.
const CHUNK: usize = 2048;

/// Turns batches into frames.
///
/// Series get their ids on the connection at their first use, so a sender of a few series of a
/// large catalog announces only those.
pub struct TsbEncoder {
    keys: Keys,
    /// The id of each series on this connection.
    wire_ids: Vec<u32>,
    announced: u32,
    sequence: u64,
    skipped: u64,
}

impl TsbEncoder {
    /// An encoder for the series of a catalog.
    ///
    /// # Errors
    /// The first series that cannot be carried, and why.
    pub fn new(catalog: &Catalog) -> Result<Self, UnsupportedSeries> {
        Ok(Self {
            keys: Keys::new(catalog, MAX_KEY)?,
            wire_ids: vec![UNKNOWN; catalog.len()],
            announced: 0,
            sequence: 0,
            skipped: 0,
        })
    }

    /// The sequence number of the next frame.
    pub fn next_sequence(&self) -> u64 {
        self.sequence
    }

    /// Announces those of `ids` that are not announced yet.
    #[cold]
    #[inline(never)]
    fn announce(&mut self, ids: impl Iterator<Item = usize>, out: &mut Vec<u8>) {
        let mut start = self.begin_announcement(out);
        let mut count = 0_u32;
        for index in ids {
            if self.wire_ids[index] != UNKNOWN {
                continue;
            }
            if out.len() - start + MAX_KEY > MAX_BODY {
                self.end_announcement(start, count, out);
                (start, count) = (self.begin_announcement(out), 0);
            }
            out.extend_from_slice(self.keys.get(index));
            self.wire_ids[index] = self.announced;
            self.announced += 1;
            count += 1;
        }
        self.end_announcement(start, count, out);
    }

    fn begin_announcement(&self, out: &mut Vec<u8>) -> usize {
        let start = out.len();
        out.resize(start + HEADER, 0);
        out.extend_from_slice(&self.announced.to_le_bytes());
        out.extend_from_slice(&[0; 4]);
        start
    }

    fn end_announcement(&mut self, start: usize, count: u32, out: &mut Vec<u8>) {
        if count == 0 {
            out.truncate(start);
            return;
        }
        let frame = &mut out[start..];
        let header = self.next_header(ANNOUNCE, 0, frame.len() - HEADER);
        frame[..HEADER].copy_from_slice(&header.bytes(STREAM));
        let at = HEADER + announce::PREFIX;
        frame[at - 4..at].copy_from_slice(&count.to_le_bytes());
        frame::seal(frame);
    }

    #[inline]
    fn next_header(&mut self, kind: u8, shape: u8, length: usize) -> Header {
        let sequence = self.sequence;
        self.sequence += 1;
        Header {
            length,
            kind,
            shape,
            session: 0,
            sequence,
        }
    }

    /// One frame of at most [`CHUNK`] samples, all of series of the catalog.
    #[inline]
    fn chunk(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) {
        let first = self.prepare(batch.ids(), batch.len(), out);
        let (shape, length) = sample_frame::shape(batch, first);
        let header = self.next_header(SAMPLES, shape, length).bytes(STREAM);
        out.reserve(HEADER + length);
        sample_frame::push(&header, batch, first, &self.wire_ids, out);
    }

    /// Announces the new series of a batch; returns the first id if the ids on the wire are
    /// consecutive.
    #[inline]
    fn prepare(&mut self, ids: Ids<'_>, count: usize, out: &mut Vec<u8>) -> Option<u32> {
        let is_new = |id: &SeriesId| self.wire_ids[id.index()] == UNKNOWN;
        match ids {
            Ids::Range(first) => {
                let range = first.index()..first.index() + count;
                if let Some(first) = known_range(&self.wire_ids[range.clone()]) {
                    return Some(first);
                }
                self.announce(range.clone(), out);
                known_range(&self.wire_ids[range])
            }
            Ids::Each(ids) => {
                if ids.iter().any(is_new) {
                    self.announce(ids.iter().map(|id| id.index()), out);
                }
                None
            }
        }
    }
}

impl Encoder for TsbEncoder {
    fn encode(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) {
        let known = self.wire_ids.len();
        let strangers = match batch.ids() {
            Ids::Range(first) => first.index().saturating_add(batch.len()) > known,
            Ids::Each(ids) => ids.iter().any(|id| id.index() >= known),
        };
        // Ids outside the catalog are a bug of the caller; then each sample is sent alone, or left
        // out.
        let most = if strangers { 1 } else { CHUNK };
        for start in (0..batch.len()).step_by(most) {
            let end = batch.len().min(start + most);
            if strangers && batch.id(start).index() >= known {
                self.skipped += 1;
            } else {
                self.chunk(&batch.slice(start..end), out);
            }
        }
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }
}

impl std::fmt::Debug for TsbEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TsbEncoder")
            .field("series", &self.wire_ids.len())
            .field("announced", &self.announced)
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}
