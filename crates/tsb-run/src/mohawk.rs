//! Mohawk's backends, the first published benchmark: 999 writes and 999 reads of one gauge through
//! Hawkular's interface, as they were and corrected.
//!
//! ```
//! use tsb_run::mohawk::{RowRule, rows_of_benchmark};
//!
//! // Three backends answered one question with different rows, and nobody looked.
//! assert_eq!(rows_of_benchmark(RowRule::FromStart, 999), 998);
//! assert_eq!(rows_of_benchmark(RowRule::AfterStart, 999), 1_997);
//! ```

mod as_it_was;
mod backend;
mod connection;
mod endpoint;
mod experiment;
mod gauges;
mod load;
mod one_hertz;
mod processes;
mod requests;
mod windows;
mod wrong_reads;

pub use backend::MohawkBackend;
pub use experiment::{MISTAKES, Request, measure, rows};
pub use windows::{RowRule, rows_of_benchmark};
