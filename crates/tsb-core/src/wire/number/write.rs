//! Formats numbers.

use super::digits::{ZEROS, split8};

/// The longest text that [`format_f64`] writes, in bytes (`-1.2345678901234567e-308`).
pub const MAX_TEXT: usize = 24;

/// 2^52: adding it to a smaller non-negative number rounds that to an integer, which is then in
/// the low bits.
const ROUND: f64 = 4_503_599_627_370_496.0;

/// Exclusive bound of the integers on the fast path: ten digits.
pub(crate) const MAX_FAST_INTEGER: u64 = 10_000_000_000;

/// The digits of an integer in [0, `MAX_FAST_INTEGER`), ready to be stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IntegerDigits {
    /// The last eight digits, as text.
    low: u64,
    /// The two digits before them, as text.
    top: u16,
    /// Number of digits without leading zeros, in [1, 10].
    length: u16,
}

impl IntegerDigits {
    /// The fast path of the encoders.
    #[inline(always)]
    pub(crate) fn of(value: f64) -> Option<Self> {
        plain(value).map(Self::of_integer)
    }

    /// Without branches, because the number of digits is random.
    #[inline(always)]
    fn of_integer(integer: u64) -> Self {
        let (top, low) = ((integer / 100_000_000) as u32, (integer % 100_000_000) as u32);
        let tens = (top * 103) >> 10;
        let top = tens | (top - 10 * tens) << 8;
        let low = split8(low);
        let digits = u128::from(top) | u128::from(low) << 16;
        // The last digit is kept even if it is zero.
        let zeros = (digits | 1 << 72).trailing_zeros() / 8;
        Self {
            low: low | ZEROS,
            top: (top | 0x3030) as u16,
            length: (10 - zeros) as u16,
        }
    }

    /// Writes the digits with the first at `at`, which is 9 or more, and returns the offset after
    /// the last. Up to nine bytes before `at` are overwritten: write these afterwards.
    #[inline(always)]
    pub(crate) fn put<const N: usize>(&self, line: &mut [u8; N], at: usize) -> usize {
        let end = at + usize::from(self.length);
        line[end - 10..end - 8].copy_from_slice(&self.top.to_le_bytes());
        line[end - 8..end].copy_from_slice(&self.low.to_le_bytes());
        end
    }

    /// Writes the digits at the beginning of `to`, and returns their number. The bytes after them
    /// are overwritten, those before `to` are not.
    #[inline(always)]
    pub(crate) fn append(&self, to: &mut [u8; 16]) -> usize {
        let digits = u128::from(self.top) | u128::from(self.low) << 16;
        *to = (digits >> (8 * (10 - self.length))).to_le_bytes();
        usize::from(self.length)
    }
}

/// A value with one or two decimals, below 10^10: its integer part, and the rest as text with its
/// length.
#[inline]
pub(crate) fn cents(value: f64) -> Option<(IntegerDigits, [u8; 4], usize)> {
    let cents = value * 100.0 + ROUND;
    let integer = cents.to_bits().wrapping_sub(ROUND.to_bits());
    if integer >= 100 * MAX_FAST_INTEGER || (cents - ROUND) / 100.0 != value || value.is_sign_negative() {
        return None;
    }
    let (tenth, hundredth) = ((integer / 10 % 10) as u8, (integer % 10) as u8);
    let text = [b'.', b'0' + tenth, b'0' + hundredth, 0];
    let length = match (tenth, hundredth) {
        (0, 0) => 0,
        (_, 0) => 2,
        _ => 3,
    };
    Some((IntegerDigits::of_integer(integer / 100), text, length))
}

/// The value as an integer in [0, `MAX_FAST_INTEGER`), if it is one (and not -0).
#[inline(always)]
fn plain(value: f64) -> Option<u64> {
    let rounded = value + ROUND;
    // Negative, non-finite or too large numbers end outside the range.
    let integer = rounded.to_bits().wrapping_sub(ROUND.to_bits());
    let same = (rounded - ROUND).to_bits() == value.to_bits();
    (same && integer < MAX_FAST_INTEGER).then_some(integer)
}

