//! From a sample to the text that librrd would be given, and what it would make of it.

use std::fmt::Write as _;

use tsb_core::Timestamp;

use crate::store::{Derivation, Reason};

/// The first second that a sample may have: a file has to start before it.
const FIRST_S: i64 = 2;
/// The last: beyond it, times read as floats would not tell microseconds apart.
const LAST_S: i64 = 8_000_000_000;
/// Up to here every whole number is exact, and written without a point.
const WHOLE_MAX: f64 = 9_007_199_254_740_992.0;

/// A moment in microseconds since the epoch, which is what the files tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Micros(pub i64);

impl Micros {
    /// The moment of a sample, if a file can say it.
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

/// Whether a file with sources of this kind can hold a sample.
pub(crate) fn is_representable(at: Timestamp, value: f64, derivation: Derivation) -> bool {
    Micros::of(at).is_some() && value.is_finite() && fits(value, derivation)
}

fn is_whole(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() < WHOLE_MAX
}

/// Whether a source of this kind reads the value as what it is.
fn fits(value: f64, derivation: Derivation) -> bool {
    match derivation {
        Derivation::Counter => is_whole(value) && value >= 0.0,
        Derivation::Derive => is_whole(value),
        Derivation::Gauge | Derivation::Absolute => true,
    }
}

/// Writes `time:value` over `text`.
pub fn write(text: &mut String, at: Micros, value: f64, derivation: Derivation) -> Result<(), Reason> {
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
            let written = write(&mut text, at, value, derivation);
            assert_eq!(written.is_ok().then_some(text.as_str()), expected, "{value}");
        }
        write(&mut text, Micros(1_700_000_000_000_000), -0.0, Derivation::Gauge).unwrap();
        assert_eq!(text, "1700000000:-0.0");
        assert!(Micros::of(Timestamp(0)).is_none() && Micros::of(Timestamp::MAX).is_none());
    }
}
