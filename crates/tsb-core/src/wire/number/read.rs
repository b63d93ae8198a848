//! Text to numbers.

use super::digits::{ZEROS, join8, leading_digits};

/// How many bytes a decoder looks at at once: a name, a value and a timestamp of usual
/// length, so that one bounds check serves a whole record.
pub(crate) const WINDOW: usize = 128;

/// The bytes that a decoder looks at: a record, and whatever follows it.
pub(crate) type Window = [u8; WINDOW];

/// How far into a window [`read_decimal`] can begin.
const LAST_START: usize = 64;

/// 2^53: up to here every integer is an f64.
const EXACT: u64 = 1 << 53;

/// Powers of ten that an f64 holds exactly, as far as the fast path needs them.
const TENS: [f64; 9] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8];

/// The same as integers.
const INTEGER_TENS: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// A number read from a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Decimal {
    /// The number.
    pub(crate) value: f64,
    /// Where the byte behind it is; in [1, 91].
    pub(crate) end: usize,
}

/// Eight bytes of a window. `at` is at most `WINDOW - 8`.
#[inline(always)]
pub(crate) fn load(window: &Window, at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&window[at..at + 8]);
    u64::from_le_bytes(bytes)
}

/// Reads `[-]digits[.digits]` at `start`: up to 15 digits before the point, up to 8 behind
/// it, 2^53 at most without the point. `None` for any other text, which may well be a
/// number: ask [`parse_f64`]. Looks at no byte behind the end but to see that it is no
/// digit; whether the number ends rightly there is for the caller to say.
#[inline(always)]
pub(crate) fn read_decimal(window: &Window, start: usize) -> Option<Decimal> {
    if start > LAST_START {
        return None;
    }
    let negative = window[start] == b'-';
    let start = start + usize::from(negative);
    let (low, high) = (load(window, start) ^ ZEROS, load(window, start + 8) ^ ZEROS);
    // Without a branch: how long numbers are is as good as random.
    let (in_low, in_high) = (leading_digits(low), leading_digits(high));
    let count = in_low + (in_high & (in_low >> 3).wrapping_neg());
    if count.wrapping_sub(1) >= 15 {
        return None;
    }
    let padded = (u128::from(low) | u128::from(high) << 64) << (128 - 8 * count);
    let integer = join8((padded >> 64) as u64) + 100_000_000 * join8(padded as u64);
    let point = start + count;
    let sign = u64::from(negative) << 63;
    if window[point] != b'.' {
        let value = f64::from_bits((integer as i64 as f64).to_bits() | sign);
        return Some(Decimal { value, end: point });
    }
    let fraction = load(window, point + 1) ^ ZEROS;
    let decimals = leading_digits(fraction);
    if decimals == 0 || window[point + 1 + decimals].is_ascii_digit() {
        return None;
    }
    let fraction = join8(fraction << (64 - 8 * decimals));
    let mantissa = integer.checked_mul(INTEGER_TENS[decimals])?.checked_add(fraction)?;
    if mantissa > EXACT {
        return None;
    }
    // Both are exact, so the quotient is rounded once: it is the nearest f64.
    let value = mantissa as i64 as f64 / TENS[decimals];
    Some(Decimal {
        value: f64::from_bits(value.to_bits() | sign),
        end: point + 1 + decimals,
    })
}

/// Reads a whole text as `str::parse::<f64>` does, bit for bit: sign, digits, point,
/// exponent, `inf`, `infinity`, `nan` in any case. `None` when it is no number.
pub fn parse_f64(text: &[u8]) -> Option<f64> {
    if text.len() < WINDOW - 1 {
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
