//! Keys in SQLite: one row per key, and one transaction per put.
//!
//! Lists read pages of keys by a connection of their own, so they hold up no put. Expired rows
//! are left out of every answer, and removed with the puts that follow.

use std::fmt;
use std::ops::{ControlFlow, RangeInclusive};
use std::path::Path;
use std::sync::{Arc, Mutex};

use rusqlite::{Connection, params};
use tsb_core::Durability;
use tsb_core::time::Clock;

use super::file::{Database, Schema};
use super::{SqliteOptions, Synchronous};
use crate::error::{Error, Result, chain};
use crate::keyed::{Key, KeyedCapabilities, KeyedStore, KeyedVisitor, MAX_VALUE_BYTES, Put, PutAck};
use crate::locks::lock;
use crate::open_state::PoisonFlag;
use crate::store::{Reason, Refusals};

const SCHEMA: Schema = Schema {
    layout: "keyed",
    journal: "wal",
    tables: "
        CREATE TABLE entry(key TEXT PRIMARY KEY, value TEXT NOT NULL, gone_at INTEGER) STRICT, WITHOUT ROWID;
        CREATE INDEX entry_gone_at ON entry(gone_at) WHERE gone_at IS NOT NULL;",
};

/// Number of keys that a list reads per lock.
const PAGE: usize = 1024;
/// Number of expired rows that a put may remove in addition to two for each of its own keys.
const REMOVED_MIN: usize = 64;
/// Pages in the write-ahead log at which SQLite copies it into the file: 4 MiB.
const CHECKPOINT_PAGES: u32 = 1024;

/// The options of a file of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyedFileOptions {
    /// What a commit waits for.
    pub synchronous: Synchronous,
    /// Maximum number of keys.
    pub max_keys: usize,
}

impl Default for KeyedFileOptions {
    fn default() -> Self {
        Self {
            synchronous: Synchronous::default(),
            max_keys: 10_000_000,
        }
    }
}

/// A file of keys; see the module's documentation.
#[derive(Debug)]
pub struct KeyedFile {
    options: KeyedFileOptions,
    time: TimeOfDay,
    database: Database,
    // `None` once it is closed. A thread that locks both takes the writer first.
    writer: Mutex<Option<Writer>>,
    reader: Mutex<Option<Connection>>,
    open: PoisonFlag,
}

#[derive(Debug)]
struct Writer {
    connection: Connection,
    /// Number of rows.
    keys: usize,
}

/// The time of day when the file was opened, and the clock that has run since: it makes no steps.
#[derive(Debug)]
struct TimeOfDay {
    clock: Arc<dyn Clock>,
    /// The time of day at the start of the clock, in nanoseconds since the epoch.
    start_ns: i64,
}

impl TimeOfDay {
    fn new(clock: Arc<dyn Clock>) -> Self {
        let start_ns = clock.wall().0.saturating_sub(clock.now() as i64);
        Self { clock, start_ns }
    }

    /// Nanoseconds since the epoch.
    fn now(&self) -> i64 {
        self.start_ns.saturating_add(self.clock.now() as i64)
    }
}

