//! The two passes over the loads around the knee: upwards, then downwards without a rest.
//!
//! A store that breaks at one load on the way up, and recovers only at a lower one on the way down,
//! has hysteresis: its capacity after an overload is lower than before it.

/// Loads of a pass.
pub(super) const RUNGS: usize = 5;
/// Least distance of neighbouring loads of a pass, in natural logarithms.
const LEAST_STEP: f64 = 0.02;

/// Where each pass saw the knee.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Passes {
    /// On the way up, in samples per second or series.
    pub upwards: f64,
    /// On the way down, likewise.
    pub downwards: f64,
    /// Distance of neighbouring loads, as a share of a load: differences up to it are not seen.
    pub resolution: f64,
}

impl Passes {
    /// Whether the downward pass held only at lower loads than the upward one, by more than one
    /// step.
    pub fn has_hysteresis(&self) -> bool {
        (self.upwards / self.downwards).ln() > 1.5 * self.resolution.ln_1p()
    }
}

/// The loads of a pass, ascending, around an estimate and its interval.
pub(super) fn rungs(low: f64, found: f64, high: f64) -> (Vec<u64>, f64) {
    let step = ((high / low).ln() / 2.0).max(LEAST_STEP);
    let middle = (RUNGS / 2) as f64;
    let loads = (0..RUNGS).map(|rung| (found * ((rung as f64 - middle) * step).exp()).round().max(1.0) as u64);
    (loads.collect(), step.exp_m1())
}

/// Where a pass saw the knee, from the number of probes that held (the estimate of Spearman and
/// Karber). A pass in which all or none held says only that the knee is beyond its ends.
pub(super) fn knee_of(lowest: u64, resolution: f64, held: usize) -> f64 {
    lowest as f64 * ((held as f64 - 0.5) * resolution.ln_1p()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_around_the_estimate_and_sees_the_knee_between_two_loads() {
        let (loads, resolution) = rungs(99_000.0, 100_000.0, 101_000.0);
        assert_eq!(loads.len(), RUNGS);
        assert_eq!(loads[RUNGS / 2], 100_000);
        assert!(loads.is_sorted());
        assert!((resolution - 0.02).abs() < 0.001);
        let knee = knee_of(loads[0], resolution, 3);
        assert!(knee > loads[2] as f64 && knee < loads[3] as f64, "{knee}");
        assert!(knee_of(loads[0], resolution, 0) < loads[0] as f64);
        assert!(knee_of(loads[0], resolution, RUNGS) > loads[RUNGS - 1] as f64);
    }

    #[test]
    fn one_step_is_no_hysteresis_and_two_are() {
        let passes = |downwards| Passes {
            upwards: 100.0,
            downwards,
            resolution: 0.02,
        };
        assert!(!passes(98.0).has_hysteresis());
        assert!(passes(96.0).has_hysteresis());
        assert!(!passes(104.0).has_hysteresis());
    }
}
