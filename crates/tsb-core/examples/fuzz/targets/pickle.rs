//! The decoder of Graphite's pickle protocol.

use tsb_core::wire::Protocol;

use super::codec::{check_again, check_pieces, check_twice, clock};

/// The bytes as they are, and as the content of a frame: otherwise few mutations would
/// come past its length.
pub(super) fn check(bytes: &[u8]) {
    check_pieces(Protocol::Pickle, bytes);
    let framed = [&(bytes.len() as u32).to_be_bytes(), bytes].concat();
    let found = check_pieces(Protocol::Pickle, &framed);
    assert!(found.fatal.is_none(), "a frame of a right length is read to its end");
    // Every element takes opcodes of its own, or those of one that is fetched again.
    assert!(found.samples.len() + found.refused <= bytes.len());
    check_twice(&mut *Protocol::Pickle.decoder(clock()), &framed);
    check_again(&mut *Protocol::Pickle.decoder(clock()), &framed);
}
