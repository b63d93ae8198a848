//! A chunk: the samples of one series in one generation, encoded as one row.
//!
//! A directory of blocks, each entry with times, number of rows and maximum, followed by the
//! blocks. Blocks that the memory store has sealed are copied unchanged; open or overlapping
//! samples are sealed here. Blocks of a chunk do not overlap. Byte format:
//! `docs/formats/sqlite.md`.

use std::ops::ControlFlow;
use std::sync::Arc;

use tsb_core::bytes::{BytesError, Fault, Reader, cut, varint};

use super::maximum::LastMaximum;
use super::summary::Interval;
use crate::block::{
    Block, Columns, Extreme, MAX_ROWS, Part, PartData, Receiver, Sealer, Steps, boundary, merge_overlaps, unit_end,
};

const VERSION: u8 = 1;
/// Bytes of the checksum at the start.
const HEAD: usize = 4;

/// Flag: the block begins one step after the end of the previous one.
const FOLLOWS: u8 = 1;
/// Flag: the rows have the same spacing as those of the previous block.
const SAME_STEP: u8 = 2;

/// The values that the next directory entry is encoded against.
#[derive(Clone, Copy, Debug, Default)]
struct PreviousEntry {
    end: i64,
    step: i64,
    maximum: LastMaximum,
}

impl PreviousEntry {
    fn follow(&mut self, start: i64, end: i64, rows: usize) {
        if rows > 1 {
            self.step = end.wrapping_sub(start) / (rows as i64 - 1);
        }
        self.end = end;
    }

    fn next_start(&self) -> i64 {
        self.end.wrapping_add(self.step)
    }

    fn steady_end(&self, start: i64, rows: usize) -> i64 {
        start.wrapping_add(self.step.wrapping_mul(rows as i64 - 1))
    }
}

/// Encodes chunks.
#[derive(Debug, Default)]
pub(super) struct Packer {
    sealer: Box<Sealer>,
    columns: Box<Columns>,
    body: OpenChunk,
    out: Vec<u8>,
}

/// A chunk that is being built.
#[derive(Debug, Default)]
struct OpenChunk {
    directory: Vec<u8>,
    blocks: Vec<u8>,
    before: PreviousEntry,
    count: u64,
    samples: u64,
    intervals: Vec<Interval>,
    /// The end of the unit of time that the last interval lies in.
    unit_end: Option<i64>,
}

/// An encoded chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packed<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) samples: u64,
    /// Its maxima by hours or days: each sample is in one of them.
    pub(super) intervals: &'a [Interval],
}

impl Packer {
    /// Encodes the samples of a series; `parts` must be sorted by start. `None` if there are no
    /// samples.
    pub(super) fn pack(&mut self, parts: &[Part]) -> Option<Packed<'_>> {
        self.body.clear();
        let mut filler = Filler {
            body: &mut self.body,
            sealer: &mut self.sealer,
        };
        let _ = merge_overlaps(parts, &mut self.columns, &mut filler);
        if self.body.count == 0 {
            return None;
        }
        self.out.clear();
        self.out.extend_from_slice(&[0, 0, 0, 0, VERSION]);
        varint::put(&mut self.out, self.body.count);
        self.out.extend_from_slice(&self.body.directory);
        self.out.extend_from_slice(&self.body.blocks);
        let sum = crc32fast::hash(&self.out[HEAD..]).to_le_bytes();
        self.out[..HEAD].copy_from_slice(&sum);
        Some(Packed {
            bytes: &self.out,
            samples: self.body.samples,
            intervals: &self.body.intervals,
        })
    }
}

impl OpenChunk {
    fn clear(&mut self) {
        self.directory.clear();
        self.blocks.clear();
        self.intervals.clear();
        self.unit_end = None;
        (self.before, self.count, self.samples) = (PreviousEntry::default(), 0, 0);
    }

