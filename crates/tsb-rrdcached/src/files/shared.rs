//! State shared by the callers and threads of a cache of files: admission, bounds, durability
//! levels.

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use foldhash::fast::FixedState;
use tsb_core::time::Clock;
use tsb_core::{SeriesId, SeriesKey};
use tsb_rrd::{CachedPages, Layout, Moment, RrdFile, Session};

use super::FileBounds;
use super::base::BaseFolder;
use super::entries::hash_of;
use super::entry::Entry;
use super::error::{FileError, FileResult};
use super::head_cache::HeadCache;
use super::librrd;
use super::page_writeback::PageWritebackQueue;
use super::shard::{Shard, ShardMutex};
use tsb_stores::error::{Error, chain};
use tsb_stores::parts::{CountedCondvar, lock};
use tsb_stores::write_cache::Account;
use tsb_stores::write_cache::WriteCacheOptions;
use tsb_stores::write_cache::writeback::Unsynced;
use tsb_stores::write_cache::writeback::{Journal, OpenedJournal};
use tsb_stores::{Damage, DamageKind, DamageLog};

/// Number of shards over which the files are spread.
pub(super) const SHARDS: usize = 16;
/// Number of files whose heads are written to a checkpoint under one lock.
const HEADS_PER_LOCK: usize = 64;
/// Nanoseconds after which the system writes dirty pages by itself (`vm.dirty_expire_centisecs`).
/// If files are drained less often than this, every drain is written to the disk anyway, and
/// starting the writeback at once writes no page twice.
const DIRTY_EXPIRE_NS: u64 = 30_000_000_000;
/// Number of distinct layouts that are shared between files.
const LAYOUTS: usize = 64;

/// The shard of a name's hash. Uses bits that the shard's hash table does not use.
pub(super) fn shard_of_hash(hash: u64) -> usize {
    (hash >> 40) as usize % SHARDS
}

/// The whole cache except its threads.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) base: BaseFolder,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) journal: Option<Journal>,
    /// The kept heads of files, if the cache keeps any.
    pub(super) head_cache: Option<HeadCache>,
    /// Files that were found damaged or missing.
    pub(super) damage: DamageLog,
    pub(super) counters: CacheCounters,
    pub(super) due: Mutex<Due>,
    /// The writeback queue of drained files, if writeback is started early.
    pub(super) page_writeback: Option<PageWritebackQueue>,
    /// Wakes the threads that write.
    pub(super) work_available: CountedCondvar,
    /// Wakes the timer thread when the cache stops.
    pub(super) stopping: Condvar,
    /// Updates that the files have and no sync has covered yet; the next checkpoint marks them in
    /// the journal.
    pub(super) unsynced: Unsynced<Arc<SeriesKey>>,
    pub(super) has_failed_writes: AtomicBool,
    shards: Vec<ShardMutex>,
    hash: FixedState,
    layouts: Mutex<Vec<Arc<Layout>>>,
    poison: Mutex<Option<String>>,
    is_closed: AtomicBool,
    /// Whether nothing more is accepted: the cache is closed or poisoned.
    pub(super) refuses_updates: AtomicBool,
    next_id: AtomicU32,
    pub(super) bytes: AtomicU64,
    files: AtomicUsize,
    timeout_ns: u64,
    jitter_ns: u64,
    pub(super) max_bytes: u64,
    pub(super) bounds: FileBounds,
}

/// The head of a file, as needed to check updates.
#[derive(Debug)]
struct FileHead {
    layout: Arc<Layout>,
    /// The time of the newest update.
    newest: Moment,
    /// Our own engine cannot handle the file.
    is_for_librrd: bool,
}

/// The files queued for writing.
#[derive(Debug, Default)]
pub(super) struct Due {
    pub(super) names: VecDeque<Box<str>>,
    pub(super) is_stopping: bool,
}

