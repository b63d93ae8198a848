//! Packs batches into datagrams.

use super::announce::{self, Keys};
use super::frame::{self, ANNOUNCE, DATAGRAM, END, HEADER, Header, PREFIX, SAMPLES};
use super::{UNKNOWN, known_range, sample_frame};
use crate::batch::{Batch, Ids, Times};
use crate::bytes::u32_at;
use crate::series::{Catalog, SeriesId};
use crate::wire::{Packer, Packets, UnsupportedSeries};

/// How often a series is announced together with its samples: one announcement may be lost with
/// its datagram, three rarely are.
const TOLD_ENOUGH: u8 = 3;

/// One byte in this many is used to repeat all announcements, in an endless cycle: eventually
/// every receiver knows every series.
const AGAIN_ONE_IN: usize = 32;

/// Size of a repeated announcement, in bytes.
const AGAIN_BYTES: usize = 512;

/// Bytes that [`Packer::finish`] packs at a time.
const FINISH_BYTES: usize = 32 << 10;

/// How often the end is announced.
const ENDS: u8 = 5;

/// Fewer samples than this do not get a frame of their own at the end of a datagram.
const MIN_SAMPLES: usize = 8;

/// Packs frames. Samples are numbered, so that a receiver knows exactly how many were lost, and
/// series are announced repeatedly.
pub struct TsbPacker {
    keys: Keys,
    /// The id of each series in this session.
    wire_ids: Vec<u32>,
    /// Per id, its series and how often it was announced.
    told: Vec<(u32, u8)>,
    /// Number of ids that were not announced often enough.
    unsettled: usize,
    /// The next id to be announced again.
    again: usize,
    /// Number of bytes that may be used for repeated announcements.
    credit: usize,
    /// The open announcement frame: its start, its first id, its number of keys.
    announcing: Option<(usize, u32, u32)>,
    session: u16,
    sequence: u64,
    skipped: u64,
    /// The next id of the final announcements, and how often the end was announced.
    closing: (usize, u8),
}

impl TsbPacker {
    /// A packer for the series of a catalog in datagrams of at most `limit` bytes. A sender that
    /// reuses an address must use another `session`.
    ///
    /// # Errors
    /// The first series that cannot be carried, and why.
    pub fn new(catalog: &Catalog, limit: usize, session: u16) -> Result<Self, UnsupportedSeries> {
        let keys = Keys::new(catalog, limit.saturating_sub(HEADER + announce::PREFIX))?;
        Ok(Self {
            wire_ids: vec![UNKNOWN; keys.len()],
            told: Vec::with_capacity(keys.len()),
            keys,
            unsettled: 0,
            again: 0,
            credit: 0,
            announcing: None,
            session,
            sequence: 0,
            skipped: 0,
            closing: (0, 0),
        })
    }

    /// Number of the next sample.
    pub fn next_sequence(&self) -> u64 {
        self.sequence
    }

    #[inline]
    fn header(&self, kind: u8, shape: u8, length: usize) -> [u8; HEADER] {
        let header = Header {
            length,
            kind,
            shape,
            session: self.session,
            sequence: self.sequence,
        };
        header.bytes(DATAGRAM)
    }

    /// Announces the series of a batch that are new, or were not announced often enough.
    #[cold]
    #[inline(never)]
    fn introduce(&mut self, ids: impl Iterator<Item = usize>, packets: &mut Packets) {
        for index in ids {
            if self.wire_ids[index] == UNKNOWN {
                self.wire_ids[index] = self.told.len() as u32;
                self.told.push((index as u32, 0));
                self.unsettled += 1;
            }
            let id = self.wire_ids[index];
            let times = &mut self.told[id as usize].1;
            if *times < TOLD_ENOUGH {
                *times += 1;
                self.unsettled -= usize::from(*times == TOLD_ENOUGH);
                self.announce(id, packets);
            }
        }
        self.end_announcement(packets);
    }

    /// Appends the key of one id, to the open frame if the id is its next.
    fn announce(&mut self, id: u32, packets: &mut Packets) {
        let index = self.told[id as usize].0 as usize;
        let length = self.keys.get(index).len();
        let continues = self.announcing.is_some_and(|(_, first, count)| first + count == id);
        if !continues || length > packets.room() {
            self.end_announcement(packets);
            if HEADER + announce::PREFIX + length > packets.room() {
                packets.close_full(pad);
            }
            let out = packets.open();
            self.announcing = Some((out.len(), id, 0));
            out.resize(out.len() + HEADER + announce::PREFIX, 0);
        }
        packets.open().extend_from_slice(self.keys.get(index));
        if let Some((_, _, count)) = &mut self.announcing {
            *count += 1;
        }
    }

    fn end_announcement(&mut self, packets: &mut Packets) {
        if let Some((start, first, count)) = self.announcing.take() {
            let frame = &mut packets.open()[start..];
            let header = self.header(ANNOUNCE, 0, frame.len() - HEADER);
            frame[..HEADER].copy_from_slice(&header);
            frame[HEADER..HEADER + 4].copy_from_slice(&first.to_le_bytes());
            frame[HEADER + 4..HEADER + 8].copy_from_slice(&count.to_le_bytes());
            frame::seal(frame);
        }
    }

