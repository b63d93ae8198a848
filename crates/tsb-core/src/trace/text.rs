//! Shared by the readers of text files: options, lines, numbers, timestamps.

use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::dates::DateOrder;
use super::error::TraceDefect;
use super::format::MAX_EXACT;
use super::memory::Limits;
use crate::time::Timestamp;

/// Maximum length of a line in a text file, in bytes; a longer one is left out and counted.
pub const MAX_LINE_BYTES: usize = 1 << 20;

/// How a text file is to be read. What is not given is taken as the format's own
/// documents say, recognised by a stated rule (see [`Trace::decisions`](super::Trace::decisions)), or refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// Limits of the trace.
    pub limits: Limits,
    /// The unit of the timestamps; `None`: nanoseconds in line protocol, milliseconds in
    /// Prometheus text, seconds in OpenMetrics, by the rule of [`TimeUnit::detect`] in CSV.
    pub unit: Option<TimeUnit>,
    /// The times of samples without a timestamp, in Prometheus text. `None`: such samples are left
    /// out and counted.
    pub scrapes: Option<Scrapes>,
    /// Prometheus text: whether each row of a histogram is kept as a series. Otherwise they are
    /// left out and counted, because a histogram is not a single value.
    pub histogram_rows: bool,
    /// The field separator of CSV; `None`: the most frequent of comma, semicolon and tab in the
    /// first line.
    pub separator: Option<u8>,
    /// The order of the parts of CSV dates that do not begin with the year.
    pub dates: DateOrder,
    /// Whether `1,5` in CSV means one and a half.
    pub decimal_comma: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            unit: None,
            scrapes: None,
            histogram_rows: false,
            separator: None,
            dates: DateOrder::Ymd,
            decimal_comma: false,
        }
    }
}

/// Times of successive scrapes in one file. A new scrape begins after a line `# EOF`, and when a
/// series occurs a second time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Scrapes {
    /// The time of the first scrape.
    pub start: Timestamp,
    /// Nanoseconds from one scrape to the next.
    pub interval_ns: i64,
}

/// The unit of a timestamp, which counts from the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TimeUnit {
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Milliseconds.
    #[serde(rename = "ms")]
    Millis,
    /// Microseconds.
    #[serde(rename = "us")]
    Micros,
    /// Nanoseconds.
    #[serde(rename = "ns")]
    Nanos,
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Seconds => "s",
            Self::Millis => "ms",
            Self::Micros => "us",
            Self::Nanos => "ns",
        })
    }
}

impl TimeUnit {
    /// The unit in which a timestamp is a date between March 1973 and the year 5138: below 1e11
    /// seconds, below 1e14 milliseconds, below 1e17 microseconds, otherwise nanoseconds. For times
    /// outside this range, the unit must be given.
    pub fn detect(whole: i128) -> Self {
        match whole.unsigned_abs() {
            0..100_000_000_000 => Self::Seconds,
            100_000_000_000..100_000_000_000_000 => Self::Millis,
            100_000_000_000_000..100_000_000_000_000_000 => Self::Micros,
            _ => Self::Nanos,
        }
    }

    /// Its name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Seconds => "seconds",
            Self::Millis => "milliseconds",
            Self::Micros => "microseconds",
            Self::Nanos => "nanoseconds",
        }
    }

    /// Decimal digits between this unit and nanoseconds.
    fn digits(self) -> u32 {
        match self {
            Self::Seconds => 9,
            Self::Millis => 6,
            Self::Micros => 3,
            Self::Nanos => 0,
        }
    }
}

impl FromStr for TimeUnit {
    type Err = TraceDefect;

    fn from_str(text: &str) -> Result<Self, TraceDefect> {
        match text {
            "s" => Ok(Self::Seconds),
            "ms" => Ok(Self::Millis),
            "us" => Ok(Self::Micros),
            "ns" => Ok(Self::Nanos),
            _ => Err(TraceDefect::Invalid {
                what: "a unit of time is s, ms, us or ns",
            }),
        }
    }
}

