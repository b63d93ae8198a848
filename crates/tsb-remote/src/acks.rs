//! What a client has acknowledged so far, until it is closed.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tsb_core::Durability;

use tsb_stores::error::{Error, Result};
use tsb_stores::store::{Ack, Position, Reason, Refusals};

/// The count of acknowledged samples, which is the position of the last of them.
#[derive(Debug, Default)]
pub(crate) struct Acks {
    accepted: AtomicU64,
    is_closed: AtomicBool,
}

impl Acks {
    /// # Errors
    /// [`Error::Closed`].
    pub(crate) fn check_open(&self) -> Result<()> {
        if self.is_closed.load(Ordering::Acquire) {
            Err(Error::Closed)
        } else {
            Ok(())
        }
    }

    /// Nothing is taken any more; whether that is new.
    pub(crate) fn close(&self) -> bool {
        !self.is_closed.swap(true, Ordering::AcqRel)
    }

    /// Samples that were acknowledged.
    pub(crate) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Acquire)
    }

    /// The ack of a batch of so many samples, without those that were not taken.
    pub(crate) fn ack(
        &self,
        samples: usize,
        not_taken: &[(u32, Reason)],
        refused: &mut Refusals,
        durability: Durability,
    ) -> Ack {
        for &(index, reason) in not_taken {
            refused.push(index as usize, reason);
        }
        let accepted = samples - not_taken.len();
        let before = self.accepted.fetch_add(accepted as u64, Ordering::AcqRel);
        Ack::new(
            accepted,
            not_taken.len(),
            Position(before + accepted as u64),
            durability,
        )
    }
}
