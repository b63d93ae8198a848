//! A batch: samples passed together, as columns that the caller owns.
//!
//! One tick of a contiguous range of ids is the common case and costs as much as copying a row;
//! any other shape works too.

use std::ops::Range;

use crate::series::SeriesId;
use crate::time::Timestamp;

/// The series of a batch, one per sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ids<'a> {
    /// `first`, `first + 1`, and so on: as many as the batch has values.
    Range(SeriesId),
    /// One id per value, in any order; an id may occur more than once.
    Each(&'a [SeriesId]),
}

/// The timestamps of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times<'a> {
    /// One timestamp for every sample.
    One(Timestamp),
    /// One timestamp per value.
    Each(&'a [Timestamp]),
}

/// Borrowed columns of samples. Within one series, the order in the batch is the write order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Batch<'a> {
    ids: Ids<'a>,
    times: Times<'a>,
    values: &'a [f64],
}

impl<'a> Batch<'a> {
    /// One tick of a contiguous range: `values[i]` belongs to series `first + i`.
    #[inline]
    ///
    /// ```
    /// use tsb_core::{Batch, SeriesId, Timestamp};
    ///
    /// let batch = Batch::tick(SeriesId(7), Timestamp::from_secs(60), &[1.5, 2.5]);
    /// let last = batch.iter().last();
    /// assert_eq!(last, Some((SeriesId(8), Timestamp::from_secs(60), 2.5)));
    /// ```
    pub fn tick(first: SeriesId, at: Timestamp, values: &'a [f64]) -> Self {
        Self {
            ids: Ids::Range(first),
            times: Times::One(at),
            values,
        }
    }

    /// Columns of any shape.
    ///
    /// # Panics
    /// If a column's length differs from that of `values`, which is a bug of the caller.
    #[inline]
    pub fn new(ids: Ids<'a>, times: Times<'a>, values: &'a [f64]) -> Self {
        if let Ids::Each(column) = ids {
            assert_eq!(column.len(), values.len(), "one id a value");
        }
        if let Times::Each(column) = times {
            assert_eq!(column.len(), values.len(), "one timestamp a value");
        }
        Self { ids, times, values }
    }

    /// Number of samples.
    #[inline]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no samples.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The id column.
    #[inline]
    pub fn ids(&self) -> Ids<'a> {
        self.ids
    }

    /// The time column.
    #[inline]
    pub fn times(&self) -> Times<'a> {
        self.times
    }

    /// The value column.
    #[inline]
    pub fn values(&self) -> &'a [f64] {
        self.values
    }

    /// The samples of a range of indexes.
    ///
    /// # Panics
    /// If the range exceeds the batch, which is a bug of the caller.
    #[inline]
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        Self {
            ids: match self.ids {
                Ids::Range(first) => Ids::Range(SeriesId(first.0 + range.start as u32)),
                Ids::Each(column) => Ids::Each(&column[range.clone()]),
            },
            times: match self.times {
                Times::One(at) => Times::One(at),
                Times::Each(column) => Times::Each(&column[range.clone()]),
            },
            values: &self.values[range],
        }
    }

    /// The series of sample `index`.
    #[inline]
    pub fn id(&self, index: usize) -> SeriesId {
        match self.ids {
            Ids::Range(first) => SeriesId(first.0 + index as u32),
            Ids::Each(column) => column[index],
        }
    }

    /// The timestamp of sample `index`.
    #[inline]
    pub fn time(&self, index: usize) -> Timestamp {
        match self.times {
            Times::One(at) => at,
            Times::Each(column) => column[index],
        }
    }

    /// Iterates over the samples in batch order: the general and slow way to read a batch.
    pub fn iter(&self) -> impl Iterator<Item = (SeriesId, Timestamp, f64)> + '_ {
        let samples = self.values.iter().enumerate();
        samples.map(|(index, &value)| (self.id(index), self.time(index), value))
    }
}

/// Owned columns to fill, pass on as a [`Batch`], clear and fill again; it allocates nothing once
/// it has grown.
///
/// It detects contiguous ids and equal timestamps, and then produces the cheap shape.
#[derive(Clone, Debug, Default)]
pub struct BatchBuf {
    ids: Vec<SeriesId>,
    times: Vec<Timestamp>,
    values: Vec<f64>,
    contiguous: bool,
    one_time: bool,
}

impl BatchBuf {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty buffer with room for `samples`.
    pub fn with_capacity(samples: usize) -> Self {
        Self {
            ids: Vec::with_capacity(samples),
            times: Vec::with_capacity(samples),
            values: Vec::with_capacity(samples),
            ..Self::default()
        }
    }

