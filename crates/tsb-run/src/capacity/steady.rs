//! Whether a run was in a steady state: what was due and not accepted must not grow.
//!
//! A store that takes 1 % less than it is asked holds every latency objective for a while: its
//! queue grows, and a longer run would break them. So the backlog at the end of each interval is
//! fitted with a line over the second half of the run, where warm-up is over.

use tsb_core::report::Interval;
use tsb_core::stats::{CONFIDENCE, t_quantile};

/// Largest growth of the backlog, as a share of the asked rate.
pub const GROWTH_MAX: f64 = 0.005;
/// Fewest intervals of the second half.
const INTERVALS_MIN: usize = 4;

/// The growth of the backlog.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Backlog {
    /// Samples per second of backlog over samples per second asked.
    pub growth: f64,
    /// Half the width of its 95 % interval.
    pub uncertainty: f64,
}

impl Backlog {
    /// Fits the second half of a run's intervals. `None` if they are too few, or if the run has no
    /// schedule.
    pub fn of(intervals: &[Interval]) -> Option<Self> {
        let (mut asked, mut accepted) = (0.0, 0.0);
        let mut points = Vec::with_capacity(intervals.len());
        for interval in intervals {
            asked += interval.asked? as f64;
            accepted += interval.accepted as f64;
            points.push((interval.end_ns as f64 / 1e9, asked - accepted));
        }
        let seconds = points.last()?.0;
        // The last interval may be the time in which the backlog was worked off.
        let due: Vec<bool> = intervals
            .iter()
            .map(|interval| interval.asked.unwrap_or(0) > 0)
            .collect();
        let half: Vec<(f64, f64)> = points
            .iter()
            .zip(&due)
            .filter(|((end, _), due)| **due && *end > seconds / 2.0)
            .map(|(point, _)| *point)
            .collect();
        let (slope, error) = line(&half)?;
        let rate = asked / seconds;
        (rate > 0.0).then(|| Self {
            growth: slope / rate,
            uncertainty: error * t_quantile(0.5 + CONFIDENCE / 2.0, half.len() as f64 - 2.0) / rate,
        })
    }

    /// Whether the backlog certainly grows by more than [`GROWTH_MAX`].
    pub fn grows(&self) -> bool {
        self.growth - self.uncertainty > GROWTH_MAX
    }
}

/// Slope of the least-squares line, and its standard error.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    if points.len() < INTERVALS_MIN {
        return None;
    }
    let n = points.len() as f64;
    let (mean_x, mean_y) = points
        .iter()
        .fold((0.0, 0.0), |(x, y), point| (x + point.0 / n, y + point.1 / n));
    let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    let slope = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>() / spread;
    let rest: f64 = points
        .iter()
        .map(|(x, y)| (y - mean_y - slope * (x - mean_x)).powi(2))
        .sum();
    (spread > 0.0).then(|| (slope, (rest / (n - 2.0) / spread).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Intervals of a second at 1,000 samples/s, of which the store takes what `taken` says.
    fn intervals(seconds: u64, taken: impl Fn(u64) -> u64) -> Vec<Interval> {
        let interval = |second: u64| {
            let mut interval = Interval::default();
            interval.end_ns = (second + 1) * 1_000_000_000;
            interval.asked = Some(1_000);
            interval.accepted = taken(second);
            interval
        };
        (0..seconds).map(interval).collect()
    }

    #[test]
    fn a_backlog_that_grows_is_no_steady_state() {
        for (short, grows) in [(0, false), (3, false), (8, true), (20, true), (200, true)] {
            let backlog = Backlog::of(&intervals(20, |_| 1_000 - short)).unwrap();
            assert!((backlog.growth - short as f64 / 1_000.0).abs() < 1e-9, "{backlog:?}");
            assert_eq!(backlog.grows(), grows, "{short}");
        }
    }

    #[test]
    fn stalls_that_are_caught_up_are_a_steady_state() {
        // A stall of 300 ms in every third second.
        let backlog = Backlog::of(&intervals(20, |second| match second % 3 {
            1 => 700,
            2 => 1_300,
            _ => 1_000,
        }));
        assert!(!backlog.unwrap().grows());
        // A warm-up that is caught up within the first half.
        let backlog = Backlog::of(&intervals(20, |second| {
            if second < 2 {
                0
            } else {
                1_000 + 200 * u64::from(second < 12)
            }
        }));
        assert!(!backlog.unwrap().grows());
    }

    #[test]
    fn few_intervals_and_a_closed_loop_say_nothing() {
        assert_eq!(Backlog::of(&intervals(6, |_| 900)), None);
        let mut closed = intervals(20, |_| 900);
        for interval in &mut closed {
            interval.asked = None;
        }
        assert_eq!(Backlog::of(&closed), None);
        assert_eq!(Backlog::of(&[]), None);
    }
}