/// The counters behind `STATS`.
#[derive(Debug, Default)]
pub(super) struct CacheCounters {
    pub(super) updates_received: AtomicU64,
    pub(super) flushes_received: AtomicU64,
    pub(super) updates_written: AtomicU64,
    pub(super) write_failures: AtomicU64,
    /// Number of values given to the journal since the cache was opened.
    pub(super) journaled_values: AtomicU64,
    pub(super) values_rejected: AtomicU64,
}

impl Shared {
    pub(super) fn new(
        base: BaseFolder,
        options: &WriteCacheOptions,
        bounds: FileBounds,
        clock: Arc<dyn Clock>,
        opened: Option<OpenedJournal>,
        head_cache: Option<HeadCache>,
    ) -> (Self, tsb_stores::write_cache::writeback::ReplayedUpdates) {
        let (journal, held) = match opened {
            None => (None, tsb_stores::write_cache::writeback::ReplayedUpdates::default()),
            Some(opened) => (Some(opened.journal), opened.updates),
        };
        let shared = Self {
            base,
            clock,
            journal,
            head_cache,
            damage: DamageLog::new(),
            counters: CacheCounters::default(),
            due: Mutex::default(),
            page_writeback: (options.timeout_ns >= DIRTY_EXPIRE_NS).then(PageWritebackQueue::default),
            work_available: CountedCondvar::default(),
            stopping: Condvar::new(),
            unsynced: Unsynced::default(),
            has_failed_writes: AtomicBool::new(false),
            shards: (0..SHARDS).map(|_| ShardMutex::default()).collect(),
            hash: FixedState::default(),
            layouts: Mutex::default(),
            poison: Mutex::default(),
            is_closed: AtomicBool::new(false),
            refuses_updates: AtomicBool::new(false),
            next_id: AtomicU32::new(0),
            bytes: AtomicU64::new(0),
            files: AtomicUsize::new(0),
            timeout_ns: options.timeout_ns,
            jitter_ns: options.jitter_ns,
            max_bytes: options.max_bytes,
            bounds,
        };
        (shared, held)
    }

    pub(super) fn shards(&self) -> &[ShardMutex] {
        &self.shards
    }

    pub(super) fn shard_of(&self, name: &str) -> &ShardMutex {
        &self.shards[shard_of_hash(hash_of(name))]
    }

    /// A pseudo-random number; it selects the first row of each archive in a new file.
    pub(super) fn seed_of(&self, name: &str) -> u64 {
        self.hash.hash_one((name, self.clock.wall().0))
    }

    pub(super) fn check_open(&self) -> FileResult<()> {
        if !self.refuses_updates.load(Ordering::Acquire) {
            return Ok(());
        }
        if self.is_closed.load(Ordering::Acquire) {
            return Err(FileError::Closed);
        }
        match &*lock(&self.poison) {
            Some(cause) => Err(FileError::Poisoned(cause.clone())),
            None => Ok(()),
        }
    }

    /// Marks the cache as closed. Returns whether it was open before.
    pub(super) fn begin_close(&self) -> bool {
        let was_closed = self.is_closed.swap(true, Ordering::AcqRel);
        self.refuses_updates.store(true, Ordering::Release);
        !was_closed
    }

    /// Stops accepting updates because the journal failed. Returns the first failure.
    pub(super) fn poison(&self, error: &Error) -> FileError {
        let cause = chain(error);
        let cause = lock(&self.poison).get_or_insert(cause).clone();
        self.refuses_updates.store(true, Ordering::Release);
        FileError::Poisoned(cause)
    }

    /// Counts memory as freed.
    pub(super) fn release(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn hold(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    pub(super) fn is_half_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= self.max_bytes / 2
    }

    /// Whether entries may keep the allocation of written text for the next updates.
    pub(super) fn has_room_to_keep(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) < self.max_bytes / 4
    }

    /// Returns when everything accepted is in the system's buffers, so that it outlives a kill.
    pub(super) fn write_buffered_records(&self) -> FileResult<()> {
        match &self.journal {
            Some(journal) => journal.write_buffered_records().map_err(|error| self.poison(&error)),
            None => Ok(()),
        }
    }

