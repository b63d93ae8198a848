//! PostgreSQL, through its usual driver, and hypertables of TimescaleDB.
//!
//! A schema of an existing database holds the samples of runs: one row per sample, `series int4`,
//! `time int8` (nanoseconds since the epoch, so every timestamp is exact) and `value float8`, with
//! `(series, time)` as primary key. A batch is one statement: a binary `COPY`, or a prepared
//! `INSERT` of three arrays. If a sample of the batch has the timestamp of a stored one, that
//! statement fails as a whole, and a second one (`ON CONFLICT DO UPDATE`) writes the batch: the
//! later write wins, and only batches with such a sample pay for it.
//!
//! What an ack is worth follows from the server's settings `synchronous_commit` and `fsync`, which
//! are read when the client connects; see [`Settings`]. The driver repeats no write: without an
//! answer a write is `Unknown`, and reading back settles it.

mod client;
mod connection;
mod copy;
mod cursor;
mod options;
mod schema;
mod settings;
mod tls;

pub use client::PostgresClient;
pub use cursor::PostgresCursor;
pub use options::{PostgresOptions, SynchronousCommit, WriteMethod};
pub use settings::Settings;

use tsb_core::SeriesKey;

use crate::{Address, Bridge};
use tsb_stores::error::Result;

/// Connects, and returns the client behind a blocking [`Bridge`].
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a schema that cannot be used, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn open(address: &Address, options: &PostgresOptions) -> Result<Bridge<PostgresClient>> {
    Bridge::connect(|| PostgresClient::connect(address, options))
}

/// The series that earlier runs left in the schema, in the order of their numbers. Changes
/// nothing.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a schema that no run has used, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn series(address: &Address, options: &PostgresOptions) -> Result<Vec<SeriesKey>> {
    crate::bridge::once(|| client::series(address, options))
}

/// Removes a schema that runs have filled. Without one, it does nothing.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a schema with tables of another program, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn remove(address: &Address, options: &PostgresOptions) -> Result<()> {
    crate::bridge::once(|| client::remove_runs(address, options))
}
