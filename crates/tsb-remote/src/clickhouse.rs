//! ClickHouse over HTTP: batches as blocks of its native format, queries in SQL; a database is the
//! place.
//!
//! One row per sample, `series UInt32`, `time Int64` (nanoseconds since the epoch, so every
//! timestamp is exact) and `value Float64`, in a `MergeTree` ordered by series and time. A batch is
//! one `INSERT`, which the server applies as a whole or not at all. Both of two samples with one
//! series and timestamp are kept.
//!
//! An ack is `Buffered`, and no flush makes more of it: ClickHouse answers when the rows are in
//! files, and does not sync these. The client never repeats a write without an answer: it is
//! `Unknown`, and reading back settles it. Where the server has too many parts to merge, or too many
//! queries, it refuses a write, which is then [`Overloaded`](tsb_stores::Error::Overloaded).
//!
//! Columns have the server's own compression: codecs of columns came with versions later than the
//! one that was tried here. It is *not* a client of a cluster.

mod block;
mod client;
mod connection;
mod cursor;
mod options;
mod tables;

pub use client::ClickHouseClient;
pub use cursor::ClickHouseCursor;
pub use options::ClickHouseOptions;

use tsb_core::SeriesKey;

use crate::{Address, Bridge};
use tsb_stores::error::Result;

/// The port of a server that names none.
pub const DEFAULT_PORT: u16 = 8123;

/// Connects, and returns the client behind a blocking [`Bridge`].
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a database that cannot be used, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn open(address: &Address, options: &ClickHouseOptions) -> Result<Bridge<ClickHouseClient>> {
    Bridge::connect(|| ClickHouseClient::connect(address, options))
}

/// The series that earlier runs left in a database, in the order of their numbers. Changes
/// nothing.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a database that no run has used, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn series(address: &Address, options: &ClickHouseOptions) -> Result<Vec<SeriesKey>> {
    crate::bridge::once(|| client::series(address, options))
}

/// Removes a database that runs have filled. Without one, it does nothing.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a database with tables of another program, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn remove(address: &Address, options: &ClickHouseOptions) -> Result<()> {
    crate::bridge::once(|| client::remove_runs(address, options))
}
