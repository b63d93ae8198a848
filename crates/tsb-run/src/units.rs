//! Parses and formats numbers with units, as people type and read them.

mod unit;

use std::time::{Duration, UNIX_EPOCH};

use tsb_core::Timestamp;
use tsb_core::time::SECOND_NS;

pub use unit::Unit;

/// Parses a duration such as `500ms`, `10s`, `2h 30m` into nanoseconds.
pub fn parse_duration(text: &str) -> Result<u64, String> {
    let duration =
        humantime::parse_duration(text.trim()).map_err(|error| format!("{text:?} is not a duration: {error}"))?;
    u64::try_from(duration.as_nanos()).map_err(|_| format!("{text:?} is longer than 584 years"))
}

/// Parses a count such as `54000`, `54_000`, `54k`, `1.5M`.
pub fn parse_count(text: &str) -> Result<u64, String> {
    let trimmed: String = text.trim().chars().filter(|&c| c != '_' && c != ',').collect();
    let (digits, factor) = match trimmed.char_indices().last() {
        Some((at, 'k' | 'K')) => (&trimmed[..at], 1e3),
        Some((at, 'M')) => (&trimmed[..at], 1e6),
        Some((at, 'G')) => (&trimmed[..at], 1e9),
        _ => (trimmed.as_str(), 1.0),
    };
    if factor == 1.0
        && let Ok(count) = digits.parse::<u64>()
    {
        return Ok(count);
    }
    let count = digits
        .parse::<f64>()
        .map_err(|_| format!("{text:?} is not a count; try 54000, 54k or 1.5M"))?
        * factor;
    if !count.is_finite() || count < 0.0 || count > u64::MAX as f64 || count.fract() != 0.0 {
        return Err(format!("{text:?} is not a whole number from 0 to {}", u64::MAX));
    }
    Ok(count as u64)
}

/// Parses a size in bytes such as `4096`, `64KiB`, `8MiB`.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("B", 0)];
    let unit = units
        .iter()
        .find_map(|(unit, shift)| Some((trimmed.strip_suffix(unit)?, *shift)));
    let (digits, shift) = unit.unwrap_or((trimmed, 0));
    let count = digits.trim().parse::<u64>();
    let count = count.map_err(|_| format!("{text:?} is not a size; try 65536, 64KiB or 8MiB"))?;
    count
        .checked_mul(1 << shift)
        .ok_or_else(|| format!("{text:?} is too large"))
}

/// Parses a switch: `on`, `true`, `yes` or `1`; `off`, `false`, `no` or `0`.
pub fn parse_switch(text: &str) -> Result<bool, String> {
    match text.trim() {
        "on" | "true" | "yes" | "1" => Ok(true),
        "off" | "false" | "no" | "0" => Ok(false),
        _ => Err(format!("{text:?} is neither on nor off")),
    }
}

/// Parses a probability: `0.01` or `1%`.
pub fn parse_probability(text: &str) -> Result<f64, String> {
    let trimmed = text.trim();
    let (digits, factor) = match trimmed.strip_suffix('%') {
        Some(digits) => (digits, 0.01),
        None => (trimmed, 1.0),
    };
    let value = digits
        .trim()
        .parse::<f64>()
        .map_err(|_| format!("{text:?} is not a probability; try 0.01 or 1%"))?
        * factor;
    if (0.0..=1.0).contains(&value) {
        Ok(value)
    } else {
        Err(format!("{text:?} is not between 0 and 1"))
    }
}

/// Formats a count with thousands separators: `54,000`.
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a rate or another large number to about three digits: `54.0 k`, `61.2 M`.
pub fn scaled(value: f64) -> String {
    let magnitude = value.abs();
    let (scaled, suffix) = match magnitude {
        m if m >= 1e9 => (value / 1e9, " G"),
        m if m >= 1e6 => (value / 1e6, " M"),
        m if m >= 1e4 => (value / 1e3, " k"),
        _ => (value, ""),
    };
    let digits = usize::from(!(scaled.abs() >= 100.0 || (suffix.is_empty() && scaled.fract() == 0.0)));
    format!("{scaled:.digits$}{suffix}")
}

/// Formats a duration in the largest unit that is exact, as [`parse_duration`] reads it: `90s`,
/// `1h`, `1500ms`.
pub fn exact_duration(ns: u64) -> String {
    const UNITS: [(u64, &str); 6] = [
        (3_600_000_000_000, "h"),
        (60_000_000_000, "m"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "us"),
        (1, "ns"),
    ];
    let exact = UNITS
        .into_iter()
        .find(|(unit_ns, _)| ns > 0 && ns.is_multiple_of(*unit_ns));
    exact.map_or("0s".to_owned(), |(unit_ns, name)| format!("{}{name}", ns / unit_ns))
}

