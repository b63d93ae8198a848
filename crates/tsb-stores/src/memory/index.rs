//! The sealed blocks of one group of series, in time order, with their maxima.
//!
//! A maximum is stored only if it differs from that of the previous block: on real machines most
//! series do not change. Every `LANDMARK`th block is a *landmark*, with which all maxima are
//! stored, so that a lookup never has to go far back.
//!
//! Consecutive blocks of one hour or day also form a *span*, which has the maxima of all of them:
//! a maximum per hour over a day then reads two dozen spans instead of some hundred blocks.

use std::collections::VecDeque;
use std::ops::Range;

use crate::block::{Block, Extreme, GROUP, unit_end};

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
    spans: VecDeque<Span>,
    /// The end of the unit of time that the last span lies in.
    unit_end: i64,
}

/// Consecutive blocks within one unit of time, with the maximum of each column.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: i64,
    end: i64,
    /// The number of its first block, modulo 2^32, and how many blocks it has.
    first: u32,
    blocks: u32,
    maxima: [f64; GROUP],
}

/// One column of a span.
#[derive(Clone, Debug)]
pub(super) struct ColumnSpan {
    /// The timestamp of the first row.
    pub(super) start: i64,
    /// The timestamp of the last row.
    pub(super) end: i64,
    /// The places of its blocks.
    pub(super) places: Range<usize>,
    /// The largest number; NaN if there is none.
    pub(super) maximum: f64,
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
            spans: VecDeque::new(),
            unit_end: i64::MIN,
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
        self.add_to_spans((block.start, block.end), maxima);
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

    /// Adds the next block to the last span, or begins another one if it lies within one unit.
    fn add_to_spans(&mut self, (start, end): (i64, i64), maxima: &[f64]) {
        if end <= self.unit_end
            && let Some(span) = self.spans.back_mut()
        {
            (span.end, span.blocks) = (end, span.blocks + 1);
            for (most, maximum) in span.maxima.iter_mut().zip(maxima) {
                *most = Extreme::Most.of_two(*most, *maximum);
            }
            return;
        }
        let unit_end = unit_end(start, end);
        self.unit_end = unit_end.unwrap_or(i64::MIN);
        if unit_end.is_some() {
            let mut span = Span {
                start,
                end,
                first: self.pushed,
                blocks: 1,
                maxima: [f64::NAN; GROUP],
            };
            span.maxima[..maxima.len()].copy_from_slice(maxima);
            reserve(&mut self.spans, 1);
            self.spans.push_back(span);
        }
    }

    /// Removes the first block if it ends before `cutoff`.
    pub(super) fn pop_before(&mut self, cutoff: i64) -> Option<Block> {
        if self.blocks.front()?.end >= cutoff {
            return None;
        }
        let block = self.blocks.pop_front()?;
        if self.spans.front().is_some_and(|span| span.start <= block.start) {
            // Without its first block a span says too much.
            self.spans.pop_front();
        }
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
    pub(super) fn ended_before(&self, at: i64) -> usize {
        let (Some(first), Some(last)) = (self.blocks.front(), self.blocks.back()) else {
            return 0;
        };
        if at <= first.end {
            return 0;
        }
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

    /// The maximum of a column of the block at a place.
    fn maximum(&self, place: usize, column: usize) -> f64 {
        let mut back = self.blocks.range(..=place).rev();
        back.find_map(|block| self.listed(block, column))
            .unwrap_or(self.before[column])
    }

    /// The blocks at some places that start before `end`, with their places.
    pub(super) fn overlapping(&self, places: Range<usize>, end: i64) -> impl Iterator<Item = (usize, &Block)> {
        let until = places.end.min(self.blocks.len());
        let from = places.start.min(until);
        let blocks = (from..).zip(self.blocks.range(from..until));
        blocks.take_while(move |(_, block)| block.start < end)
    }

    /// The spans that lie within `start..end`.
    pub(super) fn spans(&self, column: usize, (start, end): (i64, i64)) -> impl Iterator<Item = ColumnSpan> {
        let first = self.spans.partition_point(|span| span.start < start);
        let popped = self.pushed.wrapping_sub(self.blocks.len() as u32);
        let spans = self.spans.range(first..).take_while(move |span| span.end < end);
        spans.map(move |span| {
            let from = span.first.wrapping_sub(popped) as usize;
            ColumnSpan {
                start: span.start,
                end: span.end,
                places: from..from + span.blocks as usize,
                maximum: span.maxima[column],
            }
        })
    }

    /// Reads the maxima of blocks of a column.
    pub(super) fn maxima(&self, column: usize) -> ColumnMaxima<'_> {
        ColumnMaxima {
            index: self,
            column,
            known: None,
        }
    }

    /// Bytes of the lists, spare capacity included.
    fn list_bytes(&self) -> usize {
        let spans = self.spans.capacity() * size_of::<Span>();
        self.blocks.capacity() * size_of::<Block>() + self.maxima.capacity() * size_of::<f64>() + spans
    }
}

/// The maxima of a column, block by block. It looks back only where the block before the asked one
/// was not asked for.
#[derive(Debug)]
pub(super) struct ColumnMaxima<'a> {
    index: &'a Index,
    column: usize,
    /// The place that was asked for last, and the maximum there.
    known: Option<(usize, f64)>,
}

