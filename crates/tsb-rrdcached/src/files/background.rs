//! The cache of files as its background threads see it.

use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tsb_core::SeriesKey;
use tsb_core::time::Clock;
use tsb_rrd::{ReadAhead, Session};

use super::entry::{Entry, NO_RECORD};
use super::shared::Shared;
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::lock;
use tsb_stores::write_cache::writeback::BackgroundTasks;
use tsb_stores::write_cache::writeback::Journal;
use tsb_stores::write_cache::writeback::{CheckpointSource, Unsynced, WrittenUpTo};

/// Upper bound of the number of files that a thread takes at once.
const TAKE_MAX: usize = 256;

impl CheckpointSource for Shared {
    // Shared, since a file may be forgotten before its mark is written.
    type Key = Arc<SeriesKey>;

    fn unsynced(&self) -> &Unsynced<Arc<SeriesKey>> {
        &self.unsynced
    }

    fn oldest_record(&self) -> Option<u64> {
        let oldest = self.shards().iter().map(|shard_mutex| {
            let shard = shard_mutex.lock();
            shard
                .entries
                .iter()
                .map(Entry::oldest_record)
                .min()
                .unwrap_or(NO_RECORD)
        });
        oldest.min().filter(|&record| record != NO_RECORD)
    }

    fn sync(&self) -> Result<()> {
        self.base.sync()
    }

    fn mark(&self, journal: &Journal, written: &[WrittenUpTo<Arc<SeriesKey>>]) -> Result<()> {
        journal.mark_written(written, |(.., key)| Some(key))
    }
}

impl BackgroundTasks for Shared {
    fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    fn run_writeback(&self, _index: usize, threads: usize) {
        let mut session = Session::default();
        let mut ahead = ReadAhead::default();
        let mut names = Vec::with_capacity(TAKE_MAX);
        while self.await_due(threads, &mut names) {
            // A file that was suspended meanwhile is queued again when it is resumed.
            self.write_files(
                &names,
                (&mut session, &mut ahead),
                self.page_writeback.as_ref(),
                |_, _| (),
            );
        }
    }

    fn sleep(&self, poll: Duration) -> bool {
        let waited = self
            .stopping
            .wait_timeout_while(lock(&self.due), poll, |due| !due.is_stopping);
        let (due, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !due.is_stopping
    }

    fn sweep(&self, idle_ns: u64) {
        self.queue_due(false);
        self.forget_idle(self.clock.now().saturating_sub(idle_ns));
        // If this fails the old checkpoint stays; closing tries again and reports the error.
        let _ = self.save_checkpoint();
    }

    fn queue_if_nearly_full(&self) {
        if self.is_half_full() {
            self.queue_due(true);
        }
    }

    fn retry_failed(&self) {
        if self.has_failed_writes.swap(false, Ordering::AcqRel) {
            self.queue_due(false);
            // Stay set while any file waits for its retry.
            let has_waiting = self.any(Entry::needs_retry);
            self.has_failed_writes.fetch_or(has_waiting, Ordering::AcqRel);
        }
    }

    fn queue_upto(&self, record: u64) {
        self.queue_each(|entry| entry.oldest_record() <= record);
    }

    fn poison_by(&self, error: &Error) {
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
            let share = due.names.len().div_ceil(threads).min(TAKE_MAX);
            if share > 0 {
                names.extend(due.names.drain(..share));
                return true;
            }
            due = self.work_available.wait(due);
        }
        false
    }

    /// Runs the thread that starts the writeback of drained files, until the cache stops.
    pub(super) fn run_page_writeback(&self) {
        if let Some(page_writeback) = &self.page_writeback {
            page_writeback.run(|name| self.shard_of(name).release(name));
        }
    }

    fn any(&self, is: impl Fn(&Entry) -> bool) -> bool {
        self.shards()
            .iter()
            .any(|shard_mutex| shard_mutex.lock().entries.iter().any(&is))
    }
}
