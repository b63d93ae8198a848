//! Fuzzes the decoder of Graphite's pickle protocol.

use tsb_core::wire::Protocol;

use super::codec::{check_again, check_pieces, check_twice, clock};

/// Checks the bytes as they are, and as the content of a frame: otherwise few mutations would
/// get past the length field.
pub(super) fn check(bytes: &[u8]) {
    check_pieces(Protocol::Pickle, bytes);
    let framed = [&(bytes.len() as u32).to_be_bytes(), bytes].concat();
    let found = check_pieces(Protocol::Pickle, &framed);
    assert!(found.fatal.is_none(), "a frame of a right length is read to its end");
    // Every sample costs at least one byte of opcodes, even if it is fetched from the memo.
    assert!(found.samples.len() + found.refused <= bytes.len());
    check_twice(&mut *Protocol::Pickle.decoder(clock()), &framed);
    check_again(&mut *Protocol::Pickle.decoder(clock()), &framed);
}
