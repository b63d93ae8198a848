//! rrdcached's cache itself: queues of readings for RRD files of any layout.
//!
//! Where [`WriteCache`](tsb_stores::write_cache::WriteCache) has series and numbers, this has files and text:
//! a client of rrdcached's protocol names files that somebody has created, with several data
//! sources, and librrd's rules begin at the decimal digits. Both keep the same promises with
//! the same journal: a reading that the file would refuse is refused when it arrives, what
//! cannot be written now is kept and tried again, a flush that did not write everything is an
//! error, one thread at a time has a file open, memory is bounded, and
//! `accepted + replayed == written + pending + forgotten + failed` at every moment.
//!
//! Nothing outside the base folder is touched, nor anything behind a symbolic link. It
//! assumes that a file has one name: of two hard links to one file each has its own queue.
//! It is *not* a [`Store`](tsb_stores::Store): it has no series.

use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tsb_core::Durability;
use tsb_core::time::Clock;
use tsb_rrd::{Ahead, Session};

use tsb_stores::Damage;
use tsb_stores::OwnThreads;
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::lock;
use tsb_stores::rrd::FILE_BYTES_MAX;
use tsb_stores::write_cache::Account;
use tsb_stores::write_cache::Medium;
use tsb_stores::write_cache::writeback::checkpoint;
use tsb_stores::write_cache::writeback::invalid;
use tsb_stores::write_cache::writeback::{Journal, Opened};
use tsb_stores::write_cache::{Sync, WriteCacheOptions};

mod accept;
mod ahead;
mod base;
mod conversation;
mod create;
mod drain;
mod entries;
mod entry;
mod error;
mod keeper;
mod known;
mod librrd;
mod outlet;
mod read;
mod shared;
mod shelf;
mod tune;

pub use accept::Taken;
pub use conversation::Conversation;
pub use error::FileError;

use accept::{PlainTaken, PlainUpdate};
pub use base::FileSystem;
use base::{Base, System};
use shared::Shared;

/// Values that one `FETCH` may ask for.
const FETCH_MAX: usize = 1_000_000;

/// Most that clients of a cache may make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileBounds {
    /// Files that are known at a time.
    pub files: usize,
    /// Bytes of a file that `CREATE` makes.
    pub file_bytes: u64,
}

impl FileBounds {
    /// At most `files` files, of at most [`FILE_BYTES_MAX`] each.
    pub const fn of_files(files: usize) -> Self {
        Self {
            files,
            file_bytes: FILE_BYTES_MAX,
        }
    }
}

/// Queues before the RRD files of a folder.
#[derive(Debug)]
pub struct FileCache {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Locked while a large file is created: one at a time.
    creating: Mutex<()>,
}

/// What `STATS` says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileCacheStats {
    /// Files that are to be written.
    pub queued: u64,
    /// Commands to update that came, the refused ones too.
    pub updates_received: u64,
    /// Commands to flush that came.
    pub flushes_received: u64,
    /// Passes over a file that wrote something.
    pub updates_written: u64,
    /// Files for which something waits, or has waited not long ago.
    pub files: u64,
    /// Bytes that the journal was given.
    pub journal_bytes: u64,
    /// Values that were refused, or came behind one that was.
    pub values_rejected: u64,
    /// Passes that could not write everything.
    pub write_failures: u64,
    /// What has become of every value.
    pub account: Account,
}

impl FileCache {
    /// A cache of the files below `folder`, within `bounds`, in the time of `clock`. What a journal holds of an earlier life waits again, and is due at once.
    ///
    /// # Errors
    /// [`Error::Spec`] for options that cannot be, and for a journal of something else;
    /// [`Error::Backend`] or [`Error::Corrupt`] for folder and journal.
    pub fn open(folder: &Path, bounds: FileBounds, options: &WriteCacheOptions, clock: Arc<dyn Clock>) -> Result<Self> {
        let opened = options.journal.as_ref().map(Journal::open).transpose()?;
        Self::with_journal(folder, bounds, options, clock, opened, Box::new(System))
    }

