//! A sealed block: up to 256 rows of up to eight series, as immutable bytes.
//!
//! It maps rows, gaps and timestamps to columns. The codec turns a column into bytes. Tiles
//! of the memory store and chunks of SQLite decide when a block is sealed; `answer` and `fold` compute
//! answers from blocks. Byte format: `docs/formats/block.md`.

mod answer;
mod codec;
mod even_rows;
mod extreme;
mod fold;
#[cfg(test)]
mod tests;
mod unit;

use std::sync::Arc;

use codec::{Decoder, Encoder};
use even_rows::EvenRows;

pub(crate) use answer::{Answer, Part, PartData, Wanted, touch};
#[cfg(feature = "sqlite")]
pub(crate) use answer::{Receiver, clusters, merge_overlaps};
pub(crate) use extreme::{Extreme, Runs};
pub(crate) use fold::Fold;
#[cfg(feature = "sqlite")]
pub(crate) use fold::Steps;
#[cfg(feature = "sqlite")]
pub(crate) use unit::HOUR;
pub(crate) use unit::{boundary, unit_end};

/// Maximum number of series in a block: one cache line of a row.
pub(crate) const GROUP: usize = 8;
/// Maximum number of rows in a block.
pub(crate) const MAX_ROWS: usize = codec::MAX;
/// Upper bound of a block's size, which is reserved in the budget before sealing. A value takes
/// at most 9 bytes, a presence bit and its share of padding.
pub(crate) const fn max_bytes(rows: usize, columns: usize) -> usize {
    let column = 2 + rows.div_ceil(8) + 9 * rows + 96;
    ALLOCATION + HEAD + (columns + 1) * column
}

/// Bytes that the allocator and the reference counts add to a block.
const ALLOCATION: usize = 32;

const HEAD: usize = 2;
const LISTED_TIMES: u8 = 1;

/// A block and its entry in the index.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    // Shared by blocks that were read from a file together.
    shared: Arc<[u8]>,
    from: u32,
    len: u16,
    /// The timestamp of the first row.
    pub(crate) start: i64,
    /// The timestamp of the last row.
    pub(crate) end: i64,
    /// Number of rows, in [1, 256].
    pub(crate) rows: u16,
    /// Bit set of the columns whose maximum the index stores with this block: it differs from
    /// that of the previous block, or the block is a landmark.
    pub(crate) fresh: u8,
    /// Position of these maxima: the number that the index had stored before, modulo 2^32.
    pub(crate) maxima_at: u32,
}

