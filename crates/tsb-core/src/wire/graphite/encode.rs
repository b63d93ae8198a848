//! Encodes samples to lines.

use super::wire_name;
use crate::batch::{Batch, Ids, Times};
use crate::series::{Catalog, SeriesId};
use crate::time::Timestamp;
use crate::wire::names::{Cell, INLINE};
use crate::wire::number::{IntegerDigits, MAX_TEXT, cents, format_f64, format_i64};
use crate::wire::simd::prefetch;
use crate::wire::{Encoder, Protocol, UnsupportedSeries};

/// Maximum bytes of a line on the fast path: a name, ten digits, a timestamp.
const LINE: usize = 96;

/// Minimum length of a name on the fast path, space included: [`IntegerDigits::put`] overwrites
/// nine bytes before the value. The maximum is what fits into a name's cell.
const SHORTEST: usize = 10;

/// Lines are assembled in a block of this size, which stays in the first-level cache.
const BLOCK: usize = 8192;

/// Number of names in arbitrary order that are prefetched together.
const GROUP: usize = 32;

/// Turns batches into lines.
///
/// Timestamps are cut to whole seconds. Left out, and counted by [`Encoder::skipped`]:
/// values that are not numbers (carbon drops them), timestamps in the second before the
/// epoch (-1 means "now" to carbon), and ids that the catalog does not have.
pub struct GraphiteEncoder {
    /// The name of each series, followed by a space.
    cells: Vec<Cell>,
    /// The parts of long names that do not fit into their cells.
    rests: Vec<u8>,
    tail: Tail,
    block: Block,
    skipped: u64,
}

/// The end of a line: space, seconds, line feed.
#[derive(Clone, Copy, Debug)]
struct Tail {
    seconds: i64,
    text: [u8; 32],
    // In [3, 22].
    length: usize,
}

impl Tail {
    fn new(seconds: i64) -> Self {
        let mut digits = [0; MAX_TEXT];
        let count = format_i64(seconds, &mut digits);
        let mut text = [0; 32];
        text[0] = b' ';
        text[1..=count].copy_from_slice(&digits[..count]);
        text[count + 1] = b'\n';
        let length = count + 2;
        Self { seconds, text, length }
    }

    /// Whether lines with it can be written on the fast path.
    fn is_fast(&self) -> bool {
        self.length <= 16 && self.seconds != -1
    }
}

/// The block in which lines are assembled.
struct Block {
    bytes: Box<[u8; BLOCK]>,
    // Invariant: used <= BLOCK
    used: usize,
}

impl Block {
    fn flush(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes[..self.used]);
        self.used = 0;
    }

    /// Room for a line on the fast path, if the name is suitable for it.
    #[inline(always)]
    fn room(&mut self, cell: &Cell, out: &mut Vec<u8>) -> Option<&mut [u8; LINE]> {
        if self.used > BLOCK - LINE {
            self.flush(out);
        }
        let line = self.bytes.get_mut(self.used..).and_then(|rest| rest.first_chunk_mut());
        line.filter(|_| matches!(cell.length(), SHORTEST..=INLINE))
    }

    /// Writes one line; returns false, with nothing written, if the fast path cannot. The tail is
    /// 16 bytes at most.
    #[inline(always)]
    fn line(&mut self, cell: &Cell, value: f64, tail: &Tail, out: &mut Vec<u8>) -> bool {
        let (Some(digits), Some(line)) = (IntegerDigits::of(value), self.room(cell, out)) else {
            return false;
        };
        let end = digits.put(line, cell.length());
        put_name(&cell.text, cell.length(), line);
        line[end..end + 16].copy_from_slice(&tail.text[..16]);
        self.used += end + tail.length;
        true
    }

    /// The same for a value with one or two decimals.
    #[inline(never)]
    fn cents_line(&mut self, cell: &Cell, value: f64, tail: &Tail, out: &mut Vec<u8>) -> bool {
        let Some((whole, rest, length)) = cents(value) else {
            return false;
        };
        let Some(line) = self.room(cell, out) else { return false };
        let point = whole.put(line, cell.length());
        put_name(&cell.text, cell.length(), line);
        line[point..point + 4].copy_from_slice(&rest);
        let end = point + length;
        line[end..end + 16].copy_from_slice(&tail.text[..16]);
        self.used += end + tail.length;
        true
    }

    /// Writes one line of any form.
    #[inline(never)]
    fn any_line(&mut self, name: [&[u8]; 2], value: f64, tail: &Tail, out: &mut Vec<u8>) {
        let mut text = [0; MAX_TEXT];
        let digits = format_f64(value, &mut text);
        if self.used + name[0].len() + name[1].len() + LINE > BLOCK {
            self.flush(out);
            out.extend_from_slice(name[0]);
            out.extend_from_slice(name[1]);
        } else {
            self.put(name[0]);
            self.put(name[1]);
        }
        self.put(b" ");
        self.put(&text[..digits]);
        self.put(&tail.text[..tail.length]);
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
    }
}