/// One line of a file, without its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TextLine<'a> {
    /// Line number, from 1.
    pub(crate) number: u64,
    /// Offset in the file.
    pub(crate) offset: u64,
    pub(crate) bytes: &'a [u8],
    /// Whether the line exceeds the limit, and `bytes` is only its beginning.
    pub(crate) is_too_long: bool,
}

/// Calls the visitor with each line, without a carriage return before the line feed. Memory is
/// bounded by [`MAX_LINE_BYTES`].
pub(crate) fn each_line(
    input: impl Read,
    visit: &mut dyn FnMut(TextLine<'_>) -> Result<(), TraceDefect>,
) -> Result<(), TraceDefect> {
    let mut input = BufReader::with_capacity(1 << 16, input);
    let mut buffer = Vec::new();
    let mut offset = 0;
    for number in 1.. {
        buffer.clear();
        let mut length = read_piece(&mut input, &mut buffer)?;
        if length == 0 {
            break;
        }
        let is_too_long = length > MAX_LINE_BYTES as u64 && buffer.last() != Some(&b'\n');
        if is_too_long {
            let mut rest = Vec::new();
            while rest.last() != Some(&b'\n') {
                rest.clear();
                let more = read_piece(&mut input, &mut rest)?;
                length += more;
                if more == 0 {
                    break;
                }
            }
        }
        let bytes = buffer.strip_suffix(b"\n").unwrap_or(&buffer);
        let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
        visit(TextLine {
            number,
            offset,
            bytes,
            is_too_long,
        })?;
        offset += length;
    }
    Ok(())
}

fn read_piece(input: &mut impl BufRead, buffer: &mut Vec<u8>) -> Result<u64, TraceDefect> {
    let piece = input.take(MAX_LINE_BYTES as u64 + 1).read_until(b'\n', buffer);
    piece.map(|length| length as u64).map_err(TraceDefect::io("read"))
}

/// The spellings of numbers that a format allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Decimals only.
    Finite,
    /// Also `NaN` and `Inf` with or without a sign, in any case, and a leading `+`.
    All,
}

pub(crate) const BEYOND_EXACT: &str = "an integer beyond 2^53";
pub(crate) const NO_NUMBER: &str = "a value that is not a number";
const BEYOND_RANGE: &str = "a number beyond the range of an f64";

/// Parses a value: an integer must be exact, a decimal is rounded as usual.
pub(crate) fn number(text: &[u8], spellings: Numbers) -> Result<f64, &'static str> {
    let unsigned = match text {
        [b'-', rest @ ..] => rest,
        [b'+', rest @ ..] if spellings == Numbers::All => rest,
        _ => text,
    };
    if !unsigned.is_empty() && unsigned.iter().all(u8::is_ascii_digit) {
        return match integer(text) {
            Some(integer) if integer.unsigned_abs() <= u128::from(MAX_EXACT) => Ok(signed(text, integer as f64)),
            _ => Err(BEYOND_EXACT),
        };
    }
    let is_decimal = unsigned
        .first()
        .is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.')
        && unsigned
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    if is_decimal {
        let value: Option<f64> = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
        return match value {
            Some(value) if value.is_finite() => Ok(value),
            Some(_) => Err(BEYOND_RANGE),
            None => Err(NO_NUMBER),
        };
    }
    if spellings == Numbers::All {
        let value = if unsigned.eq_ignore_ascii_case(b"nan") {
            Some(f64::NAN)
        } else if unsigned.eq_ignore_ascii_case(b"inf") || unsigned.eq_ignore_ascii_case(b"infinity") {
            Some(f64::INFINITY)
        } else {
            None
        };
        return value
            .map(|value| if text[0] == b'-' { -value } else { value })
            .ok_or(NO_NUMBER);
    }
    Err(NO_NUMBER)
}

