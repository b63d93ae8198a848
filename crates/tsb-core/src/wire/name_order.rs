//! Decides whether it pays to expect names in their earlier order.

/// Number of misses close together after which a decoder stops expecting an order.
const MISSES_MAX: u32 = 4;

/// After this number of bytes in order, about 16 lines, a miss counts as the first again.
const RECOVERY: usize = 640;

/// The history of a line decoder's expectations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NameOrder {
    is_kept: bool,
    misses: u32,
    /// Bytes in order since the last miss.
    since_miss: usize,
}

impl NameOrder {
    /// Starts by expecting an order.
    pub(crate) fn new() -> Self {
        Self {
            is_kept: true,
            misses: 0,
            since_miss: 0,
        }
    }

    /// Whether an order is expected.
    #[inline(always)]
    pub(crate) fn is_kept(self) -> bool {
        self.is_kept
    }

    /// Records that `bytes` bytes came in order.
    #[inline(always)]
    pub(crate) fn held(&mut self, bytes: usize) {
        self.since_miss += bytes;
    }

    /// Counts a miss; returns false when the decoder should stop expecting an order.
    #[inline(always)]
    pub(crate) fn missed(&mut self) -> bool {
        self.misses = if self.since_miss < RECOVERY { self.misses + 1 } else { 1 };
        self.since_miss = 0;
        self.is_kept = self.misses < MISSES_MAX;
        self.is_kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_close_together_end_the_expectation_and_those_far_apart_do_not() {
        let mut order = NameOrder::new();
        for _ in 0..10 {
            assert!(order.missed());
            order.held(RECOVERY);
        }
        assert!(order.missed());
        order.held(RECOVERY - 1);
        assert!(order.missed() && order.missed());
        assert!(!order.missed() && !order.is_kept());
        assert!(NameOrder::new().is_kept());
    }
}
