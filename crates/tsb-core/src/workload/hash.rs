//! The counter-based hash behind every generated value.
//!
//! Nothing here has a state: a draw is a function of (seed, series, tick), so any part
//! of a workload can be made again, in any order, on any machine.
//!
//! The key of a series and the key of a tick are each hashed to 64 well-mixed bits once;
//! a draw folds their XOR with one 32x32->64 multiplication. That product is what the
//! baseline instruction set of x86-64 can do for two lanes at once (64-bit products and
//! rotations it cannot), so a loop over series or over ticks becomes vector code without
//! any help.

/// 32 bits in a 64-bit lane.
const LOW: u64 = 0xffff_ffff;

/// 2^52 as bits: a 32-bit integer in the low half of such a number reads 2^52 + integer.
const TWO_52_BITS: u64 = 0x4330_0000_0000_0000;
const TWO_52: f64 = 4_503_599_627_370_496.0;

/// What a draw is for. Draws of different purposes are independent of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Purpose {
    /// The step or noise of a tick; also whether a repeated value changes.
    Step = 1,
    /// The tick itself, the other half of every draw.
    Tick = 2,
    /// Whether a counter resets.
    Reset = 3,
    /// The parameters of a series.
    Law = 4,
    /// Which family a series belongs to.
    Family = 5,
    /// The value that a repeated series changes to.
    Level = 6,
    /// When in its interval a host reports.
    Phase = 7,
    /// How often a host reports.
    Interval = 8,
    /// Names that are made up: zones, applications.
    Name = 9,
    /// The order in which hosts churn.
    Churn = 10,
    /// What happens to a sample on its way.
    Disorder = 11,
    /// How late a late sample is.
    Delay = 12,
    /// How far a timestamp is off.
    Jitter = 13,
    /// Where in a recording a copy starts.
    Shift = 14,
}

/// A bijection of 64 bits in which every input bit sways every output bit (the
/// finaliser of SplitMix64, Stafford's variant 13).
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
    f64::from_bits(draw(series_key, tick_key) | TWO_52_BITS) - TWO_52
}

/// A slow stream of draws, for what is drawn once: parameters, names, phases.
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

    /// 64 bits.
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

/// A probability as a threshold: `draw < threshold` happens that often.
pub(crate) fn threshold(probability: f64) -> u64 {
    (probability.clamp(0.0, 1.0) * 4_294_967_296.0).round() as u64
}