/// Whether a text is not a number in any common spelling: `1,234.5` and `5 %` count as numbers
/// here, though [`number`] refuses them.
pub(crate) fn is_text(text: &[u8]) -> bool {
    let is_numeric = |byte: &u8| byte.is_ascii_digit() || b" .,%$+-".contains(byte);
    let has_dots = memchr::memchr_iter(b'.', text).nth(1).is_some();
    let is_formatted = !has_dots
        && text.iter().any(u8::is_ascii_digit)
        && text.iter().all(is_numeric)
        && !text.iter().skip(1).any(|byte| *byte == b'-');
    !is_formatted && number(text, Numbers::All) == Err(NO_NUMBER)
}

/// Restores the sign of `-0`.
fn signed(text: &[u8], value: f64) -> f64 {
    if value == 0.0 && text[0] == b'-' { -0.0 } else { value }
}

/// Parses at most 30 digits with an optional sign.
fn integer(text: &[u8]) -> Option<i128> {
    if text.len() > 30 {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

pub(crate) const NO_TIMESTAMP: &str = "no timestamp";
const BAD_TIMESTAMP: &str = "a timestamp that is not a plain number";
const OUT_OF_RANGE: &str = "a timestamp outside the years 1677 to 2262";
const TOO_FINE: &str = "a timestamp finer than a nanosecond";

/// The integer part of a timestamp, and the digits of its fraction. The format is a plain number
/// with an optional sign and fraction, and no exponent.
pub(crate) fn split_time(text: &[u8]) -> Result<(i128, &[u8]), &'static str> {
    let (whole, fraction) = match memchr::memchr(b'.', text) {
        Some(dot) => (&text[..dot], &text[dot + 1..]),
        None => (text, &b""[..]),
    };
    let digits = whole.strip_prefix(b"-").unwrap_or(whole);
    let is_plain = !digits.is_empty()
        && digits.iter().all(u8::is_ascii_digit)
        && fraction.iter().all(u8::is_ascii_digit)
        && (fraction.len() == text.len() - whole.len() || !fraction.is_empty());
    if !is_plain {
        return Err(BAD_TIMESTAMP);
    }
    Ok((integer(whole).ok_or(OUT_OF_RANGE)?, fraction))
}

/// Parses a timestamp in a unit, exactly.
pub(crate) fn timestamp(text: &[u8], unit: TimeUnit) -> Result<Timestamp, &'static str> {
    let (whole, fraction) = split_time(text)?;
    let room = unit.digits() as usize;
    let (kept, finer) = fraction.split_at(fraction.len().min(room));
    if finer.iter().any(|&digit| digit != b'0') {
        return Err(TOO_FINE);
    }
    let missing = (room - kept.len()) as u32;
    let part = kept
        .iter()
        .fold(0_i128, |sum, digit| sum * 10 + i128::from(digit - b'0'))
        * 10_i128.pow(missing);
    let part = if text[0] == b'-' { -part } else { part };
    let nanos = whole
        .checked_mul(10_i128.pow(unit.digits()))
        .and_then(|nanos| nanos.checked_add(part));
    let nanos = nanos.and_then(|nanos| i64::try_from(nanos).ok());
    nanos.map(Timestamp).ok_or(OUT_OF_RANGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_a_long_one_is_only_begun() {
        let mut text = b"one\r\n\n".to_vec();
        text.extend(vec![b'x'; 3 * MAX_LINE_BYTES]);
        text.extend_from_slice(b"\nlast");
        let mut seen = Vec::new();
        each_line(&text[..], &mut |line| {
            seen.push((line.number, line.offset, line.bytes.len(), line.is_too_long));
            Ok(())
        })
        .unwrap();
        let long = 3 * MAX_LINE_BYTES as u64;
        assert_eq!(
            seen,
            [
                (1, 0, 3, false),
                (2, 5, 0, false),
                (3, 6, MAX_LINE_BYTES + 1, true),
                (4, 7 + long, 4, false)
            ]
        );
    }

    #[test]
    fn a_line_of_just_the_longest_length_is_whole() {
        let mut text = vec![b'x'; MAX_LINE_BYTES];
        text.extend_from_slice(b"\nb\n");
        let mut seen = Vec::new();
        each_line(&text[..], &mut |line| {
            seen.push((line.bytes.len(), line.is_too_long));
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, [(MAX_LINE_BYTES, false), (1, false)]);
    }

    #[test]
    fn numbers_are_exact_or_refused() {
        for spellings in [Numbers::Finite, Numbers::All] {
            assert_eq!(number(b"12", spellings), Ok(12.0));
            assert_eq!(number(b"-9007199254740992", spellings), Ok(-9007199254740992.0));
            assert_eq!(number(b"9007199254740993", spellings), Err(BEYOND_EXACT));
            assert_eq!(number(&[b'9'; 400], spellings), Err(BEYOND_EXACT));
            assert_eq!(number(b"-0", spellings).map(f64::to_bits), Ok((-0.0_f64).to_bits()));
            assert_eq!(number(b"1.5e-3", spellings), Ok(0.0015));
            assert_eq!(number(b"1e400", spellings), Err(BEYOND_RANGE));
            for bad in [
                &b""[..],
                b"-",
                b"x",
                b"1x",
                b"1e",
                b"0x1",
                b"1_000",
                b"true",
                b"\xff",
                b".",
            ] {
                assert_eq!(number(bad, spellings), Err(NO_NUMBER), "{bad:?}");
            }
        }
        assert_eq!(number(b"+3", Numbers::All), Ok(3.0));
        assert_eq!(number(b"+3", Numbers::Finite), Err(NO_NUMBER));
        assert_eq!(number(b"-Inf", Numbers::All), Ok(f64::NEG_INFINITY));
        assert!(number(b"nan", Numbers::All).unwrap().is_nan());
        assert_eq!(number(b"NaN", Numbers::Finite), Err(NO_NUMBER));
    }

    #[test]
    fn timestamps_are_exact_or_refused() {
        let check = |text: &str, unit, expected| assert_eq!(timestamp(text.as_bytes(), unit), expected, "{text}");
        check(
            "1700000000",
            TimeUnit::Seconds,
            Ok(Timestamp(1_700_000_000_000_000_000)),
        );
        check(
            "1700000000.123456789",
            TimeUnit::Seconds,
            Ok(Timestamp(1_700_000_000_123_456_789)),
        );
        check("-1.5", TimeUnit::Seconds, Ok(Timestamp(-1_500_000_000)));
        check("-0.5", TimeUnit::Millis, Ok(Timestamp(-500_000)));
        check("12.0", TimeUnit::Nanos, Ok(Timestamp(12)));
        check("12.5", TimeUnit::Nanos, Err(TOO_FINE));
        check("9223372036854775807", TimeUnit::Nanos, Ok(Timestamp::MAX));
        check("9223372036854775808", TimeUnit::Nanos, Err(OUT_OF_RANGE));
        check(
            "99999999999999999999999999999999999",
            TimeUnit::Seconds,
            Err(OUT_OF_RANGE),
        );
        for bad in ["", "-", ".5", "1.", "1e9", "+1", "1 2", "x"] {
            check(bad, TimeUnit::Seconds, Err(BAD_TIMESTAMP));
        }
    }

    #[test]
    fn the_unit_follows_from_the_magnitude() {
        assert_eq!(TimeUnit::detect(1_700_000_000), TimeUnit::Seconds);
        assert_eq!(TimeUnit::detect(1_700_000_000_000), TimeUnit::Millis);
        assert_eq!(TimeUnit::detect(1_700_000_000_000_000), TimeUnit::Micros);
        assert_eq!(TimeUnit::detect(1_700_000_000_000_000_000), TimeUnit::Nanos);
        assert_eq!("us".parse::<TimeUnit>().unwrap(), TimeUnit::Micros);
        assert!("sec".parse::<TimeUnit>().is_err());
    }
}
