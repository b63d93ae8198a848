//! The source of operations: it knows the values and prepares each operation before it is due.

use std::fmt;

use super::kind::{Kind, Writes};
use crate::batch::{Batch, BatchBuf};
use crate::schedule::Slot;

/// Prepares what an operation carries. Each worker owns one.
pub trait Source {
    /// The kind of its operations: [`Writes`] where it sends samples.
    type Kind: Kind;

    /// The payload of one operation, in buffers that the source owns and reuses: of a write, the
    /// samples of one tick of one group in columns.
    ///
    /// Called in the worker's order, ahead of the due time where there is time: what it
    /// costs is outside due and done unless the worker is behind. A payload without samples is not
    /// sent. Should allocate nothing once warm.
    fn prepare(&mut self, slot: &Slot) -> <Self::Kind as Kind>::Payload<'_>;
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
    type Kind = Writes;

    fn prepare(&mut self, slot: &Slot) -> Batch<'_> {
        self.buffer.clear();
        (self.fill)(slot, &mut self.buffer);
        self.buffer.as_batch()
    }
}
