//! The checkpoint: removes journal segments whose samples are synced in the store.

use std::cmp::Reverse;
use std::sync::Mutex;

use tsb_core::SeriesId;

use super::journal::Journal;
use crate::activity::ActivityKind;
use crate::error::Result;
use crate::locks::lock;

/// A series or file, the journal record up to which it is written, and its key where the id alone
/// does not name it.
pub type WrittenUpTo<K> = (SeriesId, u64, K);

/// Number of entries from which on [`Unsynced`] drops older entries of the same series.
const COMPACT_MIN: usize = 1 << 20;

/// What a checkpoint needs from a cache.
pub trait CheckpointSource {
    /// Names a series or file in addition to its id.
    type Key;

    /// What was written since the last checkpoint.
    fn unsynced(&self) -> &Unsynced<Self::Key>;

    /// The oldest journal record with samples that are not written yet.
    fn oldest_record(&self) -> Option<u64>;

    /// Syncs the store. When it returns, everything written before outlives a power cut.
    fn sync(&self) -> Result<()>;

    /// Writes a mark to the journal: the store has synced these.
    fn mark(&self, journal: &Journal, written: &[WrittenUpTo<Self::Key>]) -> Result<()>;
}

/// Syncs the store, marks in the journal what was written before, and removes the segments that
/// are no longer needed.
///
/// # Errors
/// The error of the cache's sync, or of the journal's medium.
pub fn checkpoint_journal(cache: &impl CheckpointSource, journal: &Journal) -> Result<()> {
    let _under_way = journal.activity().begin(ActivityKind::Checkpoint);
    journal.rotate()?;
    // IMPORTANT: the order matters. Both what is no longer queued and what is marked must have
    // been written before the sync begins; anything written later is in later records.
    let next = journal.next_record();
    let oldest = cache.oldest_record().unwrap_or(next);
    let written = cache.unsynced().take();
    cache.sync()?;
    cache.mark(journal, &written)?;
    journal.retire(oldest.min(next))
}

/// What was written and is not synced yet.
#[derive(Debug)]
pub struct Unsynced<K>(Mutex<Vec<WrittenUpTo<K>>>);

impl<K> Default for Unsynced<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K> Unsynced<K> {
    /// Adds series or files, each with the record up to which it was written.
    pub fn add(&self, written: impl IntoIterator<Item = WrittenUpTo<K>>) {
        let mut all = lock(&self.0);
        all.extend(written);
        // Compact only when the vector would grow: its length stays below twice the number of
        // series, or below `COMPACT_MIN`.
        if all.len() >= COMPACT_MIN && all.len() == all.capacity() {
            compact(&mut all);
        }
    }

    fn take(&self) -> Vec<WrittenUpTo<K>> {
        let mut all = std::mem::take(&mut *lock(&self.0));
        compact(&mut all);
        all
    }
}

/// Keeps the newest entry of each series.
fn compact<K>(written: &mut Vec<WrittenUpTo<K>>) {
    written.sort_unstable_by_key(|&(id, record, _)| Reverse((id, record)));
    written.dedup_by_key(|(id, ..)| *id);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_of_each_is_left() {
        let unsynced = Unsynced::default();
        unsynced.add([(1, 5), (2, 7), (1, 9), (1, 8)].map(|(id, record)| (SeriesId(id), record, ())));
        assert_eq!(unsynced.take(), [(SeriesId(2), 7, ()), (SeriesId(1), 9, ())]);
        assert_eq!(unsynced.take(), []);
    }
}
