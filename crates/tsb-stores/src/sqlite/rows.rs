//! One row per sample, as most people would write it: a prepared statement, and one transaction
//! per batch. It is the comparison for the layout made for ingest.
//!
//! The value column has no declared type, since a column of type REAL would turn -0.0 into 0.0.
//! NaN, which SQLite turns into NULL, and infinities are refused.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, RwLock};

use rusqlite::params;
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use super::file::{Database, Schema};
use super::locked_connection::{ConnectionState, LockedConnection, newest_of};
use super::timer::Timer;
use super::wal::Witness;
use super::{Commit, SqliteOptions};
use crate::error::{Error, Result};
use crate::locks::{read, write};
use crate::numbers::{Keys, key_of, labels_to_json};
use crate::resample::Resampler;
use crate::store::{Ack, Capabilities, Exactness, OnConflict, Query, Reason, Refusals, Scope, Stats, Store, Visitor};

const SCHEMA: Schema = Schema {
    layout: "rows",
    journal: "wal",
    tables: "
        CREATE TABLE series(number INTEGER PRIMARY KEY, name TEXT NOT NULL, labels TEXT NOT NULL) STRICT;
        CREATE TABLE sample(series INTEGER, at INTEGER, value, PRIMARY KEY(series, at)) WITHOUT ROWID;",
};

/// Rows read per lock: the visitor runs without the lock, so it delays no writer.
pub(super) const PAGE: usize = 1024;

/// A file with one row per sample; see the module's documentation.
#[derive(Debug)]
pub struct RowStore {
    connection: Arc<LockedConnection<RowsState>>,
    /// The newest timestamp of each series number.
    newest: RwLock<Vec<Option<Timestamp>>>,
    timer: Option<Timer>,
}

#[derive(Debug)]
struct RowsState {
    keys: Keys,
    ids: Vec<SeriesId>,
    key_bytes: u64,
}

impl RowStore {
    /// Opens or creates a file.
    pub fn open(path: &Path, options: SqliteOptions) -> Result<Self> {
        if options.retention_ns.is_some() {
            return Err(Error::Spec {
                spec: String::new(),
                what: "layout=rows keeps everything: it has no retention".to_owned(),
            });
        }
        let (database, connection) = Database::open(path, &options, &SCHEMA)?;
        let read = connection
            .prepare("SELECT name, labels FROM series ORDER BY number")
            .and_then(|mut statement| {
                let rows = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?;
                rows.collect::<rusqlite::Result<Vec<_>>>()
            });
        let stored = database.done("read the series of", read)?;
        let key_bytes = stored
            .iter()
            .map(|(name, labels)| (name.len() + labels.len() + 16) as u64)
            .sum();
        let keys: Option<Vec<SeriesKey>> = stored.iter().map(|(name, labels)| key_of(name, labels)).collect();
        let keys = keys.ok_or_else(|| database.corrupt("its table of series"))?;
        let mut newest = Vec::with_capacity(keys.len());
        for number in 0..keys.len() {
            let sql = "SELECT max(at) FROM sample WHERE series = ?1";
            let statement = connection.prepare_cached(sql);
            let at = statement
                .and_then(|mut statement| statement.query_row([number as i64], |row| row.get::<_, Option<i64>>(0)));
            newest.push(database.done("read", at)?.map(Timestamp));
        }
        let held: i64 = database.done(
            "read",
            connection.query_row("SELECT count(*) FROM sample", [], |row| row.get(0)),
        )?;
        let state = RowsState {
            keys: Keys::new(keys, options.max_series),
            ids: Vec::new(),
            key_bytes,
        };
        let connection = Arc::new(LockedConnection::new(
            options,
            database,
            connection,
            state,
            held as u64,
        )?);
        let timer = match connection.options.commit {
            Commit::Every(interval_ns) => Some(Timer::start(&connection, interval_ns)?),
            Commit::Each => None,
        };
        Ok(Self {
            connection,
            newest: RwLock::new(newest),
            timer,
        })
    }

    fn write_some(
        &self,
        inner: &mut ConnectionState<RowsState>,
        batch: &Batch<'_>,
        refused: &mut Refusals,
    ) -> Result<usize> {
        let mut ids = std::mem::take(&mut inner.state.ids);
        let numbered = inner.state.keys.numbered(batch, &mut ids);
        let written = numbered.and_then(|batch| {
            self.connection.begin(inner)?;
            let inserted = self.insert(inner, &batch, refused);
            let (accepted, superseded) = self.connection.sound(inserted)?;
            if let Some((id, at, _)) = batch.iter().filter(|(_, _, value)| value.is_finite()).last() {
                inner.last = Witness(i64::from(id.0), at.0);
            }
            self.connection.wrote(inner, newest_of(&batch), accepted, superseded)?;
            Ok(accepted)
        });
        inner.state.ids = ids;
        written
    }

