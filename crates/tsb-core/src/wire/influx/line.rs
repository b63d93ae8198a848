//! Parses one line exactly as InfluxDB does, without optimization.
//!
//! The only grammar of the protocol: recordings are read with [`scan`] as well, with numbers and
//! timestamps of their own. Error messages are InfluxDB's where it has one.

use std::ops::Range;

use super::Precision;
use crate::time::Timestamp;

/// 2^53: up to here an f64 represents every integer.
const EXACT: u64 = 1 << 53;

/// InfluxDB's limit for measurement, tags and one field.
const MAX_KEY: usize = 65_535;

/// A parsed line; its fields are stored separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InfluxLine<'a> {
    /// Measurement and tags.
    pub(crate) head: &'a [u8],
    /// What stands behind the fields: a timestamp, or nothing.
    pub(crate) time: &'a [u8],
}

/// A field of a line.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Field {
    /// The range of its key in the line.
    pub(crate) key: Range<usize>,
    /// The value, or why it is not a sample.
    pub(crate) value: Result<f64, NoValue>,
}

/// Why a field of a valid line is not a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoValue {
    String,
    Boolean,
    /// A number that an f64 cannot represent.
    Number(&'static str),
}

impl NoValue {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::String => "a string is not supported here",
            Self::Boolean => "a boolean is not supported here",
            Self::Number(what) => what,
        }
    }
}

/// Why a line is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    NoMeasurement,
    NoFields,
    NoTagKey,
    /// A tag without an equal sign.
    NoTagValue,
    /// A tag with nothing behind the equal sign.
    EmptyTagValue,
    TagFormat,
    DuplicateTags,
    LongKey,
    NoFieldKey,
    NoFieldValue,
    FieldFormat,
    OpenQuote,
    Boolean,
    /// A word that begins as a number does, and what its parser says of it.
    Number(&'static str),
}

impl Flaw {
    /// What InfluxDB says.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::NoMeasurement => "missing measurement",
            Self::NoFields => "missing fields",
            Self::NoTagKey => "missing tag key",
            Self::NoTagValue | Self::EmptyTagValue => "missing tag value",
            Self::TagFormat => "invalid tag format",
            Self::DuplicateTags => "duplicate tags",
            Self::LongKey => "max key length exceeded",
            Self::NoFieldKey => "missing field key",
            Self::NoFieldValue => "missing field value",
            Self::FieldFormat => "invalid field format",
            Self::OpenQuote => "unbalanced quotes",
            Self::Boolean => "invalid boolean",
            Self::Number(what) => what,
        }
    }
}

/// Length of the first line, without its line feed; `None` if it does not end here. A line feed
/// after a backslash or within a quoted value does not end the line.
pub(super) fn length(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut quoted, mut in_fields) = (0, false, false);
    let (mut equals, mut commas) = (0_usize, 0_usize);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' => at += 1,
            b'\n' if !quoted => return Some(at),
            b' ' => in_fields = true,
            b'=' if in_fields && !quoted => equals += 1,
            b',' if in_fields && !quoted => commas += 1,
            b'"' if in_fields && equals > commas => quoted = !quoted,
            _ => {}
        }
        at += 1;
    }
    None
}

/// Whether a line contains a point, as opposed to a comment or nothing.
pub(crate) fn is_point(line: &[u8]) -> bool {
    let start = skip_blanks(line, 0);
    start < line.len() && line[start] != b'#'
}

