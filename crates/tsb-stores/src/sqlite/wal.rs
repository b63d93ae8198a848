//! The write-ahead log: how long it really is, and when it is copied into the file.
//!
//! SQLite says after each commit how many pages the log holds. An estimate from the rows
//! would not do: a commit writes whole pages, so that one sample may cost five of them.

mod count;
mod found;
mod scan;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;

use super::file::{PAGE_BYTES, beside};
use count::Counter;

pub(super) use count::Witness;
pub(super) use found::Found;

/// What a page takes in the log: its bytes and the header of its frame.
const FRAME_BYTES: u64 = PAGE_BYTES + 24;
/// While a query keeps the log from starting over, it is copied again each time that it has
/// grown by this part of its bound: the next commit after a whole copy may start it over.
const PARTS: u64 = 8;

/// The log of one connection, the only one that writes.
#[derive(Debug)]
pub(super) struct Wal {
    /// Pages in the log after the last commit.
    pages: Arc<AtomicU64>,
    /// How many of these, from the first, are in the file as well.
    copied: u64,
    /// Says outside of the log how long it is.
    counter: Option<Counter>,
}

impl Wal {
    /// Has SQLite count the pages of the log from now on. `counted`: the database and the file
    /// of its lock; `found` is what there was before.
    pub(super) fn watch(
        connection: &mut Connection,
        counted: Option<(&Path, &Arc<File>)>,
        found: &Found,
    ) -> rusqlite::Result<Self> {
        let pages = Arc::new(AtomicU64::new(0));
        let noted = Arc::clone(&pages);
        connection.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages: i32| {
            noted.store(u64::from(pages.unsigned_abs()), Ordering::Relaxed);
            Ok(())
        }))?;
        let counter =
            counted.map(|(database, file)| Counter::new(beside(database, "-wal"), file, &found.log, found.count));
        Ok(Self {
            pages,
            copied: 0,
            counter,
        })
    }

    /// A commit has returned, which the database proves that it has where it holds `witness`.
    pub(super) fn committed(&mut self, witness: Witness, is_synced: bool) {
        let pages = self.pages.load(Ordering::Relaxed);
        // A file without a log has nothing to count.
        if let Some(counter) = self.counter.as_mut().filter(|_| pages > 0) {
            counter.committed(pages, witness, is_synced);
        }
    }

    /// How long the log is, in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.pages.load(Ordering::Relaxed) * FRAME_BYTES
    }

    /// Copies the log into the file when it has reached its bound, as far as no query still
    /// reads the older state; whether it did. The commit after a whole copy starts the log
    /// over.
    pub(super) fn checkpoint_when_due(&mut self, connection: &Connection, bound: u64) -> rusqlite::Result<bool> {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.copied {
            // It has started over.
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
