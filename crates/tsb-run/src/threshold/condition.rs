//! A condition on a run: a figure compared with a limit, or a verdict.

use std::fmt;
use std::str::FromStr;

use tsb_core::report::Run;
use tsb_core::verdict::Status;

use super::error::ConditionError;
use super::figure::Figure;
use super::reading::Reading;
use crate::units::Unit;

/// A condition as it was written, such as `response.p99>50ms`, `cost.store>+5%`, `lost=0` or
/// `valid`.
#[derive(Clone, Debug)]
pub struct Condition {
    text: String,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Verdict(Status),
    Figure(Figure, Relation, Limit),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Above,
    AtLeast,
    Below,
    AtMost,
    Equal,
    Unequal,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    Value(f64),
    /// Of the baseline, with its sign: 0.1 is 10 % more.
    Change(f64),
}

/// Whether a condition is true of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is true.
    True,
    /// It is false.
    False,
    /// The run does not have the figure, or not exactly enough to decide.
    Absent,
}

/// What came of a condition.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Evaluation {
    /// Whether it is true.
    pub outcome: Outcome,
    /// The figure of the run, if it has one.
    pub measured: Option<Reading>,
    /// The figure of the baseline, where the condition needs it and the baseline has it.
    pub baseline: Option<Reading>,
    /// What was measured or found, and the limit; where the outcome is absent, the reason: a
    /// sentence without a full stop.
    pub sentence: String,
}

