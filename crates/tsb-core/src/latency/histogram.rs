//! A log-linear histogram of nanoseconds: one load, one addition and one store per value.
//!
//! The buckets are those of an HdrHistogram with two significant digits and unit magnitude 0:
//! exact below 256, then 128 buckets per doubling (width 1/128 to 1/256 of the value), over the
//! whole range of u64. So conversion to the standard form is lossless. It is not resizable and not
//! concurrent.

/// Number of buckets.
pub const BUCKETS: usize = 56 * 128 + 256;

/// Counts by bucket, with the exact sum, smallest and largest value.
#[derive(Clone, PartialEq, Eq)]
pub struct Histogram {
    // Invariant: BUCKETS long.
    counts: Box<[u64]>,
    count: u64,
    sum: u128,
    // Invariant: u64::MAX while count is 0.
    min: u64,
    max: u64,
}

impl std::fmt::Debug for Histogram {
    /// Prints the summary and not the thousands of buckets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Histogram")
            .field("count", &self.count)
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

/// The bucket of a value. in [0, BUCKETS)
#[inline(always)]
fn bucket(value: u64) -> usize {
    let shift = 56 - (value | 128).leading_zeros();
    ((shift as usize) << 7) + (value >> shift) as usize
}

/// The smallest value of a bucket.
#[inline]
pub(super) const fn lowest(bucket: usize) -> u64 {
    if bucket < 256 {
        return bucket as u64;
    }
    let shift = (bucket >> 7) - 1;
    ((bucket - (shift << 7)) as u64) << shift
}

/// The largest value of a bucket.
#[inline]
pub(super) const fn highest(bucket: usize) -> u64 {
    if bucket < 256 {
        return bucket as u64;
    }
    let shift = (bucket >> 7) - 1;
    lowest(bucket) + ((1 << shift) - 1)
}

impl Histogram {
    /// An empty histogram. It takes 58 KiB of address space, of which little is touched in use.
    pub fn new() -> Self {
        Self {
            counts: vec![0; BUCKETS].into_boxed_slice(),
            count: 0,
            sum: 0,
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
        self.counts[bucket(value)] += n;
        self.count += n;
        self.sum += u128::from(value) * u128::from(n);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds all values of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Removes all values and keeps the allocation.
    pub fn clear(&mut self) {
        if self.count > 0 {
            self.counts.fill(0);
            (self.count, self.sum, self.min, self.max) = (0, 0, u64::MAX, 0);
        }
    }

    /// Number of values recorded.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all values, exact.
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// The smallest value, exact; `None` when empty.
    pub const fn min(&self) -> Option<u64> {
        if self.count == 0 { None } else { Some(self.min) }
    }

    /// The largest value, exact; `None` when empty.
    pub const fn max(&self) -> Option<u64> {
        if self.count == 0 { None } else { Some(self.max) }
    }

    /// The mean, rounded only by the division; `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The smallest bucket edge that at least a share `quantile` (in [0, 1]) of the values does
    /// not exceed: the upper edge of a bucket, but never above the largest value. `None` when
    /// empty.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = (quantile.clamp(0.0, 1.0) * self.count as f64).ceil() as u64;
        let rank = rank.clamp(1, self.count);
        let mut seen = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Some(highest(bucket).clamp(self.min, self.max));
            }
        }
        Some(self.max)
    }

    /// The quantile, if at least [`super::BEYOND_MIN`] values lie beyond it.
    pub fn supported_quantile(&self, quantile: f64) -> Option<u64> {
        // 1e-6 absorbs rounding errors: 10,000 * (1 - 0.999) is 10.000000000000009, and other
        // products fall short by as much.
        let beyond = (self.count as f64 * (1.0 - quantile) + 1e-6) as u64;
        (beyond >= super::BEYOND_MIN).then(|| self.quantile(quantile)).flatten()
    }

    /// Number of values that are certainly above `value`: those in buckets entirely beyond it.
    pub fn count_above(&self, value: u64) -> u64 {
        self.counts[bucket(value) + 1..].iter().sum()
    }

    /// (smallest value, largest value, count) of each used bucket, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.used()
            .map(|(bucket, count)| (lowest(bucket), highest(bucket), count))
    }

    /// (bucket index, count) of each used bucket, ascending.
    pub(super) fn used(&self) -> impl Iterator<Item = (usize, u64)> + '_ {
        let counts = self.counts.iter().copied().enumerate();
        counts.filter(|&(_, count)| count > 0)
    }

    /// Restores the state that [`Histogram::used`] and the sums describe.
    pub(super) fn restore(&mut self, buckets: impl Iterator<Item = (usize, u64)>, sum: u128, min: u64, max: u64) {
        for (bucket, count) in buckets {
            if let Some(slot) = self.counts.get_mut(bucket) {
                *slot += count;
                self.count += count;
            }
        }
        self.sum += sum;
        self.min = self.min.min(min);
        self.max = self.max.max(max);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_buckets_are_those_of_an_hdr_histogram_with_two_digits() {
        let hdr = hdrhistogram::Histogram::<u64>::new_with_bounds(1, 1 << 62, 2).unwrap();
        let edges = (0..62).flat_map(|bit| [(1u64 << bit) - 1, 1 << bit, (1 << bit) + 1, 3 << bit.min(60)]);
        for value in edges.chain((0..100_000).map(|i| i * 7919)) {
            assert_eq!(lowest(bucket(value)), hdr.lowest_equivalent(value), "{value}");
            assert_eq!(highest(bucket(value)), hdr.highest_equivalent(value), "{value}");
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(highest(BUCKETS - 1), u64::MAX);
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
