//! The tables of a keyspace, and the statements about them.

/// Version of the tables, as the comment on each.
const MARK: &str = "tsb 1";

/// The two tables of a place: samples, and series with the buckets that they have samples in.
#[derive(Debug)]
pub(super) struct Tables {
    keyspace: String,
}

impl Tables {
    /// An address allows no character in a name that could not stand in quotation marks.
    pub(super) fn new(keyspace: &str) -> Self {
        Self {
            keyspace: keyspace.to_owned(),
        }
    }

    pub(super) fn keyspace(&self) -> &str {
        &self.keyspace
    }

    pub(super) fn make_keyspace(&self, replicas: usize) -> String {
        format!(
            "CREATE KEYSPACE IF NOT EXISTS \"{}\" WITH replication = {{'class': 'SimpleStrategy', \
             'replication_factor': {replicas}}}",
            self.keyspace
        )
    }

    /// The statements that make the tables. Newest first, as most queries of time series ask.
    pub(super) fn make(&self, bucket_ns: i64) -> [String; 2] {
        let keyspace = &self.keyspace;
        let comment = mark(bucket_ns);
        [
            format!(
                "CREATE TABLE IF NOT EXISTS \"{keyspace}\".series (number int, bucket bigint, name text static, labels \
                 text static, PRIMARY KEY (number, bucket)) WITH CLUSTERING ORDER BY (bucket DESC) AND comment = \
                 '{comment}'"
            ),
            format!(
                "CREATE TABLE IF NOT EXISTS \"{keyspace}\".samples (series int, bucket bigint, at bigint, value double, \
                 PRIMARY KEY ((series, bucket), at)) WITH CLUSTERING ORDER BY (at DESC) AND compaction = {{'class': \
                 'TimeWindowCompactionStrategy', 'compaction_window_unit': 'DAYS', 'compaction_window_size': 1}} AND \
                 comment = '{comment}'"
            ),
        ]
    }

    /// The statements that remove the tables, whatever the keyspace is left with.
    pub(super) fn drop(&self) -> [String; 2] {
        ["samples", "series"].map(|table| format!("DROP TABLE IF EXISTS \"{}\".{table}", self.keyspace))
    }

    pub(super) fn drop_keyspace(keyspace: &str) -> String {
        format!("DROP KEYSPACE IF EXISTS \"{keyspace}\"")
    }

    pub(super) fn add_series(&self) -> String {
        format!(
            "INSERT INTO \"{}\".series (number, name, labels) VALUES (?, ?, ?)",
            self.keyspace
        )
    }

    /// All series, in the order of the server.
    pub(super) fn all_series(&self) -> String {
        format!("SELECT DISTINCT number, name, labels FROM \"{}\".series", self.keyspace)
    }

    pub(super) fn add_bucket(&self) -> String {
        format!(
            "INSERT INTO \"{}\".series (number, bucket) VALUES (?, ?)",
            self.keyspace
        )
    }

    pub(super) fn insert(&self) -> String {
        format!(
            "INSERT INTO \"{}\".samples (series, bucket, at, value) VALUES (?, ?, ?, ?)",
            self.keyspace
        )
    }

    /// The buckets of a series between two, both included, the oldest first.
    pub(super) fn buckets(&self) -> String {
        format!(
            "SELECT bucket FROM \"{}\".series WHERE number = ? AND bucket >= ? AND bucket <= ? ORDER BY bucket ASC",
            self.keyspace
        )
    }

    /// The newest bucket of each series.
    pub(super) fn newest_buckets(&self) -> String {
        format!(
            "SELECT number, bucket FROM \"{}\".series WHERE number IN ? PER PARTITION LIMIT 1",
            self.keyspace
        )
    }

    /// The bucket before another one.
    pub(super) fn earlier_bucket(&self) -> String {
        format!(
            "SELECT bucket FROM \"{}\".series WHERE number = ? AND bucket < ? LIMIT 1",
            self.keyspace
        )
    }

    /// The newest sample of each series in a bucket.
    pub(super) fn newest(&self) -> String {
        format!(
            "SELECT series, at FROM \"{}\".samples WHERE series IN ? AND bucket = ? PER PARTITION LIMIT 1",
            self.keyspace
        )
    }

    /// The samples of a partition between two times, both included.
    pub(super) fn samples(&self) -> String {
        format!(
            "SELECT at, value FROM \"{}\".samples WHERE series = ? AND bucket = ? AND at >= ? AND at <= ? ORDER BY at \
             ASC",
            self.keyspace
        )
    }
}

/// The comment on tables with buckets of this length.
pub(super) fn mark(bucket_ns: i64) -> String {
    format!("{MARK}, bucket {bucket_ns} ns")
}

/// The length of a bucket, of tables that a run has marked; `None` for other comments.
pub(super) fn bucket_of(comment: &str) -> Option<i64> {
    let rest = comment.strip_prefix(MARK)?.strip_prefix(", bucket ")?;
    rest.strip_suffix(" ns")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_says_whose_tables_they_are() {
        assert_eq!(bucket_of(&mark(86_400)), Some(86_400));
        for other in ["", "tsb 2, bucket 5 ns", "tsb 1", "ours"] {
            assert_eq!(bucket_of(other), None, "{other}");
        }
    }
}
