//! A view of a listener's counts and timings that works without the listener itself: while it is
//! being stopped, and when a store that never returns keeps it from stopping.

use std::sync::{Arc, Mutex, PoisonError};

use super::connection::Shared;
use super::milepost::Timing;
use super::stats::ListenerStats;

/// A view of a listener. It takes no lock that the ingest threads hold while they decode or apply.
#[derive(Clone, Debug)]
pub struct ListenerView {
    shared: Arc<Shared>,
    timings: Vec<Arc<Mutex<Timing>>>,
}

impl ListenerView {
    pub(super) const fn new(shared: Arc<Shared>, timings: Vec<Arc<Mutex<Timing>>>) -> Self {
        Self { shared, timings }
    }

    /// The current counts.
    pub fn stats(&self) -> ListenerStats {
        self.shared.counters.snapshot()
    }

    /// Moves what was timed since the last call into `into`.
    pub fn drain_timing(&self, into: &mut Timing) {
        for timing in &self.timings {
            into.absorb(&mut timing.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}
