//! The histogram of one interval, packed into a few hundred bytes: pairs of (distance to the next
//! used bucket, count) as variable-length integers, about 2 bytes per pair.

use super::histogram::Histogram;
use crate::bytes::{Reader, varint};

/// The histogram of one interval, packed.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Start, in nanoseconds of the run's clock.
    pub start_ns: u64,
    /// End, on the same clock.
    pub end_ns: u64,
    pairs: Box<[u8]>,
    sums: Sums,
}

/// The exact figures of a histogram besides its bucket counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sums {
    sum: u128,
    min: u64,
    max: u64,
}

impl Sums {
    /// The sums of a histogram; `None` when it is empty.
    pub(super) fn of(histogram: &Histogram) -> Option<Self> {
        Some(Self {
            sum: histogram.sum(),
            min: histogram.min()?,
            max: histogram.max()?,
        })
    }
}

impl Interval {
    /// Packs a histogram.
    pub fn new(start_ns: u64, end_ns: u64, histogram: &Histogram) -> Self {
        let mut pairs = Vec::new();
        pack(histogram, &mut pairs);
        let empty = Sums {
            sum: 0,
            min: u64::MAX,
            max: 0,
        };
        Self::of_packed(start_ns, end_ns, &pairs, Sums::of(histogram).unwrap_or(empty))
    }

    pub(super) fn of_packed(start_ns: u64, end_ns: u64, pairs: &[u8], sums: Sums) -> Self {
        Self {
            start_ns,
            end_ns,
            pairs: pairs.into(),
            sums,
        }
    }

    /// The histogram of the interval, unpacked.
    pub fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::new();
        self.add_to(&mut histogram);
        histogram
    }

    /// Adds the interval's values to a histogram.
    pub fn add_to(&self, histogram: &mut Histogram) {
        unpack(&self.pairs, self.sums, histogram);
    }

    /// Merges another interval into this one.
    pub fn merge(&mut self, other: &Self) {
        let mut both = self.histogram();
        other.add_to(&mut both);
        let (start_ns, end_ns) = (self.start_ns.min(other.start_ns), self.end_ns.max(other.end_ns));
        *self = Self::new(start_ns, end_ns, &both);
    }
}

/// Appends the packed bucket counts of a histogram.
pub(super) fn pack(histogram: &Histogram, out: &mut Vec<u8>) {
    let mut previous = 0;
    for (bucket, count) in histogram.used() {
        varint::put(out, (bucket - previous) as u64);
        varint::put(out, count);
        previous = bucket;
    }
}

/// Adds packed counts to a histogram.
pub(super) fn unpack(bytes: &[u8], sums: Sums, histogram: &mut Histogram) {
    let bytes = Reader::new(bytes);
    histogram.restore(Pairs { bytes, bucket: 0 }, sums.sum, sums.min, sums.max);
}

/// The packed pairs of an interval.
struct Pairs<'a> {
    bytes: Reader<'a>,
    bucket: usize,
}

impl Iterator for Pairs<'_> {
    type Item = (usize, u64);

    fn next(&mut self) -> Option<(usize, u64)> {
        self.bucket += self.bytes.varint().ok()? as usize;
        Some((self.bucket, self.bytes.varint().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back_and_merges_exactly() {
        let mut histograms = [Histogram::new(), Histogram::new()];
        for value in 0..2_000u64 {
            histograms[usize::from(value % 3 == 0)].record(value * value * value);
        }
        let [one, other] = histograms;
        let mut packed = Interval::new(10, 20, &one);
        assert_eq!(packed.histogram(), one);
        packed.merge(&Interval::new(20, 30, &other));
        let mut both = one;
        both.merge(&other);
        assert_eq!((packed.start_ns, packed.end_ns, packed.histogram()), (10, 30, both));
    }

    #[test]
    fn an_empty_interval_is_empty() {
        let empty = Interval::new(0, 1, &Histogram::new());
        assert_eq!(empty.histogram(), Histogram::new());
    }
}
