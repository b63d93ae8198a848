//! Staleness: at a given moment, the current time minus the newest timestamp that a query would
//! return.
//!
//! The caller chooses the moments, spread over the run, and gives the age of every series at each;
//! this makes a histogram over (series, moment) pairs: what a dashboard that looks at any series at any time would find. A
//! series without a visible sample is as stale as its first sample is overdue, so data that never
//! arrives counts in every quantile. A series that the plan has ended is not stale: the caller
//! leaves it out.

use serde::{Deserialize, Serialize};

use crate::latency::Histogram;
use crate::series::SeriesId;

/// Ages of the newest visible samples.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Staleness {
    ages: Histogram,
    worst: Option<(u64, SeriesId)>,
    moments: u64,
    unseen: u64,
    never_visible: u64,
}

impl Staleness {
    /// No observations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Ends a moment, at which every series was observed.
    pub fn end_moment(&mut self) {
        self.moments += 1;
    }

    /// Number of moments.
    pub const fn moments(&self) -> u64 {
        self.moments
    }

    /// Records that the newest visible sample of a series is `age_ns` old, in real time.
    #[inline]
    pub fn visible(&mut self, series: SeriesId, age_ns: u64) {
        self.ages.record(age_ns);
        if self.worst.is_none_or(|(most, _)| age_ns > most) {
            self.worst = Some((age_ns, series));
        }
    }

    /// Records that a series has no visible sample, and that its first was due `overdue_ns` ago.
    #[inline]
    pub fn unseen(&mut self, series: SeriesId, overdue_ns: u64) {
        self.unseen += 1;
        self.visible(series, overdue_ns);
    }

    /// Sets the number of series that had a sample due and were never visible.
    pub fn set_never_visible(&mut self, series: u64) {
        self.never_visible = series;
    }

    /// The same observations of series that have other numbers: series 0 has the number `first`.
    #[must_use]
    pub fn from_series(mut self, first: u32) -> Self {
        self.worst = self
            .worst
            .map(|(age_ns, series)| (age_ns, SeriesId(series.0.saturating_add(first))));
        self
    }

    /// Adds the observations of another host, whose series are others. Moments are added, so those of
    /// each host count.
    pub fn merge(&mut self, other: &Self) {
        self.ages.merge(&other.ages);
        self.worst = self.worst.max(other.worst);
        self.moments += other.moments;
        self.unseen += other.unseen;
        self.never_visible += other.never_visible;
    }

    /// The report's summary; `None` when no series was observed.
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
            visibility_delay_ms: None,
        })
    }
}

/// Staleness for the report, in milliseconds of real time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct StalenessSummary {
    /// Median over all (series, moment) pairs.
    pub p50_ms: f64,
    /// 0.99 quantile over all (series, moment) pairs.
    pub p99_ms: f64,
    /// The largest staleness of any series at any moment.
    pub max_ms: f64,
    /// That series.
    pub worst: SeriesId,
    /// Number of (series, moment) pairs. In reports of schema 1 only those with a visible sample,
    /// which alone were in the quantiles.
    pub observations: u64,
    /// Number of moments; of a run of several hosts, the sum of theirs.
    pub moments: u64,
    /// Number of (series, moment) pairs without a visible sample.
    pub unseen: u64,
    /// Number of series with a sample due that never became visible. Absent in reports of schema
    /// 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never_visible: Option<u64>,
    /// How long the store states that an accepted sample may stay invisible to queries, in
    /// milliseconds: the ages include it. Absent if it states that samples are visible at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visibility_delay_ms: Option<u64>,
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
