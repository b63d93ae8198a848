//! Checks whether bytes can be decoded, for blocks that come from a file.
//!
//! The decoder trusts its input, since most of it never leaves the process. Bytes that pass these
//! checks are decoded without a panic; wrong values are for a checksum to detect.

use super::pack::{LANES, packed_len};
use super::{BITS, MAX_DECIMALS, SPECIALS};

/// Whether `len` values can be read from a column.
pub(crate) fn column(bytes: &[u8], len: usize) -> bool {
    read_column(bytes, len).is_some()
}

/// Whether `len` whole numbers can be read.
pub(crate) fn whole(bytes: &[u8], len: usize) -> bool {
    let mut rest = bytes;
    byte(&mut rest)
        .and_then(|head| integers(rest, head & 15, len))
        .is_some()
}

fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(len)?;
    *rest = left;
    Some(taken)
}

fn byte(rest: &mut &[u8]) -> Option<u8> {
    take(rest, 1).map(|bytes| bytes[0])
}

fn varint(rest: &mut &[u8]) -> Option<()> {
    for _ in 0..10 {
        if byte(rest)? < 0x80 {
            return Some(());
        }
    }
    Some(())
}

fn read_column(bytes: &[u8], len: usize) -> Option<()> {
    let mut rest = bytes;
    let mut head = byte(&mut rest)?;
    if head == SPECIALS {
        let count = usize::from(byte(&mut rest)?);
        let listed = take(&mut rest, 9 * count)?;
        if listed.chunks_exact(9).any(|special| usize::from(special[0]) >= len) {
            return None;
        }
        head = byte(&mut rest)?;
    }
    let domain = head >> 4;
    if domain > MAX_DECIMALS && domain != BITS {
        return None;
    }
    integers(rest, head & 15, len)
}

/// The integers after the first byte, by `kind` as in `integers`.
fn integers(mut rest: &[u8], kind: u8, len: usize) -> Option<()> {
    varint(&mut rest)?;
    match kind {
        0 => Some(()),
        1 => {
            let (count, mut from) = (byte(&mut rest)?, 0);
            for _ in 0..count {
                let to = usize::from(byte(&mut rest)?);
                if to < from || to > len {
                    return None;
                }
                varint(&mut rest)?;
                from = to;
            }
            Some(())
        }
        2 => offsets(rest, len),
        3 => {
            varint(&mut rest)?;
            offsets(rest, len)
        }
        4 => {
            let bits = take(&mut rest, len.div_ceil(8))?;
            varint(&mut rest)?;
            offsets(rest, bits.iter().map(|byte| byte.count_ones() as usize).sum())
        }
        _ => None,
    }
}

fn offsets(mut rest: &[u8], len: usize) -> Option<()> {
    const EXTENDED: u8 = 0x80;
    let head = byte(&mut rest)?;
    let width = u32::from(head & !EXTENDED);
    let (shift, exceptions) = if head & EXTENDED == 0 {
        (0, 0)
    } else {
        (u32::from(byte(&mut rest)?), byte(&mut rest)?)
    };
    let shifts = shift < 32 || (shift < 64 && width + shift > 32);
    if width > 64 || !shifts || (exceptions > 0 && width > 63) {
        return None;
    }
    take(&mut rest, room(len, width.min(32)))?;
    if width > 32 {
        take(&mut rest, room(len, width - 32))?;
    }
    for _ in 0..exceptions {
        byte(&mut rest)?;
        varint(&mut rest)?;
    }
    Some(())
}

/// Bytes that the decoder reads for packed numbers: at least one word of every lane.
fn room(len: usize, width: u32) -> usize {
    if width == 0 {
        0
    } else {
        packed_len(len, width).max(4 * LANES)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Decoder, Encoder};
    use super::column;

    fn values() -> impl Strategy<Value = Vec<f64>> {
        let value = prop_oneof![
            any::<f64>(),
            (0..50i64).prop_map(|n| n as f64),
            any::<i32>().prop_map(|n| f64::from(n) / 100.0),
            Just(7.0),
        ];
        proptest::collection::vec(value, 1..=256)
    }

    proptest! {
        #[test]
        fn encoded_bytes_pass_the_check_and_checked_bytes_are_decoded(values in values(), changes in proptest::collection::vec(any::<(prop::sample::Index, u8)>(), 0..4), cut in any::<prop::sample::Index>()) {
            let mut bytes = Vec::new();
            Encoder::default().column(&values, &mut bytes);
            prop_assert!(column(&bytes, values.len()));
            for (place, byte) in changes {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
            let mut out = vec![0.0; values.len()];
            for bytes in [&bytes[..], &bytes[..cut.index(bytes.len())]] {
                if column(bytes, values.len()) {
                    Decoder::default().column(bytes, &mut out);
                }
            }
        }

        #[test]
        fn random_bytes_that_pass_the_check_are_decoded(bytes in proptest::collection::vec(any::<u8>(), 0..200), len in 1..=256usize) {
            if column(&bytes, len) {
                Decoder::default().column(&bytes, &mut vec![0.0; len]);
            }
            prop_assert!(!column(&[], len));
        }
    }
}
