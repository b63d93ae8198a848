//! Influx line protocol: `measurement,tag=value field=1,other=2 1404770400000000000`.
//!
//! As InfluxDB 1.8 parses it (`models/points.go`), specified in docs/formats/influx.md. A series
//! is a measurement with its tags and one field. The measurement is the name, the tags are the
//! labels, and the label `_field` is the field's key; a series without that label is sent as the
//! field `value`. Consecutive series that differ only in their field share a line.
//!
//! It does *not* include the HTTP interface, and it listens on no socket.

mod cached_line_end;
mod decode;
mod encode;
mod fast_path;
mod join;
pub(crate) mod line;
mod precision;

pub use decode::InfluxDecoder;
pub use encode::InfluxEncoder;
pub use precision::Precision;

use crate::series::SeriesKey;

/// The label that holds the key of the field.
pub const FIELD_LABEL: &str = "_field";

/// The field of a series without the label `_field`.
pub const DEFAULT_FIELD: &str = "value";

/// The longest wire name, in bytes: line head, space and field.
pub const MAX_NAME: usize = 32 << 10;

/// Maximum number of fields that are written into one line, and decoded on the fast paths.
pub(crate) const MAX_FIELDS: usize = 64;

/// The times that InfluxDB accepts, in nanoseconds: the outermost values have special meanings.
pub(crate) const TIMES: std::ops::RangeInclusive<i64> = i64::MIN + 2..=i64::MAX - 1;

/// A series on this wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireName {
    /// Measurement and tags, escaped.
    pub head: String,
    /// The field's key, escaped.
    pub field: String,
}

/// The name of a series on this wire.
///
/// # Errors
/// What in the key cannot be carried.
pub fn wire_name(key: &SeriesKey) -> Result<WireName, &'static str> {
    if key.name().is_empty() {
        return Err("its name is empty");
    }
    if key.name().starts_with('#') {
        return Err("its name begins with '#', which begins a comment on this wire");
    }
    let mut head = String::new();
    let mut field = String::new();
    escape(key.name(), ", ", &mut head);
    for (label, value) in key.labels() {
        if label.is_empty() || value.is_empty() {
            return Err("a label or its value is empty");
        }
        if label == FIELD_LABEL {
            if value == DEFAULT_FIELD {
                return Err("the field 'value' is what a series without the label _field has");
            }
            escape(value, ",= ", &mut field);
            continue;
        }
        if label == "time" {
            return Err("InfluxDB takes no tag 'time'");
        }
        head.push(',');
        escape(label, ",= ", &mut head);
        head.push('=');
        escape(value, ",= ", &mut head);
    }
    if field.is_empty() {
        field.push_str(DEFAULT_FIELD);
    }
    if field == "time" {
        return Err("InfluxDB takes no field 'time'");
    }
    let texts = || head.chars().chain(field.chars());
    if texts().any(char::is_control) || has_backslash(key) {
        return Err("it has a backslash or a control character");
    }
    if head.len() + field.len() >= MAX_NAME {
        return Err("it is longer than 32 KiB");
    }
    Ok(WireName { head, field })
}

fn has_backslash(key: &SeriesKey) -> bool {
    let labels = key.labels().iter();
    let mut texts = labels.flat_map(|(label, value)| [label.as_str(), value.as_str()]);
    key.name().contains('\\') || texts.any(|text| text.contains('\\'))
}

fn escape(text: &str, special: &str, out: &mut String) {
    for c in text.chars() {
        if special.contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
}

/// The series of a line head and a field's key, both as on the wire.
///
/// # Errors
/// If the key is ambiguous here: bytes that are not UTF-8, or the reserved tag `_field`.
pub fn series_key(head: &[u8], field: &[u8]) -> Result<SeriesKey, &'static str> {
    let not_utf8 = |_| "a name is not UTF-8";
    let head = std::str::from_utf8(head).map_err(not_utf8)?;
    let field = std::str::from_utf8(field).map_err(not_utf8)?;
    let (measurement, tags) = parts(head);
    let name = unescape(measurement, ", ");
    let mut labels: Vec<(String, String)> = tags.collect();
    if labels.iter().any(|(label, _)| label == FIELD_LABEL) {
        return Err("a tag has the reserved name _field");
    }
    let field = unescape(field, FIELD_ESCAPES);
    if field != DEFAULT_FIELD {
        labels.push((FIELD_LABEL.to_owned(), field));
    }
    Ok(SeriesKey::with_labels(name, labels))
}

/// The characters of a field's key that a backslash escapes.
pub(crate) const FIELD_ESCAPES: &str = ",= \"";

/// The measurement of a line head, still escaped, and its tags.
pub(crate) fn parts(head: &str) -> (&str, impl Iterator<Item = (String, String)>) {
    let mut parts = split(head, ',');
    let measurement = parts.next().unwrap_or_default();
    let tags = parts.map(|tag| {
        let mut pair = split(tag, '=').map(|text| unescape(text, ",= "));
        (pair.next().unwrap_or_default(), pair.next().unwrap_or_default())
    });
    (measurement, tags)
}

/// The parts between separators that are not escaped by a backslash.
fn split(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut before = ' ';
    text.split(move |c| {
        let ends = c == separator && before != '\\';
        before = c;
        ends
    })
}

/// Removes the backslash before each of the `special` characters; any other is kept.
pub(crate) fn unescape(text: &str, special: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let escaped = (c == '\\').then(|| rest.next_if(|next| special.contains(*next)));
        plain.push(escaped.flatten().unwrap_or(c));
    }
    plain
}

#[cfg(test)]
mod tests;
