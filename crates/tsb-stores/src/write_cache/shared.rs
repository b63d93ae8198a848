//! State shared by the callers and threads of a write cache: admission, durability levels,
//! closing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard};

use tsb_core::time::{Clock, SECOND_NS};
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use super::account::Account;
use super::checkpoint::{Unsynced, checkpoint_journal};
use super::chunk::ChunkBudget;
use super::journal::{Journal, OpenedJournal, ReplayedSamples};
use super::options::WriteCacheOptions;
use super::shard::{QueueRules, QueueShard, QueuedSeries, SHARDING, SHARDS, WriteContext};
use crate::activity::Activity;
use crate::damage::Damage;
use crate::error::{Error, Result};
use crate::keys::KeyTable;
use crate::locks::{CountedCondvar, lock, read, write};
use crate::open_state::OpenState;
use crate::store::{Ack, Derivation, Exactness, OnConflict, Position, Reason, Refusals, Scope, Stats, Store};

/// The whole cache except its threads.
#[derive(Debug)]
pub(super) struct SharedCache<S> {
    pub(super) inner: S,
    pub(super) state: OpenState,
    /// Counts the passes of the writeback threads.
    pub(super) activity: Activity,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) journal: Option<Journal>,
    pub(super) torn_bytes: u64,
    /// The durability level of every ack.
    pub(super) acknowledges: Durability,
    pub(super) shards: [Mutex<QueueShard>; SHARDS],
    /// Notified when series of a shard have been written.
    pub(super) written: [CountedCondvar; SHARDS],
    pub(super) work: Mutex<Work>,
    /// Wakes the writeback threads.
    pub(super) work_available: CountedCondvar,
    /// Wakes the timer thread when the cache stops.
    pub(super) stopping: Condvar,
    /// Whether a series could not be written and waits for its retry.
    pub(super) has_failed_writes: AtomicBool,
    /// Whether the memory bound was reached since a thread last wrote everything due.
    pub(super) is_full: AtomicBool,
    /// Per series, the journal record up to which the store has accepted its samples without
    /// syncing them.
    pub(super) unsynced: Unsynced<()>,
    /// Samples in the journal whose series are not defined yet.
    pub(super) orphans: Mutex<ReplayedSamples>,
    /// Series with samples that the store refused for good, and the reason; removed when a flush
    /// reports it.
    pub(super) refused: Mutex<BTreeMap<SeriesId, String>>,
    representable: RepresentableValues,
    budget: Arc<ChunkBudget>,
    keys: RwLock<KeyTable>,
    last_failure: Mutex<Option<String>>,
    accepted: AtomicU64,
    // The levels reached by flushes; a journal keeps its own.
    flushed_buffered: AtomicU64,
    flushed_synced: AtomicU64,
}

/// Work signals for the writeback threads.
#[derive(Debug, Default)]
pub(super) struct Work {
    /// Number of times that new work was announced.
    pub(super) announced: u64,
    pub(super) is_stopping: bool,
}

/// The values that the store can represent.
#[derive(Clone, Copy, Debug)]
enum RepresentableValues {
    Everything,
    Finite,
    OfRrd(Derivation),
}

impl RepresentableValues {
    fn contains(self, at: Timestamp, value: f64) -> bool {
        match self {
            Self::Everything => true,
            Self::Finite => value.is_finite(),
            Self::OfRrd(derivation) => crate::rrd::is_representable(at, value, derivation),
        }
    }
}

