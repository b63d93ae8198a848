//! The capacity of a store: the highest load at which every condition of an objective holds.
//!
//! [`Search`] decides which load is probed next and what the results say; it knows no clock, no
//! store and no plan.

mod knee;
mod passes;
mod search;

pub use knee::{COVERAGE, Knee};
pub use passes::Passes;
pub use search::{Finding, Limit, Probe, ProbeResult, Purpose, Search, SearchOptions, Step};