impl KeyedFile {
    /// Opens or creates a file, whose keys expire by the time of day of this clock.
    ///
    /// # Errors
    /// [`Error::Backend`] for a file of another program or store, or that another process has
    /// open, and [`Error::Corrupt`] for a damaged one.
    pub fn open(path: &Path, options: KeyedFileOptions, clock: Arc<dyn Clock>) -> Result<Self> {
        let of_file = SqliteOptions {
            synchronous: options.synchronous,
            ..SqliteOptions::default()
        };
        let (database, connection) = Database::open(path, &of_file, &SCHEMA)?;
        let set = connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES);
        database.done("set up", set)?;
        let counted = connection.query_row("SELECT count(*) FROM entry", [], |row| row.get::<_, i64>(0));
        let keys = database.done("count the keys of", counted)? as usize;
        Ok(Self {
            options,
            time: TimeOfDay::new(clock),
            reader: Mutex::new(Some(database.reader()?)),
            database,
            writer: Mutex::new(Some(Writer { connection, keys })),
            open: PoisonFlag::default(),
        })
    }

    fn acknowledges(&self) -> Durability {
        match self.options.synchronous {
            Synchronous::Normal => Durability::Buffered,
            Synchronous::Full => Durability::Synced,
        }
    }

    /// Runs a transaction. After an error nothing of it is there, and the store is poisoned.
    fn change<T>(&self, change: impl FnOnce(&mut Writer) -> Result<T>) -> Result<T> {
        let mut writer = lock(&self.writer);
        let writer = writer.as_mut().ok_or(Error::Closed)?;
        self.open.check_open()?;
        let run = |writer: &Writer, sql: &str| self.database.done("write", writer.connection.execute_batch(sql));
        let changed = run(writer, "BEGIN IMMEDIATE").and_then(|()| {
            let changed = change(writer)?;
            run(writer, "COMMIT")?;
            Ok(changed)
        });
        changed.inspect_err(|error| {
            self.open.poison(|| chain(error));
            // What cannot be rolled back was never committed, and the store takes nothing more.
            let _ = writer.connection.execute_batch("ROLLBACK");
        })
    }

    fn look<T>(&self, look: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T> {
        let reader = lock(&self.reader);
        self.database.done("read", look(reader.as_ref().ok_or(Error::Closed)?))
    }

    /// The keys of a range that have not expired, in order.
    fn page(&self, range: &RangeInclusive<String>, after: Option<&Key>) -> Result<Vec<(String, String)>> {
        let now = self.time.now();
        let sql = "SELECT key, value FROM entry WHERE key >= ?1 AND key < ?2 AND key > ?3 \
                   AND (gone_at IS NULL OR gone_at > ?4) ORDER BY key LIMIT ?5";
        self.look(|reader| {
            let mut statement = reader.prepare_cached(sql)?;
            let after = after.map_or("", Key::as_str);
            let range = params![range.start(), range.end(), after, now, PAGE as i64];
            let rows = statement.query_map(range, |row| Ok((row.get(0)?, row.get(1)?)))?;
            rows.collect()
        })
    }
}

/// The keys below a prefix, as the first one and the first one behind them.
fn range_below(prefix: Option<&Key>) -> RangeInclusive<String> {
    // '~' is no character of a key, and behind all that are.
    let (start, end) = prefix.map_or_else(|| (String::new(), "~".to_owned()), Key::range_below);
    start..=end
}

impl Writer {
    fn put(&mut self, put: &Put, now: i64, max_keys: usize) -> rusqlite::Result<std::result::Result<(), Reason>> {
        if put.value.len() > MAX_VALUE_BYTES {
            return Ok(Err(Reason::Unrepresentable));
        }
        let gone_at = put.ttl_ns.map(|ttl_ns| now.saturating_add_unsigned(ttl_ns));
        let entry = params![put.key.as_str(), put.value, gone_at];
        if self.keys < max_keys {
            let mut insert = self
                .connection
                .prepare_cached("INSERT OR IGNORE INTO entry VALUES (?1, ?2, ?3)")?;
            if insert.execute(entry)? == 1 {
                self.keys += 1;
                return Ok(Ok(()));
            }
        }
        let sql = "UPDATE entry SET value = ?2, gone_at = ?3 WHERE key = ?1";
        let updated = self.connection.prepare_cached(sql)?.execute(entry)?;
        Ok(if updated == 1 { Ok(()) } else { Err(Reason::Full) })
    }

    /// Removes up to `most` expired rows. Returns how many there were.
    fn remove_expired(&mut self, now: i64, most: usize) -> rusqlite::Result<usize> {
        let sql = "DELETE FROM entry WHERE key IN \
                   (SELECT key FROM entry WHERE gone_at <= ?1 ORDER BY gone_at LIMIT ?2)";
        let removed = self
            .connection
            .prepare_cached(sql)?
            .execute(params![now, most as i64])?;
        self.keys -= removed;
        Ok(removed)
    }

