//! A shard: the queues of some series, which of them are due or being written, and their account.
//!
//! It is *not* concurrent: its owner holds the shard's lock. So the account balances whenever the
//! lock can be taken.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tsb_core::{SeriesId, Timestamp};

use super::account::Account;
use super::chunk::{Arena, Chain, ChunkBudget, Sample};
use super::write_batch::{SeriesOutcome, SeriesPart, WriteBatch};
use crate::sharding::Sharding;
use crate::store::Reason;

/// The due time of a queue that has not had a sample yet.
const NEVER: u64 = u64::MAX;
/// Nanoseconds before a failed write of a series is retried.
pub const RETRY_NS: u64 = 1_000_000_000;
/// Nanoseconds for which a series with a damaged file refuses samples; after that one sample is
/// admitted as a probe.
const DAMAGED_NS: u64 = 10_000_000_000;

/// The queue of one series, in less than a cache line.
#[derive(Debug)]
struct Queue {
    // The newest timestamp admitted now or in an earlier run; valid if `has_newest`.
    newest: i64,
    // The time from which on the next sample makes the queue due.
    due_ns: u64,
    // The journal records of the oldest and the newest queued sample.
    first_record: u64,
    last_record: u64,
    chain: Chain,
    count: u32,
    // Number of queued samples that replace the one before them.
    repeats: u32,
    // The last journal segment that holds the name of this series.
    named_in: u32,
    is_queued: bool,
    is_being_written: bool,
    // A write failed halfway: the store may have accepted some of the queued samples.
    is_outcome_unknown: bool,
    // Some samples could not be written and wait for a retry.
    needs_retry: bool,
    has_newest: bool,
}

impl Queue {
    const EMPTY: Self = Self {
        newest: i64::MIN,
        due_ns: NEVER,
        first_record: 0,
        last_record: 0,
        chain: Chain::EMPTY,
        count: 0,
        repeats: 0,
        named_in: 0,
        is_queued: false,
        is_being_written: false,
        is_outcome_unknown: false,
        needs_retry: false,
        has_newest: false,
    };
}

/// The values that all samples of one write share.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteContext {
    pub(super) now_ns: u64,
    /// The journal record that holds the samples.
    pub(super) record: u64,
}

/// What is known about a series with queued samples.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedSeries {
    /// The newest admitted timestamp.
    pub(super) newest: i64,
    /// The start of the newest stretch in which no two samples are further apart than the
    /// heartbeat.
    pub(super) known_from: i64,
}

impl QueuedSeries {
    /// The end of the newest complete row, and whether a store of rows would have a value for it
    /// once it has all samples.
    pub(super) fn row(self, row_ns: i64) -> (Timestamp, bool) {
        let end = self.newest.div_euclid(row_ns) * row_ns;
        (Timestamp(end), self.known_from <= end.saturating_sub(row_ns))
    }
}

/// The timing rules of the queues, and the store's rules for two samples at one time.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueueRules {
    pub(super) timeout_ns: u64,
    pub(super) jitter_ns: u64,
    /// Two samples closer than this are one sample to the store, in nanoseconds.
    pub(super) resolution_ns: i64,
    /// Width of a slot, in nanoseconds, if the store keeps one sample per slot.
    pub(super) slot_ns: Option<i64>,
    /// Whether the store accepts another sample with the newest timestamp.
    pub(super) accepts_repeats: bool,
    /// A store of rows knows the values between two samples that are at most this far apart, in
    /// nanoseconds.
    pub(super) heartbeat_ns: i64,
}

impl QueueRules {
    /// Whether two samples occupy one place in the store; `at` must not be before `newest`.
    fn is_same(&self, newest: i64, at: i64) -> bool {
        match self.slot_ns {
            Some(slot_ns) => newest.div_euclid(slot_ns) == at.div_euclid(slot_ns),
            None => at.saturating_sub(newest) < self.resolution_ns,
        }
    }

