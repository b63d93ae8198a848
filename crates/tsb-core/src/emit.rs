//! The emitter: open-loop workers that drive a closure (or a [`Target`]) on schedule.

use crate::batch::Batch;

/// One operation: a batch and when it was due.
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a> {
    /// What is sent.
    pub batch: Batch<'a>,
    /// When it should have started, in nanoseconds of the run's clock.
    pub due: u64,
}

/// What is known of an operation when the target returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "an outcome goes into the ledger"]
pub enum Outcome {
    /// The target answered for each sample: the operation ends now.
    Done {
        /// Samples taken.
        accepted: u32,
        /// Samples refused.
        rejected: u32,
    },
    /// Handed over; whoever sees it arrive times its end (a wire without
    /// acknowledgement, or one whose answers come later).
    Sent,
    /// Not sent at all: the target could take no more.
    Shed,
    /// Sent, and nobody knows what became of it (time-out, connection lost).
    Unknown,
}

/// What a worker drives. Each worker owns one.
pub trait Target {
    /// Takes the operation that is due now. May block: that is back-pressure, and it
    /// shows as lag of the operations behind it.
    fn send(&mut self, operation: &Operation<'_>) -> Outcome;

    /// Nothing more is due for now: push out what is buffered.
    fn idle(&mut self) {}
}

impl<F: FnMut(&Operation<'_>) -> Outcome> Target for F {
    fn send(&mut self, operation: &Operation<'_>) -> Outcome {
        self(operation)
    }
}
