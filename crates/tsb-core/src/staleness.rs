//! Staleness: at some moment, now minus the newest timestamp that a query would return.
//!
//! Fed with all series at moments spread over the run, it is a histogram over (series,
//! moment) pairs: what a dashboard that looks at any series at any time would find.

use serde::{Deserialize, Serialize};

use crate::latency::Histogram;
use crate::series::SeriesId;
use crate::time::Timestamp;

/// Ages of the newest visible sample.
#[derive(Clone, Debug, Default)]
pub struct Staleness {
    ages: Histogram,
    worst: Option<(u64, SeriesId)>,
    moments: u64,
    unseen: u64,
}

impl Staleness {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One moment: `now` in the time of the timestamps, and the newest visible timestamp of
    /// series `first`, `first + 1`, ...; `None` where nothing is visible yet, which counts
    /// as unseen. `speed` is how many nanoseconds of that time pass in one of real time:
    /// ages are kept in real time. Returns the largest age of the moment, in nanoseconds.
    pub fn observe(
        &mut self,
        now: Timestamp,
        first: SeriesId,
        newest: &[Option<Timestamp>],
        speed: f64,
    ) -> Option<u64> {
        let mut largest: Option<(u64, SeriesId)> = None;
        for (index, newest) in newest.iter().enumerate() {
            let Some(newest) = *newest else {
                self.unseen += 1;
                continue;
            };
            let age = ((now - newest).max(0) as f64 / speed) as u64;
            self.ages.record(age);
            if largest.is_none_or(|(most, _)| age > most) {
                largest = Some((age, SeriesId(first.0 + index as u32)));
            }
        }
        self.moments += 1;
        self.worst = self.worst.max(largest);
        largest.map(|(age, _)| age)
    }

    /// Adds another part: series of another worker, or moments of another time.
    pub fn merge(&mut self, other: &Self) {
        self.ages.merge(&other.ages);
        self.worst = self.worst.max(other.worst);
        self.moments += other.moments;
        self.unseen += other.unseen;
    }

    /// What a report says; `None` when no series was visible at any moment.
    pub fn summary(&self) -> Option<StalenessSummary> {
        let in_ms = |ns: u64| ns as f64 / 1e6;
        let (max, worst) = self.worst?;
        Some(StalenessSummary {
            p50_ms: in_ms(self.ages.quantile(0.5)?),
            p99_ms: in_ms(self.ages.quantile(0.99)?),
            max_ms: in_ms(max),
            worst,
            observations: self.ages.count(),
            moments: self.moments,
            unseen: self.unseen,
        })
    }
}

/// Staleness as a report has it, in milliseconds of real time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StalenessSummary {
    /// Half of all (series, moment) pairs were no older.
    pub p50_ms: f64,
    /// 99 of 100 were no older.
    pub p99_ms: f64,
    /// The stalest series at the stalest moment.
    pub max_ms: f64,
    /// That series.
    pub worst: SeriesId,
    /// (series, moment) pairs with a visible sample.
    pub observations: u64,
    /// Moments looked at.
    pub moments: u64,
    /// (series, moment) pairs with no visible sample: before the first arrived.
    pub unseen: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stalest_series_is_named_and_unseen_ones_are_counted() {
        let mut staleness = Staleness::new();
        let at = |millis| Some(Timestamp::from_millis(millis));
        let largest = staleness.observe(
            Timestamp::from_millis(1_000),
            SeriesId(10),
            &[at(900), None, at(400)],
            1.0,
        );
        assert_eq!(largest, Some(600_000_000));
        staleness.observe(
            Timestamp::from_millis(2_000),
            SeriesId(10),
            &[at(1_900), at(1_950), at(1_990)],
            1.0,
        );
        let summary = staleness.summary().unwrap();
        assert_eq!(
            (summary.worst, summary.observations, summary.moments, summary.unseen),
            (SeriesId(12), 5, 2, 1)
        );
        assert_eq!(summary.max_ms, 600.0);
    }

    #[test]
    fn ages_are_in_real_time_whatever_the_speed_of_the_fleet() {
        let mut staleness = Staleness::new();
        staleness.observe(
            Timestamp::from_secs(100),
            SeriesId(0),
            &[Some(Timestamp::from_secs(40))],
            60.0,
        );
        assert_eq!(staleness.summary().unwrap().max_ms, 1_000.0);
    }

    #[test]
    fn parts_add_up_and_the_worst_stays() {
        let mut one = Staleness::new();
        let mut other = Staleness::new();
        one.observe(Timestamp(100), SeriesId(0), &[Some(Timestamp(90))], 1.0);
        other.observe(Timestamp(100), SeriesId(5), &[Some(Timestamp(10))], 1.0);
        one.merge(&other);
        let summary = one.summary().unwrap();
        assert_eq!((summary.observations, summary.worst), (2, SeriesId(5)));
        assert_eq!(Staleness::new().summary(), None);
    }
}