impl Block {
    /// The bytes of the block.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.shared[self.from as usize..][..usize::from(self.len)]
    }

    /// A block with bytes of its own.
    fn new(bytes: &[u8], (start, end): (i64, i64), rows: usize) -> Self {
        Self {
            shared: Arc::from(bytes),
            from: 0,
            len: bytes.len() as u16,
            start,
            end,
            rows: rows as u16,
            fresh: 0,
            maxima_at: 0,
        }
    }

    /// A block in a buffer that holds several. `from + len` must be within the buffer.
    #[cfg(feature = "sqlite")]
    pub(crate) fn of_shared(shared: &Arc<[u8]>, (from, len): (u32, u16), (start, end): (i64, i64), rows: u16) -> Self {
        Self {
            shared: Arc::clone(shared),
            from,
            len,
            start,
            end,
            rows,
            fresh: 0,
            maxima_at: 0,
        }
    }

    /// Moves the block's start within its buffer.
    #[cfg(feature = "sqlite")]
    pub(crate) fn shift(&mut self, by: u32) {
        self.from += by;
    }

    /// Whether this is a block of one column without gaps that can be decoded. For blocks from
    /// files, whose bytes may be arbitrary.
    #[cfg(feature = "sqlite")]
    pub(crate) fn is_sound(&self) -> bool {
        let Some((head, rest)) = self.bytes().split_first_chunk::<4>() else {
            return false;
        };
        let rows = usize::from(self.rows);
        let column = usize::from(u16::from_le_bytes([head[2], head[3]]));
        let Some((column, times)) = rest.split_at_checked(column) else {
            return false;
        };
        let is_listed = head[0] & LISTED_TIMES != 0;
        let unit = times.first().is_some_and(|unit| usize::from(*unit) < UNITS.len());
        let times_can_be_read = !is_listed || (unit && codec::check::whole(&times[1..], rows));
        head[0] >> 4 == 1 && head[1] == 0 && codec::check::column(column, rows) && times_can_be_read
    }

    /// Whether every row has a value of the column.
    #[cfg(feature = "sqlite")]
    pub(crate) fn is_full(&self, column: usize) -> bool {
        self.bytes()[1] >> column & 1 == 0
    }

    /// Appends a block of one of the columns.
    #[cfg(feature = "sqlite")]
    pub(crate) fn put_column(&self, column: usize, out: &mut Vec<u8>) {
        let bytes = self.column(column);
        let listed = self.bytes()[0] & LISTED_TIMES;
        let gaps = self.bytes()[1] >> column & 1;
        out.extend_from_slice(&[listed | 1 << 4, gaps]);
        out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
        out.extend_from_slice(bytes);
        if listed != 0 {
            out.extend_from_slice(self.listed_times());
        }
    }

    /// Bytes of the block, without its entry in an index.
    pub(crate) fn heap_bytes(&self) -> usize {
        usize::from(self.len) + ALLOCATION
    }

    fn columns(&self) -> usize {
        usize::from(self.bytes()[0] >> 4)
    }

    /// Reads one byte, to bring the block into the cache. The result only keeps the compiler from
    /// removing the load.
    pub(crate) fn touch(&self) -> u8 {
        self.bytes()[0]
    }

    /// [`Block::touch`] for the bytes of a column.
    pub(crate) fn touch_column(&self, column: usize) -> u8 {
        const LINE: usize = 64;
        let lines = self.column(column).iter().step_by(LINE);
        lines.fold(0, |seen, byte| seen | byte)
    }

    /// Number of samples in all columns.
    pub(crate) fn samples(&self) -> usize {
        if self.bytes()[1] == 0 {
            usize::from(self.rows) * self.columns()
        } else {
            self.samples_where(|_| true)
        }
    }

    /// Number of samples in the rows whose timestamps satisfy `wanted`.
    pub(crate) fn samples_where(&self, wanted: impl Fn(i64) -> bool) -> usize {
        let (mut times, mut decoder) = ([0i64; MAX_ROWS], Decoder::default());
        let rows = usize::from(self.rows);
        self.times(&mut decoder, &mut times[..rows]);
        let mut samples = 0;
        for column in 0..self.columns() {
            let gaps = self.gaps(column);
            let present = |row: usize| gaps.is_none_or(|bits| bits[row / 8] >> (row % 8) & 1 != 0);
            samples += (0..rows).filter(|&row| present(row) && wanted(times[row])).count();
        }
        samples
    }

    /// The newest timestamp of a column.
    pub(crate) fn newest(&self, column: usize) -> Option<i64> {
        let Some(gaps) = self.gaps(column) else {
            return Some(self.end);
        };
        let rows = usize::from(self.rows);
        let row = (0..rows).rev().find(|row| gaps[row / 8] >> (row % 8) & 1 != 0)?;
        let (mut times, mut decoder) = ([0i64; MAX_ROWS], Decoder::default());
        self.times(&mut decoder, &mut times[..rows]);
        Some(times[row])
    }

    /// The bytes of one column, with its presence bits.
    fn column(&self, column: usize) -> &[u8] {
        let bytes = self.bytes();
        let data = HEAD + 2 * self.columns();
        let end = |column: usize| {
            let at = HEAD + 2 * column;
            data + usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
        };
        let from = if column == 0 { data } else { end(column - 1) };
        &bytes[from..end(column)]
    }

    /// The presence bits, if the column has gaps.
    fn gaps(&self, column: usize) -> Option<&[u8]> {
        let has_gaps = self.bytes()[1] >> column & 1 != 0;
        has_gaps.then(|| &self.column(column)[..usize::from(self.rows).div_ceil(8)])
    }

    /// The timestamps of all rows.
    #[inline(always)]
    fn times(&self, decoder: &mut Decoder, times: &mut [i64]) {
        if self.bytes()[0] & LISTED_TIMES == 0 {
            let steps = i64::from(self.rows - 1).max(1);
            let step = self.end.wrapping_sub(self.start) / steps;
            for (time, row) in times.iter_mut().zip(0i64..) {
                *time = self.start.wrapping_add(row.wrapping_mul(step));
            }
            return;
        }
        let bytes = self.listed_times();
        let unit = UNITS[usize::from(bytes[0])];
        let offsets = decoder.whole(&bytes[1..], times.len());
        for (time, offset) in times.iter_mut().zip(offsets) {
            *time = self.start.wrapping_add(offset.wrapping_mul(unit));
        }
    }

    /// The bytes of the listed times.
    fn listed_times(&self) -> &[u8] {
        let bytes = self.bytes();
        let last = HEAD + 2 * (self.columns() - 1);
        let behind = usize::from(u16::from_le_bytes([bytes[last], bytes[last + 1]]));
        &bytes[last + 2 + behind..]
    }

    /// The rows of a column, if they are evenly spaced and each has a value.
    fn even(&self, column: usize) -> Option<EvenRows> {
        let [flags, gaps] = [self.bytes()[0], self.bytes()[1]];
        if flags & LISTED_TIMES != 0 || gaps >> column & 1 != 0 {
            return None;
        }
        EvenRows::new(self.start, self.end, usize::from(self.rows))
    }

    /// The extreme of each run of rows of a column without gaps.
    #[inline]
    fn extremes<'a>(&self, column: usize, extreme: Extreme, runs: Runs<'_>, out: &'a mut Columns) -> &'a [f64] {
        crate::machine::extremes(self, column, (extreme, runs), out)
    }

    /// [`Block::extremes`] without special processor instructions.
    #[inline(always)]
    pub(crate) fn extremes_portable<'a>(
        &self,
        column: usize,
        asked: (Extreme, Runs<'_>),
        out: &'a mut Columns,
    ) -> &'a [f64] {
        let rows = usize::from(self.rows);
        out.decoder.extremes(self.column(column), rows, asked, &mut out.values);
        &out.values[..asked.1.ends.len()]
    }

    /// Decodes one column into `out`, without the rows that have no sample.
    #[inline]
    pub(crate) fn read<'a>(&self, column: usize, out: &'a mut Columns) -> (&'a [i64], &'a [f64]) {
        crate::machine::read(self, column, out)
    }

    /// [`Block::read`] without special processor instructions.
    #[inline(always)]
    pub(crate) fn read_portable<'a>(&self, column: usize, out: &'a mut Columns) -> (&'a [i64], &'a [f64]) {
        let rows = usize::from(self.rows);
        self.times(&mut out.decoder, &mut out.times[..rows]);
        let bytes = self.column(column);
        let Some(gaps) = self.gaps(column) else {
            out.decoder.column(bytes, &mut out.values[..rows]);
            return (&out.times[..rows], &out.values[..rows]);
        };
        let mut present = 0;
        for row in 0..rows {
            if gaps[row / 8] >> (row % 8) & 1 != 0 {
                out.times[present] = out.times[row];
                present += 1;
            }
        }
        if present > 0 {
            out.decoder.column(&bytes[gaps.len()..], &mut out.values[..present]);
        }
        (&out.times[..present], &out.values[..present])
    }

    /// Whether the column has a sample at `at`.
    pub(crate) fn holds(&self, column: usize, at: i64, out: &mut Columns) -> bool {
        if at < self.start || at > self.end {
            return false;
        }
        let rows = usize::from(self.rows);
        let row = if self.bytes()[0] & LISTED_TIMES == 0 {
            let step = self.end.wrapping_sub(self.start) / i64::from(self.rows - 1).max(1);
            let offset = at.wrapping_sub(self.start);
            let row = if step == 0 { 0 } else { offset / step };
            (offset == row * step).then_some(row as usize)
        } else {
            self.times(&mut out.decoder, &mut out.times[..rows]);
            out.times[..rows].binary_search(&at).ok()
        };
        row.is_some_and(|row| self.gaps(column).is_none_or(|bits| bits[row / 8] >> (row % 8) & 1 != 0))
    }
}