impl ColumnMaxima<'_> {
    /// The maximum of the block at a place: NaN if it has no number.
    #[inline]
    pub(super) fn at(&mut self, place: usize, block: &Block) -> f64 {
        let before = self.known.filter(|known| known.0 + 1 == place);
        let listed = self.index.listed(block, self.column);
        let maximum = listed.or(before.map(|known| known.1));
        let maximum = maximum.unwrap_or_else(|| self.index.maximum(place, self.column));
        self.known = Some((place, maximum));
        maximum
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Sealer;

    /// The distance of two rows: an hour has some blocks.
    const STEP: i64 = 20_000_000_000;

    /// A block of `rows` rows from `start` on.
    fn block(sealer: &mut Sealer, start: i64, rows: usize, maxima: &[f64; GROUP]) -> (Block, [f64; GROUP]) {
        for row in 0..rows {
            sealer.times[row] = start + row as i64 * STEP;
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
        let mut spans = 0;
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
            at += (rows as i64 + (random >> 50) as i64 % 3) * STEP;
            if round > 100 {
                let cutoff = at - 1500 * STEP;
                while index.pop_before(cutoff).is_some() {
                    naive.pop_front();
                }
            }
            for (from, to) in [(700, 200), (at / STEP, 0), (20, -9), (1, 1)] {
                let (start, end) = (at - from * STEP, at - to * STEP);
                for column in 0..GROUP {
                    let expected: Vec<(i64, f64)> = (naive.iter())
                        .filter(|block| block.1 >= start && block.0 < end)
                        .map(|block| (block.0, block.2[column]))
                        .collect();
                    let from = index.ended_before(start);
                    let mut most = index.maxima(column);
                    let found = index.overlapping(from..usize::MAX, end);
                    let found: Vec<_> = found
                        .map(|(place, block)| (block.start, most.at(place, block)))
                        .collect();
                    assert_eq!(found, expected, "round {round}, {start}..{end}");
                    let mut behind = from;
                    for span in index.spans(column, (start, end)) {
                        assert!(span.places.start >= behind && span.start >= start && span.end < end);
                        behind = span.places.end;
                        let blocks = &found[span.places.start - from..span.places.end - from];
                        let largest = blocks.iter().map(|block| block.1).fold(f64::NAN, f64::max);
                        assert_eq!((span.start, span.maximum), (blocks[0].0, largest), "round {round}");
                        assert_eq!(index.blocks()[behind - 1].end, span.end);
                        spans += 1;
                    }
                }
            }
        }
        assert!(naive.len() < 200 && index.dropped > 0 && spans > 1000);
    }
}
