//! Parses numbers.

use crate::wire::simd::{Bytes16, digit_run, find_byte, join16};

/// Number of bytes that a decoder examines at once: a name, a value and a timestamp of usual
/// length, so that one bounds check covers a whole record.
pub(crate) const WINDOW: usize = 256;

/// The bytes that a decoder examines: a record, and any bytes after it.
pub(crate) type Window = [u8; WINDOW];

/// Maximum offset in a window of a number that is parsed in place.
pub(crate) const LAST_START: usize = 192;

/// 2^53: up to here an f64 represents every integer.
const EXACT: u64 = 1 << 53;

/// Powers of ten that an f64 represents exactly, as far as the fast path needs them.
const TENS: [f64; 16] = [
    1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
];

/// The same as integers.
const INTEGER_TENS: [u64; 16] = {
    let mut tens = [1; 16];
    let mut index = 1;
    while index < 16 {
        tens[index] = 10 * tens[index - 1];
        index += 1;
    }
    tens
};

/// A number parsed from a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Decimal {
    /// The number.
    pub(crate) value: f64,
    /// Offset of the byte after it; in [1, 224].
    pub(crate) end: usize,
}

/// The bytes from `at` on, if `at` is before `end` and a whole window is left.
#[inline(always)]
pub(crate) fn window_at(bytes: &[u8], at: usize, end: usize) -> Option<&Window> {
    let rest = bytes.get(at..).filter(|_| at < end)?;
    rest.first_chunk()
}

/// The bytes from `at` on; if there are too few, a copy padded with zeros. `None` if there are
/// none.
#[inline(always)]
pub(crate) fn window_or_copy<'a>(bytes: &'a [u8], at: usize, copy: &'a mut Window) -> Option<&'a Window> {
    let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
    if let Some(window) = rest.first_chunk() {
        return Some(window);
    }
    copy[..rest.len()].copy_from_slice(rest);
    copy[rest.len()..].fill(0);
    Some(copy)
}

/// Sixteen bytes of a window. `at` is at most `WINDOW - 16`.
#[inline(always)]
pub(crate) fn bytes16(window: &Window, at: usize) -> &Bytes16 {
    // The check cannot fail for the callers; without `unwrap_or`, the compiler would emit a panic.
    window[at..].first_chunk().unwrap_or(&[0; 16])
}

/// Offset of the first `byte` from `at` on; one in the last fifteen bytes may be missed.
#[inline(always)]
pub(crate) fn find_from(window: &Window, mut at: usize, byte: u8) -> Option<usize> {
    while at + 16 <= WINDOW {
        let found = find_byte(bytes16(window, at), byte);
        if found < 16 {
            return Some(at + found);
        }
        at += 16;
    }
    None
}

/// Parses `[-]digits[.digits]` at `start`: up to 15 digits on either side of the point, and at
/// most 2^53 without a point. `None` for any other text, which may still be a number: use
/// [`parse_f64`]. After the end it only checks that the next byte is not a digit; the caller must
/// check that the number may end there.
#[inline(always)]
pub(crate) fn read_decimal(window: &Window, start: usize) -> Option<Decimal> {
    if start > LAST_START {
        return None;
    }
    // A branch, because signs come in runs. The length of numbers is random, so digits are counted
    // and joined without branches.
    if window[start] == b'-' {
        let decimal = read_unsigned(window, start + 1)?;
        return Some(Decimal {
            value: -decimal.value,
            ..decimal
        });
    }
    read_unsigned(window, start)
}

#[inline(always)]
fn read_unsigned(window: &Window, start: usize) -> Option<Decimal> {
    let count = digit_run(bytes16(window, start));
    if count.wrapping_sub(1) >= 15 {
        return None;
    }
    let point = start + count;
    let integer = join(window, point, count);
    if window[point] != b'.' {
        let value = integer as i64 as f64;
        return Some(Decimal { value, end: point });
    }
    let decimals = digit_run(bytes16(window, point + 1));
    if decimals.wrapping_sub(1) >= 15 {
        return None;
    }
    let end = point + 1 + decimals;
    let mantissa = integer
        .checked_mul(INTEGER_TENS[decimals])?
        .checked_add(join(window, end, decimals))?;
    if mantissa > EXACT {
        return None;
    }
    // Both operands are exact, so the quotient is rounded once: it is the nearest f64.
    let value = mantissa as i64 as f64 / TENS[decimals];
    Some(Decimal { value, end })
}

/// The number in the `count` digits before `end`; `count` is in [1, 15].
#[inline(always)]
fn join(window: &Window, end: usize, count: usize) -> u64 {
    if end >= 16 {
        return join16(bytes16(window, end - 16), count);
    }
    let mut digits = [0; 16];
    digits[16 - end..].copy_from_slice(&window[..end]);
    join16(&digits, count)
}

/// Parses a whole text as `str::parse::<f64>` does, bit for bit: sign, digits, point, exponent,
/// `inf`, `infinity`, `nan` in any case. `None` if it is not a number.
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    if text.len() <= 32 {
        let mut window = [0; WINDOW];
        window[..text.len()].copy_from_slice(text);
        if let Some(decimal) = read_decimal(&window, 0)
            && decimal.end == text.len()
        {
            return Some(decimal.value);
        }
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}
