//! Parses date strings of other programs, exactly.
//!
//! `jiff` handles the calendar. This module converts common spellings to the one that jiff parses:
//! `/` or `.` between the parts of a date, a blank before the zone, `AM` and `PM`, one digit
//! instead of two, and eight or fourteen digits without separators. The order of day and month is
//! never guessed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::error::TraceDefect;
use crate::time::Timestamp;

/// The order of the parts of a date. The year always has four digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DateOrder {
    /// Year, month, day: `2014-04-01`.
    #[default]
    Ymd,
    /// Day, month, year: `01.04.2014`.
    Dmy,
    /// Month, day, year: `04/01/2014`.
    Mdy,
}

impl fmt::Display for DateOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ymd => "ymd",
            Self::Dmy => "dmy",
            Self::Mdy => "mdy",
        })
    }
}

impl FromStr for DateOrder {
    type Err = TraceDefect;

    fn from_str(text: &str) -> Result<Self, TraceDefect> {
        match text {
            "ymd" => Ok(Self::Ymd),
            "dmy" => Ok(Self::Dmy),
            "mdy" => Ok(Self::Mdy),
            _ => Err(TraceDefect::Invalid {
                what: "an order of dates is ymd, dmy or mdy",
            }),
        }
    }
}

/// Maximum length of a date string, in bytes.
const MAX_DATE_BYTES: usize = 64;

pub(crate) const BAD_DATE: &str = "a timestamp that is neither a number nor a date like 2014-04-01 00:00:00";
pub(crate) const OPEN_ORDER: &str = "a date whose order of day and month is open; give dates=dmy or dates=mdy";
pub(crate) const DATE_OUT_OF_RANGE: &str = "a date outside the years 1677 to 2262";

/// Parses a date, with or without a time of day. The result is `true` if it includes a zone;
/// without one it is taken as UTC.
///
/// # Errors
/// What is wrong, as a fixed sentence.
pub fn date_string(text: &str, order: DateOrder) -> Result<(Timestamp, bool), &'static str> {
    let text = text.trim();
    if text.len() > MAX_DATE_BYTES || !text.is_ascii() {
        return Err(BAD_DATE);
    }
    if let Some(compact) = compact(text) {
        return moment(&compact, false);
    }
    let end = text.find([' ', 'T', 't']).unwrap_or(text.len());
    let date = calendar(&text[..end], order)?;
    let rest = text.get(end + 1..).unwrap_or_default().trim();
    if rest.is_empty() {
        return moment(&format!("{date}T00:00:00"), false);
    }
    let (clock, zone) = split_zone(rest);
    let clock = clock_time(clock)?;
    moment(&format!("{date}T{clock}{zone}"), !zone.is_empty())
}

/// Expands `20140401` or `20140401123000`, if that is a date in this or the last century.
pub(crate) fn compact(text: &str) -> Option<String> {
    if !matches!(text.len(), 8 | 14) || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (date, clock) = text.split_at(8);
    let is_recent = ("1900".."2100").contains(&&date[..4]);
    let clock = if clock.is_empty() { "000000" } else { clock };
    let spelled = format!(
        "{}-{}-{}T{}:{}:{}",
        &date[..4],
        &date[4..6],
        &date[6..],
        &clock[..2],
        &clock[2..4],
        &clock[4..]
    );
    (is_recent && spelled.parse::<jiff::civil::DateTime>().is_ok()).then_some(spelled)
}

fn moment(spelled: &str, has_zone: bool) -> Result<(Timestamp, bool), &'static str> {
    let nanos = if has_zone {
        spelled.parse::<jiff::Timestamp>().map(jiff::Timestamp::as_nanosecond)
    } else {
        format!("{spelled}Z")
            .parse::<jiff::Timestamp>()
            .map(jiff::Timestamp::as_nanosecond)
    };
    let nanos = nanos.map_err(|_| BAD_DATE)?;
    let nanos = i64::try_from(nanos).map_err(|_| DATE_OUT_OF_RANGE)?;
    Ok((Timestamp(nanos), has_zone))
}

/// Converts a date to `2014-04-01`.
fn calendar(date: &str, order: DateOrder) -> Result<String, &'static str> {
    let parts: Vec<&str> = date.split(['-', '/', '.']).collect();
    let [first, second, third] = parts[..] else {
        return Err(BAD_DATE);
    };
    let all_digits = parts
        .iter()
        .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    if !all_digits {
        return Err(BAD_DATE);
    }
    let (year, month, day) = match order {
        DateOrder::Ymd if first.len() != 4 && third.len() == 4 => return Err(OPEN_ORDER),
        DateOrder::Ymd => (first, second, third),
        // A date that begins with the year is unambiguous, whatever the configured order.
        DateOrder::Dmy | DateOrder::Mdy if first.len() == 4 => (first, second, third),
        DateOrder::Dmy => (third, second, first),
        DateOrder::Mdy => (third, first, second),
    };
    if year.len() != 4 || month.len() > 2 || day.len() > 2 {
        return Err(BAD_DATE);
    }
    Ok(format!("{year}-{month:0>2}-{day:0>2}"))
}

