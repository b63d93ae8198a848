//! The sealed blocks of one group of series, in time order, with their maxima.
//!
//! A maximum is stored only if it differs from that of the previous block: on real machines most
//! series do not change. Every `LANDMARK`th block is a *landmark*, with which all maxima are
//! stored, so that a lookup never has to go far back.

use std::collections::VecDeque;

use crate::block::{Block, GROUP};

/// Blocks per landmark.
const LANDMARK: u32 = 32;

/// Half-width of the first search window around the guessed position, in blocks.
const NEAR: usize = 4;

/// Blocks in time order that do not overlap.
#[derive(Debug)]
pub(super) struct Index {
    blocks: VecDeque<Block>,
    // For each block, in order, the maxima of its `fresh` columns.
    maxima: VecDeque<f64>,
    // The maxima before the first block, and at the last block.
    before: [f64; GROUP],
    last: [f64; GROUP],
    // The number of maxima removed from the front, and the number of blocks ever added, both
    // modulo 2^32.
    dropped: u32,
    pushed: u32,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            blocks: VecDeque::new(),
            maxima: VecDeque::new(),
            before: [f64::NAN; GROUP],
            last: [f64::NAN; GROUP],
            dropped: 0,
            pushed: 0,
        }
    }
}

/// Reserves room without doubling the capacity: an index lives as long as its data.
pub(super) fn reserve<T>(list: &mut VecDeque<T>, more: usize) {
    if list.len() + more > list.capacity() {
        list.reserve_exact(more.max(list.len() / 8 + 4));
    }
}

impl Index {
    /// Adds the next block. Returns the bytes by which the lists have grown.
    pub(super) fn push(&mut self, mut block: Block, maxima: &[f64]) -> usize {
        let before = self.list_bytes();
        reserve(&mut self.blocks, 1);
        let is_landmark = self.pushed.is_multiple_of(LANDMARK);
        self.pushed = self.pushed.wrapping_add(1);
        block.maxima_at = self.dropped.wrapping_add(self.maxima.len() as u32);
        for (column, maximum) in maxima.iter().enumerate() {
            if is_landmark || maximum.to_bits() != self.last[column].to_bits() {
                block.fresh |= 1 << column;
                self.last[column] = *maximum;
                reserve(&mut self.maxima, 1);
                self.maxima.push_back(*maximum);
            }
        }
        self.blocks.push_back(block);
        self.list_bytes() - before
    }

    /// Removes the first block if it ends before `cutoff`.
    pub(super) fn pop_before(&mut self, cutoff: i64) -> Option<Block> {
        if self.blocks.front()?.end >= cutoff {
            return None;
        }
        let block = self.blocks.pop_front()?;
        for column in 0..GROUP {
            if block.fresh >> column & 1 != 0 {
                self.before[column] = self.maxima.pop_front().unwrap_or(f64::NAN);
                self.dropped = self.dropped.wrapping_add(1);
            }
        }
        Some(block)
    }

    /// All blocks.
    pub(super) fn blocks(&self) -> &VecDeque<Block> {
        &self.blocks
    }

    /// The block that could hold a sample at `at`.
    pub(super) fn find(&self, at: i64) -> Option<&Block> {
        self.blocks.get(self.ended_before(at)).filter(|block| block.start <= at)
    }

