//! What a store states of the newest sample of series, without the series being read.

use tsb_core::{SeriesId, Timestamp};
use tsb_stores::{Exactness, Result};

use super::Scope;
use super::auditor::STRIDE;

/// Number of series of one question: some servers answer about all of their series whatever they are
/// asked, and a question that is not answered is asked again as a whole.
const SERIES_MAX: usize = 4_096;
/// A store that keeps samples for less than this is asked right before a series is read, in
/// nanoseconds: what it states may be gone soon after.
const BRIEF_NS: i64 = 86_400_000_000_000;

/// The store's answers about the newest samples of a series.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatedNewest {
    /// The newest one that a query would return.
    pub(super) newest: Option<Timestamp>,
    /// The newest one that was accepted.
    pub(super) accepted: Option<Timestamp>,
}

impl Scope<'_> {
    /// How many series an auditor asks about at a time, and then reads.
    pub(super) fn series_per_question(&self) -> usize {
        let capabilities = self.store.capabilities();
        let is_brief = capabilities.retention_ns.is_some_and(|ns| ns < BRIEF_NS);
        if is_brief || matches!(capabilities.exactness, Exactness::Slots(_)) {
            return STRIDE;
        }
        let series = self.workload.catalog().len();
        series.div_ceil(self.threads.max(1)).clamp(STRIDE, SERIES_MAX)
    }

    /// The answers about some series, in their order.
    ///
    /// # Errors
    /// The store's.
    pub(super) fn stated_newest(&self, ids: &[SeriesId], repeated: &mut u64) -> Result<Vec<StatedNewest>> {
        let (mut newest, mut accepted) = (vec![None; ids.len()], vec![None; ids.len()]);
        self.answered(repeated, || self.store.newest(ids, &mut newest))?;
        self.answered(repeated, || self.store.newest_accepted(ids, &mut accepted))?;
        let stated = newest.into_iter().zip(accepted);
        let stated = stated.map(|(newest, accepted)| StatedNewest {
            newest: self.of_this_run(newest),
            accepted: self.of_this_run(accepted),
        });
        Ok(stated.collect())
    }
}
