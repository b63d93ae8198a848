//! The figures of a report by name, and conditions on them: `response.p99>50ms`, `lost=0`,
//! `cost.store>+5%` against a baseline, `valid`.
//!
//! A [`Figure`] is a number of one run, with its unit and the direction in which it gets better. A
//! [`Condition`] compares it with a limit, or asks for a verdict. A [`Threshold`] says
//! whether a run fails if the condition is true, or unless it is. A figure that a run does not have decides nothing: the outcome is
//! [`Outcome::Absent`] with the reason, and no threshold passes for it.
//!
//! Nothing here measures, prints or ends anything.

mod better;
mod condition;
mod error;
mod figure;
mod quantile;
mod query;
mod reading;
mod rule;
mod scalars;

pub use better::Better;
pub use condition::{Condition, Evaluation, Outcome};
pub use error::ConditionError;
pub use figure::Figure;
pub use reading::Reading;
pub use rule::Threshold;

#[cfg(test)]
mod tests;
