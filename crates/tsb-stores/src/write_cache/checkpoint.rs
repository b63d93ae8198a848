//! From a journal goes what its cache has written and the medium has.

use std::cmp::Reverse;
use std::sync::Mutex;

use tsb_core::SeriesId;

use super::journal::Journal;
use crate::error::Result;
use crate::locks::lock;

/// A series or a file, up to which record of the journal it is written, and how it is named
/// where its id does not say that.
pub type Settled<K> = (SeriesId, u64, K);

/// So many are kept before they are looked through for what is there twice.
const MANY: usize = 1 << 20;

/// A cache, as far as its journal is concerned.
pub trait Settle {
    /// How a series or file is named besides its id.
    type Key;

    /// What was written since the last checkpoint.
    fn unsynced(&self) -> &Unsynced<Self::Key>;

    /// The oldest record of the journal of which not everything is written.
    fn oldest_record(&self) -> Option<u64>;

    /// Waits until all that was written is on the medium.
    fn sync(&self) -> Result<()>;

    /// Says in the journal that the medium has these.
    fn mark(&self, journal: &Journal, settled: &[Settled<Self::Key>]) -> Result<()>;
}

/// Makes the journal shorter by what was written and is synced.
///
/// # Errors
/// What the cache says to a sync, or the medium to the journal.
pub fn checkpoint(cache: &impl Settle, journal: &Journal) -> Result<()> {
    journal.rotate()?;
    // IMPORTANT: in this order. What is not held any more, and what is marked, is written
    // before it is synced; what comes later is in later records.
    let next = journal.next_record();
    let oldest = cache.oldest_record().unwrap_or(next);
    let settled = cache.unsynced().take();
    cache.sync()?;
    cache.mark(journal, &settled)?;
    journal.retire(oldest.min(next))
}

/// What was written and not synced yet.
#[derive(Debug)]
pub struct Unsynced<K>(Mutex<Vec<Settled<K>>>);

impl<K> Default for Unsynced<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K> Unsynced<K> {
    /// Adds series or files that were written, each up to a record.
    pub fn remember(&self, settled: impl IntoIterator<Item = Settled<K>>) {
        let mut all = lock(&self.0);
        all.extend(settled);
        // Never more than twice the number of series, or so many.
        if all.len() >= MANY && all.len() == all.capacity() {
            compact(&mut all);
        }
    }

    fn take(&self) -> Vec<Settled<K>> {
        let mut all = std::mem::take(&mut *lock(&self.0));
        compact(&mut all);
        all
    }
}

/// The newest of each series.
fn compact<K>(settled: &mut Vec<Settled<K>>) {
    settled.sort_unstable_by_key(|&(id, record, _)| Reverse((id, record)));
    settled.dedup_by_key(|(id, ..)| *id);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_each_is_left() {
        let unsynced = Unsynced::default();
        unsynced.remember([(1, 5), (2, 7), (1, 9), (1, 8)].map(|(id, record)| (SeriesId(id), record, ())));
        assert_eq!(unsynced.take(), [(SeriesId(2), 7, ()), (SeriesId(1), 9, ())]);
        assert_eq!(unsynced.take(), []);
    }
}
