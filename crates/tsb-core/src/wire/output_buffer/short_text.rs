//! Short texts that are copied as a whole.

/// A short text that many records share, such as a timestamp with a record's end; copied as a
/// whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ShortText {
    pub(super) text: [u8; Self::ROOM],
    // In [0, ROOM]
    length: u8,
}

impl ShortText {
    /// The longest text.
    pub(crate) const ROOM: usize = 31;

    /// The empty text.
    pub(crate) const EMPTY: Self = Self {
        text: [0; Self::ROOM],
        length: 0,
    };

    /// `None` when the text is longer than `ROOM`.
    pub(crate) fn new(text: &[u8]) -> Option<Self> {
        let mut copy = Self::EMPTY;
        copy.text.get_mut(..text.len())?.copy_from_slice(text);
        copy.length = text.len() as u8;
        Some(copy)
    }

    /// A copy of a short constant text.
    pub(crate) const fn of<const N: usize>(text: &[u8; N]) -> Self {
        assert!(N <= Self::ROOM, "the text is short");
        let mut copy = Self::EMPTY;
        let mut at = 0;
        while at < N {
            copy.text[at] = text[at];
            at += 1;
        }
        copy.length = N as u8;
        copy
    }

    /// Length in bytes.
    #[inline(always)]
    pub(crate) fn length(&self) -> usize {
        usize::from(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_has_a_maximum_length() {
        assert_eq!(ShortText::new(&[1; ShortText::ROOM]).unwrap().length(), ShortText::ROOM);
        assert!(ShortText::new(&[1; ShortText::ROOM + 1]).is_none());
    }
}
