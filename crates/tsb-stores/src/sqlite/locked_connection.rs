//! The common part of the layouts `rows` and `mohawk`: one locked connection, counts, and the
//! commit policy.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

use rusqlite::Connection;
use tsb_core::{Batch, Durability, Timestamp};

use super::file::{Database, PAGE_BYTES};
use super::timer::CommitsOnTimer;
use super::wal::{Wal, Witness};
use super::{Commit, SqliteOptions, Synchronous};
use crate::activity::ActivityKind;
use crate::damage::Damage;
use crate::error::{Error, Result, chain};
use crate::locks::lock;
use crate::open_state::PoisonFlag;
use crate::store::{Footprint, Position, Stats};

/// The state of such a store. `S` is the layout's own state.
#[derive(Debug)]
pub(super) struct LockedConnection<S> {
    pub(super) options: SqliteOptions,
    inner: Mutex<ConnectionState<S>>,
    accepted: AtomicU64,
    superseded: AtomicU64,
    committed: AtomicU64,
    synced: AtomicU64,
    held_before: u64,
    open: PoisonFlag,
    /// The damage of the write-ahead log that was found when the file was opened.
    damage: Vec<Damage>,
    // Must be dropped last: the lock may be released only after the connection is closed.
    pub(super) database: Database,
}

/// The state behind the lock.
#[derive(Debug)]
pub(super) struct ConnectionState<S> {
    connection: Option<Connection>,
    pub(super) state: S,
    /// Whether a transaction is open.
    pub(super) is_open: bool,
    newest: i64,
    committed_until: Option<i64>,
    /// The series and time of a sample in the open transaction.
    pub(super) last: Witness,
    wal: Wal,
}

impl<S> ConnectionState<S> {
    pub(super) fn connection(&self) -> Result<&Connection> {
        self.connection.as_ref().ok_or(Error::Closed)
    }
}

impl<S> LockedConnection<S> {
    pub(super) fn new(
        options: SqliteOptions,
        database: Database,
        mut connection: Connection,
        state: S,
        held: u64,
    ) -> Result<Self> {
        let damage = database.damage(|witness| holds(&database, &connection, witness))?;
        let wal = database.watch(&mut connection)?;
        Ok(Self {
            options,
            inner: Mutex::new(ConnectionState {
                connection: Some(connection),
                state,
                is_open: false,
                newest: i64::MIN,
                committed_until: None,
                last: Witness::default(),
                wal,
            }),
            accepted: AtomicU64::new(0),
            superseded: AtomicU64::new(0),
            committed: AtomicU64::new(0),
            synced: AtomicU64::new(0),
            held_before: held,
            open: PoisonFlag::default(),
            damage,
            database,
        })
    }

