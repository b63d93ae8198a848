//! Mohawk's schema and behaviour (the `sqlite` backend of 0.15.4), for the published comparison.
//!
//! One table per series, named by its id, with milliseconds and values of six decimals. Every
//! sample costs a lookup of the id and a commit, in SQLite's default rollback journal. A second
//! sample of the same time is refused by the key. As in Mohawk, SQL text is built for each
//! sample. One behaviour is not copied: Mohawk reported a failed insert as success. SQLite's
//! names ignore case, so two series whose ids differ only in case are a conflict here; Mohawk
//! mixed them.

use std::fmt;
use std::path::Path;

use rusqlite::{ErrorCode, OptionalExtension, params};
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use super::file::{Database, Schema};
use super::locked_connection::{ConnectionState, LockedConnection, newest_of};
use super::rows::{PAGE, RowAnswer};
use super::{Commit, SqliteOptions};
use crate::error::{Error, Result};
use crate::numbers::Keys;
use crate::store::{
    Ack, Capabilities, Exactness, OnConflict, Position, Query, Reason, Refusals, Scope, Stats, Store, Visitor,
};

const SCHEMA: Schema = Schema {
    layout: "mohawk",
    journal: "delete",
    tables: "
        CREATE TABLE ids(id TEXT PRIMARY KEY);
        CREATE TABLE tags(id TEXT, tag TEXT, value TEXT, PRIMARY KEY(id, tag));",
};

const MILLISECOND: i64 = 1_000_000;

/// A file in Mohawk's schema; see the module's documentation.
#[derive(Debug)]
pub struct MohawkStore {
    connection: LockedConnection<MohawkState>,
}

#[derive(Debug)]
struct MohawkState {
    keys: Keys,
    /// The quoted table name of each series number.
    tables: Vec<String>,
    /// The newest timestamp, in milliseconds, of each series number.
    newest: Vec<Option<i64>>,
    ids: Vec<SeriesId>,
}

/// A name quoted for SQL.
fn quoted(name: &str, quote: char) -> String {
    let doubled: String = name
        .chars()
        .flat_map(|c| [Some(c), (c == quote).then_some(c)])
        .flatten()
        .collect();
    format!("{quote}{doubled}{quote}")
}