    /// Appends one sample.
    #[inline]
    pub fn push(&mut self, id: SeriesId, at: Timestamp, value: f64) {
        if let (Some(&last), Some(&time)) = (self.ids.last(), self.times.last()) {
            self.contiguous &= last.0.wrapping_add(1) == id.0;
            self.one_time &= time == at;
        } else {
            self.contiguous = true;
            self.one_time = true;
        }
        self.ids.push(id);
        self.times.push(at);
        self.values.push(value);
    }

    /// Appends samples of a contiguous range of ids: `values[i]` belongs to series `first + i`.
    ///
    /// # Panics
    /// If a time column's length differs from that of `values`, which is a bug of the caller.
    pub fn extend(&mut self, first: SeriesId, times: Times<'_>, values: &[f64]) {
        let at = match times {
            Times::One(at) => Some(at),
            Times::Each(column) => {
                assert_eq!(column.len(), values.len(), "one timestamp a value");
                column.first().copied()
            }
        };
        let Some(at) = at.filter(|_| !values.is_empty()) else {
            return;
        };
        let follows = self.ids.last().is_none_or(|last| last.0.wrapping_add(1) == first.0);
        self.contiguous = follows && (self.contiguous || self.ids.is_empty());
        let same = self.times.last().is_none_or(|&time| time == at);
        self.one_time = same && (self.one_time || self.times.is_empty());
        self.ids.extend((first.0..).map(SeriesId).take(values.len()));
        match times {
            Times::One(at) => self.times.resize(self.values.len() + values.len(), at),
            Times::Each(column) => {
                self.one_time &= column.iter().all(|&time| time == at);
                self.times.extend_from_slice(column);
            }
        }
        self.values.extend_from_slice(values);
    }

    /// Removes the samples and keeps the allocation.
    #[inline]
    pub fn clear(&mut self) {
        self.ids.clear();
        self.times.clear();
        self.values.clear();
    }

    /// Number of samples.
    #[inline]
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether there are no samples.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// The samples as a batch, in the cheapest equivalent shape.
    #[inline]
    pub fn as_batch(&self) -> Batch<'_> {
        let first = self.ids.first().copied().unwrap_or_default();
        let at = self.times.first().copied().unwrap_or_default();
        Batch {
            ids: if self.contiguous || self.ids.is_empty() {
                Ids::Range(first)
            } else {
                Ids::Each(&self.ids)
            },
            times: if self.one_time || self.times.is_empty() {
                Times::One(at)
            } else {
                Times::Each(&self.times)
            },
            values: &self.values,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_hands_over_the_cheapest_shape() {
        let at = Timestamp::from_secs(7);
        let mut buffer = BatchBuf::new();
        buffer.push(SeriesId(4), at, 1.0);
        buffer.push(SeriesId(5), at, 2.0);
        assert_eq!(buffer.as_batch(), Batch::tick(SeriesId(4), at, &[1.0, 2.0]));
        buffer.push(SeriesId(4), at, 3.0);
        assert!(matches!(buffer.as_batch().ids(), Ids::Each(_)));
        assert!(matches!(buffer.as_batch().times(), Times::One(_)));
        buffer.clear();
        assert!(buffer.as_batch().is_empty());
    }

    #[test]
    fn a_stretch_is_the_same_as_its_samples() {
        let times = [Timestamp(5), Timestamp(6)];
        for second in [4, 6, 9] {
            for time in [
                Times::One(Timestamp(5)),
                Times::Each(&times),
                Times::Each(&[Timestamp(5); 2]),
            ] {
                let (mut bulk, mut single) = (BatchBuf::new(), BatchBuf::new());
                for first in [4, second] {
                    let stretch = Batch::new(Ids::Range(SeriesId(first)), time, &[1.0, 2.0]);
                    bulk.extend(SeriesId(first), time, stretch.values());
                    stretch.iter().for_each(|(id, at, value)| single.push(id, at, value));
                }
                bulk.extend(SeriesId(1), time_of_none(), &[]);
                assert_eq!(bulk.as_batch(), single.as_batch(), "{second} {time:?}");
            }
        }
    }

    fn time_of_none() -> Times<'static> {
        Times::Each(&[])
    }

    #[test]
    fn every_shape_reads_the_same() {
        let ids = [SeriesId(2), SeriesId(3)];
        let times = [Timestamp(5), Timestamp(5)];
        let values = [1.5, 2.5];
        let plain = Batch::new(Ids::Each(&ids), Times::Each(&times), &values);
        let tick = Batch::tick(SeriesId(2), Timestamp(5), &values);
        assert!(plain.iter().eq(tick.iter()));
        assert!(plain.slice(1..2).iter().eq(plain.iter().skip(1)));
        assert!(tick.slice(1..2).iter().eq(tick.iter().skip(1)));
    }
}
