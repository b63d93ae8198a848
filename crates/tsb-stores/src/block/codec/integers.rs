//! Encodes a column of integers, as the smallest of several kinds.
//!
//! The first byte is `kind | domain << 4`. `exact` is the fast path: integers below 2^51 held in
//! floats, whose differences fit 32 bits. `any` takes every 64-bit integer, and wraps around if a
//! difference does not fit.

use tsb_core::bytes::varint;

use super::offsets::{self, join};
use super::pack::LANES;
use super::{MAX, ROUND_BITS, exact, larger, raised};

const CONSTANT: u8 = 0;
/// A few changes, each with its position.
const STEPS: u8 = 1;
/// Offsets from the smallest value.
const DIRECT: u8 = 2;
/// Differences, as offsets from the smallest difference.
const DELTA: u8 = 3;
/// Some changes: one bit per value marks them, and the differences are packed.
const MOVES: u8 = 4;

/// Appends a column that holds one value.
pub(super) fn put_constant(value: i64, domain: u8, out: &mut Vec<u8>) {
    out.push(CONSTANT | domain << 4);
    varint::put_signed(out, value);
}

/// Working memory of the encoder.
#[derive(Debug)]
pub(super) struct IntegerEncoder {
    /// Distances from the first value.
    offsets: [i32; MAX],
    /// Differences to the previous value; the first is 0.
    deltas: [i32; MAX],
    low: [u32; MAX],
    column: [i64; MAX],
    numbers: [u64; MAX],
    /// The positions where a value differs from the previous one, with the difference.
    moves: [(u8, i64); MAX],
}

impl Default for IntegerEncoder {
    fn default() -> Self {
        Self {
            offsets: [0; MAX],
            deltas: [0; MAX],
            low: [0; MAX],
            column: [0; MAX],
            numbers: [0; MAX],
            moves: [(0, 0); MAX],
        }
    }
}

/// Smallest and largest.
#[inline(always)]
fn bounds(numbers: &[i32]) -> (i64, i64) {
    let smallest = numbers.iter().fold(i32::MAX, |least, number| least.min(*number));
    let largest = numbers.iter().fold(i32::MIN, |most, number| most.max(*number));
    (i64::from(smallest), i64::from(largest))
}

/// 0 if the number fits 32 bits with its sign.
#[inline(always)]
fn beyond_32(number: i64) -> u64 {
    number.wrapping_add(1 << 31) as u64 >> 32
}

impl IntegerEncoder {
    /// Appends integers of magnitude below 2^51. Returns the largest. `scaled.len()` must be in
    /// [1, 256].
    #[inline(always)]
    pub(super) fn exact(&mut self, scaled: &[f64], domain: u8, out: &mut Vec<u8>) -> f64 {
        let len = scaled.len();
        let (offsets, deltas) = (&mut self.offsets[..len], &mut self.deltas[..len]);
        let first = raised(scaled[0]);
        let (mut far, mut wide) = (0, 0);
        for (offset, value) in offsets.iter_mut().zip(scaled) {
            let distance = raised(*value) - first;
            far |= beyond_32(distance);
            *offset = distance as i32;
        }
        deltas[0] = 0;
        for (delta, pair) in deltas[1..].iter_mut().zip(scaled.windows(2)) {
            let difference = raised(pair[1]) - raised(pair[0]);
            wide |= beyond_32(difference);
            *delta = difference as i32;
        }
        let first = first.wrapping_sub(ROUND_BITS as i64);
        if wide != 0 {
            self.any(scaled.iter().map(|&value| value as i64), domain, out);
            return scaled.iter().fold(f64::NAN, |most, &value| larger(most, value));
        }
        let (least, most) = bounds(offsets);
        let largest_value = if far == 0 {
            exact(first + most)
        } else {
            scaled.iter().fold(f64::NAN, |most, &value| larger(most, value))
        };
        let changes: u32 = deltas.iter().map(|delta| u32::from(*delta != 0)).sum();
        if changes == 0 {
            put_constant(first, domain, out);
            return largest_value;
        }
        let (smallest, largest) = bounds(&deltas[1..]);
        let walk = (largest - smallest) as u64;
        let spread = if far == 0 { (most - least) as u64 } else { u64::MAX };
        if changes as usize * 3 < len {
            let packed = offsets::cost(len, walk.min(spread));
            let count = self.collect_moves(len);
            if put_rare(&self.moves[..count], first, (len, packed), domain, out) {
                return largest_value;
            }
        }
        self.put_packed(len, (first, least, smallest), spread <= walk, domain, out);
        largest_value
    }

