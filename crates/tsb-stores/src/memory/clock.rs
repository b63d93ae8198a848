//! The store's own time: the newest accepted timestamp. Retention is measured against it, so that
//! a run in accelerated time expires samples like one in real time.

use std::sync::atomic::{AtomicI64, Ordering};

/// The newest timestamp, and the cutoff derived from it.
#[derive(Debug)]
pub(super) struct RetentionClock {
    newest: AtomicI64,
    retention: Option<i64>,
}

impl RetentionClock {
    pub(super) fn new(retention: Option<i64>) -> Self {
        Self {
            newest: AtomicI64::new(i64::MIN),
            retention,
        }
    }

    /// The cutoff for a write at `at`; `i64::MIN` without retention.
    #[inline]
    pub(super) fn cutoff_at(&self, at: i64) -> i64 {
        let newest = |retention: i64| self.newest.load(Ordering::Relaxed).max(at).saturating_sub(retention);
        self.retention.map_or(i64::MIN, newest)
    }

    /// Notes an accepted timestamp. Does nothing without retention.
    #[inline]
    pub(super) fn advance(&self, at: i64) {
        if self.retention.is_some() && at > self.newest.load(Ordering::Relaxed) {
            self.newest.fetch_max(at, Ordering::Relaxed);
        }
    }

    /// The time before which samples have expired; `None` without retention.
    pub(super) fn cutoff(&self) -> Option<i64> {
        let newest = self.newest.load(Ordering::Relaxed);
        self.retention.map(|retention| newest.saturating_sub(retention))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cutoff_follows_the_newest_timestamp() {
        let clock = RetentionClock::new(Some(10));
        assert_eq!(clock.cutoff(), Some(i64::MIN));
        assert_eq!(clock.cutoff_at(100), 90);
        assert_eq!(clock.cutoff_at(50), 40);
        clock.advance(100);
        clock.advance(50);
        assert_eq!(clock.cutoff(), Some(90));
        assert_eq!(clock.cutoff_at(50), 90);
        assert_eq!(RetentionClock::new(None).cutoff_at(5), i64::MIN);
        assert_eq!(RetentionClock::new(None).cutoff(), None);
    }
}
