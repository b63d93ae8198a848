//! The write-ahead log: tracks its length, and makes checkpoints.
//!
//! SQLite reports after each commit how many pages the log holds. An estimate from the rows would
//! be wrong: a commit writes whole pages, so one sample may cost five of them.

mod count;
mod found_log;
mod scan;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;

use super::file::{PAGE_BYTES, with_suffix};
use count::CountWriter;

pub(super) use count::Witness;
pub(super) use found_log::FoundLog;

/// Bytes per page in the log: the page and the header of its frame.
const FRAME_BYTES: u64 = PAGE_BYTES + 24;
/// While a query prevents the log from starting over, it is checkpointed again whenever it has
/// grown by its bound divided by this: the next commit after a complete checkpoint may start it
/// over.
const PARTS: u64 = 8;

/// The log of the only connection that writes.
#[derive(Debug)]
pub(super) struct Wal {
    /// Pages in the log after the last commit.
    pages: Arc<AtomicU64>,
    /// Number of pages, from the first, that are in the database as well.
    copied: u64,
    /// Records the log's length outside of it.
    counter: Option<CountWriter>,
}

impl Wal {
    /// Makes SQLite report the length of the log from now on. `counted` is the database and its
    /// lock file; `found` is the state before.
    pub(super) fn watch(
        connection: &mut Connection,
        counted: Option<(&Path, &Arc<File>)>,
        found: &FoundLog,
    ) -> rusqlite::Result<Self> {
        let pages = Arc::new(AtomicU64::new(0));
        let noted = Arc::clone(&pages);
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            noted.store(u64::from(pages.unsigned_abs()), Ordering::Relaxed);
            Ok(())
        }))?;
        let counter = counted
            .map(|(database, file)| CountWriter::new(with_suffix(database, "-wal"), file, &found.log, found.count));
        Ok(Self {
            pages,
            copied: 0,
            counter,
        })
    }

    /// Notes a commit. If the database holds `witness`, it holds this commit.
    pub(super) fn committed(&mut self, witness: Witness, is_synced: bool) {
        let pages = self.pages.load(Ordering::Relaxed);
        // A database without a log has nothing to count.
        if let Some(counter) = self.counter.as_mut().filter(|_| pages > 0) {
            counter.committed(pages, witness, is_synced);
        }
    }

    /// Length of the log in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.pages.load(Ordering::Relaxed) * FRAME_BYTES
    }

    /// Makes a checkpoint if the log has reached its bound: copies it into the database, as far
    /// as no query still reads the older state. Returns whether it did. The commit after a
    /// complete checkpoint starts the log over.
    pub(super) fn checkpoint_when_due(&mut self, connection: &Connection, bound: u64) -> rusqlite::Result<bool> {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.copied {
            // The log has started over.
            self.copied = 0;
        }
        let is_due = self.bytes() >= bound && (pages - self.copied) * FRAME_BYTES >= bound / PARTS;
        if is_due {
            if let Some(counter) = &mut self.counter {
                counter.copying();
            }
            let mut statement = connection.prepare_cached("PRAGMA wal_checkpoint(PASSIVE)")?;
            let copied: i64 = statement.query_row([], |row| row.get(2))?;
            self.copied = copied.max(0).unsigned_abs().min(pages);
            if let Some(counter) = &mut self.counter {
                counter.copied(self.copied);
            }
        }
        Ok(is_due)
    }
}