/// Writes the shortest decimal that reads back to the same bits, and returns its length. NaN is
/// `nan` (its payload is lost), the infinities are `inf` and `-inf`; minus zero is `-0`.
pub fn format_f64(value: f64, text: &mut [u8; MAX_TEXT]) -> usize {
    if let Some(integer) = plain(value.abs()) {
        let start = put_sign(value, text);
        return start + put_u64(integer, &mut text[start..]);
    }
    if let Some(length) = put_cents(value, text) {
        return length;
    }
    if !value.is_finite() {
        let word: &[u8] = match (value.is_nan(), value < 0.0) {
            (true, _) => b"nan",
            (_, true) => b"-inf",
            (_, false) => b"inf",
        };
        return put(word, text);
    }
    let mut buffer = zmij::Buffer::new();
    let shortest = buffer.format_finite(value).as_bytes();
    // Removes `.0`, two bytes without information.
    put(shortest.strip_suffix(b".0").unwrap_or(shortest), text)
}

/// Writes an integer, and returns its length, in [1, 20].
pub fn format_i64(value: i64, text: &mut [u8; MAX_TEXT]) -> usize {
    let start = usize::from(value < 0);
    text[0] = b'-';
    start + put_u64(value.unsigned_abs(), &mut text[start..])
}

/// Appends what [`format_f64`] writes.
pub fn push_f64(value: f64, out: &mut Vec<u8>) {
    let mut text = [0; MAX_TEXT];
    let length = format_f64(value, &mut text);
    out.extend_from_slice(&text[..length]);
}

/// Appends what [`format_i64`] writes.
pub fn push_i64(value: i64, out: &mut Vec<u8>) {
    let mut text = [0; MAX_TEXT];
    let length = format_i64(value, &mut text);
    out.extend_from_slice(&text[..length]);
}

/// Writes values with one or two decimals, as gauges have them, with at most 15 digits, so that no
/// other text of as many digits or fewer reads back to the same bits.
#[inline]
fn put_cents(value: f64, text: &mut [u8; MAX_TEXT]) -> Option<usize> {
    let cents = value.abs() * 100.0 + ROUND;
    let integer = cents.to_bits().wrapping_sub(ROUND.to_bits());
    if integer >= 1_000_000_000_000_000 || (cents - ROUND) / 100.0 != value.abs() {
        return None;
    }
    let start = put_sign(value, text);
    let point = start + put_u64(integer / 100, &mut text[start..]);
    let (tenth, hundredth) = ((integer / 10 % 10) as u8, (integer % 10) as u8);
    if tenth == 0 && hundredth == 0 {
        return Some(point);
    }
    text[point] = b'.';
    text[point + 1] = b'0' + tenth;
    text[point + 2] = b'0' + hundredth;
    Some(point + 2 + usize::from(hundredth != 0))
}

/// Writes a minus if the value is negative; returns its length.
fn put_sign(value: f64, text: &mut [u8]) -> usize {
    text[0] = b'-';
    usize::from(value.is_sign_negative())
}

/// Writes digits without leading zeros; returns their number.
fn put_u64(value: u64, text: &mut [u8]) -> usize {
    let (rest, low) = (value / 100_000_000, (value % 100_000_000) as u32);
    let digits = split8(low);
    if rest > 0 {
        let start = put_u64(rest, text);
        text[start..start + 8].copy_from_slice(&(digits | ZEROS).to_le_bytes());
        return start + 8;
    }
    let zeros = ((digits | 1 << 56).trailing_zeros() / 8) as usize;
    let bytes = (digits | ZEROS).to_le_bytes();
    text[..8 - zeros].copy_from_slice(&bytes[zeros..]);
    8 - zeros
}

fn put(bytes: &[u8], text: &mut [u8; MAX_TEXT]) -> usize {
    text[..bytes.len()].copy_from_slice(bytes);
    bytes.len()
}
