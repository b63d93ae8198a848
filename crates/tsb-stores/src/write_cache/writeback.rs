//! The parts of a write cache, public for caches in other crates: the journal, the checkpoint
//! that shortens it, and the background threads.
//!
//! A cache implements [`CheckpointSource`] and [`BackgroundTasks`]; [`start`] runs its threads. A
//! journal holds either samples of series or lines of text for files ([`ReplayedUpdates`]), never
//! both.

use super::Medium;
pub use super::background::{BackgroundTasks, spawn, start};
pub use super::checkpoint::{CheckpointSource, Unsynced, WrittenUpTo, checkpoint_journal};
pub use super::journal::{Journal, JournalWriter, OpenedJournal, ReplayedUpdates};
pub use super::options::{WriteCacheOptions, invalid};
pub use super::shard::RETRY_NS;
use crate::error::Result;

/// Opens the journal of `options` on a medium of the caller's.
///
/// # Errors
/// [`Error::Spec`](crate::Error::Spec) if the options name no journal, and the errors of
/// [`Journal::open`].
pub fn open_journal_on(options: &WriteCacheOptions, medium: Box<dyn Medium>) -> Result<OpenedJournal> {
    let Some(journal) = &options.journal else {
        return Err(invalid("a medium without a journal".to_owned()));
    };
    Journal::on(medium, journal.sync, journal.segment_bytes)
}
