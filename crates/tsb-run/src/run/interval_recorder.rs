//! The reporting intervals of a run or a listener: counters and resources of each, merged into
//! longer intervals as they age.

mod process_usage;

use tsb_core::latency::Timeline;
use tsb_core::report::Interval;
use tsb_core::resource::Usage;

use process_usage::ProcessUsage;

/// The rest after the last interval becomes an interval of its own if it is longer than 1/4 of
/// one.
const REST_SHARE: u64 = 4;

/// Counters at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleCounters {
    /// Samples sent; 0 for a listener.
    pub sent: u64,
    /// Samples accepted.
    pub accepted: u64,
}

/// The intervals of a run so far.
#[derive(Debug)]
pub struct IntervalRecorder {
    start_ns: u64,
    interval_ns: u64,
    // When the current interval ends, on the clock.
    end_ns: u64,
    intervals: Timeline<Interval>,
    used: ProcessUsage,
    // Counters at the end of the previous interval.
    before: SampleCounters,
}

impl IntervalRecorder {
    /// Intervals of `interval_ns` from `start_ns` of the clock on. This process and those of `pids`
    /// are watched.
    pub fn new(start_ns: u64, interval_ns: u64, pids: &[u32]) -> Self {
        Self {
            start_ns,
            interval_ns,
            end_ns: start_ns + interval_ns,
            intervals: Timeline::new(start_ns, interval_ns),
            used: ProcessUsage::new(pids),
            before: SampleCounters::default(),
        }
    }

    /// When the current interval ends, on the clock.
    pub const fn end_ns(&self) -> u64 {
        self.end_ns
    }

    /// The counters and resources since the last cut.
    pub fn cut(&mut self, now: u64, counted: SampleCounters) -> Interval {
        self.cut_and_find(now, counted, Vec::new)
    }

    /// The counters and resources since the last cut. If a watched process has ended, those that
    /// `find` returns are watched from now on, too.
    pub fn cut_and_find(&mut self, now: u64, counted: SampleCounters, find: impl FnOnce() -> Vec<u32>) -> Interval {
        // What was handed to a client and could not be sent is no longer counted as sent.
        let counted = SampleCounters {
            sent: counted.sent.max(self.before.sent),
            ..counted
        };
        let before = std::mem::replace(&mut self.before, counted);
        let mut interval = Interval::default();
        interval.end_ns = now.saturating_sub(self.start_ns);
        interval.sent = counted.sent - before.sent;
        interval.accepted = counted.accepted - before.accepted;
        self.used.fill(&mut interval, find);
        interval
    }

    /// Adds the interval that was cut, and begins the next.
    pub fn push(&mut self, now: u64, interval: Interval) {
        self.intervals
            .push(self.end_ns - self.interval_ns, now, interval, absorb);
        self.end_ns += self.interval_ns * (1 + (now - self.end_ns) / self.interval_ns);
    }

    /// All intervals, with `rest`, which was cut after the last: an interval of its own, or part
    /// of the last if it is too short. Also the resources of each process, this one first.
    pub fn finish(mut self, now: u64, rest: Interval) -> (Vec<Interval>, Vec<Usage>) {
        // Merges intervals as far as the emitter has merged its own.
        self.intervals.fold(now, absorb);
        let mut intervals: Vec<Interval> = self.intervals.into_entries().collect();
        let cut_ns = intervals.last().map_or(0, |interval| interval.end_ns);
        match intervals.last_mut() {
            Some(last) if rest.end_ns.saturating_sub(cut_ns) < self.interval_ns / REST_SHARE => absorb(last, rest),
            _ => intervals.push(rest),
        }
        (intervals, self.used.in_all())
    }
}

/// Merges `rest` into the interval before it.
fn absorb(interval: &mut Interval, rest: Interval) {
    interval.end_ns = rest.end_ns;
    interval.asked = sum(interval.asked, rest.asked);
    interval.sent += rest.sent;
    interval.accepted += rest.accepted;
    interval.staleness_max_ms = match (interval.staleness_max_ms, rest.staleness_max_ms) {
        (Some(one), Some(other)) => Some(one.max(other)),
        (one, other) => one.or(other),
    };
    interval.cpu_ns += rest.cpu_ns;
    interval.rss_bytes = rest.rss_bytes;
    interval.read_bytes = sum(interval.read_bytes, rest.read_bytes);
    interval.written_bytes = sum(interval.written_bytes, rest.written_bytes);
    let mut rest = rest.watched.into_iter();
    for (interval, rest) in interval.watched.iter_mut().zip(&mut rest) {
        interval.cpu_ns += rest.cpu_ns;
        interval.rss_bytes = rest.rss_bytes;
        interval.read_bytes = sum(interval.read_bytes, rest.read_bytes);
        interval.written_bytes = sum(interval.written_bytes, rest.written_bytes);
    }
    // Processes that were found later.
    interval.watched.extend(rest);
}

fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one? + other?)
}

#[cfg(test)]
mod tests {
    use tsb_core::latency::INTERVALS_MAX;

    use super::*;

    #[test]
    fn intervals_of_any_number_are_bounded_and_add_up() {
        let mut recorder = IntervalRecorder::new(1_000, 100, &[]);
        let counted = |moment: u64| SampleCounters {
            sent: 2 * moment,
            accepted: moment,
        };
        for moment in 1..=5_000 {
            let now = recorder.end_ns();
            assert_eq!(now, 1_000 + moment * 100);
            let interval = recorder.cut(now, counted(moment));
            recorder.push(now, interval);
        }
        let end_ns = recorder.end_ns() - 90;
        let rest = recorder.cut(end_ns, counted(5_007));
        let (intervals, used) = recorder.finish(end_ns, rest);
        assert!(intervals.len() as u64 <= INTERVALS_MAX + 1, "{}", intervals.len());
        assert_eq!(intervals.iter().map(|interval| interval.sent).sum::<u64>(), 10_014);
        assert_eq!(intervals.iter().map(|interval| interval.accepted).sum::<u64>(), 5_007);
        // A tenth of an interval is none of its own.
        assert_eq!(intervals.last().map(|interval| interval.end_ns), Some(500_010));
        assert!(intervals.is_sorted_by(|one, other| one.end_ns < other.end_ns));
        assert_eq!(used.len(), 1);
    }

    #[test]
    fn a_pause_of_several_intervals_is_one() {
        let mut recorder = IntervalRecorder::new(0, 100, &[]);
        let interval = recorder.cut(450, SampleCounters::default());
        recorder.push(450, interval);
        assert_eq!(recorder.end_ns(), 500);
        let rest = recorder.cut(480, SampleCounters::default());
        let (intervals, _) = recorder.finish(480, rest);
        let ends: Vec<u64> = intervals.iter().map(|interval| interval.end_ns).collect();
        assert_eq!(ends, [450, 480]);
    }
}
