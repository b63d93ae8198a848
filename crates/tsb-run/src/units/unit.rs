//! The unit of a figure: how it is shown, and how a limit for it is written.

use super::{bytes, bytes_each, count, nanos, nanos_each, parse_count, parse_duration, scaled};

/// The format of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Samples or queries per second.
    Rate,
    /// Nanoseconds, three digits.
    Nanos,
    /// Milliseconds, three digits.
    Millis,
    /// Bytes in binary units, with at most two decimals.
    Bytes,
    /// Bytes per sample.
    BytesEach,
    /// Nanoseconds per sample.
    NanosEach,
    /// A whole count.
    Count,
    /// Bits per value.
    Bits,
    /// A share of 1.
    Share,
    /// A factor.
    Times,
}

impl Unit {
    /// The number with its unit; `endless` for infinity.
    pub fn show(self, value: f64) -> String {
        if value.is_infinite() {
            return "endless".to_owned();
        }
        match self {
            Self::Rate => format!("{}/s", scaled(value)),
            Self::Nanos => nanos(value.max(0.0) as u64),
            Self::Millis => nanos((value.max(0.0) * 1e6) as u64),
            Self::Bytes => bytes(value),
            Self::BytesEach => bytes_each(value),
            Self::NanosEach => nanos_each(value),
            Self::Count => count(value as u64),
            Self::Bits => format!("{value:.2} bits"),
            Self::Share => format!("{:.1} %", value * 100.0),
            Self::Times => format!("{value:.3}"),
        }
    }

    /// The name that JSON has for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Rate => "per_second",
            Self::Nanos => "ns",
            Self::Millis => "ms",
            Self::Bytes => "bytes",
            Self::BytesEach => "bytes_per_sample",
            Self::NanosEach => "ns_per_sample",
            Self::Count => "count",
            Self::Bits => "bits",
            Self::Share => "share",
            Self::Times => "factor",
        }
    }

    /// What a number with it is: `a time`.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::Rate => "a rate",
            Self::Nanos | Self::Millis => "a time",
            Self::Bytes => "a size",
            Self::BytesEach => "a number of bytes per sample",
            Self::NanosEach => "a CPU time per sample",
            Self::Count => "a count",
            Self::Bits => "a number of bits",
            Self::Share => "a share",
            Self::Times => "a plain number",
        }
    }

    /// A number with it as it is typed: `50ms`.
    pub const fn example(self) -> &'static str {
        match self {
            Self::Rate => "54k/s",
            Self::Nanos | Self::Millis => "50ms",
            Self::Bytes => "2GiB",
            Self::BytesEach => "1.5B",
            Self::NanosEach => "200ns",
            Self::Count => "1000",
            Self::Bits => "8",
            Self::Share => "2%",
            Self::Times => "1.5",
        }
    }

    /// Parses a number as a user types it, such as `50ms`, `2GiB`, `1.5B`, `54k/s` or `2%`.
    ///
    /// # Errors
    /// If it is not a finite number at or above 0 in this unit; says what it is instead.
    pub fn parse(self, text: &str) -> Result<f64, String> {
        let text = text.trim();
        self.read(text).ok_or_else(|| {
            let others = [Self::Nanos, Self::Bytes, Self::Share, Self::Rate];
            let what = if plain(text).is_some() {
                "has no unit".to_owned()
            } else {
                let other = others.into_iter().find(|other| other.read(text).is_some());
                other.map_or_else(|| "is no number".to_owned(), |other| format!("is {}", other.noun()))
            };
            format!(
                "{text:?} {what}, and {} is needed, such as {}",
                self.noun(),
                self.example()
            )
        })
    }

    fn read(self, text: &str) -> Option<f64> {
        match self {
            Self::Nanos | Self::NanosEach => time_ns(text),
            Self::Millis => time_ns(text).map(|ns| ns / 1e6),
            Self::Bytes | Self::BytesEach => size(text),
            Self::Rate => large(text.strip_suffix("/s").unwrap_or(text)),
            Self::Count => parse_count(text).ok().map(|count| count as f64),
            Self::Share => match text.strip_suffix('%') {
                Some(percent) => plain(percent.trim_end()).map(|percent| percent / 100.0),
                None => plain(text),
            },
            Self::Bits | Self::Times => plain(text),
        }
    }
}

/// A number at or above 0 without a unit.
fn plain(text: &str) -> Option<f64> {
    let is_digits = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    is_digits
        .then(|| text.parse::<f64>().ok())
        .flatten()
        .filter(|value| value.is_finite())
}

/// A number with the first of `units` that it ends with.
fn with_unit(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let unit = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (digits, factor) = unit?;
    plain(digits.trim_end()).map(|value| value * factor)
}

fn time_ns(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 7] = [
        ("ns", 1.0),
        ("us", 1e3),
        ("ms", 1e6),
        ("s", 1e9),
        ("m", 60e9),
        ("h", 3_600e9),
        ("d", 86_400e9),
    ];
    with_unit(text, &UNITS).or_else(|| parse_duration(text).ok().map(|ns| ns as f64))
}

fn size(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 5] = [
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
        ("TiB", 1_099_511_627_776.0),
        ("B", 1.0),
    ];
    with_unit(text, &UNITS)
}

fn large(text: &str) -> Option<f64> {
    const UNITS: [(&str, f64); 3] = [("k", 1e3), ("M", 1e6), ("G", 1e9)];
    with_unit(text, &UNITS).or_else(|| plain(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_in_the_unit_of_their_figure() {
        for (unit, text, value) in [
            (Unit::Nanos, "50ms", 50e6),
            (Unit::Nanos, "1.5 us", 1_500.0),
            (Unit::Nanos, "1m 30s", 90e9),
            (Unit::Millis, "2s", 2_000.0),
            (Unit::NanosEach, "6.5ns", 6.5),
            (Unit::Bytes, "1.5GiB", 1.5 * 1_073_741_824.0),
            (Unit::BytesEach, "0.4B", 0.4),
            (Unit::Rate, "54k/s", 54_000.0),
            (Unit::Rate, "0.5", 0.5),
            (Unit::Count, "1_000", 1_000.0),
            (Unit::Share, "2%", 0.02),
            (Unit::Share, "0.02", 0.02),
            (Unit::Times, "1.25", 1.25),
        ] {
            assert_eq!(unit.parse(text), Ok(value), "{text}");
        }
        for (unit, text, says) in [
            (Unit::Nanos, "2GiB", "is a size, and a time is needed, such as 50ms"),
            (Unit::Nanos, "50", "has no unit"),
            (Unit::Bytes, "50ms", "is a time"),
            (Unit::Count, "2%", "is a share"),
            (Unit::Nanos, "-1ms", "is no number"),
            (Unit::Times, "nan", "is no number"),
            (Unit::Rate, "inf", "is no number"),
            (Unit::Share, "", "is no number"),
        ] {
            let why = unit.parse(text).unwrap_err();
            assert!(why.contains(says), "{why}");
        }
        assert_eq!(Unit::Nanos.show(f64::INFINITY), "endless");
    }
}
