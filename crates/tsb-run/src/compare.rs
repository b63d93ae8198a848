//! The same work on several sides (stores, or settings of one), in interleaved rounds: which is
//! better, by how much, and what difference could have been seen.
//!
//! A round runs every side twice (a single side once), in a seeded order and then in the reverse one,
//! each time in a fresh place that is removed afterwards. Rounds are made until the answer is clear, or until
//! their number or their time is used up. The statistics are those of [`tsb_core::stats`]; what
//! differs between the sides beside the figures is said first, and such sides are not ranked
//! unless that was asked for.

mod ratios;
mod rounds;
mod steady;
mod unequal;

pub use ratios::{DECIDING, HEADLINE, is_headline};
pub use rounds::{Compared, Side, compare};
pub use steady::{SteadyPart, steady_run};
pub use unequal::{asked, durability};

/// A run that lost nothing, for the tests of this module.
#[cfg(test)]
fn example_run() -> tsb_core::report::Run {
    use tsb_core::report::{DurabilityReport, Latency, LedgerReport, Rate, Run, Target};
    use tsb_core::verdict::{Status, Verdict};

    let mut rate = Rate::held(54_000.0);
    rate.asked_per_second = Some(54_000.0);
    Run::new(
        Target::new("memory", "inproc", "exact"),
        Verdict::new(Status::Valid, vec!["nothing limited it".to_owned()]),
        DurabilityReport::new(tsb_core::Durability::Volatile, 1),
        rate,
        LedgerReport::default(),
        Latency::new("the store has returned"),
    )
}
