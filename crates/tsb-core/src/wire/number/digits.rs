//! Eight digits at a time: a `u64` as eight small lanes.
//!
//! The first (most significant) digit sits in the lowest byte, as it does in memory on a
//! little-endian machine; stores go through `to_le_bytes`, so that the result is the same
//! everywhere.

/// `'0'` in each of eight bytes.
pub(super) const ZEROS: u64 = 0x3030_3030_3030_3030;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quotients_of_split8_are_exact_in_every_lane() {
        for four in 0..10_000_u32 {
            for number in [four, four * 10_000 + 9_999 - four] {
                let text = format!("{number:08}");
                assert_eq!((split8(number) | ZEROS).to_le_bytes(), text.as_bytes());
            }
        }
    }
}