    /// Locks the state. Fails if the store is closed or poisoned.
    pub(super) fn lock(&self) -> Result<MutexGuard<'_, ConnectionState<S>>> {
        self.open.check_open()?;
        let inner = self.inner.lock().map_err(|_| Error::Poisoned {
            cause: "a call of the store panicked".to_owned(),
        })?;
        self.open.check_open()?;
        Ok(inner)
    }

    /// The durability level of every write when it returns.
    pub(super) fn acknowledges(&self) -> Durability {
        match (self.options.commit, self.options.synchronous) {
            (Commit::Each, Synchronous::Full) => Durability::Synced,
            (Commit::Each, Synchronous::Normal) => Durability::Buffered,
            (Commit::Every(_), _) => Durability::Volatile,
        }
    }

    pub(super) fn position(&self) -> Position {
        Position(self.accepted.load(Ordering::Acquire))
    }

    pub(super) fn durable(&self, level: Durability) -> Position {
        let reached = match level {
            Durability::Unconfirmed | Durability::Volatile => &self.accepted,
            Durability::Buffered => &self.committed,
            Durability::Synced => &self.synced,
        };
        Position(reached.load(Ordering::Acquire))
    }

    /// Runs a cached statement without parameters.
    pub(super) fn run(&self, inner: &ConnectionState<S>, sql: &str) -> Result<()> {
        let statement = inner.connection()?.prepare_cached(sql);
        let run = statement.and_then(|mut statement| statement.execute([]));
        self.database.done("write", run).map(drop)
    }

    /// Begins a transaction, unless one is open.
    pub(super) fn begin(&self, inner: &mut ConnectionState<S>) -> Result<()> {
        if !inner.is_open {
            self.sound(self.run(inner, "BEGIN IMMEDIATE"))?;
            inner.is_open = true;
        }
        Ok(())
    }

    /// Counts samples that were written, and commits if that is due.
    pub(super) fn wrote(
        &self,
        inner: &mut ConnectionState<S>,
        newest: i64,
        accepted: usize,
        superseded: usize,
    ) -> Result<()> {
        self.superseded.fetch_add(superseded as u64, Ordering::Relaxed);
        self.accepted.fetch_add(accepted as u64, Ordering::AcqRel);
        inner.newest = inner.newest.max(newest);
        let until = *inner.committed_until.get_or_insert(inner.newest);
        let due = match self.options.commit {
            Commit::Each => true,
            Commit::Every(interval_ns) => inner.newest.saturating_sub(until) >= interval_ns,
        };
        if due { self.commit(inner) } else { Ok(()) }
    }

    /// Commits the open transaction.
    pub(super) fn commit(&self, inner: &mut ConnectionState<S>) -> Result<()> {
        if inner.is_open {
            let _under_way = self.database.activity.begin(ActivityKind::Commit);
            let committed = self.run(inner, "COMMIT");
            if committed.is_err() {
                // SQLite may have rolled it back already; the first error is the one to report.
                let _ = self.run(inner, "ROLLBACK");
            }
            self.sound(committed)?;
            inner.is_open = false;
            let is_synced = self.options.synchronous == Synchronous::Full;
            inner.wal.committed(inner.last, is_synced);
        }
        inner.committed_until = Some(inner.newest);
        let position = self.accepted.load(Ordering::Acquire);
        self.committed.store(position, Ordering::Release);
        if self.options.synchronous == Synchronous::Full {
            self.synced.store(position, Ordering::Release);
        }
        let connection = inner.connection.as_ref().ok_or(Error::Closed)?;
        let _under_way = self.database.activity.begin(ActivityKind::Checkpoint);
        let made = inner.wal.checkpoint_when_due(connection, self.options.checkpoint_bytes);
        self.sound(self.database.done("checkpoint", made)).map(drop)
    }

    /// Reads the layout's state; works on a closed store, too.
    pub(super) fn peek<T>(&self, read: impl FnOnce(&S) -> T) -> T {
        read(&lock(&self.inner).state)
    }

    pub(super) fn flush(&self, level: Durability) -> Result<()> {
        let mut inner = self.lock()?;
        if level >= Durability::Buffered {
            self.commit(&mut inner)?;
        }
        if level == Durability::Synced {
            self.sync(&mut inner)?;
        }
        Ok(())
    }

    fn sync(&self, inner: &mut ConnectionState<S>) -> Result<()> {
        let position = self.committed.load(Ordering::Acquire);
        if self.synced.load(Ordering::Acquire) < position {
            // One commit that waits syncs the whole log, earlier commits included.
            let synced = self.run(inner, "PRAGMA synchronous=FULL").and_then(|()| {
                self.run(
                    inner,
                    "INSERT INTO tsb VALUES ('synced', 1) ON CONFLICT DO UPDATE SET value = value + 1",
                )?;
                self.run(inner, "PRAGMA synchronous=NORMAL")
            });
            self.sound(synced)?;
            inner.wal.committed(inner.last, true);
            self.synced.store(position, Ordering::Release);
        }
        Ok(())
    }

    /// Poisons the store on an error, since its state is then uncertain.
    pub(super) fn sound<T>(&self, result: Result<T>) -> Result<T> {
        result.inspect_err(|error| self.open.poison(|| chain(error)))
    }

    pub(super) fn close(&self) -> Result<()> {
        let mut inner = lock(&self.inner);
        let Some(was) = self.open.begin_close() else {
            return Ok(());
        };
        let flushed = was.and_then(|()| {
            self.commit(&mut inner)?;
            self.sync(&mut inner)
        });
        let closed = inner
            .connection
            .take()
            .map_or(Ok(()), |connection| connection.close().map_err(|(_, error)| error));
        self.database.release();
        flushed?;
        self.database.done("close", closed)
    }

    /// Counts and sizes. In these layouts all samples count as sealed: they are never moved.
    pub(super) fn stats(&self, series: usize, key_bytes: u64) -> Stats {
        let accepted = self.accepted.load(Ordering::Acquire);
        let superseded = self.superseded.load(Ordering::Relaxed);
        let samples = (self.held_before + accepted).saturating_sub(superseded);
        let footprint = self.footprint(samples, key_bytes).unwrap_or_default();
        Stats {
            series: series as u64,
            samples,
            accepted,
            superseded,
            expired: 0,
            footprint,
            disk_bytes: self.database.disk_bytes(),
            damage: self.damage.clone(),
            activity: vec![self.database.activity.clone()],
            ..Stats::default()
        }
    }

    fn footprint(&self, samples: u64, key_bytes: u64) -> Result<Footprint> {
        let inner = self.lock()?;
        let pages = |pragma: &str| {
            let pages = inner.connection()?.query_row(pragma, [], |row| row.get::<_, i64>(0));
            self.database.done("read", pages).map(|pages| pages as u64 * PAGE_BYTES)
        };
        let (all, free) = (pages("PRAGMA page_count")?, pages("PRAGMA freelist_count")?);
        Ok(Footprint {
            sealed_bytes: all.saturating_sub(free + key_bytes),
            sealed_samples: samples,
            head_bytes: 0,
            journal_bytes: self.database.journal_bytes(),
            series_bytes: key_bytes,
            free_bytes: free,
            ..Footprint::default()
        })
    }
}

impl<S: Send + 'static> CommitsOnTimer for LockedConnection<S> {
    fn progress(&self) -> (u64, bool) {
        let committed = self.committed.load(Ordering::Acquire);
        (committed, self.accepted.load(Ordering::Acquire) > committed)
    }

    fn commit_waiting(&self) -> Result<()> {
        let mut inner = self.lock()?;
        self.commit(&mut inner)
    }
}

/// Whether the table of samples holds this sample.
fn holds(database: &Database, connection: &Connection, Witness(series, at): Witness) -> Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM sample WHERE series = ?1 AND at = ?2)";
    database.done("read", connection.query_row(sql, [series, at], |row| row.get(0)))
}

/// The latest timestamp of a batch; the earliest possible one if the batch is empty.
pub(super) fn newest_of(batch: &Batch<'_>) -> i64 {
    (0..batch.len())
        .map(|index| batch.time(index))
        .max()
        .unwrap_or(Timestamp::MIN)
        .0
}
