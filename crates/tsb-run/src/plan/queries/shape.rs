//! What a query asks for, its parameters, and their ranges.

use tsb_core::time::SECOND_NS;
use tsb_stores::Consolidation;

use crate::spec::or_nearest;
use crate::units;

/// Most series of one query.
const SERIES_MAX: u32 = 10_000;
/// Longest range of a query, in nanoseconds.
const SPAN_MAX_NS: u64 = 10 * 365 * 86_400 * SECOND_NS;
/// Shortest step of a query that consolidates, in nanoseconds.
const STEP_MIN_NS: u64 = 1_000_000;

/// Ways to make one value of the samples of a step, by their names.
const CONSOLIDATIONS: [(&str, Consolidation); 7] = [
    ("min", Consolidation::Min),
    ("max", Consolidation::Max),
    ("average", Consolidation::Average),
    ("sum", Consolidation::Sum),
    ("count", Consolidation::Count),
    ("first", Consolidation::First),
    ("last", Consolidation::Last),
];

/// What a query asks for.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum QueryShape {
    /// The newest sample of some series: its time, then its value.
    Last {
        /// Number of series. in [1, 10,000]
        series: u32,
    },
    /// The raw samples of some series.
    Raw {
        /// Number of series. in [1, 10,000]
        series: u32,
        /// Length of the range in nanoseconds, from 1 to ten years of 365 days.
        span_ns: u64,
    },
    /// One value for each step, of some series.
    Steps {
        /// Number of series. in [1, 10,000]
        series: u32,
        /// Length of the range in nanoseconds, from 1 to ten years of 365 days.
        span_ns: u64,
        /// Length of a step in nanoseconds, from 1,000,000 to the length of the range.
        step_ns: u64,
        /// How the samples of a step become one value.
        by: Consolidation,
    },
    /// The raw samples of some series of which the value is outside a band. The store returns all
    /// samples of the range, and the query selects.
    Outside {
        /// Number of series. in [1, 10,000]
        series: u32,
        /// Length of the range in nanoseconds, from 1 to ten years of 365 days.
        span_ns: u64,
        /// Lower end of the band, a value that is inside; negative infinity: there is none.
        below: f64,
        /// Upper end of the band, a value that is inside; infinity: there is none.
        above: f64,
    },
    /// Number, minimum, maximum, mean and standard deviation of the raw samples of some series, each
    /// by itself. The store returns the samples, and the query computes.
    Statistics {
        /// Number of series. in [1, 10,000]
        series: u32,
        /// Length of the range in nanoseconds, from 1 to ten years of 365 days.
        span_ns: u64,
    },
    /// One value for each step of two series, the second subtracted from the first in the steps that
    /// both have. The store returns the steps, and the query subtracts.
    Difference {
        /// Length of the range in nanoseconds, from 1 to ten years of 365 days.
        span_ns: u64,
        /// Length of a step in nanoseconds, from 1,000,000 to the length of the range.
        step_ns: u64,
        /// How the samples of a step become one value.
        by: Consolidation,
    },
}

impl QueryShape {
    /// Number of series of one query.
    pub const fn series(&self) -> u32 {
        match *self {
            Self::Last { series }
            | Self::Raw { series, .. }
            | Self::Steps { series, .. }
            | Self::Outside { series, .. }
            | Self::Statistics { series, .. } => series,
            Self::Difference { .. } => 2,
        }
    }

    /// Length of the range in nanoseconds; `None` for the newest sample.
    pub const fn span_ns(&self) -> Option<u64> {
        match *self {
            Self::Last { .. } => None,
            Self::Raw { span_ns, .. }
            | Self::Steps { span_ns, .. }
            | Self::Outside { span_ns, .. }
            | Self::Statistics { span_ns, .. }
            | Self::Difference { span_ns, .. } => Some(span_ns),
        }
    }

    /// Length of a step in nanoseconds, and how its samples become one value; `None` where the store
    /// returns samples as they are.
    pub const fn steps(&self) -> Option<(u64, Consolidation)> {
        match *self {
            Self::Steps { step_ns, by, .. } | Self::Difference { step_ns, by, .. } => Some((step_ns, by)),
            _ => None,
        }
    }

