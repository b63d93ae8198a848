//! A column of integers: what kind of column it is, and its bytes.
//!
//! The first byte is `kind | domain << 4`. `exact` is the fast twin: integers below 2^51
//! held in floats, which baseline vector instructions can subtract and compare. `any`
//! takes every 64-bit integer and wraps around where a difference does not fit.

use super::offsets::{self, join};
use super::{MAX, varint};

const CONSTANT: u8 = 0;
/// Few changes: each with its position.
const STEPS: u8 = 1;
/// Offsets from the smallest value.
const DIRECT: u8 = 2;
/// Differences, as offsets from the smallest difference.
const DELTA: u8 = 3;
/// Some changes: a bit a value says where, the differences are packed.
const MOVES: u8 = 4;

const LANES: usize = 8;
/// Adding this puts an integer in [0, 2^52) into the low bits of a float.
const SHIFT: f64 = 4_503_599_627_370_496.0; // 2^52

/// Appends a column that holds one value.
pub(super) fn put_constant(value: i64, domain: u8, out: &mut Vec<u8>) {
    out.push(CONSTANT | domain << 4);
    varint::put(out, varint::zigzag(value));
}

/// Working memory of the encoder.
#[derive(Debug)]
pub(super) struct Integers {
    padded: [f64; MAX],
    delta: [f64; MAX],
    low: [u32; MAX],
    column: [i64; MAX],
    numbers: [u64; MAX],
    /// Where a value differs from the one before, and by how much.
    moves: [(u8, i64); MAX],
}

impl Default for Integers {
    fn default() -> Self {
        Self {
            padded: [0.0; MAX],
            delta: [0.0; MAX],
            low: [0; MAX],
            column: [0; MAX],
            numbers: [0; MAX],
            moves: [(0, 0); MAX],
        }
    }
}

/// Smallest and largest.
#[inline(always)]
fn bounds(numbers: &[f64]) -> (f64, f64) {
    let (rows, _) = numbers.as_chunks::<LANES>();
    let (mut low, mut high) = (rows[0], rows[0]);
    for row in rows {
        for lane in 0..LANES {
            low[lane] = if row[lane] < low[lane] { row[lane] } else { low[lane] };
            high[lane] = if row[lane] > high[lane] { row[lane] } else { high[lane] };
        }
    }
    let smallest = low.iter().fold(low[0], |least, lane| least.min(*lane));
    (smallest, high.iter().fold(high[0], |most, lane| most.max(*lane)))
}

/// How many numbers are not 0.
#[inline(always)]
fn count_nonzero(numbers: &[f64]) -> usize {
    let (rows, _) = numbers.as_chunks::<LANES>();
    let mut counts = [0u64; LANES];
    for row in rows {
        for lane in 0..LANES {
            counts[lane] += u64::from(row[lane] != 0.0);
        }
    }
    counts.iter().sum::<u64>() as usize
}

impl Integers {
    /// Appends integers of magnitude below 2^51 and returns the largest.
    /// `scaled.len()` in [1, 256]
    #[inline(always)]
    pub(super) fn exact(&mut self, scaled: &[f64], domain: u8, out: &mut Vec<u8>) -> f64 {
        let len = scaled.len();
        if len.is_multiple_of(LANES) {
            self.padded_exact(scaled, len, domain, out)
        } else {
            let rows = len.next_multiple_of(LANES);
            let mut padded = self.padded;
            padded[..len].copy_from_slice(scaled);
            padded[len..rows].fill(scaled[len - 1]);
            self.padded_exact(&padded[..rows], len, domain, out)
        }
    }

    #[inline(always)]
    fn padded_exact(&mut self, scaled: &[f64], len: usize, domain: u8, out: &mut Vec<u8>) -> f64 {
        let rows = scaled.len();
        let delta = &mut self.delta[..rows];
        for index in 1..rows {
            delta[index] = scaled[index] - scaled[index - 1];
        }
        delta[0] = 0.0;
        let changes = count_nonzero(delta);
        if changes == 0 {
            put_constant(scaled[0] as i64, domain, out);
            return scaled[0];
        }
        // What stands for no difference must not widen the range.
        let stand_in = delta[1];
        delta[0] = stand_in;
        delta[len..].fill(stand_in);
        let (smallest, largest) = bounds(delta);
        let (least, most) = bounds(scaled);
        let (walk, spread) = ((largest - smallest) as u64, (most - least) as u64);
        if walk >> 32 != 0 && spread >> 32 != 0 {
            self.any(scaled[..len].iter().map(|&value| value as i64), domain, out);
            return most;
        }
        if changes * 3 < len {
            let packed = offsets::cost(len, walk.min(spread));
            let count = self.collect_moves(len);
            let moves = &self.moves[..count];
            if put_rare(moves, scaled[0] as i64, (len, packed), domain, out) {
                return most;
            }
        }
        let low = &mut self.low[..rows];
        let (kind, base, numbers): (u8, f64, &[f64]) = if spread <= walk {
            (DIRECT, least, scaled)
        } else {
            (DELTA, smallest, &self.delta[..rows])
        };
        for (low, number) in low.iter_mut().zip(numbers) {
            *low = ((number - base) + SHIFT).to_bits() as u32;
        }
        low[len..].fill(0);
        out.push(kind | domain << 4);
        if kind == DELTA {
            low[0] = 0;
            varint::put(out, varint::zigzag(scaled[0] as i64));
        }
        varint::put(out, varint::zigzag(base as i64));
        offsets::put_narrow(low, len, out);
        most
    }

