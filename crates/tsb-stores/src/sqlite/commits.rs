//! Counts of commits and their durations, with details of the longest one.

/// Commits since a store was opened.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Commits {
    /// Number of commits.
    pub count: u64,
    /// Total time of all commits, in nanoseconds.
    pub total_ns: u64,
    /// Number of checkpoints; each follows a commit.
    pub checkpoints: u64,
    /// The longest checkpoint, in nanoseconds.
    pub worst_checkpoint_ns: u64,
    /// The longest commit, with the work that followed it.
    pub worst: LongestCommit,
    /// The largest size of the write-ahead log, in bytes.
    pub journal_bytes: u64,
}

/// The longest commit and its parts.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LongestCommit {
    /// All of it, in nanoseconds.
    pub total_ns: u64,
    /// Writing rows of the log and of series, in nanoseconds.
    pub rows_ns: u64,
    /// The commit itself, that is the sync of the write-ahead log, in nanoseconds.
    pub sync_ns: u64,
    /// The checkpoint after it, in nanoseconds.
    pub checkpoint_ns: u64,
    /// Beginning a new generation after it, in nanoseconds.
    pub rotation_ns: u64,
}

impl Commits {
    /// Adds a commit.
    pub(super) fn note(&mut self, one: LongestCommit, journal_bytes: u64) {
        self.count += 1;
        self.total_ns += one.total_ns;
        self.checkpoints += u64::from(one.checkpoint_ns > 0);
        self.worst_checkpoint_ns = self.worst_checkpoint_ns.max(one.checkpoint_ns);
        self.journal_bytes = self.journal_bytes.max(journal_bytes);
        if one.total_ns > self.worst.total_ns {
            self.worst = one;
        }
    }
}
