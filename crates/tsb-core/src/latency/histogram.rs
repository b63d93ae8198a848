//! A histogram of nanoseconds: an HdrHistogram with two significant digits over all of u64, and
//! beside it the smallest and the largest value, which it has only to the width of a bucket.
//!
//! Values below 256 have a bucket each; above, there are 128 buckets per doubling (width 1/128 to
//! 1/256 of the value), 7,424 in all.

use hdrhistogram::Histogram as Hdr;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Significant digits of every histogram, also in the log of intervals. `RESERVED_BYTES`, `CELLS` and the
/// sizes in the docs follow from it.
pub(super) const DIGITS: u8 = 2;

/// The largest value that the crate is given: its last bucket ends here by its own account, so it
/// refuses to add a histogram in which it has counted `u64::MAX`.
const LAST: u64 = u64::MAX - 1;

/// Most values of a histogram that is read from a text, so that thousands of them can be added.
const COUNT_MAX: u64 = 1 << 53;

/// Counts by bucket, with the exact smallest and largest value.
#[derive(Clone, PartialEq)]
pub struct Histogram {
    counts: Hdr<u64>,
    // Invariant: u64::MAX while nothing is recorded.
    min: u64,
    max: u64,
}

impl std::fmt::Debug for Histogram {
    /// Prints the summary and not the thousands of buckets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count())
            .field("min", &self.min())
            .field("max", &self.max())
            .finish()
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram. It takes 58 KiB.
    pub fn new() -> Self {
        Self {
            counts: Hdr::new_with_bounds(1, u64::MAX, DIGITS)
                .unwrap_or_else(|error| unreachable!("the bounds are constants, and valid: {error}")),
            min: u64::MAX,
            max: 0,
        }
    }

    /// Records one value.
    #[inline(always)]
    pub fn record(&mut self, value: u64) {
        self.record_n(value, 1);
    }

    /// Records one value `n` times.
    #[inline(always)]
    pub fn record_n(&mut self, value: u64, n: u64) {
        self.count_in_bucket(value, n);
        self.reach(value, value);
    }

    /// Adds to the count of the bucket that `value` lies in.
    #[inline(always)]
    pub(super) fn count_in_bucket(&mut self, value: u64, n: u64) {
        self.counts.saturating_record_n(value.min(LAST), n);
    }

    /// Has the smallest value be no more than `min`, and the largest no less than `max`.
    #[inline(always)]
    pub(super) fn reach(&mut self, min: u64, max: u64) {
        self.min = self.min.min(min);
        self.max = self.max.max(max);
    }

    /// Adds all values of `other`. The crate can do so, since the bounds of all are the same.
    pub fn merge(&mut self, other: &Self) {
        self.counts += &other.counts;
        self.reach(other.min, other.max);
    }

    /// Removes all values and keeps the allocation.
    pub fn clear(&mut self) {
        if !self.counts.is_empty() {
            self.counts.reset();
            (self.min, self.max) = (u64::MAX, 0);
        }
    }

    /// Number of values recorded.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// The smallest value, exact; `None` when empty.
    pub fn min(&self) -> Option<u64> {
        (!self.counts.is_empty()).then_some(self.min)
    }

    /// The largest value, exact; `None` when empty.
    pub fn max(&self) -> Option<u64> {
        (!self.counts.is_empty()).then_some(self.max)
    }