    /// Repeats some announcements, in a cycle.
    #[cold]
    #[inline(never)]
    fn announce_again(&mut self, packets: &mut Packets) {
        self.credit -= AGAIN_BYTES;
        let mut bytes = 0;
        for _ in 0..self.told.len() {
            if bytes >= AGAIN_BYTES {
                break;
            }
            self.again %= self.told.len();
            let times = &mut self.told[self.again].1;
            if *times < TOLD_ENOUGH {
                *times += 1;
                self.unsettled -= usize::from(*times == TOLD_ENOUGH);
            }
            bytes += self.keys.get(self.told[self.again].0 as usize).len();
            self.announce(self.again as u32, packets);
            self.again += 1;
        }
        self.end_announcement(packets);
    }

    /// Packs one frame of as many samples from `start` on as fit; returns their number.
    #[inline]
    fn samples(&mut self, batch: &Batch<'_>, start: usize, packets: &mut Packets) -> usize {
        let left = batch.len() - start;
        let bare = match batch.times() {
            Times::One(_) => 8,
            Times::Each(_) => 16,
        };
        let (with_id, is_run) = (bare + 4, matches!(batch.ids(), Ids::Range(_)));
        let fitting = |packets: &Packets, each: usize| packets.room().saturating_sub(HEADER + PREFIX) / each;
        if fitting(packets, with_id) < left.min(MIN_SAMPLES) {
            packets.close_full(pad);
        }
        let mut count = left.min(fitting(packets, if is_run { bare } else { with_id }));
        let mut part = batch.slice(start..start + count);
        let mut first = self.first_of(&part);
        if first.is_none() && is_run {
            // The ids on the wire are not consecutive, so a column of ids takes room too.
            count = left.min(fitting(packets, with_id));
            part = batch.slice(start..start + count);
            first = self.first_of(&part);
        }
        let (shape, length) = sample_frame::shape(&part, first);
        let header = self.header(SAMPLES, shape, length);
        sample_frame::push(&header, &part, first, &self.wire_ids, packets.open());
        self.sequence += count as u64;
        count
    }

    /// The first id on the wire, if they are consecutive.
    #[inline]
    fn first_of(&self, batch: &Batch<'_>) -> Option<u32> {
        match batch.ids() {
            Ids::Range(first) => known_range(&self.wire_ids[first.index()..first.index() + batch.len()]),
            Ids::Each(_) => None,
        }
    }

    /// Packs a batch whose series are all in the catalog.
    fn pack_known(&mut self, batch: &Batch<'_>, packets: &mut Packets) {
        let is_new = |id: &SeriesId| self.wire_ids[id.index()] == UNKNOWN;
        match batch.ids() {
            Ids::Range(first) => {
                let range = first.index()..first.index() + batch.len();
                if self.unsettled > 0 || self.wire_ids[range.clone()].contains(&UNKNOWN) {
                    self.introduce(range, packets);
                }
            }
            Ids::Each(ids) => {
                if self.unsettled > 0 || ids.iter().any(is_new) {
                    self.introduce(ids.iter().map(|id| id.index()), packets);
                }
            }
        }
        let mut start = 0;
        while start < batch.len() {
            let count = self.samples(batch, start, packets);
            start += count;
            self.credit += count * 8 / AGAIN_ONE_IN;
            if self.credit >= AGAIN_BYTES {
                self.announce_again(packets);
            }
        }
    }
}

/// Pads a datagram.
fn pad(bytes: &mut Vec<u8>, count: usize) {
    bytes.resize(bytes.len() + count, 0);
}

impl Packer for TsbPacker {
    fn pack(&mut self, batch: &Batch<'_>, packets: &mut Packets) {
        let known = self.wire_ids.len();
        let is_known = match batch.ids() {
            Ids::Range(first) => first.index().saturating_add(batch.len()) <= known,
            Ids::Each(ids) => ids.iter().all(|id| id.index() < known),
        };
        if is_known {
            self.pack_known(batch, packets);
            return;
        }
        // Ids outside the catalog are a bug of the caller; then each sample is sent alone, or left
        // out.
        for index in 0..batch.len() {
            if batch.id(index).index() < known {
                self.pack_known(&batch.slice(index..index + 1), packets);
            } else {
                self.skipped += 1;
            }
        }
    }

    fn finish(&mut self, packets: &mut Packets) -> bool {
        let (mut next, ends) = self.closing;
        if next < self.told.len() {
            let mut bytes = 0;
            while next < self.told.len() && bytes < FINISH_BYTES {
                bytes += self.keys.get(self.told[next].0 as usize).len();
                self.announce(next as u32, packets);
                next += 1;
            }
            self.end_announcement(packets);
            self.closing = (next, 0);
            return true;
        }
        packets.close();
        let start = packets.open().len();
        let header = self.header(END, 0, 0);
        packets.open().extend_from_slice(&header);
        frame::seal(&mut packets.open()[start..]);
        packets.close();
        self.closing = (next, ends + 1);
        ends + 1 < ENDS
    }

    fn samples_in(&self, datagram: &[u8]) -> u64 {
        let (mut rest, mut samples) = (datagram, 0);
        while let Ok(Some(header)) = frame::open_datagram(rest) {
            let (whole, behind) = rest.split_at(HEADER + header.length);
            if header.kind == SAMPLES {
                samples += u64::from(u32_at(whole, HEADER).unwrap_or(0));
            }
            rest = behind;
        }
        samples
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }
}

impl std::fmt::Debug for TsbPacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TsbPacker")
            .field("series", &self.wire_ids.len())
            .field("announced", &self.told.len())
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}