    /// Removes a key. Returns whether it was there.
    fn remove(&mut self, key: &Key, now: i64) -> rusqlite::Result<bool> {
        let sql = "DELETE FROM entry WHERE key = ?1 RETURNING gone_at IS NULL OR gone_at > ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![key.as_str(), now])?;
        let Some(row) = rows.next()? else { return Ok(false) };
        let was_there = row.get(0)?;
        // A statement that is not read to its end is not finished.
        while rows.next()?.is_some() {}
        self.keys -= 1;
        Ok(was_there)
    }
}

impl fmt::Display for KeyedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "keyed-sqlite(synchronous={})", self.options.synchronous)
    }
}

impl KeyedStore for KeyedFile {
    fn capabilities(&self) -> KeyedCapabilities {
        KeyedCapabilities {
            persistent: true,
            ..KeyedCapabilities::new(self.acknowledges())
        }
    }

    fn put(&self, puts: &[Put], refused: &mut Refusals) -> Result<PutAck> {
        let mut found = Vec::new();
        let max_keys = self.options.max_keys;
        self.change(|writer| {
            let now = self.time.now();
            let mut all = || -> rusqlite::Result<()> {
                let most = REMOVED_MIN + 2 * puts.len();
                // Of a full store all, so that they leave room.
                while writer.remove_expired(now, most)? == most && writer.keys + puts.len() > max_keys {}
                for (index, put) in puts.iter().enumerate() {
                    if let Err(reason) = writer.put(put, now, max_keys)? {
                        found.push((index, reason));
                    }
                }
                Ok(())
            };
            self.database.done("write", all())
        })?;
        Ok(PutAck::refusing(puts.len(), found, refused, self.acknowledges()))
    }

    fn delete(&self, keys: &[Key]) -> Result<usize> {
        self.change(|writer| {
            let now = self.time.now();
            let each = keys.iter().map(|key| writer.remove(key, now).map(usize::from));
            self.database.done("write", each.sum())
        })
    }

    fn delete_below(&self, prefix: Option<&Key>) -> Result<()> {
        let range = range_below(prefix);
        self.change(|writer| {
            let sql = "DELETE FROM entry WHERE key >= ?1 AND key < ?2";
            let removed = writer.connection.execute(sql, [range.start(), range.end()]);
            writer.keys -= self.database.done("write", removed)?;
            Ok(())
        })
    }

    fn get(&self, key: &Key) -> Result<Option<String>> {
        let now = self.time.now();
        let sql = "SELECT value FROM entry WHERE key = ?1 AND (gone_at IS NULL OR gone_at > ?2)";
        self.look(|reader| {
            let mut statement = reader.prepare_cached(sql)?;
            let mut rows = statement.query(params![key.as_str(), now])?;
            rows.next()?.map(|row| row.get(0)).transpose()
        })
    }

    fn list(&self, prefix: Option<&Key>, visit: &mut KeyedVisitor<'_>) -> Result<()> {
        let range = range_below(prefix);
        let mut after = None;
        loop {
            let page = self.page(&range, after.as_ref())?;
            let is_last = page.len() < PAGE;
            for (text, value) in page {
                let key = Key::new(&text).map_err(|error| self.database.corrupt(&error.to_string()))?;
                if let ControlFlow::Break(()) = visit(&key, &value) {
                    return Ok(());
                }
                after = Some(key);
            }
            if is_last {
                return Ok(());
            }
        }
    }

    fn close(&self) -> Result<()> {
        let (mut writer, mut reader) = (lock(&self.writer), lock(&self.reader));
        let closing = reader
            .take()
            .into_iter()
            .chain(writer.take().map(|writer| writer.connection));
        let closed = closing.map(|connection| connection.close().map_err(|(_, error)| error));
        // Both, even if the first cannot be closed.
        let closed: Vec<rusqlite::Result<()>> = closed.collect();
        self.database.release();
        self.database.done("close", closed.into_iter().collect())
    }
}