    /// A value that at least a share `quantile` (in [0, 1]) of the values does not exceed: the
    /// upper edge of the first such bucket, but never above the largest value; the smallest value
    /// itself at 0, and the largest itself at 1. `None` when empty.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        // Not left to the crate: beyond 2^53 values it may round their number up, and finds none.
        if quantile >= 1.0 {
            return self.max();
        }
        let (min, max) = (self.min()?, self.max);
        Some(self.counts.value_at_quantile(quantile).clamp(min, max))
    }

    /// The quantile, if at least [`super::BEYOND_MIN`] values lie beyond it.
    pub fn supported_quantile(&self, quantile: f64) -> Option<u64> {
        // 1e-6 absorbs rounding errors: 10,000 * (1 - 0.999) is 10.000000000000009, and other
        // products fall short by as much.
        let beyond = (self.count() as f64 * (1.0 - quantile) + 1e-6) as u64;
        (beyond >= super::BEYOND_MIN).then(|| self.quantile(quantile)).flatten()
    }

    /// Number of values that are certainly above `value`: those in buckets entirely beyond it.
    pub fn count_above(&self, value: u64) -> u64 {
        self.count() - self.counts.count_between(0, value)
    }

    /// (smallest value, count) of each used bucket, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        // The crate walks to the largest value, and through all buckets where there is none.
        let used = (!self.counts.is_empty()).then(|| self.counts.iter_recorded());
        used.into_iter().flatten().map(|used| {
            let lowest = self.counts.lowest_equivalent(used.value_iterated_to());
            (lowest, used.count_at_value())
        })
    }

    /// The number of values of the bucket that `value` lies in.
    pub(super) fn width_at(&self, value: u64) -> u64 {
        self.counts.equivalent_range(value)
    }
}

