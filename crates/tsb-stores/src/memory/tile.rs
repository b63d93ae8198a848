//! A tile: up to 240 series with neighbouring ids that were first written together.
//!
//! A tick of a tile is a row; when the open rows reach their limit they are sealed, eight series
//! per block. Tiles reach their limits at different times, so no write waits for many. A sample
//! that fits no row becomes a loose sample of its series. The extent assigns series to tiles, and
//! has the lock.

mod expiry;
mod read;

use std::ops::Range;

use super::budget::Budget;
use super::index::Index;
use super::loose::LooseSamples;
use super::rows::Rows;
use crate::block::{Columns, GROUP, Sealer, max_bytes};
use crate::store::Reason;

/// Maximum number of series in a tile. Sealing this many takes a quarter of a millisecond. A row
/// is then an odd number of cache lines, so that the lines of a group are in different cache
/// sets.
pub(super) const MAX_LEN: usize = 240;
/// A new row is begun for at least 1/8 of a tile's series; fewer samples become loose.
const BROAD: usize = 8;

/// Bytes of the note that a sealed sample was replaced.
const NOTE: usize = 16;

/// The store's state that a write needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct TileContext<'a> {
    pub(super) budget: &'a Budget,
    /// Samples before this have expired; `i64::MIN` without retention.
    pub(super) cutoff: i64,
}

/// Receives refused samples: the index in the written run, and the reason.
pub(super) type OnRefused<'a> = dyn FnMut(usize, Reason) + 'a;

/// Eight series, or the rest of a tile.
#[derive(Debug, Default)]
struct Group {
    index: Index,
    /// Sealed samples that a loose one has replaced: timestamp and column.
    dead: Vec<(i64, u8)>,
}

/// The samples of a tile.
#[derive(Debug)]
pub(super) struct Tile {
    len: usize,
    /// Number of rows at which they are sealed. The first time it differs from tile to tile, so
    /// that tiles that are written together are sealed at different times.
    seal_at: usize,
    rows: Rows,
    groups: Vec<Group>,
    /// `None` until the first loose sample.
    loose: Option<Box<LooseSamples>>,
    sealed_bytes: usize,
    sealed_samples: usize,
}

thread_local! {
    // Scratch memory of the sealing thread: 30 KiB that tiles need not have.
    static SCRATCH: std::cell::RefCell<Box<(Sealer, Columns)>> = std::cell::RefCell::default();
}

impl Tile {
    /// A tile of `len` series without samples, which keeps `rows` rows open. `number` determines
    /// when it is first sealed. `len` must be in [1, 240].
    pub(super) fn new(len: usize, number: u32, rows: usize) -> Self {
        let mut groups = Vec::new();
        groups.resize_with(len.div_ceil(GROUP), Group::default);
        Self {
            len,
            // 151 is coprime to every `rows` that is a power of two, so consecutive tiles use all
            // different limits before one repeats.
            seal_at: (number as usize).wrapping_mul(151) % rows + 1,
            rows: Rows::new(len, rows),
            groups,
            loose: None,
            sealed_bytes: 0,
            sealed_samples: 0,
        }
    }

    /// Bytes of an empty tile with `len` series.
    pub(super) fn bytes(len: usize) -> usize {
        size_of::<Self>() + len.div_ceil(GROUP) * size_of::<Group>()
    }

    /// Whether any row was ever written.
    #[cfg(feature = "sqlite")]
    pub(super) fn is_written(&self) -> bool {
        self.rows.touched_bytes() > 0
    }

    /// Allocates the rows before the first write.
    #[cfg(feature = "sqlite")]
    pub(super) fn prepare(&mut self) {
        self.rows.allocate();
    }

    /// Removes all samples, and frees their memory.
    #[cfg(feature = "sqlite")]
    pub(super) fn release(&mut self) {
        if self.rows.is_allocated() || self.sealed_samples > 0 || self.loose.is_some() {
            self.groups.fill_with(Group::default);
            self.rows.release();
            self.loose = None;
            (self.sealed_bytes, self.sealed_samples) = (0, 0);
        }
    }

