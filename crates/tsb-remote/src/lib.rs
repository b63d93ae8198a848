//! Clients of real servers for `tsb`: the asynchronous contract ([`Client`]), the [`Bridge`] that
//! makes a blocking [`Store`](tsb_stores::Store) of a client, and one module for each server.
//!
//! A client keeps many requests in flight; the bridge gives it the face of a store, so that
//! conformance and a run see no difference. Each server has a feature that brings its driver, and
//! without features nothing but the contract, the bridge and the [`Address`] is built.
//!
//! It is *not* where a text such as `mongo://host/db` becomes a store (that is `tsb-run`), and it
//! starts no server.
//! Documents that are named `docs/...` are in the [repository](https://github.com/tsb-bench/tsb).

#[cfg(any(feature = "mongo", feature = "etcd"))]
mod acks;
mod address;
mod bridge;
mod client;
#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(feature = "mongo")]
pub mod mongo;
#[cfg(any(feature = "mongo", feature = "etcd"))]
mod names;

pub use address::Address;
pub use bridge::Bridge;
pub use client::{Answer, Chunk, Client};
