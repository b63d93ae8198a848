//! MongoDB, through its own driver: one client with five layouts of samples.
//!
//! An ack at `w=1` without `j` is `Volatile`: mongod has the samples in memory and syncs its
//! journal within a tenth of a second (`storage.journal.commitIntervalMs`), so a kill loses the
//! newest ones. With `j=1` mongod answers after its journal is synced: `Synced`. At `w=majority`
//! it waits by default for the journals of more than half of the members
//! (`writeConcernMajorityJournalDefault`).
//! <https://www.mongodb.com/docs/manual/reference/write-concern/>
//!
//! The driver is set to never repeat a write: without an answer the write is `Unknown`, and
//! reading back settles it. Two samples of one timestamp are not merged: all layouts keep both. A
//! database holds one layout, names it in a marker, and can be reopened only with that layout; a
//! database with contents of another program is refused. It is *not* a client of sharded
//! clusters: it chooses no shard keys.

mod bson;
mod client;
mod command;
mod concern;
mod connection;
mod consolidate;
mod cursor;
mod layout;
mod options;

pub use client::MongoClient;
pub use concern::{Members, WriteConcern};
pub use cursor::MongoCursor;
/// Re-exported driver, for code that administers the server.
pub use mongodb as driver;
pub use options::{Granularity, LayoutKind, MongoOptions};

use tsb_core::SeriesKey;

use crate::{Address, Bridge};
use tsb_stores::error::Result;

/// Connects, and returns the client behind a blocking [`Bridge`].
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a database that cannot be used, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn open(address: &Address, options: &MongoOptions) -> Result<Bridge<MongoClient>> {
    Bridge::connect(|| MongoClient::connect(address, options))
}

/// The series that earlier runs left in a database, in the order of their numbers. Changes
/// nothing.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a database that no run has used, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn series(address: &Address, options: &MongoOptions) -> Result<Vec<SeriesKey>> {
    crate::bridge::once(|| client::series(address, options))
}

/// Removes a database that runs have filled. Without anything there, it does nothing.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a database with collections of another program,
/// and [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no server answers.
pub fn remove(address: &Address, options: &MongoOptions) -> Result<()> {
    crate::bridge::once(|| client::remove_runs(address, options))
}
