//! The durability levels: which failures an acknowledged sample survives.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The durability that an acknowledged sample has reached.
///
/// The levels are ordered: a higher one includes the promises of a lower one. No throughput is
/// printed without its level, and different levels are never ranked together without saying so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// No acknowledgement: the sample may not even have arrived (any UDP, Graphite plaintext).
    #[default]
    Unconfirmed,
    /// In the memory of the process that acknowledged it; lost when that process dies.
    Volatile,
    /// In the operating system's buffers: survives the process, but not a power failure.
    Buffered,
    /// On the storage medium, if the medium reports syncs truthfully.
    Synced,
}

impl Durability {
    /// All levels, the lowest first.
    pub const ALL: [Self; 4] = [Self::Unconfirmed, Self::Volatile, Self::Buffered, Self::Synced];
}

impl fmt::Display for Durability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unconfirmed => "unconfirmed",
            Self::Volatile => "volatile",
            Self::Buffered => "buffered",
            Self::Synced => "synced",
        })
    }
}
