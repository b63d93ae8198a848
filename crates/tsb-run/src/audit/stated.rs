//! What a store states of the newest sample of each series, without the series being read.

use std::sync::atomic::Ordering;

use tsb_core::time::thread_cpu_ns;
use tsb_core::{SeriesId, Timestamp};
use tsb_stores::Result;

use super::Scope;

/// The store's answers about the newest samples of a series.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatedNewest {
    /// The newest one that a query would return.
    pub(super) newest: Option<Timestamp>,
    /// The newest one that was accepted.
    pub(super) accepted: Option<Timestamp>,
}

impl Scope<'_> {
    /// The answers about all series, in their order. Asked for at once: some servers answer about all
    /// of their series or about none.
    ///
    /// # Errors
    /// The store's.
    pub(super) fn stated_newest(&self, repeated: &mut u64) -> Result<Vec<StatedNewest>> {
        let before_ns = thread_cpu_ns();
        let series = self.workload.catalog().len();
        let ids: Vec<SeriesId> = (0..series).map(|index| SeriesId(index as u32)).collect();
        let (mut newest, mut accepted) = (vec![None; series], vec![None; series]);
        self.answered(repeated, || self.store.newest(&ids, &mut newest))?;
        self.answered(repeated, || self.store.newest_accepted(&ids, &mut accepted))?;
        let stated = newest.into_iter().zip(accepted);
        let stated = stated.map(|(newest, accepted)| StatedNewest {
            newest: self.of_this_run(newest),
            accepted: self.of_this_run(accepted),
        });
        let stated = stated.collect();
        self.cpu_ns.fetch_add(thread_cpu_ns() - before_ns, Ordering::Relaxed);
        Ok(stated)
    }
}
