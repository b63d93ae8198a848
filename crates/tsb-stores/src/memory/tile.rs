//! A tile: series with neighbouring ids that were first written together, under one lock.
//!
//! A tick of a tile is a row of its ring; groups of eight series are sealed in turn, so
//! that no tick waits for many. A sample that fits no row goes to its series' loose
//! samples. Who belongs to which tile is the directory's business.

mod expiry;
mod read;

use std::sync::{Mutex, MutexGuard};

use super::block::{Columns, GROUP, MAX_BYTES, Sealer};
use super::budget::Budget;
use super::index::Index;
use super::loose::Loose;
use super::rows::Rows;
use crate::error::{Error, Result};
use crate::store::Reason;

pub(super) use read::{Held, Parts};

/// The most series of a tile: an odd number of cache lines, so that the rows of a group
/// do not share a cache set.
pub(super) const MAX_LEN: usize = 248;
/// A new row is begun for at least this share of a tile; fewer samples are loose.
const BROAD: usize = 8;

/// Bytes of the note that a sealed sample was superseded.
const NOTE: usize = 16;

/// What a write needs to know of the store.
#[derive(Clone, Copy, Debug)]
pub(super) struct Env<'a> {
    pub(super) budget: &'a Budget,
    /// Samples before this are expired; `i64::MIN` without retention.
    pub(super) cutoff: i64,
}

/// Receives refused samples: an index within the written run, and why.
pub(super) type Refuse<'a> = dyn FnMut(usize, Reason) + 'a;

/// A tile and its lock.
#[derive(Debug)]
pub(super) struct Tile {
    /// The id of the first series.
    pub(super) first: u32,
    /// How many series there are. in [1, 248]
    pub(super) len: u32,
    state: Mutex<State>,
}

impl Tile {
    /// A tile without samples. `number` decides when its groups are sealed, so that tiles
    /// that are written together are not sealed together.
    pub(super) fn new(first: u32, len: usize, number: u32, rows: usize) -> Self {
        Self {
            first,
            len: len as u32,
            state: Mutex::new(State::new(len, number, rows)),
        }
    }

    pub(super) fn lock(&self) -> Result<MutexGuard<'_, State>> {
        self.state.lock().map_err(|_| Error::Poisoned {
            cause: format!("a write to series from #{} panicked", self.first),
        })
    }

    /// Bytes of a tile before it holds anything.
    pub(super) fn bytes(len: usize) -> usize {
        size_of::<Self>() + len.div_ceil(GROUP) * size_of::<Group>()
    }
}

/// Eight series, or what is left of a tile.
#[derive(Debug, Default)]
struct Group {
    /// Rows from this number on are open.
    open_from: u64,
    index: Index,
    /// Sealed samples that a loose one has superseded: when, and which column.
    dead: Vec<(i64, u8)>,
}

/// What a tile holds.
#[derive(Debug)]
pub(super) struct State {
    len: usize,
    /// Moves the moments of sealing against those of other tiles.
    phase: usize,
    rows: Rows,
    groups: Vec<Group>,
    /// Empty until the first loose sample; then one a series.
    loose: Vec<Loose>,
    /// The newest loose timestamp. A row above it meets no loose sample.
    loose_newest: i64,
    sealed_bytes: usize,
    sealed_samples: usize,
}

thread_local! {
    // Scratch memory of the sealing thread: 30 KiB that no tile has to keep.
    static SCRATCH: std::cell::RefCell<Box<(Sealer, Columns)>> = std::cell::RefCell::default();
}

impl State {
    fn new(len: usize, number: u32, rows: usize) -> Self {
        let mut groups = Vec::new();
        groups.resize_with(len.div_ceil(GROUP), Group::default);
        Self {
            len,
            // Any odd multiple spreads the tiles over the ring.
            phase: (number as usize).wrapping_mul(151) % rows,
            rows: Rows::new(len, rows),
            groups,
            loose: Vec::new(),
            loose_newest: i64::MIN,
            sealed_bytes: 0,
            sealed_samples: 0,
        }
    }

