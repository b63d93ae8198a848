//! Staleness: at some moment, now minus the newest timestamp that a query would return.
//!
//! Fed with all series at moments spread over the run, it is a histogram over (series,
//! moment) pairs: what a dashboard that looks at any series at any time would find. A series
//! of which nothing is visible yet is as stale as its first sample is overdue, so what never
//! arrives counts in every quantile. A series that the plan has ended is not stale: the
//! caller leaves it out.

use serde::{Deserialize, Serialize};

use crate::latency::Histogram;
use crate::series::SeriesId;

/// Ages of the newest visible sample.
#[derive(Clone, Debug, Default)]
pub struct Staleness {
    ages: Histogram,
    worst: Option<(u64, SeriesId)>,
    moments: u64,
    unseen: u64,
    never_visible: u64,
}

impl Staleness {
    /// Nothing seen yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A moment is over at which every series was looked at.
    pub fn end_moment(&mut self) {
        self.moments += 1;
    }

    /// Moments looked at.
    pub const fn moments(&self) -> u64 {
        self.moments
    }

    /// The newest visible sample of a series is `age_ns` old, in real time.
    #[inline]
    pub fn visible(&mut self, series: SeriesId, age_ns: u64) {
        self.ages.record(age_ns);
        if self.worst.is_none_or(|(most, _)| age_ns > most) {
            self.worst = Some((age_ns, series));
        }
    }

    /// Nothing of a series is visible yet, and its first sample was due `overdue_ns` ago.
    #[inline]
    pub fn unseen(&mut self, series: SeriesId, overdue_ns: u64) {
        self.unseen += 1;
        self.visible(series, overdue_ns);
    }

    /// So many series had a sample due and were never seen.
    pub fn set_never_visible(&mut self, series: u64) {
        self.never_visible = series;
    }

    /// Adds another part: series of another worker, or moments of another time.
    pub fn merge(&mut self, other: &Self) {
        self.ages.merge(&other.ages);
        self.worst = self.worst.max(other.worst);
        self.moments += other.moments;
        self.unseen += other.unseen;
        self.never_visible += other.never_visible;
    }

    /// What a report says; `None` when no series was looked at.
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
            never_visible: Some(self.never_visible),
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
    /// (series, moment) pairs. In reports of schema 1 only those with a visible sample, which
    /// alone were in the quantiles.
    pub observations: u64,
    /// Moments looked at.
    pub moments: u64,
    /// (series, moment) pairs with no visible sample: before the first arrived, if it did.
    pub unseen: u64,
    /// Series of which a sample was due and none became visible. Absent in reports of schema 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never_visible: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stalest_series_is_named_and_what_never_came_is_in_every_quantile() {
        let mut staleness = Staleness::new();
        for moment in 1..=10 {
            staleness.visible(SeriesId(10), 1_000_000);
            for lost in [11, 12] {
                staleness.unseen(SeriesId(lost), moment * 100_000_000);
            }
            staleness.end_moment();
        }
        staleness.set_never_visible(2);
        let summary = staleness.summary().unwrap();
        assert_eq!(
            (summary.worst, summary.observations, summary.moments, summary.unseen),
            (SeriesId(11), 30, 10, 20)
        );
        assert_eq!((summary.max_ms, summary.never_visible), (1_000.0, Some(2)));
        assert!(summary.p50_ms > 99.0, "{summary:?}");
    }

    #[test]
    fn parts_add_up_and_the_worst_stays() {
        let mut one = Staleness::new();
        let mut other = Staleness::new();
        one.visible(SeriesId(0), 10);
        other.visible(SeriesId(5), 90);
        other.set_never_visible(3);
        one.merge(&other);
        let summary = one.summary().unwrap();
        assert_eq!((summary.observations, summary.worst), (2, SeriesId(5)));
        assert_eq!(summary.never_visible, Some(3));
        assert_eq!(Staleness::new().summary(), None);
    }
}
