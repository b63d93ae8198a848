//! Properties of the offered values: how often they repeat, and how much information they carry.
//!
//! There are two figures for the information. *Calculated*: from the fleet's value models
//! (`entropy`), exact within the limits stated there. *Estimated*: from the values alone, for any
//! workload, by [`Estimator`], which documents its errors.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::FixedState;

use super::hash::mix64;
use super::{Sent, Workload};
use crate::series::SeriesId;
use crate::time::Timestamp;

/// Maximum number of series of a simulated fleet that are examined, drawn at random.
const SERIES_MAX: usize = 2048;
/// Number of ticks examined per series, from the first that was sent: the model does not change.
const TICKS_MAX: u64 = 4096;
/// Maximum number of values of a recording that are examined. Whole series are drawn at random
/// until together they have this many.
const VALUES_MAX: u64 = 1 << 23;
/// Fewer differences than this allow no estimate of their distribution or unit.
const FEW: usize = 8;
/// Maximum number of decimals tried before a value counts as not decimal.
const DECIMALS_MAX: i32 = 9;

/// Properties of the values that a workload offered.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Offered {
    /// Share of values equal to the previous one in their series. in [0, 1]
    pub repeat_rate: f64,
    /// Estimated information per value, in bits; see [`Estimator`].
    pub entropy_bits: f64,
    /// Share of the values in series for which only an upper bound is known. in [0, 1]
    pub bounded_share: f64,
    /// Calculated information per value, in bits; `None` for a recording.
    pub calculated_bits: Option<f64>,
    /// Number of series behind the estimate.
    pub series: u64,
    /// Number of values behind the estimate.
    pub values: u64,
}

impl Workload {
    /// The properties of the operations in `issued` (a range of ticks per group).
    ///
    /// For a simulated fleet: the first 4,096 ticks of up to about 2,048 series drawn at random.
    /// For a recording: every value once (repeated passes are not counted again), or if there are
    /// more than 2^23 values, about that many in whole series drawn at random.
    pub fn offered(&self, issued: &[Range<u64>]) -> Offered {
        let mut replay = self.replay(Timestamp(0));
        let mut estimator = Estimator::new();
        let mut values = Vec::new();
        for id in self.drawn() {
            let Some((group, ticks)) = self.group_of(id).and_then(|group| Some((group, issued.get(group)?))) else {
                continue;
            };
            let life = self.lifetime(id).unwrap_or_default();
            let start = ticks.start.max(life.start);
            let most = match self.window() {
                Some(_) if estimator.values >= VALUES_MAX => break,
                Some(window) => self
                    .tick_times()
                    .map_or(window.ticks, |tick_times| tick_times[group].per_window()),
                None => TICKS_MAX,
            };
            let ticks = start..ticks.end.min(start.saturating_add(most));
            values.clear();
            replay.series(id, ticks, &mut |sent: &Sent<'_>| values.extend_from_slice(sent.values));
            estimator.add(&values);
        }
        Offered {
            calculated_bits: self.entropy_bits_per_sample(),
            ..estimator.finish()
        }
    }

    /// Series in a random order given by the seed; for a simulated fleet, about as many as are
    /// examined. A fixed stride would select the same position of every host.
    fn drawn(&self) -> Vec<SeriesId> {
        let count = self.catalog().len();
        let draw = |id: u32| mix64(self.spec().seed ^ mix64(u64::from(id) + 1));
        let share = SERIES_MAX as f64 / count as f64;
        let takes_all = self.window().is_some() || share >= 1.0;
        let limit = if takes_all {
            u64::MAX
        } else {
            (share * u64::MAX as f64) as u64
        };
        let mut drawn: Vec<u32> = (0..count as u32).filter(|&id| draw(id) <= limit).collect();
        if self.window().is_some() {
            drawn.sort_by_key(|&id| draw(id));
        }
        drawn.into_iter().map(SeriesId).collect()
    }

    /// The information per sample of the fleet at its start, calculated from its value models: the
    /// mean over its series, weighted by how often each reports. Timestamps and ids are not
    /// counted, since they follow from the plan. `None` for a recording.
    pub fn entropy_bits_per_sample(&self) -> Option<f64> {
        let (mut bits, mut weights) = (0.0, 0.0);
        for group in &self.layout.groups {
            let weight = 1.0 / group.interval_ns as f64;
            let blocks = &self.layout.blocks[group.blocks.clone()];
            for block in blocks.iter().filter(|block| block.ticks.start == 0) {
                for series in block.first..block.first + block.len {
                    bits += weight * self.model(series).entropy_bits()?;
                    weights += weight;
                }
            }
        }
        (weights > 0.0).then(|| bits / weights)
    }
}

/// Estimates repeat rate and entropy from the values of some series.
///
/// Per series, the values are converted to integers in units of their last decimal (up to nine).
/// The differences of neighbours are divided by the greatest common divisor of the series'
/// differences. The estimate is the order-0 entropy of these differences; the result is the mean
/// over the series, weighted by their number of values. Values that are not decimal are taken as
/// bit patterns, each XORed with the previous one.
///
/// If fewer than a quarter of a series' differences are distinct, the estimate is the plug-in
/// entropy with Miller and Madow's correction, (distinct - 1) / (2 n ln 2); its error is then
/// below a tenth of a bit. If more are distinct, the series is too short to show their
/// distribution. The estimate is then the entropy of sign and bit length of the difference, plus
/// that length minus one: an upper bound, as if differences of one length were equally likely (at
/// most about a bit too high for smooth distributions). If fewer than a quarter of the values
/// themselves are distinct, their entropy plus 64 bits once per distinct value is another bound,
/// and the lower of the two is used. For fewer than eight differences, the bound is the sum of
/// sign and bits of each.
///
/// Either way the estimate uses only differences. Longer patterns that a codec can learn (a
/// repeated window, a daily cycle) are not seen and make the figure too high: a store may need
/// fewer bits per sample.
#[derive(Debug, Default)]
pub struct Estimator {
    bits: f64,
    bounded: u64,
    repeats: u64,
    pairs: u64,
    series: u64,
    values: u64,
}

impl Estimator {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the values of one series, in order. Fewer than two are ignored.
    pub fn add(&mut self, values: &[f64]) {
        if values.len() < 2 {
            return;
        }
        let pairs = values.windows(2);
        self.repeats += pairs.filter(|pair| pair[0].to_bits() == pair[1].to_bits()).count() as u64;
        self.pairs += values.len() as u64 - 1;
        self.series += 1;
        self.values += values.len() as u64;
        let pairs = values.len() as u64 - 1;
        let mut least = entropy(&differences(values));
        if least.is_bound
            && let Some(bits) = entropy_of_levels(&values[1..]).filter(|bits| *bits < least.bits)
        {
            least.bits = bits;
        }
        self.bits += least.bits * pairs as f64;
        self.bounded += if least.is_bound { pairs } else { 0 };
    }