    fn add(&mut self, block: &Block, column: usize, maximum: f64) {
        let rows = usize::from(block.rows);
        let from = self.blocks.len();
        block.put_column(column, &mut self.blocks);
        let len = (self.blocks.len() - from) as u64;
        self.enter(block.start, block.end, rows, len, maximum);
        self.count += 1;
        self.samples += rows as u64;
    }

    fn enter(&mut self, start: i64, end: i64, rows: usize, len: u64, maximum: f64) {
        let (before, out) = (&mut self.before, &mut self.directory);
        let follows = start == before.next_start();
        let steady = end == before.steady_end(start, rows);
        let flag = |flag: u8, is: bool| if is { flag } else { 0 };
        out.push(flag(FOLLOWS, follows) | flag(SAME_STEP, steady) | before.maximum.flags(maximum));
        out.push((rows - 1) as u8);
        if !follows {
            varint::put_signed(out, start.wrapping_sub(before.end));
        }
        if !steady {
            varint::put(out, end.wrapping_sub(start) as u64);
        }
        varint::put(out, len);
        before.maximum.put(maximum, out);
        before.follow(start, end, rows);
    }

    /// Adds samples to the last interval, or begins another one.
    fn join(&mut self, start: i64, end: i64, maximum: f64) {
        if self.unit_end.is_some_and(|unit_end| end <= unit_end)
            && let Some(last) = self.intervals.last_mut()
        {
            (last.end, last.maximum) = (end, Extreme::Most.of_two(last.maximum, maximum));
        } else {
            self.unit_end = unit_end(start, end);
            self.intervals.push(Interval { start, end, maximum });
        }
    }
}

/// Adds parts to a chunk.
struct Filler<'a> {
    body: &'a mut OpenChunk,
    sealer: &'a mut Sealer,
}

impl Filler<'_> {
    /// Adds a block of the memory store.
    fn copy(&mut self, block: &Block, column: usize, maximum: f64) {
        self.body.add(block, column, maximum);
        self.body.join(block.start, block.end, maximum);
    }

    fn seal(&mut self, times: &[i64], values: &[f64]) {
        for (times, values) in times.chunks(MAX_ROWS).zip(values.chunks(MAX_ROWS)) {
            self.sealer.times[..times.len()].copy_from_slice(times);
            self.sealer.columns[0][..values.len()].copy_from_slice(values);
            let (block, maxima) = self.sealer.seal(times.len(), 1);
            self.body.add(&block, 0, maxima[0]);
            self.join(times, values);
        }
    }

    /// Adds the samples of a block to the intervals, on both sides of a whole hour or day.
    fn join(&mut self, times: &[i64], values: &[f64]) {
        let boundary = boundary(times[0], times[times.len() - 1]);
        let middle = boundary.map_or(0, |boundary| times.partition_point(|at| *at < boundary));
        for rows in [0..middle, middle..times.len()] {
            let piece = &times[rows.clone()];
            if let (Some(first), Some(last)) = (piece.first(), piece.last()) {
                let maximum = Extreme::Most.of_values(&values[rows]);
                self.body.join(*first, *last, maximum);
            }
        }
    }
}

impl Receiver for Filler<'_> {
    fn single(&mut self, part: &Part, columns: &mut Columns) -> ControlFlow<()> {
        match &part.data {
            PartData::Sealed(block, column) if block.is_full(*column) && !part.maximum.is_nan() => {
                self.copy(block, *column, part.maximum);
            }
            PartData::Sealed(block, column) => {
                let (times, values) = block.read(*column, columns);
                self.seal(times, values);
            }
            PartData::Open(times, values) => self.seal(times, values),
            // Only a consolidating query asks for this.
            PartData::Maximum(_) => {}
        }
        ControlFlow::Continue(())
    }

    fn merged(&mut self, times: &[i64], values: &[f64]) -> ControlFlow<()> {
        self.seal(times, values);
        ControlFlow::Continue(())
    }
}

