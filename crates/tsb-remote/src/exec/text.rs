//! The text form: a line `VERB NUMBER COUNT ...`, then COUNT lines.

use std::fmt::Write as _;
use std::str::FromStr;

use tsb_core::{SeriesId, Timestamp};
use tsb_stores::store::Reason;

use super::key::word_of;
use super::message::{Answer, Body, Malformed, REASONS, ROWS_MAX, Request};
use crate::Chunk;

/// Maximum length of a line of an answer, in bytes.
pub(super) const LINE_MAX: usize = 8_192;

/// Appends a request.
pub(super) fn put(number: u32, request: &Request<'_>, out: &mut Vec<u8>) {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = match request {
        Request::Define(series) => writeln!(text, "define {number} {}", series.len()),
        Request::Write(batch) => writeln!(text, "write {number} {}", batch.len()),
        Request::Query { series, range } => {
            let (start, end) = (range.start.0, range.end.0);
            writeln!(text, "query {number} {} {start} {end}", series.len())
        }
        Request::Newest(series) => writeln!(text, "newest {number} {}", series.len()),
        Request::Flush(level) => writeln!(text, "flush {number} 0 {level}"),
        Request::Stats => writeln!(text, "stats {number} 0"),
        Request::Close => writeln!(text, "close {number} 0"),
    };
    match request {
        Request::Define(series) => {
            for (id, key) in *series {
                let _ = writeln!(text, "{} {}", id.0, word_of(key));
            }
        }
        Request::Write(batch) => {
            for (id, at, value) in batch.iter() {
                let _ = writeln!(text, "{} {} {value:?}", id.0, at.0);
            }
        }
        Request::Query { series, .. } | Request::Newest(series) => {
            for id in *series {
                let _ = writeln!(text, "{}", id.0);
            }
        }
        Request::Flush(_) | Request::Stats | Request::Close => {}
    }
    out.extend_from_slice(text.as_bytes());
}

/// An answer whose lines are still arriving.
#[derive(Debug, Default)]
pub(super) struct Open {
    answer: Option<Answer>,
    /// Number of its lines that are missing.
    missing: usize,
}

impl Open {
    /// Whether the first line of an answer is there.
    pub(super) fn is_begun(&self) -> bool {
        self.answer.is_some()
    }

    /// Removes the lines of the next answer from `bytes`.
    pub(super) fn take(&mut self, bytes: &mut &[u8]) -> Result<Option<Answer>, Malformed> {
        while let Some(line) = line(bytes)? {
            match &mut self.answer {
                None => (self.answer, self.missing) = head(line).map(|(answer, count)| (Some(answer), count))?,
                Some(answer) => {
                    add(&mut answer.body, line)?;
                    self.missing -= 1;
                }
            }
            if self.missing == 0 {
                return Ok(self.answer.take());
            }
        }
        Ok(None)
    }
}

/// Removes the next line, without its end; `None` if its end has not arrived.
fn line<'a>(bytes: &mut &'a [u8]) -> Result<Option<&'a str>, Malformed> {
    let searched = &bytes[..bytes.len().min(LINE_MAX + 1)];
    let Some(end) = searched.iter().position(|byte| *byte == b'\n') else {
        return if bytes.len() > LINE_MAX {
            Err(Malformed(format!("a line has more than {LINE_MAX} bytes")))
        } else {
            Ok(None)
        };
    };
    let line = std::str::from_utf8(&bytes[..end]).map_err(|_| Malformed("a line is not UTF-8".to_owned()))?;
    *bytes = &bytes[end + 1..];
    Ok(Some(line))
}

/// The first line of an answer, and the number of lines that follow.
fn head(line: &str) -> Result<(Answer, usize), Malformed> {
    let mut words = line.split_ascii_whitespace();
    let verb = words.next().unwrap_or_default();
    let wrong = |what: &str| Malformed(format!("{what} in the line {}", quoted(line)));
    if !["ok", "refused", "rows", "newest", "stats", "error"].contains(&verb) {
        return Err(wrong("no known verb begins an answer"));
    }
    let number = parse(words.next()).ok_or_else(|| wrong("the number of the request is missing"))?;
    let count: usize = parse(words.next()).ok_or_else(|| wrong("the number of following lines is missing"))?;
    if count > ROWS_MAX {
        return Err(wrong(&format!("more than {ROWS_MAX} lines are announced")));
    }
    if count > 0 && !["refused", "rows", "newest"].contains(&verb) {
        return Err(wrong("no lines can follow this verb"));
    }
    let body = match verb {
        "ok" => Body::Ok,
        "refused" => Body::Refused(Vec::new()),
        "newest" => Body::Newest(Vec::new()),
        "rows" => Body::Rows(Chunk {
            series: SeriesId(parse(words.next()).ok_or_else(|| wrong("the id of the series is missing"))?),
            times: Vec::new(),
            values: Vec::new(),
        }),
        "stats" => Body::Stats {
            samples: parse(words.next()).ok_or_else(|| wrong("the number of samples is missing"))?,
            bytes: parse(words.next()).ok_or_else(|| wrong("the number of bytes is missing"))?,
        },
        _ => Body::Error(words.collect::<Vec<_>>().join(" ")),
    };
    Ok((Answer { number, body }, count))
}

/// Adds a further line of an answer.
fn add(body: &mut Body, line: &str) -> Result<(), Malformed> {
    let mut words = line.split_ascii_whitespace();
    let first = words.next();
    let added = match body {
        Body::Rows(chunk) => row(first, words.next()).map(|(at, value)| {
            chunk.times.push(at);
            chunk.values.push(value);
        }),
        Body::Refused(list) => refusal(first, words.next()).map(|refusal| list.push(refusal)),
        Body::Newest(list) if first == Some("-") => {
            list.push(None);
            Some(())
        }
        Body::Newest(list) => parse(first).map(|at| list.push(Some(Timestamp(at)))),
        Body::Ok | Body::Stats { .. } | Body::Error(_) => None,
    };
    let form = match body {
        Body::Rows(_) => "TIME VALUE, with a finite value",
        Body::Refused(_) => "INDEX REASON",
        _ => "TIME or -",
    };
    match added {
        Some(()) if words.next().is_none() => Ok(()),
        _ => Err(Malformed(format!("the line {} is not {form}", quoted(line)))),
    }
}

fn row(at: Option<&str>, value: Option<&str>) -> Option<(Timestamp, f64)> {
    let value = parse::<f64>(value).filter(|value| value.is_finite())?;
    Some((Timestamp(parse(at)?), value))
}

fn refusal(index: Option<&str>, reason: Option<&str>) -> Option<(u32, Reason)> {
    let reason = REASONS.into_iter().find(|known| Some(known.name()) == reason)?;
    Some((parse(index)?, reason))
}

fn parse<T: FromStr>(word: Option<&str>) -> Option<T> {
    word?.parse().ok()
}

/// The beginning of a line, in quotes.
pub(super) fn quoted(line: &str) -> String {
    const SHOWN: usize = 80;
    let shown: String = line.chars().take(SHOWN).collect();
    let more = if shown.len() < line.len() { "..." } else { "" };
    format!("{shown:?}{more}")
}
