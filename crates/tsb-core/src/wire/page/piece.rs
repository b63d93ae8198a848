//! Short texts that are copied as a whole.

/// A short text that many records share, such as a timestamp with a record's end; copied as a
/// whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(super) text: [u8; Self::ROOM],
    // In [0, ROOM]
    length: u8,
}

impl Piece {
    /// The longest piece.
    pub(crate) const ROOM: usize = 31;

    /// The empty piece.
    pub(crate) const EMPTY: Self = Self {
        text: [0; Self::ROOM],
        length: 0,
    };

    /// `None` when the text is longer than `ROOM`.
    pub(crate) fn new(text: &[u8]) -> Option<Self> {
        let mut piece = Self::EMPTY;
        piece.text.get_mut(..text.len())?.copy_from_slice(text);
        piece.length = text.len() as u8;
        Some(piece)
    }

    /// A piece of a short constant text.
    pub(crate) const fn of<const N: usize>(text: &[u8; N]) -> Self {
        assert!(N <= Self::ROOM, "a piece is short");
        let mut piece = Self::EMPTY;
        let mut at = 0;
        while at < N {
            piece.text[at] = text[at];
            at += 1;
        }
        piece.length = N as u8;
        piece
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
    fn a_piece_has_a_longest() {
        assert_eq!(Piece::new(&[1; Piece::ROOM]).unwrap().length(), Piece::ROOM);
        assert!(Piece::new(&[1; Piece::ROOM + 1]).is_none());
    }
}