impl MohawkStore {
    /// Opens or creates a file. Every sample is committed on its own; other commit options are
    /// refused.
    pub fn open(path: &Path, options: SqliteOptions) -> Result<Self> {
        let unfit = |what: &str| Error::Spec {
            spec: String::new(),
            what: format!("layout=mohawk {what}"),
        };
        if options.retention_ns.is_some() {
            return Err(unfit("keeps everything: it has no retention"));
        }
        if options.commit != Commit::Each {
            return Err(unfit("commits each sample: it takes no other commit"));
        }
        let (database, connection) = Database::open(path, &options, &SCHEMA)?;
        let read = connection
            .prepare("SELECT id FROM ids ORDER BY rowid")
            .and_then(|mut statement| {
                let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
                rows.collect::<rusqlite::Result<Vec<_>>>()
            });
        let names = database.done("read the ids of", read)?;
        let (mut held, mut newest, mut tables) = (0, Vec::new(), Vec::new());
        for name in &names {
            let table = quoted(name, '"');
            let sql = format!("SELECT count(*), max(timestamp) FROM {table}");
            let (count, at): (i64, Option<i64>) = database.done(
                "read",
                connection.query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?))),
            )?;
            held += count.unsigned_abs();
            newest.push(at);
            tables.push(table);
        }
        let keys = names.into_iter().map(SeriesKey::new).collect();
        let state = MohawkState {
            keys: Keys::new(keys, options.max_series),
            tables,
            newest,
            ids: Vec::new(),
        };
        Ok(Self {
            connection: LockedConnection::new(options, database, connection, state, held)?,
        })
    }

    /// Mohawk's own raw query, with the range rule of 0.15.4: `start < t <= end`, in
    /// milliseconds, oldest first. The store's `query` follows the contract's rule instead.
    pub fn raw(&self, series: SeriesId, start_ms: i64, end_ms: i64) -> Result<Vec<(i64, f64)>> {
        let inner = self.connection.lock()?;
        let table = &inner.state.tables[inner.state.keys.number(series)? as usize];
        let sql =
            format!("SELECT timestamp, value FROM {table} WHERE timestamp > ?1 AND timestamp <= ?2 ORDER BY timestamp");
        let read = inner.connection()?.prepare(&sql).and_then(|mut statement| {
            let rows = statement.query_map([start_ms, end_ms], |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        });
        self.connection.database.done("read", read)
    }

    /// The first rows of a series in a range of milliseconds.
    fn page(&self, number: u32, from_ms: i64, end_ms: i64) -> Result<Vec<(i64, f64)>> {
        let inner = self.connection.lock()?;
        let table = &inner.state.tables[number as usize];
        let sql = format!(
            "SELECT timestamp, value FROM {table} WHERE timestamp >= ?1 AND timestamp < ?2 ORDER BY timestamp LIMIT {PAGE}"
        );
        let read = inner.connection()?.prepare(&sql).and_then(|mut statement| {
            let rows = statement.query_map([from_ms, end_ms], |row| {
                Ok((row.get::<_, i64>(0)?.saturating_mul(MILLISECOND), row.get(1)?))
            })?;
            rows.collect()
        });
        self.connection.database.done("read", read)
    }

    /// Writes one sample as Mohawk did. Returns false if the key refuses it.
    fn insert(&self, inner: &ConnectionState<MohawkState>, number: usize, at_ms: i64, value: f64) -> Result<bool> {
        let connection = inner.connection()?;
        let table = &inner.state.tables[number];
        let name = quoted(&unquoted(table), '\'');
        let sql = format!("SELECT id FROM ids WHERE id = {name}");
        let known = connection.query_row(&sql, [], |row| row.get::<_, String>(0)).optional();
        if self.connection.database.done("read", known)?.is_none() {
            return Err(self.connection.database.corrupt(&format!("id {name} is missing")));
        }
        match connection.execute_batch(&format!("INSERT INTO {table} VALUES ({at_ms}, {value:.6})")) {
            Ok(()) => Ok(true),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => Ok(false),
            Err(error) => self.connection.database.done("write", Err(error)),
        }
    }
}

fn unquoted(table: &str) -> String {
    table[1..table.len() - 1].replace("\"\"", "\"")
}

impl fmt::Display for MohawkStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&super::name("mohawk", &self.connection.options))
    }
}

