//! What a store is doing beside the calls into it, as counters that can be read without calling it.
//!
//! A store counts the beginning and the end of each commit, checkpoint and flush; a run reads the
//! counters a hundred times per second, even while the store does not return from a call, and says
//! of its slowest operations what the store was doing during them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a store does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ActivityKind {
    /// A commit, or a sync of the journal.
    Commit,
    /// Moving what was committed to where it stays, or removing parts of the journal.
    Checkpoint,
    /// Writing out what was buffered.
    Flush,
    /// Holding writes back on purpose ([`crate::throttle`]).
    HoldBack,
}

impl ActivityKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Commit, Self::Checkpoint, Self::Flush, Self::HoldBack];
}

/// The counters of a store. Clones share them, and are equal if they do.
#[derive(Clone, Debug, Default)]
pub struct Activity(Arc<[Counters; ActivityKind::ALL.len()]>);

#[derive(Debug, Default)]
struct Counters {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl PartialEq for Activity {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Activity {}

/// Ends what [`Activity::begin`] began when it is dropped.
#[derive(Debug)]
#[must_use = "it ends when this is dropped"]
pub struct UnderWay<'a>(&'a Counters);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Release);
    }
}

impl Activity {
    /// Counters of a store that has done nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    fn of(&self, kind: ActivityKind) -> &Counters {
        let [commit, checkpoint, flush, hold_back] = &*self.0;
        match kind {
            ActivityKind::Commit => commit,
            ActivityKind::Checkpoint => checkpoint,
            ActivityKind::Flush => flush,
            ActivityKind::HoldBack => hold_back,
        }
    }

    /// The store begins this. It ends when the result is dropped.
    pub fn begin(&self, kind: ActivityKind) -> UnderWay<'_> {
        let counters = self.of(kind);
        counters.begun.fetch_add(1, Ordering::Release);
        UnderWay(counters)
    }

    /// How often it has begun and ended: the first is larger while it goes on.
    pub fn counts(&self, kind: ActivityKind) -> (u64, u64) {
        let counters = self.of(kind);
        // In this order, an end is never counted without its beginning.
        let ended = counters.ended.load(Ordering::Acquire);
        (counters.begun.load(Ordering::Acquire), ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_has_begun_and_not_ended() {
        let activity = Activity::new();
        let seen = activity.clone();
        let commit = activity.begin(ActivityKind::Commit);
        assert_eq!(seen.counts(ActivityKind::Commit), (1, 0));
        assert_eq!(seen.counts(ActivityKind::Flush), (0, 0));
        drop(commit);
        assert_eq!(seen.counts(ActivityKind::Commit), (1, 1));
        assert_eq!(seen, activity);
        assert_ne!(seen, Activity::new());
    }
}
