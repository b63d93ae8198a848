//! Parses times as users type them.

use tsb_core::Timestamp;
use tsb_core::trace::{DateOrder, date_string};

use tsb_run::units;

/// Parses seconds since 1970 with up to nine decimals, nanoseconds since 1970, a date, or a time
/// relative to `now`.
pub(super) fn parse(text: &str, now: Timestamp) -> Result<Timestamp, String> {
    let text = text.trim();
    if let Some(offset) = relative(text) {
        return offset.and_then(|offset_ns| {
            let at = now.0.checked_add(offset_ns).ok_or("it is too far away")?;
            Ok(Timestamp(at))
        });
    }
    if text
        .trim_start_matches('-')
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return number(text).ok_or_else(|| {
            format!("{text:?} is neither seconds (1700000000.5) nor nanoseconds (19 digits) since 1970")
        });
    }
    let date = date_string(text, DateOrder::Ymd).map(|(at, _)| at);
    date.map_err(|_| format!("{text:?} is not a time; try 2026-11-23T03:00:00Z, 1700000000.5, -1h or now"))
}

/// Parses `now`, `-1h`, `now-90s` into nanoseconds from now; `None` if the text is not relative.
fn relative(text: &str) -> Option<Result<i64, String>> {
    let rest = match text.strip_prefix("now") {
        Some("") => return Some(Ok(0)),
        Some(rest) => rest.trim_start(),
        // Digits alone are seconds before 1970.
        None if text.ends_with(|c: char| c.is_ascii_alphabetic()) => text,
        None => return None,
    };
    let (sign, duration) = match (rest.strip_prefix('-'), rest.strip_prefix('+')) {
        (Some(duration), _) => (-1, duration),
        (_, Some(duration)) => (1, duration),
        _ => return None,
    };
    let read = units::parse_duration(duration);
    Some(read.and_then(|ns| {
        i64::try_from(ns)
            .map(|ns| sign * ns)
            .map_err(|_| "it is too far away".to_owned())
    }))
}

fn number(text: &str) -> Option<Timestamp> {
    const NANOS_DIGITS: usize = 16;
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, ""));
    if decimals.is_empty() && seconds.trim_start_matches('-').len() >= NANOS_DIGITS {
        return text.parse().ok().map(Timestamp);
    }
    let nanos = format!("{decimals:0<9}");
    let nanos = nanos.parse::<i64>().ok().filter(|_| nanos.len() == 9)?;
    let sign = if seconds.starts_with('-') { -1 } else { 1 };
    let whole = seconds.parse::<i64>().ok()?.checked_mul(1_000_000_000)?;
    whole.checked_add(sign * nanos).map(Timestamp)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_700_000_000_000_000_000);

    #[test]
    fn times_are_numbers_dates_or_relative() {
        for (text, expected) in [
            ("1.5", 1_500_000_000),
            ("-1.5", -1_500_000_000),
            ("1700000000", NOW.0),
            ("1700000000.000000001", NOW.0 + 1),
            ("1700000000000000000", NOW.0),
            ("now", NOW.0),
            ("-1h", NOW.0 - 3_600_000_000_000),
            ("now-90s", NOW.0 - 90_000_000_000),
            ("now + 1m", NOW.0 + 60_000_000_000),
            ("2023-11-14T22:13:20Z", NOW.0),
            ("2023-11-15 00:13:20+02:00", NOW.0),
            ("2023-11-14T22:13:20.25Z", NOW.0 + 250_000_000),
            ("2023-11-14", NOW.0 - (22 * 3600 + 13 * 60 + 20) * 1_000_000_000),
        ] {
            assert_eq!(parse(text, NOW), Ok(Timestamp(expected)), "{text}");
        }
    }

    #[test]
    fn invalid_times_are_refused_with_examples() {
        for text in [
            "x",
            "1.0000000001",
            "99999999999999",
            "1.x",
            "",
            "now-",
            "-1 fortnight",
            "2023-13-01",
            "1h",
        ] {
            let why = parse(text, NOW).unwrap_err();
            assert!(!why.is_empty(), "{text}");
        }
        assert!(parse("yesterday", NOW).unwrap_err().contains("-1h"));
    }
}
