//! What queries take from a tile while they hold its lock: handles of sealed blocks, and
//! copies of what is open. Nothing is decoded here.

use super::{GROUP, NOTE, Tile};
use crate::memory::block::Block;

/// A part of one series: samples in time order that belong together.
#[derive(Debug)]
pub(in crate::memory) struct Held {
    /// The earliest timestamp.
    pub(in crate::memory) start: i64,
    /// The latest timestamp.
    pub(in crate::memory) end: i64,
    /// Of two parts with the same timestamp, the higher rank was written later.
    pub(in crate::memory) rank: u32,
    /// The samples.
    pub(in crate::memory) parts: Parts,
}

/// The samples of a part.
#[derive(Debug)]
pub(in crate::memory) enum Parts {
    /// A column of a sealed block.
    Sealed(Block, usize),
    /// All that is asked of a sealed block: its maximum.
    Maximum(f64),
    /// Samples that were open.
    Open(Vec<i64>, Vec<f64>),
}

/// What a tile occupies.
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

    /// Takes what a series holds in `start..end`. Where `whole` says that only the
    /// maximum of that span is asked for, and nothing loose lies in it, the block stays.
    pub(in crate::memory) fn take(
        &self,
        column: usize,
        (start, end): (i64, i64),
        mut whole: impl FnMut(i64, i64) -> bool,
        into: &mut Vec<Held>,
    ) {
        let first = into.len();
        self.take_loose(column, (start, end), into);
        let loose = into.len();
        let index = &self.groups[column / GROUP].index;
        let column_of_group = column % GROUP;
        // A block without a number may be one without a sample.
        let mut answers = |block: &Block, maximum: f64, into: &[Held]| {
            let disturbs = |held: &Held| held.start <= block.end && held.end >= block.start;
            !maximum.is_nan() && whole(block.start, block.end) && !into[first..loose].iter().any(disturbs)
        };
        // The first look at all blocks lets their cache misses overlap; taking a handle
        // would wait for each.
        let mut touched = 0;
        for (block, maximum) in index.overlapping(column_of_group, start, end) {
            if !answers(block, maximum, into) {
                touched |= block.touch();
            }
        }
        std::hint::black_box(touched);
        for (block, maximum) in index.overlapping(column_of_group, start, end) {
            let parts = if answers(block, maximum, into) {
                Parts::Maximum(maximum)
            } else {
                Parts::Sealed(block.clone(), column_of_group)
            };
            into.push(Held {
                start: block.start,
                end: block.end,
                rank: 0,
                parts,
            });
        }
        self.take_open(column, (start, end), into);
        if loose > first {
            into[first..].sort_by_key(|held| held.start);
        }
    }

    fn take_loose(&self, column: usize, (start, end): (i64, i64), into: &mut Vec<Held>) {
        let Some(loose) = &self.loose else { return };
        for (place, block) in loose.series()[column].blocks.iter().enumerate() {
            if block.end >= start && block.start < end {
                into.push(Held {
                    start: block.start,
                    end: block.end,
                    rank: place as u32 + 1,
                    parts: Parts::Sealed(block.clone(), 0),
                });
            }
        }
        let (from, to) = (loose.open_before(column, start), loose.open_before(column, end));
        let (times, values) = loose.open(column, from, to.max(from));
        push_open(times, values, u32::MAX, into);
    }

    fn take_open(&self, column: usize, (start, end): (i64, i64), into: &mut Vec<Held>) {
        let (from, to) = (self.rows.before(start), self.rows.before(end));
        let (mut times, mut values) = (Vec::new(), Vec::new());
        for row in from..to {
            if let Some(value) = self.rows.get(row, column) {
                times.push(self.rows.time(row));
                values.push(value);
            }
        }
        push_open(times, values, 0, into);
    }

    /// What the tile occupies. The bytes are those that the budget was asked for, but of
    /// the ring only the rows that were ever used.
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

fn push_open(times: Vec<i64>, values: Vec<f64>, rank: u32, into: &mut Vec<Held>) {
    if let (Some(&start), Some(&end)) = (times.first(), times.last()) {
        into.push(Held {
            start,
            end,
            rank,
            parts: Parts::Open(times, values),
        });
    }
}
