//! SQLite as a store: one file, durable, and small.
//!
//! Three layouts. `ticks` is made for ingest: every commit is one row of a log, the newest
//! samples are in memory, compressed, and once enough have come the series move in turn
//! into rows of their own, a few with each commit. `rows` is a row a sample, as most
//! people would write it. `mohawk` is Mohawk's schema: a table a series and a commit a row.
//!
//! A sample is `Synced` when the commit that holds it has returned with
//! `synchronous=FULL`, which syncs the write-ahead log (<https://www.sqlite.org/wal.html>,
//! "Performance Considerations"; <https://www.sqlite.org/pragma.html#pragma_synchronous>).
//! Only one process writes a file; others may read it with SQLite. Every byte:
//! `docs/formats/sqlite.md`.

mod catalog;
mod chunk;
mod commits;
mod cursor;
mod file;
mod lock;
mod log;
mod mohawk;
mod plain;
mod rows;
mod ticks;
mod timer;
mod wal;

use std::fmt;
use std::path::Path;

pub use catalog::catalog;
pub use commits::{Commits, Worst};
pub use mohawk::MohawkStore;
pub use rows::RowStore;
pub use ticks::TickStore;

use crate::error::Result;
use crate::store::Store;

/// How samples lie in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layout {
    /// A log of ticks, and behind it rows of series.
    #[default]
    Ticks,
    /// A row a sample.
    Rows,
    /// Mohawk's: a table a series, a commit a row, six decimals, milliseconds.
    Mohawk,
}

/// When what was accepted is committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commit {
    /// With every write, before it returns.
    #[default]
    Each,
    /// As soon as timestamps have advanced by so many nanoseconds since the last commit,
    /// and at the latest after twice that time by the clock. in [1, ..)
    Every(i64),
}

/// What SQLite waits for at a commit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// The operating system has it.
    Normal,
    /// The medium has it.
    #[default]
    Full,
}

/// How a file is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// When to commit.
    pub commit: Commit,
    /// What a commit waits for.
    pub synchronous: Synchronous,
    /// Samples of a series, on average, that are kept in memory before series begin to
    /// move into rows of their own. in [1, ..)
    pub tail: u64,
    /// The write-ahead log is copied into the file, and starts over, when it has grown to
    /// this many bytes: it is longer by one commit at most, and for as long as a query
    /// lasts. A smaller bound makes checkpoints shorter and more frequent. in [4096, ..)
    pub checkpoint_bytes: u64,
    /// How long a sample is kept at least, in nanoseconds before the newest of the store.
    /// What is older is dropped a generation at a time. in [0, ..)
    pub retention_ns: Option<i64>,
    /// The most bytes of the file without its write-ahead log. Beyond it a commit fails,
    /// as on a full disk.
    pub max_bytes: Option<u64>,
    /// The most series that the file may hold.
    pub max_series: usize,
    /// The name of a registered SQLite VFS to use instead of the system's: for tests.
    pub vfs: Option<String>,
}

impl Default for SqliteOptions {
    fn default() -> Self {
        Self {
            commit: Commit::default(),
            synchronous: Synchronous::default(),
            tail: 3600,
            checkpoint_bytes: 4 << 20,
            retention_ns: None,
            max_bytes: None,
            max_series: 1_000_000,
            vfs: None,
        }
    }
}

/// Opens a file in a layout, or makes it.
pub fn open(path: &Path, layout: Layout, options: SqliteOptions) -> Result<Box<dyn Store>> {
    Ok(match layout {
        Layout::Ticks => Box::new(TickStore::open(path, options)?),
        Layout::Rows => Box::new(RowStore::open(path, options)?),
        Layout::Mohawk => Box::new(MohawkStore::open(path, options)?),
    })
}

/// Has SQLite look at the structure of a file, page by page, which opening does not: a
/// damaged key hides a row from whoever looks for it. The file may be open as a store.
///
/// # Errors
/// [`Error::Corrupt`](crate::Error::Corrupt) with the first thing that is wrong, and what
/// kept SQLite from looking.
pub fn check(path: &Path) -> Result<()> {
    file::check(path)
}

impl fmt::Display for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Each => f.write_str("each"),
            Self::Every(ns) if ns % 1_000_000_000 == 0 => write!(f, "{}s", ns / 1_000_000_000),
            Self::Every(ns) => write!(f, "{}ms", *ns as f64 / 1e6),
        }
    }
}

impl fmt::Display for Synchronous {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Normal => "normal",
            Self::Full => "full",
        })
    }
}

/// How a layout names itself in a report.
fn name(layout: &str, options: &SqliteOptions) -> String {
    format!(
        "sqlite({layout}, commit={}, synchronous={})",
        options.commit, options.synchronous
    )
}

#[cfg(test)]
mod tests;