/// Appends the blocks of a chunk that overlap `start..end`. If only the maximum per step is needed
/// (`maxima`), blocks within one step are represented by their maximum. An error says what is
/// wrong with the chunk.
pub(super) fn take(
    bytes: &[u8],
    range: (i64, i64),
    rank: u64,
    maxima: Option<Steps>,
    into: &mut Vec<Part>,
) -> Result<(), &'static str> {
    let mut rest = bytes;
    let sum = cut(&mut rest).ok_or("a chunk is cut off")?;
    if crc32fast::hash(rest) != u32::from_le_bytes(sum) {
        return Err("the checksum of a chunk is wrong");
    }
    if rest.first() != Some(&VERSION) {
        return Err("a chunk has a version that this program does not know");
    }
    take_blocks(&rest[1..], range, rank, maxima, into).map_err(|_| "a chunk's directory is wrong")
}

/// [`take`] from the directory and the blocks behind it.
fn take_blocks(
    rest: &[u8],
    (start, end): (i64, i64),
    rank: u64,
    mut maxima: Option<Steps>,
    into: &mut Vec<Part>,
) -> Result<(), BytesError> {
    let mut cursor = Reader::new(rest);
    let count = cursor.varint()?;
    let mut before = PreviousEntry::default();
    let (mut from, first) = (0u64, into.len());
    let mut shared: Option<Arc<[u8]>> = None;
    for _ in 0..count {
        let entry = entry(&mut cursor, &mut before)?;
        let mut whole = |from: i64, to: i64| {
            let inside = from >= start && to < end;
            inside && maxima.as_mut().is_some_and(|steps| steps.same(from, to))
        };
        if entry.end < start || entry.start >= end {
            // Not asked for.
        } else if !entry.maximum.is_nan() && whole(entry.start, entry.end) {
            if !join_maximum(&mut into[first..], &entry, whole) {
                let part = Part::of_maximum(entry.start, entry.end, entry.maximum);
                into.push(Part { rank, ..part });
            }
        } else {
            let from = u32::try_from(from).map_err(|_| cursor.error(Fault::TooLarge))?;
            // Only blocks that are decoded need a copy of the bytes.
            let shared = shared.get_or_insert_with(|| Arc::from(rest));
            let block = Block::of_shared(shared, (from, entry.len), (entry.start, entry.end), entry.rows);
            into.push(Part {
                rank,
                maximum: entry.maximum,
                ..Part::of_block(block, 0)
            });
        }
        from += u64::from(entry.len);
    }
    // The blocks follow the directory.
    if cursor.rest().len() as u64 != from {
        return Err(cursor.error(Fault::Invalid));
    }
    let data = (rest.len() - cursor.rest().len()) as u32;
    for part in &mut into[first..] {
        let PartData::Sealed(block, _) = &mut part.data else {
            continue;
        };
        block.shift(data);
        if !block.is_sound() {
            return Err(cursor.error(Fault::Invalid));
        }
    }
    Ok(())
}

/// Merges the maximum of a block into that of the part before, if both lie in one step.
fn join_maximum(parts: &mut [Part], entry: &Entry, mut whole: impl FnMut(i64, i64) -> bool) -> bool {
    let Some(last) = parts.last_mut() else { return false };
    let PartData::Maximum(most) = &mut last.data else {
        return false;
    };
    let is_same = entry.start > last.end && whole(last.start, entry.end);
    if is_same {
        last.end = entry.end;
        *most = Extreme::Most.of_two(*most, entry.maximum);
    }
    is_same
}

/// An entry of the directory.
struct Entry {
    start: i64,
    end: i64,
    rows: u16,
    len: u16,
    maximum: f64,
}

