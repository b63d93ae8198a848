//! The queues of some series: what waits, who is due, who is being written, and the account.
//!
//! It is *not* concurrent: whoever has its lock has it to themselves. So the account
//! balances at every moment at which somebody can look.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tsb_core::{SeriesId, Timestamp};

use super::account::Account;
use super::chunk::{Arena, Budget, Chain, Sample};
use super::load::{Load, Outcome, Part};
use crate::store::Reason;

/// Not due at any time: nothing has come yet.
const NEVER: u64 = u64::MAX;
/// How long a series rests that could not be written.
pub const RETRY_NS: u64 = 1_000_000_000;
/// How long a series takes nothing whose file was found damaged; then one sample finds out
/// whether it still is.
const DAMAGED_NS: u64 = 10_000_000_000;

/// One series, in less than a cache line.
#[derive(Debug)]
struct Queue {
    // The newest timestamp that was admitted, here or before, if `has_newest`.
    newest: i64,
    // From when on a sample makes it due.
    due_ns: u64,
    // The journal's records that hold the oldest and the newest sample that waits.
    first_record: u64,
    last_record: u64,
    chain: Chain,
    count: u32,
    // How many of these take the place of the one before them.
    repeats: u32,
    // The segment of the journal that last named this series.
    named_in: u32,
    is_queued: bool,
    is_being_written: bool,
    // A write failed halfway: the store may have some of what waits.
    is_unsure: bool,
    // Something could not be written.
    has_left: bool,
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
        is_unsure: false,
        has_left: false,
        has_newest: false,
    };
}

/// What holds for all samples of one write.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    pub(super) now_ns: u64,
    /// The record of the journal that the samples are in.
    pub(super) record: u64,
}

/// What is known of the samples of a series of which some wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    /// The newest timestamp that was admitted.
    pub(super) newest: i64,
    /// From when on no two samples are farther apart than the heartbeat.
    pub(super) known_from: i64,
}

impl Waiting {
    /// The end of the newest row that has ended, and whether a store of rows that has all
    /// samples knows its value.
    pub(super) fn row(self, row_ns: i64) -> (Timestamp, bool) {
        let end = self.newest.div_euclid(row_ns) * row_ns;
        (Timestamp(end), self.known_from <= end.saturating_sub(row_ns))
    }
}

/// When a series is due.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) timeout_ns: u64,
    pub(super) jitter_ns: u64,
    /// Two samples of a series that are not so far apart are one to the store.
    pub(super) resolution_ns: i64,
    /// The store keeps one sample in so many nanoseconds.
    pub(super) slot_ns: Option<i64>,
    /// The store takes another sample with the newest timestamp.
    pub(super) takes_repeats: bool,
    /// A store of rows knows what was between two samples that are no farther apart.
    pub(super) heartbeat_ns: i64,
}

impl Pace {
    /// Whether two samples, the second no earlier, have one place in the store.
    fn is_same(&self, newest: i64, at: i64) -> bool {
        match self.slot_ns {
            Some(slot_ns) => newest.div_euclid(slot_ns) == at.div_euclid(slot_ns),
            None => at.saturating_sub(newest) < self.resolution_ns,
        }
    }

