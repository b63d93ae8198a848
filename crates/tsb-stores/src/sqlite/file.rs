//! The database file: opens and checks it, and translates SQLite's errors.
//!
//! It knows a file's program, version and layout, but not its tables.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use rusqlite::ffi::ErrorCode;
use rusqlite::{Connection, MAIN_DB, OpenFlags};

use super::lock::{Lock, real_path};
use super::wal::{FoundLog, Wal, Witness};
use super::{SqliteOptions, Synchronous};
use crate::activity::Activity;
use crate::damage::Damage;
use crate::disk;
use crate::error::{Error, Result};
use crate::locks::lock;

/// "tsbq": the application id in the header of this store's files.
const APPLICATION_ID: i32 = 0x7473_6271;
/// The only version so far. A newer program would migrate older files here, in a transaction.
const VERSION: i32 = 1;
/// Bytes per page.
pub(super) const PAGE_BYTES: u64 = 4096;
/// Bytes of overhead per row. Approximate.
pub(super) const ROW_BYTES: u64 = 16;
/// Bytes that a row leaves unused in its leaf page if the rest of it has overflow pages: the mean
/// for ticks of 54,000 series, by dbstat.
const LEAF_SLACK: u64 = 400;
/// How long to wait while another program has the file locked.
const PATIENCE: Duration = Duration::from_secs(5);

/// A database file that only this process may write.
#[derive(Debug)]
pub(super) struct Database {
    path: PathBuf,
    vfs: Option<String>,
    /// Whether the file was empty.
    pub(super) is_new: bool,
    /// The state of the write-ahead log before SQLite opened it.
    found: FoundLog,
    lock: Mutex<Option<Lock>>,
    /// Counts commits and checkpoints.
    pub(super) activity: Activity,
}

/// The name of a layout in files, and the SQL that creates its tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schema {
    pub(super) layout: &'static str,
    pub(super) tables: &'static str,
    pub(super) journal: &'static str,
}

impl Database {
    /// Opens or creates a file. The returned connection is for the writer.
    pub(super) fn open(path: &Path, options: &SqliteOptions, schema: &Schema) -> Result<(Self, Connection)> {
        if path.as_os_str().is_empty() {
            return Err(Error::Spec {
                spec: String::new(),
                what: "sqlite: needs the path of a file".to_owned(),
            });
        }
        let (path, lock, found) = if options.vfs.is_some() {
            // A VFS of its own, used only in tests: there is no real file to lock.
            (path.to_owned(), None, FoundLog::default())
        } else {
            let path = real_path(path);
            let lock = Lock::take(&path)?;
            let found = FoundLog::inspect(&path, lock.file()).map_err(|error| Error::Backend {
                action: format!("read the log of {}", path.display()),
                source: error.into(),
            })?;
            (path, Some(lock), found)
        };
        let mut database = Self {
            path,
            vfs: options.vfs.clone(),
            is_new: false,
            found,
            lock: Mutex::new(lock),
            activity: Activity::new(),
        };
        let writer = database.connect(OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)?;
        if database.done("open", writer.is_readonly(MAIN_DB))? {
            return Err(database.refusal("the file cannot be written; a copy of it can be read"));
        }
        database.is_new = database.identify(&writer, schema)?;
        database.configure(&writer, options, schema)?;
        Ok((database, writer))
    }

