//! How a write cache is tuned, with rrdcached's defaults.

use std::path::PathBuf;

use crate::error::{Error, Result};

/// How a [`WriteCache`](super::WriteCache) is tuned. The defaults are rrdcached's, but for
/// the bound of memory, which rrdcached does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteCacheOptions {
    /// A series is due this long after it was last written, in nanoseconds.
    pub timeout_ns: u64,
    /// Each series is due up to so much later, so that not all are at once, in nanoseconds.
    pub jitter_ns: u64,
    /// How often series that nobody writes to any more are looked for, in nanoseconds.
    pub flush_ns: u64,
    /// Threads that write. in [1, 64]
    pub threads: usize,
    /// Most bytes of samples that wait; beyond it samples are refused as full, and all that
    /// waits is due at once.
    pub max_bytes: u64,
    /// A journal, so that an ack outlives the process.
    pub journal: Option<JournalOptions>,
    /// What is known of RRD files is kept, so that none is read; for a cache of files only.
    pub checkpoint: Option<CheckpointOptions>,
}

impl Default for WriteCacheOptions {
    fn default() -> Self {
        Self {
            timeout_ns: 300_000_000_000,
            jitter_ns: 0,
            flush_ns: 3_600_000_000_000,
            threads: 4,
            max_bytes: 1 << 30,
            journal: None,
            checkpoint: None,
        }
    }
}

impl WriteCacheOptions {
    /// Says what is wrong with them, if anything is.
    pub fn check(&self) -> Result<()> {
        let what = if !(1..=64).contains(&self.threads) {
            format!("{} threads: 1 to 64 can write", self.threads)
        } else if self.jitter_ns > self.timeout_ns {
            "a jitter longer than the timeout".to_owned()
        } else if self.flush_ns == 0 {
            "a flush interval of nothing".to_owned()
        } else {
            return Ok(());
        };
        Err(invalid(what))
    }
}

/// Where a checkpoint is, and how much it may hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointOptions {
    /// Its file, which is made if it is not there.
    pub path: PathBuf,
    /// Most bytes that are kept in memory of all files; of what is beyond it, files are read.
    pub max_bytes: u64,
}

impl CheckpointOptions {
    /// A checkpoint at `path`, of at most 1 GiB.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            max_bytes: 1 << 30,
        }
    }
}

/// Where a journal is, and when it is synced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalOptions {
    /// Its folder, which is made if it is not there.
    pub folder: PathBuf,
    /// When it is synced.
    pub sync: Sync,
    /// A segment is followed by another when it has so many bytes.
    pub segment_bytes: u64,
}

impl JournalOptions {
    /// A journal in `folder`, synced as `sync` says, in segments of 64 MiB.
    pub fn new(folder: impl Into<PathBuf>, sync: Sync) -> Self {
        Self {
            folder: folder.into(),
            sync,
            segment_bytes: 64 << 20,
        }
    }
}

/// When the journal is synced. With each of them a record is in the system's buffers
/// before its ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// When a segment ends, and at a flush.
    None,
    /// Every so many nanoseconds.
    Interval(u64),
    /// Before each ack, one sync for all who wait at the time.
    Group,
    /// Before each ack, one sync for each record.
    Each,
}

impl Sync {
    /// Whether an ack waits for a sync.
    pub fn is_before_ack(self) -> bool {
        matches!(self, Self::Group | Self::Each)
    }
}

/// The error for options of a write cache that cannot be.
pub fn invalid(what: String) -> Error {
    Error::Spec {
        spec: "write-cache+".to_owned(),
        what,
    }
}
