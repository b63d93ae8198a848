//! Graphite plaintext: `name value timestamp`, one line per sample.
//!
//! As carbon parses it (commit `aa7974e`, `lib/carbon/protocols.py` and `util.py`), specified in
//! docs/formats/graphite.md. A series without labels is sent by its name, one with labels in the
//! tagged form of Graphite 1.1: `name;label=value;label=value`.
//!
//! The wire has whole seconds, no answers, and drops values that are not numbers. It is *not* the
//! pickle protocol, and it listens on no socket.

mod decode;
mod encode;
mod line;

pub use decode::GraphiteDecoder;
pub use encode::GraphiteEncoder;

use crate::series::SeriesKey;

/// The longest line without its end that a receiver takes, in bytes (Twisted's
/// `LineOnlyReceiver.MAX_LENGTH`). A longer one closes the connection.
pub const MAX_LINE: usize = 16_384;

/// Maximum length of a wire name that leaves room for any value and timestamp.
pub const MAX_NAME: usize = MAX_LINE - 64;

/// The characters at which carbon splits a line: those of Python's `str.split()`.
pub(crate) fn is_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\x1c'..='\x1f')
}

/// The name of a series on this wire.
///
/// # Errors
/// What in the key cannot be carried.
pub fn wire_name(key: &SeriesKey) -> Result<String, &'static str> {
    let mut wire = key.name().to_owned();
    if wire.is_empty() {
        return Err("its name is empty");
    }
    if wire.starts_with('~') {
        return Err("its name begins with '~', which carbon cuts off");
    }
    if wire.contains(';') {
        return Err("its name has a ';', which begins a label on this wire");
    }
    for (label, value) in key.labels() {
        check_label(label, value)?;
        wire.push(';');
        wire.push_str(label);
        wire.push('=');
        wire.push_str(value);
    }
    if wire.chars().any(|c| is_space(c) || c.is_control()) {
        return Err("it has white space or a control character");
    }
    if wire.ends_with("\"}") && wire.contains('{') {
        return Err("carbon would read it as an OpenMetrics name");
    }
    if wire.len() > MAX_NAME {
        return Err("it is longer than a line can be");
    }
    Ok(wire)
}

/// Checks the rules of carbon's `TaggedSeries.validateTagAndValue`, and its reserved tag.
fn check_label(label: &str, value: &str) -> Result<(), &'static str> {
    if label.is_empty() || label.contains([';', '!', '^', '=']) {
        return Err("a label is empty or has one of ; ! ^ =");
    }
    if label == "name" {
        return Err("the label 'name' is reserved for the name itself");
    }
    if value.is_empty() || value.starts_with('~') || value.contains(';') {
        return Err("a label's value is empty, begins with '~' or has a ';'");
    }
    Ok(())
}

/// The series of a wire name. Carbon stores a name with unparseable tags under its literal text,
/// so here it becomes the name of a series without labels.
pub fn series_key(wire: &str) -> SeriesKey {
    tagged(wire).unwrap_or_else(|| SeriesKey::new(wire))
}

fn tagged(wire: &str) -> Option<SeriesKey> {
    let mut segments = wire.split(';');
    let name = segments.next()?.trim_start_matches('~');
    if name.is_empty() {
        return None;
    }
    let mut labels = Vec::new();
    for segment in segments {
        let (label, value) = segment.split_once('=')?;
        if label == "name" {
            continue; // carbon overwrites this tag with the name
        }
        check_label(label, value).ok()?;
        labels.push((label, value));
    }
    Some(SeriesKey::with_labels(name, labels))
}

#[cfg(test)]
mod tests;
