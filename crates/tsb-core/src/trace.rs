//! Traces: real samples from a file, recorded by `tsb` or brought along.
//!
//! [`open`] reads a trace file of `tsb`, Influx line protocol, Prometheus text or CSV
//! into one [`Trace`]; a [`TraceWriter`] writes the first of these, and
//! [`record`](record()) fills one with this machine's own values. What a row cannot
//! say exactly is left out, counted and named: see [`TraceProblems`].
//!
//! Nothing here sends or schedules: `workload` makes a fleet of a trace.

mod columns;
mod error;
mod format;
mod memory;
mod proc;
mod reader;
mod record;
mod writer;

pub use error::{NAMED_PROBLEMS, Place, TraceDefect, TraceError, TraceProblem, TraceProblems};
pub use format::{MAGIC, VERSION};
pub use memory::{Column, Limits, Trace, TraceBuilder};
pub use reader::{Ending, TraceReader, Visitor};
pub use record::{Processes, RecordOptions, RecordSummary, Recorder, SHORTEST_INTERVAL_NS, record};
pub use writer::{TraceTotals, TraceWriter};

#[cfg(test)]
mod tests;
