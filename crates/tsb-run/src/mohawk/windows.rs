//! The windows that the benchmark reads, and the rows that each rule returns of them.

/// Between two samples of the benchmark, in milliseconds.
pub(super) const SPACING_MS: i64 = 60_000;
/// Length of a window, in milliseconds.
pub(super) const WINDOW_MS: i64 = 90_000;

/// Which ends of a range belong to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowRule {
    /// From the start to before the end: Mohawk's memory and MongoDB, and Hawkular.
    FromStart,
    /// After the start to the end, included: SQLite in Mohawk 0.15.4.
    AfterStart,
}

impl RowRule {
    /// Whether a time belongs to a range.
    pub(super) const fn has(self, at: i64, (start, end): (i64, i64)) -> bool {
        match self {
            Self::FromStart => start <= at && at < end,
            Self::AfterStart => start < at && at <= end,
        }
    }
}

/// The time of the sample, and the end of the window, of number `number` (from 1): time runs
/// backwards.
pub(super) const fn time_of(now_ms: i64, number: u64) -> i64 {
    now_ms - number.cast_signed() * SPACING_MS
}

/// The window of number `number` (from 1).
pub(super) const fn window_of(now_ms: i64, number: u64) -> (i64, i64) {
    let end = time_of(now_ms, number);
    (end - WINDOW_MS, end)
}

/// Rows that a window has, of `count` samples.
pub(super) fn rows_of_window(rule: RowRule, number: u64, count: u64) -> u64 {
    let window = window_of(0, number);
    // Only neighbours are near enough.
    let near = number..=(number + 2).min(count);
    near.filter(|near| rule.has(time_of(0, *near), window)).count() as u64
}

/// Rows that the whole benchmark reads, of `count` samples in `count` windows.
pub fn rows_of_benchmark(rule: RowRule, count: u64) -> u64 {
    (1..=count).map(|number| rows_of_window(rule, number, count)).sum()
}

/// Windows without a row.
pub(super) fn empty_windows(rule: RowRule, count: u64) -> u64 {
    (1..=count)
        .filter(|number| rows_of_window(rule, *number, count) == 0)
        .count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_are_those_of_the_published_servers() {
        assert_eq!(rows_of_benchmark(RowRule::FromStart, 999), 998);
        assert_eq!(rows_of_benchmark(RowRule::AfterStart, 999), 1_997);
        assert_eq!(
            (
                empty_windows(RowRule::FromStart, 999),
                empty_windows(RowRule::AfterStart, 999)
            ),
            (1, 0)
        );
        assert_eq!(rows_of_window(RowRule::AfterStart, 999, 999), 1);
        // Against every sample, and not only neighbours.
        for rule in [RowRule::FromStart, RowRule::AfterStart] {
            let all = (1..=20).map(|number| {
                let window = window_of(5, number);
                (1..=20).filter(|sample| rule.has(time_of(5, *sample), window)).count() as u64
            });
            assert_eq!(all.sum::<u64>(), rows_of_benchmark(rule, 20));
        }
    }
}