    /// The due time of a series written now: after the timeout, plus a pseudo-random part of the
    /// jitter.
    fn due_after(&self, id: u32, now_ns: u64) -> u64 {
        let due_ns = now_ns.saturating_add(self.timeout_ns);
        if self.jitter_ns == 0 {
            return due_ns;
        }
        let mixed = (u64::from(id) ^ now_ns << 20).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mixed = (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20;
        due_ns.saturating_add(mixed % self.jitter_ns)
    }
}

/// The queues of one shard.
#[derive(Debug)]
pub(super) struct QueueShard {
    index: usize,
    rules: QueueRules,
    queues: Vec<Queue>,
    // Per queue: the start of the newest stretch without a gap that is unknown to the store. Kept
    // apart from `Queue`, since it is rarely read.
    known_from: Vec<i64>,
    arena: Arena,
    // Places of due queues; each at most once.
    due: VecDeque<u32>,
    // Series with damaged files, and the time from which on each admits one sample as a probe.
    damaged: BTreeMap<u32, u64>,
    account: Account,
    // Number of pending samples that replace another one.
    repeats: u64,
    being_written: usize,
    // Incremented whenever samples are taken or written.
    version: u64,
}

/// Number of shards, each with its own lock.
pub(super) const SHARDS: usize = 16;
/// Blocks of 64 series go to the shards in turn.
pub(super) const SHARDING: Sharding = Sharding::new(64, SHARDS);

impl QueueShard {
    pub(super) fn new(index: usize, rules: QueueRules, budget: Arc<ChunkBudget>) -> Self {
        Self {
            index,
            rules,
            queues: Vec::new(),
            known_from: Vec::new(),
            arena: Arena::new(budget),
            due: VecDeque::new(),
            damaged: BTreeMap::new(),
            account: Account::default(),
            repeats: 0,
            being_written: 0,
            version: 0,
        }
    }

    fn id_of(&self, place: usize) -> SeriesId {
        SHARDING.series_at(self.index, place)
    }

    /// Adds a queue for a series; `newest` is the newest timestamp that the store already has.
    pub(super) fn add(&mut self, id: SeriesId, newest: Option<i64>) {
        let place = SHARDING.place_of(id);
        if self.queues.len() <= place {
            self.queues.resize_with(place + 1, || Queue::EMPTY);
            self.known_from.resize(place + 1, i64::MIN);
        }
        let queue = &mut self.queues[place];
        if let Some(newest) = newest
            && (!queue.has_newest || newest > queue.newest)
        {
            queue.newest = newest;
            queue.has_newest = true;
            // Only the store knows about gaps before this sample.
            self.known_from[place] = newest;
        }
    }

    /// Queues a sample of a series that was added before.
    #[inline]
    pub(super) fn admit(&mut self, id: SeriesId, at: i64, value: f64, context: WriteContext) -> Result<(), Reason> {
        let place = SHARDING.place_of(id);
        if !self.damaged.is_empty() && !self.is_usable(place, context.now_ns) {
            return Err(Reason::Damaged);
        }
        let queue = &mut self.queues[place];
        let is_repeat = queue.has_newest && self.rules.is_same(queue.newest, at);
        if queue.has_newest && (at < queue.newest || (is_repeat && !self.rules.accepts_repeats)) {
            return Err(if at < queue.newest {
                Reason::Late
            } else {
                Reason::Duplicate
            });
        }
        if !self.arena.push(&mut queue.chain, (at, value)) {
            return Err(Reason::Full);
        }
        if at.saturating_sub(queue.newest) > self.rules.heartbeat_ns {
            self.known_from[place] = at;
        }
        queue.newest = at;
        queue.has_newest = true;
        queue.repeats += u32::from(is_repeat);
        self.repeats += u64::from(is_repeat);
        queue.last_record = context.record;
        if queue.count == 0 && !queue.is_being_written {
            queue.first_record = context.record;
        }
        queue.count += 1;
        self.account.accepted += 1;
        self.account.pending += 1;
        if queue.due_ns == NEVER {
            queue.due_ns = self.rules.due_after(id.0, context.now_ns);
        }
        if context.now_ns >= queue.due_ns && !queue.is_queued && !queue.is_being_written {
            queue.is_queued = true;
            self.due.push_back(place as u32);
        }
        Ok(())
    }

    /// Whether a series admits a sample. If its file is damaged it admits one sample per
    /// `DAMAGED_NS`, which is due at once.
    #[cold]
    fn is_usable(&mut self, place: usize, now_ns: u64) -> bool {
        let Some(again_ns) = self.damaged.get_mut(&(place as u32)) else {
            return true;
        };
        if now_ns < *again_ns {
            return false;
        }
        *again_ns = now_ns.saturating_add(DAMAGED_NS);
        self.queues[place].due_ns = 0;
        true
    }

    /// The newest admitted timestamp.
    pub(super) fn newest(&self, id: SeriesId) -> Option<i64> {
        let queue = self.queues.get(SHARDING.place_of(id))?;
        queue.has_newest.then_some(queue.newest)
    }

