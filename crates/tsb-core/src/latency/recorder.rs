//! A recorder: the histogram of the current interval, and the packed intervals before it.
//!
//! A completed interval is packed into an arena that was reserved for the planned length of the
//! run, and intervals are merged in pairs as they age, so a run of any length needs bounded
//! memory. Packing walks the counters up to the largest value, and so does merging a pair; neither
//! allocates while the arenas suffice. If a run outlasts its plan, the arenas grow up to the
//! bound.

use serde::{Deserialize, Serialize};

use super::folding::{Folding, INTERVALS_MAX, Step};
use super::histogram::Histogram;
use super::interval::{Interval, pack, unpack};

/// Bytes reserved per interval: room for 500 used buckets, more than the latencies of a second
/// use.
const RESERVED_BYTES: usize = 1_024;

/// Records values into intervals. Owned by one worker.
#[derive(Clone, Debug)]
pub struct Recorder {
    current: Histogram,
    total: Histogram,
    folding: Folding,
    // Start and end of the current interval, on the run's clock.
    start_ns: u64,
    end_ns: u64,
    pairs: IntervalQueue,
    single: IntervalQueue,
    // Scratch space for merging two intervals. Empty between calls.
    both: Histogram,
}

/// Packed intervals in time order.
#[derive(Clone, Debug, Default)]
struct IntervalQueue {
    ended: Vec<PackedInterval>,
    // Intervals before this index were removed.
    head: usize,
    arena: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct PackedInterval {
    start_ns: u64,
    end_ns: u64,
    bytes: (usize, usize),
}

/// The results of one or several recorders at the end of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Recording {
    /// All values.
    pub total: Histogram,
    /// The intervals in time order, without empty ones.
    pub intervals: Vec<Interval>,
}

impl IntervalQueue {
    fn with_capacity(intervals: u64) -> Self {
        let intervals = intervals as usize;
        Self {
            ended: Vec::with_capacity(intervals),
            head: 0,
            arena: Vec::with_capacity(intervals * RESERVED_BYTES),
        }
    }

    fn left(&self) -> &[PackedInterval] {
        &self.ended[self.head..]
    }

    fn bytes(&self, packed: &PackedInterval) -> &[u8] {
        &self.arena[packed.bytes.0..packed.bytes.1]
    }

    /// Appends a histogram, unless it is empty.
    fn push(&mut self, start_ns: u64, end_ns: u64, histogram: &Histogram) {
        if histogram.count() == 0 {
            return;
        }
        let from = self.arena.len();
        pack(histogram, &mut self.arena);
        self.ended.push(PackedInterval {
            start_ns,
            end_ns,
            bytes: (from, self.arena.len()),
        });
    }

    /// Appends the remaining intervals of another lane.
    fn append(&mut self, other: &Self) {
        for packed in other.left() {
            let from = self.arena.len();
            self.arena.extend_from_slice(other.bytes(packed));
            self.ended.push(PackedInterval {
                bytes: (from, self.arena.len()),
                ..*packed
            });
        }
    }

    /// Removes all intervals and keeps the allocations.
    fn clear(&mut self) {
        self.ended.clear();
        self.arena.clear();
        self.head = 0;
    }

    fn intervals(&self) -> impl Iterator<Item = Interval> + '_ {
        let left = self.left().iter();
        left.map(|packed| Interval::of_packed(packed.start_ns, packed.end_ns, self.bytes(packed)))
    }
}

impl Recorder {
    /// A recorder of intervals of `interval_ns` that begin at `start_ns`, with room for
    /// a run of `planned_ns`.
    pub fn new(start_ns: u64, interval_ns: u64, planned_ns: u64) -> Self {
        let folding = Folding::new(start_ns, interval_ns);
        let (start_ns, end_ns) = folding.around(start_ns);
        let intervals = (planned_ns / interval_ns.max(1)).saturating_add(2);
        // The two lanes swap roles whenever all intervals are pairs.
        let single = intervals.min(2 * INTERVALS_MAX);
        let pairs = if intervals > INTERVALS_MAX { single } else { 0 };
        Self {
            current: Histogram::new(),
            total: Histogram::new(),
            folding,
            start_ns,
            end_ns,
            pairs: IntervalQueue::with_capacity(pairs),
            single: IntervalQueue::with_capacity(single),
            both: Histogram::new(),
        }
    }

