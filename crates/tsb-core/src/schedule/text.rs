//! The text form of schedules: one grammar for flags, run files and reports.
//!
//! ```text
//! max                                  closed loop
//! RATE | constant:RATE                 54000, 0.5, 3/10s
//! poisson:RATE[,seed=N]
//! ramp:RATE..RATE/DURATION
//! steps:RATE*DURATION,...              RATE..RATE*DURATION changes linearly
//! burst:COUNT/DURATION
//! recorded:DURATION,...[/DURATION]
//! ```
//! A rate is samples per second (decimals are exact), or with `/DURATION` samples in that time;
//! the count of a burst is samples too. Recorded times are due times of operations. A duration is
//! a number and ns, us, ms, s, m or h.

use std::fmt;
use std::str::FromStr;

use super::{Curve, Rate, Recorded, Schedule, ScheduleError, Segment};
use crate::time::SECOND_NS;

/// Why a text is not a schedule, with the position of the error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot read schedule `{text}` at column {column}: {what}")]
pub struct ParseError {
    /// The whole text.
    pub text: String,
    /// The column of the offending part, from 1.
    pub column: usize,
    /// What was expected there, or why it is not possible.
    pub what: String,
}

/// Parses a text. The position of a part is computed from its address within the text.
struct Reader<'a> {
    text: &'a str,
}

const WANT_RATE: &str = "expected a rate in samples per second, such as 54000, 0.5 or 3/10s";
const WANT_DURATION: &str = "expected a duration, such as 60s, 1.5ms or 2h";
const WANT_COUNT: &str = "expected a whole number";
const WANT_KIND: &str =
    "expected max, a rate, or one of constant:, poisson:, ramp:, steps:, burst:, recorded: in front";

impl<'a> Reader<'a> {
    fn error(&self, part: &str, what: impl Into<String>) -> ParseError {
        let offset = (part.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        let column = self.text.get(..offset).map_or(1, |before| before.chars().count() + 1);
        ParseError {
            text: self.text.to_owned(),
            column,
            what: what.into(),
        }
    }

    fn refused(&self, part: &str) -> impl Fn(ScheduleError) -> ParseError {
        move |error| self.error(part, error.to_string())
    }

    fn split(&self, part: &'a str, at: &str, what: &str) -> Result<(&'a str, &'a str), ParseError> {
        part.split_once(at)
            .ok_or_else(|| self.error(part, format!("expected `{at}` in `{part}`: {what}")))
    }

    fn rate(&self, part: &'a str) -> Result<Rate, ParseError> {
        let (number, per) = match part.split_once('/') {
            Some((number, per)) => (number, per_duration(per)),
            None => (part, Some((SECOND_NS, 1))),
        };
        let parsed = decimal(number).zip(per);
        let ((mantissa, scale), (per_ns, per_scale)) = parsed.ok_or_else(|| self.error(part, WANT_RATE))?;
        let events = u128::from(mantissa) * u128::from(per_scale);
        Rate::from_wide(events, u128::from(per_ns) * u128::from(scale)).map_err(self.refused(part))
    }

    fn duration(&self, part: &'a str) -> Result<u64, ParseError> {
        let exact = per_duration(part).filter(|(nanos, scale)| nanos % scale == 0);
        let (nanos, scale) = exact.ok_or_else(|| self.error(part, WANT_DURATION))?;
        Ok(nanos / scale)
    }

    fn count(&self, part: &'a str) -> Result<u64, ParseError> {
        part.parse().map_err(|_| self.error(part, WANT_COUNT))
    }

    fn schedule(&self) -> Result<Schedule, ParseError> {
        let text = self.text;
        if text == "max" {
            return Ok(Schedule::Unpaced);
        }
        let Some((kind, rest)) = text.split_once(':') else {
            let is_number = text.starts_with(|c: char| c.is_ascii_digit() || c == '.');
            let problem = || self.error(text, WANT_KIND);
            return if is_number { self.constant(text) } else { Err(problem()) };
        };
        match kind {
            "constant" => self.constant(rest),
            "poisson" => self.poisson(rest),
            "ramp" => self.ramp(rest),
            "steps" => self.steps(rest),
            "burst" => self.burst(rest),
            "recorded" => self.recorded(rest),
            _ => Err(self.error(text, WANT_KIND)),
        }
    }

    fn constant(&self, rest: &'a str) -> Result<Schedule, ParseError> {
        let rate = self.rate(rest)?;
        Schedule::constant(rate).map_err(self.refused(rest))
    }

    fn poisson(&self, rest: &'a str) -> Result<Schedule, ParseError> {
        let (rate, seed) = match rest.split_once(',') {
            None => (rest, 0),
            Some((rate, option)) => match option.strip_prefix("seed=") {
                Some(seed) => (rate, self.count(seed)?),
                None => return Err(self.error(option, "expected seed=NUMBER")),
            },
        };
        let parsed = self.rate(rate)?;
        if parsed.is_zero() {
            return Err(self.error(rate, ScheduleError::NeverDue.to_string()));
        }
        Ok(Schedule::Poisson { rate: parsed, seed })
    }

    fn ramp(&self, rest: &'a str) -> Result<Schedule, ParseError> {
        let what = "a ramp is written FROM..TO/DURATION";
        let (from, rest_to) = self.split(rest, "..", what)?;
        let (to, length) = rest_to.rsplit_once('/').ok_or_else(|| self.error(rest_to, what))?;
        let (from, to) = (self.rate(from)?, self.rate(to)?);
        let curve = Curve::ramp(from, to, self.duration(length)?);
        curve.map(Schedule::Curve).map_err(self.refused(rest))
    }

    fn steps(&self, rest: &'a str) -> Result<Schedule, ParseError> {
        let mut segments = Vec::new();
        for part in rest.split(',') {
            let (rate, length) = self.split(part, "*", "a step is written RATE*DURATION")?;
            let (from, to) = rate.split_once("..").unwrap_or((rate, rate));
            segments.push(Segment {
                from: self.rate(from)?,
                to: self.rate(to)?,
                length_ns: self.duration(length)?,
            });
        }
        Curve::pieces(segments).map(Schedule::Curve).map_err(self.refused(rest))
    }

    fn burst(&self, rest: &'a str) -> Result<Schedule, ParseError> {
        let (size, every) = self.split(rest, "/", "a burst is written COUNT/DURATION")?;
        let (count, period_ns) = (self.count(size)?, self.duration(every)?);
        if count == 0 || period_ns == 0 {
            return Err(self.error(rest, "neither the count nor the duration may be 0"));
        }
        Ok(Schedule::Burst { count, period_ns })
    }

    fn recorded(&self, rest: &'a str) -> Result<Schedule, ParseError> {
        let (list, period) = match rest.split_once('/') {
            Some((list, period)) => (list, Some(self.duration(period)?)),
            None => (rest, None),
        };
        let due_ns = list.split(',').map(|part| self.duration(part));
        let due_ns = due_ns.collect::<Result<Vec<u64>, _>>()?;
        let recorded = Recorded::new(due_ns, period);
        recorded.map(Schedule::Recorded).map_err(self.refused(rest))
    }
}

/// A decimal number as (mantissa, power of ten), exactly: 1.5 is (15, 10). `None` if it does not
/// fit.
fn decimal(text: &str) -> Option<(u64, u64)> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if whole.len() + part.len() == 0 || !is_digits(whole) || !is_digits(part) {
        return None;
    }
    let digits = format!("{whole}{part}");
    Some((digits.parse().ok()?, 10u64.checked_pow(part.len() as u32)?))
}

