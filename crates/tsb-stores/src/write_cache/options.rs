//! The options of a write cache, with rrdcached's defaults.

use std::path::PathBuf;

use crate::error::{Error, Result};

/// The options of a [`WriteCache`](super::WriteCache). The defaults are rrdcached's, except for
/// the memory bound, which rrdcached does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WriteCacheOptions {
    /// Nanoseconds after its last write at which a series is due again.
    pub timeout_ns: u64,
    /// Upper bound of a random delay that is added to the timeout of each series, in nanoseconds,
    /// so that series are not all due at once. At most `timeout_ns`.
    pub jitter_ns: u64,
    /// Interval in nanoseconds at which all series are checked, to write those that get no
    /// further samples. Must not be 0.
    pub flush_ns: u64,
    /// Number of writeback threads, in [1, 64].
    pub threads: usize,
    /// Upper bound, in bytes, of queued samples; beyond it samples are refused as full, and every
    /// queue is due at once.
    pub max_bytes: u64,
    /// A journal, so that an acknowledged sample outlives the process.
    pub journal: Option<JournalOptions>,
    /// For a cache of RRD files only: keeps their heads in memory and in a file, so that the
    /// files need not be read.
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
    /// Checks the ranges of the options.
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

/// The file in which a cache of RRD files saves their heads over a restart, and its size. It has
/// nothing to do with the checkpoints of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointOptions {
    /// The checkpoint's file; created if it does not exist.
    pub path: PathBuf,
    /// Upper bound, in bytes, of the heads kept in memory; heads beyond it are read from the
    /// files.
    pub max_bytes: u64,
}

impl CheckpointOptions {
    /// A checkpoint at `path`, with at most 1 GiB.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            max_bytes: 1 << 30,
        }
    }
}

/// The folder of a journal, and its sync policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalOptions {
    /// The journal's folder; created if it does not exist.
    pub folder: PathBuf,
    /// The sync policy.
    pub sync: SyncPolicy,
    /// Size in bytes from which on a new segment is begun.
    pub segment_bytes: u64,
}

impl JournalOptions {
    /// A journal in `folder` with the sync policy `sync` and segments of 64 MiB.
    pub fn new(folder: impl Into<PathBuf>, sync: SyncPolicy) -> Self {
        Self {
            folder: folder.into(),
            sync,
            segment_bytes: 64 << 20,
        }
    }
}

/// When the journal is synced. Under every policy a record is in the system's buffers before its
/// ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Only when a segment ends, which each checkpoint brings about: at every flush interval, and at
    /// closing. A flush syncs the store and not the journal.
    None,
    /// At this interval, in nanoseconds.
    Interval(u64),
    /// Before each ack; one sync serves all records that are pending at the time.
    Group,
    /// Before each ack; one sync per record.
    Each,
}

impl SyncPolicy {
    /// Whether an ack waits for a sync.
    pub fn is_before_ack(self) -> bool {
        matches!(self, Self::Group | Self::Each)
    }
}

/// The error for invalid options of a write cache.
pub fn invalid(what: String) -> Error {
    Error::Spec {
        spec: "write-cache+".to_owned(),
        what,
    }
}
