//! A run without its warm-up.

use tsb_core::latency::{Histogram, Recording, Summary};
use tsb_core::report::{Interval, Run};
use tsb_core::stats::{Steady, steady};

use crate::run::{EmitterTimes, MadeRun, of_all};

/// The part of a run that was measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteadyPart {
    /// Length of the warm-up before it, in nanoseconds.
    pub warm_up_ns: u64,
    /// Whether neither the accepted samples nor the median response time drift in it.
    pub is_steady: bool,
}

/// The report of a run whose held rate and latencies leave out the warm-up; all other figures are
/// those of the whole run. Without a part where the run has too few intervals to tell.
pub fn steady_run(made: &MadeRun) -> (Run, Option<SteadyPart>) {
    let mut run = made.run.clone();
    let Some(found) = find(&run.intervals) else {
        return (run, None);
    };
    if found.warm_up > 0 {
        cut(&mut run, &made.emitters, found.warm_up);
    }
    let part = SteadyPart {
        warm_up_ns: end_of(&made.run.intervals, found.warm_up),
        is_steady: found.is_steady,
    };
    (run, Some(part))
}

/// When the first `count` intervals end, in nanoseconds since the run's start.
fn end_of(intervals: &[Interval], count: usize) -> u64 {
    let last = count.checked_sub(1).and_then(|last| intervals.get(last));
    last.map_or(0, |interval| interval.end_ns)
}

/// The steady part by the accepted samples per second and the median response time of intervals.
/// The last interval, which may be shorter, is left out.
fn find(intervals: &[Interval]) -> Option<Steady> {
    let (_, whole) = intervals.split_last()?;
    let length = |index: usize| whole[index].end_ns - end_of(whole, index);
    let rates: Vec<f64> = (0..whole.len())
        .map(|index| whole[index].accepted as f64 / length(index).max(1) as f64)
        .collect();
    let responses: Option<Vec<f64>> = whole
        .iter()
        .map(|interval| interval.response_p50_ns.map(|ns| ns as f64))
        .collect();
    let rate = steady(&rates)?;
    let Some(response) = responses.and_then(|responses| steady(&responses)) else {
        return Some(rate);
    };
    Some(Steady {
        warm_up: rate.warm_up.max(response.warm_up),
        is_steady: rate.is_steady && response.is_steady,
    })
}

fn cut(run: &mut Run, emitters: &[EmitterTimes], warm_up: usize) {
    let from_ns = end_of(&run.intervals, warm_up);
    let rest = &run.intervals[warm_up..];
    let accepted: u64 = rest.iter().map(|interval| interval.accepted).sum();
    let end_ns = rest.last().map_or(from_ns, |interval| interval.end_ns);
    if end_ns > from_ns {
        run.rate.held_per_second = accepted as f64 * 1e9 / (end_ns - from_ns) as f64;
    }
    let ends: Vec<u64> = run.intervals.iter().map(|interval| interval.end_ns).collect();
    let summary = |of: fn(&EmitterTimes) -> &Recording| {
        let mut histogram = Histogram::new();
        of_all(emitters, of, &ends, |index, part| {
            if index >= warm_up {
                histogram.merge(part);
            }
        });
        Summary::new(&histogram, accepted)
    };
    run.latency.response = summary(|times| &times.response);
    run.latency.service = summary(|times| &times.service);
    run.latency.lag = summary(|times| &times.lag);
    if run.latency.delivery.is_some() {
        run.latency.delivery = Some(summary(|times| &times.delivery));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intervals(responses: &[u64]) -> Vec<Interval> {
        let interval = |(index, &ns): (usize, &u64)| {
            let mut interval = Interval::default();
            interval.end_ns = 100 * (index as u64 + 1);
            interval.accepted = 50;
            interval.response_p50_ns = Some(ns);
            interval
        };
        responses.iter().enumerate().map(interval).collect()
    }

    #[test]
    fn a_slow_beginning_is_a_warm_up() {
        let found = find(&intervals(&[900, 500, 101, 99, 100, 102, 98, 100, 101, 99, 100])).unwrap();
        assert_eq!((found.warm_up, found.is_steady), (2, true));
        assert_eq!(end_of(&intervals(&[1, 1, 1]), 2), 200);
        assert_eq!(end_of(&[], 0), 0);
    }

    #[test]
    fn a_run_that_gets_slower_all_the_time_is_not_steady() {
        let slower: Vec<u64> = (1..30).map(|i| 100 * i).collect();
        assert!(!find(&intervals(&slower)).unwrap().is_steady);
    }

    #[test]
    fn few_intervals_have_no_steady_part() {
        assert_eq!(find(&intervals(&[1, 2, 3])), None);
        assert_eq!(find(&[]), None);
    }
}