impl Condition {
    /// Parses conditions between commas, such as `staleness.p99<2s,response.p99<50ms,lost=0`. A
    /// comma within parentheses belongs to the name of a query stream.
    ///
    /// # Errors
    /// As [`Self::from_str`], for the first that is wrong.
    pub fn list(text: &str) -> Result<Vec<Self>, ConditionError> {
        let mut depth = 0_usize;
        let parts = text.split(|c| {
            match c {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
            c == ',' && depth == 0
        });
        parts.map(str::parse).collect()
    }

    /// Whether it compares with a baseline.
    pub fn needs_baseline(&self) -> bool {
        matches!(self.test, Test::Figure(_, _, Limit::Change(_)))
    }

    /// The figure that it is about; `None` for a verdict.
    pub fn figure(&self) -> Option<&Figure> {
        match &self.test {
            Test::Verdict(_) => None,
            Test::Figure(figure, ..) => Some(figure),
        }
    }

    /// Its limit in the unit of its figure; `None` for a verdict, and for a change from a baseline.
    pub fn limit(&self) -> Option<f64> {
        match &self.test {
            Test::Figure(_, _, Limit::Value(limit)) => Some(*limit),
            _ => None,
        }
    }

    /// Whether it is true of `run`; a change is one from `baseline`.
    pub fn check(&self, run: &Run, baseline: Option<&Run>) -> Evaluation {
        self.check_rounds(&[run], baseline.as_slice())
    }

    /// Whether it is true of the median of repeated rounds, or of the worst round of a count: one round
    /// that lost a sample breaks `lost=0`. A change is one from the same of `baseline`. A verdict has to be that of every round; where only some have it, nothing is
    /// decided.
    pub fn check_rounds(&self, runs: &[&Run], baseline: &[&Run]) -> Evaluation {
        match &self.test {
            Test::Verdict(status) => check_verdict(*status, runs),
            Test::Figure(figure, relation, limit) => check_figure(figure, *relation, *limit, runs, baseline),
        }
    }
}

fn check_verdict(status: Status, runs: &[&Run]) -> Evaluation {
    let alike = runs.iter().filter(|run| run.verdict.status == status).count();
    let outcome = match alike {
        0 if !runs.is_empty() => Outcome::False,
        all if all == runs.len() && all > 0 => Outcome::True,
        _ => Outcome::Absent,
    };
    let other = runs.iter().find(|run| run.verdict.status != status).or(runs.first());
    let mut sentence = other.map_or_else(|| "there is no run".to_owned(), |run| verdict_sentence(run));
    if outcome == Outcome::Absent && !runs.is_empty() {
        sentence = format!("{alike} of {} rounds are {status}, and {sentence}", runs.len());
    }
    Evaluation {
        outcome,
        measured: None,
        baseline: None,
        sentence,
    }
}

fn verdict_sentence(run: &Run) -> String {
    let verdict = &run.verdict;
    match verdict.reasons.first() {
        Some(reason) => format!("the run is {}: {reason}", verdict.status),
        None => format!("the run is {}", verdict.status),
    }
}

fn check_figure(figure: &Figure, relation: Relation, limit: Limit, runs: &[&Run], baseline: &[&Run]) -> Evaluation {
    let (name, unit) = (figure.name(), figure.unit());
    let mut evaluation = Evaluation {
        outcome: Outcome::Absent,
        measured: None,
        baseline: None,
        sentence: String::new(),
    };
    let measured = match figure.of_rounds(runs) {
        Ok(measured) => measured,
        Err(why) => {
            evaluation.sentence = format!("there is no {name}: {why}");
            return evaluation;
        }
    };
    evaluation.measured = Some(measured);
    let shown = format!("{name} is {}", measured.show(unit));
    let limit = match limit {
        Limit::Value(limit) => Reading::exact(limit),
        Limit::Change(share) => match baseline_limit(figure, share, baseline) {
            Ok((base, limit)) => {
                evaluation.baseline = Some(base);
                limit
            }
            Err(why) => {
                evaluation.sentence = format!("{shown}, and {why}");
                return evaluation;
            }
        },
    };
    let from = evaluation.baseline.map(|base| change(measured, base, unit));
    let words = format!("{} {}", relation.words(), limit.show(unit));
    let (outcome, said) = match relation.holds(measured, limit) {
        Some(true) => (Outcome::True, words),
        Some(false) => (Outcome::False, format!("not {words}")),
        None => (Outcome::Absent, format!("which does not decide whether it is {words}")),
    };
    evaluation.outcome = outcome;
    evaluation.sentence = format!("{shown}, {said}{}", from.unwrap_or_default());
    evaluation
}

/// The baseline's figure, and the limit that is `share` more.
fn baseline_limit(figure: &Figure, share: f64, baseline: &[&Run]) -> Result<(Reading, Reading), String> {
    if baseline.is_empty() {
        return Err("there is no baseline to compare it with".to_owned());
    }
    let base = figure.of_rounds(baseline);
    let base = base.map_err(|why| format!("the baseline has none: {why}"))?;
    if base.high().is_infinite() {
        return Err(format!("that of the baseline is {}", base.show(figure.unit())));
    }
    Ok((base, base.times(1.0 + share)))
}

/// ` (41.0 ms before: +22.0 %)`
fn change(measured: Reading, base: Reading, unit: Unit) -> String {
    let percent = match (measured.value(), base.value()) {
        (Some(now), Some(before)) if before > 0.0 => format!(": {:+.1} %", (now / before - 1.0) * 100.0),
        _ => String::new(),
    };
    format!(" ({} before{percent})", base.show(unit))
}

impl Relation {
    // Two letters before one, so that `>=` is not read as `>`.
    const ALL: [(&'static str, Self); 7] = [
        (">=", Self::AtLeast),
        ("<=", Self::AtMost),
        ("!=", Self::Unequal),
        ("==", Self::Equal),
        (">", Self::Above),
        ("<", Self::Below),
        ("=", Self::Equal),
    ];

    const fn words(self) -> &'static str {
        match self {
            Self::Above => "above",
            Self::AtLeast => "at least",
            Self::Below => "below",
            Self::AtMost => "at most",
            Self::Equal => "equal to",
            Self::Unequal => "other than",
        }
    }

    /// Whether it holds wherever the two numbers lie between their bounds; `None` if that depends.
    fn holds(self, one: Reading, other: Reading) -> Option<bool> {
        let not = |held: Option<bool>| held.map(|held| !held);
        match self {
            Self::Above if one.low() > other.high() => Some(true),
            Self::Above if one.high() <= other.low() => Some(false),
            Self::Below if one.high() < other.low() => Some(true),
            Self::Below if one.low() >= other.high() => Some(false),
            Self::Above | Self::Below => None,
            Self::AtLeast => not(Self::Below.holds(one, other)),
            Self::AtMost => not(Self::Above.holds(one, other)),
            Self::Equal if one.low() > other.high() || one.high() < other.low() => Some(false),
            Self::Equal => (one.value().is_some() && one == other).then_some(true),
            Self::Unequal => not(Self::Equal.holds(one, other)),
        }
    }
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(ConditionError::new("a condition is empty").with_hint("write one such as response.p99>50ms"));
        }
        let test = match split(text) {
            None => verdict(text)?,
            Some((name, relation, limit)) => {
                let figure = Figure::named(name)?;
                let limit = parse_limit(&figure, relation, limit)?;
                Test::Figure(figure, relation, limit)
            }
        };
        Ok(Self {
            text: text.to_owned(),
            test,
        })
    }
}

