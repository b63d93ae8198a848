//! A safe wrapper over the librrd of the system: create, update, fetch, info, dump, tune.
//!
//! Without the feature `librrd` this crate is empty, so that a machine without librrd builds
//! everything else. With it, programs link a GPL library: docs/adr/018-librrd.md.
//!
//! # Threads
//!
//! The calls used here keep nothing between them, and librrd keeps its error text a thread
//! each, so any thread may call. But its file lock belongs to the *process*: it does not
//! keep two threads apart. Two calls for one file at the same time can mix their writes;
//! the memory of the program is not at risk. Whoever shares a file between threads puts a
//! lock of their own around it, as the store does.

#[cfg(feature = "librrd")]
mod calls;
#[cfg(feature = "librrd")]
mod ffi;

#[cfg(feature = "librrd")]
pub use calls::{
    Creation, Error, Fact, Fetched, Result, create, dump, fetch, first, info, last, tune, update, version,
};
