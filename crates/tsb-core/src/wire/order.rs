//! Whether names are worth expecting in the order in which they came before.

/// How many misses close together make a decoder give up expecting an order.
const PATIENCE: u32 = 4;

/// So many bytes in order, about 16 lines, make a miss count as the first.
const RECOVERY: usize = 640;

/// What a decoder of lines knows of the order of its names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    is_kept: bool,
    misses: u32,
    /// Bytes.
    since_miss: usize,
}

impl Order {
    /// Expected from the beginning.
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

    /// So many bytes came in order.
    #[inline(always)]
    pub(crate) fn held(&mut self, bytes: usize) {
        self.since_miss += bytes;
    }

    /// Counts a miss; `false` when it is time to stop expecting.
    #[inline(always)]
    pub(crate) fn missed(&mut self) -> bool {
        self.misses = if self.since_miss < RECOVERY { self.misses + 1 } else { 1 };
        self.since_miss = 0;
        self.is_kept = self.misses < PATIENCE;
        self.is_kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misses_close_together_end_the_patience_and_those_far_apart_do_not() {
        let mut order = Order::new();
        for _ in 0..10 {
            assert!(order.missed());
            order.held(RECOVERY);
        }
        assert!(order.missed());
        order.held(RECOVERY - 1);
        assert!(order.missed() && order.missed());
        assert!(!order.missed() && !order.is_kept());
        assert!(Order::new().is_kept());
    }
}