    /// The names of its parameters.
    const fn parameters(&self) -> &'static [&'static str] {
        match self {
            Self::Last { .. } => &["series"],
            Self::Raw { .. } | Self::Statistics { .. } => &["series", "span"],
            Self::Steps { .. } => &["series", "span", "step", "by"],
            Self::Outside { .. } => &["series", "span", "below", "above"],
            Self::Difference { .. } => &["span", "step", "by"],
        }
    }

    pub(super) fn set(&mut self, parameter: &str, value: &str) -> Result<(), String> {
        let known = self.parameters();
        if !known.contains(&parameter) {
            let nearest = or_nearest(parameter, known.iter().copied(), "");
            return Err(format!("it has no parameter {parameter:?}{nearest}"));
        }
        let bound = || {
            let number = value.parse().ok().filter(|number: &f64| !number.is_nan());
            number.ok_or_else(|| format!("{parameter} is not {value:?}; it is a number, such as 90"))
        };
        match (parameter, self) {
            (
                "series",
                Self::Last { series }
                | Self::Raw { series, .. }
                | Self::Steps { series, .. }
                | Self::Outside { series, .. }
                | Self::Statistics { series, .. },
            ) => *series = u32::try_from(units::parse_count(value)?).unwrap_or(u32::MAX),
            (
                "span",
                Self::Raw { span_ns, .. }
                | Self::Steps { span_ns, .. }
                | Self::Outside { span_ns, .. }
                | Self::Statistics { span_ns, .. }
                | Self::Difference { span_ns, .. },
            ) => *span_ns = units::parse_duration(value)?,
            ("step", Self::Steps { step_ns, .. } | Self::Difference { step_ns, .. }) => {
                *step_ns = units::parse_duration(value)?;
            }
            ("by", Self::Steps { by, .. } | Self::Difference { by, .. }) => {
                let known = CONSOLIDATIONS.iter().find(|(name, _)| *name == value);
                let names = CONSOLIDATIONS.iter().map(|(name, _)| *name);
                let (_, known) = known.ok_or_else(|| format!("by is not {value:?}{}", or_nearest(value, names, "")))?;
                *by = *known;
            }
            ("below", Self::Outside { below, .. }) => *below = bound()?,
            ("above", Self::Outside { above, .. }) => *above = bound()?,
            // Another shape does not have the parameter.
            _ => {}
        }
        Ok(())
    }

    /// The parameters that differ from those of `usual`, with their values as text.
    pub(super) fn differing(&self, usual: &Self) -> Vec<(&'static str, String)> {
        let mut parameters = Vec::new();
        if self.series() != usual.series() {
            parameters.push(("series", self.series().to_string()));
        }
        if let Some(span_ns) = self.span_ns().filter(|_| self.span_ns() != usual.span_ns()) {
            parameters.push(("span", units::exact_duration(span_ns)));
        }
        if let Some(((step_ns, by), (usual_ns, usually))) = self.steps().zip(usual.steps()) {
            if step_ns != usual_ns {
                parameters.push(("step", units::exact_duration(step_ns)));
            }
            let name = CONSOLIDATIONS.iter().find(|(_, known)| *known == by);
            parameters.extend(
                name.filter(|_| by != usually)
                    .map(|(name, _)| ("by", (*name).to_owned())),
            );
        }
        if let Some((own, usual)) = self.band().zip(usual.band()) {
            let ends = [("below", own.0, usual.0), ("above", own.1, usual.1)];
            let differing = ends.into_iter().filter(|(_, own, usual)| own != usual);
            parameters.extend(differing.map(|(name, own, _)| (name, own.to_string())));
        }
        parameters
    }

    const fn band(&self) -> Option<(f64, f64)> {
        match *self {
            Self::Outside { below, above, .. } => Some((below, above)),
            _ => None,
        }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        if self.series() == 0 || self.series() > SERIES_MAX {
            return Err(format!("series is from 1 to {SERIES_MAX}"));
        }
        if self
            .span_ns()
            .is_some_and(|span_ns| span_ns == 0 || span_ns > SPAN_MAX_NS)
        {
            return Err("span is from 1ns to ten years".to_owned());
        }
        let span_ns = self.span_ns().unwrap_or(0);
        if self
            .steps()
            .is_some_and(|(step_ns, _)| step_ns < STEP_MIN_NS || step_ns > span_ns)
        {
            return Err("step is from 1ms to the span".to_owned());
        }
        match self.band() {
            Some((below, above)) if below > above => {
                Err("below is at most above: values between them are inside".to_owned())
            }
            _ => Ok(()),
        }
    }
}
