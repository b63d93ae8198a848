//! Generators: the operations of some groups, tick after tick.
//!
//! One for each worker. The plain case (no churn in the group, nothing out of order)
//! hands out the row that the generator keeps anyway, without a copy; anything else goes
//! through columns that are reused. Once warm, nothing is allocated.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;

use super::disorder::Fate;
use super::law;
use super::layout::Block;
use super::rows::{Member, Rows};
use super::trace::Recorded;
use super::{Replay, Workload};
use crate::batch::{Batch, BatchBuf, Ids, Times};
use crate::series::SeriesId;
use crate::time::Timestamp;

/// Further than this a block is not walked tick by tick but set down anew.
const WALK_TICKS: u64 = 1024;

/// Makes what some groups send. Each worker owns one.
#[derive(Debug)]
pub struct Generator<'w> {
    workload: &'w Workload,
    base: Timestamp,
    groups: Range<usize>,
    /// The workload's number of the first block here.
    first_block: usize,
    rows: Rows,
    /// The tick that each block makes next.
    next: Vec<u64>,
    /// The tick that the key beside it belongs to.
    tick: u64,
    tick_key: u64,
    replay: Replay<'w>,
    first_series: u32,
    fate_keys: Vec<u64>,
    jitter_keys: Vec<u64>,
    held: Vec<Held>,
    batch: BatchBuf,
    times: Vec<Timestamp>,
    /// Columns of a recorded batch.
    ids: Vec<SeriesId>,
    values: Vec<f64>,
}

/// What a block has not sent yet, though its tick has passed.
#[derive(Debug, Default)]
struct Held {
    /// Samples that follow those of the next tick, by series.
    swapped: Vec<(u32, Timestamp, u64)>,
    incoming: Vec<(u32, Timestamp, u64)>,
    /// (operation's tick, series, own tick), and timestamp and value bits.
    late: BinaryHeap<Reverse<(u64, u32, u64, Timestamp, u64)>>,
}

impl<'w> Generator<'w> {
    pub(super) fn new(workload: &'w Workload, groups: Range<usize>, base: Timestamp) -> Self {
        let members = &workload.layout.groups[groups.clone()];
        let blocks = match (members.first(), members.last()) {
            (Some(first), Some(last)) => first.blocks.start..last.blocks.end,
            _ => 0..0,
        };
        let planned = &workload.layout.blocks[blocks.clone()];
        let mut rows = Rows::default();
        for block in planned {
            rows.add((block.first..block.first + block.len).map(|series| {
                let (law, keys) = (workload.law(series), workload.keys(series));
                let state = law.start(keys);
                Member { law, keys, state }
            }));
        }
        let first_series = planned.first().map_or(0, |block| block.first);
        let series = first_series..planned.last().map_or(0, |block| block.first + block.len);
        let keys_if = |wanted: bool, key: &dyn Fn(u32) -> u64| match wanted {
            true => series.clone().map(key).collect(),
            false => Vec::new(),
        };
        let fates = &workload.fates;
        Self {
            workload,
            base,
            groups,
            first_block: blocks.start,
            rows,
            next: planned.iter().map(|block| block.ticks.start).collect(),
            tick: 0,
            tick_key: law::tick_key(workload.spec.seed, 0),
            replay: workload.replay(base),
            first_series,
            fate_keys: keys_if(fates.any(), &|series| fates.fate_key(series)),
            jitter_keys: keys_if(fates.jitters(), &|series| fates.jitter_key(series)),
            held: planned.iter().map(|_| Held::default()).collect(),
            batch: BatchBuf::new(),
            times: Vec::new(),
            ids: Vec::new(),
            values: Vec::new(),
        }
    }

    /// The groups it makes.
    pub fn groups(&self) -> Range<usize> {
        self.groups.clone()
    }

