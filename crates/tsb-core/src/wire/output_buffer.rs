//! Output buffering for the text encoders: packed names, and a buffer that stays in the cache.
//!
//! Copies have a fixed length and write beyond their end; the bytes overwritten there are written
//! afterwards.

mod short_text;
mod text_table;

pub(crate) use short_text::ShortText;
pub(crate) use text_table::{Text, TextTable};

use crate::wire::number::{IntegerDigits, MAX_TEXT, cents, format_f64};

/// Maximum number of bytes that a copy may write beyond its end.
const OVERSHOOT: usize = 128;

/// Size of a buffer, in bytes.
const CAPACITY: usize = 8192;

/// Maximum bytes of a record besides its name before room must be made again.
const RECORD: usize = 192;

/// Records to be output, in a block that stays in the first-level cache.
pub(crate) struct OutputBuffer {
    bytes: Box<[u8; CAPACITY + OVERSHOOT]>,
    // Invariant: used <= CAPACITY
    used: usize,
}

impl std::fmt::Debug for OutputBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutputBuffer")
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}

impl OutputBuffer {
    pub(crate) fn new() -> Self {
        let (bytes, used) = (Box::new([0; CAPACITY + OVERSHOOT]), 0);
        Self { bytes, used }
    }

    /// Moves everything to `out`.
    pub(crate) fn flush(&mut self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes[..self.used]);
        self.used = 0;
    }

    /// Appends a text of any length, and leaves room for `RECORD` bytes behind it.
    #[inline(always)]
    pub(crate) fn text(&mut self, text: Text<'_>, out: &mut Vec<u8>) {
        if text.length > OVERSHOOT || self.used + OVERSHOOT + RECORD > CAPACITY {
            return self.any_text(text, out);
        }
        if let Some(from) = text.bytes.first_chunk::<OVERSHOOT>()
            && let Some(to) = self.bytes[self.used..].first_chunk_mut::<OVERSHOOT>()
        {
            to[..32].copy_from_slice(&from[..32]);
            if text.length > 32 {
                to[32..64].copy_from_slice(&from[32..64]);
                if text.length > 64 {
                    to[64..].copy_from_slice(&from[64..]);
                }
            }
        }
        self.used += text.length;
    }

    #[inline(never)]
    fn any_text(&mut self, text: Text<'_>, out: &mut Vec<u8>) {
        if self.used + text.length + RECORD > CAPACITY {
            self.flush(out);
        }
        if text.length + RECORD > CAPACITY {
            out.extend_from_slice(text.as_bytes());
        } else {
            self.bytes[self.used..self.used + text.length].copy_from_slice(text.as_bytes());
            self.used += text.length;
        }
    }

    /// Appends a short text, a text and a value: the common record. Returns false, with nothing
    /// appended, if there is no fast path for them.
    #[inline(always)]
    pub(crate) fn common_record(&mut self, before: &ShortText, text: Text<'_>, value: f64, out: &mut Vec<u8>) -> bool {
        match IntegerDigits::of(value) {
            Some(digits) => self.joined(before, text, |end| digits.append(end), out),
            None => self.common_record_with_cents(before, text, value, out),
        }
    }

    /// The same for a value with one or two decimals.
    #[inline(never)]
    fn common_record_with_cents(&mut self, before: &ShortText, text: Text<'_>, value: f64, out: &mut Vec<u8>) -> bool {
        cents(value).is_some_and(|cents| self.joined(before, text, |end| append_cents(cents, end), out))
    }

    /// Appends a short text, a text and eight bytes.
    #[inline(always)]
    pub(crate) fn word(&mut self, before: &ShortText, text: Text<'_>, word: u64, out: &mut Vec<u8>) {
        let put = |end: &mut [u8; 16]| {
            *end = (u128::from(word) << 64).to_be_bytes();
            8
        };
        if !self.joined(before, text, put, out) {
            self.make_room(out);
            self.short_text(before);
            self.text(text, out);
            self.bytes[self.used..self.used + 8].copy_from_slice(&word.to_be_bytes());
            self.used += 8;
        }
    }

    /// Number of bytes not output yet.
    #[inline(always)]
    pub(crate) fn used(&self) -> usize {
        self.used
    }

    /// Appends a short text, a text, and what `put` writes after them and returns the length of.
    /// Returns false, with nothing appended, if the text is too long.
    #[inline(always)]
    fn joined(
        &mut self,
        before: &ShortText,
        text: Text<'_>,
        put: impl FnOnce(&mut [u8; 16]) -> usize,
        out: &mut Vec<u8>,
    ) -> bool {
        if text.length > 64 {
            return false;
        }
        if self.used + OVERSHOOT + RECORD > CAPACITY {
            self.flush(out);
        }
        let room = self.bytes[self.used..].first_chunk_mut::<OVERSHOOT>();
        let (Some(to), Some(from)) = (room, text.bytes.first_chunk::<64>()) else {
            return false;
        };
        to[..ShortText::ROOM].copy_from_slice(&before.text);
        let start = before.length();
        // Piece, text and digits are at most 31 + 64 + 16 bytes.
        let Some(to) = to[start..].first_chunk_mut::<96>() else {
            return false;
        };
        to[..32].copy_from_slice(&from[..32]);
        if text.length > 32 {
            to[32..64].copy_from_slice(&from[32..]);
        }
        let Some(end) = to[text.length..].first_chunk_mut() else {
            return false;
        };
        self.used += start + text.length + put(end);
        true
    }

    /// Appends a short text and a value, like [`Self::common_record`].
    #[inline(always)]
    pub(crate) fn common_field(&mut self, before: &ShortText, value: f64, out: &mut Vec<u8>) -> bool {
        match IntegerDigits::of(value) {
            Some(digits) => self.joined_field(before, |end| digits.append(end), out),
            None => self.usual_cents_field(before, value, out),
        }
    }

    #[inline(never)]
    fn usual_cents_field(&mut self, before: &ShortText, value: f64, out: &mut Vec<u8>) -> bool {
        cents(value).is_some_and(|cents| self.joined_field(before, |end| append_cents(cents, end), out))
    }

    #[inline(always)]
    fn joined_field(
        &mut self,
        before: &ShortText,
        put: impl FnOnce(&mut [u8; 16]) -> usize,
        out: &mut Vec<u8>,
    ) -> bool {
        self.make_room(out);
        let Some(to) = self.bytes[self.used..].first_chunk_mut::<48>() else {
            return false;
        };
        to[..ShortText::ROOM].copy_from_slice(&before.text);
        let Some(end) = to[before.length()..].first_chunk_mut() else {
            return false;
        };
        self.used += before.length() + put(end);
        true
    }

    /// Makes room for `RECORD` bytes.
    #[inline(always)]
    pub(crate) fn make_room(&mut self, out: &mut Vec<u8>) {
        if self.used + RECORD > CAPACITY {
            self.flush(out);
        }
    }

    /// Appends a short text; there must be room.
    #[inline(always)]
    pub(crate) fn short_text(&mut self, text: &ShortText) {
        if let Some(to) = self.bytes[self.used..].first_chunk_mut() {
            *to = text.text;
        }
        self.used += text.length();
    }

    /// Appends the shortest decimal that reads back to the same bits; there must be room.
    #[inline(always)]
    pub(crate) fn value(&mut self, value: f64) {
        match IntegerDigits::of(value) {
            Some(digits) => self.digits(digits),
            None => self.any_value(value),
        }
    }

    /// The same for receivers that treat a number without a point as an integer: minus zero and
    /// integers with an exponent get a point.
    #[inline(always)]
    pub(crate) fn value_with_point(&mut self, value: f64) {
        match IntegerDigits::of(value) {
            Some(digits) => self.digits(digits),
            None => self.any_value_with_point(value),
        }
    }

    #[inline(never)]
    fn any_value_with_point(&mut self, value: f64) {
        let start = self.used;
        self.any_value(value);
        let text = &self.bytes[start..self.used];
        let exponent = text.iter().position(|byte| *byte == b'e');
        if text != b"-0" && (exponent.is_none() || text.contains(&b'.')) {
            return;
        }
        let at = start + exponent.unwrap_or(text.len());
        self.bytes.copy_within(at..self.used, at + 2);
        self.bytes[at..at + 2].copy_from_slice(b".0");
        self.used += 2;
    }

    #[inline(always)]
    fn digits(&mut self, digits: IntegerDigits) {
        if let Some(to) = self.bytes[self.used..].first_chunk_mut() {
            self.used += digits.append(to);
        }
    }

    #[inline(never)]
    fn any_value(&mut self, value: f64) {
        if let (Some(cents), Some(to)) = (cents(value), self.bytes[self.used..].first_chunk_mut()) {
            self.used += append_cents(cents, to);
            return;
        }
        let mut text = [0; MAX_TEXT];
        let length = format_f64(value, &mut text);
        self.bytes[self.used..self.used + MAX_TEXT].copy_from_slice(&text);
        self.used += length;
    }
}

