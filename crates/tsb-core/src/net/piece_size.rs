//! Divides the bytes of a read into pieces that are decoded and applied together.
//!
//! All operations of a piece get the same end time. With a fast store a piece is the whole read;
//! with a slow one, each of a few hundred operations would get the time that all took. So a
//! listener that times operations takes a read in pieces of about a millisecond each, and the time
//! that the later bytes wait for a piece counts as delivery.

/// Target duration of a piece that is larger than [`LEAST`], in nanoseconds.
const LONG_NS: u64 = 1_000_000;
/// The smallest piece, in bytes.
const LEAST: usize = 128;
/// The first piece, in bytes.
const FIRST: usize = 16 << 10;

/// The size of the next piece, derived from the durations of the previous ones.
#[derive(Clone, Copy, Debug)]
pub(super) struct PieceSize {
    // in [LEAST, ..)
    bytes: usize,
}

impl PieceSize {
    pub(super) const fn new() -> Self {
        Self { bytes: FIRST }
    }

    /// Number of bytes to take next, out of `available` and at least `least`.
    #[inline]
    pub(super) fn next(self, available: usize, least: usize) -> usize {
        self.bytes.max(least).min(available)
    }

    /// Whether a piece took so long that it must be applied before more is decoded.
    #[inline]
    pub(super) const fn is_long(ns: u64) -> bool {
        ns > LONG_NS
    }

    /// Records that a piece of `bytes` bytes, as [`PieceSize::next`] returned, took `ns` nanoseconds.
    #[inline]
    pub(super) fn took(&mut self, bytes: usize, ns: u64) {
        if Self::is_long(ns) {
            let fitting = bytes as u128 * u128::from(LONG_NS) / u128::from(ns);
            self.bytes = (fitting as usize).max(LEAST);
        } else if bytes >= self.bytes && ns < LONG_NS / 2 {
            self.bytes = self.bytes.saturating_mul(2);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_store_gets_small_pieces_and_a_quick_one_all_there_is() {
        let mut piece_size = PieceSize::new();
        assert_eq!((piece_size.next(100, 0), piece_size.next(1 << 20, 0)), (100, FIRST));
        // 1 us for each byte.
        for _ in 0..10 {
            let bytes = piece_size.next(1 << 20, 0);
            piece_size.took(bytes, bytes as u64 * 1_000);
        }
        assert_eq!(piece_size.next(1 << 20, 0), 1_000);
        assert_eq!(
            piece_size.next(1 << 20, 5_000),
            5_000,
            "a record may be longer than a piece"
        );
        piece_size.took(500, u64::MAX);
        assert_eq!(piece_size.next(1 << 20, 0), LEAST);
        for _ in 0..20 {
            let bytes = piece_size.next(1 << 20, 0);
            piece_size.took(bytes, bytes as u64 / 8);
        }
        assert_eq!(piece_size.next(1 << 20, 0), 1 << 20);
    }
}
