//! Poisson arrivals: exponential gaps from a counter-based hash, in integers.
//!
//! Gap `n` is a function of (seed, n) only. Gaps are summed as fixed-point multiples of the mean
//! gap (32 fractional bits) in 128 bits, and the sum is multiplied by the exact rate. So each
//! operation is rounded once, and rounding errors do not accumulate.

use super::rate::Rate;

const STEPS: usize = 1024;
/// ln 2 with 32 fractional bits.
const LN_2: u64 = 2_977_044_472;
/// log2(1 + i / STEPS) with 32 fractional bits; two entries beyond i = STEPS for the differences.
const LOG2: [u64; STEPS + 2] = log2_table();

/// The due times of a Poisson process, in order.
#[derive(Clone, Debug)]
pub struct PoissonGaps {
    rate: Rate,
    seed: u64,
    n: u64,
    // Multiples of the mean gap, with 32 fractional bits.
    sum: u128,
}

impl PoissonGaps {
    /// Positioned at operation 0, which is due one gap after the start.
    pub fn new(rate: Rate, seed: u64) -> Self {
        let mut gaps = Self {
            rate,
            seed,
            n: 0,
            sum: 0,
        };
        gaps.sum = u128::from(gap(seed, 0));
        gaps
    }

    /// Moves to the next operation.
    #[inline]
    pub fn advance(&mut self) {
        self.n += 1;
        self.sum += u128::from(gap(self.seed, self.n));
    }

    /// Due time of the current operation; `None` at a rate of 0.
    #[inline]
    pub fn due(&self) -> Option<u64> {
        let (events, per) = (u128::from(self.rate.events()), u128::from(self.rate.per_ns()));
        if events == 0 {
            return None;
        }
        // Divides whole * per by events and carries the remainder, so that no product exceeds
        // 2^128.
        let (whole, part) = (self.sum >> 32, self.sum & 0xffff_ffff);
        let scaled = whole.saturating_mul(per);
        let rest = ((scaled % events) << 32) + part * per;
        let due = scaled / events + rest / (events << 32);
        Some(u64::try_from(due).unwrap_or(u64::MAX))
    }
}

/// An exponential variate with mean 1, with 32 fractional bits.
#[inline]
fn gap(seed: u64, n: u64) -> u64 {
    let bits = mix(mix(seed).wrapping_add(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
    ((u128::from(minus_log2(bits)) * u128::from(LN_2)) >> 32) as u64
}

/// -log2((bits + 1) / 2^64), with 32 fractional bits.
#[inline]
fn minus_log2(bits: u64) -> u64 {
    let Some(x) = bits.checked_add(1) else {
        return 0;
    };
    let zeros = x.leading_zeros();
    let mantissa = x << zeros;
    let index = ((mantissa >> 53) & (STEPS as u64 - 1)) as usize;
    let t = ((mantissa >> 21) & 0xffff_ffff) as i128;
    let (a, b, c) = (LOG2[index] as i128, LOG2[index + 1] as i128, LOG2[index + 2] as i128);
    // Newton's forward formula with the second difference: error below 1e-9.
    let one = 1i128 << 32;
    let curved = ((t * (t - one)) >> 33) * (c - 2 * b + a);
    let log = a + (((b - a) * t + curved) >> 32);
    (((u64::from(zeros) + 1) << 32) as i128 - log).max(0) as u64
}

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): every output bit depends on every input
/// bit.
#[inline]
pub(crate) const fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Computes the logarithms bit by bit: squaring a number doubles its logarithm.
const fn log2_table() -> [u64; STEPS + 2] {
    let mut table = [0; STEPS + 2];
    let mut i = 0;
    while i < STEPS + 2 {
        // 62 fractional bits; in [1, 2 + 1/STEPS]
        let mut x = (1u128 << 62) + ((i as u128) << 52);
        let mut log: u64 = 0;
        if x >= 2 << 62 {
            x >>= 1;
            log = 1 << 32;
        }
        let mut bit = 1u64 << 31;
        while bit > 0 {
            x = (x * x) >> 62;
            if x >= 2 << 62 {
                x >>= 1;
                log += bit;
            }
            bit >>= 1;
        }
        table[i] = log;
        i += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_agrees_with_floating_point() {
        for i in [0, 1, 2, 511, 512, 1023, 1024] {
            let expected = (1.0 + i as f64 / STEPS as f64).log2();
            assert!((LOG2[i] as f64 / 2f64.powi(32) - expected).abs() < 1e-9, "{i}");
        }
        for n in 0..20_000 {
            let bits = mix(n);
            let expected = 64.0 - ((bits as f64) + 1.0).log2();
            let got = minus_log2(bits) as f64 / 2f64.powi(32);
            assert!((got - expected).abs() < 2e-9, "{bits}: {got} {expected}");
        }
        assert_eq!(minus_log2(u64::MAX), 0);
        assert_eq!(minus_log2(0), 64 << 32);
    }

    #[test]
    fn the_gaps_are_exponential() {
        let n = 200_000u64;
        let gaps: Vec<f64> = (0..n).map(|i| gap(42, i) as f64 / 2f64.powi(32)).collect();
        let mean = gaps.iter().sum::<f64>() / n as f64;
        let square = gaps.iter().map(|g| g * g).sum::<f64>() / n as f64;
        // Standard errors: 1 / sqrt(n) and sqrt(20 / n).
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
        assert!((square - 2.0).abs() < 0.05, "{square}");
        for limit in [0.1, 0.5, 1.0, 3.0] {
            let above = gaps.iter().filter(|&&g| g > limit).count() as f64 / n as f64;
            assert!((above - f64::exp(-limit)).abs() < 0.005, "{limit}: {above}");
        }
    }
}