    /// What is known about a series with queued samples; `None` if it has none.
    pub(super) fn queued_series(&self, id: SeriesId) -> Option<QueuedSeries> {
        let newest = self.has_pending(id).then(|| self.newest(id)).flatten()?;
        let known_from = self.known_from.get(SHARDING.place_of(id)).copied()?;
        Some(QueuedSeries { newest, known_from })
    }

    /// Whether the journal segment still needs the name of the series. True only once per
    /// segment: the call records the answer.
    #[inline]
    pub(super) fn needs_name(&mut self, id: SeriesId, segment: u32) -> bool {
        let named = self
            .queues
            .get_mut(SHARDING.place_of(id))
            .map(|queue| &mut queue.named_in);
        named.is_some_and(|named| std::mem::replace(named, segment) != segment)
    }

    /// Marks queues as due: those past their timeout, or all non-empty ones if `everything`.
    pub(super) fn queue_due(&mut self, now_ns: u64, everything: bool) {
        for (queue, place) in self.queues.iter_mut().zip(0..) {
            let is_due = everything || now_ns >= queue.due_ns;
            if is_due && queue.count > 0 && !queue.is_queued && !queue.is_being_written {
                queue.is_queued = true;
                self.due.push_back(place);
            }
        }
    }

    /// Marks as due the queues with samples in journal records before `record`.
    pub(super) fn queue_before(&mut self, record: u64) {
        for (queue, place) in self.queues.iter_mut().zip(0..) {
            let is_old = queue.count > 0 && queue.first_record < record;
            if is_old && !queue.is_queued && !queue.is_being_written {
                queue.is_queued = true;
                self.due.push_back(place);
            }
        }
    }

    /// The oldest journal record with samples that are queued or being written.
    pub(super) fn oldest_record(&self) -> Option<u64> {
        let held = self
            .queues
            .iter()
            .filter(|queue| queue.count > 0 || queue.is_being_written);
        held.map(|queue| queue.first_record).min()
    }

    /// Number of due series.
    pub(super) fn due(&self) -> usize {
        self.due.len()
    }

    /// Number of pending samples that replace another one.
    pub(super) fn repeats(&self) -> u64 {
        self.repeats
    }

    /// A counter that changes whenever samples are taken or written; `None` while a write is in
    /// progress.
    pub(super) fn version(&self) -> Option<u64> {
        (self.being_written == 0).then_some(self.version)
    }

    /// Counts of the samples admitted here, by outcome.
    pub(super) fn account(&self) -> Account {
        self.account
    }

    /// Queues samples from the journal of an earlier run, oldest first.
    pub(super) fn replay(&mut self, id: SeriesId, samples: &[(u64, Sample)]) {
        let queue = &mut self.queues[SHARDING.place_of(id)];
        // A sample that the store has already may have reached it before its last change was
        // journaled. If the store does not accept a repeated timestamp, also compare at the
        // store's resolution: the timestamp in the file may be slightly earlier than the
        // journaled one.
        let is_there = |at: i64| {
            at < queue.newest
                || (!self.rules.accepts_repeats && (at == queue.newest || self.rules.is_same(queue.newest, at)))
        };
        let is_new = |at: i64| !queue.has_newest || !is_there(at);
        let news = samples.iter().filter(|(_, sample)| is_new(sample.0));
        let news: Vec<(u64, Sample)> = news.copied().collect();
        let (Some(first), Some(last)) = (news.first(), news.last()) else {
            return;
        };
        queue.first_record = first.0;
        queue.last_record = last.0;
        queue.newest = last.1.0;
        queue.has_newest = true;
        self.known_from[SHARDING.place_of(id)] = last.1.0;
        // Due at once: these samples have waited longest.
        queue.due_ns = 0;
        queue.count += news.len() as u32;
        let samples: Vec<Sample> = news.iter().map(|(_, sample)| *sample).collect();
        self.arena.put_back(&mut queue.chain, &samples);
        self.account.replayed += news.len() as u64;
        self.account.pending += news.len() as u64;
    }

    /// Whether a series has samples that could not be written and wait for a retry.
    pub(super) fn needs_retry(&self) -> bool {
        self.queues.iter().any(|queue| queue.needs_retry)
    }

    /// Whether a series has samples that are queued or being written.
    pub(super) fn has_pending(&self, id: SeriesId) -> bool {
        let queue = self.queues.get(SHARDING.place_of(id));
        queue.is_some_and(|queue| queue.count > 0 || queue.is_being_written)
    }

    /// Whether a series is being written.
    pub(super) fn is_being_written(&self, id: SeriesId) -> bool {
        let queue = self.queues.get(SHARDING.place_of(id));
        queue.is_some_and(|queue| queue.is_being_written)
    }

