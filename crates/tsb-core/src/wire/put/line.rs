//! Parses one line as OpenTSDB or KairosDB does.

use super::{Dialect, is_allowed, series_key};
use crate::series::SeriesKey;
use crate::time::Timestamp;
use crate::wire::number::parse_f64;

/// KairosDB treats smaller times as seconds.
const KAIROSDB_SECONDS: i64 = 3_000_000_000;

/// The milliseconds that OpenTSDB accepts: thirteen digits.
const OPENTSDB_MILLIS: std::ops::RangeInclusive<i64> = 1_000_000_000_000..=9_999_999_999_999;

/// The content of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PutLine<'a> {
    /// A sample.
    Put(Put<'a>),
    /// A command other than `put`.
    Other,
}

/// A parsed sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Put<'a> {
    pub(super) metric: &'a [u8],
    /// With the space that precedes them.
    pub(super) tags: &'a [u8],
    pub(super) at: Timestamp,
    pub(super) value: f64,
}

/// Why a line is not a sample: a fixed sentence, and OpenTSDB's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PutProblem {
    pub(super) what: &'static str,
    /// Without its line feed; empty if OpenTSDB sends no reply.
    pub(super) reply: String,
}

impl PutProblem {
    fn argument(what: &'static str, detail: impl Into<String>) -> Self {
        let reply = format!("put: illegal argument: {}", detail.into());
        Self { what, reply }
    }

    fn number(what: &'static str, detail: impl Into<String>) -> Self {
        let reply = format!("put: invalid value: {}", detail.into());
        Self { what, reply }
    }

    fn silent(what: &'static str) -> Self {
        let reply = String::new();
        Self { what, reply }
    }
}

/// OpenTSDB's reply to a line without its end; `None` if it accepts the line silently. (Replies to
/// query commands are separate.)
pub fn reply(line: &[u8]) -> Option<String> {
    let parsed = read(line, Dialect::Opentsdb);
    let checked = parsed.and_then(|line| match line {
        PutLine::Put(put) => key(put.metric, put.tags, Dialect::Opentsdb).map(|_| ()),
        PutLine::Other => Ok(()),
    });
    let problem = checked.err()?;
    (!problem.reply.is_empty()).then(|| format!("{}\n", problem.reply))
}

/// OpenTSDB's reply to a sample that its storage rejected; the text after the colon is the
/// storage's message.
pub(super) const REFUSED: &str = "put: HBase error: the store refused the sample\n";

/// OpenTSDB's reply to a metric without an id.
pub(super) fn unknown(metric: &[u8]) -> String {
    let metric = String::from_utf8_lossy(metric);
    format!("put: unknown metric: No such name for 'metrics': '{metric}'\n")
}

/// The replies to query commands.
pub(super) fn told(line: &[u8], dialect: Dialect) -> Option<&'static str> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let word = line.split(|byte| *byte == b' ').next().unwrap_or_default();
    match (dialect, word) {
        (Dialect::Opentsdb, b"version") => Some("net.opentsdb 2.4, as tsb speaks it\n"),
        (Dialect::Opentsdb, b"help") => Some("available commands: put version help exit\n"),
        (Dialect::Kairosdb, b"version") => Some("KairosDB 0.9.3\n"),
        _ => None,
    }
}

/// Parses everything except the names, which [`key`] parses.
pub(super) fn read(line: &[u8], dialect: Dialect) -> Result<PutLine<'_>, PutProblem> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let Some(rest) = line.strip_prefix(b"put ") else {
        return command(line, dialect);
    };
    let words = rest.splitn(4, |byte| *byte == b' ');
    let mut words = words.map(|word| (word, String::from_utf8_lossy(word)));
    let parts = (words.next(), words.next(), words.next(), words.next());
    let (Some((metric, _)), Some((_, time)), Some((_, value)), tags) = parts else {
        return Err(too_few(words_of(rest)));
    };
    if tags.is_none() && dialect == Dialect::Opentsdb {
        return Err(too_few(words_of(rest)));
    }
    if metric.is_empty() {
        return Err(PutProblem::argument("the metric is empty", "empty metric name"));
    }
    let at = time_of(&time, dialect)?;
    if value.is_empty() {
        return Err(PutProblem::argument("the value is empty", "empty value"));
    }
    let behind = metric.len() + time.len() + value.len() + 2;
    let tags = rest.get(behind..).unwrap_or_default();
    let value = match dialect {
        Dialect::Opentsdb => opentsdb_value(&value)?,
        Dialect::Kairosdb => kairosdb_value(&value)?,
    };
    Ok(PutLine::Put(Put {
        metric,
        tags,
        at,
        value,
    }))
}

fn words_of(rest: &[u8]) -> usize {
    rest.split(|byte| *byte == b' ').count()
}

fn too_few(words: usize) -> PutProblem {
    let detail = format!("not enough arguments (need least 4, got {words})");
    PutProblem::argument("a line has too few words", detail)
}

fn command(line: &[u8], dialect: Dialect) -> Result<PutLine<'_>, PutProblem> {
    let word = line.split(|byte| *byte == b' ').next().unwrap_or_default();
    let known: &[&[u8]] = match dialect {
        Dialect::Opentsdb => &[b"version", b"help", b"stats", b"dropcaches", b"exit"],
        Dialect::Kairosdb => &[b"version"],
    };
    if word == b"put" {
        return Err(too_few(0));
    }
    if known.contains(&word) {
        return Ok(PutLine::Other);
    }
    let word = String::from_utf8_lossy(word);
    Err(PutProblem {
        what: "a command is unknown",
        reply: format!("unknown command: {word}.  Try `help'."),
    })
}

