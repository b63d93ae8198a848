//! Traces: recorded samples in a file, made by `tsb` or by other programs.
//!
//! [`open`] reads a trace file of `tsb`, Influx line protocol, Prometheus text, OpenMetrics or
//! CSV, or a folder of such files, into one [`Trace`]. A [`TraceWriter`] writes trace files, and
//! [`record`](record()) fills one with this machine's own values. A value that cannot be
//! represented exactly is left out, counted and named: see [`TraceProblems`].
//!
//! Nothing here sends or schedules: `workload` turns a trace into a fleet.

mod columns;
mod csv;
mod dates;
mod error;
mod folder;
mod format;
mod grid;
mod influx;
mod memory;
mod open;
mod open_metrics;
mod prometheus;
mod reader;
mod record;
mod text;
mod writer;

pub use csv::{Naming, parse_csv, parse_csv_named};
pub use dates::{DateOrder, date_string};
pub(crate) use error::with_causes;
pub use error::{NAMED_PROBLEMS, Place, TraceDefect, TraceError, TraceProblem, TraceProblems};
pub use format::{MAGIC, VERSION};
pub use grid::{Grid, GridCounts, MAX_CELLS};
pub use influx::parse_influx;
pub use memory::{Column, Limits, Trace, TraceBuilder};
pub use open::{TraceFormat, open, open_with, parse};
pub use prometheus::parse_prometheus;
pub use reader::{Ending, TraceReader, Visitor};
pub use record::{MachineRecorder, Processes, RecordOptions, RecordSummary, SHORTEST_INTERVAL_NS, record};
pub use text::{MAX_LINE_BYTES, ReadOptions, Scrapes, TimeUnit};
pub use writer::{TraceTotals, TraceWriter};

#[cfg(test)]
mod tests;