    /// The first rows of a series in a range.
    fn page(&self, number: u32, from: i64, end: i64) -> Result<Vec<(i64, f64)>> {
        let inner = self.connection.lock()?;
        let sql = "SELECT at, value FROM sample WHERE series = ?1 AND at >= ?2 AND at < ?3 ORDER BY at LIMIT ?4";
        let read = inner.connection()?.prepare_cached(sql).and_then(|mut statement| {
            let range = params![number, from, end, PAGE as i64];
            let rows = statement.query_map(range, |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        });
        self.connection.database.done("read", read)
    }

    /// Inserts the samples of a batch. Returns the number accepted, and how many of them replaced
    /// another.
    fn insert(
        &self,
        inner: &ConnectionState<RowsState>,
        batch: &Batch<'_>,
        refused: &mut Refusals,
    ) -> Result<(usize, usize)> {
        let database = &self.connection.database;
        let connection = inner.connection()?;
        let mut insert = database.done(
            "write",
            connection.prepare_cached("INSERT OR IGNORE INTO sample VALUES (?1, ?2, ?3)"),
        )?;
        let mut newest = write(&self.newest);
        let (mut accepted, mut superseded) = (0, 0);
        for (index, (id, at, value)) in batch.iter().enumerate() {
            if !value.is_finite() {
                refused.push(index, Reason::Unrepresentable);
                continue;
            }
            accepted += 1;
            if database.done("write", insert.execute(params![id.0, at.0, value]))? == 0 {
                let sql = "UPDATE sample SET value = ?3 WHERE series = ?1 AND at = ?2";
                let update = connection.prepare_cached(sql);
                let done = update.and_then(|mut update| update.execute(params![id.0, at.0, value]));
                superseded += database.done("write", done)?;
            }
            newest[id.index()] = newest[id.index()].max(Some(at));
        }
        Ok((accepted, superseded))
    }
}

impl fmt::Display for RowStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&super::name("rows", &self.connection.options))
    }
}

impl Store for RowStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            query: true,
            resample: true,
            exactness: Exactness::Exact,
            duplicate: OnConflict::Accepted,
            late: OnConflict::Accepted,
            resolution_ns: 1,
            special_values: false,
            persistent: true,
            ..Capabilities::new(self.connection.acknowledges(), Durability::Synced)
        }
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        let mut inner = self.connection.lock()?;
        let first = inner.state.keys.count();
        let new = inner.state.keys.define(series)?;
        let mut newest = write(&self.newest);
        newest.resize(inner.state.keys.count() as usize, None);
        drop(newest);
        if new.is_empty() {
            return Ok(());
        }
        self.connection.begin(&mut inner)?;
        for (number, key) in (first..).zip(&new) {
            let labels = labels_to_json(key);
            inner.state.key_bytes += (key.name().len() + labels.len() + 16) as u64;
            let insert = inner
                .connection()?
                .prepare_cached("INSERT INTO series VALUES (?1, ?2, ?3)");
            let done = insert.and_then(|mut insert| insert.execute(params![number, key.name(), labels]));
            self.connection.sound(self.connection.database.done("write", done))?;
        }
        self.connection.commit(&mut inner)
    }

    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        let mut inner = self.connection.lock()?;
        let accepted = if batch.is_empty() {
            0
        } else {
            self.write_some(&mut inner, batch, refused)?
        };
        Ok(Ack::new(
            accepted,
            batch.len() - accepted,
            self.connection.position(),
            self.connection.acknowledges(),
        ))
    }

    fn durable(&self, level: Durability) -> crate::store::Position {
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
        for (id, number) in query.series.iter().zip(numbers) {
            let answer = RowAnswer::new(*id, query, visit);
            let page = |from: i64| self.page(number, from, query.range.end.0);
            if answer.pages(query.range.start.0, page)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        let inner = self.connection.lock()?;
        let newest = read(&self.newest);
        for (id, into) in series.iter().zip(into) {
            *into = newest[inner.state.keys.number(*id)? as usize];
        }
        Ok(())
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.newest(series, into)
    }

    fn stats(&self) -> Stats {
        let (series, bytes) = self.connection.peek(|state| (state.keys.defined(), state.key_bytes));
        let stats = self.connection.stats(series, bytes);
        match &self.timer {
            Some(timer) => stats.with_threads(timer.threads()),
            None => stats,
        }
    }

    fn close(&self) -> Result<()> {
        if let Some(timer) = &self.timer {
            timer.stop();
        }
        self.connection.close()
    }
}

/// Passes the rows of one series to a visitor.
pub(super) struct RowAnswer<'a, 'v> {
    series: SeriesId,
    resampler: Option<Resampler>,
    times: Vec<Timestamp>,
    values: Vec<f64>,
    visit: &'a mut Visitor<'v>,
}

impl<'a, 'v> RowAnswer<'a, 'v> {
    pub(super) fn new(series: SeriesId, query: &Query<'_>, visit: &'a mut Visitor<'v>) -> Self {
        Self {
            series,
            resampler: query.resample.map(Resampler::new),
            times: Vec::new(),
            values: Vec::new(),
            visit,
        }
    }

    /// Visits the samples of a series page by page. `page` returns the first ones from a time on;
    /// fewer than [`PAGE`] means that there are no more.
    pub(super) fn pages(
        mut self,
        start: i64,
        page: impl Fn(i64) -> Result<Vec<(i64, f64)>>,
    ) -> Result<ControlFlow<()>> {
        let mut from = start;
        loop {
            let rows = page(from)?;
            for (at, value) in &rows {
                if let Some(resampler) = &mut self.resampler {
                    resampler.push(Timestamp(*at), *value);
                } else {
                    self.times.push(Timestamp(*at));
                    self.values.push(*value);
                }
            }
            if self.hand_over().is_break() {
                return Ok(ControlFlow::Break(()));
            }
            match rows.last() {
                Some((last, _)) if rows.len() == PAGE => from = last.saturating_add(1),
                _ => return Ok(self.finish()),
            }
        }
    }

    fn hand_over(&mut self) -> ControlFlow<()> {
        if self.times.is_empty() {
            return ControlFlow::Continue(());
        }
        let flow = (self.visit)(self.series, &self.times, &self.values);
        self.times.clear();
        self.values.clear();
        flow
    }

    /// Ends the series.
    fn finish(mut self) -> ControlFlow<()> {
        if let Some(resampler) = self.resampler.take() {
            (self.times, self.values) = resampler.finish();
        }
        self.hand_over()
    }
}