impl Store for MohawkStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            query: true,
            resample: true,
            exactness: Exactness::Decimals(6),
            duplicate: OnConflict::Rejected,
            late: OnConflict::Accepted,
            resolution_ns: MILLISECOND,
            special_values: false,
            persistent: true,
            ..Capabilities::new(self.connection.acknowledges(), Durability::Synced)
        }
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        let mut inner = self.connection.lock()?;
        // The file stores only ids, so the key is bound under its id.
        let named: Vec<_> = series
            .iter()
            .map(|(id, key)| (*id, SeriesKey::new(key.to_string())))
            .collect();
        check_names(&inner.state, &named)?;
        let new = inner.state.keys.define(&named)?;
        if new.is_empty() {
            return Ok(());
        }
        self.connection.begin(&mut inner)?;
        for name in &new {
            let table = quoted(name.name(), '"');
            let connection = inner.connection()?;
            let made = connection
                .execute("INSERT INTO ids VALUES (?1)", params![name.name()])
                .and_then(|_| {
                    connection.execute_batch(&format!(
                        "CREATE TABLE {table} (timestamp INTEGER PRIMARY KEY, value NUMERIC)"
                    ))
                });
            self.connection.sound(self.connection.database.done("write", made))?;
            inner.state.tables.push(table);
            inner.state.newest.push(None);
        }
        let new: std::collections::HashSet<&str> = new.iter().map(SeriesKey::name).collect();
        for ((_, key), (_, name)) in series
            .iter()
            .zip(&named)
            .filter(|(_, (_, name))| new.contains(name.name()))
        {
            for (label, value) in key.labels() {
                let made = inner.connection()?.execute(
                    "INSERT OR IGNORE INTO tags VALUES (?1, ?2, ?3)",
                    params![name.name(), label, value],
                );
                self.connection.sound(self.connection.database.done("write", made))?;
            }
        }
        self.connection.commit(&mut inner)
    }

    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        let mut inner = self.connection.lock()?;
        let inner = &mut *inner;
        let mut ids = std::mem::take(&mut inner.state.ids);
        let numbered = inner.state.keys.numbered(batch, &mut ids)?;
        let mut accepted = 0;
        for (index, (id, at, value)) in numbered.iter().enumerate() {
            if !value.is_finite() {
                refused.push(index, Reason::Unrepresentable);
                continue;
            }
            let at_ms = at.0.div_euclid(MILLISECOND);
            let inserted = self.insert(inner, id.index(), at_ms, value);
            if self.connection.sound(inserted)? {
                accepted += 1;
                let newest = &mut inner.state.newest[id.index()];
                *newest = (*newest).max(Some(at_ms));
            } else {
                refused.push(index, Reason::Duplicate);
            }
        }
        if accepted > 0 {
            self.connection.wrote(inner, newest_of(&numbered), accepted, 0)?;
        }
        inner.state.ids = ids;
        Ok(Ack::new(
            accepted,
            batch.len() - accepted,
            self.connection.position(),
            self.connection.acknowledges(),
        ))
    }

    fn durable(&self, level: Durability) -> Position {
        self.connection.durable(level)
    }

    fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        if let Scope::Series(series) = scope {
            self.connection.lock()?.state.keys.numbers(series)?;
        }
        self.connection.flush(level)
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        let numbers = self.connection.lock()?.state.keys.numbers(query.series)?;
        // Round up to whole milliseconds inside the range.
        let first = |at: Timestamp| at.0.div_euclid(MILLISECOND) + i64::from(at.0.rem_euclid(MILLISECOND) != 0);
        for (id, number) in query.series.iter().zip(numbers) {
            let answer = RowAnswer::new(*id, query, visit);
            let page = |from: i64| self.page(number, first(Timestamp(from)), first(query.range.end));
            if answer.pages(query.range.start.0, page)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        let inner = self.connection.lock()?;
        for (id, into) in series.iter().zip(into) {
            let newest = inner.state.newest[inner.state.keys.number(*id)? as usize];
            *into = newest.map(|at| Timestamp(at.saturating_mul(MILLISECOND)));
        }
        Ok(())
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.newest(series, into)
    }

    fn stats(&self) -> Stats {
        let (series, bytes) = self.connection.peek(|state| {
            let names = state.tables.iter().map(|table| table.len() as u64);
            (state.keys.defined(), names.sum())
        });
        self.connection.stats(series, bytes)
    }

    fn close(&self) -> Result<()> {
        self.connection.close()
    }
}

/// Refuses names that differ only in case, or that are reserved.
fn check_names(state: &MohawkState, named: &[(SeriesId, SeriesKey)]) -> Result<()> {
    let mut folded = std::collections::HashMap::new();
    for table in &state.tables {
        folded.insert(unquoted(table).to_ascii_lowercase(), unquoted(table));
    }
    for reserved in ["ids", "tags", "tsb"] {
        folded.insert(reserved.to_owned(), String::new());
    }
    for (id, key) in named {
        let name = key.name();
        let taken = folded
            .entry(name.to_ascii_lowercase())
            .or_insert_with(|| name.to_owned());
        if taken != name || name.to_ascii_lowercase().starts_with("sqlite_") || name.contains('\0') {
            return Err(Error::Conflict {
                id: *id,
                existing: format!("a table that SQLite cannot tell from {name:?}"),
            });
        }
    }
    Ok(())
}
