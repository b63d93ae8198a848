//! Samples that do not fit the rows of their tile: late ones, and those with a timestamp
//! of their own. Each series has its own place in the open rows here, and its own blocks.
//!
//! What is here is newer than what the tile's rows say of the same timestamp; and of what
//! is here, what is open is newer than the blocks, and a block newer than those before it.

use std::collections::VecDeque;

use super::index::reserve;
use crate::block::{Block, Columns, MAX_ROWS, Sealer};

/// The most open samples of a series. in [1, 256]
const MAX_OPEN: usize = MAX_ROWS / 2;
/// Whatever the number of series, this many samples stay open.
const MIN_OPEN: usize = 16;

/// The loose samples of a tile. Sample k of every series stands in row k, so that series
/// that are written in turn are written side by side, though each has its own timestamp.
#[derive(Debug)]
pub(super) struct Loose {
    heads: Vec<Head>,
    series: Vec<Series>,
    rows: Vec<(i64, f64)>,
    capacity: usize,
    /// Series are sealed when one has so many open samples: the first time at a number of
    /// the tile's own, so that tiles are sealed in turn.
    seal_at: usize,
    touched: usize,
    /// The newest timestamp of all series.
    newest: i64,
}

/// What is open of a series. Apart from the rest, because every sample looks at it.
#[derive(Clone, Copy, Debug)]
struct Head {
    /// The newest timestamp that was ever here.
    newest: i64,
    open: usize,
}

/// What is sealed of a series.
#[derive(Debug, Default)]
pub(super) struct Series {
    pub(super) blocks: VecDeque<Block>,
    /// Sealed samples that a later one has superseded: when, and the number of the block.
    pub(super) dead: Vec<(i64, u64)>,
    /// How many blocks were dropped: the number of the first that is left.
    pub(super) dropped: u64,
}

impl Series {
    /// The number of the newest block that holds a sample at `at`.
    pub(super) fn holding(&self, at: i64, columns: &mut Columns) -> Option<u64> {
        let place = self.blocks.iter().rposition(|block| block.holds(0, at, columns))?;
        Some(self.dropped + place as u64)
    }
}

impl Loose {
    /// How many samples of a series stay open where a tile keeps `rows` rows.
    fn capacity(rows: usize) -> usize {
        (rows / 2).clamp(MIN_OPEN, MAX_OPEN)
    }

    /// Bytes of a table for so many series where a tile keeps `rows` rows.
    pub(super) fn bytes(series: usize, rows: usize) -> usize {
        series * (size_of::<Series>() + size_of::<Head>() + Self::capacity(rows) * size_of::<(i64, f64)>())
    }

    /// An empty table. `phase` decides when it is first sealed.
    pub(super) fn new(series: usize, rows: usize, phase: usize) -> Self {
        let capacity = Self::capacity(rows);
        let mut sealed = Vec::new();
        sealed.resize_with(series, Series::default);
        let head = Head {
            newest: i64::MIN,
            open: 0,
        };
        Self {
            heads: vec![head; series],
            series: sealed,
            // Zeroed memory is not resident before it is written.
            rows: vec![(0, 0.0); capacity * series],
            capacity,
            seal_at: capacity / 2 + phase % (capacity / 2) + 1,
            touched: 0,
            newest: i64::MIN,
        }
    }

    /// The newest timestamp of all series that ever had one.
    pub(super) fn newest(&self) -> i64 {
        self.newest
    }

    /// The newest timestamp of a series that ever had one, else the earliest there is.
    pub(super) fn newest_of(&self, column: usize) -> i64 {
        self.heads[column].newest
    }

    /// Whether a series has no sample.
    pub(super) fn is_empty(&self, column: usize) -> bool {
        self.heads[column].open == 0 && self.series[column].blocks.is_empty()
    }

    /// What is sealed, series by series.
    pub(super) fn series(&self) -> &[Series] {
        &self.series
    }

    /// What is sealed, to be changed.
    pub(super) fn series_mut(&mut self) -> &mut [Series] {
        &mut self.series
    }

    fn place(&self, row: usize, column: usize) -> usize {
        row * self.series.len() + column
    }

