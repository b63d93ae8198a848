//! The tables of a database, and the statements about them.

use tsb_stores::error::Result;
use tsb_stores::store::{Consolidation, TimeRange};

use super::connection::spec_error;

/// The version of the tables.
pub(super) const VERSION: u32 = 1;
/// Databases that are no place of a run.
const NOT_OURS: [&str; 2] = ["default", "system"];

/// The database whose tables hold samples, series, and the version of both.
#[derive(Debug)]
pub(super) struct Tables {
    database: String,
}

impl Tables {
    /// # Errors
    /// [`Error::Spec`](tsb_stores::Error::Spec) for a database that is everybody's.
    pub(super) fn new(database: &str) -> Result<Self> {
        if NOT_OURS.contains(&database) {
            return Err(spec_error(format!(
                "{database} is the server's or everybody's: name a database of your own, as clickhouse://HOST/tsb"
            )));
        }
        Ok(Self {
            database: database.to_owned(),
        })
    }

    pub(super) fn database(&self) -> &str {
        &self.database
    }

    /// A table, for a statement. An address allows no character that would need more than this.
    fn table(&self, name: &str) -> String {
        format!("`{}`.{name}", self.database)
    }

    pub(super) fn is_there(&self) -> String {
        format!("SELECT name FROM system.databases WHERE name = '{}'", self.database)
    }

    /// The names of its tables.
    pub(super) fn names(&self) -> String {
        format!(
            "SELECT name FROM system.tables WHERE database = '{}' ORDER BY name",
            self.database
        )
    }

    /// What makes the database. The marker's table is first and its row last, so that a database that
    /// was not made whole is known, and made again.
    pub(super) fn make(&self) -> [String; 5] {
        let (samples, series, marker) = (self.table("samples"), self.table("series"), self.table("tsb"));
        [
            format!("CREATE DATABASE IF NOT EXISTS `{}`", self.database),
            format!("CREATE TABLE IF NOT EXISTS {marker} (version UInt32) ENGINE = TinyLog"),
            format!(
                "CREATE TABLE IF NOT EXISTS {samples} (series UInt32, time Int64, value Float64) ENGINE = MergeTree \
                 ORDER BY (series, time)"
            ),
            format!(
                "CREATE TABLE IF NOT EXISTS {series} (id UInt32, name String, labels String) ENGINE = MergeTree \
                 ORDER BY id"
            ),
            format!("INSERT INTO {marker} VALUES ({VERSION})"),
        ]
    }

    pub(super) fn drop(&self) -> String {
        format!("DROP DATABASE IF EXISTS `{}`", self.database)
    }

    pub(super) fn version(&self) -> String {
        format!("SELECT max(version) FROM {} FORMAT RowBinary", self.table("tsb"))
    }

    pub(super) fn insert_samples(&self) -> String {
        format!("INSERT INTO {} FORMAT Native", self.table("samples"))
    }

    pub(super) fn insert_series(&self) -> String {
        format!("INSERT INTO {} FORMAT JSONEachRow", self.table("series"))
    }

    /// Series from a number on, at most `count`. One that was stored twice is one here; `others` is
    /// whether it has two names.
    pub(super) fn series(&self, first: usize, count: usize) -> String {
        format!(
            "SELECT id, any(name) AS key_name, any(labels) AS key_labels, toUInt8(uniqExact(name, labels) > 1) AS \
             others FROM {} WHERE id >= {first} GROUP BY id ORDER BY id LIMIT {count} FORMAT JSONEachRow",
            self.table("series")
        )
    }

    /// Samples of series within a range that is not empty, in the order of their numbers and of time; or
    /// one row for each step, with its number, by an aggregate function.
    pub(super) fn samples(&self, numbers: &str, range: TimeRange, steps: Option<(i64, &str)>) -> String {
        let (start, last) = (range.start.0, range.end.0 - 1);
        let from = format!(
            "FROM {} WHERE series IN ({numbers}) AND time >= {start} AND time <= {last}",
            self.table("samples")
        );
        let Some((step, aggregate)) = steps else {
            return format!("SELECT series, time, value {from} ORDER BY series, time FORMAT RowBinary");
        };
        // Rounded down, also before 1970. As a number of steps, because the start of the first step may
        // be no timestamp.
        let number = format!("intDiv(time, {step}) - (time % {step} < 0)");
        format!(
            "SELECT series, {number} AS step, {aggregate} {from} GROUP BY series, step ORDER BY series, step FORMAT \
             RowBinary"
        )
    }

    /// The newest timestamp of each of these series that has one from `bound` on.
    pub(super) fn newest(&self, numbers: &str, bound: i64) -> String {
        format!(
            "SELECT series, max(time) FROM {} WHERE series IN ({numbers}) AND time >= {bound} GROUP BY series FORMAT \
             RowBinary",
            self.table("samples")
        )
    }

    /// Samples, their bytes, and the bytes of series: 64 bits each.
    pub(super) fn sizes(&self) -> String {
        format!(
            "SELECT toUInt64(sumIf(rows, table = 'samples')), toUInt64(sumIf(bytes_on_disk, table = 'samples')), \
             toUInt64(sumIf(bytes_on_disk, table = 'series')) FROM system.parts WHERE active AND database = '{}' \
             FORMAT RowBinary",
            self.database
        )
    }
}

/// The aggregate function of a rule; `None` for a sum or a mean, which the server does not add in the
/// order of time. NaN is left out where a rule compares.
pub(super) fn aggregate(consolidation: Consolidation) -> Option<&'static str> {
    match consolidation {
        Consolidation::Min => Some("if(countIf(NOT isNaN(value)) = 0, nan, minIf(value, NOT isNaN(value)))"),
        Consolidation::Max => Some("if(countIf(NOT isNaN(value)) = 0, nan, maxIf(value, NOT isNaN(value)))"),
        Consolidation::Count => Some("toFloat64(count())"),
        Consolidation::First => Some("argMin(value, time)"),
        Consolidation::Last => Some("argMax(value, time)"),
        Consolidation::Average | Consolidation::Sum => None,
    }
}

#[cfg(test)]
mod tests {
    use tsb_core::Timestamp;

    use super::*;
    use crate::numbered_rows::listed;

    #[test]
    fn a_database_is_our_own() {
        for name in NOT_OURS {
            let error = Tables::new(name).unwrap_err().to_string();
            assert!(error.contains("of your own"), "{error}");
        }
        assert_eq!(Tables::new("a-b").unwrap().drop(), "DROP DATABASE IF EXISTS `a-b`");
    }

    #[test]
    fn a_range_has_inclusive_bounds_and_steps_are_rounded_down() {
        let tables = Tables::new("tsb").unwrap();
        let range = TimeRange {
            start: Timestamp(i64::MIN),
            end: Timestamp(10),
        };
        let list = listed([3, 5]);
        let raw = tables.samples(&list, range, None);
        assert_eq!(
            raw,
            "SELECT series, time, value FROM `tsb`.samples WHERE series IN (3,5) AND time >= -9223372036854775808 AND \
             time <= 9 ORDER BY series, time FORMAT RowBinary"
        );
        let steps = aggregate(Consolidation::Count).map(|function| (5, function));
        let rows = tables.samples(&list, range, steps);
        assert!(
            rows.starts_with("SELECT series, intDiv(time, 5) - (time % 5 < 0) AS step, toFloat64(count()) FROM"),
            "{rows}"
        );
    }
}
