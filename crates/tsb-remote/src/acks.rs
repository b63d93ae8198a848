//! The acknowledged samples of a client, and whether it is closed.

use std::sync::atomic::{AtomicU64, Ordering};

use tsb_core::Durability;

use tsb_stores::error::Result;
use tsb_stores::parts::ClosedFlag;
use tsb_stores::store::{Ack, Position, Reason, Refusals};

/// The count of acknowledged samples, which is the position of the last of them.
#[derive(Debug, Default)]
pub(crate) struct Acks {
    accepted: AtomicU64,
    closed: ClosedFlag,
}

impl Acks {
    /// # Errors
    /// [`Error::Closed`](tsb_stores::Error::Closed).
    pub(crate) fn check_open(&self) -> Result<()> {
        self.closed.check_open()
    }

    /// Marks the client as closed. Returns whether it was open.
    pub(crate) fn close(&self) -> bool {
        self.closed.close()
    }

    /// Number of acknowledged samples.
    pub(crate) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Acquire)
    }

    /// The position up to which samples have a level: all that were acknowledged, if every ack has it;
    /// otherwise `flushed`, which is 0 where no flush makes more of an ack.
    pub(crate) fn durable(&self, level: Durability, acknowledged: Durability, flushed: u64) -> Position {
        Position(if level <= acknowledged {
            self.accepted()
        } else {
            flushed
        })
    }

    /// The ack for a batch of `samples` samples, of which those in `rejected` were refused.
    pub(crate) fn ack(
        &self,
        samples: usize,
        rejected: &[(u32, Reason)],
        refused: &mut Refusals,
        durability: Durability,
    ) -> Ack {
        for &(index, reason) in rejected {
            refused.push(index as usize, reason);
        }
        let accepted = samples - rejected.len();
        let before = self.accepted.fetch_add(accepted as u64, Ordering::AcqRel);
        Ack::new(accepted, rejected.len(), Position(before + accepted as u64), durability)
    }
}
