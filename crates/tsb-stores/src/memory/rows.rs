//! The open rows of a tile: whole ticks side by side, tick after tick.
//!
//! A row is a timestamp, a value a series, and a bit a series that says whether the
//! value is there. It knows nothing of sealing but how many rows it can keep.

use super::block::{GROUP, Sealer};

/// Rows ascending in time. The memory is kept from filling to filling.
#[derive(Debug)]
pub(super) struct Rows {
    capacity: usize,
    stride: usize,
    groups: usize,
    len: usize,
    // The most rows that were ever there: what is resident.
    touched: usize,
    // Empty, or `capacity` rows.
    times: Vec<i64>,
    values: Vec<f64>,
    present: Vec<u8>,
    // The newest timestamp of any row that was ever there, and its distance from the one before.
    last: Option<i64>,
    step: u64,
}

impl Rows {
    /// No rows yet, of `series` series, and room for `capacity`. It allocates with the
    /// first row only.
    pub(super) fn new(series: usize, capacity: usize) -> Self {
        Self {
            capacity,
            // Whole cache lines, so that a group is one line of a row.
            stride: if series < GROUP {
                series
            } else {
                series.next_multiple_of(GROUP)
            },
            groups: series.div_ceil(GROUP),
            len: 0,
            touched: 0,
            times: Vec::new(),
            values: Vec::new(),
            present: Vec::new(),
            last: None,
            step: 0,
        }
    }

    /// How many rows fit.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many rows there are.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The timestamps of the rows, ascending.
    pub(super) fn times(&self) -> &[i64] {
        &self.times[..self.len]
    }

    /// The newest timestamp of any row, sealed ones included.
    pub(super) fn last(&self) -> Option<i64> {
        self.last
    }

    /// Whether `at` follows the last row as that followed the one before.
    pub(super) fn continues(&self, at: i64) -> bool {
        self.last.is_some_and(|last| at.wrapping_sub(last) as u64 == self.step)
    }

    /// Bytes of the rows once they are allocated.
    pub(super) fn bytes(&self) -> usize {
        self.capacity * self.row_bytes()
    }

    fn row_bytes(&self) -> usize {
        self.stride * size_of::<f64>() + self.groups + size_of::<i64>()
    }

    /// Whether the rows are allocated.
    pub(super) fn is_allocated(&self) -> bool {
        !self.times.is_empty()
    }

    /// Bytes of the rows that were ever written: what is resident.
    pub(super) fn touched_bytes(&self) -> usize {
        self.touched * self.row_bytes()
    }

    /// Forgets the rows.
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    /// Forgets the rows and gives their memory back.
    pub(super) fn release(&mut self) {
        *self = Self {
            times: Vec::new(),
            values: Vec::new(),
            present: Vec::new(),
            len: 0,
            touched: 0,
            ..*self
        };
    }

    /// Appends an empty row. `at` is above every earlier row's, and there is room.
    #[inline]
    pub(super) fn push(&mut self, at: i64) {
        if self.times.is_empty() {
            // Zeroed memory is not resident before it is written.
            self.times = vec![0; self.capacity];
            self.values = vec![0.0; self.capacity * self.stride];
            self.present = vec![0; self.capacity * self.groups];
        }
        let row = self.len;
        self.times[row] = at;
        self.present[row * self.groups..][..self.groups].fill(0);
        self.step = self.last.map_or(0, |last| at.wrapping_sub(last) as u64);
        self.last = Some(at);
        self.len = row + 1;
        self.touched = self.touched.max(self.len);
    }

    /// The row with this timestamp.
    pub(super) fn find(&self, at: i64) -> Option<usize> {
        self.times().binary_search(&at).ok()
    }

    /// Writes values side by side from series `column` on; returns how many were there.
    #[inline]
    pub(super) fn fill(&mut self, row: usize, column: usize, values: &[f64]) -> usize {
        self.values[row * self.stride + column..][..values.len()].copy_from_slice(values);
        let present = &mut self.present[row * self.groups..][..self.groups];
        mark(present, column, column + values.len())
    }

    /// The sample of a series in a row.
    pub(super) fn get(&self, row: usize, column: usize) -> Option<f64> {
        let present = self.present[row * self.groups + column / GROUP];
        (present >> (column % GROUP) & 1 != 0).then(|| self.values[row * self.stride + column])
    }

    /// Brings all rows into the cache, in the order in which they lie.
    #[inline(always)]
    pub(super) fn touch(&self) {
        const LINE: usize = 8;
        let lines = self.values[..self.len * self.stride].iter().step_by(LINE);
        std::hint::black_box(lines.fold(0, |seen, value| seen | value.to_bits()));
    }

    /// Copies all rows of a group into columns.
    #[inline(always)]
    pub(super) fn gather(&self, group: usize, sealer: &mut Sealer) {
        let first = group * GROUP;
        let columns = (self.stride - first).min(GROUP);
        sealer.times[..self.len].copy_from_slice(self.times());
        let rows = self
            .values
            .chunks_exact(self.stride)
            .zip(self.present.chunks_exact(self.groups));
        for (row, (values, present)) in rows.take(self.len).enumerate() {
            let line = &values[first..first + columns];
            if let Ok(line) = <&[f64; GROUP]>::try_from(line) {
                for column in 0..GROUP {
                    sealer.columns[column][row] = line[column];
                }
            } else {
                for (column, value) in line.iter().enumerate() {
                    sealer.columns[column][row] = *value;
                }
            }
            sealer.present[row] = present[group];
        }
    }
}

/// Sets the bits `from..to`; returns how many were set before.
#[inline]
fn mark(bits: &mut [u8], from: usize, to: usize) -> usize {
    let (first, last) = (from / GROUP, (to - 1) / GROUP);
    let head = u8::MAX << (from % GROUP);
    let tail = u8::MAX >> (GROUP - 1 - (to - 1) % GROUP);
    let mut before = 0;
    let mut set = |byte: &mut u8, mask: u8| {
        before += (*byte & mask).count_ones();
        *byte |= mask;
    };
    if first == last {
        set(&mut bits[first], head & tail);
    } else {
        set(&mut bits[first], head);
        for byte in &mut bits[first + 1..last] {
            set(byte, u8::MAX);
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
        for from in 0..20 {
            for to in from + 1..=24 {
                let mut bits = [0u8; 3];
                assert_eq!(mark(&mut bits, from, to), 0);
                let expected = (0..24)
                    .filter(|bit| (from..to).contains(bit))
                    .fold(0u32, |all, bit| all | 1 << bit);
                assert_eq!(u32::from_le_bytes([bits[0], bits[1], bits[2], 0]), expected);
                assert_eq!(mark(&mut bits, 0, 24), to - from);
            }
        }
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
        assert_eq!(rows.touched_bytes(), rows.bytes());
        rows.release();
        assert_eq!((rows.len(), rows.touched_bytes(), rows.last()), (0, 0, Some(40)));
    }
}
