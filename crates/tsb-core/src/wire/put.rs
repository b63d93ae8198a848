//! `put metric time value tag=value ...`: the telnet protocols of OpenTSDB and KairosDB.
//!
//! One grammar with two receivers, which differ in what they refuse and in their replies;
//! specified in docs/formats/put.md. A series is a metric with its tags. Neither server accepts a
//! series without tags, so one is sent with the tag `add=tag`, which KairosDB adds by itself.
//!
//! It is *not* the HTTP interface of either server, and it listens on no socket.

mod decode;
mod encode;
mod fast_path;
mod line;

pub use decode::PutDecoder;
pub use encode::PutEncoder;
pub use line::reply;

use crate::series::SeriesKey;
use crate::wire::Protocol;

/// Maximum length of a line without its end, in bytes.
pub const MAX_LINE: usize = 1024;

/// Maximum length of value, timestamp and the blanks between them, in bytes.
const NUMBERS: usize = 64;

/// The tag of a series without labels.
pub const DEFAULT_TAG: (&str, &str) = ("add", "tag");

/// The server that is imitated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// OpenTSDB's: at least one tag, at most eight, and errors are written back.
    Opentsdb,
    /// KairosDB's: any number of tags, and no reply.
    Kairosdb,
}

impl Dialect {
    pub(crate) fn protocol(self) -> Protocol {
        match self {
            Self::Opentsdb => Protocol::Opentsdb,
            Self::Kairosdb => Protocol::Kairosdb,
        }
    }

    /// Maximum number of tags of a series.
    fn max_tags(self) -> usize {
        match self {
            Self::Opentsdb => 8,
            Self::Kairosdb => usize::MAX,
        }
    }
}

/// Whether a metric, a tag name or a tag value may contain this byte.
pub(crate) fn is_allowed(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_./".contains(&byte)
}

/// A series on this wire: the text before the time, and the text after the value.
///
/// # Errors
/// What in the key cannot be carried.
pub fn wire_name(dialect: Dialect, key: &SeriesKey) -> Result<(String, String), &'static str> {
    let texts = key.labels().iter().flat_map(|(label, value)| [label, value]);
    let mut texts = texts.map(String::as_str).chain([key.name()]);
    if texts.any(|text| text.is_empty() || !text.bytes().all(is_allowed)) {
        return Err("a name or label is empty or has other characters than letters, digits, - _ . /");
    }
    if let [(label, value)] = key.labels()
        && (label.as_str(), value.as_str()) == DEFAULT_TAG
    {
        return Err("the label add=tag is what a series without labels has");
    }
    if key.labels().len() > dialect.max_tags() {
        return Err("it has more than eight labels");
    }
    let mut tags = String::new();
    for (label, value) in key.labels() {
        tags.push(' ');
        tags.push_str(label);
        tags.push('=');
        tags.push_str(value);
    }
    if key.labels().is_empty() && dialect == Dialect::Opentsdb {
        let (label, value) = DEFAULT_TAG;
        tags = format!(" {label}={value}");
    }
    if key.name().len() + tags.len() + NUMBERS > MAX_LINE {
        return Err("it is longer than a line can be");
    }
    Ok((key.name().to_owned(), tags))
}

/// The series of a metric and its tags.
fn series_key(metric: &str, tags: &[(&str, &str)]) -> SeriesKey {
    if tags == [DEFAULT_TAG] {
        return SeriesKey::new(metric);
    }
    SeriesKey::with_labels(metric, tags.iter().copied())
}

#[cfg(test)]
mod tests;