impl Serialize for Histogram {
    /// All of it: smallest and largest value, then the smallest value and the count of each used
    /// bucket; nothing if it is empty.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let extremes = self.min().zip(self.max()).map(|(min, max)| [min, max]);
        let buckets = self.buckets().flat_map(|(lowest, count)| [lowest, count]);
        serializer.collect_seq(extremes.into_iter().flatten().chain(buckets))
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let numbers = Vec::<u64>::deserialize(deserializer)?;
        let mut histogram = Self::new();
        let [min, max, buckets @ ..] = &numbers[..] else {
            return if numbers.is_empty() {
                Ok(histogram)
            } else {
                Err(D::Error::custom("a histogram has two extremes"))
            };
        };
        let (buckets, rest) = buckets.as_chunks::<2>();
        let count = buckets.iter().try_fold(0u64, |sum, [_, count]| sum.checked_add(*count));
        let is_counted = count.is_some_and(|count| (1..=COUNT_MAX).contains(&count));
        if !rest.is_empty() || !is_counted || min > max {
            return Err(D::Error::custom(
                "a histogram has extremes in order, and pairs of value and count",
            ));
        }
        for &[lowest, count] in buckets {
            histogram.count_in_bucket(lowest, count);
        }
        histogram.reach(*min, *max);
        Ok(histogram)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_value_has_a_bucket_no_wider_than_a_128th_of_it() {
        let edges = (0..64).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1, 3 << bit.min(62)]);
        for value in edges.chain((0..100_000).map(|i| i * 7919)).chain([u64::MAX]) {
            let mut one = Histogram::new();
            one.record(value);
            let buckets: Vec<(u64, u64)> = one.buckets().collect();
            let [(lowest, 1)] = buckets[..] else {
                panic!("{value}: {buckets:?}")
            };
            let width = one.width_at(value);
            assert!(lowest <= value && value - lowest < width, "{value}: {lowest}, {width}");
            assert!(width <= (value / 128).max(1), "{value}: {width}");
            assert_eq!(one.width_at(lowest), width, "{value}");
        }
    }

    #[test]
    fn the_extremes_of_u64_are_kept_as_they_are() {
        let mut histogram = from(&[u64::MAX, 0, u64::MAX]);
        assert_eq!(
            (histogram.count(), histogram.min(), histogram.max()),
            (3, Some(0), Some(u64::MAX))
        );
        assert_eq!(
            (histogram.quantile(0.0), histogram.quantile(1.0)),
            (Some(0), Some(u64::MAX))
        );
        assert_eq!((histogram.count_above(0), histogram.count_above(u64::MAX)), (2, 0));
        histogram.merge(&histogram.clone());
        assert_eq!(histogram, from(&[0, 0, u64::MAX, u64::MAX, u64::MAX, u64::MAX]));
        histogram.clear();
        assert_eq!((&histogram, histogram.max()), (&Histogram::new(), None));
    }

    #[test]
    fn a_quantile_is_between_the_extremes_however_many_values_there_are() {
        let mut histogram = Histogram::new();
        histogram.record_n(1_000_003, (1 << 53) + 2);
        histogram.record(1_000_001);
        assert_eq!(histogram.quantile(0.0), Some(1_000_001));
        assert_eq!(histogram.quantile(0.5), Some(1_000_003));
        assert_eq!(histogram.quantile(1.0), Some(1_000_003));
    }

    #[test]
    fn a_quantile_needs_ten_values_beyond_it() {
        let mut histogram = Histogram::new();
        assert_eq!(histogram.quantile(0.5), None);
        histogram.record_n(5, 999);
        assert_eq!(histogram.supported_quantile(0.5), Some(5));
        assert_eq!(histogram.supported_quantile(0.99), None);
        histogram.record(900);
        assert_eq!(histogram.supported_quantile(0.99), Some(5));
        assert_eq!(histogram.supported_quantile(0.999), None);
        let summary = super::super::Summary::new(&histogram, 54_000);
        assert_eq!(
            (summary.count, summary.max_ns, summary.p999_ns),
            (1000, Some(900), None)
        );
        let json = serde_json::to_string(&summary).unwrap();
        assert_eq!(
            json,
            r#"{"count":1000,"samples":54000,"p50_ns":5,"p90_ns":5,"p99_ns":5,"max_ns":900}"#
        );
    }

    fn from(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for &value in values {
            histogram.record(value);
        }
        histogram
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn a_quantile_is_the_ranked_value_within_a_bucket(
            mut values in prop::collection::vec(prop_oneof![0u64..2000, any::<u64>()], 1..200),
            q in 0.0f64..=1.0,
        ) {
            let histogram = from(&values);
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1];
            let got = histogram.quantile(q).unwrap();
            prop_assert!(got >= exact && got - exact <= exact / 128);
            prop_assert_eq!(histogram.max(), values.last().copied());
            prop_assert_eq!(histogram.min(), values.first().copied());
        }

        #[test]
        fn a_merged_quantile_is_that_of_the_union_also_from_texts(
            parts in prop::collection::vec(prop::collection::vec(prop_oneof![0u64..2_000, any::<u64>()], 0..60), 1..6),
            q in 0.0f64..=1.0,
        ) {
            let mut merged = Histogram::new();
            for part in &parts {
                let text = serde_json::to_string(&from(part)).unwrap();
                let read: Histogram = serde_json::from_str(&text).unwrap();
                prop_assert_eq!(&read, &from(part));
                merged.merge(&read);
            }
            let union = from(&parts.concat());
            prop_assert_eq!(merged.quantile(q), union.quantile(q));
            prop_assert_eq!(merged, union);
        }

        #[test]
        fn any_numbers_are_a_histogram_or_an_error(numbers in prop::collection::vec(any::<u64>(), 0..9)) {
            let text = serde_json::to_string(&numbers).unwrap();
            if let Ok(read) = serde_json::from_str::<Histogram>(&text) {
                prop_assert!(read.quantile(0.5).is_none_or(|median| median <= read.max().unwrap()));
            }
        }

        #[test]
        fn merging_is_recording_all(
            a in prop::collection::vec(any::<u64>(), 0..50),
            b in prop::collection::vec(any::<u64>(), 0..50),
        ) {
            let mut merged = from(&a);
            merged.merge(&from(&b));
            let all: Vec<u64> = a.iter().chain(&b).copied().collect();
            prop_assert_eq!(&merged, &from(&all));
            let mut reverse = from(&b);
            reverse.merge(&from(&a));
            prop_assert_eq!(merged, reverse);
        }
    }
}
