//! Where a series of intervals becomes steady: its warm-up, and whether it drifts behind it.
//!
//! The warm-up is cut where the standard error of what remains is least (MSER: White 1997). What
//! remains counts as steady unless its two halves differ by more than their scatter explains,
//! where neighbours that resemble each other count as fewer.

use super::{moments, t_quantile};

/// Fewest values of a series in which a steady state can be found.
pub const SERIES_MIN: usize = 6;

/// A warm-up may take at most one part in this many of the series: what is cut later is no
/// warm-up.
const WARM_UP_PART: usize = 2;

/// One-sided confidence beyond which a difference within a series is no chance: of a hundred series
/// that are steady, about one is not called so.
const BEYOND_CHANCE: f64 = 0.995;

/// A difference within a series below this share of its mean changes no figure that is read.
const TRIFLE: f64 = 1e-3;

/// The steady part of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steady {
    /// Number of values before it: the warm-up.
    pub warm_up: usize,
    /// Whether its second half differs from its first by no more than chance explains.
    pub is_steady: bool,
}

/// Finds the steady part of a series. `None` for fewer than [`SERIES_MIN`] values, or one that is
/// not finite.
pub fn steady(series: &[f64]) -> Option<Steady> {
    if series.len() < SERIES_MIN || !series.iter().all(|value| value.is_finite()) {
        return None;
    }
    let error = |from: usize| moments(&series[from..]).map(|(_, error, _)| error);
    let warm_up = (0..=series.len() / WARM_UP_PART)
        .filter_map(|cut| Some((cut, error(cut)?)))
        .min_by(|(_, one), (_, other)| one.total_cmp(other))
        .map(|(cut, _)| cut)?;
    let warm_up = if begins_differently(series, warm_up) {
        warm_up
    } else {
        0
    };
    Some(Steady {
        warm_up,
        is_steady: !drifts(&series[warm_up..]),
    })
}

/// Whether the first `warm_up` values differ from the rest by more than the rest scatters:
/// otherwise the cut is chance.
fn begins_differently(series: &[f64], warm_up: usize) -> bool {
    let (head, rest) = series.split_at(warm_up);
    let Some((mean, error, freedom)) = moments(rest).filter(|_| warm_up > 0) else {
        return false;
    };
    let deviation = error * (rest.len() as f64).sqrt();
    let error = deviation * (1.0 / warm_up as f64 + 1.0 / effective_count(rest)).sqrt();
    let difference = (head.iter().sum::<f64>() / warm_up as f64 - mean).abs();
    difference > TRIFLE * mean.abs() && difference > t_quantile(BEYOND_CHANCE, freedom) * error
}

/// Whether the second half differs from the first beyond chance. The scatter is that about a
/// straight line, which does not take a drift for noise.
fn drifts(series: &[f64]) -> bool {
    let half = series.len() / 2;
    let (Some((first, ..)), Some((second, ..))) = (moments(&series[..half]), moments(&series[half..])) else {
        return false;
    };
    let residuals = about_a_line(series);
    let Some((_, error, freedom)) = moments(&residuals) else {
        return false;
    };
    let independent = effective_count(&residuals);
    // The means of two halves differ with twice the standard error of the whole.
    let error = 2.0 * error * (series.len() as f64 / independent).sqrt();
    let difference = (first - second).abs();
    difference > TRIFLE * first.abs() && difference > t_quantile(BEYOND_CHANCE, freedom.min(independent)) * error
}

/// A series without its straight line.
fn about_a_line(series: &[f64]) -> Vec<f64> {
    let len = series.len() as f64;
    let (middle, mean) = ((len - 1.0) / 2.0, series.iter().sum::<f64>() / len);
    let numbered = || series.iter().enumerate().map(|(i, value)| (i as f64 - middle, value));
    let slope = numbered().map(|(x, value)| x * value).sum::<f64>() / numbered().map(|(x, _)| x * x).sum::<f64>();
    numbered().map(|(x, value)| value - mean - slope * x).collect()
}

/// Number of independent values that a series of equal precision would have, from the correlation
/// of neighbours: n (1 - r) / (1 + r) for a positive r. From 2 to the length of the series.
pub fn effective_count(series: &[f64]) -> f64 {
    let len = series.len() as f64;
    let mean = series.iter().sum::<f64>() / len.max(1.0);
    let squares: f64 = series.iter().map(|value| (value - mean).powi(2)).sum();
    let products: f64 = series.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let correlation = if squares > 0.0 {
        (products / squares).clamp(0.0, 1.0)
    } else {
        0.0
    };
    (len * (1.0 - correlation) / (1.0 + correlation)).max(len.min(2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warm_up_is_cut_and_the_rest_is_steady() {
        let mut series = vec![900.0, 400.0, 160.0];
        series.extend([101.0, 99.0, 100.0, 102.0, 98.0, 100.0, 101.0, 99.0]);
        let found = steady(&series).unwrap();
        assert_eq!((found.warm_up, found.is_steady), (3, true));
    }

    #[test]
    fn a_series_that_keeps_rising_is_not_steady() {
        let series: Vec<f64> = (0..20).map(|i| 100.0 + f64::from(i)).collect();
        assert_eq!(steady(&series).map(|found| found.is_steady), Some(false));
    }

    #[test]
    fn a_constant_series_is_steady_from_its_beginning() {
        let found = steady(&[5.0; 10]).unwrap();
        assert_eq!((found.warm_up, found.is_steady), (0, true));
    }

    #[test]
    fn what_is_too_short_or_no_number_has_no_steady_state() {
        assert_eq!(steady(&[1.0; SERIES_MIN - 1]), None);
        assert_eq!(steady(&[1.0, 2.0, f64::NAN, 1.0, 2.0, 1.0, 1.0]), None);
    }

    #[test]
    fn neighbours_that_resemble_each_other_count_as_fewer() {
        let alternating: Vec<f64> = (0..40).map(|i| f64::from(i % 2)).collect();
        let slow: Vec<f64> = (0..40).map(|i| f64::from(i / 20)).collect();
        assert!((effective_count(&alternating) - 40.0).abs() < 1e-9);
        assert!(effective_count(&slow) < 5.0, "{}", effective_count(&slow));
        assert!(effective_count(&[1.0]) <= 1.0);
    }
}
