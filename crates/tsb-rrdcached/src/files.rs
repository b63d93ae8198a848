//! rrdcached's cache: queues of updates for RRD files of any layout.
//!
//! [`WriteCache`](tsb_stores::write_cache::WriteCache) queues numbers per series; this cache
//! queues text per file. A client of rrdcached's protocol names files with several data sources
//! that exist already, and the exact decimal digits of a value matter to librrd. Both caches use
//! the same journal and make the same promises: an update that the file would refuse is refused
//! on arrival, an update whose write failed is kept and retried, a flush that did not write
//! everything returns an error, one thread at a time has a file open, memory is bounded, and at
//! every moment
//! `accepted + replayed == written + pending + forgotten + failed`.
//!
//! It touches nothing outside the base folder or behind a symbolic link. It assumes that a file
//! has one name: two hard links to one file would get separate queues. It is *not* a
//! [`Store`](tsb_stores::Store): it has no series.

use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tsb_core::Durability;
use tsb_core::time::Clock;
use tsb_rrd::{ReadAhead, Session};

use tsb_stores::Damage;
use tsb_stores::OwnThreads;
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::lock;
use tsb_stores::rrd::FILE_BYTES_MAX;
use tsb_stores::write_cache::Account;
use tsb_stores::write_cache::Medium;
use tsb_stores::write_cache::writeback::checkpoint_journal;
use tsb_stores::write_cache::writeback::invalid;
use tsb_stores::write_cache::writeback::{Journal, OpenedJournal};
use tsb_stores::write_cache::{SyncPolicy, WriteCacheOptions};

mod accept;
mod ahead;
mod background;
mod base;
mod conversation;
mod create;
mod drain;
mod entries;
mod entry;
mod error;
mod head_cache;
mod librrd;
mod page_writeback;
mod read;
mod shard;
mod shared;
mod tune;

pub use accept::UpdateOutcome;
pub use conversation::Conversation;
pub use error::FileError;

use accept::{PlainOutcome, PlainUpdate};
pub use base::FileSystem;
use base::{BaseFolder, OperatingSystem};
use error::FileResult;
use shared::Shared;

/// Upper bound of the number of values in the answer to one `FETCH`.
const FETCH_MAX: usize = 1_000_000;

/// Limits on what clients of a cache may create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileBounds {
    /// Maximum number of files known at a time.
    pub files: usize,
    /// Maximum size in bytes of a file that `CREATE` makes.
    pub file_bytes: u64,
}

impl FileBounds {
    /// At most `files` files, of at most [`FILE_BYTES_MAX`] bytes each.
    pub const fn of_files(files: usize) -> Self {
        Self {
            files,
            file_bytes: FILE_BYTES_MAX,
        }
    }
}

/// Queues of updates in front of the RRD files of a folder.
#[derive(Debug)]
pub struct FileCache {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Held while a large file is created, so that only one is created at a time.
    creating: Mutex<()>,
}

/// The counters behind `STATS`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCacheStats {
    /// Number of files queued for writing.
    pub queued: u64,
    /// Number of update commands received, refused ones included.
    pub updates_received: u64,
    /// Number of flush commands received.
    pub flushes_received: u64,
    /// Number of times that a file was opened and written to.
    pub updates_written: u64,
    /// Number of files known: with queued updates, or used recently.
    pub files: u64,
    /// Bytes written to the journal.
    pub journal_bytes: u64,
    /// Values that were refused, or that followed a refused one in the same command.
    pub values_rejected: u64,
    /// Number of write passes that left values unwritten.
    pub write_failures: u64,
    /// Counts of values by outcome.
    pub account: Account,
}

impl FileCache {
    /// A cache of the files below `folder`, within `bounds`; `clock` decides when a file is due.
    /// Updates that the journal holds from an earlier run are queued again, and are due at once.
    ///
    /// # Errors
    /// [`Error::Spec`] for invalid options, and for a journal that holds samples of series;
    /// [`Error::Backend`] or [`Error::Corrupt`] if the folder or the journal cannot be opened.
    pub fn open(folder: &Path, bounds: FileBounds, options: &WriteCacheOptions, clock: Arc<dyn Clock>) -> Result<Self> {
        let opened = options.journal.as_ref().map(Journal::open).transpose()?;
        Self::with_journal(folder, bounds, options, clock, opened, Box::new(OperatingSystem))
    }