    /// Lists the differences that are not 0; returns how many there are.
    fn collect_moves(&mut self, len: usize) -> usize {
        let mut count = 0;
        for (row, deltas) in self.delta[..len].chunks(LANES).enumerate() {
            let mut moved = 0u32;
            for (lane, delta) in deltas.iter().enumerate() {
                moved |= u32::from(*delta != 0.0) << lane;
            }
            // The first value differs from none.
            moved &= !u32::from(row == 0);
            while moved != 0 {
                let lane = moved.trailing_zeros() as usize;
                self.moves[count] = ((row * LANES + lane) as u8, deltas[lane] as i64);
                count += 1;
                moved &= moved - 1;
            }
        }
        count
    }

    /// Appends any integers. At least 1, at most 256.
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
            varint::put(out, varint::zigzag(least));
        } else {
            numbers[0] = 0;
            for index in 1..len {
                let delta = values[index].wrapping_sub(values[index - 1]);
                numbers[index] = delta.wrapping_sub(smallest) as u64;
            }
            out.push(DELTA | domain << 4);
            varint::put(out, varint::zigzag(values[0]));
            varint::put(out, varint::zigzag(smallest));
        }
        offsets::put_wide(numbers, out);
    }
}

/// Appends [`STEPS`] or [`MOVES`], unless packing every difference takes fewer bytes.
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
    varint::put(out, varint::zigzag(first));
    if kind == STEPS {
        out.push(moves.len() as u8);
        for (position, delta) in moves {
            out.push(*position);
            varint::put(out, varint::zigzag(*delta));
        }
    } else {
        let mut bits = [0u8; MAX / 8];
        let mut numbers = [0u64; MAX];
        for (number, (position, delta)) in numbers.iter_mut().zip(moves) {
            bits[usize::from(position / 8)] |= 1 << (position % 8);
            *number = delta.wrapping_sub(smallest) as u64;
        }
        out.extend_from_slice(&bits[..len.div_ceil(8)]);
        varint::put(out, varint::zigzag(smallest));
        offsets::put_wide(&numbers[..moves.len()], out);
    }
    true
}

/// Working memory of the decoder.
#[derive(Debug)]
pub(super) struct Reader {
    values: [i64; MAX],
    low: [u32; MAX],
    high: [u32; MAX],
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            values: [0; MAX],
            low: [0; MAX],
            high: [0; MAX],
        }
    }
}

fn get_signed(bytes: &[u8], at: &mut usize) -> i64 {
    varint::unzigzag(varint::get(bytes, at))
}

impl Reader {
    /// Reads a column that stands still for long, converting each value once; false, and
    /// nothing done, when it is of another kind.
    #[inline(always)]
    #[expect(clippy::unused_self, reason = "it is read as the other kinds are")]
    pub(super) fn constant_or_steps(&self, bytes: &[u8], out: &mut [f64], number: impl Fn(i64) -> f64) -> bool {
        let kind = bytes[0] & 15;
        if kind > STEPS {
            return false;
        }
        let mut at = 1;
        let mut value = get_signed(bytes, &mut at);
        let mut from = 0;
        if kind == STEPS {
            let count = bytes[at];
            at += 1;
            for _ in 0..count {
                let to = usize::from(bytes[at]);
                at += 1;
                out[from..to].fill(number(value));
                value = value.wrapping_add(get_signed(bytes, &mut at));
                from = to;
            }
        }
        out[from..].fill(number(value));
        true
    }

    /// Reads `len` integers of any kind.
    #[inline(always)]
    pub(super) fn read(&mut self, bytes: &[u8], len: usize) -> &[i64] {
        let kind = bytes[0] & 15;
        let mut at = 1;
        let first = get_signed(bytes, &mut at);
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
        let smallest = get_signed(bytes, &mut at);
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
            value = value.wrapping_add(get_signed(bytes, &mut at));
            from = to;
        }
        self.values[from..len].fill(value);
    }

    fn moves(&mut self, bytes: &[u8], at: usize, first: i64, len: usize) {
        let (bits, rest) = bytes[at..].split_at(len.div_ceil(8));
        let count = bits.iter().map(|byte| byte.count_ones() as usize).sum();
        let mut after = 0;
        let smallest = get_signed(rest, &mut after);
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
