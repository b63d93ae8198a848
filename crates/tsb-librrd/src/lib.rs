//! A safe wrapper over the librrd of the system: create, update, fetch,
//! first, last, info, dump, tune, version.
//!
//! Without the feature `librrd` this crate is empty, so that a machine without librrd builds
//! everything else. With it, programs link a GPL library: docs/adr/018-librrd.md.
//!
//! # Threads
//!
//! The calls used here keep no state between them, and librrd keeps its error message per thread,
//! so any thread may call. But librrd's file lock belongs to the *process* and does not exclude
//! other threads: two concurrent calls for the same file can mix their writes, though memory
//! safety is not at risk. A caller that shares a file between threads must lock around the
//! calls.

#[cfg(feature = "librrd")]
mod calls;
#[cfg(feature = "librrd")]
mod ffi;

#[cfg(feature = "librrd")]
pub use calls::{
    Creation, Error, Fetched, InfoValue, Result, create, dump, fetch, first, info, last, tune, update, version,
};
