//! Collects a query's data from a tile under its lock: handles of sealed blocks, and copies of
//! open samples. Decoding happens later, without the lock.

use std::ops::Range;

use super::{GROUP, Index, NOTE, Tile};
use crate::block::{Block, Part, PartData, Wanted};

/// The memory of a tile.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::memory) struct Occupied {
    pub(in crate::memory) sealed_bytes: usize,
    pub(in crate::memory) sealed_samples: usize,
    pub(in crate::memory) head_bytes: usize,
}

impl Tile {
    /// The newest timestamp of a series.
    pub(in crate::memory) fn newest(&self, column: usize) -> Option<i64> {
        let group = &self.groups[column / GROUP];
        let mut open = (0..self.rows.len()).rev();
        let row = open.find(|&row| self.rows.get(row, column).is_some());
        let in_rows = row.map(|row| self.rows.time(row));
        let in_rows = in_rows.or_else(|| {
            let mut blocks = group.index.blocks().iter().rev();
            blocks.find_map(|block| block.newest(column % GROUP))
        });
        let loose = self.loose.as_ref().filter(|loose| !loose.is_empty(column));
        let loose = loose.map(|loose| loose.newest_of(column));
        in_rows.max(loose)
    }

    /// Appends the parts of a series in `start..end`. If only the maximum per step is wanted,
    /// blocks within one step, without loose samples in their time, are represented by their
    /// maximum.
    pub(in crate::memory) fn take(
        &self,
        column: usize,
        (start, end): (i64, i64),
        wanted: Wanted,
        into: &mut Vec<Part>,
    ) {
        let mut maxima = wanted.maxima();
        let mut whole = |from: i64, to: i64| {
            let inside = from >= start && to < end;
            inside && maxima.as_mut().is_some_and(|steps| steps.same(from, to))
        };
        let first = into.len();
        self.take_loose(column, (start, end), into);
        let loose = first..into.len();
        let index = &self.groups[column / GROUP].index;
        let mut place = index.ended_before(start);
        let blocks = BlockParts {
            index,
            column: column % GROUP,
            end,
            loose,
            with_maxima: matches!(wanted, Wanted::Blocks),
        };
        if blocks.loose.is_empty() && matches!(wanted, Wanted::Maxima(_)) {
            for span in index.spans(column % GROUP, (start, end)) {
                // A NaN maximum may mean that the column has no sample in the span.
                if span.maximum.is_nan() || !whole(span.start, span.end) {
                    continue;
                }
                blocks.take(place..span.places.start, &mut whole, into);
                into.push(Part::of_maximum(span.start, span.end, span.maximum));
                place = span.places.end;
            }
        }
        blocks.take(place..usize::MAX, &mut whole, into);
        self.take_open(column, (start, end), into);
        if !blocks.loose.is_empty() {
            into[first..].sort_by_key(|part| part.start);
        }
    }

    fn take_loose(&self, column: usize, (start, end): (i64, i64), into: &mut Vec<Part>) {
        let Some(loose) = &self.loose else { return };
        for (place, block) in loose.series()[column].blocks.iter().enumerate() {
            if block.end >= start && block.start < end {
                into.push(Part {
                    start: block.start,
                    end: block.end,
                    rank: place as u64 + 1,
                    maximum: f64::NAN,
                    data: PartData::Sealed(block.clone(), 0),
                });
            }
        }
        let (from, to) = (loose.open_before(column, start), loose.open_before(column, end));
        let (times, values) = loose.open(column, from, to.max(from));
        push_open(times, values, u64::from(u32::MAX), into);
    }

    fn take_open(&self, column: usize, (start, end): (i64, i64), into: &mut Vec<Part>) {
        let (from, to) = (self.rows.before(start), self.rows.before(end));
        if from >= to {
            return;
        }
        let (mut times, mut values) = (Vec::with_capacity(to - from), Vec::with_capacity(to - from));
        for row in from..to {
            if let Some(value) = self.rows.get(row, column) {
                times.push(self.rows.time(row));
                values.push(value);
            }
        }
        push_open(times, values, 0, into);
    }

    /// The memory of the tile: the bytes counted in the budget, but of the open rows only those
    /// that were ever used.
    pub(in crate::memory) fn occupied(&self) -> Occupied {
        let notes = self
            .groups
            .iter()
            .map(|group| group.dead.capacity() * NOTE)
            .sum::<usize>();
        let series = self.loose.iter().flat_map(|loose| loose.series());
        let loose_notes = series.map(|series| series.dead.capacity() * NOTE).sum::<usize>();
        let loose = self.loose.as_ref().map_or(0, |loose| loose.resident_bytes());
        Occupied {
            sealed_bytes: self.sealed_bytes + notes + loose_notes,
            sealed_samples: self.sealed_samples,
            head_bytes: self.rows.touched_bytes() + loose,
        }
    }
}

/// Makes parts of the blocks of one column.
struct BlockParts<'a> {
    index: &'a Index,
    column: usize,
    /// The end of the range asked for.
    end: i64,
    /// The parts of loose samples among those collected.
    loose: Range<usize>,
    /// Whether each part gets the maximum of its block.
    with_maxima: bool,
}

impl BlockParts<'_> {
    /// Appends the blocks at some places that start before the end: the maximum of a block that
    /// is `whole`, unless a loose part lies in its time.
    fn take(&self, places: Range<usize>, whole: &mut impl FnMut(i64, i64) -> bool, into: &mut Vec<Part>) {
        // Read the start of the blocks to be decoded, so that their cache misses overlap: cloning
        // handles would wait for one after the other.
        let blocks = self.index.overlapping(places.clone(), self.end);
        let touched = blocks.fold(0, |all, (_, block)| {
            let is_read = !whole(block.start, block.end);
            if is_read { all | block.touch() } else { all }
        });
        std::hint::black_box(touched);
        let mut maxima = self.index.maxima(self.column);
        for (place, block) in self.index.overlapping(places, self.end) {
            let disturbs = |part: &Part| part.start <= block.end && part.end >= block.start;
            let is_whole = whole(block.start, block.end);
            let maximum = if is_whole || self.with_maxima {
                maxima.at(place, block)
            } else {
                f64::NAN
            };
            // A NaN maximum may mean that the column has no sample in the block.
            if !is_whole || maximum.is_nan() || into[self.loose.clone()].iter().any(disturbs) {
                into.push(Part {
                    maximum,
                    ..Part::of_block(block.clone(), self.column)
                });
            } else if !self.loose.is_empty() || !joined(&mut into[self.loose.start..], block, maximum, whole) {
                into.push(Part::of_maximum(block.start, block.end, maximum));
            }
        }
    }
}

/// Merges the maximum of a block into that of the previous part, if both lie in one step.
fn joined(parts: &mut [Part], block: &Block, maximum: f64, whole: &mut impl FnMut(i64, i64) -> bool) -> bool {
    let Some(last) = parts.last_mut() else { return false };
    let PartData::Maximum(most) = &mut last.data else {
        return false;
    };
    let is_same = whole(last.start, block.end);
    if is_same {
        last.end = block.end;
        *most = most.max(maximum);
    }
    is_same
}

fn push_open(times: Vec<i64>, values: Vec<f64>, rank: u64, into: &mut Vec<Part>) {
    if let (Some(&start), Some(&end)) = (times.first(), times.last()) {
        into.push(Part {
            start,
            end,
            rank,
            maximum: f64::NAN,
            data: PartData::Open(times, values),
        });
    }
}
