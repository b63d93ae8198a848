//! Distributes a batch to its tiles: any batch is divided into runs of neighbouring series that
//! share a timestamp.

use std::cell::RefCell;

use tsb_core::{Batch, Ids, SeriesId, Times, Timestamp};

use super::SharedState;
use super::directory::IdState;
use super::extent::{Extent, TileRange, Tiles};
use super::tile::{Tile, TileContext};
use crate::error::{Error, Result};
use crate::store::{Reason, Refusals};

/// Minimum number of shuffled samples for which a dense row is used.
const SCATTER_MIN: usize = 32;
/// Maximum number of places per sample in a dense row.
const SCATTER_SPREAD: usize = 4;

/// Number of samples of one batch that replaced an earlier one.
pub(super) type Superseded = usize;

/// Writes a batch whose ids are all defined.
pub(super) fn write(shared: &SharedState, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Superseded> {
    let mut writer = RunWriter::new(shared);
    match (batch.ids(), batch.times()) {
        (Ids::Range(first), Times::One(at)) => {
            writer.run(first.0, at.0, batch.values(), batch, &mut |index, reason| {
                refused.push(index, reason);
            })?;
        }
        (Ids::Each(ids), Times::One(at)) if ids.len() >= SCATTER_MIN && spread(ids) <= ids.len() * SCATTER_SPREAD => {
            scatter(&mut writer, ids, at.0, batch, refused)?;
        }
        _ => runs(&mut writer, batch, refused)?,
    }
    Ok(writer.superseded)
}

/// Number of ids from the smallest to the largest, both included.
fn spread(ids: &[SeriesId]) -> usize {
    let (low, high) = bounds(ids);
    (high - low) as usize + 1
}

/// The smallest and the largest id.
pub(super) fn bounds(ids: &[SeriesId]) -> (u32, u32) {
    ids.iter()
        .fold((u32::MAX, 0), |(low, high), id| (low.min(id.0), high.max(id.0)))
}

/// Writes runs, and keeps the lock of an extent from run to run.
struct RunWriter<'a> {
    shared: &'a SharedState,
    locked: Option<(&'a Extent, Tiles<'a>)>,
    /// The tile written last; empty while no lock is held.
    tile_range: TileRange,
    superseded: Superseded,
}

impl<'a> RunWriter<'a> {
    fn new(shared: &'a SharedState) -> Self {
        Self {
            shared,
            locked: None,
            tile_range: TileRange::default(),
            superseded: 0,
        }
    }

    #[inline]
    fn context(&self, at: i64) -> TileContext<'a> {
        TileContext {
            budget: &self.shared.budget,
            cutoff: self.shared.clock.cutoff_at(at),
        }
    }

    /// Writes samples of neighbouring series with one timestamp.
    #[inline]
    fn run(
        &mut self,
        first: u32,
        at: i64,
        values: &[f64],
        batch: &Batch<'_>,
        refuse: &mut dyn FnMut(usize, Reason),
    ) -> Result<()> {
        let context = self.context(at);
        let (mut done, mut lost) = (0, 0);
        while done < values.len() {
            let id = first + done as u32;
            let Some((tile, column, rest)) = self.tile(id, batch)? else {
                refuse(done, Reason::Full);
                lost += 1;
                done += 1;
                continue;
            };
            let part = &values[done..];
            let part = &part[..rest.min(part.len())];
            let superseded = tile.write(at, column, part, context, &mut |index, reason| {
                lost += 1;
                refuse(done + index, reason);
            });
            self.superseded += superseded;
            done += part.len();
        }
        if lost < values.len() {
            self.shared.clock.advance(at);
        }
        Ok(())
    }

    /// Writes one sample.
    #[inline]
    fn one(&mut self, id: u32, at: i64, value: f64, batch: &Batch<'_>) -> Result<std::result::Result<(), Reason>> {
        let context = self.context(at);
        let Some((tile, column, _)) = self.tile(id, batch)? else {
            return Ok(Err(Reason::Full));
        };
        match tile.write_one(at, column, value, context) {
            Ok(superseded) => self.superseded += superseded,
            Err(reason) => return Ok(Err(reason)),
        }
        self.shared.clock.advance(at);
        Ok(Ok(()))
    }

    /// The tile of `id`, the position of `id` in it, and the number of its series from there on.
    /// `None` if the memory bound allows no new extent.
    #[inline(always)]
    fn tile(&mut self, id: u32, batch: &Batch<'_>) -> Result<Option<(&mut Tile, usize, usize)>> {
        if id.wrapping_sub(self.tile_range.first) >= self.tile_range.len && !self.lock_extent(id, batch)? {
            return Ok(None);
        }
        let column = id - self.tile_range.first;
        let tile = self
            .locked
            .as_mut()
            .and_then(|(_, tiles)| tiles.get_mut(self.tile_range.tile));
        Ok(tile.map(|tile| (tile, column as usize, (self.tile_range.len - column) as usize)))
    }

    /// Locks the extent of `id`. Returns false if the memory bound allows no new extent.
    #[cold]
    fn lock_extent(&mut self, id: u32, batch: &Batch<'_>) -> Result<bool> {
        if let Some((extent, _)) = &self.locked
            && extent.holds(id)
        {
            self.tile_range = extent.tile_range(id);
            return Ok(true);
        }
        self.tile_range = TileRange::default();
        self.locked = None;
        let shared = self.shared;
        let mut extent = shared.directory.extent_of(id);
        if extent.is_none() {
            if shared.directory.entry(id) == IdState::Undefined {
                return Err(Error::UnknownSeries { id: SeriesId(id) });
            }
            shared.place(id, batch)?;
            extent = shared.directory.extent_of(id);
        }
        let Some(extent) = extent else { return Ok(false) };
        self.locked = Some((extent, extent.lock()?));
        self.tile_range = extent.tile_range(id);
        Ok(true)
    }
}