/// A duration as the fraction (nanoseconds, divisor). A unit without a number counts as one.
pub(crate) fn per_duration(text: &str) -> Option<(u64, u64)> {
    let split = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(split);
    let unit_ns = match unit {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "s" => SECOND_NS,
        "m" => 60 * SECOND_NS,
        "h" => 3_600 * SECOND_NS,
        _ => return None,
    };
    let (mantissa, scale) = if number.is_empty() { (1, 1) } else { decimal(number)? };
    let nanos = mantissa.checked_mul(unit_ns)?;
    (nanos > 0 || mantissa == 0).then_some((nanos, scale))
}

impl FromStr for Schedule {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Reader { text }.schedule()
    }
}

impl FromStr for Rate {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Reader { text }.rate(text)
    }
}

impl TryFrom<String> for Schedule {
    type Error = ParseError;

    fn try_from(text: String) -> Result<Self, ParseError> {
        text.parse()
    }
}

impl From<Schedule> for String {
    fn from(schedule: Schedule) -> Self {
        schedule.to_string()
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if SECOND_NS.is_multiple_of(self.per_ns())
            && let Some(per_second) = self.events().checked_mul(SECOND_NS / self.per_ns())
        {
            return write!(f, "{per_second}");
        }
        write!(f, "{}/{}", self.events(), Duration(self.per_ns()))
    }
}

/// Displays a duration in the largest unit that is exact.
struct Duration(u64);

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [(3_600 * SECOND_NS, "h"), (60 * SECOND_NS, "m"), (SECOND_NS, "s")];
        let small = [(1_000_000, "ms"), (1_000, "us"), (1, "ns")];
        for (unit_ns, name) in units.into_iter().chain(small) {
            if self.0 > 0 && self.0.is_multiple_of(unit_ns) {
                return write!(f, "{}{name}", self.0 / unit_ns);
            }
        }
        f.write_str("0s")
    }
}

impl fmt::Display for Curve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let step = |s: &Segment| s.from == s.to;
        match self.segments() {
            [] => write!(f, "constant:{}", self.last()),
            [one] if !step(one) => write!(f, "ramp:{}..{}/{}", one.from, one.to, Duration(one.length_ns)),
            steps => {
                f.write_str("steps:")?;
                for (index, piece) in steps.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { "," })?;
                    write!(f, "{}", piece.from)?;
                    if !step(piece) {
                        write!(f, "..{}", piece.to)?;
                    }
                    write!(f, "*{}", Duration(piece.length_ns))?;
                }
                Ok(())
            }
        }
    }
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unpaced => f.write_str("max"),
            Self::Curve(curve) => curve.fmt(f),
            Self::Poisson { rate, seed } => write!(f, "poisson:{rate},seed={seed}"),
            Self::Burst { count, period_ns } => write!(f, "burst:{count}/{}", Duration(*period_ns)),
            Self::Recorded(recorded) => {
                f.write_str("recorded:")?;
                for (index, &due) in recorded.due_ns.iter().enumerate() {
                    f.write_str(if index == 0 { "" } else { "," })?;
                    Duration(due).fmt(f)?;
                }
                recorded
                    .period_ns
                    .map_or(Ok(()), |period| write!(f, "/{}", Duration(period)))
            }
        }
    }
}
