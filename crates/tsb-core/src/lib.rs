//! The instrument of `tsb`: everything between a schedule and a verified result.
//!
//! It knows no store and no terminal: the emitter drives a closure, and whoever has
//! a database of their own needs only this crate. The pure part (schedule, workload,
//! wire, ledger, latency) has no socket, no wall clock and no unseeded randomness.
//!
//! It is *not* a store, and it prints nothing. Stores are in `tsb-stores`, the
//! program in `tsb-cli`.

pub mod batch;
pub mod durability;
pub mod emit;
pub mod latency;
pub mod ledger;
#[cfg(feature = "net")]
pub mod net;
pub mod report;
pub mod resource;
pub mod schedule;
pub mod series;
pub mod staleness;
pub mod stats;
pub mod time;
pub mod trace;
pub mod verdict;
pub mod wire;
pub mod workload;

pub use batch::{Batch, BatchBuf, Ids, Times};
pub use durability::Durability;
pub use series::{Catalog, SeriesId, SeriesKey};
pub use time::Timestamp;
