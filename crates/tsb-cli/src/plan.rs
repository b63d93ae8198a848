//! Builds the [`Plan`] that a command line means, from flags, run files, plans and reports.

mod apply;
mod churn;
pub mod file;
mod load;
pub mod no_effect;

pub use apply::Apply;
pub use load::{load, with_file};
pub use tsb_run::plan::{AskedRate, PLAN_VERSION, Plan, Transport, WirePlan};
