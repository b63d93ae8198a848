//! Counts by coarse cell, from which a heat map of latency over time is drawn.
//!
//! There are eight cells per doubling, each a whole number of the histogram's buckets, so the
//! count of a cell is an exact sum and not an estimate. Only the resolution is lower: a cell is
//! 1/8 to 1/16 of its values wide. A second of a run uses some 40 cells.

use serde::{Deserialize, Serialize};

use super::histogram::Histogram;

/// Number of cells that cover all of u64.
pub const CELLS: usize = 60 * 8 + 16;

/// The cell of a value, in nanoseconds. in [0, CELLS)
pub const fn cell(value: u64) -> usize {
    let shift = 60 - (value | 8).leading_zeros();
    ((shift as usize) << 3) + (value >> shift) as usize
}

/// The smallest value of a cell.
pub const fn cell_lowest(cell: usize) -> u64 {
    if cell < 16 {
        return cell as u64;
    }
    let shift = (cell >> 3) - 1;
    ((cell - (shift << 3)) as u64) << shift
}

/// The largest value of a cell.
pub const fn cell_highest(cell: usize) -> u64 {
    if cell + 1 >= CELLS {
        return u64::MAX;
    }
    cell_lowest(cell + 1) - 1
}

/// Counts of consecutive cells, from the first used one to the last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cells {
    /// The cell of the first count. in [0, CELLS)
    pub first: usize,
    /// Number of operations in that cell and in each that follows.
    pub counts: Vec<u64>,
}

impl Cells {
    /// The cells of a histogram; `None` when it is empty.
    pub fn new(histogram: &Histogram) -> Option<Self> {
        let first = cell(histogram.min()?);
        let mut cells = Self {
            first,
            counts: vec![0; cell(histogram.max()?) - first + 1],
        };
        for (lowest, count) in histogram.buckets() {
            if let Some(slot) = cells.counts.get_mut(cell(lowest) - first) {
                *slot += count;
            }
        }
        Some(cells)
    }

    /// The cells of a list of counts that starts with cell 0; `None` when all are 0.
    pub fn of_counts(counts: impl Iterator<Item = u64>) -> Option<Self> {
        let mut cells: Option<Self> = None;
        for (index, count) in counts.enumerate().filter(|&(_, count)| count > 0) {
            let cells = cells.get_or_insert_with(|| Self {
                first: index,
                counts: Vec::new(),
            });
            cells.counts.resize(index - cells.first, 0);
            cells.counts.push(count);
        }
        cells
    }

    /// (cell, count) of every used cell, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let counts = self.counts.iter().copied().enumerate();
        counts
            .filter(|&(_, count)| count > 0)
            .map(|(index, count)| (self.first.saturating_add(index), count))
    }

    /// Adds the operations of another interval.
    pub fn merge(&mut self, other: &Self) {
        let first = self.first.min(other.first);
        let end = |cells: &Self| cells.first.saturating_add(cells.counts.len()).min(CELLS);
        let mut counts = vec![0_u64; end(self).max(end(other)).saturating_sub(first)];
        for (cell, count) in self.iter().chain(other.iter()) {
            if let Some(slot) = counts.get_mut(cell - first) {
                *slot = slot.saturating_add(count);
            }
        }
        (self.first, self.counts) = (first, counts);
    }

    /// Number of operations in all cells; saturates.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, &count| sum.saturating_add(count))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cells_follow_each_other_without_a_gap() {
        for index in 0..CELLS {
            let (lowest, highest) = (cell_lowest(index), cell_highest(index));
            assert_eq!((cell(lowest), cell(highest)), (index, index));
            assert!(index + 1 == CELLS || cell_lowest(index + 1) == highest + 1);
        }
        assert_eq!(cell(u64::MAX), CELLS - 1);
        assert_eq!(Cells::new(&Histogram::new()), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn every_value_is_counted_in_its_own_cell(
            values in prop::collection::vec(prop_oneof![0u64..5_000, 1_000u64..1 << 40, any::<u64>()], 1..100),
        ) {
            let mut histogram = Histogram::new();
            for &value in &values {
                histogram.record(value);
            }
            let cells = Cells::new(&histogram).unwrap();
            let mut expected = std::collections::BTreeMap::new();
            for &value in &values {
                *expected.entry(cell(value)).or_insert(0u64) += 1;
            }
            prop_assert_eq!(cells.iter().collect::<std::collections::BTreeMap<_, _>>(), expected);
            prop_assert_eq!(cells.count(), values.len() as u64);
            let mut all = vec![0; CELLS];
            cells.iter().for_each(|(cell, count)| all[cell] = count);
            prop_assert_eq!(Cells::of_counts(all.into_iter()), Some(cells));
        }

        #[test]
        fn cells_of_two_intervals_add(one in prop::collection::vec(1u64..1 << 40, 1..50), other in prop::collection::vec(1u64..1 << 20, 1..50)) {
            let cells = |values: &[u64]| {
                let mut histogram = Histogram::new();
                for &value in values {
                    histogram.record(value);
                }
                Cells::new(&histogram).unwrap()
            };
            let mut sum = cells(&one);
            sum.merge(&cells(&other));
            prop_assert_eq!(sum, cells(&[one, other].concat()));
        }
    }
}