    /// Writes one timestamp of neighbouring series, `column` being the first. Returns how
    /// many samples were superseded.
    #[inline]
    pub(super) fn write(
        &mut self,
        at: i64,
        column: usize,
        values: &[f64],
        env: Env<'_>,
        refuse: &mut Refuse<'_>,
    ) -> usize {
        let last = self.rows.last();
        if at < env.cutoff {
            refuse_all(values.len(), Reason::Expired, refuse);
            return 0;
        }
        if last.is_some_and(|last| at < last) {
            return self.write_late(at, column, values, env, refuse);
        }
        if last != Some(at) {
            if values.len() * BROAD < self.len && !self.rows.continues(at) {
                return self.write_loose(at, column, values, env, refuse);
            }
            if !self.make_room(env) {
                refuse_all(values.len(), Reason::Full, refuse);
                return 0;
            }
            self.rows.push(at);
        }
        let row = self.rows.next() - 1;
        if at > self.loose_newest {
            self.rows.fill(row, column, values)
        } else {
            self.write_row(row, at, column, values, env, refuse)
        }
    }

    /// Writes into an open row of which some series may have a loose sample already.
    fn write_row(
        &mut self,
        row: u64,
        at: i64,
        column: usize,
        values: &[f64],
        env: Env<'_>,
        refuse: &mut Refuse<'_>,
    ) -> usize {
        let mut superseded = 0;
        for (index, value) in values.iter().enumerate() {
            let column = column + index;
            let open = row >= self.groups[column / GROUP].open_from;
            superseded += if open && !self.is_loose(column, at) {
                self.rows.fill(row, column, &[*value])
            } else {
                self.put_loose(column, at, *value, env).unwrap_or_else(|reason| {
                    refuse(index, reason);
                    0
                })
            };
        }
        superseded
    }

    /// Writes samples older than the newest row.
    fn write_late(&mut self, at: i64, column: usize, values: &[f64], env: Env<'_>, refuse: &mut Refuse<'_>) -> usize {
        let Some(row) = self.rows.find(at) else {
            return self.write_loose(at, column, values, env, refuse);
        };
        if at <= self.loose_newest {
            return self.write_row(row, at, column, values, env, refuse);
        }
        let groups = &self.groups[column / GROUP..=(column + values.len() - 1) / GROUP];
        if groups.iter().all(|group| row >= group.open_from) {
            self.rows.fill(row, column, values)
        } else {
            self.write_row(row, at, column, values, env, refuse)
        }
    }

    /// Writes samples that belong to no row.
    fn write_loose(&mut self, at: i64, column: usize, values: &[f64], env: Env<'_>, refuse: &mut Refuse<'_>) -> usize {
        let mut superseded = 0;
        for (index, value) in values.iter().enumerate() {
            match self.put_loose(column + index, at, *value, env) {
                Ok(count) => superseded += count,
                Err(reason) => refuse(index, reason),
            }
        }
        superseded
    }

    /// Whether the loose samples of a series hold one at `at`.
    fn is_loose(&self, column: usize, at: i64) -> bool {
        let Some(loose) = self.loose.get(column) else {
            return false;
        };
        at <= loose.newest
            && (loose.find(at).is_ok()
                || SCRATCH.with_borrow_mut(|scratch| loose.holding(at, &mut scratch.1).is_some()))
    }