    /// Number of places; series are at `0..places`.
    pub(super) fn places(&self) -> usize {
        self.queues.len()
    }

    /// Moves the samples of due queues into `batch` until it is full.
    pub(super) fn take_due(&mut self, batch: &mut WriteBatch, now_ns: u64) {
        while !batch.is_full() {
            let Some(place) = self.due.pop_front() else { return };
            if let Some(queue) = self.queues.get_mut(place as usize) {
                queue.is_queued = false;
            }
            self.take(self.id_of(place as usize), batch, now_ns);
        }
    }

    /// Moves the queued samples of a series into `batch`. The series counts as being written until
    /// [`QueueShard::done`].
    pub(super) fn take(&mut self, id: SeriesId, batch: &mut WriteBatch, now_ns: u64) {
        let Some(queue) = self.queues.get_mut(SHARDING.place_of(id)) else {
            return;
        };
        if queue.count == 0 || queue.is_being_written {
            return;
        }
        queue.is_being_written = true;
        queue.due_ns = self.rules.due_after(id.0, now_ns);
        queue.count = 0;
        let repeats = std::mem::take(&mut queue.repeats);
        self.being_written += 1;
        self.version += 1;
        batch.begin(SeriesPart {
            id,
            range: 0..0,
            last_record: queue.last_record,
            is_outcome_unknown: queue.is_outcome_unknown,
            repeats,
        });
        self.arena.drain(&mut queue.chain, |samples| batch.extend(samples));
        batch.end();
    }

    /// Ends the write of a series with `outcome`; samples to retry go back to the front of the
    /// queue.
    pub(super) fn done(&mut self, part: &SeriesPart, outcome: &SeriesOutcome, now_ns: u64) {
        let Some(queue) = self.queues.get_mut(SHARDING.place_of(part.id)) else {
            return;
        };
        queue.is_being_written = false;
        self.being_written -= 1;
        self.version += 1;
        self.repeats -= u64::from(part.repeats);
        if outcome.is_damaged {
            let again_ns = now_ns.saturating_add(DAMAGED_NS);
            self.damaged.insert(SHARDING.place_of(part.id) as u32, again_ns);
        } else if outcome.written > 0 {
            self.damaged.remove(&(SHARDING.place_of(part.id) as u32));
        }
        queue.is_outcome_unknown = outcome.is_outcome_unknown;
        queue.needs_retry = !outcome.to_retry.is_empty();
        if outcome.to_retry.is_empty() {
            // Samples queued during the write are in later records.
            queue.first_record = part.last_record + 1;
        } else {
            self.arena.put_back(&mut queue.chain, &outcome.to_retry);
            queue.count += outcome.to_retry.len() as u32;
            // Retry after a pause, but before the next timeout.
            queue.due_ns = now_ns.saturating_add(RETRY_NS);
        }
        if outcome.failed + outcome.expired > 0 {
            // The store lacks admitted samples, so the stretch without gaps starts anew.
            self.known_from[SHARDING.place_of(part.id)] = queue.newest;
        }
        let account = &mut self.account;
        account.written += outcome.written;
        account.failed += outcome.failed;
        account.expired += outcome.expired;
        account.pending -= outcome.written + outcome.failed + outcome.expired;
    }

    /// Drops the queued samples of a series. Returns their number and the journal record of the
    /// last one.
    pub(super) fn forget(&mut self, id: SeriesId) -> (u64, u64) {
        let Some(queue) = self.queues.get_mut(SHARDING.place_of(id)) else {
            return (0, 0);
        };
        let count = u64::from(std::mem::take(&mut queue.count));
        if count > 0 {
            self.known_from[SHARDING.place_of(id)] = queue.newest;
        }
        self.repeats -= u64::from(std::mem::take(&mut queue.repeats));
        self.arena.drain(&mut queue.chain, |_| ());
        self.account.forgotten += count;
        self.account.pending -= count;
        (count, queue.last_record)
    }

    /// Drops all queued samples and counts them as failed.
    pub(super) fn fail_pending(&mut self) -> u64 {
        let failed_samples = self.account.pending;
        self.account.failed += failed_samples;
        self.account.pending = 0;
        for queue in &mut self.queues {
            queue.count = 0;
            self.arena.drain(&mut queue.chain, |_| ());
        }
        failed_samples
    }

    /// Bytes of the queues, and bytes of unused chunks.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let queues = self.queues.capacity() * (size_of::<Queue>() + size_of::<i64>());
        (queues as u64, self.arena.free_bytes())
    }
}
