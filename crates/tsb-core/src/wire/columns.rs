//! Collects decoded samples into batches for the sink.
//!
//! Samples with consecutive ids and one timestamp are passed on as a tick, all others as columns
//! of ids and timestamps; in either form at most [`CHUNK`] at a time, in the order of the wire.

use crate::batch::{Batch, Ids, Times};
use crate::series::SeriesId;
use crate::time::Timestamp;
use crate::wire::Sink;

/// Maximum number of samples per batch: 32 KiB of values.
pub(crate) const CHUNK: usize = 4096;

/// A shorter run of consecutive ids does not get a batch of its own.
const MIN_RUN: usize = 16;

/// Initial capacity in samples: connections with small batches stay small.
const FIRST: usize = 128;

/// Samples not yet passed on: some with an id and a timestamp each, then one run.
#[derive(Debug)]
pub(crate) struct Columns {
    // Invariant: ids.len() == times.len() <= values.len() <= CHUNK; they only grow.
    ids: Vec<SeriesId>,
    times: Vec<Timestamp>,
    values: Vec<f64>,
    /// Number of samples with an id and a timestamp of their own.
    // Invariant: spelled <= length <= values.len()
    spelled: usize,
    length: usize,
    /// The id that would continue the run.
    next: u32,
    at: Timestamp,
}

impl Columns {
    pub(crate) fn new() -> Self {
        Self {
            ids: Vec::new(),
            times: Vec::new(),
            values: vec![0.0; FIRST],
            spelled: 0,
            length: 0,
            next: 0,
            at: Timestamp(0),
        }
    }

    /// Adds one sample.
    #[inline(always)]
    pub(crate) fn push(&mut self, id: SeriesId, at: Timestamp, value: f64, sink: &mut dyn Sink) {
        if id.0 != self.next || at != self.at || self.length == self.values.len() {
            self.begin(id, at, sink);
        }
        self.values[self.length] = value;
        self.length += 1;
        self.next = id.0.wrapping_add(1);
    }

    /// Adds one sample that is not expected to continue a run.
    #[inline(always)]
    pub(crate) fn push_alone(&mut self, id: SeriesId, at: Timestamp, value: f64, sink: &mut dyn Sink) {
        if self.length == self.ids.len() || self.spelled != self.length {
            self.make_room(sink);
            self.end_run(sink);
            self.make_room_alone();
        }
        let index = self.length;
        (self.ids[index], self.times[index], self.values[index]) = (id, at, value);
        self.length += 1;
        self.spelled = self.length;
    }

    /// For continuing the run: the id and timestamp of its next sample, and the free part of the
    /// values.
    #[inline(always)]
    pub(crate) fn run(&mut self) -> (u32, Timestamp, &mut [f64]) {
        (self.next, self.at, &mut self.values[self.length..])
    }

    /// Records that `samples` values were put there.
    #[inline(always)]
    pub(crate) fn ran(&mut self, samples: usize) {
        self.length += samples;
        self.next = self.next.wrapping_add(samples as u32);
    }

    /// Makes room for a sample, and ends the run if the sample does not continue it.
    #[inline(never)]
    fn begin(&mut self, id: SeriesId, at: Timestamp, sink: &mut dyn Sink) {
        self.make_room(sink);
        if id.0 != self.next || at != self.at {
            self.end_run(sink);
            (self.next, self.at) = (id.0, at);
        }
    }

    fn make_room(&mut self, sink: &mut dyn Sink) {
        if self.length == CHUNK {
            self.flush(sink);
        } else if self.length == self.values.len() {
            self.values.resize(CHUNK.min(2 * self.length), 0.0);
        }
    }

    fn make_room_alone(&mut self) {
        self.ids.resize(self.values.len(), SeriesId(0));
        self.times.resize(self.values.len(), Timestamp(0));
    }

    fn end_run(&mut self, sink: &mut dyn Sink) {
        if self.run_length() >= MIN_RUN {
            self.flush(sink);
        } else if self.run_length() > 0 {
            self.spell_out();
        }
    }

    /// Length of the run.
    fn run_length(&self) -> usize {
        self.length - self.spelled
    }

    /// Stores an id and a timestamp for each sample of the run.
    fn spell_out(&mut self) {
        self.make_room_alone();
        let first = self.next.wrapping_sub(self.run_length() as u32);
        let run = self.spelled..self.length;
        for (id, offset) in self.ids[run.clone()].iter_mut().zip(0..) {
            *id = SeriesId(first.wrapping_add(offset));
        }
        self.times[run].fill(self.at);
        self.spelled = self.length;
    }

    /// Discards the samples that were not passed on.
    pub(crate) fn forget(&mut self) {
        (self.spelled, self.length) = (0, 0);
    }

    /// Passes all samples on to the sink.
    pub(crate) fn flush(&mut self, sink: &mut dyn Sink) {
        if self.run_length() < MIN_RUN && self.spelled > 0 {
            self.spell_out();
        }
        let (columns, run) = self.values[..self.length].split_at(self.spelled);
        if let Some((&at, times)) = self.times[..self.spelled].split_first() {
            let one = times.iter().all(|time| *time == at);
            let times = if one {
                Times::One(at)
            } else {
                Times::Each(&self.times[..self.spelled])
            };
            sink.batch(&Batch::new(Ids::Each(&self.ids[..self.spelled]), times, columns));
        }
        if !run.is_empty() {
            let first = SeriesId(self.next.wrapping_sub(run.len() as u32));
            sink.batch(&Batch::tick(first, self.at, run));
        }
        (self.spelled, self.length) = (0, 0);
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
                    if first % 5 == 0 {
                        columns.push_alone(sample.0, sample.1, sample.2, &mut heap);
                    } else {
                        columns.push(sample.0, sample.1, sample.2, &mut heap);
                    }
                    expected.push(sample);
                }
            }
            columns.flush(&mut heap);
            columns.flush(&mut heap);
            prop_assert_eq!(heap.samples, expected);
        }
    }
}