    /// Open samples of a series before `at`.
    pub(super) fn open_before(&self, column: usize, at: i64) -> usize {
        let (mut low, mut high) = (0, self.heads[column].open);
        while low < high {
            let middle = low.midpoint(high);
            if self.rows[self.place(middle, column)].0 < at {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The open samples `from..to` of a series, in time order.
    pub(super) fn open(&self, column: usize, from: usize, to: usize) -> (Vec<i64>, Vec<f64>) {
        (from..to).map(|row| self.rows[self.place(row, column)]).unzip()
    }

    /// Whether a series has an open sample at `at`, and where.
    pub(super) fn find(&self, column: usize, at: i64) -> Option<usize> {
        if at > self.heads[column].newest {
            return None;
        }
        let row = self.open_before(column, at);
        let place = self.place(row, column);
        (row < self.heads[column].open && self.rows[place].0 == at).then_some(place)
    }

    /// Replaces the value that [`Loose::find`] found.
    pub(super) fn replace(&mut self, place: usize, value: f64) {
        self.rows[place].1 = value;
    }

    /// Whether a series must be sealed before it can take another sample.
    #[inline]
    pub(super) fn is_full(&self, column: usize) -> bool {
        self.heads[column].open >= self.seal_at
    }

    /// Adds a sample that is newer than all of its series; false, and nothing done, when
    /// it is not, or the series is full.
    #[inline]
    pub(super) fn append(&mut self, column: usize, at: i64, value: f64) -> bool {
        let head = &mut self.heads[column];
        if at <= head.newest || head.open >= self.seal_at {
            return false;
        }
        self.rows[head.open * self.series.len() + column] = (at, value);
        head.open += 1;
        head.newest = at;
        self.touched = self.touched.max(head.open);
        self.newest = self.newest.max(at);
        true
    }

    /// Adds a sample that is not there yet to a series that is not full.
    #[inline]
    pub(super) fn insert(&mut self, column: usize, at: i64, value: f64) {
        let width = self.series.len();
        let head = &mut self.heads[column];
        let end = head.open;
        head.open += 1;
        let mut row = end;
        if at > head.newest {
            head.newest = at;
            self.newest = self.newest.max(at);
        } else {
            // Late among the late: those behind it move up.
            while row > 0 && self.rows[(row - 1) * width + column].0 > at {
                self.rows[row * width + column] = self.rows[(row - 1) * width + column];
                row -= 1;
            }
        }
        self.rows[row * width + column] = (at, value);
        self.touched = self.touched.max(end + 1);
    }

    /// The series that are sealed when one is full: those that are not much emptier.
    pub(super) fn ripe(&self) -> Vec<usize> {
        let least = (self.seal_at / 2).max(1);
        let ripe = |column: &usize| self.heads[*column].open >= least;
        (0..self.heads.len()).filter(ripe).collect()
    }

    /// Brings the open rows into the cache, in the order in which they lie.
    pub(super) fn touch(&self) {
        const LINE: usize = 4;
        let lines = self.rows[..self.touched * self.series.len()].iter().step_by(LINE);
        std::hint::black_box(lines.fold(0, |seen, (at, _)| seen | at));
    }

    /// Turns the open samples of a series into a block: how many, and the bytes they take.
    pub(super) fn seal(&mut self, column: usize, sealer: &mut Sealer) -> (usize, usize) {
        let width = self.series.len();
        let series = &mut self.series[column];
        let rows = std::mem::take(&mut self.heads[column].open);
        for row in 0..rows {
            (sealer.times[row], sealer.columns[0][row]) = self.rows[row * width + column];
        }
        let (block, _) = sealer.seal(rows, 1);
        let before = series.blocks.capacity();
        reserve(&mut series.blocks, 1);
        let bytes = (series.blocks.capacity() - before) * size_of::<Block>() + block.heap_bytes();
        series.blocks.push_back(block);
        (rows, bytes)
    }

    /// From the first sealing on, series are sealed when their room is used up.
    pub(super) fn sealed(&mut self) {
        self.seal_at = self.capacity;
    }

    /// Forgets the open samples of a series before `cutoff`; returns how many.
    pub(super) fn drop_before(&mut self, column: usize, cutoff: i64) -> usize {
        let old = self.open_before(column, cutoff);
        if old > 0 {
            for row in old..self.heads[column].open {
                let (from, to) = (self.place(row, column), self.place(row - old, column));
                self.rows[to] = self.rows[from];
            }
            self.heads[column].open -= old;
        }
        old
    }

    /// Bytes of the table and of the open rows that were ever used.
    pub(super) fn resident_bytes(&self) -> usize {
        let open = self.touched * size_of::<(i64, f64)>();
        self.series.len() * (size_of::<Series>() + size_of::<Head>() + open)
    }
}
