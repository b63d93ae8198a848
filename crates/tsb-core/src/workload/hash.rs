//! The counter-based hash behind every generated value.
//!
//! There is no state: a draw is a function of (seed, series, tick), so any part of a workload can
//! be regenerated, in any order, on any machine.
//!
//! The key of a series and the key of a tick are each hashed to 64 well-mixed bits once; a draw
//! folds their XOR with one 32x32->64 multiplication. The baseline instruction set of x86-64 can
//! do two of these at once, but neither 64-bit products nor rotations, so the compiler vectorizes
//! loops over series or ticks without help.

/// The low 32 bits of a 64-bit lane.
const LOW: u64 = 0xffff_ffff;

/// The bits of 2^52: with a 32-bit integer in its low half, the float is 2^52 + integer.
const TWO_52_BITS: u64 = 0x4330_0000_0000_0000;
/// 2^52.
pub(crate) const TWO_52: f64 = 4_503_599_627_370_496.0;

/// The purpose of a draw. Draws for different purposes are independent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Purpose {
    /// The step or noise of a tick; also whether a repeated value changes.
    Step = 1,
    /// The tick's half of every draw.
    Tick = 2,
    /// The parameters of a series.
    ValueModel = 3,
    /// The family of a series.
    Family = 4,
    /// The new value of a repeated series.
    Level = 5,
    /// The phase of a host in its interval.
    Phase = 6,
    /// The interval of a host.
    Interval = 7,
    /// Invented names: zones, applications.
    Name = 8,
    /// Whether a sample is late, missing, doubled or swapped.
    Disorder = 9,
    /// The jitter of a timestamp.
    Jitter = 10,
    /// The position in a recording at which a copy starts.
    Shift = 11,
}

