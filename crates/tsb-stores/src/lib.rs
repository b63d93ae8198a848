//! The [`Store`] contract of `tsb`, its stores, and the conformance suite.
//!
//! ```
//! use tsb_core::{Batch, SeriesId, SeriesKey, Timestamp};
//! use tsb_stores::memory::{MemoryOptions, MemoryStore};
//! use tsb_stores::{Store, StoreExt, TimeRange};
//!
//! # fn main() -> tsb_stores::Result<()> {
//! let store = MemoryStore::new(MemoryOptions::default());
//! store.define(&[(SeriesId(0), SeriesKey::new("load")), (SeriesId(1), SeriesKey::new("free"))])?;
//! let at = Timestamp::from_secs(1_700_000_000);
//! let ack = store.write_all(&Batch::tick(SeriesId(0), at, &[0.5, 17.0]))?;
//! assert_eq!(ack.accepted, 2);
//! assert_eq!(store.samples(SeriesId(1), TimeRange::ALL)?, [(at, 17.0)]);
//! store.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! A store of your own implements [`Store`] and runs the suite of the feature
//! `conformance`: the examples `own_store` and `file_store` are two.
//! Documents that are named `docs/...` are in the [repository](https://github.com/tsb-bench/tsb).
//!
//! To add a store here: one module, a feature if it needs a dependency of its own, one line in the conformance list
//! (`tests/conformance.rs`); and one line in the table of specs of `tsb-run`, one row in the README.
//!
//! It is *not* the instrument (that is `tsb-core`), not where a text such as `memory:?retention=7d`
//! becomes a store (that is `tsb-run`), and no client of a server (`tsb-remote`). It prints nothing.

mod activity;
mod block;
#[cfg(feature = "conformance")]
pub mod conformance;
mod damage;
mod disk;
pub mod error;
pub mod keyed;
mod keys;
mod locks;
mod machine;
pub mod memory;
pub mod mstore;
pub mod null;
#[cfg(feature = "numbers")]
mod numbers;
mod open_state;
mod own_threads;
pub mod parts;
mod resample;
pub mod ring;
pub mod rrd;
pub mod secret;
mod sharding;
#[cfg(feature = "sqlite")]
pub mod sqlite;
pub mod store;
pub mod throttle;
pub mod write_cache;
mod write_lane;

pub use activity::{Activity, ActivityKind, UnderWay};
pub use damage::{Damage, DamageKind, DamageLog};
pub use error::{Error, Result};
pub use own_threads::OwnThreads;
pub use store::{
    Ack, ArchiveRule, Capabilities, Consolidated, Consolidation, Derivation, Exactness, Footprint, OnConflict,
    Position, Query, Reason, Refusal, Refusals, Resample, Scope, SlotArchive, SlotArchives, Stats, Store, StoreExt,
    TimeRange, Visitor,
};
pub use write_lane::{AsyncStore, WriteLane};
