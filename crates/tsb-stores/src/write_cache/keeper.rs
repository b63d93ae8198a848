//! The threads of a cache: some that write, and one that looks what is due by time alone.
//!
//! It does not know what waits in the cache: samples of series, or readings for files.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tsb_core::time::Clock;

use super::checkpoint::{Settle, checkpoint};
use super::journal::Journal;
use super::options::{Sync, WriteCacheOptions};
use super::shard::RETRY_NS;
use crate::error::{Error, Result};
use crate::own_threads::OwnThreads;

/// How often the keeper looks at the clock, which may not be the machine's.
const LOOK: Duration = Duration::from_millis(100);
/// Segments that the journal may have behind it before it is made shorter.
const BACKLOG: usize = 2;

/// A cache, as its threads see it.
pub trait Kept: Settle + Send + std::marker::Sync + 'static {
    /// The time in which things are due.
    fn clock(&self) -> &dyn Clock;

    /// Where what waits is on record, if it is.
    fn journal(&self) -> Option<&Journal>;

    /// Writes what is due, whenever there is something, until the cache is to stop; as one
    /// thread of so many.
    fn work(&self, index: usize, threads: usize);

    /// Waits so long at the most; whether to go on.
    fn rest(&self, look: Duration) -> bool;

    /// Has written what is due, and forgets what nobody has needed for so long.
    fn sweep(&self, idle_ns: u64);

    /// Has everything written where memory is about to run out.
    fn make_room(&self);

    /// Has written what could not be and has rested.
    fn try_again(&self);

    /// Has written what the journal holds in records up to this one.
    fn hurry(&self, record: u64);

    /// Takes nothing any more.
    fn poisoned_by(&self, error: &Error);
}

/// Starts them all.
pub fn start<C: Kept>(cache: &Arc<C>, options: &WriteCacheOptions, own: &OwnThreads) -> Result<Vec<JoinHandle<()>>> {
    let threads = options.threads;
    let mut started = Vec::with_capacity(threads + 1);
    for index in 0..threads {
        let cache = Arc::clone(cache);
        started.push(spawn(own, "tsb-cache-write", move || cache.work(index, threads))?);
    }
    let keeper = Keeper {
        cache: Arc::clone(cache),
        // Now, and not when its thread comes to run.
        started_ns: cache.clock().now(),
        flush_ns: options.flush_ns,
        sync_ns: options.journal.as_ref().and_then(|journal| match journal.sync {
            Sync::Interval(interval_ns) => Some(interval_ns),
            _ => None,
        }),
    };
    started.push(spawn(own, "tsb-cache-keep", move || keeper.run())?);
    Ok(started)
}

/// Starts one more thread of the store's own.
///
/// # Errors
/// [`Error::Backend`] where the system has none.
pub fn spawn(own: &OwnThreads, name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    own.spawn(name, run).map_err(|error| Error::Backend {
        action: format!("start the thread {name}"),
        source: error.into(),
    })
}

/// Looks what is due by time alone.
struct Keeper<C> {
    cache: Arc<C>,
    started_ns: u64,
    flush_ns: u64,
    sync_ns: Option<u64>,
}

impl<C: Kept> Keeper<C> {
    fn run(&self) {
        let cache = &*self.cache;
        let look = self
            .sync_ns
            .map_or(LOOK, |sync_ns| LOOK.min(Duration::from_nanos(sync_ns)));
        let mut flush_at_ns = self.started_ns.saturating_add(self.flush_ns);
        let mut sync_at_ns = self.started_ns;
        // A cache that has just been opened has nothing to try again yet.
        let mut retry_at_ns = self.started_ns.saturating_add(RETRY_NS / 4);
        while cache.rest(look) {
            let now_ns = cache.clock().now();
            if now_ns >= flush_at_ns {
                cache.sweep(self.flush_ns);
                self.with_journal(|journal| checkpoint(cache, journal));
                flush_at_ns = now_ns.saturating_add(self.flush_ns);
            }
            if now_ns >= retry_at_ns {
                cache.try_again();
                self.with_journal(|journal| self.shorten(journal));
                retry_at_ns = now_ns.saturating_add(RETRY_NS / 4);
            }
            cache.make_room();
            if let Some(sync_ns) = self.sync_ns
                && now_ns >= sync_at_ns
            {
                self.with_journal(Journal::sync);
                sync_at_ns = now_ns.saturating_add(sync_ns);
            }
        }
    }

    /// Does something with the journal, if there is one. What goes wrong with it is final.
    fn with_journal(&self, run: impl FnOnce(&Journal) -> Result<()>) {
        if let Some(Err(error)) = self.cache.journal().map(run) {
            self.cache.poisoned_by(&error);
        }
    }

    /// A journal with segments behind it has what the oldest of them hold written, so that
    /// they go.
    fn shorten(&self, journal: &Journal) -> Result<()> {
        let (segments, record) = journal.backlog();
        if segments < BACKLOG {
            return Ok(());
        }
        self.cache.hurry(record);
        match self.cache.oldest_record() {
            Some(oldest) if oldest <= record => Ok(()),
            _ => checkpoint(&*self.cache, journal),
        }
    }
}