    /// Appends [`DIRECT`] or [`DELTA`].
    #[inline(always)]
    fn put_packed(
        &mut self,
        len: usize,
        (first, least, smallest): (i64, i64, i64),
        direct: bool,
        domain: u8,
        out: &mut Vec<u8>,
    ) {
        let low = &mut self.low[..len.next_multiple_of(LANES)];
        let (numbers, base) = if direct {
            (&self.offsets[..len], least)
        } else {
            (&self.deltas[..len], smallest)
        };
        for (low, number) in low.iter_mut().zip(numbers) {
            *low = number.wrapping_sub(base as i32) as u32;
        }
        low[len..].fill(0);
        if direct {
            out.push(DIRECT | domain << 4);
            varint::put_signed(out, first + least);
        } else {
            low[0] = 0;
            out.push(DELTA | domain << 4);
            varint::put_signed(out, first);
            varint::put_signed(out, smallest);
        }
        offsets::put_narrow(low, len, out);
    }

    /// Collects the differences that are not 0. Returns their number.
    fn collect_moves(&mut self, len: usize) -> usize {
        let mut count = 0;
        for (row, deltas) in self.deltas[..len].chunks(LANES).enumerate() {
            let mut moved = 0u32;
            for (lane, delta) in deltas.iter().enumerate() {
                moved |= u32::from(*delta != 0) << lane;
            }
            while moved != 0 {
                let lane = moved.trailing_zeros() as usize;
                self.moves[count] = ((row * LANES + lane) as u8, i64::from(deltas[lane]));
                count += 1;
                moved &= moved - 1;
            }
        }
        count
    }

    /// Appends any integers: at least 1, at most 256.
    pub(super) fn any(&mut self, values: impl Iterator<Item = i64>, domain: u8, out: &mut Vec<u8>) {
        let mut len = 0;
        for (to, value) in self.column.iter_mut().zip(values) {
            *to = value;
            len += 1;
        }
        let values = &self.column[..len];
        let mut count = 0;
        let (mut smallest, mut largest) = (i64::MAX, i64::MIN);
        for index in 1..len {
            let delta = values[index].wrapping_sub(values[index - 1]);
            (smallest, largest) = (smallest.min(delta), largest.max(delta));
            self.moves[count] = (index as u8, delta);
            count += usize::from(delta != 0);
        }
        if count == 0 {
            put_constant(values[0], domain, out);
            return;
        }
        let least = values.iter().copied().fold(i64::MAX, i64::min);
        let most = values.iter().copied().fold(i64::MIN, i64::max);
        let (walk, spread) = (largest.wrapping_sub(smallest) as u64, most.wrapping_sub(least) as u64);
        let packed = offsets::cost(len, walk.min(spread));
        if count * 3 < len && put_rare(&self.moves[..count], values[0], (len, packed), domain, out) {
            return;
        }
        let numbers = &mut self.numbers[..len];
        if spread <= walk {
            for (number, value) in numbers.iter_mut().zip(values) {
                *number = value.wrapping_sub(least) as u64;
            }
            out.push(DIRECT | domain << 4);
            varint::put_signed(out, least);
        } else {
            numbers[0] = 0;
            for index in 1..len {
                let delta = values[index].wrapping_sub(values[index - 1]);
                numbers[index] = delta.wrapping_sub(smallest) as u64;
            }
            out.push(DELTA | domain << 4);
            varint::put_signed(out, values[0]);
            varint::put_signed(out, smallest);
        }
        offsets::put_wide(numbers, out);
    }
}

/// Appends [`STEPS`] or [`MOVES`], unless packing every difference takes fewer bytes. Returns
/// whether it did.
fn put_rare(moves: &[(u8, i64)], first: i64, (len, packed): (usize, usize), domain: u8, out: &mut Vec<u8>) -> bool {
    let bytes = |delta: i64| 1 + varint::len(varint::zigzag(delta));
    let steps = 1 + moves.iter().map(|(_, delta)| bytes(*delta)).sum::<usize>();
    let smallest = moves.iter().fold(i64::MAX, |least, (_, delta)| least.min(*delta));
    let largest = moves.iter().fold(i64::MIN, |most, (_, delta)| most.max(*delta));
    let range = largest.wrapping_sub(smallest) as u64;
    let bitmap = len.div_ceil(8) + 2 + offsets::cost(moves.len(), range);
    if packed <= steps && packed <= bitmap {
        return false;
    }
    let kind = if steps <= bitmap { STEPS } else { MOVES };
    out.push(kind | domain << 4);
    varint::put_signed(out, first);
    if kind == STEPS {
        out.push(moves.len() as u8);
        for (position, delta) in moves {
            out.push(*position);
            varint::put_signed(out, *delta);
        }
    } else {
        let mut bits = [0u8; MAX / 8];
        let mut numbers = [0u64; MAX];
        for (number, (position, delta)) in numbers.iter_mut().zip(moves) {
            bits[usize::from(position / 8)] |= 1 << (position % 8);
            *number = delta.wrapping_sub(smallest) as u64;
        }
        out.extend_from_slice(&bits[..len.div_ceil(8)]);
        varint::put_signed(out, smallest);
        offsets::put_wide(&numbers[..moves.len()], out);
    }
    true
}

