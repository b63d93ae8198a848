//! Batches to frames.

use super::announce::{self, push_key};
use super::frame::{self, ANNOUNCE, HEADER, IDS, MAX_BODY, SAMPLES, TIMES};
use super::{MAX_KEY, MAX_SERIES, is_range};
use crate::batch::{Batch, Ids, Times};
use crate::series::{Catalog, SeriesId};
use crate::wire::{Encoder, Protocol, Uncarried};

/// The most samples of one frame, so that it stays in the first-level cache on its way
/// and fits into a record whatever its shape is.
const CHUNK: usize = 2048;

/// Stands for the id of a series that is not announced yet.
const UNKNOWN: u32 = u32::MAX;

/// Turns batches into frames.
///
/// Series get the ids of the connection when they first occur, so that a sender of a few
/// series of a large catalog announces only those.
pub struct TsbEncoder {
    /// The announcement of each key, one behind the other.
    keys: Vec<u8>,
    /// Key `i` is `keys[ends[i]..ends[i + 1]]`.
    ends: Vec<usize>,
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
    pub fn new(catalog: &Catalog) -> Result<Self, Uncarried> {
        let mut keys = Vec::new();
        let mut ends = vec![0];
        for (index, key) in catalog.keys().iter().enumerate() {
            let room = if index < MAX_SERIES {
                Ok(())
            } else {
                Err("a connection carries 2^24 series")
            };
            let refuse = |why| Uncarried::new(Protocol::Tsb, key, why);
            room.and_then(|()| push_key(key, &mut keys)).map_err(refuse)?;
            ends.push(keys.len());
        }
        Ok(Self {
            keys,
            ends,
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
            out.extend_from_slice(&self.keys[self.ends[index]..self.ends[index + 1]]);
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
        let at = start + HEADER + announce::PREFIX;
        out[at - 4..at].copy_from_slice(&count.to_le_bytes());
        self.seal(start, ANNOUNCE, 0, out);
    }

    fn seal(&mut self, start: usize, kind: u8, shape: u8, out: &mut [u8]) {
        frame::seal(&mut out[start..], kind, shape, self.sequence);
        self.sequence += 1;
    }

    /// One frame of at most [`CHUNK`] samples, all of series of the catalog.
    fn chunk(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) {
        let range = self.prepare(batch, out);
        let start = out.len();
        let first = range.unwrap_or(0);
        let (at, times) = match batch.times() {
            Times::One(at) => (at.as_nanos(), None),
            Times::Each(times) => (0, Some(times)),
        };
        out.resize(start + HEADER, 0);
        out.extend_from_slice(&(batch.len() as u32).to_le_bytes());
        out.extend_from_slice(&first.to_le_bytes());
        out.extend_from_slice(&at.to_le_bytes());
        let mut shape = 0;
        if range.is_none() {
            shape |= IDS;
            let ids = (0..batch.len()).map(|index| self.wire_ids[batch.id(index).index()]);
            push_column(ids.map(u32::to_le_bytes), out);
        }
        if let Some(times) = times {
            shape |= TIMES;
            push_column(times.iter().map(|at| at.as_nanos().to_le_bytes()), out);
        }
        push_column(batch.values().iter().map(|value| value.to_le_bytes()), out);
        self.seal(start, SAMPLES, shape, out);
    }

    /// Announces what is new in a batch; the first id when the ids on the wire go up one by one.
    #[inline]
    fn prepare(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) -> Option<u32> {
        match batch.ids() {
            Ids::Range(first) => {
                let range = first.index()..first.index() + batch.len();
                if self.wire_ids[range.clone()].contains(&UNKNOWN) {
                    self.announce(range.clone(), out);
                }
                let ids = &self.wire_ids[range];
                if is_range(ids) { ids.first().copied() } else { None }
            }
            Ids::Each(ids) => {
                if ids.iter().any(|id| self.wire_ids[id.index()] == UNKNOWN) {
                    self.announce(ids.iter().map(|id| id.index()), out);
                }
                None
            }
        }
    }
}

/// Appends fixed-size items; their number is known, so this is one reservation and a copy.
#[inline(always)]
fn push_column<const N: usize>(items: impl ExactSizeIterator<Item = [u8; N]>, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + N * items.len(), 0);
    for (bytes, item) in out[start..].chunks_exact_mut(N).zip(items) {
        bytes.copy_from_slice(&item);
    }
}

/// Part of a batch, from `start` to before `end`.
fn slice<'a>(batch: &Batch<'a>, start: usize, end: usize) -> Batch<'a> {
    let ids = match batch.ids() {
        Ids::Range(first) => Ids::Range(SeriesId(first.0 + start as u32)),
        Ids::Each(ids) => Ids::Each(&ids[start..end]),
    };
    let times = match batch.times() {
        Times::One(at) => Times::One(at),
        Times::Each(times) => Times::Each(&times[start..end]),
    };
    Batch::new(ids, times, &batch.values()[start..end])
}

impl Encoder for TsbEncoder {
    fn encode(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) {
        let known = self.wire_ids.len();
        let strangers = match batch.ids() {
            Ids::Range(first) => first.index().saturating_add(batch.len()) > known,
            Ids::Each(ids) => ids.iter().any(|id| id.index() >= known),
        };
        // A slip of the caller; then each sample goes alone, or not at all.
        let most = if strangers { 1 } else { CHUNK };
        for start in (0..batch.len()).step_by(most) {
            let end = batch.len().min(start + most);
            if strangers && batch.id(start).index() >= known {
                self.skipped += 1;
            } else {
                self.chunk(&slice(batch, start, end), out);
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
