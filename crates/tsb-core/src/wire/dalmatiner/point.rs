//! Points: DalmatinerDB's encoding of values, nine bytes in 2014 and eight later.

use std::io::Write as _;

use crate::wire::number::{MAX_TEXT, format_f64, parse_f64};

/// 2^53: up to here an f64 represents every integer.
const EXACT: u64 = 1 << 53;

/// Exclusive bound of a decimal's coefficient: 47 bits and a sign.
const COEFFICIENTS: i64 = 1 << 47;

/// The first byte of a valid point, and of an integer in eight bytes.
pub(super) const INTEGER: u8 = 1;

/// The first byte of a decimal.
const DECIMAL: u8 = 2;

/// The error for an integer that an f64 cannot represent.
const BEYOND: &str = "an integer beyond 2^53 is not supported here";

/// The value as an integer, if exact: the only values that a point of 2014 can hold.
#[inline(always)]
pub(super) fn integer(value: f64) -> Option<i64> {
    let integer = value as i64;
    let is_same = (integer as f64).to_bits() == value.to_bits();
    (is_same && integer.unsigned_abs() <= EXACT).then_some(integer)
}

/// The value of a point of 2014; `None` if it is not set.
#[inline(always)]
pub(super) fn read9(point: [u8; 9]) -> Option<Result<f64, &'static str>> {
    let [first, integer @ ..] = point;
    let integer = i64::from_be_bytes(integer);
    match first {
        0 => None,
        INTEGER if integer.unsigned_abs() <= EXACT => Some(Ok(integer as f64)),
        INTEGER => Some(Err(BEYOND)),
        _ => Some(Err("a point is neither set nor unset")),
    }
}

/// The value in eight bytes, if exact: as an integer, a decimal, or a float whose last bit is
/// zero.
#[inline(always)]
pub(super) fn write8(value: f64) -> Option<u64> {
    match integer(value) {
        Some(integer) => Some(tagged(INTEGER, integer)),
        None => write_fraction(value),
    }
}

/// The value in eight bytes, exact where possible; a float is written without its last bit where
/// that bit is set. `None` for NaN and infinities, which Erlang's floats do not have.
#[inline(always)]
pub(super) fn write8_rounded(value: f64) -> Option<u64> {
    match write8(value) {
        _ if !value.is_finite() => None,
        None => Some(float(value.to_bits())),
        exact => exact,
    }
}

/// A float: its bits shifted right by one, below the set top bit.
fn float(bits: u64) -> u64 {
    ((bits as i64 >> 1) as u64) | 1 << 63
}

/// `bits` in 56 bits, below the tag.
fn tagged(tag: u8, bits: i64) -> u64 {
    u64::from(tag) << 56 | (bits as u64 & 0x00ff_ffff_ffff_ffff)
}

#[inline(always)]
fn write_fraction(value: f64) -> Option<u64> {
    match hundredths(value) {
        Some((coefficient, exponent)) => Some(tagged(DECIMAL, exponent << 48 | coefficient)),
        None => write_any_fraction(value),
    }
}

/// Adding this to a number of either sign, and subtracting it again, rounds the number to an
/// integer.
const ROUND: f64 = 6_755_399_441_055_744.0;

/// Coefficient and exponent (in eight bits) of a value with one or two decimals. It has so few
/// digits that no other decimal of this length is the same number.
#[inline(always)]
fn hundredths(value: f64) -> Option<(i64, i64)> {
    let hundredths = (value * 100.0 + ROUND) - ROUND;
    if hundredths / 100.0 != value || hundredths.abs() >= COEFFICIENTS as f64 || hundredths == 0.0 {
        return None;
    }
    let integer = hundredths as i64;
    let (coefficient, exponent) = if integer % 10 == 0 {
        (integer / 10, -1)
    } else {
        (integer, -2)
    };
    Some((coefficient & 0xffff_ffff_ffff, exponent & 0xff))
}

#[inline(never)]
fn write_any_fraction(value: f64) -> Option<u64> {
    if let Some((coefficient, exponent)) = decimal(value) {
        let bits = i64::from(exponent) << 48 | (coefficient & 0xffff_ffff_ffff);
        return Some(tagged(DECIMAL, bits));
    }
    let bits = value.to_bits();
    (bits & 1 == 0).then(|| float(bits))
}

/// Coefficient and exponent of the shortest decimal, if they fit and read back to the same value.
fn decimal(value: f64) -> Option<(i64, i8)> {
    if !value.is_finite() || (value == 0.0 && value.is_sign_negative()) {
        return None;
    }
    let mut text = [0; MAX_TEXT];
    let length = format_f64(value, &mut text);
    let text = std::str::from_utf8(&text[..length]).ok()?;
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let coefficient = signed_digits(whole, fraction)?;
    let exponent = exponent.parse::<i32>().ok()? - fraction.len() as i32;
    let fits = (-COEFFICIENTS..COEFFICIENTS).contains(&coefficient);
    let exponent = i8::try_from(exponent).ok().filter(|_| fits)?;
    let is_same = scale(coefficient, exponent).map(f64::to_bits) == Some(value.to_bits());
    is_same.then_some((coefficient, exponent))
}

/// The integer whose digits are those of both texts, one after the other; `None` beyond 64 bits.
fn signed_digits(whole: &str, fraction: &str) -> Option<i64> {
    let (is_negative, whole) = match whole.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, whole),
    };
    let mut digits = whole.bytes().chain(fraction.bytes());
    let magnitude = digits.try_fold(0_i64, |sum, digit| {
        let digit = digit.checked_sub(b'0').filter(|digit| *digit <= 9)?;
        sum.checked_mul(10)?.checked_add(i64::from(digit))
    })?;
    Some(if is_negative { -magnitude } else { magnitude })
}