    /// Puts one sample among the loose ones of its series: 1 when it superseded another.
    fn put_loose(&mut self, column: usize, at: i64, value: f64, env: Env<'_>) -> std::result::Result<usize, Reason> {
        if self.loose.is_empty() {
            self.begin_loose(env)?;
        }
        let last = self.rows.last();
        let loose = &mut self.loose[column];
        if let Ok(place) = loose.find(at) {
            loose.head[place].1 = value;
            return Ok(1);
        }
        if loose.is_full() {
            if !env.budget.take(MAX_BYTES) {
                return Err(Reason::Full);
            }
            let samples = loose.head.len();
            let bytes = SCRATCH.with_borrow_mut(|scratch| loose.seal(&mut scratch.0));
            env.budget.settle(MAX_BYTES, bytes);
            self.sealed_bytes += bytes;
            self.sealed_samples += samples;
        }
        let fresh = at > loose.newest && last.is_none_or(|last| at > last);
        // A sample that may supersede a sealed one may need a note of that.
        let growth = loose.growth() + if fresh { 0 } else { NOTE };
        if growth > 0 && !env.budget.take(growth) {
            return Err(Reason::Full);
        }
        let superseded = if fresh { 0 } else { self.supersede_sealed(column, at) };
        if !fresh && superseded == 0 {
            env.budget.give(NOTE);
        }
        let loose = &mut self.loose[column];
        let place = loose.find(at).unwrap_or_else(|place| place);
        loose.insert(place, at, value);
        self.loose_newest = self.loose_newest.max(at);
        Ok(superseded)
    }

    /// Notes that the sealed sample at `at`, if there is one, will not be seen again.
    fn supersede_sealed(&mut self, column: usize, at: i64) -> usize {
        let loose = &mut self.loose[column];
        let group = &mut self.groups[column / GROUP];
        let found = SCRATCH.with_borrow_mut(|scratch| {
            if let Some(block) = loose.holding(at, &mut scratch.1) {
                loose.dead.push((at, block));
                return true;
            }
            let block = group.index.find(at);
            let held = block.is_some_and(|block| block.holds(column % GROUP, at, &mut scratch.1));
            if held {
                group.dead.push((at, (column % GROUP) as u8));
            }
            held
        });
        self.sealed_samples -= usize::from(found);
        usize::from(found)
    }

    /// Allocates the table of loose series.
    fn begin_loose(&mut self, env: Env<'_>) -> std::result::Result<(), Reason> {
        if !env.budget.take(self.len * size_of::<Loose>()) {
            return Err(Reason::Full);
        }
        self.loose = (0..self.len).map(|column| Loose::new(self.phase + column)).collect();
        Ok(())
    }

    /// Makes room for the next row: seals the groups whose turn it is. False, and nothing
    /// done, when the budget is used up.
    #[inline]
    fn make_room(&mut self, env: Env<'_>) -> bool {
        if !self.rows.is_allocated() && !env.budget.take(self.rows.bytes()) {
            return false;
        }
        let next = self.rows.next();
        let (capacity, groups) = (self.rows.capacity(), self.groups.len());
        let turn = (next as usize + self.phase) % capacity;
        let due = (turn * groups).div_ceil(capacity)..((turn + 1) * groups).div_ceil(capacity);
        if due.is_empty() || next == 0 {
            return true;
        }
        let worst = due.len() * MAX_BYTES;
        if !env.budget.take(worst) {
            return false;
        }
        let before = self.sealed_bytes;
        for group in due {
            self.seal(group);
        }
        env.budget.settle(worst, self.sealed_bytes - before);
        true
    }

    /// Seals the open rows of a group.
    fn seal(&mut self, group: usize) {
        let next = self.rows.next();
        let from = std::mem::replace(&mut self.groups[group].open_from, next);
        if from == next {
            return;
        }
        let columns = (self.len - group * GROUP).min(GROUP);
        SCRATCH.with_borrow_mut(|scratch| {
            let sealer = &mut scratch.0;
            self.rows.gather(group, (from, next), sealer);
            let (rows, samples) = sealer.drop_empty_rows((next - from) as usize, columns);
            if rows == 0 {
                return;
            }
            let (block, maxima) = sealer.seal(rows, columns);
            self.sealed_samples += samples;
            self.sealed_bytes += block.heap_bytes();
            self.sealed_bytes += self.groups[group].index.push(block, &maxima[..columns]);
        });
    }
}

fn refuse_all(count: usize, reason: Reason, refuse: &mut Refuse<'_>) {
    for index in 0..count {
        refuse(index, reason);
    }
}