/// The name, the relation and the limit. The relation is the last: the name of a query stream may
/// have such characters, and a limit has none.
fn split(text: &str) -> Option<(&str, Relation, &str)> {
    let is_sign = |c: char| "<>=!".contains(c);
    let last = text.rfind(is_sign)?;
    let begin = text[..last].trim_end_matches(is_sign).len();
    let signs = &text[begin..=last];
    let (sign, relation) = Relation::ALL.into_iter().find(|(sign, _)| signs.ends_with(sign))?;
    let name = text[..=last].strip_suffix(sign)?;
    Some((name.trim(), relation, text[last + 1..].trim()))
}

fn verdict(text: &str) -> Result<Test, ConditionError> {
    let word = |status: Status| status.name().to_lowercase();
    if let Some(status) = Status::ALL
        .into_iter()
        .find(|status| text.eq_ignore_ascii_case(status.name()))
    {
        return Ok(Test::Verdict(status));
    }
    if Figure::named(text).is_ok() {
        return Err(ConditionError::new(format!("{text} is compared with nothing"))
            .with_hint(format!("write it with a limit, as in {}", with_example(text))));
    }
    let verdicts = Status::ALL.map(word);
    let figures = Figure::all();
    let names = figures
        .iter()
        .map(Figure::name)
        .chain(verdicts.iter().map(String::as_str));
    Err(ConditionError::unknown(text, names))
}

fn with_example(name: &str) -> String {
    let example = Figure::named(name).map_or("50ms", |figure| figure.unit().example());
    format!("{name}>{example}")
}

fn parse_limit(figure: &Figure, relation: Relation, text: &str) -> Result<Limit, ConditionError> {
    let (name, unit) = (figure.name(), figure.unit());
    let is_equality = matches!(relation, Relation::Equal | Relation::Unequal);
    if let Some((sign, percent)) = signed_percent(text) {
        if is_equality {
            return Err(
                ConditionError::new("a measured change is never exactly that of a condition")
                    .with_hint(format!("compare with > or <, as in {name}>{text}")),
            );
        }
        let share = Unit::Share.parse(percent).map_err(ConditionError::new)?;
        if sign < 0.0 && share > 1.0 {
            return Err(ConditionError::new(format!(
                "{text} is below nothing: no figure falls by more than 100 %"
            )));
        }
        return Ok(Limit::Change(sign * share));
    }
    if text.starts_with(['+', '-']) {
        return Err(
            ConditionError::new(format!("{text:?} is a change, which is written in percent"))
                .with_hint(format!("such as {name}>+10%")),
        );
    }
    let limit = unit.parse(text).map_err(|why| {
        ConditionError::new(format!("{name} is {}: {why}", unit.noun())).with_hint(format!(
            "such as {}, or {name}>+10% against a baseline",
            with_example(name)
        ))
    })?;
    if is_equality && unit != Unit::Count {
        return Err(
            ConditionError::new(format!("{name} is measured, and never exactly {}", unit.show(limit)))
                .with_hint("compare with > or <"),
        );
    }
    if limit == 0.0 && matches!(relation, Relation::Below | Relation::AtLeast) {
        return Err(
            ConditionError::new(format!("no {name} is below 0: the condition is always the same"))
                .with_hint(format!("such as {}", with_example(name))),
        );
    }
    Ok(Limit::Value(limit))
}

/// `+10%` as a sign and `10%`.
fn signed_percent(text: &str) -> Option<(f64, &str)> {
    let sign = if text.starts_with('+') { 1.0 } else { -1.0 };
    let percent = text.strip_prefix(['+', '-'])?.trim_start();
    percent.ends_with('%').then_some((sign, percent))
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
