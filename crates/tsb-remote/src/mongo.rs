//! MongoDB, through its own driver: five ways to lay samples out, one client.
//!
//! An ack at `w=1` without `j` is `Volatile`: mongod has it in memory and syncs its journal
//! a tenth of a second later at the most (`storage.journal.commitIntervalMs`), so a kill
//! loses the end. With `j=1` mongod answers when its journal is synced: `Synced`. At
//! `w=majority` the journal is awaited by default (`writeConcernMajorityJournalDefault`), on
//! more than half of the members. <https://www.mongodb.com/docs/manual/reference/write-concern/>
//!
//! The driver never writes anything twice by itself: a write whose answer does not come is
//! `Unknown`, and reading back settles it. Nothing makes two samples of one timestamp one:
//! all layouts keep both. A database holds what one layout wrote, says which, and is opened
//! again as that; one that something else wrote into is refused. It is *not* a cluster's
//! client: no shard keys are chosen here.

mod answer;
mod bson;
mod client;
mod command;
mod concern;
mod connection;
mod consolidate;
mod layout;
mod options;

pub use answer::MongoAnswer;
pub use client::MongoClient;
pub use concern::{Acknowledge, Members};
/// The driver that the client speaks through, for those who administer the server.
pub use mongodb as driver;
pub use options::{Granularity, LayoutKind, MongoOptions};

use tsb_core::SeriesKey;

use crate::{Address, Bridge};
use tsb_stores::error::Result;

/// Connects, and gives the client its blocking face.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a database that cannot be used, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) where nobody answers.
pub fn open(address: &Address, options: &MongoOptions) -> Result<Bridge<MongoClient>> {
    Bridge::connect(|| MongoClient::connect(address, options))
}

/// The series that runs have left in a database, by their numbers. Nothing is made or changed.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a database in which no run has been, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) where nobody answers.
pub fn series(address: &Address, options: &MongoOptions) -> Result<Vec<SeriesKey>> {
    crate::bridge::once(|| client::series(address, options))
}
