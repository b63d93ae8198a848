//! Keys in etcd, by version 3 of its interface: each key of a
//! [`KeyedStore`](tsb_stores::keyed::KeyedStore) is a key of etcd, below a prefix. A put of many
//! keys becomes transactions, and a time to live a lease.
//!
//! An ack is `Synced` on a majority of the members, as for samples (see [`etcd`](super)). The
//! client repeats neither a put nor a deletion.

mod batch;
mod lease;
mod prefix;
mod v3;

pub use v3::EtcdKeyed;

use super::options::EtcdOptions;
use crate::{Address, Bridge};
use tsb_stores::error::Result;

/// Connects to version 3, and returns the client behind a blocking [`Bridge`]. The prefix may
/// hold keys, and belongs to the caller from now on.
///
/// # Errors
/// [`Error::Spec`](tsb_stores::Error::Spec) for an address that cannot be used, and
/// [`Error::Unreachable`](tsb_stores::Error::Unreachable) if no member answers.
pub fn open_keyed(address: &Address, options: &EtcdOptions) -> Result<Bridge<EtcdKeyed>> {
    Bridge::connect(|| EtcdKeyed::connect(address, options))
}
