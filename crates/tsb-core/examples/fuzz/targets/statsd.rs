//! The decoder of StatsD's lines.

use tsb_core::wire::Protocol;

use super::codec::{check_again, check_pieces, check_twice, clock};

/// Asserts the promises of a decoder, and that every part of a line is accounted for once.
pub(super) fn check(bytes: &[u8]) {
    let found = check_pieces(Protocol::Statsd, bytes);
    let parts = bytes.split(|byte| matches!(byte, b'\n' | b':')).count();
    assert!(found.samples.len() + found.refused + found.malformed.len() <= parts);
    check_twice(&mut *Protocol::Statsd.decoder(clock()), bytes);
    // What is added to a gauge is added again.
    if !bytes.iter().any(|byte| matches!(byte, b'+' | b'-')) {
        check_again(&mut *Protocol::Statsd.decoder(clock()), bytes);
    }
}
