//! Parses one line exactly as InfluxDB does, without optimization.
//!
//! Error messages are InfluxDB's where it has one.

use std::ops::Range;

use super::Precision;
use crate::time::Timestamp;

/// 2^53: up to here an f64 represents every integer.
const EXACT: u64 = 1 << 53;

/// InfluxDB's limit for measurement, tags and one field.
const MAX_KEY: usize = 65_535;

/// A parsed line; its fields are stored separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// Measurement and tags.
    pub(super) head: &'a [u8],
    /// `None`: the time of arrival.
    pub(super) at: Option<Timestamp>,
}

/// A field of a line.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    /// The range of its key in the line.
    pub(super) key: Range<usize>,
    /// The value, or why it is not a sample.
    pub(super) value: Result<f64, &'static str>,
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
pub(super) fn is_point(line: &[u8]) -> bool {
    let start = skip_blanks(line, 0);
    start < line.len() && line[start] != b'#'
}

/// Parses one line without its line feed.
pub(super) fn parse<'a>(
    line: &'a [u8],
    precision: Precision,
    fields: &mut Vec<Field>,
) -> Result<Line<'a>, &'static str> {
    fields.clear();
    let start = skip_blanks(line, 0);
    let end = head_end(line, start)?;
    let head = &line[start..end];
    if head.len() > MAX_KEY {
        return Err("max key length exceeded");
    }
    let end = scan_fields(line, skip_blanks(line, end), fields)?;
    if fields.iter().any(|field| head.len() + field.key.len() + 4 > MAX_KEY) {
        return Err("max key length exceeded");
    }
    let at = timestamp(line, skip_blanks(line, end), precision)?;
    Ok(Line { head, at })
}

fn skip_blanks(line: &[u8], start: usize) -> usize {
    let blanks = line[start..].iter().take_while(|byte| matches!(byte, b' ' | b'\t' | 0));
    start + blanks.count()
}

/// End of measurement and tags.
fn head_end(line: &[u8], start: usize) -> Result<usize, &'static str> {
    if line.get(start).is_none_or(|first| *first == b',') {
        return Err("missing measurement");
    }
    let mut at = find(line, start + 1, b", ").ok_or("missing fields")?;
    let mut tags = Vec::new();
    while line[at] == b',' {
        let key = at + 1;
        if line.get(key).is_none_or(|first| b" ,=".contains(first)) {
            return Err("missing tag key");
        }
        let equals = find(line, key + 1, b" ,=").filter(|at| line[*at] == b'=');
        let value = equals.ok_or("missing tag value")? + 1;
        if line.get(value).is_none_or(|first| b" ,".contains(first)) {
            return Err("missing tag value");
        }
        tags.push(&line[key..value]);
        at = find(line, value + 1, b" ,=").ok_or("missing fields")?;
        if line[at] == b'=' {
            return Err("invalid tag format");
        }
    }
    tags.sort_unstable();
    if tags.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("duplicate tags");
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
fn scan_fields(line: &[u8], start: usize, fields: &mut Vec<Field>) -> Result<usize, &'static str> {
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
                    return Err("missing field key");
                }
                let (value, end) = value(line, at + 1)?;
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
        return Err("unbalanced quotes");
    }
    if equals == 0 || commas != equals - 1 {
        return Err("invalid field format");
    }
    Ok(at.min(line.len()))
}

/// The value at `start`, and where the scan of the fields continues: after a number or a boolean,
/// or at the opening quote of a string.
fn value(line: &[u8], start: usize) -> Result<(Result<f64, &'static str>, usize), &'static str> {
    let rest = line.get(start..).unwrap_or_default();
    match rest.first() {
        None | Some(b',' | b' ') => return Err("missing field value"),
        Some(b'"') => return Ok((Err("a string is no value here"), start)),
        Some(_) => {}
    }
    let length = rest.iter().position(|byte| matches!(byte, b',' | b' '));
    let word = &rest[..length.unwrap_or(rest.len())];
    let value = match word[0] {
        b'0'..=b'9' | b'.' | b'-' | b'N' | b'n' => number(word)?,
        _ if is_boolean(word) => Err("a boolean is no value here"),
        _ => return Err("invalid boolean"),
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
            Err("an integer beyond 2^53 is no value here")
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

/// The timestamp at `start`, followed only by blanks.
fn timestamp(line: &[u8], start: usize, precision: Precision) -> Result<Option<Timestamp>, &'static str> {
    let rest = &line[start..];
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
