//! etcd, version 3: a key a sample, ordered by series and time; a batch is transactions.
//!
//! An ack is `Synced`: a put is answered when its entry is in the write-ahead log, synced, on
//! more than half of the members, and applied. <https://etcd.io/docs/v3.4/learning/api_guarantees/>
//! So the copies of an ack are a majority of the voting members; a server that was started
//! with `--unsafe-no-fsync` does not keep that promise, and nobody can see it from outside.
//! Reads are linearizable: they wait until the member that is asked has everything.
//!
//! Of two samples of one series and timestamp the later wins, because they are one key.
//! Nothing is written twice by itself: a write whose answer does not come is `Unknown`, and
//! reading back settles it. What was only asked is asked again, at the next member.
//!
//! etcd keeps all keys in memory and is made for a few gigabytes at the most. It is *not* a
//! store that anybody should keep metrics in; HM9000 kept its actual state in it.

mod answer;
mod client;
mod connection;
mod lease;
mod members;
mod message;
mod options;
mod space;
mod transaction;

pub use answer::EtcdAnswer;
pub use client::EtcdClient;
pub use options::EtcdOptions;

use tsb_core::SeriesKey;

use crate::{Address, Bridge};
use tsb_stores::error::Result;

/// Connects, and gives the client its blocking face.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a prefix that cannot be used, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) where nobody answers.
pub fn open(address: &Address, options: &EtcdOptions) -> Result<Bridge<EtcdClient>> {
    Bridge::connect(|| EtcdClient::connect(address, options))
}

/// The series that runs have left in a prefix, by their numbers. Nothing is made or changed.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a prefix in which no run has been, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) where nobody answers.
pub fn series(address: &Address, options: &EtcdOptions) -> Result<Vec<SeriesKey>> {
    crate::bridge::once(|| client::series(address, options))
}
