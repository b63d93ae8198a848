//! Drives a client of a server directly, or the connections of an HTTP interface: a worker hands its
//! operations over and goes on, and each ends when its answer comes.
//!
//! The plan bounds how many writes are in flight, over all workers. What is due beyond the bound
//! waits in its worker, and shows as lag. The client makes the writes on threads of its own; no
//! thread waits for the answer to one write.

mod slots;
mod window;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tsb_core::emit::LiveTotals;
use tsb_core::net::Timing;
use tsb_core::schedule::Timetable;
use tsb_stores::{Capabilities, OnConflict, Store};

use super::loss_window::{LossWindow, WriterWaits};
use super::rejects::Rejects;
use super::run_context::RunContext;
use super::sink::SinkTotals;
use crate::error::Error;
use window::Shared;
pub(super) use window::{Completed, Handed, Lane, Window};

/// The windows of a pass, one for each worker.
#[derive(Debug)]
pub(crate) struct InFlight {
    windows: Vec<Arc<Window>>,
}

impl InFlight {
    /// No writes yet. The counts of all windows go into `totals` and `rejects`, too.
    pub(super) fn new(
        context: &RunContext,
        timetable: &Timetable,
        store: &Arc<dyn Store>,
        (totals, rejects): (&Arc<SinkTotals>, &Arc<Rejects>),
        window: Option<&Arc<LossWindow>>,
    ) -> Self {
        let shared = Arc::new(Shared {
            clock: Arc::clone(&context.clock),
            store: Arc::downgrade(store),
            totals: Arc::clone(totals),
            rejects: Arc::clone(rejects),
            has_failed: AtomicBool::new(false),
        });
        let groups = context.workload.groups().iter();
        let shortest_ns = groups.map(|group| group.interval_ns).min().unwrap_or(u64::MAX);
        let spec = context.workload.spec();
        let may_collide = spec.jitter.max_ns.saturating_add(spec.resolution_ns) > shortest_ns;
        let is_ordered = needs_order(&store.capabilities(), may_collide);
        let ranges = timetable.roster.split(context.plan.workers);
        let bound = context.plan.writes_in_flight();
        let windows = ranges.iter().enumerate().map(|(index, groups)| {
            let waits = window.map(|window| WriterWaits::new(Arc::clone(window)));
            let bound = share(bound, ranges.len(), index);
            Arc::new(Window::new(Arc::clone(&shared), bound, groups, is_ordered, waits))
        });
        Self {
            windows: windows.collect(),
        }
    }

    /// The window of each worker.
    pub(super) fn windows(&self) -> &[Arc<Window>] {
        &self.windows
    }

    /// Of the first `issued` operations of a worker, how many have ended with all before them.
    pub(crate) fn settled(&self, worker: usize, issued: u64) -> u64 {
        self.windows.get(worker).map_or(0, |window| window.settled(issued))
    }

    /// Samples refused, and samples of operations that were not sent or have no known outcome.
    pub(crate) fn refused_and_excepted(&self) -> (u64, u64) {
        let of_each = self.windows.iter().map(|window| window.refused_and_excepted());
        of_each.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }

    /// Adds what has ended to the live counters, which count it as handed over.
    pub(super) fn add_to(&self, totals: &mut LiveTotals) {
        self.windows.iter().for_each(|window| window.add_to(totals));
    }

    /// Takes the times since the last call.
    pub(super) fn drain_timing(&self, into: &mut Timing) {
        self.windows.iter().for_each(|window| window.drain_timing(into));
    }

    /// The most writes that were in flight at a time: the sum over the workers.
    pub(super) fn most(&self) -> usize {
        self.windows.iter().map(|window| window.most()).sum()
    }
}

/// A worker's share of the writes in flight.
fn share(bound: usize, workers: usize, index: usize) -> usize {
    bound / workers.max(1) + usize::from(index < bound % workers.max(1))
}

/// Whether a write has to wait for an earlier one of its group: the store refuses late samples, or
/// two ticks of a series may have one timestamp, and the store keeps one of them.
fn needs_order(capabilities: &Capabilities, may_collide: bool) -> bool {
    capabilities.late != OnConflict::Accepted || (capabilities.duplicate != OnConflict::KeptBoth && may_collide)
}

/// Refuses a bound on what is in flight where nothing is.
///
/// # Errors
/// If the plan names a bound, and the store is not driven directly.
pub(super) fn check(asked: Option<usize>, is_direct: bool, store: &str) -> Result<(), Error> {
    if asked.is_none() || is_direct {
        return Ok(());
    }
    Err(Error::plan("cannot use --in-flight here")
        .because_of(format!(
            "{store} ends each write before its call returns: one write for each worker is in flight"
        ))
        .hint("leave it out; --workers says how many write at a time"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsb_core::Durability;

    #[test]
    fn the_bound_is_divided_among_the_workers_without_a_rest() {
        for (bound, workers) in [(64, 1), (64, 3), (5, 5), (100_000, 7)] {
            let shares: Vec<usize> = (0..workers).map(|index| share(bound, workers, index)).collect();
            assert_eq!(shares.iter().sum::<usize>(), bound);
            assert!(shares.iter().all(|one| shares[0] - one <= 1), "{shares:?}");
        }
    }

    #[test]
    fn order_is_kept_where_a_later_write_would_change_the_result() {
        use OnConflict::{Accepted, KeptBoth, Rejected};
        let of = |late, duplicate| {
            let mut capabilities = Capabilities::new(Durability::Volatile, Durability::Volatile);
            (capabilities.late, capabilities.duplicate) = (late, duplicate);
            [false, true].map(|may_collide| needs_order(&capabilities, may_collide))
        };
        assert_eq!(of(Accepted, Accepted), [false, true]);
        assert_eq!(of(Accepted, Rejected), [false, true]);
        assert_eq!(of(Accepted, KeptBoth), [false, false]);
        assert_eq!(of(Rejected, KeptBoth), [true, true]);
    }
}
