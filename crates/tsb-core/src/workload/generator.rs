//! Generators: produce the operations of some groups, tick by tick.
//!
//! There is one per worker. In the common case (no churn in the group, nothing out of order) it
//! returns its own row without a copy; otherwise it fills columns that are reused. After the first
//! operations it does not allocate.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use super::disorder::{DisorderModel, SampleOutcome};
use super::layout::Block;
use super::rows::{RowGenerator, RowSeries};
use super::trace::RecordedWorkload;
use super::value_model;
use super::{Checkpoint, Replay, Workload};
use crate::batch::{Batch, BatchBuf, Ids, Times};
use crate::series::SeriesId;
use crate::time::Timestamp;

/// Maximum number of ticks that a block is advanced one by one; beyond that it is computed anew.
const WALK_TICKS: u64 = 1024;

/// Generates what some groups send. Each worker owns one.
#[derive(Debug)]
pub struct Generator<'w> {
    workload: &'w Workload,
    base: Timestamp,
    groups: Range<usize>,
    /// Index in the workload of this generator's first block.
    first_block: usize,
    rows: RowGenerator,
    /// The next tick of each block.
    next: Vec<u64>,
    /// The tick of `tick_key`.
    tick: u64,
    tick_key: u64,
    replay: Replay<'w>,
    first_series: u32,
    outcome_keys: Vec<u64>,
    jitter_keys: Vec<u64>,
    pending: Vec<PendingSamples>,
    batch: BatchBuf,
    times: Vec<Timestamp>,
    /// Columns of a recorded batch.
    ids: Vec<SeriesId>,
    values: Vec<f64>,
}

/// Samples of a block that are not sent yet although their tick has passed.
#[derive(Debug, Default)]
struct PendingSamples {
    /// Samples that are sent after those of the next tick, by series.
    swapped: Vec<(u32, Timestamp, f64)>,
    incoming: Vec<(u32, Timestamp, f64)>,
    /// Number of `swapped` samples that were sent already.
    follow: usize,
    late: BinaryHeap<Reverse<Late>>,
}

/// A late sample, in sending order: tick of the operation, series, own tick; then its timestamp
/// and the bits of its value.
type Late = (u64, u32, u64, Timestamp, u64);

impl<'w> Generator<'w> {
    pub(super) fn new(workload: &'w Workload, groups: Range<usize>, base: Timestamp) -> Self {
        let members = &workload.layout.groups[groups.clone()];
        let blocks = match (members.first(), members.last()) {
            (Some(first), Some(last)) => first.blocks.start..last.blocks.end,
            _ => 0..0,
        };
        let planned = &workload.layout.blocks[blocks.clone()];
        let mut rows = RowGenerator::default();
        for block in planned {
            rows.add((block.first..block.first + block.len).map(|series| {
                let (model, keys) = (workload.model(series), workload.keys(series));
                let state = model.start(keys);
                RowSeries { model, keys, state }
            }));
        }
        let first_series = planned.first().map_or(0, |block| block.first);
        let series = first_series..planned.last().map_or(0, |block| block.first + block.len);
        let keys_if = |wanted: bool, key: &dyn Fn(u32) -> u64| -> Vec<u64> {
            let series = series.clone().filter(|_| wanted);
            series.map(key).collect()
        };
        let disorder = &workload.disorder;
        Self {
            workload,
            base,
            groups,
            first_block: blocks.start,
            rows,
            next: planned.iter().map(|block| block.ticks.start).collect(),
            tick: 0,
            tick_key: value_model::tick_key(workload.spec.seed, 0),
            replay: workload.replay(base),
            first_series,
            outcome_keys: keys_if(disorder.any(), &|series| disorder.outcome_key(series)),
            jitter_keys: keys_if(disorder.jitters(), &|series| disorder.jitter_key(series)),
            pending: planned.iter().map(|_| PendingSamples::default()).collect(),
            batch: BatchBuf::new(),
            times: Vec::new(),
            ids: Vec::new(),
            values: Vec::new(),
        }
    }

    /// The groups that it generates.
    pub fn groups(&self) -> Range<usize> {
        self.groups.clone()
    }

    /// Sets the checkpoint to start from if the first requested tick is far ahead.
    pub fn start_from(&mut self, checkpoint: Option<Arc<Checkpoint>>) {
        self.replay.start_from(checkpoint);
    }

