//! Reads Influx line protocol: `measurement,tag=value field=1.5,other=2i 1465839830100400200`.
//!
//! Written from the protocol's reference (docs.influxdata.com, "line protocol"). A series is a
//! measurement with its tags and one field: the measurement becomes the name, the tags become
//! labels, and the field's key becomes the label `_field`, which is Influx's own reserved name for
//! it. String and boolean fields are left out and counted; the other fields of the line are kept.

use std::io::Read;

use super::error::{Place, TraceDefect};
use super::memory::{Trace, TraceBuilder};
use super::text::{self, BEYOND_EXACT, Line, NO_NUMBER, NO_TIMESTAMP, Numbers, ReadOptions, TimeUnit};
use crate::series::SeriesKey;
use crate::time::Timestamp;

/// The label that holds the key of the field.
pub const FIELD_LABEL: &str = "_field";

/// Reads a file of line protocol. Invalid lines become problems of the trace.
///
/// # Errors
/// Only if a read fails, or the samples exceed the limits.
pub fn parse_influx(input: impl Read, options: &ReadOptions) -> Result<Trace, TraceDefect> {
    let mut trace = TraceBuilder::new(options.limits);
    let unit = options.unit.unwrap_or(TimeUnit::Nanos);
    text::each_line(input, &mut |line| {
        let bytes = line.bytes.trim_ascii_start();
        if bytes.is_empty() || bytes[0] == b'#' {
            return Ok(());
        }
        if line.is_too_long {
            trace.problem(Place::Line(line.number), "a line that is too long", bytes);
            return Ok(());
        }
        match parse_line(bytes, unit) {
            Ok(row) => take(&mut trace, &row, line),
            Err(what) => {
                trace.problem(Place::Line(line.number), what, bytes);
                Ok(())
            }
        }
    })?;
    Ok(trace.finish())
}

struct Row {
    measurement: String,
    tags: Vec<(String, String)>,
    // A field without a usable value holds the reason instead.
    fields: Vec<(String, Result<f64, &'static str>)>,
    at: Timestamp,
}

fn take(trace: &mut TraceBuilder, row: &Row, line: Line<'_>) -> Result<(), TraceDefect> {
    let place = Place::Line(line.number);
    for (field, value) in &row.fields {
        match value {
            Ok(value) => {
                let tags = row.tags.iter().map(|(tag, value)| (tag.as_str(), value.as_str()));
                let labels = tags.chain([(FIELD_LABEL, field.as_str())]);
                match trace.series(SeriesKey::with_labels(row.measurement.as_str(), labels)) {
                    Ok(id) => trace.push(id, row.at, *value, line.offset)?,
                    Err(what) => trace.problem(place, what, line.bytes),
                }
            }
            Err(what) => trace.problem(place, what, line.bytes),
        }
    }
    Ok(())
}

fn parse_line(line: &[u8], unit: TimeUnit) -> Result<Row, &'static str> {
    let mut scan = Scan { rest: line };
    let measurement = scan.text(b", ")?;
    if measurement.is_empty() {
        return Err("no measurement");
    }
    let mut tags: Vec<(String, String)> = Vec::new();
    while scan.skip(b',') {
        let tag = scan.text(b",= ")?;
        if !scan.skip(b'=') {
            return Err("a tag without a value");
        }
        let value = scan.text(b",= ")?;
        if tag.is_empty() || value.is_empty() {
            return Err("an empty tag");
        }
        if tag == FIELD_LABEL {
            return Err("a tag of the reserved name _field");
        }
        tags.push((tag, value));
    }
    if has_twice(&tags) {
        return Err("a tag that occurs twice");
    }
    if !scan.skip_blanks() {
        return Err("no field");
    }
    let mut fields: Vec<(String, Result<f64, &'static str>)> = Vec::new();
    loop {
        let field = scan.text(b",= ")?;
        if field.is_empty() || !scan.skip(b'=') {
            return Err("no field");
        }
        let value = scan.value()?;
        fields.push((field, value));
        if !scan.skip(b',') {
            break;
        }
    }
    if has_twice(&fields) {
        return Err("a field that occurs twice");
    }
    if !scan.skip_blanks() || scan.rest.is_empty() {
        return Err(NO_TIMESTAMP);
    }
    let at = text::timestamp(scan.rest.trim_ascii_end(), unit)?;
    Ok(Row {
        measurement,
        tags,
        fields,
        at,
    })
}

/// Sorts first, because a line may contain very many.
fn has_twice<T>(pairs: &[(String, T)]) -> bool {
    let mut names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

struct Scan<'a> {
    rest: &'a [u8],
}

impl Scan<'_> {
    fn skip(&mut self, byte: u8) -> bool {
        let rest = self.rest.strip_prefix(&[byte]);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn skip_blanks(&mut self) -> bool {
        let before = self.rest.len();
        while self.skip(b' ') {}
        self.rest.len() < before
    }

    /// The text up to one of the unescaped `ends`. A backslash before any other character is
    /// literal, as in Influx.
    fn text(&mut self, ends: &[u8]) -> Result<String, &'static str> {
        let mut text = Vec::new();
        let mut at = 0;
        while let Some(&byte) = self.rest.get(at) {
            if ends.contains(&byte) {
                break;
            }
            let next = self.rest.get(at + 1);
            if let (b'\\', Some(&escaped @ (b',' | b'=' | b' '))) = (byte, next) {
                text.push(escaped);
                at += 2;
            } else {
                text.push(byte);
                at += 1;
            }
        }
        self.rest = &self.rest[at..];
        String::from_utf8(text).map_err(|_| "a name that is not UTF-8")
    }

    /// The value of a field; the inner error is a value that an f64 cannot represent.
    fn value(&mut self) -> Result<Result<f64, &'static str>, &'static str> {
        if self.skip(b'"') {
            self.skip_string()?;
            return Ok(Err("a string, which is no value"));
        }
        let end = memchr::memchr2(b',', b' ', self.rest).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        let value = match word {
            b"t" | b"T" | b"true" | b"True" | b"TRUE" | b"f" | b"F" | b"false" | b"False" | b"FALSE" => {
                return Ok(Err("a boolean, which is no value"));
            }
            [b'-', digits @ .., b'u'] if is_digits(digits) => Err("an unsigned integer with a sign"),
            [digits @ .., b'i' | b'u'] if is_digits(digits.strip_prefix(b"-").unwrap_or(digits)) => {
                text::number(digits, Numbers::Finite)
            }
            _ => text::number(word, Numbers::Finite),
        };
        match value {
            Err(NO_NUMBER) => Err("a field that is neither number, string nor boolean"),
            Err(BEYOND_EXACT) => Ok(Err(BEYOND_EXACT)),
            other => Ok(other),
        }
    }

    fn skip_string(&mut self) -> Result<(), &'static str> {
        let mut escaped = false;
        for (at, byte) in self.rest.iter().enumerate() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(());
                }
                _ => {}
            }
        }
        Err("a string that does not end on its line")
    }
}

fn is_digits(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit)
}

#[cfg(test)]
mod tests;
