//! What has become of every sample that a write cache accepted.

/// Counts of samples; [`Account::balances`] at every moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Accepted since the cache was opened.
    pub accepted: u64,
    /// Accepted in an earlier life, and found in the journal.
    pub replayed: u64,
    /// Taken by the store.
    pub written: u64,
    /// Waiting, or being written.
    pub pending: u64,
    /// Dropped because somebody asked for that.
    pub forgotten: u64,
    /// Refused by the store for good: somebody else wrote a later one, or it cannot say it.
    pub failed: u64,
    /// Older than the retention of the store when their turn came.
    pub expired: u64,
}

impl Account {
    /// Whether nothing is missing and nothing is counted twice.
    pub const fn balances(&self) -> bool {
        self.accepted + self.replayed == self.written + self.pending + self.forgotten + self.failed + self.expired
    }

    /// Both together.
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