    /// Returns when updates up to `record` may be acknowledged.
    pub(super) fn confirm(&self, record: u64) -> FileResult<()> {
        match &self.journal {
            Some(journal) => journal.confirm(record).map_err(|error| self.poison(&error)),
            None => Ok(()),
        }
    }

    /// Adds an entry for a file that has none, after reading its head.
    pub(super) fn admit(&self, name: &str, session: &mut Session) -> FileResult<()> {
        let file = self.base.check_file(name)?;
        let shard_mutex = self.shard_of(name);
        let claim = {
            let mut shard = shard_mutex.lock_idle(name);
            if shard.entries.get(name).is_some() {
                return Ok(());
            }
            shard_mutex.claim(&mut shard, name)
        };
        if self.files.load(Ordering::Relaxed) >= self.bounds.files {
            return Err(FileError::TooMany {
                file: self.base.display_path(name),
                limit: self.bounds.files,
            });
        }
        let known = self
            .head_cache
            .as_ref()
            .and_then(|head_cache| head_cache.wake(name, &file));
        let header = known.as_ref().and_then(|known| self.header_of(known, session));
        let is_known = header.is_some();
        let found = match header {
            Some((layout, newest)) => FileHead {
                layout,
                newest,
                is_for_librrd: false,
            },
            None => self.head_of(name, session)?,
        };
        let known = known.filter(|_| is_known);
        let id = SeriesId(self.next_id.fetch_add(1, Ordering::Relaxed));
        let mut entry = Entry::new(id, name, found.layout, found.newest, self.clock.now());
        entry.due_ns = self.next_due(&entry);
        let known = self.head_cache.as_ref().and_then(|head_cache| head_cache.hold(known));
        entry.known = known.map(Box::new);
        entry.is_for_librrd = found.is_for_librrd;
        shard_mutex.lock().entries.insert(entry);
        self.files.fetch_add(1, Ordering::Relaxed);
        drop(claim);
        Ok(())
    }

    /// Reads again a file that was damaged or missing: it may have been replaced.
    ///
    /// # Errors
    /// What is wrong with it; then nothing has changed.
    pub(super) fn recheck(&self, name: &str, session: &mut Session) -> FileResult<()> {
        self.base.check_file(name)?;
        let shard_mutex = self.shard_of(name);
        let claim = shard_mutex.claim(&mut shard_mutex.lock_idle(name), name);
        let found = self.head_of(name, session)?;
        if let Some(entry) = shard_mutex.lock().entries.get_mut(name) {
            // Queued updates are older than those to come, and are checked again when they are
            // written.
            entry.newest = if entry.pending() == 0 {
                found.newest
            } else {
                entry.newest.max(found.newest)
            };
            entry.layout = found.layout;
            entry.is_for_librrd = found.is_for_librrd;
            entry.is_damaged = false;
        }
        drop(claim);
        Ok(())
    }

    /// Reads the head of a file, by our own engine or by librrd. The caller holds the claim.
    fn head_of(&self, name: &str, session: &mut Session) -> FileResult<FileHead> {
        let path = self.base.path(name);
        let mut is_for_librrd = false;
        let found = match RrdFile::open(&path) {
            Ok(file) => file.newest(session).map(|newest| (Arc::clone(file.layout()), newest)),
            Err(error) if librrd::is_for_librrd(&error) => {
                is_for_librrd = true;
                librrd::layout(&path).map(|(layout, newest)| (Arc::new(layout), newest))
            }
            Err(error) => Err(error),
        };
        let (layout, newest) = found.map_err(|error| {
            if let tsb_rrd::Error::Damaged { .. } = error.cause() {
                self.note_damage(name, error.cause().to_string());
            }
            self.rrd_error(name, error)
        })?;
        Ok(FileHead {
            layout: self.interned(layout),
            newest,
            is_for_librrd,
        })
    }

