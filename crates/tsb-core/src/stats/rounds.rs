//! Rounds of a comparison: the order in which the sides run, whether the rounds agree, and what a
//! ratio says.
//!
//! One round runs every side twice, in one order and then in the reverse one. Its two ratios are
//! compared within the round; a steady drift of the machine cancels in their mean.

use super::beta::incomplete_beta;
use super::{Ratio, log};
use crate::workload::mix64;

/// Probability with which rounds that differ by chance alone are called erratic; up to 1 % where
/// the machine's noise lasts about as long as a run.
const DISAGREE_BY_CHANCE: f64 = 0.001;

/// Fewest rounds after which a comparison may end early.
pub const ROUNDS_MIN: usize = 6;

/// Whether rounds `[a, b, b, a]` have answered, so that no more are needed. They are looked at
/// after 6, 9, 13, 19, 28, 42 rounds and so on, and have answered
///
/// - if the interval at [`CLEAR_CONFIDENCE`](super::CLEAR_CONFIDENCE) excludes 1; or
/// - if at this look and at the one before a relative difference of `enough` would have been seen.
///   Rounds whose scatter came out small by chance would end too many comparisons at the first
///   such look.
pub fn have_answered(rounds: &[[f64; 4]], enough: f64) -> bool {
    let mut previous = 4;
    while previous + previous / 2 < rounds.len() {
        previous += previous / 2;
    }
    if rounds.len() < ROUNDS_MIN || previous + previous / 2 != rounds.len() {
        return false;
    }
    let is_enough = |ratio: &Ratio| ratio.detectable <= enough;
    let Some(ratio) = Ratio::from_blocks(rounds) else {
        return false;
    };
    ratio.is_sure() || is_enough(&ratio) && Ratio::from_blocks(&rounds[..previous]).is_some_and(|r| is_enough(&r))
}

/// The order of one round: each of `sides` sides once, in an order that follows from `seed` and
/// `round`, then all of them in the reverse order.
pub fn order(seed: u64, round: u32, sides: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..sides).collect();
    let mut state = mix64(seed ^ mix64(u64::from(round)));
    for last in (1..sides).rev() {
        state = mix64(state.wrapping_add(last as u64));
        order.swap(last, (state % (last as u64 + 1)) as usize);
    }
    order.extend_from_within(..);
    order[sides..].reverse();
    order
}

/// Whether rounds `[a, b, b, a]` differ from each other by more than the two ratios within a round
/// do: an analysis of variance of the logarithms. `None` for fewer than three rounds, or
/// when a value is not positive and finite.
pub fn rounds_disagree(rounds: &[[f64; 4]]) -> Option<bool> {
    if rounds.len() < 3 {
        return None;
    }
    let ratios = |&[a, b, c, d]: &[f64; 4]| Some((log(b)? - log(a)?, log(c)? - log(d)?));
    let ratios = rounds.iter().map(ratios).collect::<Option<Vec<_>>>()?;
    let n = ratios.len() as f64;
    let mean = ratios
        .iter()
        .map(|(one, other)| f64::midpoint(*one, *other))
        .sum::<f64>()
        / n;
    let between: f64 = ratios
        .iter()
        .map(|(one, other)| 2.0 * (f64::midpoint(*one, *other) - mean).powi(2))
        .sum();
    let within: f64 = ratios.iter().map(|(one, other)| (one - other).powi(2) / 2.0).sum();
    if between <= f64::EPSILON * (1.0 + mean.abs()) {
        return Some(false);
    }
    let share = between / (between + within);
    // P(F > f) with n - 1 and n degrees of freedom.
    Some(1.0 - incomplete_beta((n - 1.0) / 2.0, n / 2.0, share) < DISAGREE_BY_CHANCE)
}

/// What a ratio and its rounds say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RatioOutcome {
    /// `b` is lower than `a`.
    Lower,
    /// `b` is higher than `a`.
    Higher,
    /// No difference was seen; one of [`Ratio::detectable`] would have been.
    NotSeen,
    /// No difference was seen, and the rounds contradict each other: their mean describes none of
    /// them.
    Erratic,
}

impl RatioOutcome {
    /// The name in documents: `not_seen`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lower => "lower",
            Self::Higher => "higher",
            Self::NotSeen => "not_seen",
            Self::Erratic => "erratic",
        }
    }

    /// The outcome of a ratio. `disagree` is what [`rounds_disagree`] found.
    pub fn of(ratio: &Ratio, disagree: Option<bool>) -> Self {
        match (ratio.is_different(), disagree) {
            (true, _) if ratio.ratio < 1.0 => Self::Lower,
            (true, _) => Self::Higher,
            (false, Some(true)) => Self::Erratic,
            (false, _) => Self::NotSeen,
        }
    }
}

#[cfg(test)]
mod tests;
