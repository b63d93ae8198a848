//! Quantiles of times, and what operations without a time do to them.

use tsb_core::latency::{BEYOND_MIN, Curve, Quantiles};
use tsb_core::report::Run;

use super::reading::Reading;

/// A quantile that reports have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Quantile {
    /// The last word of its name.
    pub name: &'static str,
    /// in (0, 1]; 1 is the longest time.
    at: f64,
    get: fn(&Quantiles) -> Option<u64>,
}

/// The quantiles, from the shortest time.
pub(super) const QUANTILES: [Quantile; 5] = [
    Quantile {
        name: "p50",
        at: 0.5,
        get: |times| times.p50_ns,
    },
    Quantile {
        name: "p90",
        at: 0.9,
        get: |times| times.p90_ns,
    },
    Quantile {
        name: "p99",
        at: 0.99,
        get: |times| times.p99_ns,
    },
    Quantile {
        name: "p999",
        at: 0.999,
        get: |times| times.p999_ns,
    },
    Quantile {
        name: "max",
        at: 1.0,
        get: |times| times.max_ns,
    },
];

/// Times of one kind.
#[derive(Debug, Default)]
pub(super) struct Times<'r> {
    /// Of the operations that have one.
    pub quantiles: Quantiles,
    /// Their distribution, where the report has it.
    pub curve: Option<&'r Curve>,
    /// Operations that were due and have none: they are infinitely late.
    pub missing: u64,
}

impl Quantile {
    /// Its value in nanoseconds.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn of(&self, times: &Times<'_>) -> Result<Reading, String> {
        let count = times.quantiles.count;
        let rank = self.rank_among_timed(count, times.missing);
        if rank > 1.0 && times.missing > 0 {
            return Ok(Reading::exact(f64::INFINITY));
        }
        let low = (self.get)(&times.quantiles).ok_or_else(|| self.too_few(count))? as f64;
        if times.missing == 0 {
            return Ok(Reading::exact(low));
        }
        let points = times.curve.map_or(&[][..], |curve| &curve.0);
        let above = points.iter().find(|(at, _)| *at >= rank).map(|(_, value)| *value);
        let high = above
            .or(times.quantiles.max_ns)
            .map_or(f64::INFINITY, |value| value as f64);
        Ok(Reading::between(low, high.max(low)))
    }

    /// The quantile of the timed operations at which this quantile of all operations lies; above 1
    /// if it lies among those without a time.
    fn rank_among_timed(&self, count: u64, missing: u64) -> f64 {
        self.at * (count as f64 + missing as f64) / count as f64
    }

    fn too_few(&self, count: u64) -> String {
        if count == 0 {
            return "no operation was timed".to_owned();
        }
        // 1 - 0.9 is not 0.1 exactly.
        let needed = (BEYOND_MIN as f64 / (1.0 - self.at)).round();
        format!("{count} operations are too few: {} needs {needed}", self.name)
    }
}

/// A kind of time that every run may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimeKind {
    /// The beginning of its name.
    pub name: &'static str,
    pub of: for<'r> fn(&'r Run) -> Option<Times<'r>>,
    /// Why a run has none.
    pub absent: &'static str,
}

/// The kinds of times.
pub(super) const TIMES: [TimeKind; 5] = [
    TimeKind {
        name: "response",
        of: |run| {
            Some(Times {
                quantiles: run.latency.response.quantiles(),
                curve: run.latency.curves.as_ref().map(|curves| &curves.response),
                missing: run.latency.missing,
            })
        },
        absent: "",
    },
    TimeKind {
        name: "delivery",
        of: |run| {
            Some(Times {
                quantiles: run.latency.delivery.as_ref()?.quantiles(),
                ..Times::default()
            })
        },
        absent: "only a wire without answers has delivery times",
    },
    TimeKind {
        name: "service",
        of: |run| {
            Some(Times {
                quantiles: run.latency.service.quantiles(),
                ..Times::default()
            })
        },
        absent: "",
    },
    TimeKind {
        name: "lag",
        of: |run| {
            Some(Times {
                quantiles: run.latency.lag.quantiles(),
                ..Times::default()
            })
        },
        absent: "",
    },
    TimeKind {
        name: "durability.wait",
        of: |run| {
            Some(Times {
                quantiles: run.durability.wait.as_ref()?.quantiles(),
                missing: run.durability.untimed,
                ..Times::default()
            })
        },
        absent: "the time until that durability was not measured",
    },
];