    /// A file that is only read, so its lock is not taken.
    fn unlocked(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            vfs: None,
            is_new: false,
            found: FoundLog::default(),
            lock: Mutex::new(None),
            activity: Activity::new(),
        }
    }

    /// Opens a file of this store for reading, while another process may write it.
    pub(super) fn open_to_read(path: &Path) -> Result<(Self, Connection)> {
        let database = Self::unlocked(path);
        let reader = database.reader()?;
        let query = reader.query_row("PRAGMA application_id", [], |row| row.get::<_, i32>(0));
        if database.done("read", query)? != APPLICATION_ID {
            return Err(database.refusal("it is a database of another program"));
        }
        Ok((database, reader))
    }

    /// The name of the file's layout.
    pub(super) fn layout(&self, connection: &Connection) -> Result<String> {
        let query = "SELECT value FROM tsb WHERE name = 'layout'";
        self.done("read", connection.query_row(query, [], |row| row.get(0)))
    }

    /// Opens another connection, which only reads.
    pub(super) fn reader(&self) -> Result<Connection> {
        let reader = self.connect(OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        self.done(
            "set up a reader of",
            reader.execute_batch("PRAGMA cache_size=-16384; PRAGMA query_only=1;"),
        )?;
        Ok(reader)
    }

    fn connect(&self, flags: OpenFlags) -> Result<Connection> {
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = match &self.vfs {
            None => Connection::open_with_flags(&self.path, flags),
            Some(vfs) => Connection::open_with_flags_and_vfs(&self.path, flags, vfs.as_str()),
        };
        let connection = self.done("open", opened)?;
        self.done("open", connection.busy_timeout(PATIENCE))?;
        Ok(connection)
    }

    /// Refuses files of other programs, versions or layouts. Returns whether the file is empty.
    fn identify(&self, writer: &Connection, schema: &Schema) -> Result<bool> {
        let number = |pragma: &str| self.done("read", writer.query_row(pragma, [], |row| row.get::<_, i32>(0)));
        let (application, version) = (number("PRAGMA application_id")?, number("PRAGMA user_version")?);
        let tables = number("SELECT count(*) FROM sqlite_schema")?;
        if application == 0 && version == 0 && tables == 0 {
            return Ok(true);
        }
        if application != APPLICATION_ID {
            return Err(self.refusal("it is a database of another program; nothing was changed"));
        }
        if version > VERSION {
            return Err(Error::LaterFormat {
                path: self.path.clone(),
                found: version.to_string(),
                reads: VERSION.to_string(),
            });
        }
        if version != VERSION {
            return Err(self.refusal(&format!(
                "its format is version {version}, and this program knows version {VERSION}; nothing was changed"
            )));
        }
        let layout = self.layout(writer)?;
        if layout != schema.layout {
            return Err(self.refusal(&format!("its layout is {layout}, and {} was asked for", schema.layout)));
        }
        Ok(false)
    }

    fn configure(&self, writer: &Connection, options: &SqliteOptions, schema: &Schema) -> Result<()> {
        let synchronous = match options.synchronous {
            Synchronous::Normal => "NORMAL",
            // EXTRA also syncs the removal of a rollback journal: a journal that came back after
            // a power cut would undo the last commit. With a write-ahead log FULL and EXTRA are
            // the same.
            Synchronous::Full => "EXTRA",
        };
        if self.is_new {
            self.done(
                "set up",
                writer.execute_batch(&format!("PRAGMA page_size={PAGE_BYTES}")),
            )?;
        }
        let journal = format!("PRAGMA journal_mode={}", schema.journal);
        let mode: String = self.done("set up", writer.query_row(&journal, [], |row| row.get(0)))?;
        if !mode.eq_ignore_ascii_case(schema.journal) {
            return Err(Error::Backend {
                action: format!("set up {}", self.path.display()),
                source: format!("its journal mode stays {mode}; this layout needs {}", schema.journal).into(),
            });
        }
        let mut settings = format!(
            "PRAGMA synchronous={synchronous}; PRAGMA cache_size=-65536; PRAGMA wal_autocheckpoint=0; \
             PRAGMA journal_size_limit={};",
            options.checkpoint_bytes
        );
        if let Some(max) = options.max_bytes {
            // Writing to a string cannot fail.
            let _ = write!(settings, "PRAGMA max_page_count={};", (max / PAGE_BYTES).max(1));
        }
        self.done("set up", writer.execute_batch(&settings))?;
        if self.is_new {
            let tables = format!(
                "BEGIN IMMEDIATE;
                 CREATE TABLE tsb(name TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;
                 INSERT INTO tsb VALUES ('layout', '{}');
                 {}
                 PRAGMA application_id={APPLICATION_ID};
                 PRAGMA user_version={VERSION};
                 COMMIT;",
                schema.layout, schema.tables
            );
            self.done("make the tables of", writer.execute_batch(&tables))?;
        }
        Ok(())
    }

    /// Converts the result of an SQLite call.
    pub(super) fn done<T>(&self, action: &str, result: rusqlite::Result<T>) -> Result<T> {
        result.map_err(|error| self.error(action, error))
    }

    fn error(&self, action: &str, error: rusqlite::Error) -> Error {
        let hint = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt) => return self.corrupt(&error.to_string()),
            Some(ErrorCode::NotADatabase) => "it is no SQLite database; nothing was changed",
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                "another program keeps it locked; wait for it, or end it"
            }
            Some(ErrorCode::ReadOnly) => "the file or its folder cannot be written",
            Some(ErrorCode::DiskFull) => "the disk, or the bound max_bytes, is full",
            Some(ErrorCode::CannotOpen) => "it cannot be opened or made there",
            _ => "",
        };
        let action = format!("{action} {}", self.path.display());
        let source: Box<dyn std::error::Error + Send + Sync> = if hint.is_empty() {
            Box::new(error)
        } else {
            format!("{hint} ({error})").into()
        };
        Error::Backend { action, source }
    }

    /// The error for a file that this store must not use.
    fn refusal(&self, what: &str) -> Error {
        Error::Backend {
            action: format!("use {}", self.path.display()),
            source: what.into(),
        }
    }

    /// The error for a damaged file.
    pub(super) fn corrupt(&self, what: &str) -> Error {
        Error::Corrupt {
            path: self.path.clone(),
            offset: 0,
            what: what.to_owned(),
        }
    }

    /// Observes the writer's write-ahead log, and records its length in the lock file.
    pub(super) fn watch(&self, connection: &mut Connection) -> Result<Wal> {
        let lock = lock(&self.lock);
        let counted = lock.as_ref().map(|lock| (self.path.as_path(), lock.file()));
        self.done("watch the log of", Wal::watch(connection, counted, &self.found))
    }

    /// The damage of the write-ahead log. `holds` must say whether the database holds what a
    /// given commit wrote.
    pub(super) fn damage(&self, holds: impl FnOnce(Witness) -> Result<bool>) -> Result<Vec<Damage>> {
        self.found.damage(&self.path, holds)
    }

    /// Bytes of the write-ahead log.
    pub(super) fn journal_bytes(&self) -> u64 {
        let journal = with_suffix(&self.path, "-wal");
        fs::metadata(journal).map_or(0, |metadata| metadata.len())
    }

    /// Bytes of the file-system blocks of the database, its write-ahead log, its shared memory
    /// and its lock file.
    pub(super) fn disk_bytes(&self) -> Option<u64> {
        let beside = ["-wal", "-shm", "-journal", "-lock"].map(|end| with_suffix(&self.path, end));
        disk::of_files(std::iter::once(&*self.path).chain(beside.iter().map(PathBuf::as_path)))
    }

    /// Releases the lock.
    pub(super) fn release(&self) {
        *lock(&self.lock) = None;
    }
}

/// Has SQLite check every page of a file: that its trees are complete, with keys in order. The
/// contents of rows are not checked.
///
/// # Errors
/// [`Error::Corrupt`] with the first damage found.
pub(super) fn check(path: &Path) -> Result<()> {
    let database = Database::unlocked(path);
    let reader = database.reader()?;
    let found: rusqlite::Result<String> = reader.query_row("PRAGMA quick_check(1)", [], |row| row.get(0));
    match database.done("check", found)?.as_str() {
        "ok" => Ok(()),
        what => Err(database.corrupt(what)),
    }
}

/// The path of a file that belongs to another, such as its log.
pub(super) fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// Bytes that a row of `bytes` bytes takes in the file. Approximate: large rows have overflow
/// pages.
pub(super) fn on_disk(bytes: u64) -> u64 {
    let row = bytes + ROW_BYTES;
    if row > PAGE_BYTES {
        bytes + bytes / (PAGE_BYTES / 4) + LEAF_SLACK
    } else {
        // Small rows share a page.
        PAGE_BYTES / (PAGE_BYTES / row)
    }
}
