//! The [`Store`] contract of `tsb`, its stores, and the conformance suite.
//!
//! To add a store: one module, one feature, one line in [`spec`], one line in the
//! conformance list (`tests/conformance.rs`), one row in the README.
//!
//! It is *not* the instrument (that is `tsb-core`) and prints nothing.

mod block;
#[cfg(feature = "conformance")]
pub mod conformance;
mod disk;
pub mod error;
#[cfg(feature = "etcd")]
pub mod etcd;
mod keys;
mod locks;
pub mod memory;
#[cfg(feature = "mongo")]
pub mod mongo;
pub mod null;
#[cfg(any(feature = "sqlite", feature = "mongo", feature = "etcd"))]
mod numbers;
mod own_threads;
#[cfg(feature = "remote")]
pub mod remote;
mod resample;
pub mod ring;
pub mod rrd;
pub mod rrdcached;
pub mod spec;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod store;
pub mod throttle;
pub mod write_cache;

pub use error::{Error, Result};
pub use own_threads::OwnThreads;
pub use store::{
    Ack, ArchiveRule, Capabilities, Consolidated, Consolidation, Derivation, Exactness, Footprint, OnConflict,
    Position, Query, Reason, Refusal, Refusals, Resample, Scope, Stats, Store, StoreExt, TimeRange, Visitor,
};
