//! Published experiments in simulated time, over a model of a storage device
//! ([`Device`](crate::device::Device)): hours of a scenario in seconds, the same bits each time.
//!
//! [`drain`](fn@drain) is rrdcached: values that wait for their files, and threads that write them.
//! [`freshness`] is HM9000 over a store of keys.

mod drain;
mod drain_files;
mod fingerprint;
mod keyed;

pub use drain::{DrainCosts, DrainScenario, Drained, drain};
pub use keyed::{Freshness, KeyCosts, ModelledKeys, freshness};
