//! The share that one table of names has in the memory of all tables of a listener.

use crate::wire::Budget;

/// What a table of names takes of a budget; it is given back when the table goes.
#[derive(Debug, Default)]
pub(crate) struct Share {
    budget: Budget,
    /// Bytes that each name takes, apart from what is counted in bytes.
    each: usize,
    taken: usize,
    /// The last request found too little left.
    is_used_up: bool,
}

/// The capacity of a list that doubles when it is full.
pub(crate) fn grown(capacity: usize, needed: usize) -> usize {
    if needed <= capacity {
        capacity
    } else {
        needed.max(2 * capacity).max(4)
    }
}

impl Share {
    /// A share in `budget`, in which each name takes `each` bytes.
    pub(crate) fn new(budget: &Budget, each: usize) -> Self {
        Self {
            budget: budget.clone(),
            each,
            ..Self::default()
        }
    }

    /// Takes what room for `names` names and `bytes` bytes beside them needs. `false`: there is
    /// too little left, and nothing was taken.
    #[inline]
    pub(crate) fn reach(&mut self, names: usize, bytes: usize) -> bool {
        let needed = (names * self.each + bytes).saturating_sub(self.taken);
        if needed > 0 {
            self.is_used_up = !self.budget.take(needed);
            if self.is_used_up {
                return false;
            }
            self.taken += needed;
        }
        true
    }

    /// Gives everything back.
    pub(crate) fn give_back(&mut self) {
        self.budget.give_back(std::mem::take(&mut self.taken));
        self.is_used_up = false;
    }

    /// Whether the last request found too little left.
    pub(crate) fn is_used_up(&self) -> bool {
        self.is_used_up
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back();
    }
}
