//! The durability levels: what survives what.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What an acknowledged sample has reached.
///
/// Ordered: a higher level promises all that a lower one does. No throughput is
/// printed without its level, and two levels are never ranked together silently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// Nobody answered: the sample may not even have arrived (any UDP, Graphite plaintext).
    #[default]
    Unconfirmed,
    /// In the memory of the process that acknowledged it; gone when that process dies.
    Volatile,
    /// In the operating system's buffers: survives the process, not a power cut.
    Buffered,
    /// On the medium, as far as the medium tells the truth about a sync.
    Synced,
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
