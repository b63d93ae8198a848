//! Stores of keys: a contract of its own beside [`Store`](crate::Store), for programs such as
//! HM9000 that keep presence and state under keys with a time to live.
//!
//! ```
//! use std::sync::Arc;
//! use tsb_core::time::{ManualClock, SECOND_NS};
//! use tsb_stores::Refusals;
//! use tsb_stores::keyed::{Key, KeyedMemory, KeyedMemoryOptions, KeyedStore, Put};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let clock = Arc::new(ManualClock::new());
//! let store = KeyedMemory::new(KeyedMemoryOptions::default(), clock.clone());
//! let key = Key::new("v1/dea-presence/7f3a")?;
//! let put = Put::new(key.clone(), "7f3a").expiring(30 * SECOND_NS);
//! let _ = store.put(&[put], &mut Refusals::new())?;
//! assert_eq!(store.get(&key)?.as_deref(), Some("7f3a"));
//! clock.advance(30 * SECOND_NS);
//! assert_eq!(store.get(&key)?, None);
//! # Ok(())
//! # }
//! ```
//!
//! Three stores implement it: [`KeyedMemory`]; [`KeyedSeries`], over any store of samples; and
//! [`KeyedFile`](crate::sqlite::KeyedFile), in the module of SQLite.

#[cfg(feature = "conformance")]
pub mod conformance;
mod contract;
mod key;
mod lane;
mod memory;
mod series;

pub use contract::{KeyedCapabilities, KeyedStore, KeyedVisitor, MAX_VALUE_BYTES, Put, PutAck};
pub use key::{InvalidKey, Key, MAX_KEY_BYTES};
pub use lane::{AsyncKeyedStore, PutLane};
pub use memory::{KeyedMemory, KeyedMemoryOptions};
pub use series::{KeyedSeries, KeyedSeriesOptions};
