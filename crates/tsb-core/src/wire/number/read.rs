//! Text to numbers.

use crate::wire::lanes::{Lane, digit_run, find_byte, join16};

/// How many bytes a decoder looks at at once: a name, a value and a timestamp of usual
/// length, so that one bounds check serves a whole record.
pub(crate) const WINDOW: usize = 256;

/// The bytes that a decoder looks at: a record, and whatever follows it.
pub(crate) type Window = [u8; WINDOW];

/// How far into a window a number can begin that is read in place.
pub(crate) const LAST_START: usize = 192;

/// 2^53: up to here every integer is an f64.
const EXACT: u64 = 1 << 53;

/// Powers of ten that an f64 holds exactly, as far as the fast path needs them.
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

/// A number read from a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Decimal {
    /// The number.
    pub(crate) value: f64,
    /// Where the byte behind it is; in [1, 224].
    pub(crate) end: usize,
}

/// The bytes from `at` on, when that is before `end` and there are enough of them.
#[inline(always)]
pub(crate) fn window_at(bytes: &[u8], at: usize, end: usize) -> Option<&Window> {
    let rest = bytes.get(at..).filter(|_| at < end)?;
    rest.first_chunk()
}

/// The bytes from `at` on; where there are too few, a copy with zeros behind them. `None`
/// when there is none.
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
pub(crate) fn lane(window: &Window, at: usize) -> &Lane {
    // The check cannot fail for the callers; without it there were a panic to compile.
    window[at..].first_chunk().unwrap_or(&[0; 16])
}

/// Where the first such byte from `at` on is; the last fifteen of a window may be passed over.
#[inline(always)]
pub(crate) fn find_from(window: &Window, mut at: usize, byte: u8) -> Option<usize> {
    while at + 16 <= WINDOW {
        let found = find_byte(lane(window, at), byte);
        if found < 16 {
            return Some(at + found);
        }
        at += 16;
    }
    None
}

/// Reads `[-]digits[.digits]` at `start`: up to 15 digits on either side of the point, 2^53
/// at most without the point. `None` for any other text, which may well be a number: ask
/// [`parse_f64`]. Looks at no byte behind the end but to see that it is no digit; whether
/// the number ends rightly there is for the caller to say.
#[inline(always)]
pub(crate) fn read_decimal(window: &Window, start: usize) -> Option<Decimal> {
    if start > LAST_START {
        return None;
    }
    // A branch: signs come in a row. How long numbers are is as good as random, so the
    // digits are counted and joined without one.
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
    let count = digit_run(lane(window, start));
    if count.wrapping_sub(1) >= 15 {
        return None;
    }
    let point = start + count;
    let integer = join(window, point, count);
    if window[point] != b'.' {
        let value = integer as i64 as f64;
        return Some(Decimal { value, end: point });
    }
    let decimals = digit_run(lane(window, point + 1));
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
    // Both are exact, so the quotient is rounded once: it is the nearest f64.
    let value = mantissa as i64 as f64 / TENS[decimals];
    Some(Decimal { value, end })
}

/// The number that `count` digits before `end` say; `count` is in [1, 15].
#[inline(always)]
fn join(window: &Window, end: usize, count: usize) -> u64 {
    if end >= 16 {
        return join16(lane(window, end - 16), count);
    }
    let mut digits = [0; 16];
    digits[16 - end..].copy_from_slice(&window[..end]);
    join16(&digits, count)
}

/// Reads a whole text as `str::parse::<f64>` does, bit for bit: sign, digits, point,
/// exponent, `inf`, `infinity`, `nan` in any case. `None` when it is no number.
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
