//! Building blocks of stores, public for stores in other crates: locks, the key table of a run,
//! the series numbers of a file or database, the flag of a closed store, and resampling.

pub use crate::keys::KeyTable;
pub use crate::locks::{CountedCondvar, lock, read, write};
#[cfg(feature = "numbers")]
pub use crate::numbers::{Keys, key_of, labels_to_json};
pub use crate::open_state::ClosedFlag;
pub use crate::resample::Resampler;
