//! Cassandra by CQL: prepared statements through the `scylla` driver, sent to a node that holds the
//! partition; two tables in one keyspace are the place.
//!
//! One row per sample, `at BIGINT` (nanoseconds, so every timestamp is exact) and `value DOUBLE`
//! (every bit kept), in partitions of one series and one bucket of time, as Cassandra's users are
//! told to lay out time series. Of two samples with one series and timestamp the later one stays.
//!
//! An ack says that as many nodes have the rows in their memory and commit log as the consistency
//! level asks for. With `commitlog_sync: periodic`, which is Cassandra's default, the commit log
//! reaches the operating system up to a tenth of a second later, and the disk up to ten: an ack is
//! `Volatile`. With `batch` or `group` it waits for the disk. The client asks for that setting; no
//! flush makes more of an ack. The client never repeats a write without an answer: it is `Unknown`,
//! and reading back settles it.
//!
//! It speaks no TLS.

mod client;
mod connection;
mod cursor;
mod options;
mod requests;
mod tables;

pub use client::CassandraClient;
pub use cursor::CassandraCursor;
pub use options::{CassandraOptions, Consistency, RequestShape};

use tsb_core::SeriesKey;

use crate::{Address, Bridge};
use tsb_stores::error::Result;

/// The port of a server that names none.
pub const DEFAULT_PORT: u16 = 9042;

/// Connects, and returns the client behind a blocking [`Bridge`].
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a keyspace that cannot be used, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn open(address: &Address, options: &CassandraOptions) -> Result<Bridge<CassandraClient>> {
    Bridge::connect(|| CassandraClient::connect(address, options))
}

/// The series that earlier runs left in a keyspace, in the order of their numbers. Changes nothing.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a keyspace that no run has used, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn series(address: &Address, options: &CassandraOptions) -> Result<Vec<SeriesKey>> {
    crate::bridge::once(|| client::series(address, options))
}

/// Removes a keyspace that runs have filled. Without one, it does nothing.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a keyspace with tables of another program, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn remove(address: &Address, options: &CassandraOptions) -> Result<()> {
    crate::bridge::once(|| client::remove_runs(address, options))
}

/// The statement that removes a keyspace.
pub fn drop_statement(keyspace: &str) -> String {
    tables::Tables::drop_keyspace(keyspace)
}
