//! An extent: tiles of neighbouring ids that were first written together, under one lock.
//!
//! One lock covers many tiles: releasing a lock waits until all earlier memory stores have
//! reached the cache, and those of a tick go to cold memory. Hosts that were first written in
//! batches of their own have extents of their own, so their writers share no lock.

use std::sync::{Mutex, MutexGuard};

use super::tile::{self, Tile};
use crate::error::{Error, Result};

/// Maximum number of series in an extent.
pub(super) const MAX_LEN: usize = 16 * tile::MAX_LEN;

/// Tiles and their lock, aligned to cache lines, since the next extent may belong to another
/// writer.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct Extent {
    /// The id of the first series.
    pub(super) first: u32,
    /// Number of series, in [1, 3840].
    pub(super) len: u32,
    /// Series per tile; the last tile may have fewer.
    tile_len: u32,
    tiles: Mutex<Box<[Tile]>>,
}

/// The series of one tile.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TileRange {
    /// The first id.
    pub(super) first: u32,
    /// Number of series.
    pub(super) len: u32,
    /// The index of the tile in its extent.
    pub(super) tile: usize,
}

/// The tiles of a locked extent.
pub(super) type Tiles<'a> = MutexGuard<'a, Box<[Tile]>>;

/// Series per tile for an extent of `len` series: a multiple of eight.
fn tile_len(len: usize) -> usize {
    let tiles = len.div_ceil(tile::MAX_LEN).max(1);
    len.div_ceil(tiles).next_multiple_of(8)
}

impl Extent {
    /// An extent without samples, whose tiles keep `rows` rows open. `number` is the number of
    /// its first tile, and determines when the tiles are first sealed. `len` must be in [1,
    /// 3840].
    pub(super) fn new(first: u32, len: usize, number: u32, rows: usize) -> Self {
        let tile_len = tile_len(len);
        let starts = (0..len).step_by(tile_len);
        let tiles = starts
            .zip(number..)
            .map(|(start, number)| Tile::new(tile_len.min(len - start), number, rows));
        Self {
            first,
            len: len as u32,
            tile_len: tile_len as u32,
            tiles: Mutex::new(tiles.collect()),
        }
    }

    /// Number of tiles.
    pub(super) fn tile_count(&self) -> u32 {
        self.len.div_ceil(self.tile_len)
    }

    /// Whether the series is in this extent.
    #[inline]
    pub(super) fn holds(&self, id: u32) -> bool {
        id.wrapping_sub(self.first) < self.len
    }

    /// The tile of a series in this extent, and the series' position in it.
    #[inline]
    pub(super) fn place(&self, id: u32) -> (usize, usize) {
        let offset = id - self.first;
        ((offset / self.tile_len) as usize, (offset % self.tile_len) as usize)
    }

    /// The tile that a series of this extent is in.
    #[inline]
    pub(super) fn tile_range(&self, id: u32) -> TileRange {
        let tile = (id - self.first) / self.tile_len;
        let offset = tile * self.tile_len;
        TileRange {
            first: self.first + offset,
            len: self.tile_len.min(self.len - offset),
            tile: tile as usize,
        }
    }

    /// Takes the lock.
    pub(super) fn lock(&self) -> Result<Tiles<'_>> {
        self.tiles.lock().map_err(|_| Error::Poisoned {
            cause: format!("a write to series from #{} panicked", self.first),
        })
    }

    /// Bytes of an empty extent.
    pub(super) fn bytes(len: usize) -> usize {
        size_of::<Self>() + len.div_ceil(tile_len(len)) * Tile::bytes(tile_len(len))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_has_a_place_in_a_tile_of_bounded_size() {
        for len in [1, 7, 8, 54, 240, 241, 1000, 3600, MAX_LEN] {
            let extent = Extent::new(100, len, 3, 32);
            let mut last = (0, 0);
            for id in 100..100 + len as u32 {
                let place = extent.place(id);
                assert!(extent.holds(id) && place.1 < tile::MAX_LEN);
                assert!(
                    id == 100 || place == (last.0, last.1 + 1) || place == (last.0 + 1, 0),
                    "{place:?} of {len}"
                );
                last = place;
            }
            assert_eq!(extent.lock().unwrap().len(), last.0 + 1);
            assert_eq!(extent.tile_count() as usize, last.0 + 1);
            let tile_range = extent.tile_range(100 + len as u32 - 1);
            assert_eq!(
                (tile_range.tile, tile_range.first + tile_range.len),
                (last.0, 100 + len as u32)
            );
            assert!(!extent.holds(99) && !extent.holds(100 + len as u32));
        }
    }
}
