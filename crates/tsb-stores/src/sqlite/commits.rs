//! What commits came to: how many, how long, and why the worst one was.

/// Commits since a store was opened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Commits {
    /// How many there were.
    pub count: u64,
    /// Time in all of them, in nanoseconds.
    pub total_ns: u64,
    /// Checkpoints, which come behind a commit.
    pub checkpoints: u64,
    /// The longest checkpoint, in nanoseconds.
    pub worst_checkpoint_ns: u64,
    /// The longest commit with what came behind it.
    pub worst: Worst,
    /// The longest that the write-ahead log was, in bytes.
    pub journal_bytes: u64,
}

/// The longest commit and what was done in it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Worst {
    /// All of it, in nanoseconds.
    pub total_ns: u64,
    /// Rows of the log and of series, in nanoseconds.
    pub rows_ns: u64,
    /// The commit itself, that is the sync of the write-ahead log, in nanoseconds.
    pub sync_ns: u64,
    /// The checkpoint behind it, in nanoseconds.
    pub checkpoint_ns: u64,
    /// The beginning of another generation behind it, in nanoseconds.
    pub turn_ns: u64,
}

impl Commits {
    /// Notes one.
    pub(super) fn note(&mut self, one: Worst, journal_bytes: u64) {
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
