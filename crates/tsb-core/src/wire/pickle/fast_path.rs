//! Parses pickles of the common form in place: a list of `(text, (number, number))` as CPython
//! writes it with protocol 2, without fetching from the memo.
//!
//! Any other pickle is parsed from its beginning by [`super::reader`].

use super::MAX_PICKLE;
use crate::bytes::{cut, cut_slice};

/// One element of the list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Element<'a> {
    pub(super) name: &'a [u8],
    /// Timestamp in seconds.
    pub(super) at: f64,
    pub(super) value: f64,
}

/// The remaining elements of a list.
#[derive(Clone, Debug)]
pub(super) struct Elements<'a> {
    bytes: &'a [u8],
    /// Whether the position is between a mark and its append opcode.
    is_marked: bool,
}

impl<'a> Elements<'a> {
    /// The elements of a pickle; `None` if any part of it is not of the common form.
    pub(super) fn of(bytes: &'a [u8]) -> Option<Self> {
        let [0x80, 2, b']', b'q', _, bytes @ ..] = bytes else {
            return None;
        };
        let is_marked = false;
        let elements = Self { bytes, is_marked };
        let mut rest = elements.clone();
        while rest.next().is_some() {}
        (!rest.is_marked && rest.bytes.first() == Some(&b'.')).then_some(elements)
    }

    #[inline(always)]
    fn element(&mut self) -> Option<Element<'a>> {
        let name = self.text()?;
        let at = self.number()?;
        let value = self.number()?;
        self.pair()?;
        self.pair()?;
        Some(Element { name, at, value })
    }

    #[inline(always)]
    fn text(&mut self) -> Option<&'a [u8]> {
        let length = match cut(&mut self.bytes)? {
            [b'X'] => u32::from_le_bytes(cut(&mut self.bytes)?) as usize,
            [b'U' | 0x8c] => usize::from(u8::from_le_bytes(cut(&mut self.bytes)?)),
            _ => return None,
        };
        let text = cut_slice(&mut self.bytes, length)?;
        self.remember()?;
        Some(text)
    }

    #[inline(always)]
    fn number(&mut self) -> Option<f64> {
        Some(match cut(&mut self.bytes)? {
            [b'G'] => f64::from_be_bytes(cut(&mut self.bytes)?),
            [b'J'] => f64::from(i32::from_le_bytes(cut(&mut self.bytes)?)),
            [b'K'] => f64::from(u8::from_le_bytes(cut(&mut self.bytes)?)),
            [b'M'] => f64::from(u16::from_le_bytes(cut(&mut self.bytes)?)),
            _ => return None,
        })
    }

    /// Expects the opcode that joins the last two objects to a tuple.
    #[inline(always)]
    fn pair(&mut self) -> Option<()> {
        let [0x86] = cut(&mut self.bytes)? else { return None };
        self.remember()
    }

    /// Expects the opcode that stores an object in the memo.
    #[inline(always)]
    fn remember(&mut self) -> Option<()> {
        match cut(&mut self.bytes)? {
            [b'q'] => cut::<1>(&mut self.bytes).map(|_| ()),
            [b'r'] => {
                let memo = u32::from_le_bytes(cut(&mut self.bytes)?);
                ((memo as usize) < MAX_PICKLE).then_some(())
            }
            _ => None,
        }
    }
}

impl<'a> Iterator for Elements<'a> {
    type Item = Element<'a>;

    /// Leaves the position unchanged if there is no further element.
    #[inline(always)]
    fn next(&mut self) -> Option<Element<'a>> {
        let mut ahead = self.clone();
        if !ahead.is_marked && ahead.bytes.first() == Some(&b'(') {
            (ahead.bytes, ahead.is_marked) = (&ahead.bytes[1..], true);
        }
        let element = ahead.element()?;
        match (ahead.is_marked, ahead.bytes.first()?) {
            (true, b'e') => (ahead.bytes, ahead.is_marked) = (&ahead.bytes[1..], false),
            (false, b'a') => ahead.bytes = &ahead.bytes[1..],
            (is_marked, _) => is_marked.then_some(())?,
        }
        *self = ahead;
        Some(element)
    }
}
