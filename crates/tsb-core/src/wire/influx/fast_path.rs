//! Parsing within a window: the text before a value, and the value.

use super::line;
use crate::wire::names::find_end;
use crate::wire::number::{Decimal, WINDOW, Window, bytes16, read_decimal};
use crate::wire::simd::{digit_run, find_byte, same16};

/// Maximum length of a value's text on the fast paths.
const LONGEST_VALUE: usize = 32;

/// `,field=` of a name.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextField {
    text: [[u8; 16]; 2],
    // In [3, 32]; `NEVER` if the name has not occurred after another one.
    length: u32,
    pub(super) id: u32,
}

/// A length that never matches.
const NEVER: u32 = 64;

impl NextField {
    pub(super) const NEVER: Self = Self {
        text: [[0; 16]; 2],
        length: NEVER,
        id: 0,
    };

    /// For a field's key; if the key is too long, a text that never matches.
    pub(super) fn new(key: &[u8], id: u32) -> Self {
        let mut text = [0; 32];
        let Some(room) = text.get_mut(..key.len() + 2) else {
            return Self::NEVER;
        };
        room[0] = b',';
        room[1..=key.len()].copy_from_slice(key);
        room[key.len() + 1] = b'=';
        let (lanes, _) = text.as_chunks();
        Self {
            text: [lanes[0], lanes[1]],
            length: key.len() as u32 + 2,
            id,
        }
    }

    /// Offset of the value, if the text is at `start` of a window, which is at most 224.
    #[inline(always)]
    pub(super) fn begins(&self, window: &Window, start: usize) -> Option<usize> {
        let length = self.length as usize;
        let same = if length <= 16 {
            same16(bytes16(window, start), &self.text[0], length)
        } else {
            *bytes16(window, start) == self.text[0] && same16(bytes16(window, start + 16), &self.text[1], length - 16)
        };
        same.then_some(start + length)
    }
}

/// Length of the line head, space, field and `=` at the beginning of a window, if nothing in it is
/// escaped in an unusual way. It may miss a name, but never returns a length that is too large.
#[inline(always)]
pub(super) fn name_length(window: &Window) -> Option<usize> {
    let space = find_end(window, b' ').filter(|at| window[*at] == b' ')?;
    let field = space + 1;
    for start in [field, field + 16] {
        if start + 16 > WINDOW {
            return None;
        }
        let found = find_byte(bytes16(window, start), b'=');
        if found < 16 {
            return Some(start + found + 1);
        }
    }
    None
}

/// The value at `start` of a window, followed by a comma or a space.
#[inline(always)]
pub(super) fn read_value(window: &Window, start: usize) -> Option<Decimal> {
    match read_decimal(window, start) {
        Some(decimal) if matches!(window[decimal.end], b',' | b' ') => Some(decimal),
        Some(decimal) if window[decimal.end] == b'i' => integer(window, start, decimal),
        _ => read_any_value(window, start),
    }
}

/// Parses a number of any form.
#[inline(never)]
fn read_any_value(window: &Window, start: usize) -> Option<Decimal> {
    let text = window.get(start..start + LONGEST_VALUE)?;
    let length = text.iter().position(|byte| matches!(byte, b',' | b' '))?;
    let value = line::number(&text[..length]).ok()?.ok()?;
    let end = start + length;
    (end + 32 <= WINDOW).then_some(Decimal { value, end })
}

/// Parses an integer, with `i` after its digits.
#[inline(never)]
fn integer(window: &Window, start: usize, decimal: Decimal) -> Option<Decimal> {
    let digits = start + usize::from(window[start] == b'-');
    let end = decimal.end + 1;
    let is_whole = digits + digit_run(bytes16(window, digits)) == decimal.end;
    let ends = matches!(window[end], b',' | b' ');
    // `-0i` is the integer zero, so the sign is removed.
    let value = decimal.value + 0.0;
    (is_whole && ends).then_some(Decimal { value, end })
}
