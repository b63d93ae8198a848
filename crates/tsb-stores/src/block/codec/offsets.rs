//! A run of small unsigned numbers: one width for all, exceptions aside.
//!
//! ```text
//! width u8            bits of a packed number, in [0, 64]; +128 when the next two follow
//!   shift u8          every number was divided by 2^shift
//!   exceptions u8     how many numbers are wider than `width`
//! low bits            the lowest min(width, 32) bits, packed in lanes
//! high bits           the other width - 32 bits, packed in lanes, where width > 32
//! exception *         position u8, then the bits above `width` as a varint
//! ```

use super::pack::{LANES, pack, packed_len, unpack};
use tsb_core::bytes::varint;

use super::MAX;

const EXTENDED: u8 = 0x80;
const MAX_EXCEPTIONS: usize = 64;

/// Appends `numbers[..len]`. The slice must be a whole number of rows, with 0 after `len`.
///
/// The numbers may be changed: common trailing zeros are shifted out, and the parts stored in
/// exceptions are masked off.
#[inline(always)]
pub(super) fn put_narrow(numbers: &mut [u32], len: usize, out: &mut Vec<u8>) {
    let seen = numbers.iter().fold(0, |all, number| all | number);
    if seen == 0 {
        out.push(0);
        return;
    }
    let width = 32 - seen.leading_zeros();
    let top: u32 = numbers.iter().map(|number| number >> (width - 1)).sum();
    // If few numbers use the top bit, it may be cheaper to store them as exceptions.
    let outliers = top as usize * LANES * 2 < len;
    if outliers || seen & 1 == 0 {
        put_extended(numbers, len, seen, outliers, out);
    } else {
        out.push(width as u8);
        pack(numbers, width, out);
    }
}

/// [`put_narrow`] with a shift or exceptions.
fn put_extended(numbers: &mut [u32], len: usize, seen: u32, outliers: bool, out: &mut Vec<u8>) {
    let shift = seen.trailing_zeros();
    for number in numbers.iter_mut() {
        *number >>= shift;
    }
    let widest = 32 - seen.leading_zeros() - shift;
    let width = if outliers {
        let mut lengths = [0u16; 65];
        for number in &numbers[..len] {
            lengths[32 - number.leading_zeros() as usize] += 1;
        }
        best_width(&lengths, widest, len)
    } else {
        widest
    };
    if shift == 0 && width == widest {
        out.push(width as u8);
        pack(numbers, width, out);
        return;
    }
    let exceptions = numbers
        .iter()
        .filter(|&&number| u64::from(number) >> width != 0)
        .count();
    out.extend_from_slice(&[width as u8 | EXTENDED, shift as u8, exceptions as u8]);
    let room = packed_len(numbers.len(), width);
    let start = out.len();
    // Exceptions are written after the packed numbers, but collected before these are masked.
    let mut behind = Vec::with_capacity(exceptions * 4);
    if exceptions > 0 {
        let mask = ((1u64 << width) - 1) as u32;
        for (position, number) in numbers.iter_mut().enumerate() {
            let above = u64::from(*number) >> width;
            if above != 0 {
                behind.push(position as u8);
                varint::put(&mut behind, above);
                *number &= mask;
            }
        }
    }
    pack(numbers, width, out);
    debug_assert_eq!(out.len(), start + room, "packed_len states the room");
    out.extend_from_slice(&behind);
}

/// The cheapest width, given the number of values of each bit length.
fn best_width(lengths: &[u16; 65], widest: u32, len: usize) -> u32 {
    let mut best = (widest, wide_len(len, widest));
    for width in (0..widest).rev() {
        let mut aside = 0;
        let mut exceptions = 0;
        for length in width + 1..=widest {
            let count = usize::from(lengths[length as usize]);
            exceptions += count;
            aside += count * (1 + (length - width).div_ceil(7) as usize);
        }
        if exceptions > MAX_EXCEPTIONS {
            break;
        }
        let cost = 2 + aside + wide_len(len, width);
        if cost < best.1 {
            best = (width, cost);
        }
    }
    best.0
}

/// Bytes of `len` packed numbers; `width` is in [0, 64].
fn wide_len(len: usize, width: u32) -> usize {
    packed_len(len, width.min(32)) + packed_len(len, width.saturating_sub(32))
}

/// Bytes that [`put_wide`] would append without exceptions. Approximate.
pub(super) fn cost(len: usize, range: u64) -> usize {
    1 + wide_len(len, 64 - range.leading_zeros())
}

