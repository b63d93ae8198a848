//! Parses one line exactly as carbon does, without optimization.

use super::{MAX_LINE, is_space};
use crate::time::SECOND_NS;
use crate::wire::number::parse_f64;

/// A sample as a line says it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct GraphiteLine<'a> {
    pub(super) name: &'a str,
    pub(super) value: f64,
    pub(super) at: Seconds,
}

/// The time of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seconds {
    /// Whole seconds since the epoch, within the range of a timestamp.
    At(i64),
    /// The timestamp -1: the time of arrival.
    Now,
}

/// Why a line is not a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineProblem {
    /// The line is ignored, and the connection continues.
    Malformed(&'static str),
    /// Carbon does not catch this error: the connection ends.
    Fatal(&'static str),
}

pub(super) const TOO_LONG: &str = "a line is longer than 16384 bytes";

/// Parses one line without its line feed.
pub(super) fn parse(line: &[u8]) -> Result<GraphiteLine<'_>, LineProblem> {
    if line.len() > MAX_LINE {
        return Err(LineProblem::Fatal(TOO_LONG));
    }
    let text = std::str::from_utf8(line).map_err(|_| LineProblem::Fatal("a line is not UTF-8"))?;
    let mut tokens = text.split(is_space).filter(|token| !token.is_empty());
    let parts = (tokens.next(), tokens.next(), tokens.next(), tokens.next());
    let (Some(name), Some(value), Some(at), None) = parts else {
        return Err(LineProblem::Malformed(
            "a line is not three words: name, value, timestamp",
        ));
    };
    // In carbon's order: both must be numbers before either is checked.
    let at = python_float(at).ok_or(LineProblem::Malformed("a timestamp is not a number"))?;
    let value = python_float(value).ok_or(LineProblem::Malformed("a value is not a number"))?;
    if value.is_nan() {
        return Err(LineProblem::Malformed("a value is NaN, which carbon drops"));
    }
    if !at.is_finite() {
        return Err(LineProblem::Fatal("a timestamp is NaN or infinite"));
    }
    let seconds = at.trunc();
    if seconds.abs() > (i64::MAX / SECOND_NS as i64) as f64 {
        return Err(LineProblem::Malformed("a timestamp is out of range"));
    }
    let at = if seconds == -1.0 {
        Seconds::Now
    } else {
        Seconds::At(seconds as i64)
    };
    Ok(GraphiteLine { name, value, at })
}

/// Python's `float()`: what Rust's parser accepts, plus single underscores between digits. (Python
/// also accepts digits of other scripts; these are not numbers here.)
fn python_float(text: &str) -> Option<f64> {
    let bytes = text.as_bytes();
    if memchr::memchr(b'_', bytes).is_none() {
        return parse_f64(bytes);
    }
    let digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    let between = |(index, _): (usize, &u8)| index > 0 && digit(index - 1) && digit(index + 1);
    if !bytes.iter().enumerate().filter(|(_, byte)| **byte == b'_').all(between) {
        return None;
    }
    let plain: Vec<u8> = bytes.iter().copied().filter(|byte| *byte != b'_').collect();
    parse_f64(&plain)
}
