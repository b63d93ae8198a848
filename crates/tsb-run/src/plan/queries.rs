//! Query streams: what is asked of the store while it is written, and how often.
//!
//! As text, a stream is `KIND@RATE` or `NAME=KIND@RATE`, such as `q1@10/s` or
//! `dashboard=q2(series=14)@2/s`; a list of streams is separated by commas.

mod shape;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tsb_core::time::SECOND_NS;
use tsb_stores::Consolidation;

use super::{Plan, spans};
use crate::error::Error;
use crate::spec::or_nearest;
pub use shape::QueryShape;

/// Most streams of a plan: each has threads of its own.
const STREAMS_MAX: usize = 32;
/// Most threads of a stream.
const WORKERS_MAX: usize = 64;
/// Highest rate of a stream, in queries per second.
const RATE_MAX: f64 = 1e6;

const MINUTE_NS: u64 = 60 * SECOND_NS;
const HOUR_NS: u64 = 60 * MINUTE_NS;
const DAY_NS: u64 = 24 * HOUR_NS;

/// Queries of one kind, asked at a rate of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
#[non_exhaustive]
pub struct QueryStream {
    /// Its name in reports; no two streams of a plan have the same.
    pub name: String,
    /// What each query asks for.
    pub kind: QueryKind,
    /// How often.
    pub rate: QueryRate,
}

/// One of several hosts that ask the same streams of queries in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueryTurn {
    /// Its number, from 0.
    pub host: usize,
    /// How many hosts there are; at least 1.
    pub hosts: usize,
}

/// How often a stream asks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum QueryRate {
    /// This many queries per second, each at its due time. in (0, 1,000,000]
    PerSecond(f64),
    /// As fast as the store answers: a closed loop for each thread.
    Max,
}

/// A kind of query with its parameters, from its text: `q1`, `range(5m)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryKind {
    word: &'static str,
    shape: QueryShape,
}

/// The kinds by the word that names them, with the values that their parameters have unless they
/// are given: those of Mohawk (`q1`, `q2`), of TSBS (`single-groupby`, `double-groupby`,
/// `lastpoint`, `high-cpu`) and of `SciTS` (`range`, `outside`, `stats`, `downsample`, `difference`).
const KINDS: [(&str, QueryShape); 12] = [
    ("last", QueryShape::Last { series: 1 }),
    ("q1", steps(1, HOUR_NS, MINUTE_NS, Consolidation::Max)),
    ("q2", steps(7, DAY_NS, HOUR_NS, Consolidation::Max)),
    (
        "range",
        QueryShape::Raw {
            series: 1,
            span_ns: 5 * MINUTE_NS,
        },
    ),
    ("downsample", steps(1, HOUR_NS, MINUTE_NS, Consolidation::Average)),
    ("single-groupby", steps(8, HOUR_NS, MINUTE_NS, Consolidation::Max)),
    (
        "double-groupby",
        steps(10, 12 * HOUR_NS, HOUR_NS, Consolidation::Average),
    ),
    ("lastpoint", QueryShape::Last { series: 10 }),
    ("high-cpu", outside(12 * HOUR_NS, f64::NEG_INFINITY, 90.0)),
    ("outside", outside(HOUR_NS, 10.0, 90.0)),
    (
        "stats",
        QueryShape::Statistics {
            series: 1,
            span_ns: HOUR_NS,
        },
    ),
    (
        "difference",
        QueryShape::Difference {
            span_ns: HOUR_NS,
            step_ns: MINUTE_NS,
            by: Consolidation::Average,
        },
    ),
];

const fn outside(span_ns: u64, below: f64, above: f64) -> QueryShape {
    QueryShape::Outside {
        series: 1,
        span_ns,
        below,
        above,
    }
}

const fn steps(series: u32, span_ns: u64, step_ns: u64, by: Consolidation) -> QueryShape {
    QueryShape::Steps {
        series,
        span_ns,
        step_ns,
        by,
    }
}

/// Why a text names no query stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidQueryStream {
    why: String,
}

impl fmt::Display for InvalidQueryStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for InvalidQueryStream {}