    /// When a series is due that is written now: after the timeout, and up to the jitter
    /// later.
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

/// Some series and what waits for them.
#[derive(Debug)]
pub(super) struct Shard {
    index: usize,
    pace: Pace,
    queues: Vec<Queue>,
    // A place a queue, which is read seldom: since when samples have been admitted without a
    // gap between them that the store does not know.
    known_from: Vec<i64>,
    arena: Arena,
    // Each series stands here once at most.
    due: VecDeque<u32>,
    // Series whose files are damaged, and from when on one sample of each is taken again.
    damaged: BTreeMap<u32, u64>,
    account: Account,
    // Pending samples that take the place of another.
    repeats: u64,
    being_written: usize,
    // How often something was taken or done.
    turns: u64,
}

/// Series that stand beside each other in a shard.
pub(super) const BLOCK: usize = 64;
/// Shards, each with a lock of its own.
pub(super) const SHARDS: usize = 16;

/// In which shard a series is.
#[inline]
pub(super) fn shard_of(id: SeriesId) -> usize {
    id.index() / BLOCK % SHARDS
}

#[inline]
fn place_of(id: SeriesId) -> usize {
    id.index() / BLOCK / SHARDS * BLOCK + id.index() % BLOCK
}

/// The series at a place of a shard.
pub(super) fn series_at(shard: usize, place: usize) -> SeriesId {
    SeriesId(((place / BLOCK * SHARDS + shard) * BLOCK + place % BLOCK) as u32)
}

impl Shard {
    pub(super) fn new(index: usize, pace: Pace, budget: Arc<Budget>) -> Self {
        Self {
            index,
            pace,
            queues: Vec::new(),
            known_from: Vec::new(),
            arena: Arena::new(budget),
            due: VecDeque::new(),
            damaged: BTreeMap::new(),
            account: Account::default(),
            repeats: 0,
            being_written: 0,
            turns: 0,
        }
    }

    fn id_of(&self, place: usize) -> SeriesId {
        series_at(self.index, place)
    }

    /// Makes room for a series whose newest sample, written before, is `newest`.
    pub(super) fn add(&mut self, id: SeriesId, newest: Option<i64>) {
        let place = place_of(id);
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
            // What was before is the store's to know.
            self.known_from[place] = newest;
        }
    }

    /// Takes a sample of a series that has been added.
    #[inline]
    pub(super) fn admit(&mut self, id: SeriesId, at: i64, value: f64, moment: Moment) -> Result<(), Reason> {
        let place = place_of(id);
        if !self.damaged.is_empty() && !self.is_usable(place, moment.now_ns) {
            return Err(Reason::Damaged);
        }
        let queue = &mut self.queues[place];
        let is_repeat = queue.has_newest && self.pace.is_same(queue.newest, at);
        if queue.has_newest && (at < queue.newest || (is_repeat && !self.pace.takes_repeats)) {
            return Err(if at < queue.newest {
                Reason::Late
            } else {
                Reason::Duplicate
            });
        }
        if !self.arena.push(&mut queue.chain, (at, value)) {
            return Err(Reason::Full);
        }
        if at.saturating_sub(queue.newest) > self.pace.heartbeat_ns {
            self.known_from[place] = at;
        }
        queue.newest = at;
        queue.has_newest = true;
        queue.repeats += u32::from(is_repeat);
        self.repeats += u64::from(is_repeat);
        queue.last_record = moment.record;
        if queue.count == 0 && !queue.is_being_written {
            queue.first_record = moment.record;
        }
        queue.count += 1;
        self.account.accepted += 1;
        self.account.pending += 1;
        if queue.due_ns == NEVER {
            queue.due_ns = self.pace.due_after(id.0, moment.now_ns);
        }
        if moment.now_ns >= queue.due_ns && !queue.is_queued && !queue.is_being_written {
            queue.is_queued = true;
            self.due.push_back(place as u32);
        }
        Ok(())
    }

    /// Whether a series may take a sample. One whose file is damaged takes one at a time, which
    /// is due at once.
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

    /// The newest timestamp that was admitted.
    pub(super) fn newest(&self, id: SeriesId) -> Option<i64> {
        let queue = self.queues.get(place_of(id))?;
        queue.has_newest.then_some(queue.newest)
    }

    /// What waits of a series, if something does.
    pub(super) fn waiting(&self, id: SeriesId) -> Option<Waiting> {
        let newest = self.holds(id).then(|| self.newest(id)).flatten()?;
        let known_from = self.known_from.get(place_of(id)).copied()?;
        Some(Waiting { newest, known_from })
    }

