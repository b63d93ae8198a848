//! Fuzzes the decoder of tsb's own protocol.

use tsb_core::wire::Protocol;

use super::codec::{check_pieces, check_twice, clock};

/// The header's length.
const HEADER: usize = 24;

/// Asserts the guarantees of a decoder, on the bytes as they are and with all checksums
/// corrected: otherwise no mutation would get past them.
pub(super) fn check(bytes: &[u8]) {
    check_pieces(Protocol::Tsb, bytes);
    let repaired = repair(bytes);
    let found = check_pieces(Protocol::Tsb, &repaired);
    assert_ne!(found.fatal, Some("a frame's checksum is wrong"));
    check_twice(&mut *Protocol::Tsb.decoder(clock()), &repaired);
}

/// Corrects the checksums of all frames that can be found.
pub(super) fn repair(bytes: &[u8]) -> Vec<u8> {
    let mut repaired = bytes.to_vec();
    let mut start = 0;
    while let Some(header) = repaired.get(start..start + HEADER) {
        let length = u32::from_le_bytes([header[8], header[9], header[10], header[11]]) as usize;
        let end = start + HEADER + length;
        let Some(frame) = repaired.get_mut(start..end) else {
            break;
        };
        let sum = crc32fast::hash(&frame[8..]);
        frame[4..8].copy_from_slice(&sum.to_le_bytes());
        start = end;
    }
    repaired
}