    /// Number of blocks that end before `at`. Blocks have similar lengths, so a guess by their
    /// mean length is close. It also touches fewer blocks than a binary search, and each touched
    /// block may be a cache miss.
    fn ended_before(&self, at: i64) -> usize {
        let (Some(first), Some(last)) = (self.blocks.front(), self.blocks.back()) else {
            return 0;
        };
        let share = (at as f64 - first.start as f64) / (last.end as f64 - first.start as f64).max(1.0);
        let guess = ((share * self.blocks.len() as f64) as usize).min(self.blocks.len());
        let (mut low, mut high) = (guess.saturating_sub(NEAR), (guess + NEAR).min(self.blocks.len()));
        let ended = |place: usize| self.blocks.get(place).is_some_and(|block| block.end < at);
        if low > 0 && !ended(low - 1) {
            low = 0;
        }
        if ended(high) {
            high = self.blocks.len();
        }
        while low < high {
            let middle = low.midpoint(high);
            if ended(middle) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The maximum of a column that is listed with a block.
    fn listed(&self, block: &Block, column: usize) -> Option<f64> {
        let mask = 1u8 << column;
        if block.fresh & mask == 0 {
            return None;
        }
        let rank = (block.fresh & (mask - 1)).count_ones();
        let place = block.maxima_at.wrapping_sub(self.dropped).wrapping_add(rank);
        self.maxima.get(place as usize).copied()
    }

    /// The maximum of a column in the blocks before a place.
    fn maximum_before(&self, place: usize, column: usize) -> f64 {
        let mut back = self.blocks.range(..place).rev();
        back.find_map(|block| self.listed(block, column))
            .unwrap_or(self.before[column])
    }

    /// The blocks that end at or after `start` and start before `end`, each with the
    /// maximum of one column.
    pub(super) fn overlapping(&self, column: usize, start: i64, end: i64) -> impl Iterator<Item = (&Block, f64)> {
        let first = self.ended_before(start);
        let mut maximum = self.maximum_before(first, column);
        let blocks = self.blocks.range(first..);
        blocks.take_while(move |block| block.start < end).map(move |block| {
            maximum = self.listed(block, column).unwrap_or(maximum);
            (block, maximum)
        })
    }

    /// Bytes of the lists, spare capacity included.
    fn list_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>() + self.maxima.capacity() * size_of::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Sealer;

    /// A block of `rows` rows from `start` on, one second apart.
    fn block(sealer: &mut Sealer, start: i64, rows: usize, maxima: &[f64; GROUP]) -> (Block, [f64; GROUP]) {
        for row in 0..rows {
            sealer.times[row] = start + row as i64;
            for (column, maximum) in sealer.columns.iter_mut().zip(maxima) {
                column[row] = *maximum;
            }
        }
        sealer.seal(rows, GROUP)
    }

    #[test]
    fn blocks_are_found_with_their_maxima_while_the_first_are_dropped() {
        let (mut index, mut sealer) = (Index::default(), Box::new(Sealer::default()));
        let mut naive: VecDeque<(i64, i64, [f64; GROUP])> = VecDeque::new();
        let (mut at, mut random, mut maxima) = (0i64, 1u64, [0.0; GROUP]);
        for round in 0..300 {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1);
            let changed = (random >> 60) as usize;
            if changed < GROUP - 1 {
                // The last column never changes.
                maxima[changed] = (random >> 40) as f64;
            }
            let rows = 1 + (random >> 33) as usize % 40;
            let (block, sealed) = block(&mut sealer, at, rows, &maxima);
            naive.push_back((block.start, block.end, maxima));
            index.push(block, &sealed);
            at += rows as i64 + (random >> 50) as i64 % 3;
            if round > 100 {
                let cutoff = at - 1500;
                while index.pop_before(cutoff).is_some() {
                    naive.pop_front();
                }
            }
            for (start, end) in [(at - 700, at - 200), (0, at), (at - 20, at + 9), (at - 1, at - 1)] {
                for column in 0..GROUP {
                    let expected: Vec<(i64, f64)> = (naive.iter())
                        .filter(|block| block.1 >= start && block.0 < end)
                        .map(|block| (block.0, block.2[column]))
                        .collect();
                    let found = index.overlapping(column, start, end);
                    let found: Vec<_> = found.map(|(block, most)| (block.start, most)).collect();
                    assert_eq!(found, expected, "round {round}, {start}..{end}");
                }
            }
        }
        assert!(naive.len() < 200 && index.dropped > 0);
    }
}