/// The possible units of time in nanoseconds; the largest that divides every distance is used.
const UNITS: [i64; 4] = [1, 1_000, 1_000_000, 1_000_000_000];

/// Buffers for decoded blocks.
#[derive(Debug)]
pub(crate) struct Columns {
    times: [i64; MAX_ROWS],
    values: [f64; MAX_ROWS],
    decoder: Decoder,
}

impl Default for Columns {
    fn default() -> Self {
        Self {
            times: [0; MAX_ROWS],
            values: [0.0; MAX_ROWS],
            decoder: Decoder::default(),
        }
    }
}

/// Length of a column in the scratch memory: one cache line more than needed, since columns at a
/// distance of a power of two would compete for the same cache sets.
const COLUMN: usize = MAX_ROWS + 8;

/// Scratch memory for sealing: the tile fills in rows, and `seal` encodes them.
#[derive(Debug)]
pub(crate) struct Sealer {
    /// Timestamps of the rows, ascending.
    pub(crate) times: [i64; MAX_ROWS],
    /// The values, one column per series; values of absent rows are ignored.
    pub(crate) columns: [[f64; COLUMN]; GROUP],
    /// One bit per series and row: the sample is present.
    pub(crate) present: [u8; MAX_ROWS],
    encoder: Encoder,
    out: Vec<u8>,
}