    /// Writes one timestamp of neighbouring series, from `column` on. Returns how many samples
    /// were replaced.
    #[inline]
    pub(super) fn write(
        &mut self,
        at: i64,
        column: usize,
        values: &[f64],
        context: TileContext<'_>,
        refuse: &mut OnRefused<'_>,
    ) -> usize {
        let last = self.rows.last();
        if at < context.cutoff {
            refuse_all(values.len(), Reason::Expired, refuse);
            return 0;
        }
        if last.is_some_and(|last| at < last) {
            return self.write_late(at, column, values, context, refuse);
        }
        if last != Some(at) {
            if values.len() * BROAD < self.len && !self.rows.continues(at) {
                return self.write_loose(at, column, values, context, refuse);
            }
            if !self.make_room(context) {
                refuse_all(values.len(), Reason::Full, refuse);
                return 0;
            }
            self.rows.push(at);
        } else if self.rows.len() == 0 {
            // The row has expired meanwhile.
            return self.write_loose(at, column, values, context, refuse);
        }
        let row = self.rows.len() - 1;
        if self.is_above_loose(at) {
            self.rows.fill(row, column, values)
        } else {
            self.write_row(row, at, column, values, context, refuse)
        }
    }

    /// [`Tile::write`] for a single sample.
    #[inline]
    pub(super) fn write_one(
        &mut self,
        at: i64,
        column: usize,
        value: f64,
        context: TileContext<'_>,
    ) -> std::result::Result<usize, Reason> {
        let is_loose = self.len > BROAD && at >= context.cutoff && !self.rows.continues(at);
        if is_loose
            && self.rows.last().is_none_or(|last| at > last)
            && let Some(loose) = &mut self.loose
            && loose.append(column, at, value)
        {
            return Ok(0);
        }
        let mut refused = None;
        let superseded = self.write(at, column, &[value], context, &mut |_, reason| refused = Some(reason));
        refused.map_or(Ok(superseded), Err)
    }

    /// Whether all loose samples are older than this timestamp.
    #[inline]
    fn is_above_loose(&self, at: i64) -> bool {
        self.loose.as_ref().is_none_or(|loose| at > loose.newest())
    }

    /// Writes into an open row, of which some series may already have a loose sample.
    #[expect(clippy::too_many_arguments, reason = "a row, and what a write carries")]
    fn write_row(
        &mut self,
        row: usize,
        at: i64,
        column: usize,
        values: &[f64],
        context: TileContext<'_>,
        refuse: &mut OnRefused<'_>,
    ) -> usize {
        let mut superseded = 0;
        for (index, value) in values.iter().enumerate() {
            let column = column + index;
            if self.is_loose(column, at) {
                match self.put_loose(column, at, *value, context) {
                    Ok(count) => superseded += count,
                    Err(reason) => refuse(index, reason),
                }
            } else {
                superseded += self.rows.fill(row, column, &[*value]);
            }
        }
        superseded
    }

    /// Writes samples older than the newest row.
    fn write_late(
        &mut self,
        at: i64,
        column: usize,
        values: &[f64],
        context: TileContext<'_>,
        refuse: &mut OnRefused<'_>,
    ) -> usize {
        let Some(row) = self.rows.find(at) else {
            return self.write_loose(at, column, values, context, refuse);
        };
        if self.is_above_loose(at) {
            self.rows.fill(row, column, values)
        } else {
            self.write_row(row, at, column, values, context, refuse)
        }
    }

    /// Writes samples that fit no row.
    fn write_loose(
        &mut self,
        at: i64,
        column: usize,
        values: &[f64],
        context: TileContext<'_>,
        refuse: &mut OnRefused<'_>,
    ) -> usize {
        let mut superseded = 0;
        for (index, value) in values.iter().enumerate() {
            match self.put_loose(column + index, at, *value, context) {
                Ok(count) => superseded += count,
                Err(reason) => refuse(index, reason),
            }
        }
        superseded
    }

    /// Whether a series has a loose sample at `at`.
    fn is_loose(&self, column: usize, at: i64) -> bool {
        let Some(loose) = &self.loose else { return false };
        let series = &loose.series()[column];
        let sealed = || SCRATCH.with_borrow_mut(|scratch| series.holding(at, &mut scratch.1).is_some());
        at <= loose.newest_of(column) && (loose.find(column, at).is_some() || sealed())
    }

    /// Adds a loose sample. Returns 1 if it replaced another, otherwise 0.
    fn put_loose(
        &mut self,
        column: usize,
        at: i64,
        value: f64,
        context: TileContext<'_>,
    ) -> std::result::Result<usize, Reason> {
        if self.loose.is_none() {
            if !context.budget.take(LooseSamples::bytes(self.len, self.rows.capacity())) {
                return Err(Reason::Full);
            }
            let loose = LooseSamples::new(self.len, self.rows.capacity(), self.seal_at);
            self.loose = Some(Box::new(loose));
        }
        let Some(loose) = &mut self.loose else { return Ok(0) };
        if let Some(place) = loose.find(column, at) {
            loose.replace(place, value);
            return Ok(1);
        }
        let newest = loose.newest_of(column).max(self.rows.last().unwrap_or(i64::MIN));
        if loose.is_full(column) {
            self.seal_loose(context)?;
        }
        let superseded = if at > newest {
            0
        } else {
            self.supersede_sealed(column, at, context)?
        };
        if let Some(loose) = &mut self.loose {
            loose.insert(column, at, value);
        }
        Ok(superseded)
    }

