//! The universal scalability law: how throughput grows with concurrency.
//!
//! `X(n) = one * n / (1 + contention * (n - 1) + coherency * n * (n - 1))`, after N. J. Gunther, "A
//! General Theory of Computational Scalability Based on Rational Functions" (2008,
//! arXiv:0808.1431), where the three are called lambda, sigma and kappa.

use serde::{Deserialize, Serialize};

/// Fewest different counts for a fit: one more than the law has parameters.
pub const COUNTS_MIN: usize = 4;
/// Parameters of the law.
const PARAMETERS: usize = 3;

/// The law with its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Scalability {
    /// Throughput of one, per second.
    pub one_per_second: f64,
    /// The share of the work that one at a time does; 0 where throughput grows in proportion.
    pub contention: f64,
    /// What each pair costs to keep in agreement, as a share of the work of one; above 0,
    /// throughput falls beyond a peak.
    pub coherency: f64,
}

impl Scalability {
    /// Fits the law to throughputs at counts of 1 and more, `(count, per second)`, by the least
    /// squares of relative deviations; no parameter is negative.
    ///
    /// `None` for fewer than [`COUNTS_MIN`] different counts, or if a count is below 1 or a
    /// throughput not positive and finite.
    pub fn fit(points: &[(f64, f64)]) -> Option<Self> {
        let are_valid = points
            .iter()
            .all(|&(count, rate)| count >= 1.0 && count.is_finite() && rate > 0.0 && rate.is_finite());
        let mut counts: Vec<f64> = points.iter().map(|point| point.0).collect();
        counts.sort_unstable_by(f64::total_cmp);
        counts.dedup();
        if !are_valid || counts.len() < COUNTS_MIN {
            return None;
        }
        // n / X(n) is linear in 1/one, contention/one and coherency/one. Each row is divided by
        // n / X(n), so that all points weigh alike.
        let rows: Vec<[f64; PARAMETERS]> = points
            .iter()
            .map(|&(count, rate)| [1.0, count - 1.0, count * (count - 1.0)].map(|term| term * rate / count))
            .collect();
        // With so few parameters, the best fit without negative ones is the best of those that
        // leave out some.
        let best = [
            [true, true, true],
            [true, true, false],
            [true, false, true],
            [true, false, false],
        ]
        .into_iter()
        .filter_map(|used| least_squares(&rows, used))
        .filter(|solution| solution[0] > 0.0 && solution.iter().all(|&value| value >= 0.0))
        .min_by(|one, other| residual(&rows, one).total_cmp(&residual(&rows, other)))?;
        Some(Self {
            one_per_second: 1.0 / best[0],
            contention: best[1] / best[0],
            coherency: best[2] / best[0],
        })
    }

    /// The throughput at a count, per second.
    pub fn at(&self, count: f64) -> f64 {
        let waiting = self.contention * (count - 1.0) + self.coherency * count * (count - 1.0);
        self.one_per_second * count / (1.0 + waiting)
    }

    /// The count of the highest throughput; `None` if throughput grows at every count.
    pub fn peak(&self) -> Option<f64> {
        let peak = ((1.0 - self.contention).max(0.0) / self.coherency).sqrt();
        peak.is_finite().then_some(peak.max(1.0))
    }

    /// The largest relative distance of a throughput from the law: 0.05 is 5 %.
    pub fn largest_deviation(&self, points: &[(f64, f64)]) -> f64 {
        let deviation = |&(count, rate): &(f64, f64)| (rate / self.at(count) - 1.0).abs();
        points.iter().map(deviation).fold(0.0, f64::max)
    }
}

/// The sum of the squares of what the rows miss 1 by.
fn residual(rows: &[[f64; PARAMETERS]], solution: &[f64; PARAMETERS]) -> f64 {
    let miss = |row: &[f64; PARAMETERS]| 1.0 - row.iter().zip(solution).map(|(term, value)| term * value).sum::<f64>();
    rows.iter().map(|row| miss(row).powi(2)).sum()
}