impl<S: Store> SharedCache<S> {
    pub(super) fn new(
        inner: S,
        options: &WriteCacheOptions,
        clock: Arc<dyn Clock>,
        opened: Option<OpenedJournal>,
    ) -> Self {
        let capabilities = inner.capabilities();
        let rules = QueueRules {
            timeout_ns: options.timeout_ns,
            jitter_ns: options.jitter_ns,
            resolution_ns: capabilities.resolution_ns,
            slot_ns: match capabilities.exactness {
                Exactness::OnePerSlot(slot_ns) => Some(slot_ns),
                _ => None,
            },
            accepts_repeats: capabilities.duplicate != OnConflict::Rejected,
            heartbeat_ns: match capabilities.exactness {
                Exactness::Consolidated(rule) => {
                    i64::try_from(rule.longest_gap_s.saturating_mul(SECOND_NS)).unwrap_or(i64::MAX)
                }
                _ => i64::MAX,
            },
        };
        let budget = Arc::new(ChunkBudget::new(options.max_bytes));
        let (journal, orphans, torn_bytes) = match opened {
            None => (None, ReplayedSamples::default(), 0),
            Some(opened) => (Some(opened.journal), opened.samples, opened.torn_bytes),
        };
        let acknowledges = match &journal {
            None => Durability::Volatile.min(capabilities.reaches),
            Some(journal) if journal.policy().is_before_ack() => Durability::Synced,
            Some(_) => Durability::Buffered,
        };
        Self {
            representable: match capabilities.exactness {
                Exactness::Consolidated(rule) => RepresentableValues::OfRrd(rule.derivation),
                _ if capabilities.special_values => RepresentableValues::Everything,
                _ => RepresentableValues::Finite,
            },
            inner,
            state: OpenState::default(),
            activity: Activity::new(),
            clock,
            journal,
            torn_bytes,
            acknowledges,
            shards: std::array::from_fn(|index| Mutex::new(QueueShard::new(index, rules, Arc::clone(&budget)))),
            written: std::array::from_fn(|_| CountedCondvar::default()),
            work: Mutex::default(),
            work_available: CountedCondvar::default(),
            stopping: Condvar::new(),
            has_failed_writes: AtomicBool::new(false),
            is_full: AtomicBool::new(false),
            unsynced: Unsynced::default(),
            orphans: Mutex::new(orphans),
            refused: Mutex::default(),
            budget,
            // The inner store enforces the limit of series.
            keys: RwLock::new(KeyTable::new(u32::MAX as usize)),
            last_failure: Mutex::default(),
            accepted: AtomicU64::new(0),
            flushed_buffered: AtomicU64::new(0),
            flushed_synced: AtomicU64::new(0),
        }
    }

