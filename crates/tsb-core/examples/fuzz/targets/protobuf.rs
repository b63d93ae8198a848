//! Fuzzes the decoders of protobuf bodies: remote write's and OTLP's.

use tsb_core::wire::{MAX_RECORD, Protocol};

use super::codec::{check_again, check_twice, clock, decode};

pub(super) fn remote_write(bytes: &[u8]) {
    check(Protocol::RemoteWrite, bytes);
}

pub(super) fn otlp(bytes: &[u8]) {
    check(Protocol::Otlp, bytes);
}

/// A body is consumed as a whole, whatever it is.
fn check(protocol: Protocol, bytes: &[u8]) {
    assert!(bytes.len() <= MAX_RECORD);
    let found = decode(protocol, bytes, bytes.len().max(1));
    assert!(found.fatal.is_none());
    check_twice(&mut *protocol.decoder(clock()), bytes);
    check_again(&mut *protocol.decoder(clock()), bytes);
}