fn entry(cursor: &mut Reader<'_>, before: &mut PreviousEntry) -> Result<Entry, BytesError> {
    let flags = cursor.byte()?;
    let rows = usize::from(cursor.byte()?) + 1;
    let start = if flags & FOLLOWS == 0 {
        before.end.wrapping_add(cursor.signed()?)
    } else {
        before.next_start()
    };
    let end = if flags & SAME_STEP == 0 {
        start.wrapping_add(cursor.varint()? as i64)
    } else {
        before.steady_end(start, rows)
    };
    let len = cursor.varint_as()?;
    let maximum = before.maximum.get(flags, cursor)?;
    before.follow(start, end, rows);
    Ok(Entry {
        start,
        end,
        rows: rows as u16,
        len,
        maximum,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(times: impl IntoIterator<Item = i64>, value: impl Fn(i64) -> f64) -> Part {
        let times: Vec<i64> = times.into_iter().collect();
        let values = times.iter().map(|at| value(*at)).collect();
        Part {
            start: times[0],
            end: times[times.len() - 1],
            rank: 0,
            maximum: f64::NAN,
            data: PartData::Open(times, values),
        }
    }

    type Samples = Vec<(i64, f64)>;

    fn read(bytes: &[u8]) -> Result<(usize, Samples), &'static str> {
        let (mut parts, mut samples) = (Vec::new(), Vec::new());
        take(bytes, (i64::MIN, i64::MAX), 3, None, &mut parts)?;
        let mut columns = Columns::default();
        for part in &parts {
            let PartData::Sealed(block, column) = &part.data else {
                panic!("only blocks come from a chunk")
            };
            let (times, values) = block.read(*column, &mut columns);
            assert_eq!((part.start, part.end), (times[0], times[times.len() - 1]));
            let most = values.iter().copied().fold(f64::NAN, f64::max);
            assert_eq!(part.maximum.to_bits(), most.to_bits());
            samples.extend(times.iter().copied().zip(values.iter().copied()));
        }
        Ok((parts.len(), samples))
    }

    #[test]
    fn parts_come_back_as_blocks_in_order() {
        let steady = open((0..600).map(|tick| tick * 1000), |at| (at / 7) as f64);
        let uneven = open([700_001, 700_003, 900_000], |at| at as f64 / 100.0);
        let overlapping = Part {
            rank: 9,
            ..open([900_000, i64::MAX - 1], |_| f64::INFINITY)
        };
        let mut packer = Packer::default();
        let parts = [steady, uneven, overlapping];
        let packed = packer.pack(&parts).unwrap();
        assert_eq!(packed.samples, 604);
        let (blocks, samples) = read(packed.bytes).unwrap();
        assert_eq!(blocks, 4);
        assert_eq!(samples.len(), 604);
        assert_eq!(samples[601], (700_003, 7000.03));
        assert_eq!(samples[602], (900_000, f64::INFINITY));
        assert!(packer.pack(&[]).is_none());
    }

    #[test]
    fn a_forged_chunk_is_read_or_refused_without_a_panic() {
        let mut packer = Packer::default();
        let packed = packer.pack(&[open(0..600, |at| (at * at % 97) as f64)]).unwrap();
        let bytes = packed.bytes.to_vec();
        let (mut columns, mut random) = (Columns::default(), 1u64);
        for _ in 0..20_000 {
            let mut forged = bytes.clone();
            for _ in 0..3 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let place = HEAD + (random >> 33) as usize % (forged.len() - HEAD);
                forged[place] = (random >> 20) as u8;
            }
            let sum = crc32fast::hash(&forged[HEAD..]).to_le_bytes();
            forged[..HEAD].copy_from_slice(&sum);
            let mut parts = Vec::new();
            if take(&forged, (i64::MIN, i64::MAX), 0, None, &mut parts).is_ok() {
                for part in &parts {
                    if let PartData::Sealed(block, column) = &part.data {
                        let (times, values) = block.read(*column, &mut columns);
                        assert_eq!(times.len(), values.len());
                    }
                }
            }
        }
    }

    #[test]
    fn a_damaged_chunk_is_an_error() {
        let mut packer = Packer::default();
        let packed = packer.pack(&[open(0..300, |at| at as f64)]).unwrap();
        let bytes = packed.bytes.to_vec();
        assert!(read(&bytes).is_ok());
        for place in 0..bytes.len() {
            assert!(read(&bytes[..place]).is_err(), "cut at {place}");
            let mut damaged = bytes.clone();
            damaged[place] ^= 16;
            assert!(read(&damaged).is_err(), "bit of byte {place}");
        }
    }
}
