//! The tables of a schema, and the statements about them.

use super::options::{PostgresOptions, WriteMethod};
use tsb_stores::error::{Error, Result};

/// Version of the tables, in the marker.
pub(super) const VERSION: i32 = 1;
/// Schemas that are the server's or everybody's.
const NOT_OURS: [&str; 2] = ["public", "information_schema"];

/// The statements for one schema.
#[derive(Debug)]
pub(super) struct Schema {
    /// The name as it is.
    pub(super) name: String,
    /// The name in double quotes, with a full stop.
    prefix: String,
}

impl Schema {
    pub(super) fn new(options: &PostgresOptions) -> Result<Self> {
        let name = &options.schema;
        let is_odd = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-');
        let what = if name.is_empty() || name.len() > 63 || name.contains(is_odd) {
            "a schema has 1 to 63 letters, digits, _ and -".to_owned()
        } else if NOT_OURS.contains(&name.as_str()) || name.starts_with("pg_") {
            format!("{name} is the server's or everybody's: name a schema of your own, as schema=tsb")
        } else {
            return Ok(Self {
                name: name.clone(),
                prefix: format!("\"{name}\"."),
            });
        };
        Err(error(what))
    }

    /// The statement that writes rows if none of them is there.
    pub(super) fn write(&self, method: WriteMethod) -> String {
        let prefix = &self.prefix;
        match method {
            WriteMethod::Copy => format!("COPY {prefix}samples (series, time, value) FROM STDIN (FORMAT binary)"),
            WriteMethod::Insert => format!("INSERT INTO {prefix}samples {ARRAYS}"),
        }
    }

    /// The statement that writes rows over those that are there; it returns how many were.
    pub(super) fn replace(&self) -> String {
        format!(
            "WITH written AS (INSERT INTO {}samples {ARRAYS} ON CONFLICT (series, time) DO UPDATE SET value = \
             excluded.value RETURNING xmax <> 0 AS was_there) SELECT count(*) FILTER (WHERE was_there) FROM written",
            self.prefix
        )
    }

    /// The samples of a series within inclusive bounds of time, the first `$4` of them.
    pub(super) fn samples(&self) -> String {
        format!(
            "SELECT time, value FROM {}samples WHERE series = $1 AND time >= $2 AND time <= $3 ORDER BY time LIMIT $4",
            self.prefix
        )
    }

    /// The newest timestamps of series, with the place of each in the question.
    pub(super) fn newest(&self) -> String {
        format!(
            "SELECT asked.place, (SELECT time FROM {}samples WHERE series = asked.id ORDER BY time DESC LIMIT 1) FROM \
             unnest($1::int4[]) WITH ORDINALITY AS asked(id, place)",
            self.prefix
        )
    }

    pub(super) fn count(&self) -> String {
        format!("SELECT count(*) FROM {}samples", self.prefix)
    }

    /// Adds series; those whose number is there already stay.
    pub(super) fn add_series(&self) -> String {
        format!(
            "INSERT INTO {}series SELECT * FROM unnest($1::int4[], $2::text[], $3::text[]) ON CONFLICT DO NOTHING",
            self.prefix
        )
    }

    /// The first number that another name has.
    pub(super) fn other_series(&self) -> String {
        format!(
            "SELECT asked.id FROM unnest($1::int4[], $2::text[], $3::text[]) AS asked(id, name, labels) LEFT JOIN \
             {}series AS there USING (id) WHERE (there.name, there.labels) IS DISTINCT FROM (asked.name, \
             asked.labels) LIMIT 1",
            self.prefix
        )
    }

    pub(super) fn all_series(&self) -> String {
        format!("SELECT id, name, labels FROM {}series ORDER BY id", self.prefix)
    }

    /// A commit that waits for the log, whatever the session's setting is.
    pub(super) fn barrier(&self) -> String {
        format!(
            "SET LOCAL synchronous_commit TO on; UPDATE {}tsb SET flushes = flushes + 1",
            self.prefix
        )
    }

    /// Bytes of the samples, and of the series.
    pub(super) fn sizes(&self, is_hypertable: bool) -> String {
        let size = |table: &str| format!("pg_total_relation_size('{}{table}')", self.prefix);
        let samples = if is_hypertable {
            format!("hypertable_size('{}samples')", self.prefix)
        } else {
            size("samples")
        };
        format!("SELECT {samples}, {}", size("series"))
    }

    /// The name of a table of the schema, for `to_regclass`.
    pub(super) fn marker_table(&self) -> String {
        format!("{}tsb", self.prefix)
    }

    /// The marker.
    pub(super) fn marker(&self) -> String {
        format!("SELECT version, chunk_ns FROM {}tsb", self.prefix)
    }

    /// Makes the tables, in one transaction, after others that do the same.
    pub(super) fn prepare(&self, chunk_ns: Option<i64>) -> String {
        let (name, prefix) = (&self.name, &self.prefix);
        let hypertable = chunk_ns.map_or(String::new(), |chunk_ns| {
            format!(
                "SELECT create_hypertable('{prefix}samples', 'time', chunk_time_interval => {chunk_ns}::bigint, \
                 create_default_indexes => false);"
            )
        });
        let chunk = chunk_ns.map_or("NULL".to_owned(), |chunk_ns| chunk_ns.to_string());
        format!(
            "SELECT pg_advisory_xact_lock(hashtext('tsb'), hashtext('{name}')); CREATE SCHEMA IF NOT EXISTS \"{name}\"; \
             CREATE TABLE {prefix}series (id int4 PRIMARY KEY, name text NOT NULL, labels text NOT NULL); \
             CREATE TABLE {prefix}samples (series int4 NOT NULL, time int8 NOT NULL, value float8 NOT NULL, \
             PRIMARY KEY (series, time)); {hypertable} \
             CREATE TABLE {prefix}tsb (version int4 NOT NULL, chunk_ns int8, flushes int8 NOT NULL); \
             INSERT INTO {prefix}tsb VALUES ({VERSION}, {chunk}, 0)"
        )
    }

    pub(super) fn drop(&self) -> String {
        format!("DROP SCHEMA IF EXISTS \"{}\" CASCADE", self.name)
    }
}

/// Rows from three arrays.
const ARRAYS: &str = "SELECT * FROM unnest($1::int4[], $2::int8[], $3::float8[])";

/// The error for a spec that cannot be used.
pub(super) fn error(what: impl Into<String>) -> Error {
    Error::Spec {
        spec: "postgres:".to_owned(),
        what: what.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(name: &str) -> Result<Schema> {
        Schema::new(&PostgresOptions {
            schema: name.to_owned(),
            ..PostgresOptions::default()
        })
    }

    #[test]
    fn a_schema_is_our_own_and_needs_no_quotes_within_its_name() {
        let drop = "DROP SCHEMA IF EXISTS \"a-b_1\" CASCADE";
        assert_eq!(schema("a-b_1").unwrap().drop(), drop);
        for (name, what) in [
            ("", "1 to 63"),
            ("a\"b", "1 to 63"),
            ("public", "of your own"),
            ("pg_toast", "of your own"),
            ("information_schema", "of your own"),
        ] {
            let error = schema(name).unwrap_err().to_string();
            assert!(error.contains(what), "{name}: {error}");
        }
    }
}
