//! The figures of a query stream: `query.NAME.p99`.

use tsb_core::latency::Quantiles;
use tsb_core::report::{QueryLatency, Run};

use super::figure::Better;
use super::quantile::{QUANTILES, Quantile, Times};
use super::reading::Reading;
use crate::units::Unit;

/// How the names of these figures begin.
pub(super) const PREFIX: &str = "query.";

/// A figure of any query stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum QueryFigure {
    Time(&'static QueryTime, Quantile),
    Number(&'static QueryNumber),
}

/// A kind of time of a stream.
#[derive(Debug)]
pub(super) struct QueryTime {
    /// Between the name of the stream and that of the quantile, with a dot behind it.
    infix: &'static str,
    of: fn(&QueryLatency) -> Option<Times<'static>>,
}

/// A number of a stream.
#[derive(Debug)]
pub(super) struct QueryNumber {
    name: &'static str,
    unit: Unit,
    better: Better,
    of: fn(&QueryLatency) -> Option<f64>,
}

fn times(quantiles: Quantiles, missing: u64) -> Times<'static> {
    Times {
        quantiles,
        missing,
        ..Times::default()
    }
}

// Response last: it has no infix, so that the others are found first.
const TIMES: [QueryTime; 3] = [
    QueryTime {
        infix: "service.",
        of: |stream| Some(times(stream.service.quantiles(), 0)),
    },
    QueryTime {
        infix: "lag.",
        of: |stream| Some(times(stream.lag.as_ref()?.quantiles(), 0)),
    },
    QueryTime {
        infix: "",
        of: |stream| Some(times(stream.response, stream.shed.saturating_add(stream.unanswered))),
    },
];

const fn number(name: &'static str, unit: Unit, better: Better, of: fn(&QueryLatency) -> Option<f64>) -> QueryNumber {
    QueryNumber { name, unit, better, of }
}

const NUMBERS: [QueryNumber; 9] = [
    number("asked", Unit::Rate, Better::Neither, |stream| stream.asked_per_second),
    number("held", Unit::Rate, Better::Higher, |stream| {
        Some(stream.held_per_second)
    }),
    number("answers", Unit::Count, Better::Higher, |stream| {
        Some(stream.answers as f64)
    }),
    number("wrong", Unit::Count, Better::Lower, |stream| Some(stream.wrong as f64)),
    number("shed", Unit::Count, Better::Lower, |stream| Some(stream.shed as f64)),
    number("early", Unit::Count, Better::Neither, |stream| {
        Some(stream.early as f64)
    }),
    number("unanswered", Unit::Count, Better::Lower, |stream| {
        Some(stream.unanswered as f64)
    }),
    number("unjudged", Unit::Count, Better::Lower, |stream| {
        Some(stream.unjudged as f64)
    }),
    number("cpu", Unit::Nanos, Better::Lower, |stream| {
        stream.store_cpu_ns_per_query
    }),
];

impl QueryFigure {
    /// All figures of a stream.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let times = TIMES
            .iter()
            .flat_map(|kind| QUANTILES.map(|quantile| Self::Time(kind, quantile)));
        times.chain(NUMBERS.iter().map(Self::Number))
    }

    /// The end of its name, behind the name of the stream and a dot.
    pub(super) fn suffix(&self) -> String {
        match self {
            Self::Time(kind, quantile) => format!("{}{}", kind.infix, quantile.name),
            Self::Number(number) => number.name.to_owned(),
        }
    }

    /// The name of the stream and the figure that `name` means, if it has this form.
    pub(super) fn parse(name: &str) -> Option<(&str, Self)> {
        let rest = name.strip_prefix(PREFIX)?;
        Self::all().find_map(|figure| {
            let stream = rest.strip_suffix(&figure.suffix())?.strip_suffix('.')?;
            (!stream.is_empty()).then_some((stream, figure))
        })
    }

    pub(super) fn unit(&self) -> Unit {
        match self {
            Self::Time(..) => Unit::Nanos,
            Self::Number(number) => number.unit,
        }
    }

    pub(super) fn better(&self) -> Better {
        match self {
            Self::Time(..) => Better::Lower,
            Self::Number(number) => number.better,
        }
    }

    pub(super) fn of(&self, name: &str, run: &Run) -> Result<Reading, String> {
        let Some(stream) = run.query_latency.get(name) else {
            let names: Vec<&str> = run.query_latency.keys().map(String::as_str).collect();
            return Err(match names.as_slice() {
                [] => "the run asked no queries".to_owned(),
                names => format!("no query stream is called {name:?}; there are {}", names.join(", ")),
            });
        };
        let absent = || "a closed loop has none".to_owned();
        match self {
            Self::Time(kind, quantile) => quantile.of(&(kind.of)(stream).ok_or_else(absent)?),
            Self::Number(number) => match (number.of)(stream) {
                Some(value) => Ok(Reading::exact(value)),
                None if number.name == "asked" => Err(absent()),
                None => Err("it could not be measured".to_owned()),
            },
        }
    }
}
