//! The sealed blocks of one group of series, in time order, and their maxima.
//!
//! A maximum is kept only where it differs from that of the block before: most series
//! of a real machine stand still.

use std::collections::VecDeque;

use super::block::{Block, GROUP};

/// Blocks in time order that do not overlap.
#[derive(Debug)]
pub(super) struct Index {
    blocks: VecDeque<Block>,
    // For each block, in order, the maxima of its `fresh` columns.
    maxima: VecDeque<f64>,
    // What the maxima were before the first block, and what they are at the last.
    before: [f64; GROUP],
    last: [f64; GROUP],
}

impl Default for Index {
    fn default() -> Self {
        Self {
            blocks: VecDeque::new(),
            maxima: VecDeque::new(),
            before: [f64::NAN; GROUP],
            last: [f64::NAN; GROUP],
        }
    }
}

/// Makes room for more without doubling: an index lives as long as its data.
pub(super) fn reserve<T>(list: &mut VecDeque<T>, more: usize) {
    if list.len() + more > list.capacity() {
        list.reserve_exact(more.max(list.len() / 8 + 4));
    }
}

impl Index {
    /// Adds the next block; returns by how many bytes the lists have grown.
    pub(super) fn push(&mut self, mut block: Block, maxima: &[f64]) -> usize {
        let before = self.list_bytes();
        reserve(&mut self.blocks, 1);
        for (column, maximum) in maxima.iter().enumerate() {
            if maximum.to_bits() != self.last[column].to_bits() {
                block.fresh |= 1 << column;
                self.last[column] = *maximum;
                reserve(&mut self.maxima, 1);
                self.maxima.push_back(*maximum);
            }
        }
        self.blocks.push_back(block);
        self.list_bytes() - before
    }

    /// Takes the first block off when it ends before `cutoff`.
    pub(super) fn pop_before(&mut self, cutoff: i64) -> Option<Block> {
        if self.blocks.front()?.end >= cutoff {
            return None;
        }
        let block = self.blocks.pop_front()?;
        for column in 0..GROUP {
            if block.fresh >> column & 1 != 0 {
                self.before[column] = self.maxima.pop_front().unwrap_or(f64::NAN);
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
        let index = self.blocks.partition_point(|block| block.end < at);
        self.blocks.get(index).filter(|block| block.start <= at)
    }

    /// The blocks that end at or after `start` and start before `end`, each with the
    /// maximum of one column.
    pub(super) fn overlapping(&self, column: usize, start: i64, end: i64) -> impl Iterator<Item = (&Block, f64)> {
        let skipped = self.blocks.partition_point(|block| block.end < start);
        let mask = 1u8 << column;
        let below = mask - 1;
        let mut maximum = self.before[column];
        let mut at = 0;
        let with_maxima = self.blocks.iter().map(move |block| {
            if block.fresh & mask != 0 {
                let rank = (block.fresh & below).count_ones() as usize;
                maximum = self.maxima.get(at + rank).copied().unwrap_or(f64::NAN);
            }
            at += block.fresh.count_ones() as usize;
            (block, maximum)
        });
        with_maxima
            .skip(skipped)
            .take_while(move |(block, _)| block.start < end)
    }

    /// Bytes of the lists, room to grow included.
    fn list_bytes(&self) -> usize {
        self.blocks.capacity() * size_of::<Block>() + self.maxima.capacity() * size_of::<f64>()
    }
}