    /// What `group` sends in its operation of `tick`; empty when nothing is alive.
    ///
    /// Ask for the ticks of a group in ascending order. Ticks may be left out: what they
    /// would have sent is then not sent at all, late samples included. Going back works
    /// too, and is slow.
    ///
    /// # Panics
    /// When `group` is not one of [`Self::groups`]: a slip of the caller.
    pub fn operation(&mut self, group: usize, tick: u64) -> Batch<'_> {
        assert!(self.groups.contains(&group), "the group is another generator's");
        let workload = self.workload;
        let planned = &workload.layout.groups[group];
        let at = workload.timestamp(group, tick, self.base);
        if workload.fates.any() {
            return self.disordered(group, tick);
        }
        self.set_tick(tick);
        if let Some(recorded) = &workload.recorded {
            return self.recorded(recorded, workload.ids(group), tick, at);
        }
        let first_block = self.first_block;
        let alive = |block: &usize| workload.layout.blocks[*block].ticks.contains(&tick);
        let mut blocks = planned.blocks.clone().filter(alive);
        let Some(first) = blocks.next() else {
            self.batch.clear();
            return self.batch.as_batch();
        };
        self.advance(first, tick);
        let mut last = first;
        let mut contiguous = true;
        for block in blocks {
            self.advance(block, tick);
            contiguous &= last + 1 == block;
            last = block;
        }
        if contiguous {
            let id = workload.layout.blocks[first].first;
            let end = workload.layout.blocks[last].first + workload.layout.blocks[last].len;
            if workload.fates.jitters() {
                self.jitter(id..end, at);
            }
            let values = self.rows.joined(first - first_block..last + 1 - first_block);
            return if workload.fates.jitters() {
                Batch::new(Ids::Range(SeriesId(id)), Times::Each(&self.times), values)
            } else {
                Batch::tick(SeriesId(id), at, values)
            };
        }
        self.scattered(group, tick, at)
    }

    /// What the recording holds at a tick. Most rows have holes, so the ids are a column;
    /// the values of one copy are handed out as they lie in the recording.
    fn recorded(&mut self, recorded: &'w Recorded, ids: Range<u32>, tick: u64, at: Timestamp) -> Batch<'_> {
        let mut count = 0;
        self.ids.clear();
        self.values.clear();
        let mut values: &[f64] = &[];
        for piece in recorded.pieces(ids, tick) {
            count += 1;
            if count == 1 {
                values = piece.values;
            } else {
                if count == 2 {
                    self.values.extend_from_slice(values);
                }
                self.values.extend_from_slice(piece.values);
            }
            let offset = piece.offset;
            self.ids
                .extend(piece.places.iter().map(|place| SeriesId(place.0 + offset)));
        }
        if count > 1 {
            values = &self.values;
        }
        self.times.clear();
        if self.workload.fates.jitters() {
            let (fates, tick_key, keys) = (&self.workload.fates, self.tick_key, &self.jitter_keys);
            let key = |id: &SeriesId| keys[(id.0 - self.first_series) as usize];
            self.times
                .extend(self.ids.iter().map(|id| at + fates.jitter_ns(key(id), tick_key)));
            return Batch::new(Ids::Each(&self.ids), Times::Each(&self.times), values);
        }
        match (self.ids.first(), self.ids.last()) {
            (Some(&first), Some(&last)) if (last.0 - first.0) as usize + 1 == values.len() => {
                Batch::tick(first, at, values)
            }
            _ => Batch::new(Ids::Each(&self.ids), Times::One(at), values),
        }
    }

    /// A batch with holes: some blocks in between are not alive.
    #[cold]
    fn scattered(&mut self, group: usize, tick: u64, at: Timestamp) -> Batch<'_> {
        self.batch.clear();
        for block in self.workload.layout.groups[group].blocks.clone() {
            let planned = &self.workload.layout.blocks[block];
            if !planned.ticks.contains(&tick) {
                continue;
            }
            let row = self.rows.row(block - self.first_block);
            for (series, &value) in (planned.first..).zip(row) {
                let time = match self.jitter_keys.get((series - self.first_series) as usize) {
                    Some(&key) => at + self.workload.fates.jitter_ns(key, self.tick_key),
                    None => at,
                };
                self.batch.push(SeriesId(series), time, value);
            }
        }
        self.batch.as_batch()
    }

    /// Fills the time column for a contiguous range of series.
    fn jitter(&mut self, series: Range<u32>, at: Timestamp) {
        let keys = (series.start - self.first_series) as usize..(series.end - self.first_series) as usize;
        let (fates, tick_key) = (self.workload.fates, self.tick_key);
        self.times.clear();
        let keys = &self.jitter_keys[keys];
        self.times
            .extend(keys.iter().map(|&key| at + fates.jitter_ns(key, tick_key)));
    }

    #[inline]
    fn set_tick(&mut self, tick: u64) {
        if self.tick != tick {
            self.tick = tick;
            self.tick_key = law::tick_key(self.workload.spec.seed, tick);
        }
    }

    /// Brings a block's row to `tick`, whose key is set.
    #[inline]
    fn advance(&mut self, block: usize, tick: u64) {
        let local = block - self.first_block;
        if self.next[local] != tick {
            if self.next[local] == tick + 1 {
                return;
            }
            self.catch_up(block, tick);
        }
        self.rows.advance(local, tick, self.tick_key);
        if let Some(recorded) = &self.workload.recorded {
            let planned = &self.workload.layout.blocks[block];
            let row = self.rows.row_mut(local);
            for piece in recorded.pieces(planned.first..planned.first + planned.len, tick) {
                for (place, &value) in piece.places.iter().zip(piece.values) {
                    row[(place.0 + piece.offset - planned.first) as usize] = value;
                }
            }
        }
        self.next[local] = tick + 1;
    }

    /// Brings a block to where `tick` is its next.
    #[cold]
    fn catch_up(&mut self, block: usize, tick: u64) {
        let local = block - self.first_block;
        let next = self.next[local];
        if next < tick && tick - next <= WALK_TICKS {
            for between in next..tick {
                let key = law::tick_key(self.workload.spec.seed, between);
                self.rows.advance(local, between, key);
            }
        } else {
            let planned = &self.workload.layout.blocks[block];
            let replay = &mut self.replay;
            let series = planned.first..planned.first + planned.len;
            let states = series.map(|series| replay.state_before(SeriesId(series), tick));
            self.rows.restore(local, states);
        }
        self.next[local] = tick;
    }

    /// An operation in which samples may be late, missing, doubled or swapped.
    fn disordered(&mut self, group: usize, tick: u64) -> Batch<'_> {
        self.batch.clear();
        for block in self.workload.layout.groups[group].blocks.clone() {
            let planned = &self.workload.layout.blocks[block];
            if !planned.ticks.contains(&tick) {
                continue;
            }
            let local = block - self.first_block;
            if self.next[local] != tick {
                // What earlier ticks hold back for this one and later ones.
                self.held[local] = Held::default();
                let reach = self.workload.fates.reach();
                for earlier in tick.saturating_sub(reach).max(planned.ticks.start)..tick {
                    self.pass(group, block, planned, earlier, false);
                }
            }
            self.pass(group, block, planned, tick, true);
        }
        self.batch.as_batch()
    }

    /// Lets one tick of a block pass; what is sent in it goes into the batch, or nowhere.
    fn pass(&mut self, group: usize, block: usize, planned: &Block, tick: u64, send: bool) {
        self.set_tick(tick);
        self.advance(block, tick);
        let local = block - self.first_block;
        let workload = self.workload;
        let (fates, tick_key) = (&workload.fates, self.tick_key);
        let at = workload.timestamp(group, tick, self.base);
        let offset = (planned.first - self.first_series) as usize;
        let held = &mut self.held[local];
        let mut follow = held.swapped.drain(..).peekable();
        let row = self.rows.row(local);
        for (place, (series, &value)) in (offset..).zip((planned.first..).zip(row)) {
            let jitter = self.jitter_keys.get(place);
            let at = jitter.map_or(at, |&key| at + fates.jitter_ns(key, tick_key));
            let fate = match &workload.recorded {
                Some(recorded) if recorded.value(series, tick).is_none() => Fate::Missing,
                _ => fates.of(self.fate_keys[place], tick, tick_key, planned.ticks.end),
            };
            let copies = match fate {
                Fate::OnTime => 1,
                Fate::Twice => 2,
                Fate::Missing => 0,
                Fate::Swapped => {
                    held.incoming.push((series, at, value.to_bits()));
                    0
                }
                Fate::Late(by) => {
                    held.late.push(Reverse((tick + by, series, tick, at, value.to_bits())));
                    0
                }
            };
            if send {
                for _ in 0..copies {
                    self.batch.push(SeriesId(series), at, value);
                }
            }
            if let Some((_, at, bits)) = follow.next_if(|(swapped, ..)| *swapped == series)
                && send
            {
                self.batch.push(SeriesId(series), at, f64::from_bits(bits));
            }
        }
        drop(follow);
        std::mem::swap(&mut held.swapped, &mut held.incoming);
        while let Some(&Reverse((due, series, _, at, bits))) = held.late.peek() {
            if due > tick {
                break;
            }
            held.late.pop();
            if send && due == tick {
                self.batch.push(SeriesId(series), at, f64::from_bits(bits));
            }
        }
    }
}