    /// The estimate.
    pub fn finish(&self) -> Offered {
        if self.pairs == 0 {
            return Offered::default();
        }
        Offered {
            repeat_rate: self.repeats as f64 / self.pairs as f64,
            entropy_bits: self.bits / self.pairs as f64,
            bounded_share: self.bounded as f64 / self.pairs as f64,
            calculated_bits: None,
            series: self.series,
            values: self.values,
        }
    }
}

/// A difference: whether it is negative, and its magnitude.
type Difference = (bool, u64);

/// The differences of neighbouring values.
fn differences(values: &[f64]) -> Vec<Difference> {
    let integers = (0..=DECIMALS_MAX).find_map(|decimals| as_integers(values, 10f64.powi(decimals)));
    let Some(integers) = integers else {
        let pairs = values.windows(2);
        return pairs
            .map(|pair| (false, pair[0].to_bits() ^ pair[1].to_bits()))
            .collect();
    };
    let sizes = integers.windows(2).map(|pair| pair[1].abs_diff(pair[0]));
    // With a single difference, the unit would be the difference itself.
    let unit = if values.len() > FEW {
        sizes.fold(0, gcd).max(1)
    } else {
        1
    };
    let pairs = integers.windows(2);
    pairs
        .map(|pair| (pair[1] < pair[0], pair[1].abs_diff(pair[0]) / unit))
        .collect()
}

/// Bits per value for a series with few repeated levels: which level it is, plus each level once.
/// `None` if there are many.
fn entropy_of_levels(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mut seen: HashMap<u64, u64, FixedState> = HashMap::default();
    for value in values {
        *seen.entry(value.to_bits()).or_default() += 1;
    }
    let is_few = seen.len() * 4 <= values.len();
    let mut counts: Vec<u64> = seen.into_values().collect();
    counts.sort_unstable();
    is_few.then(|| plug_in(&counts, n) + 64.0 * counts.len() as f64 / n)
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The values in units of `1 / scale`, if all are then integers.
fn as_integers(values: &[f64], scale: f64) -> Option<Vec<i64>> {
    let integer = |&value: &f64| {
        let scaled = (value * scale).round();
        let exact = scaled.abs() < 4e15 && (scaled / scale).to_bits() == value.to_bits();
        exact.then_some(scaled as i64)
    };
    values.iter().map(integer).collect()
}

/// Bits per difference.
#[derive(Clone, Copy, Debug)]
struct Entropy {
    bits: f64,
    is_bound: bool,
}

/// Bits per difference, by one of the two estimates.
fn entropy(differences: &[Difference]) -> Entropy {
    let n = differences.len() as f64;
    if differences.len() < FEW {
        let all: u32 = differences.iter().map(|&(_, size)| 65 - size.leading_zeros()).sum();
        let is_constant = differences.iter().all(|&(_, size)| size == 0);
        return Entropy {
            bits: if is_constant { 0.0 } else { f64::from(all) / n },
            is_bound: true,
        };
    }
    let mut seen: HashMap<Difference, u64, FixedState> = HashMap::default();
    for &difference in differences {
        *seen.entry(difference).or_default() += 1;
    }
    if seen.len() * 4 <= differences.len() {
        // Sorted, so that the sum does not depend on the order of the hash table.
        let mut counts: Vec<u64> = seen.into_values().collect();
        counts.sort_unstable();
        return Entropy {
            bits: plug_in(&counts, n) + (counts.len() - 1) as f64 / (2.0 * n * std::f64::consts::LN_2),
            is_bound: false,
        };
    }
    let mut classes = [0u64; 130];
    let mut inside = 0;
    for &(negative, size) in differences {
        let length = 64 - u64::from(size.leading_zeros());
        classes[length as usize + if negative { 65 } else { 0 }] += 1;
        inside += length.saturating_sub(1);
    }
    Entropy {
        bits: plug_in(&classes, n) + inside as f64 / n,
        is_bound: true,
    }
}

fn plug_in(counts: &[u64], n: f64) -> f64 {
    let seen = counts.iter().filter(|&&count| count > 0);
    seen.map(|&count| -(count as f64 / n) * (count as f64 / n).log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{FleetSpec, Shape, WorkloadSpec};

    fn of(fleet: FleetSpec, series: usize, ticks: u64) -> Offered {
        let spec = WorkloadSpec {
            series: Some(series),
            ..WorkloadSpec::new(fleet, 3)
        };
        let workload = Workload::new(&spec).unwrap();
        workload.offered(&vec![0..ticks; workload.groups().len()])
    }

    #[test]
    fn the_mix_holds_about_two_and_a_half_bits() {
        let offered = of(FleetSpec::Mix, 27_000, 1024);
        let calculated = offered.calculated_bits.unwrap();
        assert!((calculated - 2.5).abs() < 0.05, "{calculated}");
        // Only 2,048 of the series are estimated from, whence the width.
        assert!((offered.entropy_bits - calculated).abs() < 0.25, "{offered:?}");
        // Constants, what is repeated 59 times in 60, and steps of 0.
        assert!((0.55..0.70).contains(&offered.repeat_rate), "{offered:?}");
    }

    #[test]
    fn the_estimate_meets_the_calculation_model_by_model() {
        for (shape, _) in Shape::ALL {
            let offered = of(FleetSpec::Shape(shape), 300, 4096);
            let calculated = offered.calculated_bits.unwrap();
            let off = offered.entropy_bits - calculated;
            // Without memory there are two draws in each difference: too high, but not
            // by more than one draw. Wide steps are bounded from above only.
            let allowed = match shape {
                Shape::TimestampLike => 0.0..1.0,
                Shape::CounterWithResets => -0.1..0.5,
                Shape::NearConstant => 0.0..0.1,
                _ => -0.1..0.15,
            };
            assert!(allowed.contains(&off), "{shape:?}: {offered:?}");
        }
    }

    #[test]
    fn constants_and_nothing_hold_nothing() {
        let offered = of(FleetSpec::Heartbeat, 100, 50);
        assert_eq!(
            (offered.repeat_rate, offered.entropy_bits, offered.calculated_bits),
            (1.0, 0.0, Some(0.0))
        );
        assert_eq!(Estimator::new().finish(), Offered::default());
        let mut estimator = Estimator::new();
        estimator.add(&[f64::NAN]);
        estimator.add(&[f64::NAN, f64::NAN, f64::INFINITY]);
        assert_eq!(estimator.finish().repeat_rate, 0.5);
    }

    #[test]
    fn decimals_count_in_units_of_the_last() {
        let hundredths: Vec<f64> = (0..1000).map(|n| f64::from(n * 7 % 1000) / 100.0).collect();
        let mut estimator = Estimator::new();
        estimator.add(&hundredths);
        // Seven up, or 993 down once in 143 steps.
        assert!(estimator.finish().entropy_bits < 0.1, "{estimator:?}");
        assert_eq!(as_integers(&[0.25, -1.5], 1.0), None);
        assert_eq!(as_integers(&[0.25, -1.5], 100.0), Some(vec![25, -150]));
    }

    /// Two series, and one of them begins behind the first 4,096 ticks: the first ticks say
    /// nothing of it.
    #[test]
    fn a_recording_is_estimated_over_all_of_it() {
        let mut builder = crate::trace::TraceBuilder::new(crate::trace::Limits::default());
        let mut push = |name: &str, ticks: Range<i64>, value: &dyn Fn(i64) -> f64| {
            let id = builder.series(crate::series::SeriesKey::new(name)).unwrap();
            for tick in ticks {
                builder
                    .push(id, Timestamp::from_secs(tick * 300), value(tick), 0)
                    .unwrap();
            }
        };
        // 20 bits that no one can guess, for 4,096 ticks; then two levels, for ten times that.
        push("noise", 0..4096, &|tick| (mix64(tick as u64) >> 44) as f64);
        push("levels", 4096..45_056, &|tick| (mix64(tick as u64) >> 63) as f64);
        let trace = builder.finish();
        for fleet in ["trace:x", "trace:x?grid=none"] {
            let workload = Workload::of_trace(&WorkloadSpec::new(fleet.parse().unwrap(), 1), &trace).unwrap();
            let ticks = workload.window().unwrap().ticks;
            let whole = workload.offered(std::slice::from_ref(&(0..ticks)));
            // 20 to 21 bits, and 1.5 of differences of 0 and 1, weighted by 1 and 10.
            assert!((3.1..3.4).contains(&whole.entropy_bits), "{whole:?}");
            assert!((whole.bounded_share - 4095.0 / 45_054.0).abs() < 1e-9, "{whole:?}");
            assert_eq!((whole.series, whole.values), (2, 45_056));
            assert_eq!(
                workload.offered(std::slice::from_ref(&(0..10 * ticks))),
                whole,
                "what comes again is not counted again"
            );
            let begun = workload.offered(std::slice::from_ref(&(0..4096)));
            assert!(begun.entropy_bits > 19.5 && begun.bounded_share == 1.0, "{begun:?}");
        }
    }

    /// Divided by their greatest common divisor, one or two differences hold nothing.
    #[test]
    fn a_few_values_are_not_said_to_hold_nothing() {
        let mut estimator = Estimator::new();
        estimator.add(&[19.5, 19.75]);
        estimator.add(&[7.5, 7.25, 8.0]);
        let offered = estimator.finish();
        // Hundredths: 25 up; 25 down, 75 up. A sign and 5, 5 and 7 bits.
        assert_eq!((offered.entropy_bits, offered.bounded_share), (20.0 / 3.0, 1.0));
        estimator = Estimator::new();
        estimator.add(&[4.0, 4.0, 4.0]);
        assert_eq!(estimator.finish().entropy_bits, 0.0);
    }

    #[test]
    fn levels_that_come_back_are_no_news() {
        let mut estimator = Estimator::new();
        // 128 levels of 50 bits: their differences are nearly all distinct.
        let levels: Vec<f64> = (0..128).map(|level| (mix64(level) >> 14) as f64).collect();
        let values: Vec<f64> = (0..40_000).map(|n| levels[(mix64(n) >> 57) as usize]).collect();
        estimator.add(&values);
        let offered = estimator.finish();
        // Seven bits say which, and 64 bits what each is.
        assert!((7.1..7.3).contains(&offered.entropy_bits), "{offered:?}");
        assert_eq!(offered.bounded_share, 1.0);
    }
}