    pub(super) fn shard(&self, id: SeriesId) -> MutexGuard<'_, QueueShard> {
        lock(&self.shards[SHARDING.shard_of(id)])
    }

    pub(super) fn keys(&self) -> RwLockReadGuard<'_, KeyTable> {
        read(&self.keys)
    }

    pub(super) fn check_each(&self, series: &[SeriesId]) -> Result<()> {
        self.keys().check_each(series.iter().copied())
    }

    pub(super) fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        let _open = self.state.begin()?;
        self.inner.define(series)?;
        let ids: Vec<SeriesId> = series.iter().map(|(id, _)| *id).collect();
        let mut newest = vec![None; ids.len()];
        self.inner.newest_accepted(&ids, &mut newest)?;
        let mut keys = write(&self.keys);
        // IMPORTANT: add the queues before the ids are bound. Otherwise a write could find no
        // queue.
        for ((id, key), newest) in series.iter().zip(newest) {
            let mut shard = self.shard(*id);
            if shard.has_pending(*id) {
                continue;
            }
            shard.add(*id, newest.map(|at: Timestamp| at.0));
            if let Some(mut samples) = lock(&self.orphans).remove(key) {
                samples.sort_by_key(|(_, sample)| sample.0);
                shard.replay(*id, &samples);
            }
        }
        keys.define(series)
    }

    pub(super) fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        let open = self.state.begin()?;
        let keys = self.keys();
        keys.check_batch(batch)?;
        let before = refused.len();
        let now_ns = self.clock.now();
        let position = match &self.journal {
            None => {
                let context = WriteContext { now_ns, record: 0 };
                self.admit(batch, context, refused, |_, _, _| ());
                Ok(self.accept(batch.len() - (refused.len() - before)))
            }
            Some(journal) => self.write_journal(journal, &keys, batch, now_ns, refused),
        };
        drop(keys);
        drop(open);
        let position = position.inspect_err(|error| self.state.poison(error))?;
        let rejected = refused.len() - before;
        if rejected > 0
            && refused.as_slice()[before..]
                .iter()
                .any(|one| one.reason == Reason::Full)
        {
            self.queue_everything();
        }
        Ok(Ack::new(
            batch.len() - rejected,
            rejected,
            Position(position),
            self.acknowledges,
        ))
    }

    fn accept(&self, samples: usize) -> u64 {
        self.accepted.fetch_add(samples as u64, Ordering::AcqRel) + samples as u64
    }

    fn write_journal(
        &self,
        journal: &Journal,
        keys: &KeyTable,
        batch: &Batch<'_>,
        now_ns: u64,
        refused: &mut Refusals,
    ) -> Result<u64> {
        let mut writer = journal.lock_writer();
        let (record, segment) = (writer.next_record(), writer.segment());
        let writer_mut = &mut *writer;
        writer_mut.admitted.clear();
        writer_mut.unnamed.clear();
        let (admitted, unnamed) = (&mut writer_mut.admitted, &mut writer_mut.unnamed);
        self.admit(batch, WriteContext { now_ns, record }, refused, |shard, id, sample| {
            if shard.needs_name(id, segment) {
                unnamed.push(id);
            }
            admitted.push(id, sample);
        });
        let position = self.accept(writer.admitted.len());
        if writer.admitted.len() > 0 {
            journal.append(writer, |id| keys.key(id), position)?;
        }
        Ok(position)
    }

    /// Adds the samples of a batch to their queues, and calls `each` for every sample that was
    /// added.
    fn admit(
        &self,
        batch: &Batch<'_>,
        context: WriteContext,
        refused: &mut Refusals,
        mut each: impl FnMut(&mut QueueShard, SeriesId, (i64, f64)),
    ) {
        let mut has_due = false;
        for (shard, run) in SHARDING.runs(batch) {
            let mut shard = lock(&self.shards[shard]);
            for index in run {
                let (id, at, value) = (batch.id(index), batch.time(index), batch.values()[index]);
                let admitted = if self.representable.contains(at, value) {
                    shard.admit(id, at.0, value, context)
                } else {
                    Err(Reason::Unrepresentable)
                };
                match admitted {
                    Ok(()) => each(&mut shard, id, (at.0, value)),
                    Err(reason) => refused.push(index, reason),
                }
            }
            has_due |= shard.due() > 0;
        }
        if has_due {
            self.wake();
        }
    }

    /// Marks queues as due: those past their timeout, or all non-empty ones.
    pub(super) fn queue_due(&self, everything: bool) {
        let now_ns = self.clock.now();
        for shard in &self.shards {
            lock(shard).queue_due(now_ns, everything);
        }
        self.wake();
    }

    /// Makes all queues due, because the memory bound is reached.
    fn queue_everything(&self) {
        // Once until a writeback thread has finished a pass: marking visits every series.
        if !self.is_full.swap(true, Ordering::AcqRel) {
            self.queue_due(true);
        }
    }

    /// Wakes the writeback threads.
    pub(super) fn wake(&self) {
        lock(&self.work).announced += 1;
        self.work_available.notify_all();
    }

    pub(super) fn durable(&self, level: Durability) -> u64 {
        let accepted = self.accepted.load(Ordering::Acquire);
        let (buffered, synced) = self.journal.as_ref().map_or((0, 0), Journal::reached);
        match level {
            Durability::Unconfirmed => accepted,
            Durability::Volatile if self.acknowledges >= Durability::Volatile => accepted,
            Durability::Volatile => 0,
            Durability::Buffered => buffered.max(self.flushed_buffered.load(Ordering::Acquire)),
            Durability::Synced => synced.max(self.flushed_synced.load(Ordering::Acquire)),
        }
    }

    pub(super) fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        let open = self.state.begin()?;
        if level > self.inner.capabilities().reaches.max(self.acknowledges) {
            return Err(Error::Unsupported {
                store: self.inner.to_string(),
                what: "a flush to that level",
            });
        }
        let covered = self.accepted.load(Ordering::Acquire);
        if let Scope::Series(series) = scope {
            self.check_each(series)?;
        }
        self.write_and_report(scope)?;
        let result = self.inner.flush(scope, level);
        drop(open);
        result.inspect_err(|error| self.state.poison(error))?;
        if matches!(scope, Scope::All) {
            self.reach(level.max(self.inner.capabilities().acknowledges), covered);
        }
        Ok(())
    }

    /// Records that all samples up to position `covered` have reached `level`.
    fn reach(&self, level: Durability, covered: u64) {
        if level >= Durability::Buffered {
            self.flushed_buffered.fetch_max(covered, Ordering::AcqRel);
        }
        if level >= Durability::Synced {
            self.flushed_synced.fetch_max(covered, Ordering::AcqRel);
        }
    }

    pub(super) fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        let _open = self.state.begin()?;
        self.check_each(series)?;
        let queued: Vec<Option<QueuedSeries>> = series.iter().map(|&id| self.shard(id).queued_series(id)).collect();
        self.inner.newest(series, into)?;
        if let Exactness::Consolidated(rule) = self.inner.capabilities().exactness {
            let steps = rule.archives().next().map_or(1, |archive| archive.steps);
            let row_ns = (rule.step_s * u64::from(steps) * SECOND_NS) as i64;
            return self.newest_rows(series, into, &queued, row_ns);
        }
        for (slot, queued) in into.iter_mut().zip(queued) {
            *slot = (*slot).max(queued.map(|queued| Timestamp(queued.newest)));
        }
        Ok(())
    }

    /// For a store of rows: a row that has ended has a value if the samples since its start have
    /// no gap longer than the heartbeat. The queue is not written just to find that out: a run
    /// asks ten times per second, and the cache would always be empty. After a gap, and after the
    /// first sample, only the file has the answer: then the samples are written and the store is
    /// asked.
    fn newest_rows(
        &self,
        series: &[SeriesId],
        into: &mut [Option<Timestamp>],
        queued: &[Option<QueuedSeries>],
        row_ns: i64,
    ) -> Result<()> {
        let mut asked = Vec::new();
        for (place, queued) in queued.iter().enumerate() {
            let Some((end, is_known)) = queued.map(|queued| queued.row(row_ns)) else {
                continue;
            };
            if Some(end) > into[place] {
                if is_known {
                    into[place] = Some(end);
                } else {
                    asked.push(place);
                }
            }
        }
        if asked.is_empty() {
            return Ok(());
        }
        let ids: Vec<SeriesId> = asked.iter().map(|&place| series[place]).collect();
        self.write_series(&ids)?;
        let mut rows = vec![None; ids.len()];
        self.inner.newest(&ids, &mut rows)?;
        for (place, row) in asked.into_iter().zip(rows) {
            into[place] = row;
        }
        Ok(())
    }

    pub(super) fn forget(&self, id: SeriesId) -> Result<u64> {
        let open = self.state.begin()?;
        self.check_each(&[id])?;
        let (count, record) = {
            let mut shard = self.shard(id);
            while shard.is_being_written(id) {
                shard = self.written[SHARDING.shard_of(id)].wait(shard);
            }
            shard.forget(id)
        };
        if let Some(journal) = &self.journal
            && count > 0
        {
            let keys = self.keys();
            let marked = keys
                .key(id)
                .map_or(Ok(()), |key| journal.mark_forgotten(id, record, key));
            drop(keys);
            drop(open);
            marked.inspect_err(|error| self.state.poison(error))?;
        }
        Ok(count)
    }

    pub(super) fn account(&self) -> Account {
        let shards = self.shards.iter().map(|shard| lock(shard).account());
        shards.fold(Account::default(), |sum, account| sum.plus(&account))
    }

    /// The store's statistics, the cache's account, and the number of pending samples that
    /// replace another one. The three are consistent with each other, unless writes never pause
    /// for `TRIES` attempts.
    pub(super) fn stats(&self) -> (Stats, Account, u64) {
        const TRIES: usize = 100;
        let mut before = self.version();
        for _ in 0..TRIES {
            let (stats, account) = (self.inner.stats(), self.account());
            let repeats = self.shards.iter().map(|shard| lock(shard).repeats()).sum();
            let after = self.version();
            if before.is_some() && before == after {
                return (stats, account, repeats);
            }
            before = after;
            std::thread::yield_now();
        }
        (self.inner.stats(), self.account(), 0)
    }

    fn version(&self) -> Option<u64> {
        let mut versions = self.shards.iter().map(|shard| lock(shard).version());
        versions.try_fold(0_u64, |sum, version| Some(sum + version?))
    }

    pub(super) fn pending_bytes(&self) -> u64 {
        self.budget.used_bytes()
    }

    /// The damage found in the journal.
    pub(super) fn damage(&self) -> Vec<Damage> {
        self.journal.as_ref().map_or_else(Vec::new, Journal::damage)
    }

    /// What the cache and its journal do.
    pub(super) fn activities(&self) -> impl Iterator<Item = Activity> + '_ {
        let journal = self.journal.as_ref().map(|journal| journal.activity().clone());
        [self.activity.clone()].into_iter().chain(journal)
    }

    pub(super) fn journal_bytes(&self) -> u64 {
        self.journal.as_ref().map_or(0, Journal::bytes)
    }

    /// Bytes of all queues, and bytes that are allocated but unused.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let shards = self.shards.iter().map(|shard| lock(shard).bytes());
        shards.fold((0, 0), |sum, bytes| (sum.0 + bytes.0, sum.1 + bytes.1))
    }

    pub(super) fn last_failure(&self) -> Option<String> {
        lock(&self.last_failure).clone()
    }

    pub(super) fn note_failure(&self, what: String) {
        *lock(&self.last_failure) = Some(what);
        self.has_failed_writes.store(true, Ordering::Release);
    }

    /// Syncs the store and removes the journal's records, which are no longer needed.
    pub(super) fn finish(&self) -> Result<()> {
        let covered = self.accepted.load(Ordering::Acquire);
        if let Some(journal) = &self.journal {
            checkpoint_journal(self, journal)?;
        }
        let level = self.inner.capabilities().acknowledges;
        self.reach(level, covered);
        Ok(())
    }

    /// Counts as failed the samples that are lost when the cache ends, and returns their number;
    /// 0 with a journal, which still has them.
    pub(super) fn fail_pending(&self) -> u64 {
        if self.journal.is_some() {
            return 0;
        }
        self.shards.iter().map(|shard| lock(shard).fail_pending()).sum()
    }

    pub(super) fn stop(&self) {
        lock(&self.work).is_stopping = true;
        self.work_available.notify_all();
        self.stopping.notify_all();
    }
}