impl From<String> for InvalidQueryStream {
    fn from(why: String) -> Self {
        Self { why }
    }
}

impl QueryStream {
    /// A stream; without a name it has that of its kind and parameters.
    ///
    /// # Errors
    /// If a stream cannot have this name.
    pub fn new(name: Option<&str>, kind: QueryKind, rate: QueryRate) -> Result<Self, InvalidQueryStream> {
        let is_name = |name: &str| {
            !name.is_empty() && name.len() <= 64 && !name.contains(|c: char| c.is_control() || "=@(".contains(c))
        };
        if name.is_some_and(|name| !is_name(name)) {
            return Err("a name is 1 to 64 bytes without =, @, ( and control characters"
                .to_owned()
                .into());
        }
        Ok(Self {
            name: name.map_or_else(|| kind.to_string(), str::to_owned),
            kind,
            rate,
        })
    }

    /// Parses a list of streams, separated by commas outside of parentheses; `none` has none.
    ///
    /// # Errors
    /// If one of them is invalid; the text names it.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, InvalidQueryStream> {
        if text.trim() == "none" {
            return Ok(Vec::new());
        }
        let mut depth = 0_usize;
        let parts = text.split(|c: char| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == ',' && depth == 0
        });
        parts.map(|part| part.trim().parse()).collect()
    }

    /// What it asks and how often, without its name: `q1@10/s`.
    pub fn asked(&self) -> String {
        format!("{}@{}", self.kind, self.rate)
    }
}

impl QueryKind {
    /// The kind that a word names, with the parameters that it has unless they are set.
    ///
    /// # Errors
    /// If there is no such kind; names the nearest.
    pub fn named(word: &str) -> Result<Self, InvalidQueryStream> {
        let found = KINDS.into_iter().find(|(known, _)| *known == word);
        let (word, shape) = found.ok_or_else(|| {
            let nearest = or_nearest(word, KINDS.iter().map(|(known, _)| *known), "");
            format!("{word:?} is no kind of query{nearest}")
        })?;
        Ok(Self { word, shape })
    }

    /// Sets a parameter, such as `span` to `5m`. When all are set, see [`Self::check`].
    ///
    /// # Errors
    /// If the kind has no such parameter, or it does not take this value.
    pub fn set(&mut self, parameter: &str, value: &str) -> Result<(), InvalidQueryStream> {
        Ok(self.shape.set(parameter, value)?)
    }

    /// Checks the parameters together.
    ///
    /// # Errors
    /// If one is out of its range.
    pub fn check(&self) -> Result<(), InvalidQueryStream> {
        Ok(self.shape.check()?)
    }

    /// The word that names it.
    pub const fn word(&self) -> &'static str {
        self.word
    }

    /// What a query of this kind asks for.
    pub const fn shape(&self) -> QueryShape {
        self.shape
    }

    /// The parameters that differ from those of the word, each with its value as text.
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let usual = KINDS.iter().find(|(word, _)| *word == self.word);
        usual.map_or_else(Vec::new, |(_, usual)| self.shape.differing(usual))
    }
}

impl FromStr for QueryKind {
    type Err = InvalidQueryStream;

    /// Parses `q1`, `range(5m)` or `q2(series=14,span=7d,step=1h)`. A parameter without a name is
    /// the span.
    fn from_str(text: &str) -> Result<Self, InvalidQueryStream> {
        let (word, parameters) = match text.split_once('(') {
            Some((word, rest)) => {
                let inside = rest.strip_suffix(')');
                (
                    word,
                    inside.ok_or_else(|| format!("{text}: the parenthesis is not closed"))?,
                )
            }
            None => (text, ""),
        };
        let mut kind = Self::named(word.trim())?;
        for parameter in parameters.split(',').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or(("span", parameter));
            kind.set(name.trim(), value.trim())
                .map_err(|why| format!("{text}: {why}"))?;
        }
        kind.check().map_err(|why| format!("{text}: {why}"))?;
        Ok(kind)
    }
}

impl FromStr for QueryRate {
    type Err = InvalidQueryStream;

