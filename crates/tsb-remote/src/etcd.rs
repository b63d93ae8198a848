//! etcd, version 3: one key per sample, ordered by series and time; a batch becomes transactions.
//!
//! An ack is `Synced`: etcd answers a put when its entry is in the write-ahead log, synced on
//! more than half of the members, and applied.
//! <https://etcd.io/docs/v3.4/learning/api_guarantees/> So an ack stands for a majority of the
//! voting members. A server started with `--unsafe-no-fsync` does not keep that promise, and a
//! client cannot detect it. Reads are linearizable: they wait until the member that is asked has
//! everything.
//!
//! Of two samples of one series and timestamp the later wins, since they have the same key. The
//! client never repeats a write: without an answer the write is `Unknown`, and reading back
//! settles it. A read without an answer is repeated, at the next member.
//!
//! etcd keeps all keys in memory, and is made for a few gigabytes at most. It is *not* a store
//! for metrics; HM9000, the health manager of Cloud Foundry, kept its state in it.

mod client;
mod connection;
mod cursor;
mod endpoints;
mod key_space;
mod keyed;
mod lease;
mod message;
mod options;
mod transaction;

pub use client::EtcdClient;
pub use cursor::EtcdCursor;
pub use keyed::{EtcdKeyed, EtcdKeyedV2, open_keyed, open_keyed_v2};
pub use options::EtcdOptions;

use tsb_core::SeriesKey;

use crate::{Address, Bridge};
use tsb_stores::error::Result;

/// The port of a member that names none.
pub const DEFAULT_PORT: u16 = 2379;

/// Connects, and returns the client behind a blocking [`Bridge`].
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a prefix that cannot be used, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no member answers.
pub fn open(address: &Address, options: &EtcdOptions) -> Result<Bridge<EtcdClient>> {
    Bridge::connect(|| EtcdClient::connect(address, options))
}

/// The series that earlier runs left below a prefix, in the order of their numbers. Changes
/// nothing.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a prefix that no run has used, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no member answers.
pub fn series(address: &Address, options: &EtcdOptions) -> Result<Vec<SeriesKey>> {
    crate::bridge::once(|| client::series(address, options))
}

/// Removes what runs left below a prefix. Without anything there, it does nothing.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for a prefix with keys of another program, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no member answers.
pub fn remove(address: &Address, options: &EtcdOptions) -> Result<()> {
    crate::bridge::once(|| client::remove_runs(address, options))
}
