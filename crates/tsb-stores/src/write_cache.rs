//! A write cache after rrdcached's design, over any store: samples are queued per series, and
//! each series is written many samples at a time.
//!
//! An ack means that a sample is queued in memory (`Volatile`), or, with a journal, that it is in
//! the system's buffers or synced. A series is written after the timeout, before a read of it, or
//! at a flush, and by one thread at a time. A reader writes the queue of its series itself; it waits
//! for a background thread only while that thread is writing the same series.
//!
//! As in rrdcached, a sample that the store would refuse is refused on arrival (by the newest
//! timestamp of its series), samples whose write failed are kept and retried, and a flush that
//! could not write everything returns an error. At every moment
//! `accepted + replayed == written + pending + forgotten + failed + expired`
//! ([`Account`]). Memory is bounded: beyond `max_bytes` samples are refused as full, and every
//! queue becomes due at once.
//!
//! It is *not* a store of its own: a sample that the inner store refuses for good is dropped and
//! counted as failed.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tsb_core::time::Clock;
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use crate::error::{Error, Result};
use crate::locks::lock;
use crate::own_threads::OwnThreads;
use crate::store::{Ack, Capabilities, Footprint, OnConflict, Position, Query, Refusals, Scope, Stats, Store, Visitor};

mod account;
mod background;
mod checkpoint;
mod chunk;
mod drain;
mod journal;
mod options;
mod shard;
mod shared;
mod write_batch;
pub mod writeback;

pub use account::Account;
use journal::Journal;
pub use journal::{CounterFile, Medium, Segment};
use options::invalid;
pub use options::{CheckpointOptions, JournalOptions, SyncPolicy, WriteCacheOptions};
use shared::SharedCache;
use writeback::open_journal_on;

/// A store with a queue per series in front of it.
pub struct WriteCache<S: Store> {
    shared: Arc<SharedCache<S>>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    own: OwnThreads,
}

impl<S: Store> WriteCache<S> {
    /// Puts queues in front of `inner`; `clock` decides when a series is due.
    ///
    /// # Errors
    /// [`Error::Spec`] for invalid options, and for a journal in front of a store that is not
    /// persistent; [`Error::Backend`] or [`Error::Corrupt`] if the journal cannot be opened.
    pub fn new(inner: S, options: &WriteCacheOptions, clock: Arc<dyn Clock>) -> Result<Self> {
        let journal = options.journal.as_ref().map(Journal::open).transpose()?;
        Self::with_journal(inner, options, clock, journal)
    }

    /// Like [`WriteCache::new`], with the journal on a medium of the caller's, for tests that
    /// simulate a power cut.
    ///
    /// # Errors
    /// As [`WriteCache::new`].
    pub fn on_medium(
        inner: S,
        options: &WriteCacheOptions,
        clock: Arc<dyn Clock>,
        medium: Box<dyn Medium>,
    ) -> Result<Self> {
        Self::with_journal(inner, options, clock, Some(open_journal_on(options, medium)?))
    }

    fn with_journal(
        inner: S,
        options: &WriteCacheOptions,
        clock: Arc<dyn Clock>,
        journal: Option<journal::OpenedJournal>,
    ) -> Result<Self> {
        options.check()?;
        if options.checkpoint.is_some() {
            return Err(invalid(
                "a checkpoint, which is of RRD files behind rrdcached's protocol".to_owned(),
            ));
        }
        if journal.as_ref().is_some_and(|journal| !journal.updates.is_empty()) {
            return Err(invalid(
                "a journal with updates of files, which a listener of rrdcached's protocol replays".to_owned(),
            ));
        }
        if journal.is_some() && !inner.capabilities().persistent {
            return Err(invalid(format!("a journal before {inner}, which keeps nothing")));
        }
        let shared = Arc::new(SharedCache::new(inner, options, clock, journal));
        let cache = Self {
            threads: Mutex::default(),
            own: OwnThreads::new(),
            shared,
        };
        let threads = background::start(&cache.shared, options, &cache.own)?;
        *lock(&cache.threads) = threads;
        Ok(cache)
    }

    /// The wrapped store.
    pub fn inner(&self) -> &S {
        &self.shared.inner
    }

    /// Counts of samples by outcome.
    pub fn account(&self) -> Account {
        self.shared.account()
    }

    /// The most recent write failure, if there was one.
    pub fn last_failure(&self) -> Option<String> {
        self.shared.last_failure()
    }

    /// Bytes written to the journal since it was opened.
    pub fn journaled_bytes(&self) -> u64 {
        let journal = self.shared.journal.as_ref();
        journal.map_or(0, Journal::journaled_bytes)
    }

    /// Bytes of an unfinished record that a crash left at the end of the journal.
    pub fn torn_bytes(&self) -> u64 {
        self.shared.torn_bytes
    }

