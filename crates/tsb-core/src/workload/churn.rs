//! Churn: the ticks at which each series is alive, as a pure function.

use std::ops::Range;

use super::spec::{Churn, ChurnMode};

/// Number of hosts that come and go, relative to those that stay.
pub(crate) fn extra_share(mode: &ChurnMode) -> f64 {
    match *mode {
        ChurnMode::Steady { .. } => 0.0,
        ChurnMode::Gradual { multiple, .. } | ChurnMode::Spike { multiple, .. } => multiple - 1.0,
        ChurnMode::DoubleHalve { .. } => 1.0,
    }
}

/// A position in [0, 1) for the `index`-th of many items, such that any number of them is spread
/// evenly: multiples of the golden ratio.
pub(crate) fn spread(index: u64) -> f64 {
    let turned = index.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (turned >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

fn ticks(ns: u64, interval_ns: u64) -> u64 {
    (ns / interval_ns).max(1)
}

/// The generations of a churn unit of the permanent hosts, without gaps. `place` in [0, 1) is the
/// position within a lifetime at which the first replacement happens.
pub(crate) fn lives(churn: &Churn, interval_ns: u64, place: f64) -> Vec<Range<u64>> {
    let ChurnMode::Steady { lifetime_ns } = churn.mode else {
        return std::iter::once(0..u64::MAX).collect();
    };
    let lifetime = ticks(lifetime_ns, interval_ns);
    let horizon = churn.horizon_ns / interval_ns;
    let mut lives = Vec::new();
    let mut birth = 0;
    let mut death = ((lifetime as f64 * place) as u64).max(1);
    while death < horizon {
        lives.push(birth..death);
        birth = death;
        death += lifetime;
    }
    lives.push(birth..u64::MAX);
    lives
}

/// The visits of a temporary host, one per period. `place` in (0, 1) is its position in the order
/// of arrival.
pub(crate) fn visits(churn: &Churn, interval_ns: u64, place: f64) -> Vec<Range<u64>> {
    let (period_ns, visit) = match churn.mode {
        ChurnMode::Steady { .. } => return Vec::new(),
        ChurnMode::Gradual { period_ns, .. } => (period_ns, (place / 2.0, 1.0 - place / 2.0)),
        ChurnMode::DoubleHalve { period_ns } => (period_ns, (0.5, 1.0)),
        ChurnMode::Spike {
            period_ns, length_ns, ..
        } => (period_ns, (1.0 - length_ns as f64 / period_ns as f64, 1.0)),
    };
    let period = ticks(period_ns, interval_ns);
    let horizon = churn.horizon_ns / interval_ns;
    let at = |turn: f64| (turn * period as f64).round() as u64;
    let mut visits = Vec::new();
    for start in (0..horizon).step_by(period as usize) {
        let visit = start + at(visit.0)..(start + at(visit.1)).min(horizon.max(1));
        if !visit.is_empty() {
            visits.push(visit);
        }
    }
    visits
}
