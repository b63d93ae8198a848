//! Counts the outcomes of all samples that a write cache accepted.

/// Counts of samples by outcome; [`Account::balances`] holds at every moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Account {
    /// Accepted since the cache was opened.
    pub accepted: u64,
    /// Accepted before the cache was opened, and found in the journal.
    pub replayed: u64,
    /// Accepted by the inner store.
    pub written: u64,
    /// Queued, or being written.
    pub pending: u64,
    /// Dropped at the caller's request.
    pub forgotten: u64,
    /// Lost: the inner store refused them for good (it holds a later sample from another writer,
    /// cannot represent the value, or its file is damaged), or the cache was closed without a
    /// journal and could not write them.
    pub failed: u64,
    /// Older than the inner store's retention when they were written.
    pub expired: u64,
}

impl Account {
    /// Whether every sample is counted exactly once.
    pub const fn balances(&self) -> bool {
        self.accepted + self.replayed == self.written + self.pending + self.forgotten + self.failed + self.expired
    }

    /// The sum of both.
    #[must_use]
    pub const fn plus(&self, other: &Self) -> Self {
        Self {
            accepted: self.accepted + other.accepted,
            replayed: self.replayed + other.replayed,
            written: self.written + other.written,
            pending: self.pending + other.pending,
            forgotten: self.forgotten + other.forgotten,
            failed: self.failed + other.failed,
            expired: self.expired + other.expired,
        }
    }
}
