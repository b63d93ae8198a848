//! Parts that several stores are made of, public for stores in other crates: locks, the keys
//! of a run, the number of a series in a file or database, and resampling.

pub use crate::keys::KeyTable;
pub use crate::locks::{Bell, lock, read, write};
#[cfg(feature = "numbers")]
pub use crate::numbers::{Keys, key_of, labels_to_json};
pub use crate::resample::Resampler;
