//! The open rows of a tile: a ring of whole ticks, tick after tick.
//!
//! A row is a timestamp, a value a series, and a bit a series that says whether the
//! value is there. It knows nothing of sealing but how many rows it can keep.

use super::block::GROUP;

/// A ring of rows, ascending in time. Rows are numbered from 0 as they are pushed.
#[derive(Debug)]
pub(super) struct Rows {
    capacity: usize,
    stride: usize,
    groups: usize,
    times: Vec<i64>,
    values: Vec<f64>,
    present: Vec<u8>,
    next: u64,
    // Rows before this number went with the memory that was given back.
    released: u64,
    last: i64,
    step: u64,
}

impl Rows {
    /// An empty ring for `len` series that will hold `capacity` rows. It allocates with
    /// the first row only.
    pub(super) fn new(len: usize, capacity: usize) -> Self {
        Self {
            capacity,
            // Whole cache lines, so that a group is one line of a row.
            stride: if len < GROUP { len } else { len.next_multiple_of(GROUP) },
            groups: len.div_ceil(GROUP),
            times: Vec::new(),
            values: Vec::new(),
            present: Vec::new(),
            next: 0,
            released: 0,
            last: i64::MIN,
            step: 0,
        }
    }

    /// How many rows the ring holds before it must forget one.
    pub(super) fn capacity(&self) -> usize {
        self.capacity
    }

    /// How many rows were pushed so far: the number of the next row.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The number of the oldest row that is still there.
    pub(super) fn oldest(&self) -> u64 {
        self.next.saturating_sub(self.capacity as u64).max(self.released)
    }

    /// The newest timestamp, if there is a row.
    pub(super) fn last(&self) -> Option<i64> {
        (self.next > 0).then_some(self.last)
    }

    /// Whether `at` follows the last row as that followed the one before.
    pub(super) fn continues(&self, at: i64) -> bool {
        self.next > 1 && at.wrapping_sub(self.last) as u64 == self.step
    }

    /// Bytes that the ring occupies once it is allocated.
    pub(super) fn bytes(&self) -> usize {
        self.capacity * (self.stride * size_of::<f64>() + self.groups + size_of::<i64>())
    }

    /// Whether the ring is allocated.
    pub(super) fn is_allocated(&self) -> bool {
        !self.times.is_empty()
    }

    /// Bytes of the rows that were ever written: what is resident.
    pub(super) fn touched_bytes(&self) -> usize {
        if self.is_allocated() {
            self.bytes() / self.capacity * (self.next - self.released).min(self.capacity as u64) as usize
        } else {
            0
        }
    }

    /// Gives the memory back. The rows are gone, their numbers stay.
    pub(super) fn release(&mut self) {
        self.times = Vec::new();
        self.values = Vec::new();
        self.present = Vec::new();
        self.released = self.next;
    }

    /// Appends an empty row. `at` is above every earlier row's.
    #[inline]
    pub(super) fn push(&mut self, at: i64) {
        if !self.is_allocated() {
            self.times = vec![0; self.capacity];
            self.values = vec![0.0; self.capacity * self.stride];
            self.present = vec![0; self.capacity * self.groups];
        }
        let slot = self.slot(self.next);
        self.times[slot] = at;
        self.present[slot * self.groups..][..self.groups].fill(0);
        self.step = at.wrapping_sub(self.last) as u64;
        self.last = at;
        self.next += 1;
    }

    #[inline]
    fn slot(&self, row: u64) -> usize {
        (row % self.capacity as u64) as usize
    }

    /// The timestamp of a row that is still there.
    pub(super) fn time(&self, row: u64) -> i64 {
        self.times[self.slot(row)]
    }

    /// The number of the row with this timestamp, if it is still there.
    pub(super) fn find(&self, at: i64) -> Option<u64> {
        if !self.is_allocated() {
            return None;
        }
        let (mut low, mut high) = (self.oldest(), self.next);
        while low < high {
            let middle = low.midpoint(high);
            if self.time(middle) < at {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        (low < self.next && self.time(low) == at).then_some(low)
    }

    /// Writes values side by side from column `column` on; returns how many were there.
    #[inline]
    pub(super) fn fill(&mut self, row: u64, column: usize, values: &[f64]) -> usize {
        let slot = self.slot(row);
        self.values[slot * self.stride + column..][..values.len()].copy_from_slice(values);
        let present = &mut self.present[slot * self.groups..][..self.groups];
        mark(present, column, column + values.len())
    }

    /// The sample of a column in a row that is still there.
    pub(super) fn get(&self, row: u64, column: usize) -> Option<f64> {
        let slot = self.slot(row);
        let present = self.present[slot * self.groups + column / GROUP];
        (present >> (column % GROUP) & 1 != 0).then(|| self.values[slot * self.stride + column])
    }

    /// Copies rows `from..to` of a group into columns.
    #[inline(always)]
    pub(super) fn gather(&self, group: usize, (from, to): (u64, u64), sealer: &mut super::block::Sealer) {
        let start = self.slot(from);
        let rows = (to - from) as usize;
        let before_wrap = rows.min(self.capacity - start);
        self.gather_slots(group, start..start + before_wrap, 0, sealer);
        self.gather_slots(group, 0..rows - before_wrap, before_wrap, sealer);
    }

    #[inline(always)]
    fn gather_slots(&self, group: usize, slots: std::ops::Range<usize>, at: usize, sealer: &mut super::block::Sealer) {
        let columns = (self.stride - group * GROUP).min(GROUP);
        // The lines lie far apart. A first look at each lets their misses overlap, which
        // the stores of the transposition would not.
        let mut touched = 0;
        for slot in slots.clone() {
            touched |= self.values[slot * self.stride + group * GROUP].to_bits();
        }
        std::hint::black_box(touched);
        let rows = slots.len();
        sealer.times[at..at + rows].copy_from_slice(&self.times[slots.clone()]);
        for (row, slot) in slots.enumerate() {
            let line = &self.values[slot * self.stride + group * GROUP..][..columns];
            if let Ok(line) = <&[f64; GROUP]>::try_from(line) {
                for column in 0..GROUP {
                    sealer.columns[column][at + row] = line[column];
                }
            } else {
                for (column, value) in line.iter().enumerate() {
                    sealer.columns[column][at + row] = *value;
                }
            }
            sealer.present[at + row] = self.present[slot * self.groups + group];
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
    fn rows_are_found_until_the_ring_forgets_them() {
        let mut rows = Rows::new(3, 4);
        for row in 0..6 {
            rows.push(row * 10);
            assert_eq!(rows.fill(row as u64, 1, &[row as f64]), 0);
        }
        assert_eq!((rows.oldest(), rows.next(), rows.last()), (2, 6, Some(50)));
        assert_eq!(rows.find(10), None);
        assert_eq!(rows.find(25), None);
        assert_eq!(rows.find(30), Some(3));
        assert_eq!(rows.get(3, 1), Some(3.0));
        assert_eq!(rows.get(3, 0), None);
        assert!(rows.continues(60) && !rows.continues(61));
        assert_eq!(rows.fill(5, 0, &[1.0, 2.0, 3.0]), 1);
    }
}
