//! Reads CSV rows of timestamp, series and value.
//!
//! The first row is a header when its first field begins with a letter or `_`; it then
//! names the columns in any order: one each of `timestamp`/`time`/`ts`, `series`/`name`/
//! `key` and `value`, case ignored; any further column is a label. The time column may say
//! its unit: `time_ms`. Without a header the three columns stand in that order. Fields
//! are quoted as RFC 4180 says, on one line. A series is `name` or `name{label=value,...}`,
//! the values in quotes or not.

use std::io::Read;

use super::error::{Place, TraceDefect};
use super::memory::{Trace, TraceBuilder};
use super::text::{self, Line, Numbers, ReadOptions, TimeUnit};
use crate::series::SeriesKey;
use crate::time::Timestamp;

const UNFINISHED_QUOTES: &str = "a quoted field that does not end on its line";
const BAD_KEY: &str = "a series that is neither name nor name{label=value,...}";

/// Reads a file of CSV. Bad rows are problems of the trace.
///
/// # Errors
/// A header that does not name the three columns, a failed read, or more samples than the
/// limits allow.
pub fn parse_csv(input: impl Read, options: &ReadOptions) -> Result<Trace, TraceDefect> {
    let mut reading = Reading {
        trace: TraceBuilder::new(options.limits),
        separator: options.separator,
        unit: options.unit,
        is_unit_detected: false,
        layout: None,
        may_be_header: true,
        fields: Vec::new(),
    };
    text::each_line(input, &mut |line| reading.line(line))?;
    Ok(reading.trace.finish())
}

/// Which column holds what.
struct Layout {
    time: usize,
    series: usize,
    value: usize,
    labels: Vec<(usize, String)>,
    columns: usize,
}

struct Reading {
    trace: TraceBuilder,
    separator: u8,
    unit: Option<TimeUnit>,
    is_unit_detected: bool,
    layout: Option<Layout>,
    may_be_header: bool,
    fields: Vec<Vec<u8>>,
}

impl Reading {
    fn line(&mut self, line: Line<'_>) -> Result<(), TraceDefect> {
        let mut bytes = line.bytes;
        if line.number == 1 {
            bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
        }
        if bytes.trim_ascii().is_empty() {
            return Ok(());
        }
        let place = Place::Line(line.number);
        if line.is_too_long {
            self.trace.problem(place, "a line that is too long", bytes);
            return Ok(());
        }
        let mut fields = std::mem::take(&mut self.fields);
        let split = split_fields(bytes, self.separator, &mut fields);
        self.fields = fields;
        let may_be_header = std::mem::take(&mut self.may_be_header);
        if let Err(what) = split {
            self.trace.problem(place, what, bytes);
            return Ok(());
        }
        if may_be_header {
            let first = self.fields.first().and_then(|field| field.trim_ascii().first());
            if first.is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_') {
                return self.header();
            }
        }
        match self.row() {
            Ok((key, at, value)) => match self.trace.series(key) {
                Ok(id) => return self.trace.push(id, at, value, line.offset),
                Err(what) => self.trace.problem(place, what, bytes),
            },
            Err(what) => self.trace.problem(place, what, bytes),
        }
        Ok(())
    }

    fn header(&mut self) -> Result<(), TraceDefect> {
        let mut found = [None; 3];
        let mut labels = Vec::new();
        for (index, field) in self.fields.iter().enumerate() {
            let name = String::from_utf8_lossy(field.trim_ascii()).into_owned();
            let lower = name.to_ascii_lowercase();
            let (word, unit) = match lower.rsplit_once('_') {
                Some((word, unit)) => (word, unit.parse().ok()),
                None => (lower.as_str(), None),
            };
            let word = if unit.is_some() { word } else { lower.as_str() };
            let place = match word {
                "timestamp" | "time" | "ts" => 0,
                "series" | "name" | "key" if unit.is_none() => 1,
                "value" if unit.is_none() => 2,
                _ => {
                    labels.push((index, name));
                    continue;
                }
            };
            if found[place].replace(index).is_some() {
                return Err(TraceDefect::Foreign {
                    what: "the header names a column for timestamp, series or value twice",
                });
            }
            if place == 0 {
                self.unit = self.unit.or(unit);
            }
        }
        let [Some(time), Some(series), Some(value)] = found else {
            return Err(TraceDefect::Foreign {
                what: "the header does not name the three columns timestamp, series and value",
            });
        };
        self.layout = Some(Layout {
            time,
            series,
            value,
            labels,
            columns: self.fields.len(),
        });
        Ok(())
    }

    fn row(&mut self) -> Result<(SeriesKey, Timestamp, f64), &'static str> {
        let layout = self.layout.get_or_insert_with(|| Layout {
            time: 0,
            series: 1,
            value: 2,
            labels: Vec::new(),
            columns: 3,
        });
        if self.fields.len() < layout.columns {
            return Err("too few fields");
        }
        if self.fields.len() > layout.columns {
            return Err("too many fields");
        }
        let value = self.fields[layout.value].trim_ascii();
        if value.is_empty() {
            return Err("no value");
        }
        let value = text::number(value, Numbers::All)?;
        let labels = layout
            .labels
            .iter()
            .map(|(index, label)| (label.as_str(), self.fields[*index].as_slice()));
        let key = parse_key(&self.fields[layout.series], labels)?;
        let digits = self.fields[layout.time].trim_ascii();
        if digits.is_empty() {
            return Err(text::NO_TIMESTAMP);
        }
        let (whole, _) = text::split_time(digits)?;
        let unit = *self.unit.get_or_insert_with(|| {
            self.is_unit_detected = true;
            TimeUnit::detect(whole)
        });
        if self.is_unit_detected && TimeUnit::detect(whole) != unit {
            return Err("a timestamp of another unit than the first; if it is the same, give the unit");
        }
        Ok((key, text::timestamp(digits, unit)?, value))
    }
}

