//! Decoded samples on their way to the sink.
//!
//! Samples of ids in order and one timestamp go out as one tick, all others as columns of
//! ids and timestamps; either way at most [`CHUNK`] at a time, in the order of the wire.

use crate::batch::{Batch, Ids, Times};
use crate::series::SeriesId;
use crate::time::Timestamp;
use crate::wire::Sink;

/// The most samples that are handed over at once: 32 KiB of values.
pub(crate) const CHUNK: usize = 4096;

/// A shorter run of ids is not worth a batch of its own.
const MIN_RUN: usize = 16;

/// Samples that wait: some with an id and a timestamp each, then one run.
#[derive(Debug)]
pub(crate) struct Columns {
    ids: Vec<SeriesId>,
    times: Vec<Timestamp>,
    values: Box<[f64; CHUNK]>,
    // Invariant: ids.len() == times.len() <= length <= CHUNK
    length: usize,
    /// The id that goes on with the run.
    next: u32,
    at: Timestamp,
}

impl Columns {
    pub(crate) fn new() -> Self {
        Self {
            ids: Vec::with_capacity(CHUNK),
            times: Vec::with_capacity(CHUNK),
            values: Box::new([0.0; CHUNK]),
            length: 0,
            next: 0,
            at: Timestamp(0),
        }
    }

    /// Takes one sample.
    #[inline(always)]
    pub(crate) fn push(&mut self, id: SeriesId, at: Timestamp, value: f64, sink: &mut dyn Sink) {
        if id.0 != self.next || at != self.at || self.length == CHUNK {
            self.begin(id, at, sink);
        }
        self.values[self.length % CHUNK] = value;
        self.length += 1;
        self.next = id.0.wrapping_add(1);
    }

    /// What continues the run: the id and timestamp of its next sample, and room for the
    /// values of more.
    #[inline(always)]
    pub(crate) fn run(&mut self) -> (u32, Timestamp, &mut [f64]) {
        (self.next, self.at, &mut self.values[self.length..])
    }

    /// So many values were put there.
    #[inline(always)]
    pub(crate) fn ran(&mut self, samples: usize) {
        self.length += samples;
        self.next = self.next.wrapping_add(samples as u32);
    }

    /// Ends the run and begins another.
    #[cold]
    #[inline(never)]
    fn begin(&mut self, id: SeriesId, at: Timestamp, sink: &mut dyn Sink) {
        if self.run_length() >= MIN_RUN || self.length == CHUNK {
            self.flush(sink);
        } else {
            self.spell_out();
        }
        (self.next, self.at) = (id.0, at);
    }

    /// How long the run is.
    fn run_length(&self) -> usize {
        self.length - self.ids.len()
    }

    /// Gives the samples of the run an id and a timestamp each.
    #[inline(always)]
    fn spell_out(&mut self) {
        let run = self.run_length() as u32;
        let first = self.next.wrapping_sub(run);
        for offset in 0..run {
            self.ids.push(SeriesId(first.wrapping_add(offset)));
            self.times.push(self.at);
        }
    }

    /// Hands everything over.
    pub(crate) fn flush(&mut self, sink: &mut dyn Sink) {
        if self.run_length() < MIN_RUN && !self.ids.is_empty() {
            self.spell_out();
        }
        let (columns, run) = self.values[..self.length].split_at(self.ids.len());
        if let Some(&at) = self.times.first() {
            let one = self.times.iter().all(|time| *time == at);
            let times = if one { Times::One(at) } else { Times::Each(&self.times) };
            sink.batch(&Batch::new(Ids::Each(&self.ids), times, columns));
        }
        if !run.is_empty() {
            let first = SeriesId(self.next.wrapping_sub(run.len() as u32));
            sink.batch(&Batch::tick(first, self.at, run));
        }
        self.ids.clear();
        self.times.clear();
        self.length = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::wire::testing::Heap;

    #[test]
    fn a_long_run_is_a_tick_and_the_rest_is_columns() {
        let mut heap = Heap::default();
        let mut columns = Columns::new();
        for index in 0..5_000_u32 {
            columns.push(SeriesId(index), Timestamp(9), 0.5, &mut heap);
        }
        for index in [7, 3, 5_u32] {
            columns.push(SeriesId(index), Timestamp(9), 0.5, &mut heap);
        }
        columns.flush(&mut heap);
        assert_eq!(heap.shapes, [("tick", CHUNK), ("tick", 5_000 - CHUNK), ("columns", 3)]);
        assert_eq!(heap.samples.len(), 5_003);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_moved(runs in proptest::collection::vec((0_u32..50, 0_i64..3, 1_usize..40), 0..200)) {
            let mut heap = Heap::default();
            let mut columns = Columns::new();
            let mut expected = Vec::new();
            for (first, at, length) in runs {
                for offset in 0..length as u32 {
                    let sample = (SeriesId(first + offset), Timestamp(at), f64::from(expected.len() as u32));
                    columns.push(sample.0, sample.1, sample.2, &mut heap);
                    expected.push(sample);
                }
            }
            columns.flush(&mut heap);
            columns.flush(&mut heap);
            prop_assert_eq!(heap.samples, expected);
        }
    }
}
