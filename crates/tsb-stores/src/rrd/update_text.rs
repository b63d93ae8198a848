//! Converts a sample to the text that librrd parses, and predicts the parsed value.

use std::fmt::Write as _;

use tsb_core::Timestamp;

use crate::store::{Derivation, Reason};

/// The earliest second of a sample: a file has to start before it.
const FIRST_S: i64 = 2;
/// The latest second: beyond it, times parsed as floats would not distinguish microseconds.
const LAST_S: i64 = 8_000_000_000;
/// Up to here every integer is exact as a float, and is written without a decimal point.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// A time in microseconds since the epoch, the resolution of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(pub i64);

impl Micros {
    /// The time of a sample; `None` if a file cannot represent it.
    pub fn of(at: Timestamp) -> Option<Self> {
        (FIRST_S..=LAST_S)
            .contains(&at.as_secs())
            .then_some(Self(at.0.div_euclid(1_000)))
    }

    /// Whole seconds.
    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }
}

/// Whether a file with a data source of this kind can hold a sample.
pub(crate) fn is_representable(at: Timestamp, value: f64, derivation: Derivation) -> bool {
    Micros::of(at).is_some() && value.is_finite() && fits(value, derivation)
}

fn is_whole(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() < WHOLE_MAX
}

/// Whether a data source of this kind parses the value without changing it.
fn fits(value: f64, derivation: Derivation) -> bool {
    match derivation {
        Derivation::Counter => is_whole(value) && value >= 0.0,
        Derivation::Derive => is_whole(value),
        Derivation::Gauge | Derivation::Absolute => true,
    }
}

/// Replaces `text` by `time:value`.
pub fn write_update(text: &mut String, at: Micros, value: f64, derivation: Derivation) -> Result<(), Reason> {
    if !value.is_finite() || !fits(value, derivation) {
        return Err(Reason::Unrepresentable);
    }
    text.clear();
    let micros = at.0.rem_euclid(1_000_000);
    let _ = if micros == 0 {
        write!(text, "{}:", at.seconds())
    } else {
        write!(text, "{}.{micros:06}:", at.seconds())
    };
    if is_whole(value) && (value != 0.0 || value.is_sign_positive()) {
        let _ = write!(text, "{}", value as i64);
    } else {
        text.push_str(zmij::Buffer::new().format_finite(value));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_written_as_rrdtool_reads_them() {
        let at = Micros::of(Timestamp(1_700_000_000_500_000_999)).unwrap();
        let mut text = String::new();
        for (value, derivation, expected) in [
            (1.5, Derivation::Gauge, Some("1700000000.500000:1.5")),
            (42.0, Derivation::Counter, Some("1700000000.500000:42")),
            (-42.0, Derivation::Derive, Some("1700000000.500000:-42")),
            (1e300, Derivation::Gauge, Some("1700000000.500000:1e+300")),
            (-42.0, Derivation::Counter, None),
            (0.5, Derivation::Derive, None),
            (f64::NAN, Derivation::Gauge, None),
        ] {
            let written = write_update(&mut text, at, value, derivation);
            assert_eq!(written.is_ok().then_some(text.as_str()), expected, "{value}");
        }
        write_update(&mut text, Micros(1_700_000_000_000_000), -0.0, Derivation::Gauge).unwrap();
        assert_eq!(text, "1700000000:-0.0");
        assert!(Micros::of(Timestamp(0)).is_none() && Micros::of(Timestamp::MAX).is_none());
    }
}
