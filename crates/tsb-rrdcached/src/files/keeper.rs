//! The cache of files as its background threads see it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tsb_core::SeriesKey;
use tsb_core::time::Clock;
use tsb_rrd::{ReadAhead, Session};

use super::entry::{Entry, NONE};
use super::shared::Shared;
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::lock;
use tsb_stores::write_cache::writeback::Journal;
use tsb_stores::write_cache::writeback::Kept;
use tsb_stores::write_cache::writeback::{Settle, Settled, Unsynced};

/// Upper bound of the number of files that a thread takes at once.
const SOME: usize = 256;

impl Settle for Shared {
    // Shared, since a file may be forgotten before its mark is written.
    type Key = Arc<SeriesKey>;

    fn unsynced(&self) -> &Unsynced<Arc<SeriesKey>> {
        &self.unsynced
    }

    fn oldest_record(&self) -> Option<u64> {
        let oldest = self.shelves().iter().map(|shelved| {
            let shelf = shelved.lock();
            shelf.entries.iter().map(Entry::oldest_record).min().unwrap_or(NONE)
        });
        oldest.min().filter(|&record| record != NONE)
    }

    fn sync(&self) -> Result<()> {
        self.base.sync()
    }

    fn mark(&self, journal: &Journal, settled: &[Settled<Arc<SeriesKey>>]) -> Result<()> {
        journal.wrote(settled, |(.., key)| Some(key))
    }
}

impl Kept for Shared {
    fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    fn work(&self, _index: usize, threads: usize) {
        let mut session = Session::default();
        let mut ahead = ReadAhead::default();
        let mut names = Vec::with_capacity(SOME);
        while self.await_due(threads, &mut names) {
            // A file that was suspended meanwhile is queued again when it is resumed.
            self.write_some(&names, (&mut session, &mut ahead), self.outlet.as_ref(), |_, _| ());
        }
    }

    fn rest(&self, look: Duration) -> bool {
        let waited = self
            .end
            .wait_timeout_while(lock(&self.due), look, |due| !due.is_stopping);
        let (due, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !due.is_stopping
    }

    fn sweep(&self, idle_ns: u64) {
        self.queue_due(false);
        self.forget_idle(self.clock.now().saturating_sub(idle_ns));
        // If this fails the old checkpoint stays; closing tries again and reports the error.
        let _ = self.remember();
    }

    fn make_room(&self) {
        if self.is_crowded() {
            self.queue_due(true);
        }
    }

    fn try_again(&self) {
        if self.has_trouble.swap(false, Ordering::AcqRel) {
            self.queue_due(false);
            // Stay set while any file waits for its retry.
            let rests = self.any(Entry::has_left);
            self.has_trouble.fetch_or(rests, Ordering::AcqRel);
        }
    }

    fn hurry(&self, record: u64) {
        self.queue_each(|entry| entry.oldest_record() <= record);
    }

    fn poisoned_by(&self, error: &Error) {
        self.poison(error);
    }
}

impl Shared {
    /// Waits for due files, and takes this thread's share of them. Returns false once the cache
    /// is stopping.
    fn await_due(&self, threads: usize, names: &mut Vec<Box<str>>) -> bool {
        names.clear();
        let mut due = lock(&self.due);
        while !due.is_stopping {
            let share = due.names.len().div_ceil(threads).min(SOME);
            if share > 0 {
                names.extend(due.names.drain(..share));
                return true;
            }
            due = self.call.wait(due);
        }
        false
    }

    /// Runs the thread that starts the writeback of drained files, until the cache stops.
    pub(super) fn let_out(&self) {
        if let Some(outlet) = &self.outlet {
            outlet.work(|name| self.shelf_of(name).release(name));
        }
    }

    fn any(&self, is: impl Fn(&Entry) -> bool) -> bool {
        self.shelves()
            .iter()
            .any(|shelved| shelved.lock().entries.iter().any(&is))
    }
}
