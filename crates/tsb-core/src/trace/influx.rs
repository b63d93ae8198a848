//! Reads recordings in Influx line protocol: `measurement,tag=value field=1.5,other=2i 1465839830100400200`.
//!
//! Lines are scanned as the listener scans them (`wire::influx`). A recording has rules of its
//! own: each line needs a timestamp, in the unit of the file; numbers must be exact, or are left
//! out; every series has the label `_field`; and errors name the line of the file. String and
//! boolean fields are left out and counted; the other fields of the line are kept.

use std::io::Read;

use super::error::{Place, TraceDefect};
use super::memory::{Trace, TraceBuilder};
use super::text::{self, NO_NUMBER, NO_TIMESTAMP, Numbers, ReadOptions, TextLine, TimeUnit};
use crate::series::SeriesKey;
use crate::time::Timestamp;
use crate::wire::influx::line::{self, Field, Flaw, NoValue};
use crate::wire::influx::{FIELD_ESCAPES, FIELD_LABEL, parts, unescape};

/// Reads a file of line protocol. Invalid lines become problems of the trace.
///
/// # Errors
/// Only if a read fails, or the samples exceed the limits.
pub fn parse_influx(input: impl Read, options: &ReadOptions) -> Result<Trace, TraceDefect> {
    let mut trace = TraceBuilder::new(options.limits);
    let unit = options.unit.unwrap_or(TimeUnit::Nanos);
    let mut fields = Vec::new();
    text::each_line(input, &mut |line| {
        let bytes = line.bytes.trim_ascii_start();
        if !line::is_point(bytes) {
            return Ok(());
        }
        if line.is_too_long {
            trace.problem(Place::Line(line.number), "a line that is too long", bytes);
            return Ok(());
        }
        match parse_line(bytes, unit, &mut fields) {
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
    fields: Vec<(String, Result<f64, NoValue>)>,
    at: Timestamp,
}

fn take(trace: &mut TraceBuilder, row: &Row, line: TextLine<'_>) -> Result<(), TraceDefect> {
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
            Err(why) => trace.problem(place, left_out(*why), line.bytes),
        }
    }
    Ok(())
}

fn parse_line(bytes: &[u8], unit: TimeUnit, fields: &mut Vec<Field>) -> Result<Row, &'static str> {
    let line = line::scan(bytes, number, fields).map_err(in_words)?;
    let (measurement, tags) = parts(utf8(line.head)?);
    // An escaped equal sign is one here as well; the listener keeps the backslash, as InfluxDB does.
    let measurement = unescape(measurement, ",= ");
    let tags: Vec<(String, String)> = tags.collect();
    if tags.iter().any(|(tag, _)| tag == FIELD_LABEL) {
        return Err("a tag of the reserved name _field");
    }
    let fields = fields.iter().map(|field| {
        let key = unescape(utf8(&bytes[field.key.clone()])?, FIELD_ESCAPES);
        Ok((key, field.value))
    });
    let fields: Vec<(String, Result<f64, NoValue>)> = fields.collect::<Result<_, &str>>()?;
    if has_twice(&fields) {
        return Err("a field that occurs twice");
    }
    if line.time.is_empty() {
        return Err(NO_TIMESTAMP);
    }
    let at = text::timestamp(line.time.trim_ascii_end(), unit)?;
    Ok(Row {
        measurement,
        tags,
        fields,
        at,
    })
}

fn utf8(name: &[u8]) -> Result<&str, &'static str> {
    std::str::from_utf8(name).map_err(|_| "a name that is not UTF-8")
}

/// Sorts first, because a line may contain very many.
fn has_twice<T>(pairs: &[(String, T)]) -> bool {
    let mut names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.windows(2).any(|pair| pair[0] == pair[1])
}

/// A number that is exact, with or without the sign of its type: `i` or `u`.
fn number(word: &[u8]) -> Result<Result<f64, NoValue>, Flaw> {
    let value = match word {
        [b'-', digits @ .., b'u'] if is_digits(digits) => Err("an unsigned integer with a sign"),
        [digits @ .., b'i' | b'u'] if is_digits(digits.strip_prefix(b"-").unwrap_or(digits)) => {
            text::number(digits, Numbers::Finite)
        }
        _ => text::number(word, Numbers::Finite),
    };
    match value {
        Err(NO_NUMBER) => Err(Flaw::Number(NO_NUMBER)),
        value => Ok(value.map_err(NoValue::Number)),
    }
}

fn is_digits(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit)
}

fn left_out(why: NoValue) -> &'static str {
    match why {
        NoValue::String => "a string, which is not a value",
        NoValue::Boolean => "a boolean, which is not a value",
        NoValue::Number(what) => what,
    }
}

fn in_words(flaw: Flaw) -> &'static str {
    match flaw {
        Flaw::NoMeasurement => "no measurement",
        Flaw::NoTagValue => "a tag without a value",
        Flaw::NoTagKey | Flaw::EmptyTagValue => "an empty tag",
        Flaw::TagFormat => "a tag with two equal signs",
        Flaw::DuplicateTags => "a tag that occurs twice",
        Flaw::LongKey => "a name that is too long",
        Flaw::NoFields | Flaw::NoFieldKey | Flaw::FieldFormat => "no field",
        Flaw::OpenQuote => "a string that does not end on its line",
        Flaw::NoFieldValue | Flaw::Boolean | Flaw::Number(_) => "a field that is neither number, string nor boolean",
    }
}

#[cfg(test)]
mod tests;
