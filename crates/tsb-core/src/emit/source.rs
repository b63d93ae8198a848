//! The source of operations: it knows the values and prepares each operation before it is due.

use std::fmt;

use crate::batch::{Batch, BatchBuf};
use crate::schedule::Slot;

/// Prepares the batch of an operation. Each worker owns one.
pub trait Source {
    /// The samples of one tick of one group, in columns that the source owns and reuses.
    ///
    /// Called in the worker's order, ahead of the due time where there is time: what it
    /// costs is outside due and done unless the worker is behind. An empty batch is not
    /// sent. Should allocate nothing once warm.
    fn prepare(&mut self, slot: &Slot) -> Batch<'_>;
}

/// A source from a closure that fills a buffer.
pub struct Fill<F> {
    fill: F,
    buffer: BatchBuf,
}

impl<F: FnMut(&Slot, &mut BatchBuf)> Fill<F> {
    /// The closure gets an empty buffer each time.
    pub fn new(fill: F) -> Self {
        Self {
            fill,
            buffer: BatchBuf::new(),
        }
    }
}

impl<F> fmt::Debug for Fill<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fill").finish_non_exhaustive()
    }
}

impl<F: FnMut(&Slot, &mut BatchBuf)> Source for Fill<F> {
    fn prepare(&mut self, slot: &Slot) -> Batch<'_> {
        self.buffer.clear();
        (self.fill)(slot, &mut self.buffer);
        self.buffer.as_batch()
    }
}