    /// The samples that `group` sends in its operation of `tick`; empty if no series is alive.
    ///
    /// Request the ticks of a group in ascending order. A tick may be skipped; its samples are
    /// then never sent, late ones included. Going back works, but is slow.
    ///
    /// # Panics
    /// If `group` is not one of [`Self::groups`], which is a bug of the caller.
    pub fn operation(&mut self, group: usize, tick: u64) -> Batch<'_> {
        assert!(self.groups.contains(&group), "the group is another generator's");
        let workload = self.workload;
        let planned = &workload.layout.groups[group];
        let at = workload.timestamp(group, tick, self.base);
        if workload.disorder.any() {
            return self.disordered(group, tick);
        }
        self.set_tick(tick);
        if let Some(recorded) = &workload.recorded {
            return self.recorded(recorded, group, tick, at);
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
            self.jitter(id..end, at);
            let values = self.rows.joined(first - first_block..last + 1 - first_block);
            return if self.times.is_empty() {
                Batch::tick(SeriesId(id), at, values)
            } else {
                Batch::new(Ids::Range(SeriesId(id)), Times::Each(&self.times), values)
            };
        }
        self.scattered(group, tick, at)
    }

    /// The samples of a recording at a tick. Most rows have gaps, so the ids are a column; the
    /// values of one copy are returned in place, as stored in the recording.
    fn recorded(&mut self, recorded: &'w RecordedWorkload, group: usize, tick: u64, at: Timestamp) -> Batch<'_> {
        let mut count = 0;
        self.ids.clear();
        self.values.clear();
        let mut values: &[f64] = &[];
        for piece in recorded.pieces(group, self.workload.ids(group), tick) {
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
        if self.workload.disorder.jitters() {
            let (disorder, tick_key, keys) = (&self.workload.disorder, self.tick_key, &self.jitter_keys);
            let key = |id: &SeriesId| keys[(id.0 - self.first_series) as usize];
            self.times
                .extend(self.ids.iter().map(|id| disorder.jittered(at, key(id), tick_key)));
            return Batch::new(Ids::Each(&self.ids), Times::Each(&self.times), values);
        }
        let has_doubles = recorded.window().doubled > 0;
        match (self.ids.first(), self.ids.last()) {
            (Some(&first), Some(&last)) if !has_doubles && (last.0 - first.0) as usize + 1 == values.len() => {
                Batch::tick(first, at, values)
            }
            _ => Batch::new(Ids::Each(&self.ids), Times::One(at), values),
        }
    }

    /// A batch with gaps: some blocks between others are not alive.
    #[cold]
    fn scattered(&mut self, group: usize, tick: u64, at: Timestamp) -> Batch<'_> {
        self.batch.clear();
        for block in self.workload.layout.groups[group].blocks.clone() {
            let planned = &self.workload.layout.blocks[block];
            if planned.ticks.contains(&tick) {
                self.jitter(planned.first..planned.first + planned.len, at);
                let times = if self.times.is_empty() {
                    Times::One(at)
                } else {
                    Times::Each(&self.times)
                };
                self.batch
                    .extend(SeriesId(planned.first), times, self.rows.row(block - self.first_block));
            }
        }
        self.batch.as_batch()
    }

    /// Fills the time column for a contiguous range of series; leaves it empty if timestamps have
    /// no jitter.
    fn jitter(&mut self, series: Range<u32>, at: Timestamp) {
        let (disorder, tick_key) = (self.workload.disorder, self.tick_key);
        self.times.clear();
        if disorder.jitters() {
            let keys = (series.start - self.first_series) as usize..(series.end - self.first_series) as usize;
            let keys = &self.jitter_keys[keys];
            self.times
                .extend(keys.iter().map(|&key| disorder.jittered(at, key, tick_key)));
        }
    }

    #[inline]
    fn set_tick(&mut self, tick: u64) {
        if self.tick != tick {
            self.tick = tick;
            self.tick_key = value_model::tick_key(self.workload.spec.seed, tick);
        }
    }

    /// Advances a block's row to `tick`, whose key is set.
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
            for piece in recorded.grid_pieces(planned.first..planned.first + planned.len, tick) {
                for (place, &value) in piece.places.iter().zip(piece.values) {
                    row[(place.0 + piece.offset - planned.first) as usize] = value;
                }
            }
        }
        self.next[local] = tick + 1;
    }

    /// Brings a block to the state in which `tick` is its next.
    #[cold]
    fn catch_up(&mut self, block: usize, tick: u64) {
        let local = block - self.first_block;
        let next = self.next[local];
        if next < tick && tick - next <= WALK_TICKS {
            for between in next..tick {
                let key = value_model::tick_key(self.workload.spec.seed, between);
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

    /// An operation whose samples may be late, missing, doubled or swapped.
    fn disordered(&mut self, group: usize, tick: u64) -> Batch<'_> {
        self.batch.clear();
        for block in self.workload.layout.groups[group].blocks.clone() {
            let planned = &self.workload.layout.blocks[block];
            if !planned.ticks.contains(&tick) {
                continue;
            }
            let local = block - self.first_block;
            if self.next[local] != tick {
                // Recomputes the samples that earlier ticks hold back for this one and later ones.
                self.pending[local] = PendingSamples::default();
                let reach = self.workload.disorder.reach();
                for earlier in tick.saturating_sub(reach).max(planned.ticks.start)..tick {
                    self.pass(group, block, planned, earlier, false);
                }
            }
            self.pass(group, block, planned, tick, true);
        }
        self.batch.as_batch()
    }

    /// Advances a block by one tick; the samples sent in it go into the batch if `send` is set.
    fn pass(&mut self, group: usize, block: usize, planned: &Block, tick: u64, send: bool) {
        self.set_tick(tick);
        self.advance(block, tick);
        let at = self.workload.timestamp(group, tick, self.base);
        self.jitter(planned.first..planned.first + planned.len, at);
        let local = block - self.first_block;
        let first_key = (planned.first - self.first_series) as usize;
        let block_tick = BlockTick {
            disorder: &self.workload.disorder,
            recorded: self.workload.recorded.as_ref(),
            tick,
            tick_key: self.tick_key,
            death: planned.ticks.end,
            send,
        };
        let pending = &mut self.pending[local];
        pending.follow = 0;
        for (start, values) in (0..)
            .step_by(SERIES_AT_ONCE)
            .zip(self.rows.row(local).chunks(SERIES_AT_ONCE))
        {
            let part = AdjacentSeries {
                first: planned.first + start as u32,
                keys: &self.outcome_keys[first_key + start..first_key + start + values.len()],
                times: match self.times.get(start..start + values.len()) {
                    Some(times) if !times.is_empty() => Times::Each(times),
                    _ => Times::One(at),
                },
                values,
            };
            block_tick.push(&part, pending, &mut self.batch);
        }
        pending.swapped.clear();
        std::mem::swap(&mut pending.swapped, &mut pending.incoming);
        block_tick.late(pending, &mut self.batch);
    }
}

/// Number of series whose outcomes are examined together.
const SERIES_AT_ONCE: usize = 16;

/// Some adjacent series at one tick.
#[derive(Debug)]
struct AdjacentSeries<'a> {
    first: u32,
    keys: &'a [u64],
    times: Times<'a>,
    values: &'a [f64],
}