/// Parses one line without its line feed, with InfluxDB's numbers and times. Returns measurement
/// with tags, and the time; `None`: the time of arrival.
pub(super) fn parse<'a>(
    line: &'a [u8],
    precision: Precision,
    fields: &mut Vec<Field>,
) -> Result<(&'a [u8], Option<Timestamp>), &'static str> {
    let value = |word: &[u8]| match number(word) {
        Ok(value) => Ok(value.map_err(NoValue::Number)),
        Err(what) => Err(Flaw::Number(what)),
    };
    let line = scan(line, value, fields).map_err(Flaw::text)?;
    Ok((line.head, timestamp(line.time, precision)?))
}

/// Parses one line without its line feed, except for numbers and the timestamp. `number` parses
/// a word that begins as a number does; its inner error concerns this field alone.
pub(crate) fn scan<'a>(
    line: &'a [u8],
    number: impl Fn(&[u8]) -> Result<Result<f64, NoValue>, Flaw>,
    fields: &mut Vec<Field>,
) -> Result<InfluxLine<'a>, Flaw> {
    fields.clear();
    let start = skip_blanks(line, 0);
    let end = head_end(line, start)?;
    let head = &line[start..end];
    if head.len() > MAX_KEY {
        return Err(Flaw::LongKey);
    }
    let end = scan_fields(line, skip_blanks(line, end), number, fields)?;
    if fields.iter().any(|field| head.len() + field.key.len() + 4 > MAX_KEY) {
        return Err(Flaw::LongKey);
    }
    let time = &line[skip_blanks(line, end)..];
    Ok(InfluxLine { head, time })
}

fn skip_blanks(line: &[u8], start: usize) -> usize {
    let blanks = line[start..].iter().take_while(|byte| matches!(byte, b' ' | b'\t' | 0));
    start + blanks.count()
}

/// End of measurement and tags.
fn head_end(line: &[u8], start: usize) -> Result<usize, Flaw> {
    if line.get(start).is_none_or(|first| *first == b',') {
        return Err(Flaw::NoMeasurement);
    }
    let mut at = find(line, start + 1, b", ").ok_or(Flaw::NoFields)?;
    let mut tags = Vec::new();
    while line[at] == b',' {
        let key = at + 1;
        if line.get(key).is_none_or(|first| b" ,=".contains(first)) {
            return Err(Flaw::NoTagKey);
        }
        let equals = find(line, key + 1, b" ,=").filter(|at| line[*at] == b'=');
        let value = equals.ok_or(Flaw::NoTagValue)? + 1;
        if line.get(value).is_none_or(|first| b" ,".contains(first)) {
            return Err(Flaw::EmptyTagValue);
        }
        tags.push(&line[key..value]);
        at = find(line, value + 1, b" ,=").ok_or(Flaw::NoFields)?;
        if line[at] == b'=' {
            return Err(Flaw::TagFormat);
        }
    }
    tags.sort_unstable();
    if tags.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Flaw::DuplicateTags);
    }
    Ok(at)
}

/// The first of `ends` from `start` on that is not escaped by a backslash.
fn find(line: &[u8], start: usize, ends: &[u8]) -> Option<usize> {
    let rest = line.get(start..)?.iter().zip(start..);
    let mut found = rest.filter(|(byte, at)| ends.contains(byte) && line[at - 1] != b'\\');
    found.next().map(|(_, at)| at)
}

/// Collects the fields of a block that ends at a blank; returns its end.
fn scan_fields(
    line: &[u8],
    start: usize,
    number: impl Fn(&[u8]) -> Result<Result<f64, NoValue>, Flaw>,
    fields: &mut Vec<Field>,
) -> Result<usize, Flaw> {
    let (mut at, mut key, mut quoted) = (start, start, false);
    let (mut equals, mut commas) = (0_usize, 0_usize);
    while let Some(&byte) = line.get(at) {
        match byte {
            b'\\' if at + 1 < line.len() => at += 1,
            b'"' if equals > commas => quoted = !quoted,
            b'=' if !quoted => {
                equals += 1;
                let before = at.checked_sub(2).map(|at| line[at]);
                if matches!(line[at - 1], b' ' | b',') && before != Some(b'\\') {
                    return Err(Flaw::NoFieldKey);
                }
                let (value, end) = value(line, at + 1, &number)?;
                fields.push(Field { key: key..at, value });
                at = end;
                continue;
            }
            b',' if !quoted => {
                commas += 1;
                key = at + 1;
            }
            b' ' if !quoted => break,
            _ => {}
        }
        at += 1;
    }
    if quoted {
        return Err(Flaw::OpenQuote);
    }
    if equals == 0 || commas != equals - 1 {
        return Err(Flaw::FieldFormat);
    }
    Ok(at.min(line.len()))
}