    /// Records one value into the current interval.
    #[inline(always)]
    pub fn record(&mut self, value: u64) {
        self.current.record(value);
    }

    /// Records one value `n` times.
    pub fn record_n(&mut self, value: u64, n: u64) {
        if n > 0 {
            self.current.record_n(value, n);
        }
    }

    /// Whether the current interval has ended by `now_ns`.
    #[inline(always)]
    pub const fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.end_ns
    }

    /// The current interval so far.
    pub const fn current(&self) -> &Histogram {
        &self.current
    }

    /// Completes the current interval if it has ended by `now_ns`. Empty intervals are not stored.
    pub fn cut(&mut self, now_ns: u64) {
        if self.is_over(now_ns) {
            self.pack();
            self.fold(now_ns);
            (self.start_ns, self.end_ns) = self.folding.around(now_ns);
        }
    }

    fn pack(&mut self) {
        self.single.push(self.start_ns, self.end_ns, &self.current);
        self.total.merge(&self.current);
        self.current.clear();
    }

    /// Merges the intervals that are old enough.
    fn fold(&mut self, now_ns: u64) {
        while let Some(step) = self.folding.step(now_ns) {
            match step {
                Step::Pair { start_ns, end_ns } => self.pair(start_ns, end_ns),
                Step::Doubled => {
                    self.pairs.append(&self.single);
                    self.single.clear();
                    std::mem::swap(&mut self.pairs, &mut self.single);
                }
            }
        }
    }

    /// Merges the unpaired intervals that begin before `end_ns`.
    fn pair(&mut self, start_ns: u64, end_ns: u64) {
        let older = self.single.left().iter().take_while(|packed| packed.start_ns < end_ns);
        let older = older.count();
        for packed in &self.single.left()[..older] {
            unpack(self.single.bytes(packed), &mut self.both);
        }
        self.single.head += older;
        self.pairs.push(start_ns, end_ns, &self.both);
        self.both.clear();
    }

    /// Completes the last interval and returns all results.
    pub fn finish(mut self) -> Recording {
        self.pack();
        Recording {
            intervals: self.pairs.intervals().chain(self.single.intervals()).collect(),
            total: self.total,
        }
    }
}

