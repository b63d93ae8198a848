//! The reporting intervals of a run or a listener: counters and resources of each, merged into
//! longer intervals as they age.

mod used;

use tsb_core::latency::Timeline;
use tsb_core::report::Interval;
use tsb_core::resource::Usage;

use used::Used;

/// The rest after the last interval becomes an interval of its own if it is longer than 1/4 of
/// one.
const REST_SHARE: u64 = 4;

/// Counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Samples sent; 0 for a listener.
    pub sent: u64,
    /// Samples accepted.
    pub accepted: u64,
}

/// The intervals of a run so far.
#[derive(Debug)]
pub struct Slicing {
    start_ns: u64,
    slice_ns: u64,
    // When the current interval ends, on the clock.
    end_ns: u64,
    slices: Timeline<Interval>,
    used: Used,
    // Counters at the end of the previous interval.
    before: Counted,
}

impl Slicing {
    /// Intervals of `slice_ns` from `start_ns` of the clock on. This process and those of `pids`
    /// are watched.
    pub fn new(start_ns: u64, slice_ns: u64, pids: &[u32]) -> Self {
        Self {
            start_ns,
            slice_ns,
            end_ns: start_ns + slice_ns,
            slices: Timeline::new(start_ns, slice_ns),
            used: Used::new(pids),
            before: Counted::default(),
        }
    }

    /// When the current interval ends, on the clock.
    pub const fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// The counters and resources since the last cut.
    pub fn cut(&mut self, now: u64, counted: Counted) -> Interval {
        let before = std::mem::replace(&mut self.before, counted);
        let mut slice = Interval {
            end_ns: now.saturating_sub(self.start_ns),
            sent: counted.sent - before.sent,
            accepted: counted.accepted - before.accepted,
            ..Interval::default()
        };
        self.used.fill(&mut slice);
        slice
    }

    /// Adds the interval that was cut, and begins the next.
    pub fn push(&mut self, now: u64, slice: Interval) {
        self.slices.push(self.end_ns - self.slice_ns, now, slice, absorb);
        self.end_ns += self.slice_ns * (1 + (now - self.end_ns) / self.slice_ns);
    }

    /// All intervals, with `rest`, which was cut after the last: an interval of its own, or part
    /// of the last if it is too short. Also the resources of each process, this one first.
    pub fn finish(mut self, now: u64, rest: Interval) -> (Vec<Interval>, Vec<Usage>) {
        // Merges intervals as far as the emitter has merged its own.
        self.slices.fold(now, absorb);
        let mut slices: Vec<Interval> = self.slices.into_entries().collect();
        let cut_ns = slices.last().map_or(0, |slice| slice.end_ns);
        match slices.last_mut() {
            Some(last) if rest.end_ns.saturating_sub(cut_ns) < self.slice_ns / REST_SHARE => absorb(last, rest),
            _ => slices.push(rest),
        }
        (slices, self.used.in_all())
    }
}

/// Merges `rest` into the interval before it.
fn absorb(slice: &mut Interval, rest: Interval) {
    slice.end_ns = rest.end_ns;
    slice.asked = sum(slice.asked, rest.asked);
    slice.sent += rest.sent;
    slice.accepted += rest.accepted;
    slice.staleness_max_ms = match (slice.staleness_max_ms, rest.staleness_max_ms) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    };
    slice.cpu_ns += rest.cpu_ns;
    slice.rss_bytes = rest.rss_bytes;
    slice.read_bytes = sum(slice.read_bytes, rest.read_bytes);
    slice.written_bytes = sum(slice.written_bytes, rest.written_bytes);
    for (slice, rest) in slice.watched.iter_mut().zip(rest.watched) {
        slice.cpu_ns += rest.cpu_ns;
        slice.rss_bytes = rest.rss_bytes;
        slice.read_bytes = sum(slice.read_bytes, rest.read_bytes);
        slice.written_bytes = sum(slice.written_bytes, rest.written_bytes);
    }
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one? + other?)
}

#[cfg(test)]
mod tests {
    use tsb_core::latency::INTERVALS_MAX;

    use super::*;

    #[test]
    fn slices_of_any_number_are_bounded_and_add_up() {
        let mut slicing = Slicing::new(1_000, 100, &[]);
        let counted = |moment: u64| Counted {
            sent: 2 * moment,
            accepted: moment,
        };
        for moment in 1..=5_000 {
            let now = slicing.end_ns();
            assert_eq!(now, 1_000 + moment * 100);
            let slice = slicing.cut(now, counted(moment));
            slicing.push(now, slice);
        }
        let end_ns = slicing.end_ns() - 90;
        let rest = slicing.cut(end_ns, counted(5_007));
        let (slices, used) = slicing.finish(end_ns, rest);
        assert!(slices.len() as u64 <= INTERVALS_MAX + 1, "{}", slices.len());
        assert_eq!(slices.iter().map(|slice| slice.sent).sum::<u64>(), 10_014);
        assert_eq!(slices.iter().map(|slice| slice.accepted).sum::<u64>(), 5_007);
        // A tenth of a slice is no slice of its own.
        assert_eq!(slices.last().map(|slice| slice.end_ns), Some(500_010));
        assert!(slices.is_sorted_by(|one, other| one.end_ns < other.end_ns));
        assert_eq!(used.len(), 1);
    }

    #[test]
    fn a_pause_of_several_slices_is_one() {
        let mut slicing = Slicing::new(0, 100, &[]);
        let slice = slicing.cut(450, Counted::default());
        slicing.push(450, slice);
        assert_eq!(slicing.end_ns(), 500);
        let rest = slicing.cut(480, Counted::default());
        let (slices, _) = slicing.finish(480, rest);
        let ends: Vec<u64> = slices.iter().map(|slice| slice.end_ns).collect();
        assert_eq!(ends, [450, 480]);
    }
}
