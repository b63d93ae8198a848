//! Parses decimal numbers as librrd does. librrd does not round correctly, so its results require
//! the same steps in the same order (docs/formats/rrd.md).

use crate::layout::UNKNOWN;

/// Exponents of ten that librrd accepts, adjusted by the number of decimals.
const EXPONENTS: std::ops::RangeInclusive<i64> = -1021..=1024;
/// Maximum number of digits for which librrd computes a difference.
const DIGITS_MAX: usize = 30;

/// The number in `text`, which must be complete; `None` if librrd rejects it.
///
/// Besides numbers it accepts `nan`, `-nan`, `inf` and `-inf`, in any case and with any suffix.
#[inline]
pub fn number(text: &[u8]) -> Option<f64> {
    match decimal(text) {
        Some((value, rest)) => rest.is_empty().then_some(value),
        None => special(text),
    }
}

/// The number at the start of `text`, and the rest of the text.
fn decimal(text: &[u8]) -> Option<(f64, &[u8])> {
    let blanks = text
        .iter()
        .take_while(|byte| matches!(byte, b' ' | b'\t'..=b'\r'))
        .count();
    let (is_negative, rest) = signed(&text[blanks..]);
    let (mut value, whole) = digits(0.0, rest);
    let mut rest = &rest[whole..];
    let (mut count, mut exponent) = (whole, 0_i64);
    if let Some((b'.', after)) = rest.split_first() {
        let decimals;
        (value, decimals) = digits(value, after);
        rest = &after[decimals..];
        count += decimals;
        exponent = -(decimals as i64);
    }
    if count == 0 {
        return None;
    }
    if is_negative {
        value = -value;
    }
    if let Some((b'e' | b'E', after)) = rest.split_first() {
        let (is_negative, after) = signed(after);
        let length = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let written = after[..length].iter().fold(0_i64, |sum, byte| {
            sum.saturating_mul(10).saturating_add(i64::from(byte - b'0'))
        });
        exponent = exponent.saturating_add(if is_negative { -written } else { written });
        rest = &after[length..];
    }
    EXPONENTS.contains(&exponent).then(|| (scaled(value, exponent), rest))
}

fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    }
}

/// Appends the digits at the start of `text` to `value`; returns their number.
#[inline]
fn digits(mut value: f64, text: &[u8]) -> (f64, usize) {
    let mut length = 0;
    while let Some(byte) = text.get(length).filter(|byte| byte.is_ascii_digit()) {
        value = value * 10.0 + f64::from(byte - b'0');
        length += 1;
    }
    (value, length)
}

/// `value` times ten to the power `exponent`: one factor per set bit, the smallest first.
#[inline]
fn scaled(mut value: f64, exponent: i64) -> f64 {
    let mut bits = exponent.unsigned_abs();
    let mut factor = 10.0_f64;
    while bits > 0 {
        if bits & 1 == 1 {
            if exponent < 0 {
                value /= factor;
            } else {
                value *= factor;
            }
        }
        bits >>= 1;
        factor *= factor;
    }
    value
}