/// Formats a timestamp as RFC 3339 in UTC, with nine decimals, or none for a whole second; before 1970
/// as seconds.
pub fn rfc3339(at: Timestamp) -> String {
    let Ok(nanos) = u64::try_from(at.0) else {
        return at.to_string();
    };
    let moment = UNIX_EPOCH + Duration::from_nanos(nanos);
    if nanos % SECOND_NS == 0 {
        humantime::format_rfc3339_seconds(moment).to_string()
    } else {
        humantime::format_rfc3339_nanos(moment).to_string()
    }
}

/// Formats nanoseconds to three digits: `1.23 us`, `45.6 ms`.
pub fn nanos(value: u64) -> String {
    let value = value as f64;
    let (scaled, unit) = match value {
        v if v >= 1e9 => (v / 1e9, "s"),
        v if v >= 1e6 => (v / 1e6, "ms"),
        v if v >= 1e3 => (v / 1e3, "us"),
        v => (v, "ns"),
    };
    let digits = match scaled {
        s if s >= 100.0 || unit == "ns" => 0,
        s if s >= 10.0 => 1,
        _ => 2,
    };
    format!("{scaled:.digits$} {unit}")
}

/// Formats fractional nanoseconds, such as the CPU time of one sample, to three digits in the
/// fitting unit: `6.91 ns`, `104 us`.
pub fn nanos_each(value: f64) -> String {
    if value.abs() >= 999.5 {
        return nanos(value.round().max(0.0) as u64);
    }
    let digits = match value.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.0995 || v == 0.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$} ns")
}

/// Formats fractional bytes, such as those of one sample: `0.438 B`, `63.90 KiB`. A positive
/// number is never shown as 0.
pub fn bytes_each(value: f64) -> String {
    if value > 0.0 && value < 0.0005 {
        "less than 0.001 B".to_owned()
    } else if value >= 1024.0 {
        bytes(value)
    } else {
        format!("{value:.3} B")
    }
}

/// Formats bytes in binary units, with at most two decimals.
pub fn bytes(value: f64) -> String {
    let (scaled, unit) = match value {
        v if v >= (1u64 << 40) as f64 => (v / (1u64 << 40) as f64, "TiB"),
        v if v >= (1u64 << 30) as f64 => (v / (1u64 << 30) as f64, "GiB"),
        v if v >= (1u64 << 20) as f64 => (v / (1u64 << 20) as f64, "MiB"),
        v if v >= 1024.0 => (v / 1024.0, "KiB"),
        v => (v, "B"),
    };
    let digits = if scaled >= 100.0 || (unit == "B" && scaled.fract() == 0.0) {
        0
    } else {
        2
    };
    format!("{scaled:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_as_people_write_them() {
        assert_eq!(parse_count("54_000"), Ok(54_000));
        assert_eq!(parse_count("54k"), Ok(54_000));
        assert_eq!(parse_count("1.5M"), Ok(1_500_000));
        assert_eq!(parse_count("18446744073709551615"), Ok(u64::MAX));
        for bad in ["", "k", "-1", "1.5", "nan", "inf", "1e400", "54 thousand"] {
            assert!(parse_count(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn probabilities_may_be_percentages() {
        assert_eq!(parse_probability("1%"), Ok(0.01));
        assert_eq!(parse_probability("0.5"), Ok(0.5));
        for bad in ["", "1.1", "-1%", "nan", "101%"] {
            assert!(parse_probability(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_have_units() {
        assert_eq!(parse_duration("1500ms"), Ok(1_500_000_000));
        assert!(parse_duration("10").is_err());
        assert!(parse_duration("99999999999y").is_err());
    }

    #[test]
    fn numbers_are_shown_to_three_figures() {
        assert_eq!(count(1_234_567), "1,234,567");
        assert_eq!(count(12), "12");
        assert_eq!(scaled(54_000.0), "54.0 k");
        assert_eq!(scaled(999.0), "999");
        assert_eq!(nanos(1_234), "1.23 us");
        assert_eq!(nanos(999), "999 ns");
        assert_eq!(nanos(45_600_000), "45.6 ms");
        assert_eq!(bytes(1536.0), "1.50 KiB");
        assert_eq!(bytes(12.0), "12 B");
        for (value, shown) in [
            (104_125.8, "104 us"),
            (999.6, "1.00 us"),
            (116.4, "116 ns"),
            (73.94, "73.9 ns"),
            (6.914, "6.91 ns"),
            (0.0, "0.00 ns"),
            (0.0123, "0.012 ns"),
        ] {
            assert_eq!(nanos_each(value), shown);
        }
        assert_eq!(bytes_each(0.4379), "0.438 B");
        assert_eq!(bytes_each(0.0001), "less than 0.001 B");
        assert_eq!(bytes_each(65_434.0), "63.90 KiB");
    }
}