/// The value at `start`, and where the scan of the fields continues: after a number or a boolean,
/// or at the opening quote of a string.
fn value(
    line: &[u8],
    start: usize,
    number: impl Fn(&[u8]) -> Result<Result<f64, NoValue>, Flaw>,
) -> Result<(Result<f64, NoValue>, usize), Flaw> {
    let rest = line.get(start..).unwrap_or_default();
    match rest.first() {
        None | Some(b',' | b' ') => return Err(Flaw::NoFieldValue),
        Some(b'"') => return Ok((Err(NoValue::String), start)),
        Some(_) => {}
    }
    let length = rest.iter().position(|byte| matches!(byte, b',' | b' '));
    let word = &rest[..length.unwrap_or(rest.len())];
    let value = match word[0] {
        b'0'..=b'9' | b'.' | b'-' | b'N' | b'n' => number(word)?,
        _ if is_boolean(word) => Err(NoValue::Boolean),
        _ => return Err(Flaw::Boolean),
    };
    Ok((value, start + word.len()))
}

fn is_boolean(word: &[u8]) -> bool {
    let words: [&[u8]; 10] = [
        b"t", b"T", b"true", b"True", b"TRUE", b"f", b"F", b"false", b"False", b"FALSE",
    ];
    words.contains(&word)
}

/// Parses a number. The outer error makes the line malformed; the inner one is a value that an f64
/// cannot represent.
pub(super) fn number(word: &[u8]) -> Result<Result<f64, &'static str>, &'static str> {
    const INVALID: &str = "invalid number";
    if let Some(digits) = word.strip_suffix(b"i") {
        let plain = digits.strip_prefix(b"-").unwrap_or(digits);
        if plain.is_empty() || !plain.iter().all(u8::is_ascii_digit) {
            return Err(INVALID);
        }
        let text = std::str::from_utf8(digits).unwrap_or_default();
        let integer: i64 = text.parse().map_err(|_| "unable to parse integer")?;
        let fits = integer.unsigned_abs() <= EXACT;
        return Ok(if fits {
            Ok(integer as f64)
        } else {
            Err("an integer beyond 2^53 is not supported here")
        });
    }
    // Checks what InfluxDB's scanner checks; the float parser checks the rest.
    let points = memchr::memchr_iter(b'.', word).count();
    let unsigned = word.strip_prefix(b"-").unwrap_or(word);
    let is_exponent = |byte: u8| matches!(byte, b'e' | b'E');
    let fits = |(index, byte): (usize, &u8)| match byte {
        b'0'..=b'9' | b'.' => true,
        b'e' | b'E' => index > 0 || unsigned.len() < word.len(),
        b'+' | b'-' => index > 0 && is_exponent(unsigned[index - 1]),
        _ => false,
    };
    let has_digits = unsigned.len() > points;
    if points > 1 || !has_digits || !unsigned.iter().enumerate().all(fits) {
        return Err(INVALID);
    }
    let text = std::str::from_utf8(word).unwrap_or_default();
    let float: f64 = text.parse().map_err(|_| "invalid float")?;
    if float.is_infinite() {
        return Err("invalid float");
    }
    Ok(Ok(float))
}

/// The timestamp at the beginning of the rest of a line, followed only by blanks.
fn timestamp(rest: &[u8], precision: Precision) -> Result<Option<Timestamp>, &'static str> {
    let length = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
    let (word, behind) = rest.split_at(length);
    let digits = word.strip_prefix(b"-").unwrap_or(word);
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err("bad timestamp");
    }
    if word.is_empty() {
        return Ok(None);
    }
    let text = std::str::from_utf8(word).unwrap_or_default();
    let number = text.parse().map_err(|_| "bad timestamp")?;
    let at = precision.time(number).ok_or("time outside range")?;
    if behind.iter().any(|byte| *byte != b' ') {
        return Err("point is invalid");
    }
    Ok(Some(at))
}
