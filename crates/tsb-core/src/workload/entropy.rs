//! The information in a value, calculated from the laws.
//!
//! Of a law whose parameters are known to the reader, and given the value before: what
//! an ideal codec would need that knew the fleet file, and so a floor for every lossless
//! store. Two things make the true figure a hair lower than the calculated one: a walk
//! that is reflected hides its direction, and a level may be drawn that was there before
//! (which is counted exactly).

use super::law::{Clipped, Law};

/// The entropy of something that happens with probability `p`, in bits.
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

impl Law {
    /// Bits a value, given the one before; `None` for values that follow no law.
    pub(super) fn entropy_bits(&self) -> Option<f64> {
        Some(match *self {
            Self::Constant { .. } => 0.0,
            Self::Repeated { change, levels, .. } => {
                // Another of the levels, each as likely, or the same as before.
                let other = probability(change) * (levels - 1) as f64 / levels as f64;
                of_choice(other) + other * ((levels - 1).max(1) as f64).log2()
            }
            Self::Sum { steps, .. } => f64::from(steps.count).log2(),
            Self::Fitful { steps, reset, .. } => {
                let resets = probability(reset);
                of_choice(resets) + (1.0 - resets) * of_clipped(steps)
            }
            Self::Noise { draws, .. } => of_clipped(draws),
            Self::Recorded => return None,
        })
    }
}
