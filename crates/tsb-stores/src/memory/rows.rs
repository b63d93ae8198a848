//! The open rows of a tile: one row per tick.
//!
//! A row has a timestamp, one value per series, and one bit per series that says whether the
//! value is present. Sealing is done elsewhere.

use std::ops::Range;

use crate::block::{GROUP, Sealer, boundary};

/// Words per cache line.
const LINE: usize = 8;

/// Rows in ascending time. The memory is reused after sealing.
///
/// A row is contiguous, so that a tick touches one place: the bits of the values, then the
/// timestamp, then one presence bit per series, padded to whole cache lines.
#[derive(Debug)]
pub(super) struct Rows {
    /// Empty, or `capacity` rows starting at `start`, which is the start of a cache line.
    words: Box<[u64]>,
    start: u16,
    capacity: u16,
    series: u16,
    stride: u16,
    len: u16,
    /// The largest number of rows that were ever used, which are resident.
    touched: u16,
    /// Whether there was ever a row; `last` is its timestamp.
    began: bool,
    last: i64,
    /// The timestamp of the first row, if there is one: the rows themselves are rarely in the
    /// cache.
    first: i64,
    /// The distance of `last` from the timestamp before it.
    step: u64,
}

impl Rows {
    /// No rows, for `series` series, with room for `capacity` rows. Memory is allocated with the
    /// first row.
    pub(super) fn new(series: usize, capacity: usize) -> Self {
        let words = series + 1 + series.div_ceil(64);
        Self {
            words: Box::default(),
            start: 0,
            capacity: capacity as u16,
            series: series as u16,
            stride: if words < LINE {
                words
            } else {
                words.next_multiple_of(LINE)
            } as u16,
            len: 0,
            touched: 0,
            began: false,
            last: 0,
            first: 0,
            step: 0,
        }
    }

    /// Number of rows that fit.
    pub(super) fn capacity(&self) -> usize {
        usize::from(self.capacity)
    }

    /// Number of rows.
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    fn stride(&self) -> usize {
        usize::from(self.stride)
    }

    /// The words of all rows.
    fn words(&self) -> &[u64] {
        &self.words[usize::from(self.start)..][..self.len() * self.stride()]
    }

    /// The words of a row.
    #[inline]
    fn row(&self, row: usize) -> &[u64] {
        &self.words[usize::from(self.start) + row * self.stride()..][..self.stride()]
    }

    /// The timestamp of a row.
    pub(super) fn time(&self, row: usize) -> i64 {
        self.row(row)[usize::from(self.series)] as i64
    }

    /// The newest timestamp of any row, sealed ones included.
    #[inline]
    pub(super) fn last(&self) -> Option<i64> {
        self.began.then_some(self.last)
    }

    /// Whether `at` follows the last row at the same distance as that followed the one before.
    pub(super) fn continues(&self, at: i64) -> bool {
        self.began && at.wrapping_sub(self.last) as u64 == self.step
    }

    /// Bytes of all rows once they are allocated.
    pub(super) fn bytes(&self) -> usize {
        (self.capacity() * self.stride() + LINE) * size_of::<u64>()
    }

    /// Whether the rows are allocated.
    pub(super) fn is_allocated(&self) -> bool {
        !self.words.is_empty()
    }

    /// Bytes of the rows that were ever written, which are resident.
    pub(super) fn touched_bytes(&self) -> usize {
        usize::from(self.touched) * self.stride() * size_of::<u64>()
    }

    /// Removes the rows and keeps their memory.
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Removes the rows and frees their memory.
    pub(super) fn release(&mut self) {
        self.words = Box::default();
        (self.start, self.len, self.touched) = (0, 0, 0);
    }

    /// Appends an empty row. `at` must be later than all rows, and there must be room.
    #[inline]
    pub(super) fn push(&mut self, at: i64) {
        if self.words.is_empty() {
            self.allocate();
        }
        let (row, series) = (self.len(), usize::from(self.series));
        let stride = self.stride();
        let words = &mut self.words[usize::from(self.start) + row * stride..][..stride];
        words[series] = at as u64;
        words[series + 1..][..series.div_ceil(64)].fill(0);
        self.step = if self.began {
            at.wrapping_sub(self.last) as u64
        } else {
            0
        };
        (self.began, self.last) = (true, at);
        if self.len == 0 {
            self.first = at;
        }
        self.len += 1;
        self.touched = self.touched.max(self.len);
    }

