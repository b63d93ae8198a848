//! The capacity of a store: the highest load at which every condition of an objective holds.
//!
//! [`Search`] decides which load is probed next, by the curve that [`Knee`] fits to the probes so far,
//! and what the results say; it knows no clock, no store and no plan. [`find_capacity`] carries a search out: [`Find`] makes the plan of each probe,
//! and [`judge`] says what its report means. [`find_scaling`] repeats it at several counts of workers
//! or of requests in flight, and fits a law to the capacities.

mod drive;
mod finding;
mod judge;
mod knee;
mod load;
mod passes;
mod scale;
mod search;
mod steady;

pub use drive::{CapacityRequest, find_capacity};
pub use judge::{Judgement, Objective, judge};
pub use knee::{COVERAGE, Knee};
pub use load::Find;
pub use passes::Passes;
pub use scale::{Vary, counted, find_scaling, why_no_law};
pub use search::{Finding, Limit, Probe, ProbeResult, Purpose, Search, SearchOptions, Step};
pub use steady::{Backlog, GROWTH_MAX};