/// Appends numbers of any width: the general form of [`put_narrow`].
pub(super) fn put_wide(numbers: &[u64], out: &mut Vec<u8>) {
    let rows = numbers.len().next_multiple_of(LANES);
    let mut low = [0u32; MAX];
    let seen = numbers.iter().fold(0, |all, number| all | number);
    if seen >> 32 == 0 {
        for (to, number) in low.iter_mut().zip(numbers) {
            *to = *number as u32;
        }
        put_narrow(&mut low[..rows], numbers.len(), out);
        return;
    }
    let shift = seen.trailing_zeros();
    let widest = 64 - seen.leading_zeros() - shift;
    let mut lengths = [0u16; 65];
    for number in numbers {
        lengths[64 - (number >> shift).leading_zeros() as usize] += 1;
    }
    let width = best_width(&lengths, widest, numbers.len());
    let above = |number: u64| (number >> shift).checked_shr(width).unwrap_or(0);
    let exceptions = numbers.iter().filter(|&&number| above(number) != 0).count();
    if shift == 0 && exceptions == 0 {
        out.push(width as u8);
    } else {
        out.extend_from_slice(&[width as u8 | EXTENDED, shift as u8, exceptions as u8]);
    }
    let mask = u64::MAX.checked_shr(64 - width).unwrap_or(0);
    let mut high = [0u32; MAX];
    for (index, number) in numbers.iter().enumerate() {
        let kept = (number >> shift) & mask;
        low[index] = kept as u32;
        high[index] = (kept >> 32) as u32;
    }
    pack(&low[..rows], width.min(32), out);
    pack(&high[..rows], width.saturating_sub(32), out);
    for (position, number) in numbers.iter().enumerate() {
        if above(*number) != 0 {
            out.push(position as u8);
            varint::put(out, above(*number));
        }
    }
}

/// Decodes a run. Returns where it ended, and whether all numbers fit 32 bits.
#[inline(always)]
pub(super) fn get(bytes: &[u8], len: usize, low: &mut [u32; MAX], high: &mut [u32; MAX]) -> (usize, bool) {
    let rows = len.next_multiple_of(LANES);
    let head = bytes[0];
    let width = u32::from(head & !EXTENDED);
    if head <= 32 {
        return (1 + unpack(&bytes[1..], width, &mut low[..rows]), true);
    }
    let extended = head & EXTENDED != 0;
    let (shift, exceptions, mut at) = if extended {
        (u32::from(bytes[1]), bytes[2], 3)
    } else {
        (0, 0, 1)
    };
    at += unpack(&bytes[at..], width.min(32), &mut low[..rows]);
    if width <= 32 && exceptions == 0 && width + shift <= 32 {
        for number in &mut low[..rows] {
            *number <<= shift;
        }
        return (at, true);
    }
    at += unpack(&bytes[at..], width.saturating_sub(32), &mut high[..rows]);
    for _ in 0..exceptions {
        let position = usize::from(bytes[at]);
        at += 1;
        let number = join(low[position], high[position]) | varint::get(bytes, &mut at) << width;
        (low[position], high[position]) = split(number);
    }
    if shift > 0 {
        for (low, high) in low.iter_mut().zip(high.iter_mut()).take(len) {
            (*low, *high) = split(join(*low, *high) << shift);
        }
    }
    (at, false)
}

/// Joins the two halves of a number.
#[inline]
pub(super) const fn join(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

#[inline]
const fn split(number: u64) -> (u32, u32) {
    (number as u32, (number >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(numbers: &[u64]) -> usize {
        let mut bytes = Vec::new();
        put_wide(numbers, &mut bytes);
        let (mut low, mut high) = ([9; MAX], [9; MAX]);
        let (end, narrow) = get(&bytes, numbers.len(), &mut low, &mut high);
        assert_eq!(end, bytes.len());
        for (index, number) in numbers.iter().enumerate() {
            let high = if narrow { 0 } else { high[index] };
            assert_eq!(join(low[index], high), *number, "number {index} of {numbers:?}");
        }
        bytes.len()
    }

    #[test]
    fn every_width_shift_and_length_comes_back() {
        for width in 0..=64u32 {
            for len in [1usize, 7, 8, 60, 239, 240, 256] {
                let top = if width == 0 { 0 } else { u64::MAX >> (64 - width) };
                let number = |i: usize| (i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) & top;
                check(&(0..len).map(number).collect::<Vec<_>>());
                check(&(0..len).map(|i| number(i) & !7).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn an_outlier_does_not_widen_the_rest() {
        let mut numbers: Vec<u64> = (0..240).map(|i| i % 16).collect();
        let plain = check(&numbers);
        for outlier in [1 << 20, 1 << 40, u64::MAX] {
            numbers[100] = outlier;
            assert!(check(&numbers) <= plain + 13, "outlier {outlier}");
        }
    }
}