/// Writes the result of [`cents`] at the beginning of `to`, like [`IntegerDigits::append`].
#[inline(always)]
fn append_cents((whole, rest, length): (IntegerDigits, [u8; 4], usize), to: &mut [u8; 16]) -> usize {
    let point = whole.append(to);
    to[point..point + 4].copy_from_slice(&rest);
    point + length
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::number::push_f64;

    #[test]
    fn texts_of_every_length_pass_through_a_buffer() {
        let mut texts = TextTable::new();
        let time = ShortText::new(b" 17\n").unwrap();
        let lengths = [
            0, 1, 31, 32, 33, 63, 64, 65, 127, 128, 129, 500, 8_000, 8_100, 9_000, 70_000,
        ];
        for length in lengths {
            texts.push(&vec![b'a' + (length % 26) as u8; length]).unwrap();
        }
        let (mut buffer, mut out, mut expected) = (OutputBuffer::new(), Vec::new(), Vec::new());
        let mut fast = Vec::new();
        for round in 0..400 {
            let index = round * 7 % texts.len();
            let value = [7.0, 1.25, -3.0, 1e300, 9_999_999_999.0][round % 5];
            buffer.text(texts.get(index).unwrap(), &mut out);
            buffer.value(value);
            buffer.short_text(&time);
            if !buffer.common_field(&ShortText::EMPTY, value, &mut out) {
                buffer.value(value);
            }
            if buffer.common_record(&time, texts.get(index).unwrap(), value, &mut out) {
                fast.push(index);
                buffer.make_room(&mut out);
            }
            expected.extend_from_slice(&vec![b'a' + (lengths[index] % 26) as u8; lengths[index]]);
            push_f64(value, &mut expected);
            expected.extend_from_slice(b" 17\n");
            push_f64(value, &mut expected);
            if fast.last() == Some(&index) {
                fast.clear();
                expected.extend_from_slice(b" 17\n");
                expected.extend_from_slice(&vec![b'a' + (lengths[index] % 26) as u8; lengths[index]]);
                push_f64(value, &mut expected);
            }
        }
        buffer.flush(&mut out);
        assert!(out == expected);
        assert!(texts.get(lengths.len()).is_none());
    }

    #[test]
    fn a_point_is_added_where_a_number_would_look_whole() {
        let table = [
            (1.0, "1"),
            (-0.0, "-0.0"),
            (1e300, "1.0e+300"),
            (-2e-7, "-2.0e-7"),
            (1.5e300, "1.5e+300"),
            (0.25, "0.25"),
            (-7.0, "-7"),
        ];
        for (value, text) in table {
            let (mut buffer, mut out) = (OutputBuffer::new(), Vec::new());
            buffer.value_with_point(value);
            buffer.flush(&mut out);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