    /// Notes that a file cannot take its queued values, which are lost.
    pub(super) fn note_loss(&self, name: &str, why: &str, values: u64) {
        self.note_damage(name, format!("{why}; {values} value(s) that waited for it are lost"));
    }

    fn note_damage(&self, name: &str, what: String) {
        let path = self.base.path(name);
        let is_gone = matches!(path.try_exists(), Ok(false));
        let kind = if is_gone {
            DamageKind::Missing
        } else {
            DamageKind::Unreadable
        };
        self.damage.note(Damage::new(kind, path, what));
    }

    /// Translates an error of the engine into one of the protocol.
    pub(super) fn rrd_error(&self, name: &str, error: tsb_rrd::Error) -> FileError {
        match error {
            tsb_rrd::Error::File { source, .. } => self.rrd_error(name, *source),
            tsb_rrd::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                FileError::Missing(self.base.display_path(name))
            }
            source => FileError::Rrd {
                file: self.base.display_path(name),
                source,
            },
        }
    }

    /// Decodes the head from the kept pages of a file.
    fn header_of(&self, known: &CachedPages, session: &mut Session) -> Option<(Arc<Layout>, Moment)> {
        let as_others = |layout: &Arc<Layout>| Some((Arc::clone(layout), known.newest_for(layout, session)?));
        let found = lock(&self.layouts).iter().find_map(as_others);
        found.or_else(|| known.header().ok().map(|(layout, newest)| (Arc::new(layout), newest)))
    }

    /// Returns the shared copy of a layout.
    pub(super) fn interned(&self, layout: Arc<Layout>) -> Arc<Layout> {
        let mut layouts = lock(&self.layouts);
        let is_same = |known: &&Arc<Layout>| Arc::ptr_eq(known, &layout) || **known == layout;
        if let Some(known) = layouts.iter().find(is_same) {
            return Arc::clone(known);
        }
        if layouts.len() < LAYOUTS {
            layouts.push(Arc::clone(&layout));
        }
        layout
    }

    /// The due time of a file that is written now.
    pub(super) fn next_due(&self, entry: &Entry) -> u64 {
        let now_ns = self.clock.now();
        let jitter_ns = match self.jitter_ns {
            0 => 0,
            jitter_ns => self.hash.hash_one((entry.id.0, now_ns)) % jitter_ns,
        };
        now_ns.saturating_add(self.timeout_ns).saturating_add(jitter_ns)
    }

    /// Makes the threads end.
    pub(super) fn stop(&self) {
        lock(&self.due).is_stopping = true;
        self.work_available.notify_all();
        self.stopping.notify_all();
        if let Some(page_writeback) = &self.page_writeback {
            page_writeback.stop();
        }
    }

    /// Queues a file for writing, unless its queue is empty or it is suspended.
    pub(super) fn queue(&self, entry: &mut Entry) {
        if entry.is_queued || entry.is_suspended || entry.queued() == 0 {
            return;
        }
        entry.is_queued = true;
        lock(&self.due).names.push_back(entry.name.clone());
        self.work_available.notify_one();
    }

    /// Queues for writing the files past their timeout, or all.
    pub(super) fn queue_due(&self, everything: bool) {
        let now_ns = self.clock.now();
        self.queue_each(|entry| everything || now_ns >= entry.due_ns);
    }

    /// Queues for writing the files for which `is_due` returns true.
    pub(super) fn queue_each(&self, is_due: impl Fn(&Entry) -> bool) {
        for shard_mutex in &self.shards {
            for entry in shard_mutex.lock().entries.iter_mut() {
                if is_due(entry) {
                    self.queue(entry);
                }
            }
        }
    }

    /// Removes entries that have been idle since `before_ns`.
    pub(super) fn forget_idle(&self, before_ns: u64) {
        for shard_mutex in &self.shards {
            let shard = &mut *shard_mutex.lock();
            let count = shard.entries.len();
            let Shard { entries, busy, .. } = shard;
            let is_idle =
                |entry: &Entry| entry.is_idle() && entry.written_ns < before_ns && !busy.contains(&entry.name);
            for entry in entries.take_if(is_idle) {
                self.release(entry.bytes());
                self.put_away(entry);
            }
            self.files.fetch_sub(count - shard.entries.len(), Ordering::Relaxed);
        }
    }

    /// Removes a file's entry. Returns the number of values queued for it; `None` if it had no
    /// entry.
    pub(super) fn remove(&self, shard: &mut Shard, name: &str) -> FileResult<Option<u64>> {
        let Some(entry) = shard.entries.remove(name) else {
            return Ok(None);
        };
        self.files.fetch_sub(1, Ordering::Relaxed);
        let dropped = entry.queued();
        self.release(entry.bytes());
        shard.account.pending -= dropped;
        shard.account.forgotten += dropped;
        let (id, last_record, key) = (entry.id, entry.last_record(), Arc::clone(&entry.key));
        self.put_away(entry);
        if let Some(journal) = &self.journal
            && dropped > 0
        {
            let forgot = journal.mark_forgotten(id, last_record, &key);
            forgot.map_err(|error| self.poison(&error))?;
        }
        Ok(Some(dropped))
    }

    /// Keeps the head of a file that loses its entry. The file's stamp shows later whether the
    /// head is still valid.
    fn put_away(&self, entry: Entry) {
        if let Some(head_cache) = &self.head_cache {
            let known = head_cache.take(entry.known.map(|known| *known));
            head_cache.put_away(entry.name, known);
        }
    }

    /// Counts of values by outcome.
    pub(super) fn account(&self) -> Account {
        let accounts = self.shards.iter().map(|shard_mutex| shard_mutex.lock().account);
        accounts.fold(Account::default(), |sum, account| sum.plus(&account))
    }

    pub(super) fn files(&self) -> usize {
        self.files.load(Ordering::Relaxed)
    }

    /// Writes a checkpoint of the kept heads, if the cache has one.
    pub(super) fn save_checkpoint(&self) -> Result<(), Error> {
        let Some(head_cache) = &self.head_cache else {
            return Ok(());
        };
        head_cache.save(&self.base, |records| {
            for shard_mutex in &self.shards {
                let names: Vec<Box<str>> = shard_mutex
                    .lock()
                    .entries
                    .iter()
                    .map(|entry| entry.name.clone())
                    .collect();
                for names in names.chunks(HEADS_PER_LOCK) {
                    let shard = shard_mutex.lock();
                    // A file that is being written has no known head until the write ends.
                    let mut known = names
                        .iter()
                        .filter_map(|name| Some((name, shard.entries.get(name)?.known.as_deref()?)));
                    known.try_for_each(|(name, known)| records.write(name, known))?;
                }
            }
            Ok(())
        })
    }

    /// Queues updates of one file from the journal of an earlier run; they are due at once.
    pub(super) fn replay(&self, key: &SeriesKey, updates: Vec<(u64, String)>) {
        let name = key.name();
        let count = updates.len() as u64;
        let admitted = self
            .base
            .name(name)
            .and_then(|name| self.admit(&name, &mut Session::default()));
        let why_not = admitted.as_ref().err().map(ToString::to_string);
        let mut shard = self.shard_of(name).lock();
        shard.account.replayed += count;
        let Shard { entries, account, .. } = &mut *shard;
        let (Ok(()), Some(entry)) = (admitted, entries.get_mut(name)) else {
            // The file is damaged or missing, so its updates are lost.
            account.failed += count;
            self.note_loss(name, &why_not.unwrap_or_else(|| "the file is gone".to_owned()), count);
            return;
        };
        for (record, update) in updates {
            match tsb_rrd::check(&entry.layout, &update) {
                Ok(at) if at > entry.newest => {
                    entry.newest = at;
                    self.push(entry, &update);
                    entry.count_queued(1, record);
                    account.pending += 1;
                }
                // The file has it already.
                Ok(_) => account.written += 1,
                Err(_) => account.failed += 1,
            }
        }
        self.queue(entry);
    }
}
