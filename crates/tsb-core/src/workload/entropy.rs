//! The information per value, calculated from the value models.
//!
//! The model's parameters and the previous value are assumed known. So the figure is what an ideal
//! codec that knew the fleet file would need: a lower bound for every lossless store, except for a
//! small excess where the reflection of a walk hides its direction. (A repeated value that draws its
//! old level again is counted exactly.)

use super::value_model::{Clipped, ValueModel};

/// The entropy of an event with probability `p`, in bits.
fn of_choice(p: f64) -> f64 {
    let term = |p: f64| if p > 0.0 { -p * p.log2() } else { 0.0 };
    term(p) + term(1.0 - p)
}

fn probability(threshold: u64) -> f64 {
    threshold as f64 / 4_294_967_296.0
}

fn of_clipped(draws: Clipped) -> f64 {
    let (still, highest) = draws.shape();
    of_choice(still) + (1.0 - still) * highest.max(1.0).log2()
}

impl ValueModel {
    /// Bits per value, given the previous one; `None` for recorded values.
    pub(super) fn entropy_bits(&self) -> Option<f64> {
        Some(match *self {
            Self::Constant { .. } => 0.0,
            Self::Repeated { change, levels, .. } => {
                // A different level, each equally likely, or the same as before.
                let other = probability(change) * (levels - 1) as f64 / levels as f64;
                of_choice(other) + other * ((levels - 1).max(1) as f64).log2()
            }
            Self::Sum { steps, .. } => f64::from(steps.count).log2(),
            Self::PausingCounter { steps, reset, .. } => {
                let resets = probability(reset);
                of_choice(resets) + (1.0 - resets) * of_clipped(steps)
            }
            Self::Noise { draws, .. } => of_clipped(draws),
            Self::Recorded => return None,
        })
    }
}
