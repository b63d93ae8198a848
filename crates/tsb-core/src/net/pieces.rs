//! How much is decoded before it is applied.
//!
//! What is applied together ends together. While a store is quick that is all that was read;
//! where it is slow, a read of a few hundred operations would give each of them the time of
//! all. So a listener that times operations takes what it read up in pieces, each of which
//! takes about a millisecond at most, and what waits behind a piece is still on delivery.

/// A piece takes about this long at most, where it is larger than [`LEAST`].
const LONG_NS: u64 = 1_000_000;
/// The smallest piece, in bytes.
const LEAST: usize = 128;
/// The first piece, in bytes.
const FIRST: usize = 16 << 10;

/// The size of the next piece, learned from the ones before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pieces {
    // in [LEAST, ..)
    bytes: usize,
}

impl Pieces {
    pub(super) const fn new() -> Self {
        Self { bytes: FIRST }
    }

    /// How many of `available` bytes to take next, and no fewer than `least`.
    #[inline]
    pub(super) fn next(self, available: usize, least: usize) -> usize {
        self.bytes.max(least).min(available)
    }

    /// Whether what took so long is to be applied before more is taken.
    #[inline]
    pub(super) const fn is_long(ns: u64) -> bool {
        ns > LONG_NS
    }

    /// A piece of `bytes` bytes, as [`Pieces::next`] said, took `ns` nanoseconds.
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
        let mut pieces = Pieces::new();
        assert_eq!((pieces.next(100, 0), pieces.next(1 << 20, 0)), (100, FIRST));
        // 1 us for each byte.
        for _ in 0..10 {
            let bytes = pieces.next(1 << 20, 0);
            pieces.took(bytes, bytes as u64 * 1_000);
        }
        assert_eq!(pieces.next(1 << 20, 0), 1_000);
        assert_eq!(
            pieces.next(1 << 20, 5_000),
            5_000,
            "a record may be longer than a piece"
        );
        pieces.took(500, u64::MAX);
        assert_eq!(pieces.next(1 << 20, 0), LEAST);
        for _ in 0..20 {
            let bytes = pieces.next(1 << 20, 0);
            pieces.took(bytes, bytes as u64 / 8);
        }
        assert_eq!(pieces.next(1 << 20, 0), 1 << 20);
    }
}