impl Default for Sealer {
    #[expect(clippy::large_stack_arrays, reason = "made once a thread, and then reused")]
    fn default() -> Self {
        Self {
            times: [0; MAX_ROWS],
            columns: [[0.0; COLUMN]; GROUP],
            present: [0; MAX_ROWS],
            encoder: Encoder::default(),
            out: Vec::new(),
        }
    }
}

impl Sealer {
    /// Removes rows without any sample. Returns the number of rows and samples that are left.
    pub(crate) fn drop_empty_rows(&mut self, rows: usize, columns: usize) -> (usize, usize) {
        let all = u8::MAX >> (GROUP - columns);
        let full = self.present[..rows].iter().fold(all, |full, present| full & present);
        if full == all {
            return (rows, rows * columns);
        }
        let (mut kept, mut samples) = (0, 0);
        for row in 0..rows {
            let present = self.present[row];
            if present == 0 {
                continue;
            }
            samples += present.count_ones() as usize;
            self.times[kept] = self.times[row];
            self.present[kept] = present;
            for column in &mut self.columns[..columns] {
                column[kept] = column[row];
            }
            kept += 1;
        }
        (kept, samples)
    }

    /// Seals the first `rows` rows of the first `columns` columns, which must have no gaps.
    /// Returns the block, and the maximum of each column: NaN if it has no number. `rows` must be
    /// in [1, 256], `columns` in [1, 8].
    #[inline]
    pub(crate) fn seal(&mut self, rows: usize, columns: usize) -> (Block, [f64; GROUP]) {
        crate::machine::seal(self, rows, columns, 0)
    }

    /// [`Sealer::seal`] for columns with gaps: leaves out values that are not present.
    pub(crate) fn seal_with_gaps(&mut self, rows: usize, columns: usize) -> (Block, [f64; GROUP]) {
        let all = u8::MAX >> (GROUP - columns);
        let full = self.present[..rows].iter().fold(all, |full, present| full & present);
        crate::machine::seal(self, rows, columns, all & !full)
    }

