//! The emitter: workers that drive a closure (or a [`Target`]) on schedule, or in a closed loop.
//!
//! Each worker thread owns a contiguous range of groups, a [`Source`] that prepares
//! operations, a [`Target`] that takes them, and its own recorders. It prepares an
//! operation *before* it is due, sleeps and spins until then, sends, and records:
//!
//! ```text
//!        prepare        wait          send
//!   |---------------|----------|-----------------|
//!   free                      due, start        done
//!                              <---- service ---->
//! ```
//! When an operation is late, because the one before took long, it is sent at once, and
//! its response time counts from when it was due: nothing is skipped, nothing is
//! shifted. What was due and could not be sent before the end is counted as shed, to the
//! operation.
//!
//! Between due and done the emitter allocates nothing and takes no lock; it reads the
//! clock twice per operation that is late, and more often while it waits. It knows no store: [`run`] is all that an embedder needs.
//!
//! It does not care what an operation carries: writes carry batches of samples, and a [`Kind`]
//! names any other payload, such as a query. Every stream of operations has a [`Run`] of its own,
//! with its own timetable and histograms; streams share a clock and a start.

mod cpu;
mod exceptions;
mod kind;
mod live;
mod report;
mod run;
mod settings;
mod source;
mod state;
mod unsent;
mod worker;

pub use cpu::PhaseCpu;
pub use exceptions::ExceptionList;
pub use kind::{Kind, Payload, Writes};
pub use live::{Live, LiveTimes, LiveTotals, LiveWorker};
pub use report::{Counts, Ended, Exception, ExceptionKind, Latency, Report, Tally, WorkerReport};
pub use run::{EmitError, run};
pub use settings::{Run, Settings, Worker};
pub use source::{Fill, Source};

use crate::batch::Batch;
use crate::schedule::Slot;

/// One operation: what it carries, and when it was due. Unless another [`Kind`] is named, it is a
/// write and carries a [`Batch`].
#[derive(Clone, Copy, Debug)]
pub struct Operation<'a, K: Kind = Writes> {
    /// What is sent.
    pub payload: K::Payload<'a>,
    /// When it should have started, in nanoseconds of the run's clock. In a closed loop,
    /// when it did start.
    pub due: u64,
    /// When it did start, on the same clock; `None` if the caller has not read it.
    pub begun: Option<u64>,
    /// The part of the time from due until start in which the emitter itself was late, in
    /// nanoseconds; the rest was waiting for the target.
    pub late_ns: u64,
    /// Which operation of the timetable it is.
    pub slot: Slot,
}

impl<'a> Operation<'a> {
    /// A write of `batch`, due at `due`, for programs that drive a target themselves.
    pub const fn write(batch: Batch<'a>, due: u64, slot: Slot) -> Self {
        Self {
            payload: batch,
            due,
            begun: None,
            late_ns: 0,
            slot,
        }
    }
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
    /// Handed over; the code that sees it arrive times its end (a wire without
    /// acknowledgement, or one whose answers come later).
    Sent,
    /// Not sent at all: the target could take no more.
    Shed,
    /// Sent, and nobody knows what became of it (time-out, connection lost).
    Unknown,
    /// The target cannot go on: what became of this operation is unknown, and the whole
    /// run ends. The target, which comes back with the report, knows why.
    Fatal,
}

/// What a worker drives. Each worker owns one. Unless another [`Kind`] is named, it takes writes.
pub trait Target<K: Kind = Writes> {
    /// Takes the operation that is due now. May block: that is back-pressure, and it
    /// shows as lag of the operations behind it.
    fn send(&mut self, operation: &Operation<'_, K>) -> Outcome;

    /// Nothing more is due for now: push out what is buffered. Not called while the
    /// worker is behind its schedule, nor in a closed loop; called once at the end, unless the
    /// target has failed.
    fn idle(&mut self) {}
}

impl<K: Kind, F: FnMut(&Operation<'_, K>) -> Outcome> Target<K> for F {
    fn send(&mut self, operation: &Operation<'_, K>) -> Outcome {
        self(operation)
    }
}

#[cfg(test)]
mod tests;
