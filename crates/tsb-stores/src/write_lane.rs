//! The contract of a store with many writes in flight: it takes lanes, and answers later.
//!
//! It knows no runtime and no server: a lane is polled, by whatever runtime the store has.

use std::task::{Context, Poll};

use tsb_core::Batch;

use crate::error::Result;
use crate::store::{Ack, Refusals, Store};

/// A sequence of writes, made one after the other: each lane has at most one write in flight.
///
/// The store takes the next write with [`poll_next`](Self::poll_next), makes it from
/// [`batch`](Self::batch), and says what became of it with [`done`](Self::done), once; then it
/// takes the next. A lane that is dropped during a write leaves its outcome unknown.
///
/// Everything here returns at once, so a runtime may call it.
pub trait WriteLane: Send + Sync + 'static {
    /// Takes the next write. `Ready(false)`: there will be none, and the lane is over.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<bool>;

    /// The samples of the write that was taken last.
    fn batch(&self) -> Batch<'_>;

    /// The outcome of the write that was taken last, as [`Store::write`] returns it.
    fn done(&mut self, outcome: Result<Ack>, refused: &Refusals);
}

/// A [`Store`] that has threads of its own to make writes, so that a caller hands them over
/// without waiting for their answers.
pub trait AsyncStore: Store {
    /// Makes the writes of a lane until it is over. Returns at once.
    ///
    /// Every write ends within a deadline of the store's own.
    ///
    /// # Errors
    /// [`Error::Closed`](crate::Error::Closed), if nothing can be written any more.
    fn serve(&self, lane: Box<dyn WriteLane>) -> Result<()>;
}