    /// Seals without special processor instructions. A bit of `gaps` is set if the column has
    /// gaps.
    #[inline(always)]
    pub(crate) fn seal_portable(&mut self, rows: usize, columns: usize, gaps: u8) -> (Block, [f64; GROUP]) {
        let steady = steady(&self.times[..rows]);
        self.out.clear();
        let flags = if steady { 0 } else { LISTED_TIMES };
        self.out.extend_from_slice(&[flags | (columns as u8) << 4, gaps]);
        self.out.resize(HEAD + 2 * columns, 0);
        let mut maxima = [f64::NAN; GROUP];
        for (column, maximum) in maxima.iter_mut().enumerate().take(columns) {
            *maximum = if gaps >> column & 1 != 0 {
                self.sparse_column(column, rows)
            } else {
                full_column(&mut self.encoder, &self.columns[column][..rows], &mut self.out)
            };
            let end = (self.out.len() - HEAD - 2 * columns) as u16;
            self.out[HEAD + 2 * column..][..2].copy_from_slice(&end.to_le_bytes());
        }
        if !steady {
            self.put_times(rows);
        }
        let block = Block::new(&self.out, (self.times[0], self.times[rows - 1]), rows);
        (block, maxima)
    }

    /// Appends a column with gaps: one bit per row, then the values that are present. Returns the
    /// maximum.
    fn sparse_column(&mut self, column: usize, rows: usize) -> f64 {
        let mut bits = [0u8; MAX_ROWS / 8];
        let mut present = [0.0; MAX_ROWS];
        let mut count = 0;
        for row in 0..rows {
            if self.present[row] >> column & 1 != 0 {
                bits[row / 8] |= 1 << (row % 8);
                present[count] = self.columns[column][row];
                count += 1;
            }
        }
        self.out.extend_from_slice(&bits[..rows.div_ceil(8)]);
        if count == 0 {
            return f64::NAN;
        }
        self.encoder.column(&present[..count], &mut self.out)
    }

    fn put_times(&mut self, rows: usize) {
        let start = self.times[0];
        let mut offsets = [0i64; MAX_ROWS];
        for (offset, time) in offsets.iter_mut().zip(&self.times[..rows]) {
            *offset = time.wrapping_sub(start);
        }
        let offsets = &mut offsets[..rows];
        let unit = divide::<{ UNITS[3] as u64 }>(offsets)
            .then_some(3)
            .or_else(|| divide::<{ UNITS[2] as u64 }>(offsets).then_some(2))
            .or_else(|| divide::<{ UNITS[1] as u64 }>(offsets).then_some(1));
        self.out.push(unit.unwrap_or(0));
        self.encoder.whole(offsets, &mut self.out);
    }
}

/// Divides all offsets by a unit, if it divides each of them. With a constant divisor the
/// compiler emits a multiplication.
fn divide<const UNIT: u64>(offsets: &mut [i64]) -> bool {
    let divides = offsets.iter().all(|offset| (*offset as u64).is_multiple_of(UNIT));
    if divides {
        for offset in offsets {
            *offset = (*offset as u64 / UNIT) as i64;
        }
    }
    divides
}

/// Appends a column without gaps. The usual length is a case of its own, so that the compiler can
/// specialize the loops.
#[inline(always)]
fn full_column(encoder: &mut Encoder, values: &[f64], out: &mut Vec<u8>) -> f64 {
    match <&[f64; MAX_ROWS]>::try_from(values) {
        Ok(full) => encoder.column(full, out),
        Err(_) => encoder.column(values, out),
    }
}

/// Whether all rows have the same distance, and the span fits 63 bits.
fn steady(times: &[i64]) -> bool {
    let (first, last) = (times[0], times[times.len() - 1]);
    if last.checked_sub(first).is_none() {
        return false;
    }
    let Some(second) = times.get(1) else { return true };
    let step = second - first;
    let mut uneven = 0;
    for pair in times.windows(2) {
        uneven |= (pair[1] - pair[0]) ^ step;
    }
    uneven == 0
}
