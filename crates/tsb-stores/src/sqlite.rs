//! SQLite as a store: one file, durable and small.
//!
//! There are three layouts. `ticks` is made for ingest: each commit adds one row to a log, and
//! the newest samples are in memory, compressed; once there are enough, the series move into rows
//! of their own, a few series with each commit. `rows` stores one row per sample, as most people
//! would write it. `mohawk` is Mohawk's schema: one table per series and one commit per sample.
//!
//! A sample is `Synced` when the commit that holds it has returned with `synchronous=FULL`, which
//! syncs the write-ahead log (<https://www.sqlite.org/wal.html>, "Performance Considerations";
//! <https://www.sqlite.org/pragma.html#pragma_synchronous>). Only one process writes a file;
//! others may read it with SQLite. Byte format: `docs/formats/sqlite.md`.
//!
//! [`KeyedFile`] is a [`KeyedStore`](crate::keyed::KeyedStore): keys in a file of their own.

mod catalog;
mod chunk;
mod commits;
mod file;
mod keyed;
mod lock;
mod locked_connection;
mod log;
mod maximum;
mod mohawk;
mod rows;
mod summary;
mod ticks;
mod timer;
mod wal;

use std::fmt;
use std::path::Path;

pub use catalog::catalog;
pub use commits::{Commits, LongestCommit};
pub use keyed::{KeyedFile, KeyedFileOptions};
pub use mohawk::MohawkStore;
pub use rows::RowStore;
pub use ticks::TickStore;

use crate::error::Result;
use crate::store::Store;

/// How samples are stored in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Layout {
    /// A log of ticks, and rows of series made from it.
    #[default]
    Ticks,
    /// One row per sample.
    Rows,
    /// Mohawk's: one table per series, one commit per row, six decimals, milliseconds.
    Mohawk,
}

/// When accepted samples are committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Commit {
    /// With every write, before it returns.
    #[default]
    Each,
    /// When timestamps have advanced by this many nanoseconds since the last commit, and at the
    /// latest after twice that time by the clock. At least 1.
    Every(i64),
}

/// SQLite's `synchronous` setting: what a commit waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Synchronous {
    /// The operating system has the commit.
    Normal,
    /// The commit is synced.
    #[default]
    Full,
}

/// The options of a database file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqliteOptions {
    /// When to commit.
    pub commit: Commit,
    /// What a commit waits for.
    pub synchronous: Synchronous,
    /// Samples per series, on average, that are kept in memory before series begin to move into
    /// rows of their own. At least 1.
    pub tail: u64,
    /// Size in bytes from which on the write-ahead log is copied into the file (a checkpoint) and
    /// starts over. The log exceeds it by at most one commit, or as long as a query runs. A
    /// smaller bound makes checkpoints shorter and more frequent. At least 4096.
    pub checkpoint_bytes: u64,
    /// Minimum time that samples are kept, in nanoseconds before the newest sample of the store.
    /// Older samples are dropped a generation at a time. At least 0.
    pub retention_ns: Option<i64>,
    /// Upper bound, in bytes, of the file without its write-ahead log. Beyond it a commit fails,
    /// as on a full disk.
    pub max_bytes: Option<u64>,
    /// Maximum number of series in the file.
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

/// Opens or creates a file in a layout.
pub fn open(path: &Path, layout: Layout, options: SqliteOptions) -> Result<Box<dyn Store>> {
    Ok(match layout {
        Layout::Ticks => Box::new(TickStore::open(path, options)?),
        Layout::Rows => Box::new(RowStore::open(path, options)?),
        Layout::Mohawk => Box::new(MohawkStore::open(path, options)?),
    })
}

/// Has SQLite check the structure of a file page by page, which opening does not: a damaged key
/// hides a row from lookups. The file may be open as a store.
///
/// # Errors
/// [`Error::Corrupt`](crate::Error::Corrupt) with the first damage found, and the errors of
/// reading the file.
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

/// The name of a store in a report.
fn name(layout: &str, options: &SqliteOptions) -> String {
    format!(
        "sqlite({layout}, commit={}, synchronous={})",
        options.commit, options.synchronous
    )
}

#[cfg(test)]
mod tests;