    /// Whether the segment of the journal has still to name the series: asked once for each.
    #[inline]
    pub(super) fn needs_name(&mut self, id: SeriesId, segment: u32) -> bool {
        let named = self.queues.get_mut(place_of(id)).map(|queue| &mut queue.named_in);
        named.is_some_and(|named| std::mem::replace(named, segment) != segment)
    }

    /// Queues what has waited long enough, or all that waits where `everything` is.
    pub(super) fn queue_due(&mut self, now_ns: u64, everything: bool) {
        for (queue, place) in self.queues.iter_mut().zip(0..) {
            let is_due = everything || now_ns >= queue.due_ns;
            if is_due && queue.count > 0 && !queue.is_queued && !queue.is_being_written {
                queue.is_queued = true;
                self.due.push_back(place);
            }
        }
    }

    /// Queues what the journal has kept since before `record`.
    pub(super) fn queue_before(&mut self, record: u64) {
        for (queue, place) in self.queues.iter_mut().zip(0..) {
            let is_old = queue.count > 0 && queue.first_record < record;
            if is_old && !queue.is_queued && !queue.is_being_written {
                queue.is_queued = true;
                self.due.push_back(place);
            }
        }
    }

    /// The oldest record of the journal of which something waits or is being written.
    pub(super) fn oldest_record(&self) -> Option<u64> {
        let held = self
            .queues
            .iter()
            .filter(|queue| queue.count > 0 || queue.is_being_written);
        held.map(|queue| queue.first_record).min()
    }

    /// How many series are due.
    pub(super) fn due(&self) -> usize {
        self.due.len()
    }

    /// Pending samples that take the place of another.
    pub(super) fn repeats(&self) -> u64 {
        self.repeats
    }

    /// How often something was taken or done; `None` while something is being written.
    pub(super) fn turns(&self) -> Option<u64> {
        (self.being_written == 0).then_some(self.turns)
    }

    /// What has become of every sample that was admitted here.
    pub(super) fn account(&self) -> Account {
        self.account
    }

