//! Accepts a client's updates: checks them against the file's layout, queues them and journals
//! them.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use tsb_rrd::{Moment, Session};

use super::entries::hash_of;
use super::entry::{Entry, NO_RECORD};
use super::error::{FileError, FileResult};
use super::shared::{SHARDS, Shared, shard_of_hash};
use tsb_stores::write_cache::Account;

/// Number of updates whose entries are prefetched together.
pub(super) const PREFETCH_MAX: usize = 32;

/// The outcome of an update command.
#[derive(Debug, Default)]
pub struct UpdateOutcome {
    /// Number of values accepted; those after a refused one are not.
    pub values: usize,
    /// The journal record that holds them: they may be acknowledged only after it is confirmed.
    pub record: Option<u64>,
    /// Why some were refused.
    pub refused: Option<FileError>,
}

/// The common case of an update: one value, with a file name that needs no cleaning.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainUpdate<'a> {
    name: &'a str,
    hash: u64,
    text: &'a str,
}

impl<'a> PlainUpdate<'a> {
    /// `name` must be what [`BaseFolder::name`](super::base::BaseFolder::name) returned.
    pub(super) fn new(name: &'a str, text: &'a str) -> Self {
        let hash = hash_of(name);
        Self { name, hash, text }
    }
}

/// A [`PlainUpdate`] was accepted.
#[derive(Clone, Copy, Debug)]
pub(super) struct PlainOutcome {
    /// As [`UpdateOutcome::record`].
    pub(super) record: Option<u64>,
}

