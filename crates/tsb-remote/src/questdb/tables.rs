//! The tables of a prefix, and the statements about them.

use tsb_stores::store::{Consolidation, TimeRange};

use super::lines::{FIRST_TIME, LAST_TIME};

/// The version of the tables, as the end of the name of the table that marks them.
const MARK: &str = "tsb1";

/// The three tables of a place: samples, series, and the mark that says whose they are.
#[derive(Debug)]
pub(super) struct Tables {
    prefix: String,
}

impl Tables {
    /// An address allows no character in a prefix that a name in quotation marks could not have.
    pub(super) fn new(prefix: &str) -> Self {
        Self {
            prefix: prefix.to_owned(),
        }
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    fn named(&self, what: &str) -> String {
        format!("{}_{what}", self.prefix)
    }

    pub(super) fn samples_table(&self) -> String {
        self.named("samples")
    }

    pub(super) fn series_table(&self) -> String {
        self.named("series")
    }

    pub(super) fn mark_table(&self) -> String {
        self.named(MARK)
    }

    /// The names of those tables that are there: of samples, of series, and marks of any version.
    pub(super) fn present(&self) -> String {
        format!(
            "SELECT table_name FROM tables() WHERE table_name IN ('{}', '{}') OR table_name ~ '^{}_tsb[0-9]+$' ORDER BY \
             table_name",
            self.samples_table(),
            self.series_table(),
            self.prefix
        )
    }

    /// What makes the tables. The mark is first, so that a place that was not made whole is known, and
    /// made again. The number of a series is a time, so that storing one again changes nothing.
    pub(super) fn make(&self) -> [String; 3] {
        [
            format!("CREATE TABLE IF NOT EXISTS \"{}\" (version INT)", self.mark_table()),
            format!(
                "CREATE TABLE IF NOT EXISTS \"{}\" (series INT, at TIMESTAMP_NS, value DOUBLE) TIMESTAMP(at) PARTITION BY \
                 DAY WAL",
                self.samples_table()
            ),
            format!(
                "CREATE TABLE IF NOT EXISTS \"{}\" (number TIMESTAMP_NS, name VARCHAR, labels VARCHAR) TIMESTAMP(number) \
                 PARTITION BY YEAR WAL DEDUP UPSERT KEYS(number)",
                self.series_table()
            ),
        ]
    }

    /// What removes the tables; the mark is last, so that what was not removed whole is known.
    pub(super) fn drop(&self) -> [String; 3] {
        [self.samples_table(), self.series_table(), self.mark_table()]
            .map(|table| format!("DROP TABLE IF EXISTS \"{table}\""))
    }

    /// Number, name and labels of series from a number on, at most `count`.
    pub(super) fn series(&self, first: usize, count: usize) -> String {
        format!(
            "SELECT number::long, name, labels FROM \"{}\" WHERE number >= {first} ORDER BY number LIMIT {count}",
            self.series_table()
        )
    }

    /// How far the write-ahead log of a table is applied: transactions that are visible, transactions
    /// that were acknowledged, and whether the server has given up.
    pub(super) fn progress(table: &str) -> String {
        format!("SELECT writerTxn, sequencerTxn, suspended FROM wal_tables() WHERE name = '{table}'")
    }

    /// Samples of series within a range, in the order of their numbers and of time; or one row for
    /// each step, with its number, by an aggregate function. `None` where no sample can be.
    pub(super) fn samples(&self, numbers: &str, range: TimeRange, steps: Option<(i64, &str)>) -> Option<String> {
        let first = range.start.max(FIRST_TIME);
        let last = range.end.0.checked_sub(1)?.min(LAST_TIME.0);
        if last < first.0 {
            return None;
        }
        let from = format!(
            "FROM \"{}\" WHERE series IN ({numbers}) AND at >= {} AND at <= {last}",
            self.samples_table(),
            first.0
        );
        Some(match steps {
            None => format!("SELECT series, at::long, value {from} ORDER BY series, at"),
            // No time is below zero, so the division rounds down.
            Some((step, aggregate)) => format!(
                "SELECT series, at::long / {step} step, {aggregate} {from} GROUP BY series, step ORDER BY series, step"
            ),
        })
    }

    /// The newest timestamp of each of these series that has one from `bound` on.
    pub(super) fn newest(&self, numbers: &str, bound: i64) -> String {
        format!(
            "SELECT series, max(at)::long FROM \"{}\" WHERE series IN ({numbers}) AND at >= {bound} GROUP BY series",
            self.samples_table()
        )
    }

    /// Rows and bytes of the partitions of samples, of the one that is written to apart.
    pub(super) fn sizes(&self) -> String {
        format!(
            "SELECT active, sum(numRows), sum(diskSize) FROM table_partitions('{}') GROUP BY active",
            self.samples_table()
        )
    }
}

/// The aggregate function of a rule; `None` for a sum or a mean, which the server does not add in the
/// order of time.
pub(super) const fn aggregate(consolidation: Consolidation) -> Option<&'static str> {
    match consolidation {
        Consolidation::Min => Some("min(value)"),
        Consolidation::Max => Some("max(value)"),
        Consolidation::Count => Some("count()"),
        Consolidation::First => Some("first(value)"),
        Consolidation::Last => Some("last(value)"),
        Consolidation::Average | Consolidation::Sum => None,
    }
}

#[cfg(test)]
mod tests {
    use tsb_core::Timestamp;

    use super::*;
    use crate::numbered_rows::listed;

    #[test]
    fn a_range_is_cut_to_the_times_of_a_table() {
        let tables = Tables::new("r");
        let of = |start, end| {
            let range = TimeRange {
                start: Timestamp(start),
                end: Timestamp(end),
            };
            tables.samples(&listed([3, 5]), range, None)
        };
        let all = of(i64::MIN, i64::MAX).unwrap();
        assert_eq!(
            all,
            "SELECT series, at::long, value FROM \"r_samples\" WHERE series IN (3,5) AND at >= 0 AND at <= \
             9214646399999999999 ORDER BY series, at"
        );
        assert_eq!(of(i64::MIN, i64::MIN), None);
        assert_eq!((of(-9, 0), of(5, 5)), (None, None));
        assert!(of(0, 1).unwrap().contains("at >= 0 AND at <= 0"));
    }

    #[test]
    fn steps_are_numbered_from_1970() {
        let steps = aggregate(Consolidation::Count).map(|function| (5, function));
        let rows = Tables::new("r").samples("1", TimeRange::ALL, steps).unwrap();
        assert!(
            rows.starts_with("SELECT series, at::long / 5 step, count() FROM"),
            "{rows}"
        );
    }
}