impl GraphiteEncoder {
    /// An encoder for the series of a catalog.
    ///
    /// # Errors
    /// The first series that this wire cannot carry, and why.
    pub fn new(catalog: &Catalog) -> Result<Self, UnsupportedSeries> {
        let (mut cells, mut rests) = (Vec::with_capacity(catalog.len()), Vec::new());
        for key in catalog.keys() {
            let refuse = |why| UnsupportedSeries::new(Protocol::Graphite, key, why);
            let name = wire_name(key).map_err(refuse)?;
            let cell = Cell::new(name.as_bytes(), b' ', 0, &mut rests);
            cells.push(cell.ok_or_else(|| refuse("the names together exceed 4 GiB"))?);
        }
        let (bytes, used) = (Box::new([0; BLOCK]), 0);
        Ok(Self {
            cells,
            rests,
            tail: Tail::new(0),
            block: Block { bytes, used },
            skipped: 0,
        })
    }

    fn set_time(&mut self, at: Timestamp) {
        let seconds = at.as_secs();
        if seconds != self.tail.seconds {
            self.tail = Tail::new(seconds);
        }
    }

    /// Writes lines with one timestamp for consecutive series.
    fn range(&mut self, first: usize, values: &[f64], out: &mut Vec<u8>) {
        let cells = self.cells.get(first..).unwrap_or_default();
        self.skipped += lines(&mut self.block, cells.iter(), &self.rests, values, &self.tail, out);
        self.skipped += values.len().saturating_sub(cells.len()) as u64;
    }

    /// Writes lines with one timestamp for series in any order.
    fn each(&mut self, ids: &[SeriesId], values: &[f64], out: &mut Vec<u8>) {
        let known = self.cells.len();
        let mut coming = ids.chunks(GROUP);
        self.expect(coming.next().unwrap_or_default());
        for (ids, values) in ids.chunks(GROUP).zip(values.chunks(GROUP)) {
            self.expect(coming.next().unwrap_or_default());
            if ids.iter().any(|id| id.index() >= known) {
                for (id, value) in ids.iter().zip(values) {
                    self.range(id.index(), std::slice::from_ref(value), out);
                }
                continue;
            }
            let cells = ids.iter().map(|id| &self.cells[id.index()]);
            self.skipped += lines(&mut self.block, cells, &self.rests, values, &self.tail, out);
        }
    }

    /// Prefetches names that are needed soon.
    fn expect(&self, ids: &[SeriesId]) {
        for cell in ids.iter().filter_map(|id| self.cells.get(id.index())) {
            prefetch(cell);
        }
    }
}

/// Writes lines for pairs of series and value; returns how many samples cannot be carried.
#[inline(always)]
fn lines<'a>(
    block: &mut Block,
    cells: impl Iterator<Item = &'a Cell>,
    rests: &[u8],
    values: &[f64],
    tail: &Tail,
    out: &mut Vec<u8>,
) -> u64 {
    let is_fast = tail.is_fast();
    let mut skipped = 0;
    for (cell, &value) in cells.zip(values) {
        if is_fast && (block.line(cell, value, tail, out) || block.cents_line(cell, value, tail, out)) {
            continue;
        }
        skipped += u64::from(!slow_line(block, cell, rests, value, tail, out));
    }
    skipped
}

/// Writes a line of any form; returns false if the wire cannot carry the sample.
#[inline(never)]
fn slow_line(block: &mut Block, cell: &Cell, rests: &[u8], value: f64, tail: &Tail, out: &mut Vec<u8>) -> bool {
    let carried = !value.is_nan() && tail.seconds != -1;
    if carried {
        let (head, rest) = cell.pieces(rests);
        block.any_line([head, rest], value, tail, out);
    }
    carried
}

/// Copies a name of 10 to 54 bytes in pieces that may overlap: no loop and no call.
#[inline(always)]
fn put_name(name: &[u8; INLINE], length: usize, line: &mut [u8; LINE]) {
    if length > 32 {
        line[..32].copy_from_slice(&name[..32]);
        line[length - 32..length].copy_from_slice(&name[length - 32..length]);
    } else if length >= 16 {
        line[..16].copy_from_slice(&name[..16]);
        line[length - 16..length].copy_from_slice(&name[length - 16..length]);
    } else {
        line[..8].copy_from_slice(&name[..8]);
        line[length - 8..length].copy_from_slice(&name[length - 8..length]);
    }
}

impl Encoder for GraphiteEncoder {
    fn encode(&mut self, batch: &Batch<'_>, out: &mut Vec<u8>) {
        let values = batch.values();
        match (batch.ids(), batch.times()) {
            (Ids::Range(first), Times::One(at)) => {
                self.set_time(at);
                self.range(first.index(), values, out);
            }
            (Ids::Each(ids), Times::One(at)) => {
                self.set_time(at);
                self.each(ids, values, out);
            }
            (_, Times::Each(times)) => {
                for (index, (at, value)) in times.iter().zip(values).enumerate() {
                    self.set_time(*at);
                    self.range(batch.id(index).index(), std::slice::from_ref(value), out);
                }
            }
        }
        self.block.flush(out);
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }
}

impl std::fmt::Debug for GraphiteEncoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GraphiteEncoder")
            .field("series", &self.cells.len())
            .field("skipped", &self.skipped)
            .finish_non_exhaustive()
    }
}
