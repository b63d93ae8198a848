//! Queries: readers have connections of their own and do not wait for the writer.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use rusqlite::Connection;
use tsb_core::{SeriesId, Timestamp};

use super::collect::Asked;
use super::view::View;
use super::{TickShared, panicked};
use crate::block::{Answer, Fold, Wanted};
use crate::error::Result;
use crate::locks::lock;
use crate::sqlite::file::{Database, PAGE_BYTES};
use crate::store::{Footprint, Query, Stats, Visitor};

/// Room for the parts of a series at first: two hours of blocks at one sample per second.
const FIRST_PARTS: usize = 32;
/// Number of idle connections that are kept.
const KEPT: usize = 8;

/// Idle connections.
#[derive(Debug, Default)]
pub(super) struct Readers {
    // `None` once closed.
    idle: Mutex<Option<Vec<Connection>>>,
}

impl Readers {
    pub(super) fn open() -> Self {
        Self {
            idle: Mutex::new(Some(Vec::new())),
        }
    }

    fn take(&self, database: &Database) -> Result<Connection> {
        let idle = match &mut *lock(&self.idle) {
            Some(idle) => idle.pop(),
            None => return Err(crate::Error::Closed),
        };
        idle.map_or_else(|| database.reader(), Ok)
    }

    fn give(&self, connection: Connection) {
        if let Some(idle) = &mut *lock(&self.idle)
            && idle.len() < KEPT
        {
            idle.push(connection);
        }
    }

    /// Closes idle connections now, and the others when they are returned.
    pub(super) fn close(&self) {
        *lock(&self.idle) = None;
    }
}

/// A snapshot of the file, taken when it is first needed.
pub(super) struct Snapshot<'a> {
    shared: &'a TickShared,
    open: Option<(Connection, u64)>,
}

/// Runs a statement that is prepared once for a connection.
fn run(connection: &Connection, sql: &str) -> rusqlite::Result<()> {
    connection.prepare_cached(sql)?.execute([]).map(drop)
}

impl Snapshot<'_> {
    /// A connection whose snapshot holds everything that has moved so far.
    pub(super) fn fresh(&mut self) -> Result<&Connection> {
        let epoch = self.shared.epoch.load(Ordering::Acquire);
        let done = |result| self.shared.database.done("read", result);
        let opened = match self.open.take() {
            Some((connection, of)) if of == epoch => (connection, of),
            Some((connection, _)) => {
                done(run(&connection, "COMMIT").and_then(|()| run(&connection, "BEGIN")))?;
                (connection, epoch)
            }
            None => {
                let connection = self.shared.readers.take(&self.shared.database)?;
                done(run(&connection, "BEGIN"))?;
                (connection, epoch)
            }
        };
        Ok(&self.open.insert(opened).0)
    }

    /// Returns the connection. After a failure it is closed instead.
    fn end(mut self) -> Result<()> {
        if let Some((connection, _)) = self.open.take() {
            self.shared.database.done("read", run(&connection, "COMMIT"))?;
            self.shared.readers.give(connection);
        }
        Ok(())
    }
}

impl TickShared {
    pub(super) fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        self.open.check_open()?;
        let numbers = self.numbers(query.series)?;
        let start = query.range.start.0.max(self.oldest_kept());
        let range = (start, query.range.end.0);
        let mut snapshot = Snapshot {
            shared: self,
            open: None,
        };
        let (mut parts, mut answer) = (Vec::with_capacity(FIRST_PARTS), Answer::default());
        let mut fold = query.resample.map(Fold::new);
        for (series, number) in query.series.iter().zip(numbers) {
            let asked = Asked {
                number,
                range,
                wanted: Wanted::of(fold.as_ref()),
            };
            self.collect(asked, &mut snapshot, &mut parts)?;
            if answer.visit(*series, &parts, range, fold.as_mut(), visit).is_break() {
                break;
            }
        }
        snapshot.end()
    }

    /// The time before which samples have expired.
    fn oldest_kept(&self) -> i64 {
        self.cutoff(self.newest_of_all.load(Ordering::Acquire))
    }

    pub(super) fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.open.check_open()?;
        let numbers = self.numbers(series)?;
        let cutoff = self.oldest_kept();
        let newest = loop {
            let (newest, view) = self.newest_in_view(&numbers)?;
            // If the view has changed, the former head may have left memory before it was read:
            // try again.
            if Arc::ptr_eq(&view, &self.view()?) {
                break newest;
            }
        };
        for (into, newest) in into.iter_mut().zip(newest) {
            *into = (newest > i64::MIN && newest >= cutoff).then_some(Timestamp(newest));
        }
        Ok(())
    }

    /// The newest timestamps of series numbers, and the view in which they were read.
    fn newest_in_view(&self, numbers: &[u32]) -> Result<(Vec<i64>, Arc<View>)> {
        // Lock `older` first: a head that becomes aging meanwhile is counted in at least one of
        // both.
        let older = self.older.read().map_err(panicked)?;
        let mut newest: Vec<i64> = numbers
            .iter()
            .map(|number| older.get(*number as usize).copied().unwrap_or(i64::MIN))
            .collect();
        let view = self.view()?;
        drop(older);
        view.head.raise_newest(numbers.iter().copied(), &mut newest)?;
        Ok((newest, view))
    }

    pub(super) fn stats(&self) -> Stats {
        let accepted = self.accepted.load(Ordering::Acquire);
        let superseded = self.superseded.load(Ordering::Relaxed);
        let expired = self.expired.load(Ordering::Relaxed);
        Stats {
            series: self.keys.read().map_or(0, |keys| keys.defined() as u64),
            samples: (self.held_before.load(Ordering::Relaxed) + accepted).saturating_sub(superseded + expired),
            accepted,
            superseded,
            expired,
            footprint: self.footprint().unwrap_or_default(),
            disk_bytes: self.database.disk_bytes(),
            damage: self.damage.clone(),
            activity: vec![self.database.activity.clone()],
            ..Stats::default()
        }
    }

    /// The bytes that the file occupies; memory holds only copies of it.
    fn footprint(&self) -> Result<Footprint> {
        let connection = self.readers.take(&self.database)?;
        let pages = |pragma: &str| {
            let pages = connection.query_row(pragma, [], |row| row.get::<_, i64>(0));
            self.database.done("read", pages).map(|pages| pages as u64 * PAGE_BYTES)
        };
        let (all, free) = (pages("PRAGMA page_count")?, pages("PRAGMA freelist_count")?);
        self.readers.give(connection);
        let writer = self.writer.lock().map_err(panicked)?;
        let aging = writer
            .aging
            .as_ref()
            .map_or((0, 0), |aging| (aging.samples, aging.bytes));
        let generations = &self.view()?.generations;
        let (sealed_samples, chunk_bytes) = generations.iter().fold(aging, |(samples, bytes), generation| {
            (samples + generation.samples, bytes + generation.bytes)
        });
        let series = writer.key_bytes;
        let log = writer.log_bytes;
        drop(writer);
        let rest = all.saturating_sub(free + series);
        // The pages of the log are an estimate. The rest are chunks, which take at least the
        // bytes stored in them.
        let sealed = if sealed_samples > 0 {
            rest.saturating_sub(log).max(chunk_bytes.min(rest))
        } else {
            0
        };
        Ok(Footprint {
            sealed_bytes: sealed,
            sealed_samples,
            head_bytes: rest - sealed,
            journal_bytes: self.database.journal_bytes(),
            series_bytes: series,
            free_bytes: free,
            ..Footprint::default()
        })
    }
}