fn special(text: &[u8]) -> Option<f64> {
    let starts = |word: &[u8]| {
        text.get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    if starts(b"-nan") {
        Some(UNKNOWN)
    } else if starts(b"nan") {
        Some(-UNKNOWN)
    } else if starts(b"inf") {
        Some(f64::INFINITY)
    } else if starts(b"-inf") {
        Some(f64::NEG_INFINITY)
    } else {
        None
    }
}

/// `later - earlier`, for integers as text; exact until it is converted to a float.
///
/// As in librrd: NaN if either has no digit, if the signs differ, and beyond 30 digits.
pub fn difference(later: &[u8], earlier: &[u8]) -> f64 {
    let ((later_negative, later), (earlier_negative, earlier)) = (whole(later), whole(earlier));
    if later.is_empty() || earlier.is_empty() || later_negative != earlier_negative {
        return UNKNOWN;
    }
    if later.len() > DIGITS_MAX || earlier.len() > DIGITS_MAX {
        return UNKNOWN;
    }
    // 30 digits fit 100 bits.
    let (later, earlier) = (integer(later), integer(earlier));
    let size = float(later.abs_diff(earlier));
    let is_negative = (later < earlier) != later_negative;
    // A difference of zero between negative numbers is a negative zero.
    if is_negative { -size } else { size }
}

/// The first digits of a text, and whether a minus sign stands anywhere before them.
fn whole(text: &[u8]) -> (bool, &[u8]) {
    let start = text.iter().position(u8::is_ascii_digit).unwrap_or(text.len());
    let digits = &text[start..];
    let length = digits.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (text[..start].contains(&b'-'), &digits[..length])
}

fn integer(digits: &[u8]) -> u128 {
    digits.iter().fold(0, |sum, byte| sum * 10 + u128::from(byte - b'0'))
}

/// The float that librrd reads from the decimal digits: rounded at each digit, not once.
fn float(value: u128) -> f64 {
    const EXACT: u128 = 1 << 53;
    if value < EXACT {
        return value as f64;
    }
    let mut digits = [0_u8; 40];
    let mut start = digits.len();
    let mut rest = value;
    while rest > 0 {
        start -= 1;
        digits[start] = (rest % 10) as u8;
        rest /= 10;
    }
    digits[start..]
        .iter()
        .fold(0.0, |sum, &digit| sum * 10.0 + f64::from(digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_recognized() {
        for (text, expected) in [
            ("0", Some(0.0)),
            (" \t+5.", Some(5.0)),
            (".5", Some(0.5)),
            ("-1e3", Some(-1000.0)),
            ("1e", Some(1.0)),
            ("1E+", Some(1.0)),
            ("2e-2", Some(0.02)),
            ("inf", Some(f64::INFINITY)),
            ("-INFINITE", Some(f64::NEG_INFINITY)),
            ("1e600", Some(f64::INFINITY)),
            ("1e-600", Some(0.0)),
            ("1e1025", None),
            ("1e-1022", None),
            ("1e99999999999999999999", None),
            ("", None),
            (".", None),
            ("- 5", None),
            ("+inf", None),
            (" nan", None),
            ("5 ", None),
            ("0x10", None),
            ("1.5.5", None),
            ("U", None),
        ] {
            assert_eq!(number(text.as_bytes()), expected, "{text:?}");
        }
        assert_eq!(number(b"nan").map(f64::to_bits), Some(0x7ff8_0000_0000_0000));
        assert_eq!(number(b"-NaNny").map(f64::to_bits), Some(0xfff8_0000_0000_0000));
    }

    #[test]
    fn it_is_not_correctly_rounded() {
        // 0.3 through 3/10 is right; a third decimal is two divisions, and may be off.
        assert_eq!(number(b"0.3"), Some(0.3));
        let off = (0..1000).filter(|n| {
            let text = format!("{}.{:03}", n * 7, n);
            number(text.as_bytes()) != text.parse().ok()
        });
        assert!((150..350).contains(&off.count()), "about a quarter");
    }

    #[test]
    fn differences_of_text() {
        for (later, earlier, expected) in [
            ("7", "5", 2.0),
            ("5", "7", -2.0),
            ("100", "99", 1.0),
            ("-5", "-7", 2.0),
            ("-7", "-5", -2.0),
            ("18446744073709551615", "18446744073709551614", 1.0),
            ("18446744073709551616", "0", 18_446_744_073_709_551_616.0),
            ("0", "4294967295", -4_294_967_295.0),
            ("007", "5.9", 2.0),
        ] {
            assert_eq!(
                difference(later.as_bytes(), earlier.as_bytes()),
                expected,
                "{later} - {earlier}"
            );
        }
        for (later, earlier) in [
            ("-", "1"),
            ("1", "-1"),
            ("-1", "1"),
            ("", "1"),
            ("1", "x"),
            (&"1".repeat(31), "1"),
        ] {
            assert!(
                difference(later.as_bytes(), earlier.as_bytes()).is_nan(),
                "{later} - {earlier}"
            );
        }
        assert!(difference(b"-5", b"-5").is_sign_negative() && difference(b"5", b"5").is_sign_positive());
    }
}
