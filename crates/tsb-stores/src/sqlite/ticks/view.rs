//! What a file consists of at one moment: the head, the aging generation, and the generations that
//! have chunks. These are types; `generations` moves samples from one to the next.

use std::sync::Arc;

use crate::memory::MemoryStore;

/// The data that readers query; replaced as a whole.
#[derive(Debug)]
pub(super) struct View {
    /// The generation being written.
    pub(super) head: Arc<MemoryStore>,
    /// The generation whose series are moving into chunks.
    pub(super) aging: Option<Arc<AgingStore>>,
    /// Generations that have chunks, or will have; oldest first.
    pub(super) generations: Vec<Generation>,
    /// The newest timestamp of all generations before the head.
    pub(super) older_newest: i64,
}

/// The samples of the aging generation.
#[derive(Debug)]
pub(super) struct AgingStore {
    pub(super) number: i64,
    pub(super) store: Arc<MemoryStore>,
}

/// A generation with chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Generation {
    pub(super) number: i64,
    pub(super) oldest: i64,
    pub(super) newest: i64,
    /// Number of samples in chunks.
    pub(super) samples: u64,
    /// Bytes of its chunks; 0 if an earlier run made them.
    pub(super) bytes: u64,
}

impl Generation {
    /// Whether it may have samples in `start..end`.
    pub(super) fn overlaps(&self, (start, end): (i64, i64)) -> bool {
        self.newest >= start && self.oldest < end
    }
}

/// The rank of a generation's parts: of equal timestamps the higher rank wins, that is the later
/// write. The low 33 bits rank parts within a generation.
pub(super) fn rank(number: i64) -> u64 {
    (number as u64) << 33
}

/// The generation of a part, by its rank.
pub(super) fn generation_of(rank: u64) -> i64 {
    (rank >> 33) as i64
}

/// The key of a series' chunk in a generation.
pub(super) fn key(generation: i64, number: u32) -> i64 {
    generation << 32 | i64::from(number)
}

/// The state of the aging generation.
#[derive(Debug)]
pub(super) struct AgingGeneration {
    pub(super) number: i64,
    pub(super) first_seq: i64,
    pub(super) end_seq: i64,
    pub(super) store: Arc<MemoryStore>,
    /// Series numbers below this are in chunks.
    pub(super) moved: u32,
    /// Number of series when it ended.
    pub(super) series: u32,
    /// Samples in chunks, and how many of them replace one in an older generation.
    pub(super) samples: u64,
    pub(super) shadowed: u64,
    /// Bytes of the chunks that this run has made.
    pub(super) bytes: u64,
    /// Frames before this are deleted.
    pub(super) deleted_until: i64,
    /// Bytes of its frames in the file. Approximate.
    pub(super) log_bytes: u64,
    /// The newest timestamp of each series number in the generations before it.
    pub(super) prior: Vec<i64>,
}

/// An expired generation whose chunks are being deleted.
#[derive(Clone, Copy, Debug)]
pub(super) struct DroppingGeneration {
    pub(super) number: i64,
    pub(super) next: i64,
}
