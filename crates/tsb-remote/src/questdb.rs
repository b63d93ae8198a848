//! QuestDB over HTTP: batches as lines of its own ingest protocol, queries in SQL; three tables with
//! one prefix are the place.
//!
//! One row per sample, `series INT`, `at TIMESTAMP_NS` (nanoseconds, so every timestamp from 1970 to
//! the end of 2261 is exact) and `value DOUBLE`, in a table with a write-ahead log and one partition
//! per day. A batch is one request with values in binary, which the server takes as a whole or not at
//! all. Both of two samples with one series and timestamp are kept. NaN and infinities are refused
//! before they are sent: the server answers null for both.
//!
//! An ack says that the batch is in the write-ahead log, which another thread of the server applies
//! to the table: only then is it visible. A flush waits for that. The server syncs no file unless
//! `cairo.commit.mode` says so: an ack is `Buffered`, and no flush makes more of it. The client never
//! repeats a write without an answer: it is `Unknown`, and reading back settles it.
//!
//! It is *not* a client of several servers.

mod client;
mod connection;
mod cursor;
mod lines;
mod options;
mod tables;

pub use client::QuestDbClient;
pub use cursor::QuestDbCursor;
pub use options::QuestDbOptions;

use tsb_core::SeriesKey;

use crate::{Address, Bridge};
use tsb_stores::error::Result;

/// The port of a server that names none.
pub const DEFAULT_PORT: u16 = 9000;

/// Connects, and returns the client behind a blocking [`Bridge`].
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for tables that cannot be used, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn open(address: &Address, options: &QuestDbOptions) -> Result<Bridge<QuestDbClient>> {
    Bridge::connect(|| QuestDbClient::connect(address, options))
}

/// The series that earlier runs left under a prefix, in the order of their numbers. Changes
/// nothing.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a prefix that no run has used, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn series(address: &Address, options: &QuestDbOptions) -> Result<Vec<SeriesKey>> {
    crate::bridge::once(|| client::series(address, options))
}

/// Removes the tables that runs have filled. Without them, it does nothing.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for tables of another program, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn remove(address: &Address, options: &QuestDbOptions) -> Result<()> {
    crate::bridge::once(|| client::remove_runs(address, options))
}

/// The statements that remove the tables of a prefix.
pub fn drop_statements(prefix: &str) -> [String; 3] {
    tables::Tables::new(prefix).drop()
}