    /// Parses `10/s`, `0.5/s`, `30/m`, `2/h` or `max`.
    fn from_str(text: &str) -> Result<Self, InvalidQueryStream> {
        if text == "max" {
            return Ok(Self::Max);
        }
        let invalid = || format!("{text:?} is no rate of queries; try 10/s, 30/m or max");
        let (count, unit) = text.split_once('/').ok_or_else(invalid)?;
        let count: f64 = count.trim().parse().map_err(|_| invalid())?;
        let seconds = match unit.trim() {
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3_600.0,
            _ => return Err(invalid().into()),
        };
        let per_second = count / seconds;
        if !(per_second > 0.0 && per_second <= RATE_MAX) {
            return Err(format!("{text}: a rate is above 0 and at most {RATE_MAX} queries per second").into());
        }
        Ok(Self::PerSecond(per_second))
    }
}

impl FromStr for QueryStream {
    type Err = InvalidQueryStream;

    fn from_str(text: &str) -> Result<Self, InvalidQueryStream> {
        let (asked, rate) = text
            .rsplit_once('@')
            .ok_or_else(|| format!("{text:?} has no rate; try {text}@10/s"))?;
        // A name ends at an equals sign that is not one of a parameter.
        let head = asked.split('(').next().unwrap_or_default();
        let (name, kind) = match head.split_once('=') {
            Some((name, _)) => (Some(name.trim()), &asked[name.len() + 1..]),
            None => (None, asked),
        };
        let kind: QueryKind = kind.trim().parse()?;
        Self::new(name, kind, rate.trim().parse()?).map_err(|why| format!("{text}: {why}").into())
    }
}

impl fmt::Display for QueryRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerSecond(rate) => write!(f, "{rate}/s"),
            Self::Max => f.write_str("max"),
        }
    }
}

impl fmt::Display for QueryKind {
    /// The word of its kind, and the parameters that differ from the kind's own.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters = self.parameters();
        let parameters: Vec<String> = parameters
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        match parameters.as_slice() {
            [] => f.write_str(self.word),
            some => write!(f, "{}({})", self.word, some.join(",")),
        }
    }
}

impl fmt::Display for QueryStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name != self.kind.to_string() {
            write!(f, "{}=", self.name)?;
        }
        f.write_str(&self.asked())
    }
}

impl TryFrom<String> for QueryStream {
    type Error = InvalidQueryStream;

    fn try_from(text: String) -> Result<Self, InvalidQueryStream> {
        text.parse()
    }
}

impl From<QueryStream> for String {
    fn from(stream: QueryStream) -> Self {
        stream.to_string()
    }
}

/// A stream, and when it asks.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct TimedStream {
    /// What it asks, under its name in reports.
    pub stream: QueryStream,
    /// When it begins, in nanoseconds since the start of the run.
    pub from_ns: u64,
    /// How long it asks, in nanoseconds; `None`: until the run ends.
    pub length_ns: Option<u64>,
}

impl Plan {
    /// The streams of the whole run, then those of each phase. A stream of a phase is called
    /// `PHASE/NAME`.
    pub fn timed_streams(&self) -> Vec<TimedStream> {
        let whole = self.queries.iter().map(|stream| TimedStream {
            stream: stream.clone(),
            from_ns: 0,
            length_ns: self.duration_ns,
        });
        let of_phases = spans(&self.phases).flat_map(|(phase, from_ns, _)| {
            phase.queries.iter().map(move |stream| TimedStream {
                stream: QueryStream {
                    name: format!("{}/{}", phase.name, stream.name),
                    ..stream.clone()
                },
                from_ns,
                length_ns: Some(phase.duration_ns),
            })
        });
        whole.chain(of_phases).collect()
    }
}

