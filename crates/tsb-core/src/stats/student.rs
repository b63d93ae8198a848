//! Quantiles of Student's t distribution, by inversion of its distribution function.

use super::beta::incomplete_beta;

/// The value that a t variate with `freedom` degrees of freedom does not exceed with probability
/// `probability`. Exact to about 1e-9; NaN if the probability is outside (0, 1) or `freedom` is
/// not positive.
pub fn t_quantile(probability: f64, freedom: f64) -> f64 {
    if !(probability > 0.0 && probability < 1.0 && freedom > 0.0) {
        return f64::NAN;
    }
    if probability < 0.5 {
        return -t_quantile(1.0 - probability, freedom);
    }
    let mut high = 1.0;
    while distribution(high, freedom) < probability && high < 1e12 {
        high *= 2.0;
    }
    root(|t| distribution(t, freedom) - probability, 0.0, high)
}

/// Where a rising function crosses 0 between `low` and `high`: regula falsi, with the end that
/// stays halved (Illinois).
fn root(function: impl Fn(f64) -> f64, mut low: f64, mut high: f64) -> f64 {
    let (mut at_low, mut at_high) = (function(low), function(high));
    let mut last_was_low = None;
    for _ in 0..200 {
        let middle = (low * at_high - high * at_low) / (at_high - at_low);
        let value = function(middle);
        if !middle.is_finite() || high - low <= 1e-13 * high || value == 0.0 {
            return if middle.is_finite() {
                middle
            } else {
                f64::midpoint(low, high)
            };
        }
        let is_low = value < 0.0;
        if is_low {
            (low, at_low) = (middle, value);
            at_high *= if last_was_low == Some(true) { 0.5 } else { 1.0 };
        } else {
            (high, at_high) = (middle, value);
            at_low *= if last_was_low == Some(false) { 0.5 } else { 1.0 };
        }
        last_was_low = Some(is_low);
        if value.abs() < 1e-15 {
            return middle;
        }
    }
    f64::midpoint(low, high)
}

/// P(T <= t) for t >= 0.
fn distribution(t: f64, freedom: f64) -> f64 {
    1.0 - 0.5 * incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_agree_with_published_tables() {
        // R: qt(0.975, c(1, 2, 5, 9, 30, 1000)), qt(0.8, 4), qt(0.9995, 3)
        let check = |probability, freedom, expected: f64| {
            let got = t_quantile(probability, freedom);
            assert!(
                (got - expected).abs() < 1e-6 * expected.abs(),
                "{freedom}: {got} {expected}"
            );
        };
        check(0.975, 1.0, 12.706_204_736);
        check(0.975, 2.0, 4.302_652_730);
        check(0.975, 5.0, 2.570_581_836);
        check(0.975, 9.0, 2.262_157_163);
        check(0.975, 30.0, 2.042_272_456);
        check(0.975, 1000.0, 1.962_339_081);
        check(0.8, 4.0, 0.940_964_577);
        check(0.9995, 3.0, 12.923_978_637);
        check(0.025, 9.0, -2.262_157_163);
        assert!(t_quantile(0.5, 7.0).abs() < 1e-9);
        assert!(t_quantile(1.0, 7.0).is_nan() && t_quantile(0.9, 0.0).is_nan());
    }
}