    /// Like [`FileCache::open`], with the journal on a medium and the files on a file system of
    /// the caller's, for tests that simulate a power cut.
    ///
    /// # Errors
    /// As [`FileCache::open`].
    pub fn on_medium(
        folder: &Path,
        bounds: FileBounds,
        options: &WriteCacheOptions,
        clock: Arc<dyn Clock>,
        medium: Box<dyn Medium>,
        system: Box<dyn FileSystem>,
    ) -> Result<Self> {
        let opened = tsb_stores::write_cache::writeback::open_journal_on(options, medium)?;
        Self::with_journal(folder, bounds, options, clock, Some(opened), system)
    }

    fn with_journal(
        folder: &Path,
        bounds: FileBounds,
        options: &WriteCacheOptions,
        clock: Arc<dyn Clock>,
        opened: Option<OpenedJournal>,
        system: Box<dyn FileSystem>,
    ) -> Result<Self> {
        options.check()?;
        if opened.as_ref().is_some_and(OpenedJournal::has_samples) {
            return Err(invalid(
                "a journal with samples of series, which write-cache+X: replays".to_owned(),
            ));
        }
        let base = BaseFolder::open(folder, system).map_err(|source| Error::Backend {
            action: format!("open the folder {}", folder.display()),
            source: source.into(),
        })?;
        let head_cache = options
            .checkpoint
            .as_ref()
            .map(head_cache::HeadCache::open)
            .transpose()?;
        let (shared, held) = Shared::new(base, options, bounds, clock, opened, head_cache);
        let shared = Arc::new(shared);
        for (key, updates) in held {
            shared.replay(&key, updates);
        }
        let cache = Self {
            threads: Mutex::default(),
            creating: Mutex::default(),
            shared,
        };
        cache.start(options)?;
        Ok(cache)
    }

    fn start(&self, options: &WriteCacheOptions) -> Result<()> {
        let (own, threads) = (OwnThreads::new(), &mut *lock(&self.threads));
        *threads = tsb_stores::write_cache::writeback::start(&self.shared, options, &own)?;
        if self.shared.page_writeback.is_some() {
            let shared = Arc::clone(&self.shared);
            threads.push(tsb_stores::write_cache::writeback::spawn(
                &own,
                "tsb-cache-out",
                move || shared.run_page_writeback(),
            )?);
        }
        Ok(())
    }

    /// The base folder, without symbolic links.
    pub fn folder(&self) -> &Path {
        self.shared.base.root()
    }

    /// The durability level of an acknowledged update.
    pub fn acknowledges(&self) -> Durability {
        match self.shared.journal.as_ref().map(Journal::policy) {
            None => Durability::Volatile,
            Some(SyncPolicy::None | SyncPolicy::Interval(_)) => Durability::Buffered,
            Some(SyncPolicy::Group | SyncPolicy::Each) => Durability::Synced,
        }
    }

