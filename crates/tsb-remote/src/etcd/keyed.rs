//! Keys in etcd, by both of its interfaces: each key of a [`KeyedStore`](tsb_stores::keyed::KeyedStore)
//! is a key of etcd, below a prefix.
//!
//! Version 3 ([`EtcdKeyed`]) speaks gRPC: a put of many keys becomes transactions, and a time to
//! live a lease. Version 2 ([`EtcdKeyedV2`]) speaks HTTP as the clients of 2013 did: one request
//! per key, each with its own time to live, and directories. A server of version 3.4 has both (the
//! second with `--enable-v2`), as two stores that do not see each other's keys.
//!
//! An ack is `Synced` on a majority of the members, as for samples (see [`etcd`](super)). Neither
//! client repeats a put or a deletion.

mod batch;
mod http;
mod lease;
mod prefix;
mod reply;
mod v2;
mod v3;

pub use v2::EtcdKeyedV2;
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

/// As [`open_keyed`], by version 2.
///
/// # Errors
/// As [`open_keyed`], and [`Error::Spec`](tsb_stores::Error::Spec) if the options ask for TLS,
/// which this client does not speak, or the server does not have version 2.
pub fn open_keyed_v2(address: &Address, options: &EtcdOptions) -> Result<Bridge<EtcdKeyedV2>> {
    Bridge::connect(|| EtcdKeyedV2::connect(address, options))
}
