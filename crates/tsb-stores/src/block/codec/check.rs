//! Checks whether bytes can be decoded, for blocks that come from a file.
//!
//! The decoder trusts its input, since most of it never leaves the process. Bytes that pass these
//! checks are decoded without a panic; wrong values are for a checksum to detect.

use tsb_core::bytes::{BytesError, Fault, Reader};

use super::pack::{LANES, packed_len};
use super::{BITS, MAX_DECIMALS, SPECIALS};

/// Whether `len` values can be read from a column.
pub(crate) fn column(bytes: &[u8], len: usize) -> bool {
    read_column(&mut Reader::new(bytes), len).is_ok()
}

/// Whether `len` whole numbers can be read.
pub(crate) fn whole(bytes: &[u8], len: usize) -> bool {
    let mut bytes = Reader::new(bytes);
    bytes
        .byte()
        .and_then(|head| integers(&mut bytes, head & 15, len))
        .is_ok()
}

fn read_column(bytes: &mut Reader<'_>, len: usize) -> Result<(), BytesError> {
    let mut head = bytes.byte()?;
    if head == SPECIALS {
        let count = usize::from(bytes.byte()?);
        let listed = bytes.take(9 * count)?;
        if listed.chunks_exact(9).any(|special| usize::from(special[0]) >= len) {
            return Err(bytes.error(Fault::Invalid));
        }
        head = bytes.byte()?;
    }
    let domain = head >> 4;
    if domain > MAX_DECIMALS && domain != BITS {
        return Err(bytes.error(Fault::Invalid));
    }
    integers(bytes, head & 15, len)
}

/// The integers after the first byte, by `kind` as in `integers`.
fn integers(bytes: &mut Reader<'_>, kind: u8, len: usize) -> Result<(), BytesError> {
    bytes.varint()?;
    match kind {
        0 => Ok(()),
        1 => {
            let (count, mut from) = (bytes.byte()?, 0);
            for _ in 0..count {
                let to = usize::from(bytes.byte()?);
                if to < from || to > len {
                    return Err(bytes.error(Fault::Invalid));
                }
                bytes.varint()?;
                from = to;
            }
            Ok(())
        }
        2 => offsets(bytes, len),
        3 => {
            bytes.varint()?;
            offsets(bytes, len)
        }
        4 => {
            let bits = bytes.take(len.div_ceil(8))?;
            bytes.varint()?;
            offsets(bytes, bits.iter().map(|byte| byte.count_ones() as usize).sum())
        }
        _ => Err(bytes.error(Fault::Invalid)),
    }
}

fn offsets(bytes: &mut Reader<'_>, len: usize) -> Result<(), BytesError> {
    const EXTENDED: u8 = 0x80;
    let head = bytes.byte()?;
    let width = u32::from(head & !EXTENDED);
    let (shift, exceptions) = if head & EXTENDED == 0 {
        (0, 0)
    } else {
        (u32::from(bytes.byte()?), bytes.byte()?)
    };
    let shifts = shift < 32 || (shift < 64 && width + shift > 32);
    if width > 64 || !shifts || (exceptions > 0 && width > 63) {
        return Err(bytes.error(Fault::Invalid));
    }
    bytes.take(room(len, width.min(32)))?;
    if width > 32 {
        bytes.take(room(len, width - 32))?;
    }
    for _ in 0..exceptions {
        bytes.byte()?;
        bytes.varint()?;
    }
    Ok(())
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
