//! Rows at equal distances in time: positions and timestamps by arithmetic, without a list.

use std::ops::Range;

/// Rows at equal distances, the first at `start`.
#[derive(Clone, Copy, Debug)]
pub(super) struct EvenRows {
    start: i64,
    /// The distance of two rows, in nanoseconds. in [1, ..)
    step: i64,
    rows: usize,
}

impl EvenRows {
    /// `rows` rows from `start` to `end`. `None` if these cannot be the first and the last of so
    /// many rows, which only a forged file says.
    pub(super) fn new(start: i64, end: i64, rows: usize) -> Option<Self> {
        let span = end.checked_sub(start)?;
        let step = if rows > 1 { span / (rows as i64 - 1) } else { 1 };
        (step > 0).then_some(Self { start, step, rows })
    }

    /// The timestamp of a row.
    #[inline]
    pub(super) fn time(self, row: usize) -> i64 {
        self.start.wrapping_add((row as i64).wrapping_mul(self.step))
    }

    /// The rows within `start..end`.
    pub(super) fn within(self, (start, end): (i64, i64)) -> Range<usize> {
        let to = self.before(end);
        self.before(start).min(to)..to
    }

    /// How many rows follow one at `at` until `last`, not more than there are at all.
    #[inline]
    pub(super) fn more(self, at: i64, last: i64) -> usize {
        let more = last.wrapping_sub(at) as u64 / self.step as u64;
        usize::try_from(more).map_or(self.rows, |more| more.min(self.rows))
    }

    /// How many rows a step of `len` nanoseconds has, wherever it begins, if every one has as
    /// many.
    pub(super) fn rows_of(self, len: i64) -> Option<usize> {
        let is_multiple = len % self.step == 0;
        is_multiple.then(|| usize::try_from(len / self.step).unwrap_or(usize::MAX))
    }

    /// Number of rows before `at`.
    fn before(self, at: i64) -> usize {
        if at <= self.start {
            return 0;
        }
        // The difference of any two timestamps fits 64 bits without a sign.
        let before = (at.wrapping_sub(self.start) as u64).div_ceil(self.step as u64);
        usize::try_from(before).map_or(self.rows, |before| before.min(self.rows))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_as_a_list_of_times_would_find_them() {
        for (start, step, rows) in [
            (0, 1, 1),
            (-7, 3, 5),
            (100, 10, 40),
            (i64::MAX - 20, 10, 3),
            (i64::MIN, 1, 4),
        ] {
            let times: Vec<i64> = (0..rows).map(|row| start + row * step).collect();
            let even = EvenRows::new(start, times[times.len() - 1], rows as usize).unwrap();
            let borders = (times.iter()).flat_map(|at| [at.saturating_sub(1), *at, at.saturating_add(1)]);
            let borders: Vec<i64> = borders.chain([i64::MIN, i64::MAX]).collect();
            for (row, at) in times.iter().enumerate() {
                assert_eq!(even.time(row), *at);
                for last in borders.iter().filter(|last| *last >= at) {
                    let more = times[row + 1..].iter().filter(|at| *at <= last).count();
                    assert_eq!(even.more(*at, *last).min(times.len() - 1 - row), more, "{at}..={last}");
                }
            }
            for from in &borders {
                for to in &borders {
                    let inside: Vec<usize> = (0..times.len())
                        .filter(|&row| (*from..*to).contains(&times[row]))
                        .collect();
                    assert_eq!(even.within((*from, *to)).collect::<Vec<_>>(), inside, "{from}..{to}");
                }
            }
        }
    }

    #[test]
    fn steps_of_a_multiple_have_the_same_number_of_rows() {
        let even = EvenRows::new(3, 3 + 9 * 20, 10).unwrap();
        assert_eq!(
            (even.rows_of(60), even.rows_of(20), even.rows_of(19)),
            (Some(3), Some(1), None)
        );
    }

    #[test]
    fn impossible_ends_are_no_rows() {
        assert!(EvenRows::new(5, 4, 2).is_none());
        assert!(EvenRows::new(0, 1, 3).is_none());
        assert!(EvenRows::new(i64::MIN, i64::MAX, 256).is_none());
    }
}