    /// Allocates the memory of all rows.
    pub(super) fn allocate(&mut self) {
        // Zeroed memory is not resident before it is written.
        self.words = vec![0; self.bytes() / size_of::<u64>()].into_boxed_slice();
        let past = self.words.as_ptr().addr() / size_of::<u64>() % LINE;
        self.start = ((LINE - past) % LINE) as u16;
    }

    /// Number of rows before `at`.
    pub(super) fn before(&self, at: i64) -> usize {
        if self.len == 0 || at <= self.first {
            return 0;
        }
        if at > self.last {
            return self.len();
        }
        // Rows are far apart in memory; if they are evenly spaced in time the first guess is
        // right.
        let from = self.last.wrapping_sub(at) as u64 / self.step.max(1);
        let guess = (self.len() as u64).saturating_sub(from.saturating_add(1)) as usize;
        if guess > 0 && self.time(guess) >= at && self.time(guess - 1) < at {
            return guess;
        }
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low.midpoint(high);
            if self.time(middle) < at {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The row with this timestamp.
    pub(super) fn find(&self, at: i64) -> Option<usize> {
        // As above, but touching one row only.
        let back = self.last.wrapping_sub(at) as u64 / self.step.max(1);
        let guess = (self.len() as u64).checked_sub(back.saturating_add(1));
        if let Some(row) = guess.map(|row| row as usize)
            && self.time(row) == at
        {
            return Some(row);
        }
        let row = self.before(at);
        (row < self.len() && self.time(row) == at).then_some(row)
    }

    /// Writes neighbouring values from series `column` on. Returns how many were present before.
    #[inline]
    pub(super) fn fill(&mut self, row: usize, column: usize, values: &[f64]) -> usize {
        let (stride, series) = (self.stride(), usize::from(self.series));
        let words = &mut self.words[usize::from(self.start) + row * stride..][..stride];
        let (places, marks) = words.split_at_mut(series + 1);
        for (place, value) in places[column..][..values.len()].iter_mut().zip(values) {
            *place = value.to_bits();
        }
        mark(marks, column, column + values.len())
    }

    /// The sample of a series in a row.
    pub(super) fn get(&self, row: usize, column: usize) -> Option<f64> {
        let words = self.row(row);
        let marks = words[usize::from(self.series) + 1 + column / 64];
        (marks >> (column % 64) & 1 != 0).then(|| f64::from_bits(words[column]))
    }

    /// Reads all rows, in memory order, to bring them into the cache.
    #[inline(always)]
    pub(super) fn touch(&self) {
        let lines = self.words().iter().step_by(LINE);
        std::hint::black_box(lines.fold(0, |seen, word| seen | word));
    }

    /// The words of each of some rows.
    #[inline(always)]
    fn each(&self, rows: Range<usize>) -> impl Iterator<Item = &[u64]> {
        let stride = self.stride();
        self.words()[rows.start * stride..rows.end * stride].chunks_exact(stride)
    }

    /// The first row of the last hour in the rows, or of the last day if an hour has few rows.
    /// Rows are sealed on both sides of it separately, so that no block crosses the boundary and
    /// the maxima of blocks can answer queries for whole hours.
    pub(super) fn boundary(&self) -> Option<usize> {
        boundary(self.first, self.last).map(|boundary| self.before(boundary))
    }

    /// Copies the timestamps of some rows.
    pub(super) fn gather_times(&self, rows: Range<usize>, sealer: &mut Sealer) {
        for (time, words) in sealer.times.iter_mut().zip(self.each(rows)) {
            *time = words[usize::from(self.series)] as i64;
        }
    }

    /// Whether every row has a value for every series.
    pub(super) fn is_full(&self) -> bool {
        let series = usize::from(self.series);
        let last = u64::MAX >> (63 - (series - 1) % 64);
        self.words().chunks_exact(self.stride()).all(|words| {
            let marks = &words[series + 1..][..series.div_ceil(64)];
            let (end, before) = marks.split_last().unwrap_or((&0, &[]));
            before.iter().all(|mark| *mark == u64::MAX) && *end == last
        })
    }

    /// Copies rows of a group into columns.
    #[inline(always)]
    pub(super) fn gather(&self, group: usize, rows: Range<usize>, sealer: &mut Sealer) {
        let first = group * GROUP;
        let columns = (usize::from(self.series) - first).min(GROUP);
        for (row, words) in self.each(rows).enumerate() {
            let line = &words[first..];
            if let Some(line) = line.first_chunk::<GROUP>() {
                for (column, value) in line.iter().enumerate() {
                    sealer.columns[column][row] = f64::from_bits(*value);
                }
            } else {
                for (column, value) in line[..columns].iter().enumerate() {
                    sealer.columns[column][row] = f64::from_bits(*value);
                }
            }
        }
    }

    /// Copies the presence bits of a group.
    pub(super) fn gather_present(&self, group: usize, rows: Range<usize>, sealer: &mut Sealer) {
        let bit = group * GROUP;
        let mark = usize::from(self.series) + 1 + bit / 64;
        for (present, words) in sealer.present.iter_mut().zip(self.each(rows)) {
            *present = (words[mark] >> (bit % 64)) as u8;
        }
    }
}

/// Sets the bits `from..to`. Returns how many were set before.
#[inline]
fn mark(bits: &mut [u64], from: usize, to: usize) -> usize {
    const BITS: usize = 64;
    let (first, last) = (from / BITS, (to - 1) / BITS);
    let head = u64::MAX << (from % BITS);
    let tail = u64::MAX >> (BITS - 1 - (to - 1) % BITS);
    let mut before = 0;
    let mut set = |word: &mut u64, mask: u64| {
        before += (*word & mask).count_ones();
        *word |= mask;
    };
    if first == last {
        set(&mut bits[first], head & tail);
    } else {
        set(&mut bits[first], head);
        for word in &mut bits[first + 1..last] {
            set(word, u64::MAX);
        }
        set(&mut bits[last], tail);
    }
    before as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_set_and_counted_in_any_range() {
        for from in (0..150).step_by(7) {
            for to in (from + 1..=190).step_by(9) {
                let mut bits = [0u64; 3];
                assert_eq!(mark(&mut bits, from, to), 0);
                let set = |bit: usize| bits[bit / 64] >> (bit % 64) & 1 != 0;
                assert!(
                    (0..192).all(|bit| set(bit) == (from..to).contains(&bit)),
                    "{from}..{to}"
                );
                assert_eq!(mark(&mut bits, 0, 192), to - from);
            }
        }
    }

    #[test]
    fn rows_of_two_hours_part_at_the_hour_and_sparse_ones_at_the_day() {
        const HOUR: i64 = 3_600_000_000_000;
        const DAY: i64 = 24 * HOUR;
        let boundary = |first: i64, step: i64| {
            let mut rows = Rows::new(1, 8);
            for row in 0..8 {
                rows.push(first + row * step);
            }
            rows.boundary()
        };
        let second = 1_000_000_000;
        assert_eq!(boundary(HOUR - 3 * second, second), Some(3));
        assert_eq!(boundary(HOUR, second), None);
        assert_eq!(boundary(-3 * second, second), Some(3));
        assert_eq!(boundary(DAY - HOUR, HOUR / 4), Some(4));
        assert_eq!(boundary(5 * HOUR - HOUR / 2, HOUR / 4), None);
        assert_eq!(boundary(-4 * DAY, DAY), None);
        assert_eq!(boundary(i64::MIN, 1), None);
        assert_eq!(boundary(i64::MIN, i64::MAX / 8), None);
        assert_eq!(boundary(i64::MAX - 7, 1), None);
    }

    #[test]
    fn rows_are_found_until_they_are_forgotten() {
        let mut rows = Rows::new(3, 4);
        assert!(!rows.is_allocated() && rows.find(0).is_none());
        for row in 0..4 {
            rows.push(row * 10);
            assert_eq!(rows.fill(row as usize, 1, &[row as f64]), 0);
        }
        assert_eq!((rows.len(), rows.last()), (4, Some(30)));
        assert_eq!(rows.find(25), None);
        assert_eq!(rows.find(30), Some(3));
        assert_eq!(rows.get(3, 1), Some(3.0));
        assert_eq!(rows.get(3, 0), None);
        assert!(rows.continues(40) && !rows.continues(41));
        assert_eq!(rows.fill(3, 0, &[1.0, 2.0, 3.0]), 1);
        rows.clear();
        rows.push(40);
        assert_eq!(rows.find(30), None);
        assert_eq!(rows.get(0, 1), None);
        assert_eq!(rows.touched_bytes(), 4 * 5 * 8);
        rows.release();
        assert_eq!((rows.len(), rows.touched_bytes(), rows.last()), (0, 0, Some(40)));
    }
}