    /// Accepts updates of a file, each `time:value[:value...]`, up to the first one that the file
    /// would refuse. They may be acknowledged once [`FileCache::confirm`] has returned.
    ///
    /// # Errors
    /// [`FileError`] if nothing was accepted; the error of a refused update after accepted ones
    /// is in [`UpdateOutcome::refused`].
    pub fn update<'a>(
        &self,
        file: &str,
        updates: impl Iterator<Item = Cow<'a, str>>,
        session: &mut Session,
    ) -> FileResult<UpdateOutcome> {
        let counters = &self.shared.counters;
        counters.updates_received.fetch_add(1, Ordering::Relaxed);
        let name = self.shared.base.name(file)?;
        self.shared.update(&name, updates, session)
    }

    /// A [`PlainUpdate`] of this file, if the name needs no cleaning. Does not look at the file.
    fn plain_update<'a>(&self, file: &'a str, update: &'a str) -> Option<PlainUpdate<'a>> {
        match self.shared.base.name(file) {
            Ok(Cow::Borrowed(name)) => Some(PlainUpdate::new(name, update)),
            _ => None,
        }
    }

    /// Accepts one update like [`FileCache::update`], on the fast path for common updates. `None`
    /// means that nothing has changed, and the caller must take the general path.
    fn accept_plain(&self, update: PlainUpdate<'_>, now_ns: u64) -> Option<PlainOutcome> {
        let accepted = self.shared.accept_plain(update, now_ns)?;
        self.shared.counters.updates_received.fetch_add(1, Ordering::Relaxed);
        Some(accepted)
    }

    /// Nanoseconds on the cache's clock.
    fn now_ns(&self) -> u64 {
        self.shared.clock.now()
    }

    /// Prefetches the entries of the next updates. Touching all of them first lets the
    /// processor's cache misses overlap, instead of waiting for one after the other.
    fn prefetch<'a>(&self, updates: impl Iterator<Item = PlainUpdate<'a>>) {
        self.shared.prefetch(updates);
    }

    /// Returns when the updates up to a journal record have the level of
    /// [`FileCache::acknowledges`].
    ///
    /// # Errors
    /// [`FileError::Poisoned`].
    pub fn confirm(&self, record: u64) -> FileResult<()> {
        self.shared.confirm(record)
    }

    /// Writes the queued updates of a file. `Ok(false)` if the cache does not know the file, but
    /// it exists.
    ///
    /// # Errors
    /// [`FileError`] if some update accepted since the last flush is not in the file.
    pub fn flush(&self, file: &str, session: &mut Session) -> FileResult<bool> {
        let name = self.shared.base.name(file)?;
        self.shared.flush(&name, session)
    }

    /// Queues all files for writing, and returns without waiting.
    pub fn start_drain(&self) {
        self.shared.queue_due(true);
    }

    /// Syncs the files. When it returns, everything written to them outlives a power cut.
    ///
    /// # Errors
    /// [`Error::Backend`].
    pub fn sync_files(&self) -> Result<()> {
        self.shared.base.sync()
    }

    /// The queued updates of a file, in order.
    ///
    /// # Errors
    /// [`FileError::Outside`].
    pub fn pending(&self, file: &str) -> FileResult<Vec<String>> {
        let name = self.shared.base.name(file)?;
        let shard = self.shared.shard_of(&name).lock_idle(&name);
        let entry = shard.entries.get(&name);
        Ok(entry.map_or_else(Vec::new, |entry| entry.lines().map(str::to_owned).collect()))
    }

    /// Drops the queued updates of a file. Returns their number.
    ///
    /// # Errors
    /// [`FileError::Unknown`] if the cache does not know the file.
    pub fn forget(&self, file: &str) -> FileResult<u64> {
        let name = self.shared.base.name(file)?;
        let mut shard = self.shared.shard_of(&name).lock_idle(&name);
        self.shared.remove(&mut shard, &name)?.ok_or(FileError::Unknown)
    }

    /// The files that are queued for writing, with the number of values queued for each.
    pub fn queue(&self) -> Vec<(u64, String)> {
        let names: Vec<Box<str>> = lock(&self.shared.due).names.iter().cloned().collect();
        let queued = names.into_iter().map(|name| {
            let shard = self.shared.shard_of(&name).lock();
            let count = shard.entries.get(&name).map_or(0, entry::Entry::queued);
            (count, self.shared.base.display_path(&name))
        });
        queued.collect()
    }

    /// Suspends writes to a file. `Ok(false)` if it was suspended already.
    ///
    /// # Errors
    /// [`FileError::Unknown`] if the cache does not know the file.
    pub fn suspend(&self, file: &str) -> FileResult<bool> {
        let name = self.shared.base.name(file)?;
        let mut shard = self.shared.shard_of(&name).lock_idle(&name);
        let entry = shard.entries.get_mut(&name).ok_or(FileError::Unknown)?;
        Ok(!std::mem::replace(&mut entry.is_suspended, true))
    }

    /// Resumes writes to a file. `Ok(false)` if it was not suspended.
    ///
    /// # Errors
    /// As [`FileCache::suspend`].
    pub fn resume(&self, file: &str) -> FileResult<bool> {
        let name = self.shared.base.name(file)?;
        let mut shard = self.shared.shard_of(&name).lock();
        let entry = shard.entries.get_mut(&name).ok_or(FileError::Unknown)?;
        Ok(self.resume_entry(entry))
    }

    fn resume_entry(&self, entry: &mut entry::Entry) -> bool {
        let was_suspended = std::mem::replace(&mut entry.is_suspended, false);
        if was_suspended && self.shared.clock.now() >= entry.due_ns {
            self.shared.queue(entry);
        }
        was_suspended
    }

    /// Suspends all known files. Returns how many were not suspended before.
    pub fn suspend_all(&self) -> usize {
        let shards = self.shared.shards().iter();
        let counts = shards.map(|shard_mutex| {
            let mut shard = shard_mutex.lock();
            let entries = shard.entries.iter_mut();
            let new = entries.filter_map(|entry| (!std::mem::replace(&mut entry.is_suspended, true)).then_some(()));
            new.count()
        });
        counts.sum()
    }

    /// Resumes all suspended files. Returns their number.
    pub fn resume_all(&self) -> usize {
        let shards = self.shared.shards().iter();
        let counts = shards.map(|shard_mutex| {
            let mut shard = shard_mutex.lock();
            let entries = shard.entries.iter_mut();
            entries
                .filter_map(|entry| self.resume_entry(entry).then_some(()))
                .count()
        });
        counts.sum()
    }

    /// The cache's counters.
    pub fn stats(&self) -> FileCacheStats {
        let counters = &self.shared.counters;
        // Before the counters: a pass that is in the account is also in `updates_written`, so that
        // values per pass are never too many.
        let account = self.shared.account();
        let journal = self.shared.journal.as_ref();
        FileCacheStats {
            queued: lock(&self.shared.due).names.len() as u64,
            updates_received: counters.updates_received.load(Ordering::Relaxed),
            flushes_received: counters.flushes_received.load(Ordering::Relaxed),
            updates_written: counters.updates_written.load(Ordering::Relaxed),
            files: self.shared.files() as u64,
            journal_bytes: journal.map_or(0, Journal::journaled_bytes),
            values_rejected: counters.values_rejected.load(Ordering::Relaxed),
            write_failures: counters.write_failures.load(Ordering::Relaxed),
            account,
        }
    }

    /// The damage found in the journal, the checkpoint and the files.
    pub fn damage(&self) -> Vec<Damage> {
        let journal = self.shared.journal.as_ref().map(Journal::damage);
        let checkpoint = self.shared.head_cache.as_ref().map(head_cache::HeadCache::damage);
        let files = std::iter::once(self.shared.damage.list());
        journal.into_iter().chain(checkpoint).chain(files).flatten().collect()
    }

    /// Writes all queued updates, those of suspended files included; with a journal, also syncs
    /// them. A second call does nothing.
    ///
    /// # Errors
    /// [`Error::Backend`] if something could not be written. It is lost, unless a journal holds
    /// it for the next opening.
    pub fn close(&self) -> Result<()> {
        if !self.shared.begin_close() {
            return Ok(());
        }
        self.stop_threads();
        let left = self.write_all();
        let synced = self
            .shared
            .journal
            .as_ref()
            .map_or(Ok(()), |journal| checkpoint_journal(&*self.shared, journal));
        if let Some(journal) = &self.shared.journal {
            journal.release();
        }
        synced?;
        self.shared.save_checkpoint()?;
        match left {
            None => Ok(()),
            Some(error) => Err(Error::Backend {
                action: format!("write {} values that wait", self.shared.account().pending),
                source: error.into(),
            }),
        }
    }

    /// Writes all queues. Returns the first error.
    fn write_all(&self) -> Option<FileError> {
        let (mut session, mut ahead) = (Session::default(), ReadAhead::default());
        self.resume_all();
        let mut first = None;
        for shard_mutex in self.shared.shards() {
            let names: Vec<Box<str>> = {
                let shard = shard_mutex.lock();
                let waiting = shard.entries.iter().filter(|entry| entry.queued() > 0);
                waiting.map(|entry| entry.name.clone()).collect()
            };
            self.shared
                .write_files(&names, (&mut session, &mut ahead), None, |name, written| {
                    if let Err(error) = written.and_then(|_| self.shared.report(name)) {
                        first.get_or_insert(error);
                    }
                });
        }
        first
    }

    fn stop_threads(&self) {
        self.shared.stop();
        for thread in std::mem::take(&mut *lock(&self.threads)) {
            // If the thread panicked, the values it had taken stay counted as pending.
            let _ = thread.join();
        }
    }
}

impl Drop for FileCache {
    fn drop(&mut self) {
        self.stop_threads();
    }
}