/// A bijection of 64 bits in which every input bit affects every output bit (the finaliser of
/// SplitMix64, Stafford's variant 13).
#[inline]
pub(crate) const fn mix64(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The key of `index` (a series, a tick, a host) for one purpose: 64 mixed bits.
#[inline]
pub(crate) const fn key(seed: u64, purpose: Purpose, index: u64) -> u64 {
    let stream = mix64(seed.wrapping_add((purpose as u64).wrapping_mul(0xd6e8_feb8_6659_fd93)));
    mix64(stream.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

/// The draw of one series at one tick: uniform below 2^32.
#[inline(always)]
pub(crate) const fn draw(series_key: u64, tick_key: u64) -> u64 {
    let x = series_key ^ tick_key;
    let product = (x & LOW) * (x >> 32);
    (product ^ (product >> 32)) & LOW
}

/// The same draw as an `f64`, exactly.
#[inline(always)]
pub(crate) fn draw_f64(series_key: u64, tick_key: u64) -> f64 {
    draw_on_two_52(series_key, tick_key) - TWO_52
}

/// The draw plus 2^52: saves one subtraction, and compares the same.
#[inline(always)]
pub(crate) fn draw_on_two_52(series_key: u64, tick_key: u64) -> f64 {
    f64::from_bits(draw(series_key, tick_key) | TWO_52_BITS)
}

/// A draw that is uniform below `count` (at most 2^32), plus 2^52, exactly.
#[inline(always)]
pub(crate) fn below_on_two_52(series_key: u64, tick_key: u64, count: u32) -> f64 {
    f64::from_bits(((draw(series_key, tick_key) * u64::from(count)) >> 32) | TWO_52_BITS)
}

/// A sequential, slower stream of draws for things drawn once: parameters, names, phases.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    key: u64,
    drawn: u64,
}

impl Stream {
    /// The stream of `index` for one purpose.
    pub(crate) fn new(seed: u64, purpose: Purpose, index: u64) -> Self {
        Self {
            key: key(seed, purpose, index),
            drawn: 0,
        }
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.drawn += 1;
        mix64(self.key.wrapping_add(self.drawn.wrapping_mul(0x9e37_79b9_7f4a_7c15)))
    }

    /// Uniform below `bound`; 0 when `bound` is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// Uniform in [0, 1).
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }
}

/// Converts a probability to a threshold: `draw < threshold` with that probability.
pub(crate) fn threshold(probability: f64) -> u64 {
    (probability.clamp(0.0, 1.0) * 4_294_967_296.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERIES: u64 = 600;
    const TICKS: u64 = 1500;

    /// How far counts are from uniform, in standard deviations of chi squared.
    fn deviation(counts: &[u64]) -> f64 {
        let expected = counts.iter().sum::<u64>() as f64 / counts.len() as f64;
        let chi: f64 = counts
            .iter()
            .map(|&count| (count as f64 - expected).powi(2) / expected)
            .sum();
        let freedom = (counts.len() - 1) as f64;
        (chi - freedom) / (2.0 * freedom).sqrt()
    }

    fn check(what: &str, buckets: usize, bucket: impl Fn(u64, u64) -> u64) {
        let mut counts = vec![0; buckets];
        for series in 0..SERIES {
            for tick in 0..TICKS {
                counts[bucket(series, tick) as usize] += 1;
            }
        }
        // Five sigma: the seed is fixed, so this never fails by chance from one day to the next.
        assert!(deviation(&counts).abs() < 5.0, "{what}: {}", deviation(&counts));
    }

    #[test]
    fn draws_are_uniform_and_independent_of_their_neighbours() {
        let series: Vec<u64> = (0..=SERIES).map(|index| key(5, Purpose::Step, index)).collect();
        let ticks: Vec<u64> = (0..=TICKS).map(|index| key(5, Purpose::Tick, index)).collect();
        let at = |s: u64, t: u64| draw(series[s as usize], ticks[t as usize]);
        check("high bits", 4096, |s, t| at(s, t) >> 20);
        check("middle bits", 4096, |s, t| at(s, t) >> 10 & 0xfff);
        check("low bits", 4096, |s, t| at(s, t) & 0xfff);
        check("a series and the next", 4096, |s, t| {
            at(s, t) >> 26 << 6 | at(s + 1, t) >> 26
        });
        check("a tick and the next", 4096, |s, t| {
            at(s, t) >> 26 << 6 | at(s, t + 1) >> 26
        });
        check("a square", 4096, |s, t| {
            (at(s, t) ^ at(s + 1, t) ^ at(s, t + 1) ^ at(s + 1, t + 1)) >> 20
        });
        check("below 7", 7, |s, t| (at(s, t) * 7) >> 32);
        let other = |s: u64, t: u64| draw(key(5, Purpose::Disorder, s), ticks[t as usize]);
        check("purposes", 256, |s, t| at(s, t) >> 28 << 4 | other(s, t) >> 28);
    }

    #[test]
    fn every_series_is_uniform_by_itself_and_every_tick_too() {
        let spread = |outer: u64, inner: u64, of: &dyn Fn(u64, u64) -> u64| {
            let deviations = (0..outer).map(|a| {
                let mut counts = [0; 16];
                (0..inner).for_each(|b| counts[(of(a, b) >> 28) as usize] += 1);
                deviation(&counts)
            });
            let squares: f64 = deviations.map(|x| x * x).sum();
            (squares / outer as f64).sqrt()
        };
        let series = |s| key(9, Purpose::Step, s);
        let tick = |t| key(9, Purpose::Tick, t);
        let by_series = spread(300, 2000, &|s, t| draw(series(s), tick(t)));
        let by_tick = spread(300, 2000, &|t, s| draw(series(s), tick(t)));
        assert!((0.85..1.15).contains(&by_series), "{by_series}");
        assert!((0.85..1.15).contains(&by_tick), "{by_tick}");
    }

    #[test]
    fn a_draw_reads_the_same_in_every_form() {
        let (series, tick) = (key(1, Purpose::Step, 2), key(1, Purpose::Tick, 3));
        let plain = draw(series, tick);
        assert!(plain < 1 << 32);
        assert_eq!(draw_f64(series, tick), plain as f64);
        assert_eq!(draw_on_two_52(series, tick) - TWO_52, plain as f64);
        assert_eq!(
            below_on_two_52(series, tick, 1000) - TWO_52,
            ((plain * 1000) >> 32) as f64
        );
        assert_eq!(threshold(0.5), 1 << 31);
        assert_eq!((threshold(0.0), threshold(1.0)), (0, 1 << 32));
    }

    #[test]
    fn streams_keep_to_their_bounds() {
        let mut stream = Stream::new(4, Purpose::ValueModel, 0);
        let mut counts = [0; 10];
        for _ in 0..20_000 {
            counts[stream.below(10) as usize] += 1;
            assert!((0.0..1.0).contains(&stream.fraction()));
        }
        assert!(deviation(&counts).abs() < 5.0, "{counts:?}");
        assert_eq!(stream.below(0), 0);
    }
}
