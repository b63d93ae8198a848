//! The layout made for ingest: a log of ticks, and chunks of series made from it.
//!
//! A write goes into a memory store, the *head*, and into a frame of the log; a commit stores the
//! frame as a row. When the head is full it becomes the *aging* generation, and a new head
//! begins. Each commit then moves some of the aging generation's series into chunks, one row per
//! series, so the work of sealing is spread out. When all have moved, the generation's part of
//! the log is deleted, again a little with each commit. A query merges chunks, aging generation
//! and head.

mod collect;
mod commit;
mod generations;
mod next_head;
mod read;
mod replay;
mod summaries;
mod view;
mod writer;

use std::fmt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};

use super::commits::Commits;
use super::file::{Database, Schema};
use super::timer::{CommitsOnTimer, Timer};
use super::{Commit, SqliteOptions, Synchronous};
use crate::damage::Damage;
use crate::error::{Error, Result};
use crate::locks::lock;
use crate::memory::{MemoryOptions, MemoryStore};
use crate::numbers::Keys;
use crate::open_state::PoisonFlag;
use crate::store::{Ack, Capabilities, Exactness, OnConflict, Position, Query, Refusals, Scope, Stats, Store, Visitor};
use read::Readers;
use view::View;
use writer::Writer;

const SCHEMA: Schema = Schema {
    layout: "ticks",
    journal: "wal",
    tables: "
        CREATE TABLE series(number INTEGER PRIMARY KEY, name TEXT NOT NULL, labels TEXT NOT NULL) STRICT;
        CREATE TABLE tick(seq INTEGER PRIMARY KEY, frame BLOB NOT NULL) STRICT;
        CREATE TABLE chunk(key INTEGER PRIMARY KEY, data BLOB NOT NULL) STRICT;
        CREATE TABLE generation(number INTEGER PRIMARY KEY, first_seq INTEGER NOT NULL,
            oldest INTEGER, newest INTEGER, samples INTEGER NOT NULL, shadowed INTEGER NOT NULL,
            moved INTEGER NOT NULL, state TEXT NOT NULL, newest_of BLOB) STRICT;
        INSERT INTO generation VALUES (1, 1, NULL, NULL, 0, 0, 0, 'head', NULL);
        CREATE VIEW contents AS
            SELECT series.name, series.labels, generation.number AS generation,
                datetime(generation.oldest / 1000000000, 'unixepoch') AS oldest,
                datetime(generation.newest / 1000000000, 'unixepoch') AS newest,
                length(chunk.data) AS bytes
            FROM chunk JOIN series ON series.number = chunk.key & 0xffffffff
                JOIN generation ON generation.number = chunk.key >> 32;",
};

/// A file in the layout made for ingest; see the module's documentation.
#[derive(Debug)]
pub struct TickStore {
    shared: Arc<TickShared>,
    timer: Option<Timer>,
}

/// The state shared by writers, readers and the timer.
#[derive(Debug)]
struct TickShared {
    options: SqliteOptions,
    readers: Readers,
    writer: Mutex<Writer>,
    keys: RwLock<Keys>,
    view: RwLock<Arc<View>>,
    /// The newest timestamp of each series number in everything older than the head.
    older: RwLock<Vec<i64>>,
    /// Incremented when series have moved: an older snapshot of the file does not hold them.
    epoch: AtomicU64,
    /// Whether the file has the table of summaries.
    has_summaries: AtomicBool,
    /// The newest timestamp in the store.
    newest_of_all: AtomicI64,
    accepted: AtomicU64,
    superseded: AtomicU64,
    expired: AtomicU64,
    /// Samples in the file when it was opened.
    held_before: AtomicU64,
    committed: AtomicU64,
    synced: AtomicU64,
    open: PoisonFlag,
    /// The damage of the write-ahead log that was found when the file was opened.
    damage: Vec<Damage>,
    // Must be dropped last: the lock may be released only after all connections are closed.
    database: Database,
}

/// A memory store without limits.
fn memory() -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(MemoryOptions::default()))
}