/// Splits the time of day from the zone, in jiff's spelling; the zone is empty if there is none.
fn split_zone(text: &str) -> (&str, &str) {
    for name in ["Z", "z", "UTC", "GMT"] {
        if let Some(clock) = text.strip_suffix(name) {
            return (clock.trim_end(), "Z");
        }
    }
    match text.find(['+', '-']) {
        Some(at) => (text[..at].trim_end(), &text[at..]),
        None => (text, ""),
    }
}

/// Converts a time of day to `13:05:00.25`.
fn clock_time(text: &str) -> Result<String, &'static str> {
    let upper = text.to_ascii_uppercase();
    let (clock, half) = match (upper.strip_suffix("AM"), upper.strip_suffix("PM")) {
        (Some(clock), _) => (clock.trim_end(), Some(0)),
        (_, Some(clock)) => (clock.trim_end(), Some(12)),
        _ => (upper.as_str(), None),
    };
    let (hour, rest) = clock.split_at(clock.find(':').ok_or(BAD_DATE)?);
    let hour: u32 = hour.parse().map_err(|_| BAD_DATE)?;
    let hour = match half {
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        None if hour < 24 => hour,
        _ => return Err(BAD_DATE),
    };
    Ok(format!("{hour:02}{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIDNIGHT: i64 = 1_396_310_400_000_000_000;

    #[test]
    fn the_common_spellings_of_a_date_are_read_exactly() {
        let check = |text: &str, nanos: i64, zone: bool| {
            assert_eq!(
                date_string(text, DateOrder::Ymd),
                Ok((Timestamp(nanos), zone)),
                "{text}"
            );
        };
        for text in [
            "2014-04-01 00:00:00",
            "2014-04-01T00:00:00",
            "2014/04/01 00:00",
            "2014/4/1 0:00:00.000",
            "2014.04.01 00:00:00",
            "2014-04-01",
            "20140401",
            "20140401000000",
            " 2014-04-01 12:00:00 AM ",
        ] {
            check(text, MIDNIGHT, false);
        }
        for text in [
            "2014-04-01T00:00:00Z",
            "2014-04-01 00:00:00 UTC",
            "2014-04-01 02:00:00+02:00",
            "2014-04-01 02:00:00 +0200",
            "2014-03-31T19:30:00.000-04:30",
        ] {
            check(text, MIDNIGHT, true);
        }
        check("2014-04-01 00:00:00.123456789", MIDNIGHT + 123_456_789, false);
        check("2014-04-01 13:05:09", MIDNIGHT + 47_109_000_000_000, false);
        check("2014-04-01 1:05:09 pm", MIDNIGHT + 47_109_000_000_000, false);
        check("1969-12-31T23:59:59.5Z", -500_000_000, true);
    }

    #[test]
    fn day_and_month_are_not_guessed() {
        assert_eq!(date_string("01/04/2014 00:00", DateOrder::Ymd), Err(OPEN_ORDER));
        let check =
            |text: &str, order| assert_eq!(date_string(text, order), Ok((Timestamp(MIDNIGHT), false)), "{text}");
        check("1/4/2014 00:00", DateOrder::Dmy);
        check("01.04.2014", DateOrder::Dmy);
        check("4/1/2014 12:00:00 AM", DateOrder::Mdy);
        check("2014-04-01 00:00", DateOrder::Dmy);
    }

    #[test]
    fn invalid_dates_are_refused() {
        for text in [
            "",
            "x",
            "2014",
            "2014-04",
            "2014-13-01",
            "2014-02-30",
            "2014-04-01 25:00",
            "2014-04-01 13:00 PM",
            "2014-04-01 00:60",
            "2014-04-01 noon",
            "14-04-01",
            "2014-04-01 00:00:00.1234567891",
            "-2014-04-01",
            "2014-04-01 00:00 Europe/Berlin",
            "2014-04-01T00:00:00+99:00",
            "\u{661}\u{662}",
        ] {
            assert_eq!(date_string(text, DateOrder::Ymd), Err(BAD_DATE), "{text:?}");
        }
        assert_eq!(date_string("1600-01-01", DateOrder::Ymd), Err(DATE_OUT_OF_RANGE));
        assert_eq!(compact("20140431"), None, "April has 30 days");
        assert_eq!(compact("17000000"), None, "seconds of July 1970");
        for order in [DateOrder::Ymd, DateOrder::Dmy, DateOrder::Mdy] {
            assert_eq!(order.to_string().parse::<DateOrder>().unwrap(), order);
        }
    }
}
