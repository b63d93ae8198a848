//! Mohawk's memory: a ring of slots per series, and the ranges by which every slot of it is read.
//!
//! A read walks slots backwards, from that of its end to that of its start, whose slot 0.15.4 leaves out;
//! a range longer than the ring is taken modulo its length, and begins at the oldest place of the ring and
//! not at the oldest sample. It shows nothing behind the first millisecond of the newest second that was
//! written. Read at `79b0f45:backend/memory/memory.go` and `ad35ae5:src/storage/memory/memory.go`.

use super::rules::{LAST_MS, LEAST_MS};

/// A ring. All lengths are in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ring {
    slot_ms: i64,
    /// Length of all slots, a multiple of that of one. in [2 slots, ..)
    span_ms: i64,
}

impl Ring {
    /// A ring of slots of `slot_ms` for `retention_ms`; `None` if these are fewer than two.
    pub(super) fn new(slot_ms: i64, retention_ms: i64) -> Option<Self> {
        let slots = if slot_ms >= 1 { retention_ms / slot_ms } else { 0 };
        (slots >= 2).then_some(Self {
            slot_ms,
            span_ms: slots * slot_ms,
        })
    }

    /// How long before the newest sample of the server another one is still there: the slot of the newest
    /// one held the oldest ones before.
    pub(super) const fn kept_ms(self) -> i64 {
        self.span_ms - self.slot_ms
    }

    /// The number of samples of a series that it can hold, and one more than that, which a walk visits twice.
    pub(super) const fn rows_max(self) -> i64 {
        self.span_ms / self.slot_ms + 1
    }

    /// The range, from its start to before its end, that a read has to ask for to get all samples of
    /// another range, and others beside them.
    pub(super) fn asked(self, start_ms: i64, end_ms: i64) -> (i64, i64) {
        let before = start_ms - self.slot_ms;
        if before >= LEAST_MS && end_ms - before <= self.kept_ms() {
            return (before, end_ms);
        }
        // Whole turns of the ring, so that the walk visits every slot.
        let start = start_ms.div_euclid(self.span_ms) * self.span_ms;
        let end = (end_ms.div_euclid(self.span_ms) + 1) * self.span_ms;
        (
            start.max(LEAST_MS),
            end.min(LAST_MS.div_euclid(self.span_ms) * self.span_ms),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEEK_MS: i64 = 604_800_000;

    fn mohawk() -> Ring {
        Ring::new(30_000, WEEK_MS).unwrap()
    }

    /// The slots, by number, that 0.15.4 walks through.
    fn walked(ring: Ring, (start, end): (i64, i64)) -> i64 {
        let slots = ring.span_ms / ring.slot_ms;
        match (end / ring.slot_ms - start / ring.slot_ms).rem_euclid(slots) {
            0 => slots,
            walked => walked,
        }
    }

    #[test]
    fn a_short_range_begins_a_slot_earlier() {
        assert_eq!(mohawk().asked(1_000_000, 1_060_000), (970_000, 1_060_000));
    }

    #[test]
    fn a_long_range_walks_through_every_slot() {
        let ring = mohawk();
        for (start, end) in [
            (1_000, LAST_MS),
            (1_000, 2_000),
            (1_700_000_400_000, 1_700_000_400_000 + WEEK_MS),
            (1_700_000_400_000, 1_700_000_400_000 + WEEK_MS - 30_000),
            (1_700_000_400_000, 1_700_000_400_000 + 50 * WEEK_MS),
        ] {
            let asked = ring.asked(start, end);
            assert_eq!(walked(ring, asked), 20_160, "{start} {end}");
            assert!(asked.0 <= start && (asked.1 >= end || end == LAST_MS), "{asked:?}");
        }
        assert_eq!((ring.kept_ms(), ring.rows_max()), (WEEK_MS - 30_000, 20_161));
    }

    #[test]
    fn one_slot_is_no_ring() {
        assert_eq!(Ring::new(30_000, 59_999), None);
        assert_eq!(Ring::new(0, 59_999), None);
    }
}
