//! Variable-length integers: seven bits per byte, lowest first; the top bit means that more bytes
//! follow.

/// Moves the sign into the lowest bit, so that small magnitudes become small numbers: 0, -1, 1, -2.
#[inline]
pub const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline]
pub const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// Bytes that [`put`] appends. in [1, 10]
#[inline]
pub const fn len(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7)
}

/// Appends `value`.
#[inline]
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends `value` with its sign, as [`zigzag`] maps it.
#[inline]
pub fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, zigzag(value));
}

/// Decodes the value at `at`, and moves `at` behind it.
///
/// For the inner loop of a decoder whose bytes have been checked, or were never outside of the
/// process: it has no error to return. [`Reader::varint`](super::Reader::varint) is for all others.
///
/// # Panics
/// If the bytes end within the value.
#[inline]
pub fn get(bytes: &[u8], at: &mut usize) -> u64 {
    let mut value = 0;
    let mut shift = 0;
    loop {
        let byte = bytes[*at];
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 || shift == 63 {
            return value;
        }
        shift += 7;
    }
}

/// As [`get`], of a value from [`put_signed`].
///
/// # Panics
/// If the bytes end within the value.
#[inline]
pub fn get_signed(bytes: &[u8], at: &mut usize) -> i64 {
    unzigzag(get(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_comes_back() {
        for bits in 0..64 {
            for value in [1u64 << bits, (1u64 << bits) - 1, u64::MAX >> bits] {
                let mut out = Vec::new();
                put(&mut out, value);
                assert_eq!(out.len(), len(value));
                let mut at = 0;
                assert_eq!(get(&out, &mut at), value);
                assert_eq!(at, out.len());
                assert_eq!(zigzag(unzigzag(value)), value);
            }
        }
    }
}