/// Powers of ten that an f64 represents exactly.
const TENS: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20,
    1e21, 1e22,
];

/// `coefficient * 10^exponent`, rounded once; the coefficient has at most 48 bits.
#[inline(always)]
fn scale(coefficient: i64, exponent: i8) -> Option<f64> {
    match TENS.get(usize::from(exponent.unsigned_abs())) {
        // Both operands are exact, so the quotient or product is the nearest f64.
        Some(tens) if exponent < 0 => Some(coefficient as f64 / tens),
        Some(tens) => Some(coefficient as f64 * tens),
        None => scale_far(coefficient, exponent),
    }
}

#[inline(never)]
fn scale_far(coefficient: i64, exponent: i8) -> Option<f64> {
    // 15 digits, a sign, `e` and an exponent of up to four characters.
    let mut text = [0_u8; 24];
    let mut rest = &mut text[..];
    write!(rest, "{coefficient}e{exponent}").ok()?;
    let left = rest.len();
    parse_f64(&text[..text.len() - left])
}

/// The value of a point of eight bytes; `None` if it is not set.
#[inline(always)]
pub(super) fn read8(word: u64) -> Option<Result<f64, &'static str>> {
    let integer = (word << 8) as i64 >> 8;
    match (word >> 56) as u8 {
        0 => None,
        INTEGER if integer.unsigned_abs() <= EXACT => Some(Ok(integer as f64)),
        INTEGER => Some(Err(BEYOND)),
        _ => Some(read_fraction(word)),
    }
}

#[inline(always)]
fn read_fraction(word: u64) -> Result<f64, &'static str> {
    match (word >> 56) as u8 {
        DECIMAL => {
            let coefficient = (word << 16) as i64 >> 16;
            let exponent = (word >> 48) as u8 as i8;
            scale(coefficient, exponent).ok_or("a decimal is not a number")
        }
        0x80.. => Ok(f64::from_bits(word << 1)),
        _ => Err("a point has an unknown form"),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_points_of_the_specification_go_both_ways() {
        let table = [
            (42.0, 0x0100_0000_0000_002a),
            (-10.0, 0x01ff_ffff_ffff_fff6),
            (1.5, 0x02ff_0000_0000_000f),
        ];
        for (value, word) in table {
            assert_eq!(write8(value), Some(word), "{value}");
            assert_eq!(read8(word), Some(Ok(value)), "{value}");
        }
        let floats = [
            (0.0, 0x8000_0000_0000_0000),
            (1.5, 0x9ffc_0000_0000_0000),
            (-1.5, 0xdffc_0000_0000_0000),
        ];
        for (value, word) in floats {
            assert_eq!(read8(word), Some(Ok(value)), "{value}");
        }
        assert_eq!(read8(0x9fdc_cccc_cccc_cccd), Some(Ok(0.1)));
        // A bit of the mantissa is lost: 0.3 as a float is not quite that.
        assert_ne!(read8(0.3_f64.to_bits() >> 1 | 1 << 63), Some(Ok(0.3)));
        assert_eq!(write8(0.3), Some(0x02ff_0000_0000_0003));
        assert_eq!(write8(0.1), Some(0x02ff_0000_0000_0001));
        assert_eq!(write8(-0.0), Some(0xc000_0000_0000_0000));
        assert_eq!(
            write8(1.0 / 3.0 + 1e-16).is_none(),
            (1.0_f64 / 3.0 + 1e-16).to_bits() & 1 == 1
        );
    }

    #[test]
    fn invalid_values_are_told_apart() {
        assert_eq!(read9([0; 9]), None);
        assert_eq!(read9([0, 1, 1, 1, 1, 1, 1, 1, 1]), None);
        assert_eq!(read9([1, 0, 0, 0, 0, 0, 0, 0, 42]), Some(Ok(42.0)));
        assert_eq!(
            read9([1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xf6]),
            Some(Ok(-10.0))
        );
        assert_eq!(read9([1, 0, 0x20, 0, 0, 0, 0, 0, 1]), Some(Err(BEYOND)));
        assert_eq!(read9([2; 9]), Some(Err("a point is neither set nor unset")));
        assert_eq!(read8(0), None);
        assert_eq!(read8(0x00ff_0000_0000_0000), None);
        assert_eq!(read8(0x0120_0000_0000_0001), Some(Err(BEYOND)));
        assert_eq!(read8(0x0300_0000_0000_0000), Some(Err("a point has an unknown form")));
        assert_eq!(read8(0x7f00_0000_0000_0000), Some(Err("a point has an unknown form")));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn written_numbers_read_back_to_the_bit(
            value in prop_oneof![any::<f64>(), (-1e6..1e6).prop_map(|value: f64| (value * 100.0).round() / 100.0), (-1_000_i32..1_000).prop_map(f64::from)],
        ) {
            let rounded = write8_rounded(value).map(|word| read8(word).unwrap().unwrap().to_bits());
            let expected = write8(value).map_or(value.to_bits() & !1, |_| value.to_bits());
            prop_assert_eq!(rounded, value.is_finite().then_some(expected));
            if let Some(word) = write8(value) {
                let read = read8(word).unwrap().unwrap();
                prop_assert_eq!(read.to_bits(), value.to_bits());
            } else {
                prop_assert_eq!(value.to_bits() & 1, 1);
            }
            if let Some(integer) = integer(value) {
                let mut point = [INTEGER; 9];
                point[1..].copy_from_slice(&integer.to_be_bytes());
                prop_assert_eq!(read9(point).unwrap().unwrap().to_bits(), value.to_bits());
            }
        }
    }
}
