//! What a list of probes says about the knee: the load at which half of the probes that do not lapse
//! hold.
//!
//! A probe at load `x` holds with probability
//! `LUCK + (1 - LUCK - lapse) / (1 + exp((ln x - ln knee) / scale))`. The knee, the scale (how much
//! the knee moves from probe to probe) and the lapse (how often a probe breaks at any load, because
//! of a stall) are unknown. Before the first probe every combination on a grid is equally probable;
//! each result multiplies the probability of each combination by that of the result (Bayes' rule).
//! The interval leaves 2.5 % of the probability on each side.

/// The probability that the interval covers the knee.
pub const COVERAGE: f64 = 0.95;
/// Distance of neighbouring knees of the grid, in natural logarithms.
const STEP: f64 = 0.002;
/// Standard scales of the knee, in natural logarithms.
const SCALES: [f64; 4] = [0.000_5, 0.003, 0.012, 0.04];
/// Shares of probes that break at any load.
const LAPSES: [f64; 3] = [0.01, 0.05, 0.2];
/// Share of probes that hold at any load.
const LUCK: f64 = 0.005;
/// Beyond this, exponential functions no longer change a result.
const FAR: f64 = 40.0;

/// The probability of each knee, after the probes so far.
#[derive(Clone, Debug)]
pub struct Knee {
    // Logarithm of the first knee of the grid.
    first: f64,
    // For each scale and lapse, the logarithm of the weight of each knee.
    weights: Vec<Vec<f64>>,
    // The relative weight of each knee, over all scales and lapses.
    marginal: Vec<f64>,
}

impl Knee {
    /// Every knee from `low` to `high` is equally probable on a logarithmic scale. Both are
    /// positive loads.
    pub fn between(low: f64, high: f64) -> Self {
        let first = low.min(high).ln();
        let knees = ((low.max(high).ln() - first) / STEP).ceil() as usize + 1;
        Self {
            first,
            weights: vec![vec![0.0; knees]; SCALES.len() * LAPSES.len()],
            marginal: vec![1.0; knees],
        }
    }

    /// Whether a load is far enough from the ends of the grid that a result at it leaves knees
    /// beyond it.
    pub fn covers(&self, load: f64) -> bool {
        let knees = self.marginal.len();
        let (margin, at) = (std::f64::consts::LN_2, load.ln() - self.first);
        at >= margin && at + margin <= knees as f64 * STEP
    }

    /// Takes in a probe at `load`.
    pub fn observe(&mut self, load: f64, held: bool) {
        let at = load.ln();
        let shapes = SCALES
            .iter()
            .flat_map(|scale| LAPSES.iter().map(move |lapse| (scale, lapse)));
        for (weights, (scale, lapse)) in self.weights.iter_mut().zip(shapes) {
            let log_probability = |logistic: f64| {
                let holds = LUCK + (1.0 - LUCK - lapse) * logistic;
                if held { holds } else { 1.0 - holds }.ln()
            };
            let (below, above) = (log_probability(0.0), log_probability(1.0));
            for (index, weight) in weights.iter_mut().enumerate() {
                *weight += match (self.first + index as f64 * STEP - at) / scale {
                    z if z > FAR => above,
                    z if z < -FAR => below,
                    z => log_probability(1.0 / (1.0 + (-z).exp())),
                };
            }
        }
        self.marginalize();
    }

    fn marginalize(&mut self) {
        let largest = self.weights.iter().flatten().copied().fold(f64::NEG_INFINITY, f64::max);
        self.marginal.fill(0.0);
        for weights in &self.weights {
            for (sum, weight) in self.marginal.iter_mut().zip(weights) {
                if weight - largest > -FAR {
                    *sum += (weight - largest).exp();
                }
            }
        }
    }

    /// The load that the knee does not exceed with probability `quantile`.
    pub fn quantile(&self, quantile: f64) -> f64 {
        let marginal = &self.marginal;
        let wanted = quantile.clamp(0.0, 1.0) * marginal.iter().sum::<f64>();
        let mut below = 0.0;
        for (index, mass) in marginal.iter().enumerate() {
            if below + mass >= wanted && *mass > 0.0 {
                let part = (wanted - below) / mass - 0.5;
                return (self.first + (index as f64 + part) * STEP).exp();
            }
            below += mass;
        }
        (self.first + marginal.len() as f64 * STEP).exp()
    }

    /// The probability that the knee is above `load`.
    pub fn above(&self, load: f64) -> f64 {
        let marginal = &self.marginal;
        let from = ((load.ln() - self.first) / STEP).ceil().max(0.0) as usize;
        marginal.iter().skip(from).sum::<f64>() / marginal.iter().sum::<f64>()
    }

    /// The median and the interval: low, median, high.
    pub fn estimate(&self) -> (f64, f64, f64) {
        let tail = (1.0 - COVERAGE) / 2.0;
        (self.quantile(tail), self.quantile(0.5), self.quantile(1.0 - tail))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_probe_every_knee_is_equally_probable() {
        let knee = Knee::between(100.0, 10_000.0);
        assert!((knee.quantile(0.5) / 1_000.0 - 1.0).abs() < 0.01);
        assert!((knee.above(1_000.0) - 0.5).abs() < 0.01);
        assert_eq!(knee.above(1.0), 1.0);
    }

    #[test]
    fn one_probe_that_broke_by_chance_does_not_move_the_knee_for_good() {
        let mut knee = Knee::between(1_000.0, 100_000.0);
        knee.observe(8_000.0, false);
        for load in [4_000.0, 7_000.0, 7_800.0, 8_100.0, 16_000.0, 30_000.0] {
            knee.observe(load, true);
        }
        knee.observe(40_000.0, false);
        let (low, found, high) = knee.estimate();
        assert!(
            low > 29_000.0 && found > 30_000.0 && found < 40_000.0 && high < 100_000.0,
            "{low} {found} {high}"
        );
    }
}
