//! Fuzzes the decoder of KairosDB's JSON bodies.

use tsb_core::wire::{MAX_RECORD, Protocol};

use super::codec::{check_again, check_twice, clock, decode};

/// A body is consumed as a whole, and is valid or has one error.
pub(super) fn check(bytes: &[u8]) {
    assert!(bytes.len() <= MAX_RECORD);
    let found = decode(Protocol::KairosdbJson, bytes, bytes.len().max(1));
    assert!(found.malformed.len() <= 1 && found.fatal.is_none());
    check_twice(&mut *Protocol::KairosdbJson.decoder(clock()), bytes);
    check_again(&mut *Protocol::KairosdbJson.decoder(clock()), bytes);
}
