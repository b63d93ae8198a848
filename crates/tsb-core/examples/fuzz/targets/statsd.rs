//! Fuzzes the decoder of StatsD's lines.

use tsb_core::wire::Protocol;

use super::codec::{check_again, check_pieces, check_twice, clock};

/// Asserts the guarantees of a decoder, and that every part of a line is accounted for once.
pub(super) fn check(bytes: &[u8]) {
    let found = check_pieces(Protocol::Statsd, bytes);
    let parts = bytes.split(|byte| matches!(byte, b'\n' | b':')).count();
    assert!(found.samples.len() + found.refused + found.malformed.len() <= parts);
    check_twice(&mut *Protocol::Statsd.decoder(clock()), bytes);
    // Relative gauge changes accumulate, so they differ the second time.
    if !bytes.iter().any(|byte| matches!(byte, b'+' | b'-')) {
        check_again(&mut *Protocol::Statsd.decoder(clock()), bytes);
    }
}
