//! Loose samples: those that do not fit the rows of their tile, because they are late or have a
//! timestamp of their own. Each series has a column of open rows, and blocks of its own.
//!
//! Of equal timestamps, a loose sample is newer than one in the tile's rows. Among loose samples,
//! open ones are newer than those in blocks, and a later block is newer than an earlier one.

use std::collections::VecDeque;

use super::index::reserve;
use crate::block::{Block, Columns, MAX_ROWS, Sealer};

/// Maximum number of open samples per series, in [1, 256].
const MAX_OPEN: usize = MAX_ROWS / 2;
/// Minimum capacity for open samples per series, whatever the number of series.
const MIN_OPEN: usize = 16;

/// The loose samples of a tile. The k-th open sample of every series is in row k, so series that
/// are written in turn are written side by side, although each has its own timestamps.
#[derive(Debug)]
pub(super) struct LooseSamples {
    heads: Vec<LooseHead>,
    series: Vec<LooseSeries>,
    rows: Vec<(i64, f64)>,
    capacity: usize,
    /// Number of open samples at which a series is sealed. The first time it differs from tile to
    /// tile, so that tiles are not sealed at the same moment.
    seal_at: usize,
    touched: usize,
    /// The newest timestamp of all series.
    newest: i64,
}

/// The open part of a series. Kept apart from the rest, since every sample reads it.
#[derive(Clone, Copy, Debug)]
struct LooseHead {
    /// The newest timestamp that the series ever had here.
    newest: i64,
    open: usize,
}

/// The sealed part of a series.
#[derive(Debug, Default)]
pub(super) struct LooseSeries {
    pub(super) blocks: VecDeque<Block>,
    /// Sealed samples that a later one has replaced: timestamp, and number of the block.
    pub(super) dead: Vec<(i64, u64)>,
    /// Number of blocks that were dropped, which is the number of the first remaining one.
    pub(super) dropped: u64,
}

impl LooseSeries {
    /// The number of the newest block that holds a sample at `at`.
    pub(super) fn holding(&self, at: i64, columns: &mut Columns) -> Option<u64> {
        let place = self.blocks.iter().rposition(|block| block.holds(0, at, columns))?;
        Some(self.dropped + place as u64)
    }
}

impl LooseSamples {
    /// Capacity for open samples per series in a tile that keeps `rows` rows.
    fn capacity(rows: usize) -> usize {
        (rows / 2).clamp(MIN_OPEN, MAX_OPEN)
    }

    /// Bytes of a table of `series` series in a tile that keeps `rows` rows.
    pub(super) fn bytes(series: usize, rows: usize) -> usize {
        series * (size_of::<LooseSeries>() + size_of::<LooseHead>() + Self::capacity(rows) * size_of::<(i64, f64)>())
    }

    /// An empty table. `phase` determines when it is first sealed.
    pub(super) fn new(series: usize, rows: usize, phase: usize) -> Self {
        let capacity = Self::capacity(rows);
        let mut sealed = Vec::new();
        sealed.resize_with(series, LooseSeries::default);
        let head = LooseHead {
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

    /// The newest timestamp of all series.
    pub(super) fn newest(&self) -> i64 {
        self.newest
    }

    /// The newest timestamp that a series ever had here; `i64::MIN` if it had none.
    pub(super) fn newest_of(&self, column: usize) -> i64 {
        self.heads[column].newest
    }

    /// Whether a series has no sample.
    pub(super) fn is_empty(&self, column: usize) -> bool {
        self.heads[column].open == 0 && self.series[column].blocks.is_empty()
    }

    /// The sealed parts, by series.
    pub(super) fn series(&self) -> &[LooseSeries] {
        &self.series
    }

    /// The sealed parts, by series, mutable.
    pub(super) fn series_mut(&mut self) -> &mut [LooseSeries] {
        &mut self.series
    }

    fn place(&self, row: usize, column: usize) -> usize {
        row * self.series.len() + column
    }

    /// Number of open samples of a series before `at`.
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

    /// The position of a series' open sample at `at`, if it has one.
    pub(super) fn find(&self, column: usize, at: i64) -> Option<usize> {
        if at > self.heads[column].newest {
            return None;
        }
        let row = self.open_before(column, at);
        let place = self.place(row, column);
        (row < self.heads[column].open && self.rows[place].0 == at).then_some(place)
    }

    /// Replaces the value at a position that [`LooseSamples::find`] returned.
    pub(super) fn replace(&mut self, place: usize, value: f64) {
        self.rows[place].1 = value;
    }

    /// Whether a series must be sealed before it can take another sample.
    #[inline]
    pub(super) fn is_full(&self, column: usize) -> bool {
        self.heads[column].open >= self.seal_at
    }

    /// Adds a sample that is newer than all others of its series. Returns false, without an
    /// effect, if it is not, or the series is full.
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

    /// Adds a sample with a new timestamp to a series that is not full.
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
            // The sample is older than open ones: move those up.
            while row > 0 && self.rows[(row - 1) * width + column].0 > at {
                self.rows[row * width + column] = self.rows[(row - 1) * width + column];
                row -= 1;
            }
        }
        self.rows[row * width + column] = (at, value);
        self.touched = self.touched.max(end + 1);
    }

    /// The series to seal when one is full: those that are at least half full.
    pub(super) fn ripe(&self) -> Vec<usize> {
        let least = (self.seal_at / 2).max(1);
        let ripe = |column: &usize| self.heads[*column].open >= least;
        (0..self.heads.len()).filter(ripe).collect()
    }

    /// Reads all open rows, in memory order, to bring them into the cache.
    pub(super) fn touch(&self) {
        const LINE: usize = 4;
        let lines = self.rows[..self.touched * self.series.len()].iter().step_by(LINE);
        std::hint::black_box(lines.fold(0, |seen, (at, _)| seen | at));
    }

    /// Seals the open samples of a series into a block. Returns the number of samples and the
    /// bytes of the block.
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

    /// After the first sealing, series are sealed when their capacity is used up.
    pub(super) fn sealed(&mut self) {
        self.seal_at = self.capacity;
    }

    /// Drops the open samples of a series before `cutoff`. Returns their number.
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
        self.series.len() * (size_of::<LooseSeries>() + size_of::<LooseHead>() + open)
    }
}
