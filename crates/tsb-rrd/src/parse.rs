//! Parses an update, `time:value[:value...]`, as librrd does.

use std::fmt;

use crate::error::{Error, Result};
use crate::number::number;

/// A time in seconds and microseconds since the epoch, UTC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment {
    /// Whole seconds.
    pub seconds: i64,
    /// Microseconds after the whole second. in [0, 999_999]
    pub micros: i64,
}

impl Moment {
    /// A whole second.
    pub const fn from_secs(seconds: i64) -> Self {
        Self { seconds, micros: 0 }
    }

    /// Converts a float as librrd does, including its rounding error.
    pub(crate) fn from_float(seconds: f64) -> Self {
        let whole = seconds.floor();
        if !(-9.2e18..9.2e18).contains(&whole) {
            // Out of range: treated as before any other time.
            return Self {
                seconds: i64::MIN,
                micros: 0,
            };
        }
        let seconds_whole = whole as i64;
        Self {
            seconds: seconds_whole,
            micros: ((seconds - seconds_whole as f64) * 1e6) as i64,
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.seconds, self.micros)
    }
}

/// Splits the time from the values, which follow the first colon.
///
/// # Errors
/// [`Error::InvalidUpdate`] if there is no time, and [`Error::Unsupported`] for times that need a
/// clock or a calendar (`N`, negative ones, at-style).
pub(crate) fn split_time(text: &str) -> Result<(&str, &str)> {
    let invalid = |what| Error::InvalidUpdate {
        text: text.to_owned(),
        what,
    };
    if text.contains('@') {
        return Err(Error::Unsupported(format!("an at-style time in {text:?}")));
    }
    if text.contains('\0') {
        return Err(invalid("a zero byte"));
    }
    text.split_once(':').ok_or_else(|| invalid("no time before a colon"))
}

/// Parses the time before the first colon.
pub(crate) fn moment(text: &str) -> Result<Moment> {
    if text == "N" {
        return Err(Error::Unsupported("the time N: say which".to_owned()));
    }
    let seconds = number(text.as_bytes()).ok_or_else(|| Error::InvalidUpdate {
        text: text.to_owned(),
        what: "not a number of seconds",
    })?;
    if seconds < 0.0 {
        return Err(Error::Unsupported(format!("the relative time {text:?}")));
    }
    Ok(Moment::from_float(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_floats() {
        for (text, seconds, micros) in [
            ("1700000000", 1_700_000_000, 0),
            ("1700000000.5", 1_700_000_000, 500_000),
            ("1700000000.000001", 1_700_000_000, 0),
            ("1e9", 1_000_000_000, 0),
            ("nan", i64::MIN, 0),
            ("inf", i64::MIN, 0),
        ] {
            assert_eq!(moment(text).unwrap(), Moment { seconds, micros }, "{text}");
        }
        assert!(matches!(moment("N"), Err(Error::Unsupported(_))));
        assert!(matches!(moment("-1"), Err(Error::Unsupported(_))));
        assert!(matches!(moment("x"), Err(Error::InvalidUpdate { .. })));
        assert!(matches!(split_time("1@2:3"), Err(Error::Unsupported(_))));
        assert!(split_time("12").is_err());
        assert_eq!(split_time("12:1:2").unwrap(), ("12", "1:2"));
    }
}
