//! The same work on several sides (stores, or settings of one), in interleaved rounds: which is
//! better, by how much, and what difference could have been seen.
//!
//! A round runs every side twice, in a seeded order and then in the reverse one, each time in a
//! fresh place that is removed afterwards. Rounds are made until the answer is clear, or until
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