impl Shared {
    /// Accepts updates in order, up to the first one that the file would refuse.
    pub(super) fn update<'a>(
        &self,
        name: &str,
        updates: impl Iterator<Item = Cow<'a, str>>,
        session: &mut Session,
    ) -> FileResult<UpdateOutcome> {
        self.check_open()?;
        let shard_mutex = self.shard_of(name);
        let is_known = match shard_mutex.lock().find(name) {
            Some(place) if !place.0.is_damaged => return self.accept(name, place, updates),
            found => found.is_some(),
        };
        let looked = if is_known {
            self.recheck(name, session)
        } else {
            self.admit(name, session)
        };
        let mut shard = shard_mutex.lock();
        let refused = match (looked, shard.find(name)) {
            (Ok(()), Some(place)) => return self.accept(name, place, updates),
            (Err(error), _) => error,
            // Another thread has removed it meanwhile.
            (Ok(()), None) => FileError::Missing(self.base.display_path(name)),
        };
        let rejected = updates.count() as u64;
        self.counters.values_rejected.fetch_add(rejected, Ordering::Relaxed);
        Err(refused)
    }

    /// The fast path: accepts one update of a known file, in its plain form, in order, and if
    /// there is room for it. `None` means that nothing has changed; [`Shared::update`] then finds
    /// the reason.
    pub(super) fn accept_plain(&self, update: PlainUpdate<'_>, now_ns: u64) -> Option<PlainOutcome> {
        if self.refuses_updates.load(Ordering::Acquire) {
            return None;
        }
        let PlainUpdate { name, hash, text } = update;
        let shard = &mut *self.shards()[shard_of_hash(hash)].lock();
        let (entry, account) = (shard.entries.find(hash, name)?, &mut shard.account);
        let at = tsb_rrd::check_plain(&entry.layout, text)?;
        if at <= entry.newest || entry.is_damaged || !self.has_room(entry, text) {
            return None;
        }
        let end = entry.text_len();
        self.push(entry, text);
        let record = self.append_to_journal(entry, end, 1).ok()?;
        self.note_accepted((entry, account), (1, at), record, now_ns);
        Some(PlainOutcome { record })
    }

    /// Prefetches the entries of at most [`PREFETCH_MAX`] updates. Shards that another thread has
    /// locked are skipped.
    pub(super) fn prefetch<'a>(&self, updates: impl Iterator<Item = PlainUpdate<'a>>) {
        // IMPORTANT: only try these locks. A thread that waits for one lock while holding another
        // could deadlock.
        let shards: [_; SHARDS] = std::array::from_fn(|index| self.shards()[index].try_lock());
        let mut found = [None; PREFETCH_MAX];
        for (found, PlainUpdate { hash, .. }) in found.iter_mut().zip(updates) {
            let shard = shards[shard_of_hash(hash)].as_ref();
            *found = shard.and_then(|shard| shard.entries.find_by_hash(hash));
        }
        let touched = found.iter().flatten().map(|entry| entry.touch());
        std::hint::black_box(touched.fold(0, usize::wrapping_add));
    }

    fn accept<'a>(
        &self,
        name: &str,
        (entry, account): (&mut Entry, &mut Account),
        mut updates: impl Iterator<Item = Cow<'a, str>>,
    ) -> FileResult<UpdateOutcome> {
        let mut outcome = UpdateOutcome::default();
        let (end, mut newest) = (entry.text_len(), entry.newest);
        for update in &mut updates {
            match self.check_update(name, entry, &update, newest) {
                Ok(at) => {
                    newest = at;
                    outcome.values += 1;
                    self.push(entry, &update);
                }
                Err(error) => {
                    outcome.refused = Some(error);
                    break;
                }
            }
        }
        if outcome.refused.is_some() {
            let rejected = 1 + updates.count() as u64;
            self.counters.values_rejected.fetch_add(rejected, Ordering::Relaxed);
        }
        if outcome.values == 0 {
            return Ok(outcome);
        }
        let count = outcome.values as u64;
        outcome.record = self.append_to_journal(entry, end, count)?;
        self.note_accepted((entry, account), (count, newest), outcome.record, self.clock.now());
        Ok(outcome)
    }

    fn check_update(&self, name: &str, entry: &Entry, update: &str, newest: Moment) -> FileResult<Moment> {
        let checked = tsb_rrd::check(&entry.layout, update);
        let is_plain = checked.is_ok() && update.starts_with(|c: char| c.is_ascii_digit());
        if !is_plain && !starts_with_time(update) {
            return Err(FileError::NoTime(update.to_owned()));
        }
        let at = checked.map_err(|source| FileError::Rrd {
            file: self.base.display_path(name),
            source,
        })?;
        if at <= newest {
            return Err(FileError::NotLater {
                at: at.to_string(),
                last: newest.to_string(),
            });
        }
        if !self.has_room(entry, update) {
            return Err(FileError::Full {
                file: self.base.display_path(name),
                bytes: self.bytes.load(Ordering::Relaxed),
            });
        }
        Ok(at)
    }

    /// Updates entry and account after updates were appended and journaled.
    fn note_accepted(
        &self,
        (entry, account): (&mut Entry, &mut Account),
        (count, newest): (u64, Moment),
        record: Option<u64>,
        now_ns: u64,
    ) {
        entry.count_queued(count, record.unwrap_or(NO_RECORD));
        entry.newest = newest;
        account.accepted += count;
        account.pending += count;
        if now_ns >= entry.due_ns {
            self.queue(entry);
        }
    }

    fn has_room(&self, entry: &Entry, update: &str) -> bool {
        let bytes = self.bytes.load(Ordering::Relaxed);
        bytes + entry.growth(update.len() + 1) as u64 <= self.max_bytes
    }

    /// Appends an update to an entry, and counts the memory.
    pub(super) fn push(&self, entry: &mut Entry, update: &str) {
        let before = entry.bytes();
        entry.push(update);
        let grown = entry.bytes() - before;
        if grown > 0 {
            self.hold(grown);
        }
    }

    /// Journals the updates that were appended to an entry from `end` on, or removes them if that
    /// fails.
    fn append_to_journal(&self, entry: &mut Entry, end: usize, count: u64) -> FileResult<Option<u64>> {
        let Some(journal) = &self.journal else { return Ok(None) };
        let writer = journal.lock_writer();
        let segment = writer.segment();
        let name = (entry.name_segment != segment).then_some(&*entry.key);
        let position = self.counters.journaled_values.fetch_add(count, Ordering::Relaxed) + count;
        let record = journal.append_updates(writer, entry.id, name, (count, entry.lines_from(end)), position);
        let record = record.map_err(|error| {
            entry.truncate_text(end);
            self.poison(&error)
        })?;
        entry.name_segment = segment;
        Ok(Some(record))
    }
}

/// Whether rrdcached would find a time before the first colon.
fn starts_with_time(update: &str) -> bool {
    update.split_once(':').is_some_and(|(time, _)| {
        time.bytes().any(|byte| byte.is_ascii_digit()) && !time.starts_with(['N', '-']) && !time.contains('@')
    })
}
