//! The contract of a store of keys with many puts in flight: it takes lanes, and answers later.
//!
//! The twin of [`WriteLane`](crate::WriteLane) and [`AsyncStore`](crate::AsyncStore) for keys.

use std::task::{Context, Poll};

use super::contract::{KeyedStore, Put, PutAck};
use crate::error::Result;
use crate::store::Refusals;

/// A sequence of puts, made one after the other: each lane has at most one put in flight.
///
/// The store takes the next put with [`poll_next`](Self::poll_next), makes it from
/// [`puts`](Self::puts), and says what became of it with [`done`](Self::done), once; then it
/// takes the next. A lane that is dropped during a put leaves its outcome unknown.
///
/// Everything here returns at once, so a runtime may call it.
pub trait PutLane: Send + Sync + 'static {
    /// Takes the next put. `Ready(false)`: there will be none, and the lane is over.
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<bool>;

    /// The keys of the put that was taken last.
    fn puts(&self) -> &[Put];

    /// The outcome of the put that was taken last, as [`KeyedStore::put`] returns it.
    fn done(&mut self, outcome: Result<PutAck>, refused: &Refusals);
}

/// A [`KeyedStore`] that has threads of its own to make puts, so that a caller hands them over
/// without waiting for their answers.
pub trait AsyncKeyedStore: KeyedStore {
    /// Makes the puts of a lane until it is over. Returns at once.
    ///
    /// Every put ends within a deadline of the store's own.
    ///
    /// # Errors
    /// [`Error::Closed`](crate::Error::Closed), if nothing can be put any more.
    fn serve(&self, lane: Box<dyn PutLane>) -> Result<()>;
}