impl Recording {
    /// Adds another worker's recording of the same run. Intervals with the same start are merged;
    /// where one worker has merged two that the other has not, the other's two are merged as well.
    pub fn merge(&mut self, other: Self) {
        self.total.merge(&other.total);
        let mut all = std::mem::take(&mut self.intervals);
        all.extend(other.intervals);
        all.sort_by_key(|interval| interval.start_ns);
        for interval in all {
            match self.intervals.last_mut() {
                Some(last) if interval.start_ns < last.end_ns => last.merge(&interval),
                _ => self.intervals.push(interval),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_hold_what_was_recorded_in_them() {
        let mut recorder = Recorder::new(1_000, 100, 1_000);
        for (now, value) in [(1_010, 7), (1_099, u64::MAX), (1_100, 300), (1_450, 12), (1_460, 13)] {
            recorder.cut(now);
            recorder.record(value);
        }
        let recording = recorder.finish();
        let starts: Vec<u64> = recording.intervals.iter().map(|i| i.start_ns).collect();
        assert_eq!(starts, [1_000, 1_100, 1_400]);
        assert_eq!(recording.intervals[0].histogram().max(), Some(u64::MAX));
        let second = recording.intervals[1].histogram();
        assert_eq!((second.count(), second.min(), second.max()), (1, Some(300), Some(300)));
        assert_eq!(recording.intervals[2].histogram().min(), Some(12));
        assert_eq!(recording.total.count(), 5);
        let mut sum = Histogram::new();
        recording.intervals.iter().for_each(|i| i.add_to(&mut sum));
        assert_eq!(sum, recording.total);
    }

    #[test]
    fn workers_merge_interval_by_interval() {
        let mut recordings = [0u64, 50].map(|shift| {
            let mut recorder = Recorder::new(0, 100, 1_000);
            for tick in 0..10 {
                let now = tick * 100 + shift;
                recorder.cut(now);
                if tick % 2 == 0 || shift == 0 {
                    recorder.record(now);
                }
            }
            recorder.finish()
        });
        let other = std::mem::take(&mut recordings[1]);
        let merged = &mut recordings[0];
        merged.merge(other);
        assert_eq!(merged.intervals.len(), 10);
        assert_eq!(merged.intervals[2].histogram().count(), 2);
        assert_eq!(merged.intervals[3].histogram().count(), 1);
        assert_eq!(merged.total.count(), 15);
        assert!(merged.intervals.is_sorted_by_key(|i| i.start_ns));
    }

    #[test]
    fn a_planned_run_fits_the_reserved_arena() {
        let mut recorder = Recorder::new(0, 100, 1_000);
        let reserved = recorder.single.arena.capacity();
        for tick in 0..10u64 {
            recorder.cut(tick * 100);
            (0..400).for_each(|i| recorder.record(i * i * 1_000));
        }
        let used = recorder.single.arena.len();
        assert!(
            used > 0 && recorder.single.arena.capacity() == reserved,
            "{used} of {reserved}"
        );
        assert_eq!(recorder.finish().total.count(), 4_000);
    }

    /// Bytes that a recorder has reserved or used.
    fn room(recorder: &Recorder) -> usize {
        let lanes = [&recorder.pairs, &recorder.single];
        let entries = lanes.map(|lane| lane.ended.capacity() * size_of::<PackedInterval>() + lane.arena.capacity());
        entries.iter().sum()
    }

    #[test]
    fn a_day_takes_no_more_room_than_an_hour() {
        let second = 1_000_000_000;
        let mut recorder = Recorder::new(0, second, 86_400 * second);
        let reserved = room(&recorder);
        let (mut count, mut rooms) = (0, Vec::new());
        for tick in 0..86_400u64 {
            recorder.cut(tick * second);
            for operation in 0..25 {
                recorder.record(1_000_000 + (tick * 7_919 + operation * 104_729) % 900_000);
                count += 1;
            }
            if tick % 3_600 == 3_599 {
                rooms.push(room(&recorder));
            }
        }
        assert!(rooms.iter().all(|&room| room == reserved), "{reserved}: {rooms:?}");
        assert!(reserved < 5 << 20, "{reserved}");
        let recording = recorder.finish();
        assert!(recording.intervals.len() as u64 <= INTERVALS_MAX + 1);
        let mut sum = Histogram::new();
        recording.intervals.iter().for_each(|i| i.add_to(&mut sum));
        assert_eq!((sum.count(), &sum), (count, &recording.total));
    }

    #[test]
    fn workers_that_folded_at_different_moments_merge() {
        let mut recordings = [1_500, 1_499, 1_030].map(|last| {
            let mut recorder = Recorder::new(0, 10, 0);
            for tick in 0..=last {
                recorder.cut(tick * 10);
                recorder.record(tick);
            }
            recorder.finish()
        });
        let count: u64 = recordings.iter().map(|recording| recording.total.count()).sum();
        let [first, ..] = &mut recordings;
        let mut merged = std::mem::take(first);
        for other in recordings {
            merged.merge(other);
        }
        assert!(merged.intervals.windows(2).all(|two| two[0].end_ns <= two[1].start_ns));
        let mut sum = Histogram::new();
        merged.intervals.iter().for_each(|i| i.add_to(&mut sum));
        assert_eq!((sum.count(), &sum), (count, &merged.total));
        assert!(merged.intervals.len() as u64 <= INTERVALS_MAX + 1);
    }
}