/// Splits one line into fields, reusing them.
fn split_fields(line: &[u8], separator: u8, fields: &mut Vec<Vec<u8>>) -> Result<(), &'static str> {
    let mut count = 0;
    let mut rest = Some(line);
    while let Some(text) = rest {
        if fields.len() == count {
            fields.push(Vec::new());
        }
        let field = &mut fields[count];
        field.clear();
        rest = take_field(text, separator, field)?;
        count += 1;
    }
    fields.truncate(count);
    Ok(())
}

/// Takes one field; what is left behind its separator, or nothing.
fn take_field<'a>(text: &'a [u8], separator: u8, field: &mut Vec<u8>) -> Result<Option<&'a [u8]>, &'static str> {
    let Some(mut quoted) = text.strip_prefix(b"\"") else {
        let end = memchr::memchr(separator, text).unwrap_or(text.len());
        field.extend_from_slice(&text[..end]);
        return Ok(text.get(end + 1..));
    };
    loop {
        let stop = memchr::memchr(b'"', quoted).ok_or(UNFINISHED_QUOTES)?;
        field.extend_from_slice(&quoted[..stop]);
        quoted = &quoted[stop + 1..];
        match quoted.first() {
            Some(b'"') => {
                field.push(b'"');
                quoted = &quoted[1..];
            }
            Some(&byte) if byte == separator => return Ok(Some(&quoted[1..])),
            Some(_) => return Err("text behind a quoted field"),
            None => return Ok(None),
        }
    }
}

/// The key of `name` or `name{label=value,...}`, with further labels from columns. An
/// empty column is no label.
fn parse_key<'a>(text: &[u8], columns: impl Iterator<Item = (&'a str, &'a [u8])>) -> Result<SeriesKey, &'static str> {
    const NOT_UTF8: &str = "a name that is not UTF-8";
    let text = std::str::from_utf8(text).map_err(|_| NOT_UTF8)?.trim();
    let (name, mut rest) = match text.split_once('{') {
        Some((name, rest)) => (name, Some(rest.strip_suffix('}').ok_or(BAD_KEY)?)),
        None => (text, None),
    };
    if name.is_empty() {
        return Err("no series");
    }
    let mut labels: Vec<(&str, &str)> = Vec::new();
    while let Some(text) = rest {
        let (label, text) = text.split_once('=').ok_or(BAD_KEY)?;
        let (value, behind) = match text.strip_prefix('"') {
            Some(quoted) => {
                let (value, behind) = quoted.split_once('"').ok_or(BAD_KEY)?;
                (
                    value,
                    behind
                        .strip_prefix(',')
                        .or(behind.is_empty().then_some(""))
                        .ok_or(BAD_KEY)?,
                )
            }
            None => text.split_once(',').unwrap_or((text, "")),
        };
        if label.trim().is_empty() {
            return Err(BAD_KEY);
        }
        labels.push((label.trim(), value));
        rest = Some(behind).filter(|behind| !behind.is_empty());
    }
    for (label, value) in columns {
        let value = std::str::from_utf8(value).map_err(|_| NOT_UTF8)?.trim();
        if !value.is_empty() {
            labels.push((label, value));
        }
    }
    let count = labels.len();
    let key = SeriesKey::with_labels(name, labels);
    if key.labels().len() != count {
        return Err("a label that occurs twice");
    }
    Ok(key)
}

#[cfg(test)]
mod tests;
