//! The background threads of a cache: writeback threads, and one timer thread for periodic work
//! (flush interval, retries, journal sync).
//!
//! It does not know what the cache queues: samples of series, or updates of files.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tsb_core::time::Clock;

use super::checkpoint::{CheckpointSource, checkpoint_journal};
use super::journal::Journal;
use super::options::{SyncPolicy, WriteCacheOptions};
use super::shard::RETRY_NS;
use crate::error::{Error, Result};
use crate::own_threads::OwnThreads;

/// How often the timer thread reads the clock. It polls, since `clock` need not be the machine's.
const POLL: Duration = Duration::from_millis(100);
/// Number of sealed journal segments from which on the oldest are written out and removed.
const BACKLOG_MAX: usize = 2;

/// A cache, as its background threads see it.
pub trait BackgroundTasks: CheckpointSource + Send + std::marker::Sync + 'static {
    /// The clock by which work is due.
    fn clock(&self) -> &dyn Clock;

    /// The journal, if the cache has one.
    fn journal(&self) -> Option<&Journal>;

    /// Runs writeback thread `index` of `threads`: writes due queues whenever there are any,
    /// until the cache stops.
    fn run_writeback(&self, index: usize, threads: usize);

    /// Sleeps for at most `poll`. Returns false once the cache is stopping.
    fn sleep(&self, poll: Duration) -> bool;

    /// Queues due work for writing, and forgets files that have been unused for `idle_ns`
    /// nanoseconds.
    fn sweep(&self, idle_ns: u64);

    /// Queues everything for writing if memory is nearly used up.
    fn queue_if_nearly_full(&self);

    /// Queues for a retry what could not be written, once its retry delay has passed.
    fn retry_failed(&self);

    /// Queues for writing all samples in journal records up to `record`.
    fn queue_upto(&self, record: u64);

    /// Refuses all further calls because of `error`.
    fn poison_by(&self, error: &Error);
}

/// Starts the writeback threads and the timer thread.
pub fn start<C: BackgroundTasks>(
    cache: &Arc<C>,
    options: &WriteCacheOptions,
    own: &OwnThreads,
) -> Result<Vec<JoinHandle<()>>> {
    let threads = options.threads;
    let mut started = Vec::with_capacity(threads + 1);
    for index in 0..threads {
        let cache = Arc::clone(cache);
        started.push(spawn(own, "tsb-cache-write", move || {
            cache.run_writeback(index, threads);
        })?);
    }
    let timer = TimerThread {
        cache: Arc::clone(cache),
        // Read the clock here, not in the new thread: that may first run much later.
        started_ns: cache.clock().now(),
        flush_ns: options.flush_ns,
        sync_ns: options.journal.as_ref().and_then(|journal| match journal.sync {
            SyncPolicy::Interval(interval_ns) => Some(interval_ns),
            _ => None,
        }),
    };
    started.push(spawn(own, "tsb-cache-keep", move || timer.run())?);
    Ok(started)
}

/// Starts a thread that is counted as the store's own.
///
/// # Errors
/// [`Error::Backend`] if the system cannot start a thread.
pub fn spawn(own: &OwnThreads, name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    own.spawn(name, run).map_err(|error| Error::Backend {
        action: format!("start the thread {name}"),
        source: error.into(),
    })
}

/// The timer thread: starts work that is due by time alone.
struct TimerThread<C> {
    cache: Arc<C>,
    started_ns: u64,
    flush_ns: u64,
    sync_ns: Option<u64>,
}

impl<C: BackgroundTasks> TimerThread<C> {
    fn run(&self) {
        let cache = &*self.cache;
        let poll = self
            .sync_ns
            .map_or(POLL, |sync_ns| POLL.min(Duration::from_nanos(sync_ns)));
        let mut flush_at_ns = self.started_ns.saturating_add(self.flush_ns);
        let mut sync_at_ns = self.started_ns;
        // Right after opening there is nothing to retry.
        let mut retry_at_ns = self.started_ns.saturating_add(RETRY_NS / 4);
        while cache.sleep(poll) {
            let now_ns = cache.clock().now();
            if now_ns >= flush_at_ns {
                cache.sweep(self.flush_ns);
                self.with_journal(|journal| checkpoint_journal(cache, journal));
                flush_at_ns = now_ns.saturating_add(self.flush_ns);
            }
            if now_ns >= retry_at_ns {
                cache.retry_failed();
                self.with_journal(|journal| self.shorten_journal(journal));
                retry_at_ns = now_ns.saturating_add(RETRY_NS / 4);
            }
            cache.queue_if_nearly_full();
            if let Some(sync_ns) = self.sync_ns
                && now_ns >= sync_at_ns
            {
                self.with_journal(Journal::sync);
                sync_at_ns = now_ns.saturating_add(sync_ns);
            }
        }
    }

    /// Runs `run` on the journal, if there is one. An error of the journal poisons the cache.
    fn with_journal(&self, run: impl FnOnce(&Journal) -> Result<()>) {
        if let Some(Err(error)) = self.cache.journal().map(run) {
            self.cache.poison_by(&error);
        }
    }

    /// With too many sealed segments, has the samples of the oldest ones written, so that a
    /// checkpoint can remove them.
    fn shorten_journal(&self, journal: &Journal) -> Result<()> {
        let (segments, record) = journal.backlog();
        if segments < BACKLOG_MAX {
            return Ok(());
        }
        self.cache.queue_upto(record);
        match self.cache.oldest_record() {
            Some(oldest) if oldest <= record => Ok(()),
            _ => checkpoint_journal(&*self.cache, journal),
        }
    }
}
