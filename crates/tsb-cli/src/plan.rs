//! What was meant: from flags, run files, plans and reports to a [`Plan`].

mod apply;
mod churn;
pub mod file;
mod load;
pub mod no_effect;

pub use apply::Apply;
pub use load::{load, with_file};
pub use tsb_run::plan::{AskedRate, PLAN_VERSION, Plan, Transport, WirePlan};