    /// The same with a journal on a medium and files on a system of the caller's, for tests
    /// that cut the power.
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
        let opened = tsb_stores::write_cache::writeback::opened_on(options, medium)?;
        Self::with_journal(folder, bounds, options, clock, Some(opened), system)
    }

    fn with_journal(
        folder: &Path,
        bounds: FileBounds,
        options: &WriteCacheOptions,
        clock: Arc<dyn Clock>,
        opened: Option<Opened>,
        system: Box<dyn FileSystem>,
    ) -> Result<Self> {
        options.check()?;
        if opened.as_ref().is_some_and(Opened::has_samples) {
            return Err(invalid(
                "a journal with samples of series, which write-cache+X: replays".to_owned(),
            ));
        }
        let base = Base::open(folder, system).map_err(|source| Error::Backend {
            action: format!("open the folder {}", folder.display()),
            source: source.into(),
        })?;
        let memory = options.checkpoint.as_ref().map(known::Memory::open).transpose()?;
        let (shared, held) = Shared::new(base, options, bounds, clock, opened, memory);
        let shared = Arc::new(shared);
        for (key, readings) in held {
            shared.replay(&key, readings);
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
        if self.shared.outlet.is_some() {
            let shared = Arc::clone(&self.shared);
            threads.push(tsb_stores::write_cache::writeback::spawn(
                &own,
                "tsb-cache-out",
                move || shared.let_out(),
            )?);
        }
        Ok(())
    }

    /// The folder, without symbolic links.
    pub fn folder(&self) -> &Path {
        self.shared.base.root()
    }

    /// What an acknowledged reading has reached.
    pub fn acknowledges(&self) -> Durability {
        match self.shared.journal.as_ref().map(Journal::policy) {
            None => Durability::Volatile,
            Some(Sync::None | Sync::Interval(_)) => Durability::Buffered,
            Some(Sync::Group | Sync::Each) => Durability::Synced,
        }
    }

    /// Accepts readings for a file, each `time:value[:value...]`, up to the first that the
    /// file would refuse. They may be acknowledged when [`FileCache::confirm`] has returned.
    ///
    /// # Errors
    /// [`FileError`] where nothing was accepted; a refused reading is in [`Taken::refused`].
    pub fn update<'a>(
        &self,
        file: &str,
        readings: impl Iterator<Item = Cow<'a, str>>,
        session: &mut Session,
    ) -> std::result::Result<Taken, FileError> {
        let counters = &self.shared.counters;
        counters.updates_received.fetch_add(1, Ordering::Relaxed);
        let name = self.shared.base.name(file)?;
        self.shared.update(&name, readings, session)
    }

    /// An update with the name of its file, if that is written as one. Looks at no file.
    fn plain_update<'a>(&self, file: &'a str, reading: &'a str) -> Option<PlainUpdate<'a>> {
        match self.shared.base.name(file) {
            Ok(Cow::Borrowed(name)) => Some(PlainUpdate::new(name, reading)),
            _ => None,
        }
    }

    /// Accepts a reading as [`FileCache::update`] does, if it is one as nearly all are.
    /// `None`: nothing has happened.
    fn take_plain(&self, update: PlainUpdate<'_>, now_ns: u64) -> Option<PlainTaken> {
        let taken = self.shared.take_plain(update, now_ns)?;
        self.shared.counters.updates_received.fetch_add(1, Ordering::Relaxed);
        Some(taken)
    }

    /// Nanoseconds on the clock of the cache.
    fn now_ns(&self) -> u64 {
        self.shared.clock.now()
    }

    /// These updates come next. Looking at all their files first costs less than meeting
    /// one after the other: what is not in the processor's cache is on its way for all at once.
    fn expect<'a>(&self, updates: impl Iterator<Item = PlainUpdate<'a>>) {
        self.shared.expect(updates);
    }

    /// Returns when the readings up to a record have the level of [`FileCache::acknowledges`].
    ///
    /// # Errors
    /// [`FileError::Poisoned`].
    pub fn confirm(&self, record: u64) -> std::result::Result<(), FileError> {
        self.shared.confirm(record)
    }

    /// Writes what waits for a file; `Ok(false)`: nothing does, and nothing is known of it but
    /// that it is there.
    ///
    /// # Errors
    /// [`FileError`] where not all that was accepted since the last flush is in the file.
    pub fn flush(&self, file: &str, session: &mut Session) -> std::result::Result<bool, FileError> {
        let name = self.shared.base.name(file)?;
        self.shared.flush(&name, session)
    }

    /// Has all files written, and returns before they are.
    pub fn start_drain(&self) {
        self.shared.queue_due(true);
    }

    /// Waits until all that was written to the files is on the medium.
    ///
    /// # Errors
    /// [`Error::Backend`].
    pub fn sync_files(&self) -> Result<()> {
        self.shared.base.sync()
    }

    /// What waits for a file, in order.
    ///
    /// # Errors
    /// [`FileError::Outside`].
    pub fn pending(&self, file: &str) -> std::result::Result<Vec<String>, FileError> {
        let name = self.shared.base.name(file)?;
        let shelf = self.shared.shelf_of(&name).lock_idle(&name);
        let entry = shelf.entries.get(&name);
        Ok(entry.map_or_else(Vec::new, |entry| entry.lines().map(str::to_owned).collect()))
    }

    /// Drops what waits for a file; how many values.
    ///
    /// # Errors
    /// [`FileError::Unknown`] where nothing waits and nothing has.
    pub fn forget(&self, file: &str) -> std::result::Result<u64, FileError> {
        let name = self.shared.base.name(file)?;
        let mut shelf = self.shared.shelf_of(&name).lock_idle(&name);
        self.shared.remove(&mut shelf, &name)?.ok_or(FileError::Unknown)
    }

    /// Files that are to be written, each with how many values wait for it.
    pub fn queue(&self) -> Vec<(u64, String)> {
        let names: Vec<Box<str>> = lock(&self.shared.due).names.iter().cloned().collect();
        let queued = names.into_iter().map(|name| {
            let shelf = self.shared.shelf_of(&name).lock();
            let count = shelf.entries.get(&name).map_or(0, entry::Entry::waiting);
            (count, self.shared.base.shown(&name))
        });
        queued.collect()
    }

    /// Holds back what is to be written to a file. `Ok(false)`: it was so already.
    ///
    /// # Errors
    /// [`FileError::Unknown`] where nothing waits for it and nothing has.
    pub fn suspend(&self, file: &str) -> std::result::Result<bool, FileError> {
        let name = self.shared.base.name(file)?;
        let mut shelf = self.shared.shelf_of(&name).lock_idle(&name);
        let entry = shelf.entries.get_mut(&name).ok_or(FileError::Unknown)?;
        Ok(!std::mem::replace(&mut entry.is_suspended, true))
    }

    /// Writes to a file again. `Ok(false)`: it was not held back.
    ///
    /// # Errors
    /// As [`FileCache::suspend`].
    pub fn resume(&self, file: &str) -> std::result::Result<bool, FileError> {
        let name = self.shared.base.name(file)?;
        let mut shelf = self.shared.shelf_of(&name).lock();
        let entry = shelf.entries.get_mut(&name).ok_or(FileError::Unknown)?;
        Ok(self.resume_entry(entry))
    }

    fn resume_entry(&self, entry: &mut entry::Entry) -> bool {
        let was_suspended = std::mem::replace(&mut entry.is_suspended, false);
        if was_suspended && self.shared.clock.now() >= entry.due_ns {
            self.shared.queue(entry);
        }
        was_suspended
    }

    /// Suspends every file that is known; how many were not before.
    pub fn suspend_all(&self) -> usize {
        let shelves = self.shared.shelves().iter();
        let counts = shelves.map(|shelved| {
            let mut shelf = shelved.lock();
            let entries = shelf.entries.iter_mut();
            let new = entries.filter_map(|entry| (!std::mem::replace(&mut entry.is_suspended, true)).then_some(()));
            new.count()
        });
        counts.sum()
    }

    /// Resumes every file that is suspended; how many.
    pub fn resume_all(&self) -> usize {
        let shelves = self.shared.shelves().iter();
        let counts = shelves.map(|shelved| {
            let mut shelf = shelved.lock();
            let entries = shelf.entries.iter_mut();
            entries
                .filter_map(|entry| self.resume_entry(entry).then_some(()))
                .count()
        });
        counts.sum()
    }

    /// What was counted.
    pub fn stats(&self) -> FileCacheStats {
        let counters = &self.shared.counters;
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
            account: self.shared.account(),
        }
    }

    /// What was found damaged of the journal, the checkpoint and the files.
    pub fn damage(&self) -> Vec<Damage> {
        let journal = self.shared.journal.as_ref().map(Journal::damage);
        let checkpoint = self.shared.memory.as_ref().map(known::Memory::damage);
        let files = std::iter::once(self.shared.damage.list());
        journal.into_iter().chain(checkpoint).chain(files).flatten().collect()
    }

    /// Writes all that waits, suspended files included, and has it synced where there is a
    /// journal. Closing twice is closing once.
    ///
    /// # Errors
    /// [`Error::Backend`] where something could not be written: it is lost, unless a journal
    /// holds it for the next life.
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
            .map_or(Ok(()), |journal| checkpoint(&*self.shared, journal));
        if let Some(journal) = &self.shared.journal {
            journal.release();
        }
        synced?;
        self.shared.remember()?;
        match left {
            None => Ok(()),
            Some(error) => Err(Error::Backend {
                action: format!("write {} values that wait", self.shared.account().pending),
                source: error.into(),
            }),
        }
    }

    /// The first reason why not everything could be written.
    fn write_all(&self) -> Option<FileError> {
        let (mut session, mut ahead) = (Session::default(), Ahead::default());
        self.resume_all();
        let mut first = None;
        for shelved in self.shared.shelves() {
            let names: Vec<Box<str>> = {
                let shelf = shelved.lock();
                let waiting = shelf.entries.iter().filter(|entry| entry.waiting() > 0);
                waiting.map(|entry| entry.name.clone()).collect()
            };
            self.shared
                .write_some(&names, (&mut session, &mut ahead), None, |name, written| {
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
            // A panic there has left its values counted as pending.
            let _ = thread.join();
        }
    }
}

impl Drop for FileCache {
    fn drop(&mut self) {
        self.stop_threads();
    }
}
