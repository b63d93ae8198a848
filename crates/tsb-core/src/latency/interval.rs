//! The histogram of one interval, packed into a few hundred bytes: its smallest and its largest
//! value, then pairs of (distance to the next used bucket, count), all as variable-length
//! integers, about 2 bytes per pair.
//!
//! The crate's own serialized form is read into a new histogram of 58 KiB each time; the worker
//! that merges two intervals must not allocate.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::histogram::Histogram;
use crate::bytes::{Reader, varint};

/// The histogram of one interval, packed.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Start, in nanoseconds of the run's clock.
    pub start_ns: u64,
    /// End, on the same clock.
    pub end_ns: u64,
    packed: Box<[u8]>,
}

impl Interval {
    /// Packs a histogram.
    pub fn new(start_ns: u64, end_ns: u64, histogram: &Histogram) -> Self {
        let mut packed = Vec::new();
        pack(histogram, &mut packed);
        Self::of_packed(start_ns, end_ns, &packed)
    }

    pub(super) fn of_packed(start_ns: u64, end_ns: u64, packed: &[u8]) -> Self {
        Self {
            start_ns,
            end_ns,
            packed: packed.into(),
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
        unpack(&self.packed, histogram);
    }

    /// Merges another interval into this one.
    pub fn merge(&mut self, other: &Self) {
        let mut both = self.histogram();
        other.add_to(&mut both);
        let (start_ns, end_ns) = (self.start_ns.min(other.start_ns), self.end_ns.max(other.end_ns));
        *self = Self::new(start_ns, end_ns, &both);
    }
}

/// The serialized form.
#[derive(Serialize, Deserialize)]
struct Unpacked {
    start_ns: u64,
    end_ns: u64,
    counts: Histogram,
}

impl Serialize for Interval {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Unpacked {
            start_ns: self.start_ns,
            end_ns: self.end_ns,
            counts: self.histogram(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Interval {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let read = Unpacked::deserialize(deserializer)?;
        Ok(Self::new(read.start_ns, read.end_ns, &read.counts))
    }
}

/// Appends the packed form of a histogram; nothing if it is empty.
pub(super) fn pack(histogram: &Histogram, out: &mut Vec<u8>) {
    let (Some(min), Some(max)) = (histogram.min(), histogram.max()) else {
        return;
    };
    varint::put(out, min);
    varint::put(out, max);
    let mut end = 0;
    for (lowest, count) in histogram.buckets() {
        varint::put(out, (lowest - end) / histogram.width_at(end));
        varint::put(out, count);
        end = lowest.saturating_add(histogram.width_at(lowest));
    }
}

/// Adds what was packed to a histogram.
pub(super) fn unpack(packed: &[u8], histogram: &mut Histogram) {
    let mut rest = Reader::new(packed);
    if let (Ok(min), Ok(max)) = (rest.varint(), rest.varint()) {
        histogram.reach(min, max);
    }
    // The distance to a bucket counts in buckets of the width of the first that lies there: those
    // after it are as wide or a multiple.
    let mut end = 0;
    while let (Ok(distance), Ok(count)) = (rest.varint(), rest.varint()) {
        let lowest = end + distance * histogram.width_at(end);
        histogram.count_in_bucket(lowest, count);
        end = lowest.saturating_add(histogram.width_at(lowest));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_intervals_unpack_and_merge_exactly() {
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
