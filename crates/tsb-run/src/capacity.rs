//! The capacity of a store: the highest load at which every condition of an objective holds.
//!
//! [`Search`] decides which load is probed next and what the results say; it knows no clock, no
//! store and no plan. [`find_capacity`] carries a search out: [`Find`] makes the plan of each probe,
//! and [`judge`] says what its report means.

mod drive;
mod finding;
mod judge;
mod knee;
mod load;
mod passes;
mod search;
mod steady;

pub use drive::{CapacityRequest, find_capacity};
pub use judge::{Judgement, Objective, judge};
pub use knee::{COVERAGE, Knee};
pub use load::Find;
pub use passes::Passes;
pub use search::{Finding, Limit, Probe, ProbeResult, Purpose, Search, SearchOptions, Step};
pub use steady::{Backlog, GROWTH_MAX};