/// One tick of one block, while it is put into a batch.
#[derive(Debug)]
struct BlockTick<'a> {
    disorder: &'a DisorderModel,
    recorded: Option<&'a RecordedWorkload>,
    tick: u64,
    tick_key: u64,
    death: u64,
    send: bool,
}

impl BlockTick<'_> {
    fn push(&self, part: &AdjacentSeries<'_>, pending: &mut PendingSamples, batch: &mut BatchBuf) {
        let end = part.first + part.values.len() as u32;
        let follows = pending
            .swapped
            .get(pending.follow)
            .is_some_and(|(series, ..)| *series < end);
        let keys = part.keys.iter().map(|&key| (key, self.tick_key));
        if self.recorded.is_none() && !follows && !self.disorder.any_of(keys) {
            if self.send {
                batch.extend(SeriesId(part.first), part.times, part.values);
            }
            return;
        }
        let samples = part.keys.iter().zip(part.values);
        for (index, (series, (&key, &value))) in (part.first..).zip(samples).enumerate() {
            let at = match part.times {
                Times::One(at) => at,
                Times::Each(times) => times[index],
            };
            let outcome = match self.recorded {
                Some(recorded) if recorded.value(series, self.tick).is_none() => SampleOutcome::Missing,
                _ => self.disorder.of(key, self.tick, self.tick_key, self.death),
            };
            let copies = match outcome {
                SampleOutcome::OnTime => 1,
                SampleOutcome::Twice => 2,
                SampleOutcome::Missing => 0,
                SampleOutcome::Swapped => {
                    pending.incoming.push((series, at, value));
                    0
                }
                SampleOutcome::Late(by) => {
                    let due = self.tick + by;
                    pending
                        .late
                        .push(Reverse((due, series, self.tick, at, value.to_bits())));
                    0
                }
            };
            for _ in 0..if self.send { copies } else { 0 } {
                batch.push(SeriesId(series), at, value);
            }
            match pending.swapped.get(pending.follow) {
                Some(&(swapped, at, value)) if swapped == series => {
                    pending.follow += 1;
                    if self.send {
                        batch.push(SeriesId(series), at, value);
                    }
                }
                _ => {}
            }
        }
    }

    /// Adds the late samples that are due now.
    fn late(&self, pending: &mut PendingSamples, batch: &mut BatchBuf) {
        while let Some(&Reverse((due, series, _, at, bits))) = pending.late.peek() {
            if due > self.tick {
                break;
            }
            pending.late.pop();
            if self.send && due == self.tick {
                batch.push(SeriesId(series), at, f64::from_bits(bits));
            }
        }
    }
}