/// Divides a batch into runs, in its own order.
fn runs(writer: &mut RunWriter<'_>, batch: &Batch<'_>, refused: &mut Refusals) -> Result<()> {
    let values = batch.values();
    let mut from = 0;
    while from < values.len() {
        let (first, at) = (batch.id(from).0, batch.time(from));
        let len = run_len(batch, from, first, at);
        if len == 1 {
            if let Err(reason) = writer.one(first, at.0, values[from], batch)? {
                refused.push(from, reason);
            }
        } else {
            let part = &values[from..from + len];
            writer.run(first, at.0, part, batch, &mut |index, reason| {
                refused.push(from + index, reason);
            })?;
        }
        from += len;
    }
    Ok(())
}

/// Number of samples from `from` on with neighbouring ids and one timestamp.
#[inline]
fn run_len(batch: &Batch<'_>, from: usize, first: u32, at: Timestamp) -> usize {
    match (batch.ids(), batch.times()) {
        (Ids::Range(_), Times::One(_)) => batch.len() - from,
        (Ids::Range(_), Times::Each(times)) => times[from..].iter().take_while(|time| **time == at).count(),
        (Ids::Each(ids), Times::One(_)) => neighbours(&ids[from..], first).count(),
        (Ids::Each(ids), Times::Each(times)) => {
            let pairs = neighbours(&ids[from..], first).zip(&times[from..]);
            pairs.take_while(|(_, time)| **time == at).count()
        }
    }
}

/// The leading ids, each one more than the one before.
#[inline]
fn neighbours(ids: &[SeriesId], first: u32) -> impl Iterator<Item = &SeriesId> {
    let counted = ids.iter().zip(0u32..);
    let run = counted.take_while(move |(id, offset)| id.0.wrapping_sub(first) == *offset);
    run.map(|(id, _)| id)
}

/// A dense row, with one bit per place that says whether it was written.
#[derive(Debug, Default)]
struct DenseRow {
    values: Vec<f64>,
    written: Vec<u64>,
}

thread_local! {
    // The dense row of the writing thread, which stays in that thread's cache.
    static ROW: RefCell<DenseRow> = RefCell::default();
}

/// Sorts shuffled samples of one timestamp by id, by scattering them into a dense row, and writes
/// the resulting runs.
fn scatter(
    writer: &mut RunWriter<'_>,
    ids: &[SeriesId],
    at: i64,
    batch: &Batch<'_>,
    refused: &mut Refusals,
) -> Result<()> {
    let (low, high) = bounds(ids);
    let places = (high - low) as usize + 1;
    let mut lost = Vec::new();
    ROW.with_borrow_mut(|row| {
        row.values.resize(places.max(row.values.len()), 0.0);
        row.written.clear();
        row.written.resize(places.div_ceil(64), 0);
        let mut repeated = 0;
        let values = &mut row.values[..places];
        for (id, value) in ids.iter().zip(batch.values()) {
            let place = (id.0 - low) as usize;
            let word = &mut row.written[place / 64];
            repeated += (*word >> (place % 64) & 1) as usize;
            *word |= 1 << (place % 64);
            values[place] = *value;
        }
        writer.superseded += repeated;
        let mut from = 0;
        while let Some((start, end)) = next_run(&row.written, from, places) {
            let part = &values[start..end];
            writer.run(low + start as u32, at, part, batch, &mut |index, reason| {
                lost.push((start + index, reason));
            })?;
            from = end;
        }
        Ok::<(), Error>(())
    })?;
    if !lost.is_empty() {
        refuse_scattered(writer, ids, low, &lost, refused);
    }
    Ok(())
}

/// Refuses the samples of a batch whose places were refused, including repeated ids.
fn refuse_scattered(
    writer: &mut RunWriter<'_>,
    ids: &[SeriesId],
    low: u32,
    lost: &[(usize, Reason)],
    refused: &mut Refusals,
) {
    let before = refused.len();
    for (index, id) in ids.iter().enumerate() {
        let place = (id.0 - low) as usize;
        if let Ok(found) = lost.binary_search_by_key(&place, |(place, _)| *place) {
            refused.push(index, lost[found].1);
        }
    }
    // A refused place replaced nothing.
    writer.superseded -= refused.len() - before - lost.len();
}

/// The next run of set bits from `from` on: start and end.
fn next_run(bits: &[u64], from: usize, len: usize) -> Option<(usize, usize)> {
    let find = |from: usize, invert: u64| {
        let mut word = from / 64;
        let mut rest = (bits.get(word)? ^ invert) & (u64::MAX << (from % 64));
        while rest == 0 {
            word += 1;
            rest = bits.get(word)? ^ invert;
        }
        Some(word * 64 + rest.trailing_zeros() as usize)
    };
    let start = find(from, 0).filter(|start| *start < len)?;
    let end = find(start, u64::MAX).unwrap_or(len).min(len);
    Some((start, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_bits_are_found_across_words() {
        let len = 200;
        let runs = [(0, 3), (60, 70), (127, 129), (190, 200)];
        let mut bits = vec![0u64; 4];
        for (start, end) in runs {
            for bit in start..end {
                bits[bit / 64] |= 1 << (bit % 64);
            }
        }
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(run) = next_run(&bits, from, len) {
            from = run.1;
            found.push(run);
        }
        assert_eq!(found, runs);
        assert_eq!(next_run(&[u64::MAX], 0, 64), Some((0, 64)));
        assert_eq!(next_run(&[0], 0, 64), None);
    }
}