fn panicked<T>(_: PoisonError<T>) -> Error {
    Error::Poisoned {
        cause: "a call of the store panicked".to_owned(),
    }
}

impl TickShared {
    /// Locks the writer. Fails if the store is closed or poisoned.
    fn writer(&self) -> Result<MutexGuard<'_, Writer>> {
        self.open.check_open()?;
        let writer = self.writer.lock().map_err(panicked)?;
        self.open.check_open()?;
        Ok(writer)
    }

    fn view(&self) -> Result<Arc<View>> {
        Ok(Arc::clone(&*self.view.read().map_err(panicked)?))
    }

    fn numbers(&self, series: &[SeriesId]) -> Result<Vec<u32>> {
        self.keys.read().map_err(panicked)?.numbers(series)
    }

    /// The time before which samples have expired.
    fn cutoff(&self, newest: i64) -> i64 {
        let retention = self.options.retention_ns;
        retention.map_or(i64::MIN, |retention| newest.saturating_sub(retention))
    }

    /// The durability level of every write when it returns.
    fn acknowledges(&self) -> Durability {
        match (self.options.commit, self.options.synchronous) {
            (Commit::Each, Synchronous::Full) => Durability::Synced,
            (Commit::Each, Synchronous::Normal) => Durability::Buffered,
            (Commit::Every(_), _) => Durability::Volatile,
        }
    }
}

impl CommitsOnTimer for TickShared {
    fn progress(&self) -> (u64, bool) {
        let committed = self.committed.load(Ordering::Acquire);
        (committed, self.accepted.load(Ordering::Acquire) > committed)
    }

    fn commit_waiting(&self) -> Result<()> {
        self.writer()?.commit(self)
    }
}

impl TickStore {
    /// Opens a file, replays its log, and continues where it ended.
    pub fn open(path: &Path, options: SqliteOptions) -> Result<Self> {
        let shared = Arc::new(replay::open(path, options)?);
        let timer = match shared.options.commit {
            Commit::Every(interval_ns) => Some(Timer::start(&shared, interval_ns)?),
            Commit::Each => None,
        };
        Ok(Self { shared, timer })
    }

    /// Counts of commits since the store was opened.
    pub fn commits(&self) -> Commits {
        self.shared
            .writer
            .lock()
            .map_or_else(|_| Commits::default(), |writer| writer.commits())
    }
}

impl fmt::Display for TickStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&super::name("ticks", &self.shared.options))
    }
}

impl Store for TickStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities {
            query: true,
            resample: true,
            exactness: Exactness::Exact,
            duplicate: OnConflict::Accepted,
            late: OnConflict::Accepted,
            resolution_ns: 1,
            special_values: true,
            persistent: true,
            retention_ns: self.shared.options.retention_ns,
            ..Capabilities::new(self.shared.acknowledges(), Durability::Synced)
        }
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.shared.writer()?.define(&self.shared, series)
    }

    fn write(&self, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        self.shared.writer()?.write(&self.shared, batch, refused)
    }

    fn durable(&self, level: Durability) -> Position {
        let reached = match level {
            Durability::Unconfirmed | Durability::Volatile => &self.shared.accepted,
            Durability::Buffered => &self.shared.committed,
            Durability::Synced => &self.shared.synced,
        };
        Position(reached.load(Ordering::Acquire))
    }

    fn flush(&self, scope: Scope<'_>, level: Durability) -> Result<()> {
        let mut writer = self.shared.writer()?;
        if let Scope::Series(series) = scope {
            self.shared.numbers(series)?;
        }
        writer.flush(&self.shared, level)
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        self.shared.query(query, visit)
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.shared.newest(series, into)
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.newest(series, into)
    }

    fn stats(&self) -> Stats {
        let stats = self.shared.stats();
        match &self.timer {
            Some(timer) => stats.with_threads(timer.threads()),
            None => stats,
        }
    }

    fn close(&self) -> Result<()> {
        if let Some(timer) = &self.timer {
            timer.stop();
        }
        let closed = {
            let mut writer = lock(&self.shared.writer);
            writer.close(&self.shared)
        };
        self.shared.database.release();
        closed
    }
}