    /// Takes samples of an earlier life, oldest first, from records of the journal.
    pub(super) fn replay(&mut self, id: SeriesId, samples: &[(u64, Sample)]) {
        let queue = &mut self.queues[place_of(id)];
        // One that is there may have been there before its last change was journaled.
        // Where it is not written once more, it may be called a little earlier: a file keeps
        // times as the store resolves them.
        let is_there = |at: i64| {
            at < queue.newest
                || (!self.pace.takes_repeats && (at == queue.newest || self.pace.is_same(queue.newest, at)))
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
        self.known_from[place_of(id)] = last.1.0;
        // At once: they have waited longer than any other.
        queue.due_ns = 0;
        queue.count += news.len() as u32;
        let samples: Vec<Sample> = news.iter().map(|(_, sample)| *sample).collect();
        self.arena.put_back(&mut queue.chain, &samples);
        self.account.replayed += news.len() as u64;
        self.account.pending += news.len() as u64;
    }

    /// Whether something could not be written and waits to be tried again.
    pub(super) fn has_left(&self) -> bool {
        self.queues.iter().any(|queue| queue.has_left)
    }

    /// Whether something waits for a series, or is being written.
    pub(super) fn holds(&self, id: SeriesId) -> bool {
        let queue = self.queues.get(place_of(id));
        queue.is_some_and(|queue| queue.count > 0 || queue.is_being_written)
    }

    /// Whether a series is being written.
    pub(super) fn is_being_written(&self, id: SeriesId) -> bool {
        let queue = self.queues.get(place_of(id));
        queue.is_some_and(|queue| queue.is_being_written)
    }

    /// Places that series have here: `0..places`.
    pub(super) fn places(&self) -> usize {
        self.queues.len()
    }

    /// Moves what is due into `load`, a few series at a time.
    pub(super) fn take_due(&mut self, load: &mut Load, now_ns: u64) {
        while !load.is_full() {
            let Some(place) = self.due.pop_front() else { return };
            if let Some(queue) = self.queues.get_mut(place as usize) {
                queue.is_queued = false;
            }
            self.take(self.id_of(place as usize), load, now_ns);
        }
    }

    /// Moves what waits for a series into `load`. From now on it is being written, until
    /// [`Shard::done`].
    pub(super) fn take(&mut self, id: SeriesId, load: &mut Load, now_ns: u64) {
        let Some(queue) = self.queues.get_mut(place_of(id)) else {
            return;
        };
        if queue.count == 0 || queue.is_being_written {
            return;
        }
        queue.is_being_written = true;
        queue.due_ns = self.pace.due_after(id.0, now_ns);
        queue.count = 0;
        let repeats = std::mem::take(&mut queue.repeats);
        self.being_written += 1;
        self.turns += 1;
        load.begin(Part {
            id,
            range: 0..0,
            last_record: queue.last_record,
            is_unsure: queue.is_unsure,
            repeats,
        });
        self.arena.drain(&mut queue.chain, |samples| load.extend(samples));
        load.end();
    }

    /// A series has been written, with that outcome; what is left waits on before all else.
    pub(super) fn done(&mut self, part: &Part, outcome: &Outcome, now_ns: u64) {
        let Some(queue) = self.queues.get_mut(place_of(part.id)) else {
            return;
        };
        queue.is_being_written = false;
        self.being_written -= 1;
        self.turns += 1;
        self.repeats -= u64::from(part.repeats);
        if outcome.is_damaged {
            let again_ns = now_ns.saturating_add(DAMAGED_NS);
            self.damaged.insert(place_of(part.id) as u32, again_ns);
        } else if outcome.written > 0 {
            self.damaged.remove(&(place_of(part.id) as u32));
        }
        queue.is_unsure = outcome.is_unsure;
        queue.has_left = !outcome.left.is_empty();
        if outcome.left.is_empty() {
            // What came meanwhile is in later records.
            queue.first_record = part.last_record + 1;
        } else {
            self.arena.put_back(&mut queue.chain, &outcome.left);
            queue.count += outcome.left.len() as u32;
            // Not at once, and not only after another timeout.
            queue.due_ns = now_ns.saturating_add(RETRY_NS);
        }
        if outcome.failed + outcome.expired > 0 {
            // The store lacks samples that were admitted.
            self.known_from[place_of(part.id)] = queue.newest;
        }
        let account = &mut self.account;
        account.written += outcome.written;
        account.failed += outcome.failed;
        account.expired += outcome.expired;
        account.pending -= outcome.written + outcome.failed + outcome.expired;
    }

    /// Drops what waits for a series: how many samples, and the last record of them.
    pub(super) fn forget(&mut self, id: SeriesId) -> (u64, u64) {
        let Some(queue) = self.queues.get_mut(place_of(id)) else {
            return (0, 0);
        };
        let count = u64::from(std::mem::take(&mut queue.count));
        if count > 0 {
            self.known_from[place_of(id)] = queue.newest;
        }
        self.repeats -= u64::from(std::mem::take(&mut queue.repeats));
        self.arena.drain(&mut queue.chain, |_| ());
        self.account.forgotten += count;
        self.account.pending -= count;
        (count, queue.last_record)
    }

    /// Gives up on all that waits.
    pub(super) fn give_up(&mut self) -> u64 {
        let given_up = self.account.pending;
        self.account.failed += given_up;
        self.account.pending = 0;
        for queue in &mut self.queues {
            queue.count = 0;
            self.arena.drain(&mut queue.chain, |_| ());
        }
        given_up
    }

    /// Bytes of the queues, and of chunks that nobody uses.
    pub(super) fn bytes(&self) -> (u64, u64) {
        let queues = self.queues.capacity() * (size_of::<Queue>() + size_of::<i64>());
        (queues as u64, self.arena.free_bytes())
    }
}