    /// Drops the queued samples of a series. Returns their number.
    ///
    /// # Errors
    /// [`Error::UnknownSeries`], [`Error::Closed`], [`Error::Poisoned`].
    pub fn forget(&self, id: SeriesId) -> Result<u64> {
        self.shared.forget(id)
    }

    /// Makes every queue due at once, and returns without waiting for the writes.
    ///
    /// # Errors
    /// [`Error::Closed`], [`Error::Poisoned`].
    pub fn start_drain(&self) -> Result<()> {
        let _open = self.shared.state.begin()?;
        self.shared.queue_due(true);
        Ok(())
    }

    fn stop_threads(&self) {
        self.shared.stop();
        let threads = std::mem::take(&mut *lock(&self.threads));
        for thread in threads {
            // If the thread panicked, the samples it had taken stay counted as pending.
            let _ = thread.join();
        }
    }
}

impl<S: Store> Drop for WriteCache<S> {
    fn drop(&mut self) {
        self.stop_threads();
    }
}

impl<S: Store> fmt::Debug for WriteCache<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriteCache")
            .field("inner", &self.shared.inner)
            .field("account", &self.account())
            .finish_non_exhaustive()
    }
}

impl<S: Store> fmt::Display for WriteCache<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = self.shared.journal.as_ref().map(Journal::policy);
        match policy {
            None => write!(f, "write-cache({})", self.shared.inner),
            Some(SyncPolicy::None) => write!(f, "write-cache({}, journal)", self.shared.inner),
            Some(SyncPolicy::Interval(_)) => write!(f, "write-cache({}, journal, interval)", self.shared.inner),
            Some(SyncPolicy::Group) => write!(f, "write-cache({}, journal, group)", self.shared.inner),
            Some(SyncPolicy::Each) => write!(f, "write-cache({}, journal, each)", self.shared.inner),
        }
    }
}

impl<S: Store> Store for WriteCache<S> {
    fn capabilities(&self) -> Capabilities {
        let inner = self.shared.inner.capabilities();
        let acknowledges = self.shared.acknowledges;
        Capabilities {
            // The cache admits samples by the newest timestamp of a series, whatever the inner
            // store would accept.
            late: OnConflict::Rejected,
            acknowledges,
            reaches: inner.reaches.max(acknowledges),
            ..inner
        }
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.shared.define(series)
    }

    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.shared.write(batch, refused)
    }

    fn durable(&self, level: Durability) -> Position {
        Position(self.shared.durable(level))
    }

    fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.shared.flush(scope, level)
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        let _open = self.shared.state.begin()?;
        self.shared.check_each(query.series)?;
        if self.shared.inner.capabilities().query {
            self.shared.write_series(query.series)?;
        }
        self.shared.inner.query(query, visit)
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.shared.newest(series, into)
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        let _open = self.shared.state.begin()?;
        self.shared.check_each(series)?;
        for (&id, slot) in series.iter().zip(into) {
            *slot = self.shared.shard(id).newest(id).map(Timestamp);
        }
        Ok(())
    }

    fn stats(&self) -> Stats {
        let (inner, account, repeats) = self.shared.stats();
        let (queue_bytes, free_bytes) = self.shared.bytes();
        Stats {
            samples: inner.samples + account.pending - repeats.min(account.pending),
            superseded: inner.superseded + repeats,
            accepted: account.accepted,
            expired: inner.expired + account.expired,
            footprint: Footprint {
                head_bytes: inner.footprint.head_bytes + self.shared.pending_bytes(),
                journal_bytes: inner.footprint.journal_bytes + self.shared.journal_bytes(),
                series_bytes: inner.footprint.series_bytes + queue_bytes,
                free_bytes: inner.footprint.free_bytes + free_bytes,
                ..inner.footprint
            },
            damage: [inner.damage.clone(), self.shared.damage()].concat(),
            activity: self.shared.activities().chain(inner.activity).collect(),
            disk_bytes: match (
                inner.disk_bytes,
                self.shared.journal.as_ref().and_then(Journal::disk_bytes),
            ) {
                (Some(files), Some(journal)) => Some(files + journal),
                (files, _) => files,
            },
            ..inner
        }
        .with_threads(&self.own)
    }

    fn close(&self) -> Result<()> {
        if !self.shared.state.begin_close() {
            return Ok(());
        }
        let drained = self.shared.write_and_report(Scope::All);
        self.stop_threads();
        let finished = drained.and_then(|()| self.shared.finish());
        if let Some(journal) = &self.shared.journal {
            journal.release();
        }
        if let Err(error) = finished {
            let failed_samples = self.shared.fail_pending();
            // Report the first failure, and close the inner store in any case.
            let _ = self.shared.inner.close();
            return Err(match failed_samples {
                0 => error,
                lost => Error::Backend {
                    action: format!("write {lost} samples that wait"),
                    source: Box::new(error),
                },
            });
        }
        self.shared.inner.close()
    }
}

#[cfg(test)]
mod tests;
