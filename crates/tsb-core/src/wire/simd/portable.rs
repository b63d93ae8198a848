//! The implementation for all machines: two words of eight bytes, with the first byte lowest.

use super::Bytes16;

const ONES: u64 = 0x0101_0101_0101_0101;
const ZEROS: u64 = ONES * b'0' as u64;
const HIGH: u64 = ONES << 7;

/// Does nothing: there is no portable prefetch.
#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn prefetch<T>(_place: &T) {}

/// Number of digits before the first other byte; in [0, 16].
#[inline(always)]
pub(crate) fn digit_run(bytes16: &Bytes16) -> usize {
    first_marked(words(bytes16).map(|bytes| {
        // Sets the highest bit of each byte above 9, by the XOR or by the addition. A carry can
        // only affect bytes after the first such byte.
        let digits = bytes ^ ZEROS;
        digits.wrapping_add(ONES * 0x76) | digits
    }))
}

/// Number of bytes before the first that is `limit` or below; 16 if there is none.
#[inline(always)]
pub(crate) fn find_at_most(bytes16: &Bytes16, limit: u8) -> usize {
    bytes16.iter().position(|byte| *byte <= limit).unwrap_or(16)
}

/// Number of bytes before the first that equals `wanted`; 16 if there is none.
#[inline(always)]
pub(crate) fn find_byte(bytes16: &Bytes16, wanted: u8) -> usize {
    bytes16.iter().position(|byte| *byte == wanted).unwrap_or(16)
}

/// Whether the first `count` bytes are equal; false if `count` is above 16.
#[inline(always)]
pub(crate) fn same16(one: &Bytes16, other: &Bytes16, count: usize) -> bool {
    count <= 16 && one[..count] == other[..count]
}

/// The number in the last `count` bytes, which must be digits; `count` is in [1, 16].
#[inline(always)]
pub(crate) fn join16(bytes16: &Bytes16, count: usize) -> u64 {
    let keep = u128::MAX << (8 * (16 - count));
    let digits = (u128::from_le_bytes(*bytes16) ^ (u128::from(ZEROS) << 64 | u128::from(ZEROS))) & keep;
    join8(digits as u64) * 100_000_000 + join8((digits >> 64) as u64)
}

/// The number in eight digits, each byte in [0, 9].
#[inline(always)]
fn join8(digits: u64) -> u64 {
    let twos = digits.wrapping_mul(10).wrapping_add(digits >> 8);
    let low = (twos & 0x0000_00ff_0000_00ff).wrapping_mul(0x000f_4240_0000_0064);
    let high = ((twos >> 16) & 0x0000_00ff_0000_00ff).wrapping_mul(0x0000_2710_0000_0001);
    low.wrapping_add(high) >> 32
}

/// Number of bytes before the first whose highest bit is set; 16 if there is none.
#[inline(always)]
fn first_marked(words: [u64; 2]) -> usize {
    let [low, high] = words.map(|word| ((word & HIGH).trailing_zeros() / 8) as usize);
    if low < 8 { low } else { 8 + high }
}

#[inline(always)]
fn words(bytes16: &Bytes16) -> [u64; 2] {
    let number = u128::from_le_bytes(*bytes16);
    [number as u64, (number >> 64) as u64]
}