/// The values of the columns in use with which the rows come closest to 1, and 0 for the others;
/// `None` if the rows do not determine them. By modified Gram-Schmidt, since the last two columns
/// are nearly parallel where counts are large.
fn least_squares(rows: &[[f64; PARAMETERS]], used: [bool; PARAMETERS]) -> Option<[f64; PARAMETERS]> {
    const DEPENDENT: f64 = 1e-12;
    let columns: Vec<usize> = (0..PARAMETERS).filter(|&column| used[column]).collect();
    let column = |index: usize| -> Vec<f64> { rows.iter().map(|row| row[index]).collect() };
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(PARAMETERS);
    let mut upper = [[0.0; PARAMETERS]; PARAMETERS];
    let mut right = [0.0; PARAMETERS];
    let mut rest = vec![1.0; rows.len()];
    for (at, &index) in columns.iter().enumerate() {
        let mut vector = column(index);
        let length = norm(&vector);
        for (earlier, direction) in basis.iter().enumerate() {
            upper[earlier][at] = dot(direction, &vector);
            subtract(&mut vector, direction, upper[earlier][at]);
        }
        let left = norm(&vector);
        if left <= length * DEPENDENT {
            return None;
        }
        upper[at][at] = left;
        for value in &mut vector {
            *value /= left;
        }
        right[at] = dot(&vector, &rest);
        subtract(&mut rest, &vector, right[at]);
        basis.push(vector);
    }
    let mut solution = [0.0; PARAMETERS];
    for at in (0..columns.len()).rev() {
        let known: f64 = (at + 1..columns.len())
            .map(|later| upper[at][later] * solution[columns[later]])
            .sum();
        solution[columns[at]] = (right[at] - known) / upper[at][at];
    }
    Some(solution)
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

fn norm(vector: &[f64]) -> f64 {
    dot(vector, vector).sqrt()
}

fn subtract(vector: &mut [f64], direction: &[f64], times: f64) {
    for (value, part) in vector.iter_mut().zip(direction) {
        *value -= part * times;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn law(one_per_second: f64, contention: f64, coherency: f64) -> Scalability {
        Scalability {
            one_per_second,
            contention,
            coherency,
        }
    }

    fn measured(law: &Scalability, counts: &[f64]) -> Vec<(f64, f64)> {
        counts.iter().map(|&count| (count, law.at(count))).collect()
    }

    fn near(got: f64, expected: f64) {
        assert!(
            (got - expected).abs() <= 1e-6 * expected.abs().max(1e-3),
            "{got} {expected}"
        );
    }

    #[test]
    fn the_law_is_found_again_from_its_own_throughputs() {
        let counts = [1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 1_024.0];
        for (one, contention, coherency) in [
            (995.6, 0.026_7, 0.000_769),
            (54_000.0, 0.3, 0.0),
            (10.0, 0.0, 0.01),
            (7.0, 0.0, 0.0),
        ] {
            let law = law(one, contention, coherency);
            let fitted = Scalability::fit(&measured(&law, &counts)).unwrap();
            near(fitted.one_per_second, one);
            near(fitted.contention, contention);
            near(fitted.coherency, coherency);
            assert!(fitted.largest_deviation(&measured(&law, &counts)) < 1e-9);
        }
    }

    #[test]
    fn the_peak_is_where_throughput_is_highest() {
        let law = law(995.6, 0.026_7, 0.000_769);
        let peak = law.peak().unwrap();
        near(peak, 35.576_252);
        assert!(law.at(peak) > law.at(peak * 1.01) && law.at(peak) > law.at(peak * 0.99));
        assert_eq!(self::law(1.0, 0.5, 0.0).peak(), None);
        assert_eq!(self::law(1.0, 2.0, 0.5).peak(), Some(1.0));
    }

    #[test]
    fn no_parameter_is_negative_where_throughput_grows_faster_than_the_count() {
        let fitted = Scalability::fit(&[(1.0, 10.0), (2.0, 21.0), (4.0, 44.0), (8.0, 90.0)]).unwrap();
        assert_eq!((fitted.contention, fitted.coherency), (0.0, 0.0));
        assert!((10.0..11.3).contains(&fitted.one_per_second), "{fitted:?}");
        assert!(fitted.largest_deviation(&[(1.0, 10.0)]) > 0.02);
    }

    #[test]
    fn too_few_counts_and_impossible_throughputs_have_no_fit() {
        let points = [(1.0, 10.0), (2.0, 19.0), (4.0, 30.0), (8.0, 40.0)];
        assert!(Scalability::fit(&points).is_some());
        assert_eq!(Scalability::fit(&points[..3]), None);
        let twice = [points[0], points[1], points[2], points[2]];
        assert_eq!(Scalability::fit(&twice), None);
        for wrong in [(0.5, 10.0), (16.0, 0.0), (16.0, f64::NAN), (f64::INFINITY, 10.0)] {
            let mut points = points.to_vec();
            points.push(wrong);
            assert_eq!(Scalability::fit(&points), None);
        }
    }
}
