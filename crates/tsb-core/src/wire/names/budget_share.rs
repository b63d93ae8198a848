//! The share of one name table in the memory budget of a listener.

use crate::wire::Budget;

/// The bytes that a name table has taken from a budget; they are returned when it is dropped.
#[derive(Debug, Default)]
pub(crate) struct BudgetShare {
    budget: Budget,
    /// Bytes per name, apart from its text.
    each: usize,
    taken: usize,
    /// Whether the last request found too few bytes left.
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

impl BudgetShare {
    /// An empty share in `budget`, with `each` bytes per name.
    pub(crate) fn new(budget: &Budget, each: usize) -> Self {
        Self {
            budget: budget.clone(),
            each,
            ..Self::default()
        }
    }

    /// Takes the bytes for a capacity of `names` names and `bytes` bytes of text. Returns false,
    /// with nothing taken, if too few are left.
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

    /// Returns everything to the budget.
    pub(crate) fn give_back(&mut self) {
        self.budget.give_back(std::mem::take(&mut self.taken));
        self.is_used_up = false;
    }

    /// Whether the last request found too few bytes left.
    pub(crate) fn is_used_up(&self) -> bool {
        self.is_used_up
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.give_back();
    }
}