/// Checks the streams of a plan together.
pub(super) fn check(streams: &[TimedStream], workers: usize) -> Result<(), Error> {
    if workers == 0 || workers > WORKERS_MAX {
        return Err(Error::plan("cannot ask with this many threads")
            .because_of(format!("--query-workers is from 1 to {WORKERS_MAX}")));
    }
    if streams.len() > STREAMS_MAX {
        return Err(Error::plan(format!("cannot ask {} streams of queries", streams.len()))
            .because_of(format!("there are at most {STREAMS_MAX}")));
    }
    let mut names = BTreeSet::new();
    let mut streams = streams.iter().map(|timed| &timed.stream);
    match streams.find(|stream| !names.insert(stream.name.as_str())) {
        Some(twice) => Err(
            Error::plan(format!("cannot tell two streams called {} apart", twice.name))
                .because_of("the report has one entry for each name")
                .hint(format!(
                    "give one of them a name of its own: --queries 'other={}'",
                    twice.asked()
                )),
        ),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> Result<String, String> {
        let streams = QueryStream::parse_list(text).map_err(|error| error.to_string())?;
        let streams: Vec<String> = streams.iter().map(ToString::to_string).collect();
        Ok(streams.join(","))
    }

    #[test]
    fn streams_are_read_and_written_alike() {
        for same in [
            "q1@10/s",
            "q1@10/s,q2@1/s,last@100/s",
            "range@0.5/s",
            "last(series=100)@max",
            "lastpoint@1/s,double-groupby(series=20)@1/s",
            "q1(by=count)@1/s,downsample(by=sum)@1/s",
            "dashboard=q2(series=14,span=168h,step=2h)@2/s,q2@1/s",
        ] {
            assert_eq!(shown(same).unwrap(), same);
        }
        for (text, canonical) in [
            ("range(5m)@30/m", "range@0.5/s"),
            ("range( 1h , series = 3)@1/s", "range(series=3,span=1h)@1/s"),
            ("q2(span=1d)@1/s", "q2@1/s"),
        ] {
            assert_eq!(shown(text).unwrap(), canonical);
        }
        let [stream] = &QueryStream::parse_list("q1(span=2h)@4/s").unwrap()[..] else {
            panic!("one stream");
        };
        assert_eq!((stream.name.as_str(), stream.kind.shape().series()), ("q1(span=2h)", 1));
        assert_eq!(stream.kind.shape().span_ns(), Some(2 * HOUR_NS));
    }

    #[test]
    fn errors_of_a_stream_name_what_is_wrong() {
        for (text, words) in [
            ("q1", "no rate; try q1@10/s"),
            ("q3@1/s", "no kind of query"),
            ("lats@1/s", "last"),
            ("q1@often", "no rate of queries"),
            ("q1@0/s", "above 0"),
            ("q1@2e6/s", "at most 1000000"),
            ("q1@NaN/s", "above 0"),
            ("q1(1h@1/s", "not closed"),
            ("last(span=1h)@1/s", "no parameter \"span\""),
            ("q1(step=2h)@1/s", "step is from"),
            ("q1(by=most)@1/s", "by is not"),
            ("q1(series=0)@1/s", "series is from 1"),
            ("range(0s)@1/s", "span is from"),
            ("outside(below=9,above=8)@1/s", "below is at most above"),
            ("outside(above=high)@1/s", "a number"),
            ("high-cpu(above=NaN)@1/s", "a number"),
            ("high-cpu(step=1m)@1/s", "no parameter \"step\""),
            ("difference(series=3)@1/s", "no parameter \"series\""),
            ("difference(step=2h)@1/s", "step is from"),
            ("=q1@1/s", "a name is"),
            ("", "no rate"),
        ] {
            let why = shown(text).unwrap_err();
            assert!(why.contains(words), "{text}: {why}");
        }
    }

    #[test]
    fn streams_of_a_plan_have_names_of_their_own() {
        let streams = |text| {
            let plan = Plan {
                queries: QueryStream::parse_list(text).unwrap(),
                ..Plan::default()
            };
            plan.timed_streams()
        };
        assert!(streams("none").is_empty());
        assert!(check(&streams("q1@1/s,q2@1/s"), 1).is_ok());
        assert!(check(&streams("q1@1/s,second=q1@9/s"), 1).is_ok());
        let refused = format!("{:?}", check(&streams("q1@1/s,q1@9/s"), 1).unwrap_err());
        assert!(refused.contains("other=q1@9/s"), "{refused}");
        assert!(check(&streams("q1@1/s"), 0).is_err());
        assert!(check(&streams("q1@1/s"), WORKERS_MAX + 1).is_err());
    }
}
