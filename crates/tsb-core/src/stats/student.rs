//! Quantiles of Student's t distribution, by bisection of its distribution function.

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
    let mut low = 0.0;
    for _ in 0..80 {
        let middle = f64::midpoint(low, high);
        if distribution(middle, freedom) < probability {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// P(T <= t) for t >= 0.
fn distribution(t: f64, freedom: f64) -> f64 {
    1.0 - 0.5 * incomplete_beta(freedom / 2.0, 0.5, freedom / (freedom + t * t))
}

/// The regularised incomplete beta function, by its continued fraction (Abramowitz and
/// Stegun 26.5.8), evaluated from the front by Lentz's method.
fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 || x >= 1.0 {
        return x.clamp(0.0, 1.0);
    }
    let front = (ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (1.0 - x).ln()).exp();
    if x < (a + 1.0) / (a + b + 2.0) {
        front * fraction(a, b, x) / a
    } else {
        1.0 - front * fraction(b, a, 1.0 - x) / b
    }
}

fn fraction(a: f64, b: f64, x: f64) -> f64 {
    let apart = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
    let mut d = 1.0 / apart(1.0 - (a + b) * x / (a + 1.0));
    let (mut c, mut result) = (1.0, d);
    for m in 1..500 {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut step = 1.0;
        for term in [even, odd] {
            d = 1.0 / apart(1.0 + term * d);
            c = apart(1.0 + term / c);
            step = c * d;
            result *= step;
        }
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    result
}

/// The logarithm of the gamma function for x > 0, by Lanczos' approximation (g = 7, 9
/// terms).
fn ln_gamma(x: f64) -> f64 {
    const TERMS: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let terms = TERMS.iter().zip(1..);
    let sum = terms.fold(0.999_999_999_999_809_9, |sum, (term, i)| {
        sum + term / (x + f64::from(i))
    });
    let t = x + 7.5;
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
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
