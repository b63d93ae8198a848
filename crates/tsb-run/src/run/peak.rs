//! Finds the reporting interval in which a schedule asked the highest rate. Pure: no I/O, no
//! clock.
//!
//! The mean over a ramp says little: a store that falls behind at the top may catch up before
//! the end.

use tsb_core::report::{Interval, Peak};
use tsb_core::schedule::{Pace, Schedule, Timetable};

/// If one operation is more than this share of an interval, the interval's rate depends on
/// chance.
const OPERATION_MAX: f64 = 0.1;

/// The interval with the highest asked rate, for schedules whose rate varies. `None` for other
/// schedules: a fleet at its own pace asks one rate, and for bursts and random arrivals the mean
/// is what a store has to hold.
pub(crate) fn of(timetable: &Timetable, intervals: &[Interval], interval_ns: u64) -> Option<Peak> {
    let Pace::Shape(Schedule::Curve(curve)) = &timetable.pace else {
        return None;
    };
    if curve.segments().is_empty() {
        return None;
    }
    let peak = highest(intervals, interval_ns)?;
    let groups = timetable.roster.groups().iter();
    let largest = groups.map(|group| group.samples).max().unwrap_or(0);
    let asked = peak.asked_per_second * (peak.end_ns - peak.from_ns) as f64 / 1e9;
    (f64::from(largest) <= OPERATION_MAX * asked).then_some(peak)
}

/// The interval with the highest asked rate. Intervals shorter than half of `interval_ns` are
/// skipped: a few operations decide their rate. `None` if nothing was asked.
fn highest(intervals: &[Interval], interval_ns: u64) -> Option<Peak> {
    let per_second = |samples: u64, from_ns: u64, end_ns: u64| samples as f64 * 1e9 / (end_ns - from_ns) as f64;
    let mut peak: Option<(usize, Peak)> = None;
    let mut from_ns = 0;
    for (index, interval) in intervals.iter().enumerate() {
        let start_ns = std::mem::replace(&mut from_ns, interval.end_ns);
        let length_ns = interval.end_ns.saturating_sub(start_ns);
        let asked = interval
            .asked
            .filter(|asked| *asked > 0 && length_ns >= interval_ns.div_ceil(2).max(1));
        let Some(asked) = asked else { continue };
        let asked_per_second = per_second(asked, start_ns, interval.end_ns);
        if peak
            .as_ref()
            .is_none_or(|(_, most)| asked_per_second > most.asked_per_second)
        {
            let accepted_per_second = per_second(interval.accepted, start_ns, interval.end_ns);
            let new = Peak::new(start_ns..interval.end_ns, asked_per_second, accepted_per_second);
            peak = Some((index, new));
        }
    }
    let (index, mut peak) = peak?;
    let asked: u64 = intervals
        .iter()
        .take(index + 1)
        .filter_map(|interval| interval.asked)
        .sum();
    // Samples due at the very end of the interval may be accepted in the next one.
    let accepted: u64 = intervals.iter().take(index + 2).map(|interval| interval.accepted).sum();
    peak.kept_share = (accepted as f64 / asked.max(1) as f64).min(1.0);
    Some(peak)
}

#[cfg(test)]
mod tests {
    use tsb_core::schedule::{Group, Roster};

    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn interval(end_ns: u64, asked: u64, accepted: u64) -> Interval {
        let mut interval = Interval::default();
        interval.end_ns = end_ns;
        interval.asked = Some(asked);
        interval.accepted = accepted;
        interval
    }

    fn intervals(intervals: &[(u64, u64)]) -> Vec<Interval> {
        let ends = (1..).map(|second| second * SECOND_NS);
        ends.zip(intervals)
            .map(|(end_ns, &(asked, accepted))| interval(end_ns, asked, accepted))
            .collect()
    }

    #[test]
    fn a_backlog_worked_off_later_was_not_kept_at_the_peak() {
        // Two hundred each second at most are taken.
        let limited = [
            (100, 100),
            (300, 200),
            (500, 200),
            (300, 200),
            (100, 200),
            (0, 200),
            (0, 200),
        ];
        let peak = highest(&intervals(&limited), SECOND_NS).unwrap();
        assert_eq!((peak.from_ns, peak.end_ns), (2 * SECOND_NS, 3 * SECOND_NS));
        assert_eq!((peak.asked_per_second, peak.accepted_per_second), (500.0, 200.0));
        assert!((peak.kept_share - 700.0 / 900.0).abs() < 1e-9, "{peak:?}");
        // A tenth of a second late, all the time.
        let kept = [(100, 90), (300, 280), (500, 480), (300, 320), (100, 120), (0, 10)];
        assert_eq!(highest(&intervals(&kept), SECOND_NS).unwrap().kept_share, 1.0);
    }

    #[test]
    fn only_a_schedule_of_different_rates_has_a_peak() {
        let timetable = |schedule: &str, samples: u32| Timetable {
            roster: Roster::new(vec![Group::new(SECOND_NS, 0, samples)]).unwrap(),
            pace: Pace::Shape(schedule.parse().unwrap()),
            end_ns: None,
            fleet_end_ns: None,
        };
        let intervals = intervals(&[(100, 100), (300, 300)]);
        let peak = |schedule, samples| of(&timetable(schedule, samples), &intervals, SECOND_NS);
        assert_eq!(peak("ramp:0..400/2s", 30).unwrap().asked_per_second, 300.0);
        assert!(peak("steps:100*1s,300*1s", 1).is_some());
        // An operation more or less decides how much an interval asks.
        assert!(peak("ramp:0..400/2s", 31).is_none());
        for schedule in ["constant:200", "burst:100/1s", "poisson:200", "max"] {
            assert!(peak(schedule, 1).is_none(), "{schedule}");
        }
    }

    #[test]
    fn a_rest_that_is_too_short_is_no_peak() {
        let mut all = intervals(&[(100, 100), (120, 120)]);
        all.push(interval(2 * SECOND_NS + 1_000, 54, 54));
        assert_eq!(highest(&all, SECOND_NS).unwrap().asked_per_second, 120.0);
        assert!(highest(&intervals(&[(0, 0)]), SECOND_NS).is_none());
        assert!(highest(&[], SECOND_NS).is_none());
    }
}
