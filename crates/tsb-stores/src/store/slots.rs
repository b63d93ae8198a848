//! What a store of slots keeps: archives of slots of equal length, as Whisper has them.
//!
//! Time is divided into slots that begin at multiples of their length since 1970. The first archive
//! keeps one value for each slot: of its samples the last that arrived, or the one with the latest
//! timestamp. Each further archive has longer slots, and the value of one follows from the known
//! slots of the archive before that it covers.

use super::Consolidation;

/// The most archives that a store of slots may have.
pub const MAX_SLOT_ARCHIVES: usize = 6;

/// The archives of a store of slots; the module's head states the rule.
///
/// A raw query returns the known slots of the first archive; a resampled query is answered by the
/// archive with slots of that length, and is [`Error::Unsupported`](crate::Error::Unsupported) where
/// there is none, or with another consolidation. Each row is stamped with the start of its slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotArchives {
    /// The archives, the finest first, the unused places at the end.
    pub archives: [Option<SlotArchive>; MAX_SLOT_ARCHIVES],
    /// How known slots become the value of a longer one.
    pub consolidation: Consolidation,
    /// The smallest share of the slots covered by a longer one that must be known, in thousandths;
    /// below it, the longer one has no value. in [0, 1000]
    pub known_permille_min: u16,
}

/// One archive of a store of slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotArchive {
    /// Length of a slot, in seconds; a multiple of that of the archive before. in [1, ..)
    pub slot_s: i64,
    /// Number of slots, the newest of which are kept. in [1, ..)
    pub slots: i64,
}

impl SlotArchive {
    /// How far back it reaches, in seconds.
    pub const fn retention_s(self) -> i64 {
        self.slot_s * self.slots
    }
}

impl SlotArchives {
    /// The archives that there are, the finest first.
    pub fn archives(&self) -> impl Iterator<Item = SlotArchive> + '_ {
        self.archives.iter().copied().flatten()
    }
}
