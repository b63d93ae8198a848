//! StatsD: `key:value|g`, one line per sample, without timestamp.
//!
//! As StatsD parses it (commit `f7157b8`), specified in docs/formats/statsd.md. A value becomes a
//! sample at the time of its arrival: the flush every ten seconds, with its sums and quantiles,
//! belongs to the server and not to the wire.
//!
//! A series is sent as a gauge under its name, with labels appended as `;label=value`. The label
//! `_type` makes it a counter or a timer, and is added to these when they are received.

mod decode;
mod encode;
mod number;

pub use decode::StatsdDecoder;
pub use encode::StatsdEncoder;

use crate::series::SeriesKey;

/// The label that marks counters and timers.
pub const TYPE_LABEL: &str = "_type";

/// Maximum length of a key, in bytes: what fits into the smallest recommended payload.
pub const MAX_KEY: usize = 448;

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetricType {
    /// `g`: the current value.
    Gauge,
    /// `c`: an increment.
    Counter,
    /// `ms`: a duration.
    Timer,
}

impl MetricType {
    /// The value of the label `_type`; `None` for a gauge.
    fn label(self) -> Option<&'static str> {
        match self {
            Self::Gauge => None,
            Self::Counter => Some("counter"),
            Self::Timer => Some("timer"),
        }
    }
}

/// A series on this wire: its key and its type.
///
/// # Errors
/// What in the key cannot be carried.
pub fn wire_name(key: &SeriesKey) -> Result<(String, MetricType), &'static str> {
    let mut kind = MetricType::Gauge;
    let mut wire = key.name().to_owned();
    for (label, value) in key.labels() {
        if label == TYPE_LABEL {
            let kinds = [MetricType::Counter, MetricType::Timer].into_iter();
            let found = kinds.into_iter().find(|kind| kind.label() == Some(value));
            kind = found.ok_or("its label _type is neither counter nor timer")?;
            continue;
        }
        if label.is_empty() || value.is_empty() || label.contains('=') {
            return Err("a label is empty or has a '='");
        }
        wire = format!("{wire};{label}={value}");
    }
    let parts = 1 + key.labels().len() - usize::from(kind != MetricType::Gauge);
    if !wire.bytes().all(is_kept) || wire.split(';').count() != parts {
        return Err("a name or label has other characters than letters, digits, _ . -");
    }
    if key.name().is_empty() || key.name().contains('=') || wire.len() > MAX_KEY {
        return Err("its name is empty or has a '=', or it is longer than 448 bytes");
    }
    Ok((wire, kind))
}

/// Whether a key may contain this byte.
fn is_kept(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.-;=".contains(&byte)
}

/// The series of a cleaned key with its type. A key whose tags cannot be parsed is a plain name.
pub fn series_key(wire: &str, kind: MetricType) -> SeriesKey {
    let mut parts = wire.split(';');
    let name = parts.next().unwrap_or_default();
    let tags: Option<Vec<(&str, &str)>> = parts
        .map(|part| {
            part.split_once('=')
                .filter(|(label, value)| !label.is_empty() && !value.is_empty())
        })
        .collect();
    let (name, mut labels) = tags.map_or((wire, Vec::new()), |tags| (name, tags));
    labels.extend(kind.label().map(|value| (TYPE_LABEL, value)));
    SeriesKey::with_labels(name, labels)
}

#[cfg(test)]
mod tests;
