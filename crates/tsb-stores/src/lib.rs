//! The [`Store`] contract of `tsb`, its stores, and the conformance suite.
//!
//! To add a store: one module, one feature, one line in [`spec`], one line in the
//! conformance list (`tests/conformance.rs`), one row in the README.
//!
//! It is *not* the instrument (that is `tsb-core`) and prints nothing.

#[cfg(feature = "conformance")]
pub mod conformance;
pub mod error;
mod keys;
pub mod memory;
pub mod null;
mod resample;
pub mod ring;
pub mod spec;
pub mod store;
pub mod throttle;

pub use error::{Error, Result};
pub use store::{
    Ack, Capabilities, Consolidation, Exactness, Footprint, OnConflict, Position, Query, Reason, Refusal, Refusals,
    Resample, Scope, Stats, Store, StoreExt, TimeRange, Visitor,
};