/// The value of a column of kind [`CONSTANT`].
#[inline(always)]
pub(super) fn constant(bytes: &[u8]) -> Option<i64> {
    (bytes[0] & 15 == CONSTANT).then(|| varint::get_signed(bytes, &mut 1))
}

/// Working memory of the decoder.
#[derive(Debug)]
pub(super) struct IntegerDecoder {
    values: [i64; MAX],
    low: [u32; MAX],
    high: [u32; MAX],
}

impl Default for IntegerDecoder {
    fn default() -> Self {
        Self {
            values: [0; MAX],
            low: [0; MAX],
            high: [0; MAX],
        }
    }
}

impl IntegerDecoder {
    /// Decodes a column of kind [`CONSTANT`] or [`STEPS`], converting each value only once.
    /// Returns false, without an effect, for other kinds.
    #[inline(always)]
    #[expect(clippy::unused_self, reason = "it is read as the other kinds are")]
    pub(super) fn constant_or_steps(&self, bytes: &[u8], out: &mut [f64], number: impl Fn(i64) -> f64) -> bool {
        let kind = bytes[0] & 15;
        if kind > STEPS {
            return false;
        }
        let mut at = 1;
        let mut value = varint::get_signed(bytes, &mut at);
        let mut from = 0;
        if kind == STEPS {
            let count = bytes[at];
            at += 1;
            for _ in 0..count {
                let to = usize::from(bytes[at]);
                at += 1;
                out[from..to].fill(number(value));
                value = value.wrapping_add(varint::get_signed(bytes, &mut at));
                from = to;
            }
        }
        out[from..].fill(number(value));
        true
    }

    /// Decodes `len` integers of any kind.
    #[inline(always)]
    pub(super) fn read(&mut self, bytes: &[u8], len: usize) -> &[i64] {
        let kind = bytes[0] & 15;
        let mut at = 1;
        let first = varint::get_signed(bytes, &mut at);
        match kind {
            CONSTANT => self.values[..len].fill(first),
            STEPS => self.steps(bytes, at, first, len),
            DIRECT => {
                let (_, narrow) = offsets::get(&bytes[at..], len, &mut self.low, &mut self.high);
                if narrow {
                    for (value, low) in self.values[..len].iter_mut().zip(&self.low) {
                        *value = first.wrapping_add(i64::from(*low));
                    }
                } else {
                    for index in 0..len {
                        self.values[index] = first.wrapping_add(join(self.low[index], self.high[index]) as i64);
                    }
                }
            }
            DELTA => self.delta(bytes, at, first, len),
            _ => self.moves(bytes, at, first, len),
        }
        &self.values[..len]
    }

    #[inline(always)]
    fn delta(&mut self, bytes: &[u8], mut at: usize, first: i64, len: usize) {
        let smallest = varint::get_signed(bytes, &mut at);
        let (_, narrow) = offsets::get(&bytes[at..], len, &mut self.low, &mut self.high);
        let mut value = first.wrapping_sub(smallest);
        if narrow {
            for (to, low) in self.values[..len].iter_mut().zip(&self.low) {
                value = value.wrapping_add(i64::from(*low)).wrapping_add(smallest);
                *to = value;
            }
        } else {
            for index in 0..len {
                let offset = join(self.low[index], self.high[index]) as i64;
                value = value.wrapping_add(offset).wrapping_add(smallest);
                self.values[index] = value;
            }
        }
    }

    fn steps(&mut self, bytes: &[u8], mut at: usize, first: i64, len: usize) {
        let mut value = first;
        let mut from = 0;
        let count = bytes[at];
        at += 1;
        for _ in 0..count {
            let to = usize::from(bytes[at]);
            at += 1;
            self.values[from..to].fill(value);
            value = value.wrapping_add(varint::get_signed(bytes, &mut at));
            from = to;
        }
        self.values[from..len].fill(value);
    }

    fn moves(&mut self, bytes: &[u8], at: usize, first: i64, len: usize) {
        let (bits, rest) = bytes[at..].split_at(len.div_ceil(8));
        let count = bits.iter().map(|byte| byte.count_ones() as usize).sum();
        let mut after = 0;
        let smallest = varint::get_signed(rest, &mut after);
        let (_, narrow) = offsets::get(&rest[after..], count, &mut self.low, &mut self.high);
        let mut value = first;
        let mut next = 0;
        for index in 0..len {
            if bits[index / 8] >> (index % 8) & 1 != 0 {
                let high = if narrow { 0 } else { self.high[next] };
                value = value
                    .wrapping_add(smallest)
                    .wrapping_add(join(self.low[next], high) as i64);
                next += 1;
            }
            self.values[index] = value;
        }
    }
}