/// Parses an integer as OpenTSDB does, or returns its error message.
fn long(text: &str) -> Result<i64, String> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if text.is_empty() {
        return Err("Empty string".to_owned());
    }
    if digits.is_empty() {
        return Err(format!("Just a sign, no value: {text}"));
    }
    if digits.len() > 19 {
        return Err(format!("Value too long: {text}"));
    }
    if let Some(odd) = digits.chars().find(|c| !c.is_ascii_digit()) {
        return Err(format!("Invalid character '{odd}' in {text}"));
    }
    text.parse().map_err(|_| format!("Overflow in {text}"))
}

/// The time that a text represents.
pub(super) fn time_of(text: &str, dialect: Dialect) -> Result<Timestamp, PutProblem> {
    match dialect {
        Dialect::Opentsdb => opentsdb_time(text),
        Dialect::Kairosdb => kairosdb_time(text),
    }
}

fn opentsdb_time(text: &str) -> Result<Timestamp, PutProblem> {
    const WHAT: &str = "the timestamp is not a number";
    let plain = text.replace('.', "");
    let number = long(&plain).map_err(|detail| PutProblem::number(WHAT, detail))?;
    let out_of_range = || PutProblem::argument("the timestamp is out of range", format!("invalid timestamp: {number}"));
    match number {
        ..=0 => Err(out_of_range()),
        1..=0xffff_ffff => Ok(Timestamp::from_secs(number)),
        millis if OPENTSDB_MILLIS.contains(&millis) => checked(millis, 1_000_000).ok_or_else(out_of_range),
        _ => Err(out_of_range()),
    }
}

fn kairosdb_time(text: &str) -> Result<Timestamp, PutProblem> {
    let number: i64 = text
        .parse()
        .map_err(|_| PutProblem::silent("the timestamp is not a number"))?;
    let unit = if number < KAIROSDB_SECONDS {
        1_000_000_000
    } else {
        1_000_000
    };
    checked(number, unit).ok_or_else(|| PutProblem::silent("the timestamp is out of range"))
}

fn checked(number: i64, unit: i64) -> Option<Timestamp> {
    number.checked_mul(unit).map(Timestamp)
}

const VALUE: &str = "the value is not a number";

fn opentsdb_value(text: &str) -> Result<f64, PutProblem> {
    if !text.contains(['.', 'e', 'E']) {
        let integer = long(text).map_err(|detail| PutProblem::number(VALUE, detail))?;
        return exact(integer);
    }
    let value = parse_f64(text.as_bytes()).filter(|value| value.is_finite());
    value.ok_or_else(|| PutProblem::number(VALUE, format!("For input string: \"{text}\"")))
}

fn kairosdb_value(text: &str) -> Result<f64, PutProblem> {
    if !text.contains('.') {
        let integer = text.parse().map_err(|_| PutProblem::silent(VALUE))?;
        return exact(integer);
    }
    let value = parse_f64(text.as_bytes()).filter(|value| value.is_finite());
    value.ok_or_else(|| PutProblem::silent(VALUE))
}

/// An integer as an f64, if exact.
fn exact(integer: i64) -> Result<f64, PutProblem> {
    let value = integer as f64;
    if value as i64 == integer && integer != i64::MAX {
        return Ok(value);
    }
    Err(PutProblem::silent("an integer that no f64 holds is not supported here"))
}

/// The series of a metric and its tags, each tag preceded by a space.
pub(super) fn key(metric: &[u8], tags: &[u8], dialect: Dialect) -> Result<SeriesKey, PutProblem> {
    let mut pairs: Vec<(&[u8], &[u8])> = Vec::new();
    for word in tags.split(|byte| *byte == b' ').skip(1) {
        if word.is_empty() && dialect == Dialect::Opentsdb {
            continue;
        }
        let text = || String::from_utf8_lossy(word);
        let mut halves = word.split(|byte| *byte == b'=');
        let pair = (halves.next(), halves.next(), halves.next());
        let (Some(name @ [_, ..]), Some(value @ [_, ..]), None) = pair else {
            return Err(PutProblem::argument(
                "a tag is not name=value",
                format!("invalid tag: {}", text()),
            ));
        };
        match pairs.iter().find(|(known, _)| *known == name) {
            Some((_, known)) if *known == value || dialect == Dialect::Kairosdb => {
                pairs.retain(|(known, _)| *known != name);
            }
            Some(_) => {
                return Err(PutProblem::argument(
                    "a tag occurs twice",
                    format!("duplicate tag: {}", text()),
                ));
            }
            None => {}
        }
        pairs.push((name, value));
    }
    if pairs.is_empty() && dialect == Dialect::Opentsdb {
        return Err(PutProblem::argument("a line has no tag", "Need at least one tag"));
    }
    if pairs.len() > dialect.max_tags() {
        let detail = format!("Too many tags: {} maximum allowed: 8", pairs.len());
        return Err(PutProblem::argument("a line has more than eight tags", detail));
    }
    let metric = name("metric name", metric)?;
    let tags = pairs
        .iter()
        .map(|(tag, value)| Ok((name("tag name", tag)?, name("tag value", value)?)));
    Ok(series_key(metric, &tags.collect::<Result<Vec<_>, PutProblem>>()?))
}

/// A name that consists of allowed characters.
fn name<'a>(what: &str, text: &'a [u8]) -> Result<&'a str, PutProblem> {
    let shown = String::from_utf8_lossy(text);
    if let Some(odd) = shown.chars().find(|c| !u8::try_from(*c).is_ok_and(is_allowed)) {
        let detail = format!("Invalid {what} (\"{shown}\"): illegal character: {odd}");
        return Err(PutProblem::argument(
            "a name has a character that is not allowed",
            detail,
        ));
    }
    Ok(std::str::from_utf8(text).unwrap_or_default())
}
