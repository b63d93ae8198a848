//! Eight digits at a time: a `u64` as eight small lanes.
//!
//! The first (most significant) digit sits in the lowest byte, as it does in memory on a
//! little-endian machine; loads and stores go through `from_le_bytes`, so that the result
//! is the same everywhere.

/// `'0'` in each of eight bytes.
pub(super) const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The highest bit of each of eight bytes.
const HIGH: u64 = 0x8080_8080_8080_8080;

/// The eight digits of `number`, leading zeros included, one a byte, not yet text.
/// `number` is below 10^8.
#[inline(always)]
pub(super) fn split8(number: u32) -> u64 {
    debug_assert!(number < 100_000_000, "eight digits");
    // Two lanes of four digits, then four of two, then eight of one. The quotients are
    // exact for the ranges that the lanes can hold: tested for all of them.
    let fours = u64::from(number / 10_000) | u64::from(number % 10_000) << 32;
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - 100 * hundreds) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - 10 * tens) << 8
}

/// The number that eight digits say. Each byte of `digits` is in [0, 9].
#[inline(always)]
pub(super) fn join8(digits: u64) -> u64 {
    let twos = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let low = (twos & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = ((twos >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    low.wrapping_add(high) >> 32
}

/// How many of eight bytes are digits before the first that is none: in [0, 8].
/// `bytes` is text combined with [`ZEROS`] by exclusive or.
#[inline(always)]
pub(super) fn leading_digits(bytes: u64) -> usize {
    // A byte above 9 gets its highest bit set, here or by the addition. A carry can only
    // spoil bytes behind the first such byte.
    let others = (bytes.wrapping_add(0x7676_7676_7676_7676) | bytes) & HIGH;
    (others.trailing_zeros() / 8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quotients_of_split8_are_exact_in_every_lane() {
        for four in 0..10_000_u32 {
            for number in [four, four * 10_000 + 9_999 - four] {
                let text = format!("{number:08}");
                assert_eq!((split8(number) | ZEROS).to_le_bytes(), text.as_bytes());
                assert_eq!(join8(split8(number)), u64::from(number));
            }
        }
    }

    #[test]
    fn leading_digits_stops_at_any_other_byte() {
        for other in (0..=255_u8).filter(|byte| !byte.is_ascii_digit()) {
            for at in 0..8 {
                let mut text = *b"90817263";
                text[at] = other;
                assert_eq!(leading_digits(u64::from_le_bytes(text) ^ ZEROS), at, "{text:?}");
            }
        }
        assert_eq!(leading_digits(u64::from_le_bytes(*b"00000009") ^ ZEROS), 8);
    }
}