    /// Seals the open loose samples of the series that have many.
    fn seal_loose(&mut self, context: TileContext<'_>) -> std::result::Result<(), Reason> {
        let Some(loose) = &mut self.loose else { return Ok(()) };
        let ripe = loose.ripe();
        let worst = ripe.len() * max_bytes(self.rows.capacity(), 1);
        if !context.budget.take(worst) {
            return Err(Reason::Full);
        }
        loose.touch();
        let mut used = 0;
        SCRATCH.with_borrow_mut(|scratch| {
            for column in ripe {
                let (samples, bytes) = loose.seal(column, &mut scratch.0);
                self.sealed_samples += samples;
                used += bytes;
            }
        });
        loose.sealed();
        self.sealed_bytes += used;
        context.budget.adjust(worst, used);
        Ok(())
    }

    /// Notes that the sealed sample at `at`, if there is one, is replaced.
    fn supersede_sealed(
        &mut self,
        column: usize,
        at: i64,
        context: TileContext<'_>,
    ) -> std::result::Result<usize, Reason> {
        if !context.budget.take(NOTE) {
            return Err(Reason::Full);
        }
        let group = &mut self.groups[column / GROUP];
        let loose = self.loose.as_mut().map(|loose| &mut loose.series_mut()[column]);
        let found = SCRATCH.with_borrow_mut(|scratch| {
            if let Some(series) = loose
                && let Some(block) = series.holding(at, &mut scratch.1)
            {
                series.dead.push((at, block));
                return true;
            }
            let block = group.index.find(at);
            let held = block.is_some_and(|block| block.holds(column % GROUP, at, &mut scratch.1));
            if held {
                group.dead.push((at, (column % GROUP) as u8));
            }
            held
        });
        if !found {
            context.budget.give(NOTE);
        }
        self.sealed_samples -= usize::from(found);
        Ok(usize::from(found))
    }

    /// Makes room for the next row. Returns false, without an effect, if the memory bound is
    /// reached.
    #[inline]
    fn make_room(&mut self, context: TileContext<'_>) -> bool {
        if !self.rows.is_allocated() {
            return context.budget.take(self.rows.bytes());
        }
        self.rows.len() < self.seal_at || self.seal(context)
    }

    /// Seals the open rows. Returns false, without an effect, if the memory bound is reached.
    fn seal(&mut self, context: TileContext<'_>) -> bool {
        let rows = self.rows.len();
        let middle = self.rows.boundary().unwrap_or(rows);
        let pieces = [0..middle, middle..rows];
        let room = pieces.iter().map(|piece| max_bytes(piece.len(), GROUP)).sum::<usize>();
        let worst = self.groups.len() * room;
        if !context.budget.take(worst) {
            return false;
        }
        let before = self.sealed_bytes;
        self.rows.touch();
        let full = self.rows.is_full();
        SCRATCH.with_borrow_mut(|scratch| {
            let sealer = &mut scratch.0;
            for piece in pieces.into_iter().filter(|piece| !piece.is_empty()) {
                self.rows.gather_times(piece.clone(), sealer);
                for group in 0..self.groups.len() {
                    self.seal_group(group, piece.clone(), full, sealer);
                }
            }
        });
        self.rows.clear();
        self.seal_at = self.rows.capacity();
        context.budget.adjust(worst, self.sealed_bytes - before);
        true
    }

    fn seal_group(&mut self, group: usize, piece: Range<usize>, full: bool, sealer: &mut Sealer) {
        let columns = (self.len - group * GROUP).min(GROUP);
        let mut rows = piece.len();
        let mut samples = rows * columns;
        self.rows.gather(group, piece.clone(), sealer);
        let (block, maxima) = if full {
            sealer.seal(rows, columns)
        } else {
            self.rows.gather_times(piece.clone(), sealer);
            self.rows.gather_present(group, piece, sealer);
            (rows, samples) = sealer.drop_empty_rows(rows, columns);
            if rows == 0 {
                return;
            }
            sealer.seal_with_gaps(rows, columns)
        };
        self.sealed_samples += samples;
        self.sealed_bytes += block.heap_bytes();
        self.sealed_bytes += self.groups[group].index.push(block, &maxima[..columns]);
    }
}

fn refuse_all(count: usize, reason: Reason, refuse: &mut OnRefused<'_>) {
    for index in 0..count {
        refuse(index, reason);
    }
}
