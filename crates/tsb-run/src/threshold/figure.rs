//! A figure of a run by its name.

use std::fmt;

use tsb_core::ledger::Counter;
use tsb_core::report::Run;
use tsb_core::stats::median;

use super::better::Better;
use super::error::ConditionError;
use super::quantile::{QUANTILES, Quantile, TIMES, TimeKind};
use super::query::{PREFIX, QueryFigure};
use super::reading::Reading;
use super::scalars::{SCALARS, Scalar};
use crate::units::Unit;

/// A figure that a run may have.
#[derive(Clone, Debug)]
pub struct Figure {
    name: String,
    source: Source,
}

#[derive(Clone, Debug)]
enum Source {
    Scalar(&'static Scalar),
    Count(Counter),
    Time(&'static TimeKind, Quantile),
    Query(String, QueryFigure),
}

impl Figure {
    /// The figures that do not depend on the plan, in the order in which reports list them: times, scalars,
    /// counts.
    pub fn all() -> Vec<Self> {
        let figure = |name: String, source| Self { name, source };
        let scalars = SCALARS
            .iter()
            .map(|scalar| figure(scalar.name.to_owned(), Source::Scalar(scalar)));
        let counts = Counter::ALL.map(|counter| figure(counter.name().to_owned(), Source::Count(counter)));
        let times = TIMES.iter().flat_map(|kind| {
            QUANTILES.map(|quantile| figure(format!("{}.{}", kind.name, quantile.name), Source::Time(kind, quantile)))
        });
        times.chain(scalars).chain(counts).collect()
    }

    /// The figures of [`Self::all`], and those of the query streams of `run`.
    pub fn all_of(run: &Run) -> Vec<Self> {
        let streams = run.query_latency.keys().flat_map(|stream| {
            QueryFigure::all().map(move |figure| Self {
                name: format!("{PREFIX}{stream}.{}", figure.suffix()),
                source: Source::Query(stream.clone(), figure),
            })
        });
        Self::all().into_iter().chain(streams).collect()
    }

    /// The figure called `name`. A figure of a query stream is taken without knowing whether there
    /// is such a stream.
    ///
    /// # Errors
    /// If there is none; the error suggests the nearest names.
    pub fn named(name: &str) -> Result<Self, ConditionError> {
        if let Some((stream, figure)) = QueryFigure::parse(name) {
            return Ok(Self {
                name: name.to_owned(),
                source: Source::Query(stream.to_owned(), figure),
            });
        }
        if name.starts_with(PREFIX) {
            let suffixes: Vec<String> = QueryFigure::all().map(|figure| figure.suffix()).collect();
            return Err(
                ConditionError::new(format!("no figure of a query stream is called {name:?}"))
                    .with_hint(format!("query.NAME is followed by one of {}", suffixes.join(", "))),
            );
        }
        let all = Self::all();
        match all.iter().find(|figure| figure.name == name) {
            Some(figure) => Ok(figure.clone()),
            None => Err(ConditionError::unknown(
                name,
                all.iter().map(|figure| figure.name.as_str()),
            )),
        }
    }

    /// Its name: `response.p99`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The unit of its numbers. Times are in nanoseconds.
    pub fn unit(&self) -> Unit {
        match &self.source {
            Source::Scalar(scalar) => scalar.unit,
            Source::Count(_) => Unit::Count,
            Source::Time(..) => Unit::Nanos,
            Source::Query(_, figure) => figure.unit(),
        }
    }

    /// The direction in which it gets better.
    pub fn better(&self) -> Better {
        match &self.source {
            Source::Scalar(scalar) => scalar.better,
            Source::Count(counter) => better_count(*counter),
            Source::Time(..) => Better::Lower,
            Source::Query(_, figure) => figure.better(),
        }
    }

    /// What `run` says of it.
    ///
    /// # Errors
    /// Why the run does not have it.
    pub fn of(&self, run: &Run) -> Result<Reading, String> {
        match &self.source {
            Source::Scalar(scalar) => (scalar.of)(run).ok_or_else(|| scalar.absent.to_owned()),
            Source::Count(counter) => count(*counter, run),
            Source::Time(kind, quantile) => quantile.of(&(kind.of)(run).ok_or(kind.absent)?),
            Source::Query(stream, figure) => figure.of(stream, run),
        }
    }
}

impl Figure {
    /// The median over repeated rounds; of a count, such as that of lost samples, the worst.
    ///
    /// # Errors
    /// Why a round does not have it, or that there is none.
    pub fn of_rounds(&self, runs: &[&Run]) -> Result<Reading, String> {
        let readings = runs.iter().map(|run| self.of(run)).collect::<Result<Vec<_>, _>>()?;
        let over_rounds = |bound: fn(Reading) -> f64| {
            let bounds = readings.iter().map(|reading| bound(*reading));
            let one = match (self.unit(), self.better()) {
                (Unit::Count, Better::Lower) => bounds.reduce(f64::max),
                (Unit::Count, Better::Higher) => bounds.reduce(f64::min),
                _ => median(&bounds.collect::<Vec<_>>()),
            };
            one.ok_or_else(|| "there is no run".to_owned())
        };
        Ok(Reading::between(
            over_rounds(Reading::low)?,
            over_rounds(Reading::high)?,
        ))
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

fn count(counter: Counter, run: &Run) -> Result<Reading, String> {
    let value = run.ledger.counts.get(counter);
    let value = value.ok_or_else(|| format!("this run has no count of {counter} samples"))? as f64;
    Ok(match run.ledger.lost_at_most {
        Some(most) if counter == Counter::Lost => Reading::between(value, value.max(most as f64)),
        _ => Reading::exact(value),
    })
}

const fn better_count(counter: Counter) -> Better {
    match counter {
        Counter::Accepted | Counter::Confirmed | Counter::Verified => Better::Higher,
        Counter::Due | Counter::Sent | Counter::Received | Counter::Superseded | Counter::Expired => Better::Neither,
        _ => Better::Lower,
    }
}
