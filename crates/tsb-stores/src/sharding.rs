//! Divides series over shards, each of which has a lock of its own.
//!
//! Neighbouring ids are in the same shard, so a worker, whose ids are contiguous, takes few locks.

use std::ops::Range;

use tsb_core::{Batch, Ids, SeriesId};

/// How series are divided: blocks of neighbouring ids go to the shards in turn. A constant of its
/// store, so that the divisions here are compiled into shifts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sharding {
    // at least 1
    block: usize,
    // at least 1
    shards: usize,
}

impl Sharding {
    /// Blocks of `block` series over a number of shards. Both are at least 1.
    pub(crate) const fn new(block: usize, shards: usize) -> Self {
        assert!(block > 0 && shards > 0, "no series is in no shard");
        Self { block, shards }
    }

    /// Number of shards.
    pub(crate) const fn shards(self) -> usize {
        self.shards
    }

    /// The shard of a series, in [0, shards).
    #[inline]
    pub(crate) const fn shard_of(self, id: SeriesId) -> usize {
        id.index() / self.block % self.shards
    }

    /// The place of a series among those of its shard.
    #[inline]
    pub(crate) const fn place_of(self, id: SeriesId) -> usize {
        id.index() / self.block / self.shards * self.block + id.index() % self.block
    }

    /// The series at a place of a shard.
    pub(crate) const fn series_at(self, shard: usize, place: usize) -> SeriesId {
        SeriesId(((place / self.block * self.shards + shard) * self.block + place % self.block) as u32)
    }

    /// Divides a batch, in its order, into runs of samples that belong to one shard: the number of
    /// the shard, and the indexes of the samples. Allocates nothing.
    #[inline]
    pub(crate) fn runs(self, batch: &Batch<'_>) -> impl Iterator<Item = (usize, Range<usize>)> {
        let mut start = 0;
        std::iter::from_fn(move || {
            (start < batch.len()).then(|| {
                let shard = self.shard_of(batch.id(start));
                let run = start..self.end_of_run(batch, start, shard);
                start = run.end;
                (shard, run)
            })
        })
    }

    /// The index after the run of samples, from `start` on, that belong to one shard.
    #[inline]
    fn end_of_run(self, batch: &Batch<'_>, start: usize, shard: usize) -> usize {
        match batch.ids() {
            Ids::Range(first) => {
                let in_block = (first.index() + start) % self.block;
                batch.len().min(start + self.block - in_block)
            }
            Ids::Each(ids) => {
                let run = ids[start..].iter().take_while(|&&id| self.shard_of(id) == shard);
                start + run.count()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tsb_core::{Times, Timestamp};

    use super::*;

    const SHARDING: Sharding = Sharding::new(4, 3);

    #[test]
    fn every_series_has_a_place_of_its_own() {
        for index in 0..100 {
            let id = SeriesId(index);
            let (shard, place) = (SHARDING.shard_of(id), SHARDING.place_of(id));
            assert!(shard < SHARDING.shards());
            assert_eq!(SHARDING.series_at(shard, place), id);
        }
        // Places of a shard are dense: 9 blocks of 4 series are 3 blocks of each shard.
        let places = (0..36).map(|index| SHARDING.place_of(SeriesId(index)));
        assert_eq!(places.max(), Some(11));
    }

    fn runs(batch: &Batch<'_>) -> Vec<(usize, Range<usize>)> {
        SHARDING.runs(batch).collect()
    }

    #[test]
    fn a_range_of_ids_is_cut_at_its_blocks() {
        let tick = |first, values| Batch::tick(SeriesId(first), Timestamp(0), values);
        assert_eq!(runs(&tick(2, &[0.0; 9])), [(0, 0..2), (1, 2..6), (2, 6..9)]);
        assert_eq!(runs(&tick(12, &[0.0; 4])), [(0, 0..4)]);
        assert_eq!(runs(&tick(5, &[])), []);
    }

    #[test]
    fn ids_in_any_order_are_cut_where_the_shard_changes() {
        // 0 and 12 are in different blocks of one shard.
        let ids = [0, 12, 3, 4, 0, 8, 9].map(SeriesId);
        let batch = Batch::new(Ids::Each(&ids), Times::One(Timestamp(0)), &[0.0; 7]);
        assert_eq!(runs(&batch), [(0, 0..3), (1, 3..4), (0, 4..5), (2, 5..7)]);
    }
}
