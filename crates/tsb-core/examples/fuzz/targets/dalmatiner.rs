//! Fuzzes the decoders of DalmatinerDB's binary protocols.

use tsb_core::wire::{Protocol, Room};

use super::codec::{Found, Heap, check_again, check_pieces, check_twice, clock};

/// The records of 2014: as frames of a connection, and as datagrams.
pub(super) fn of_2014(bytes: &[u8]) {
    check_pieces(Protocol::DalmatinerAugust, bytes);
    check_twice(&mut *Protocol::DalmatinerAugust.decoder(clock()), bytes);
    check_again(&mut *Protocol::DalmatinerAugust.decoder(clock()), bytes);
    check_again(&mut *Protocol::DalmatinerJuly.decoder(clock()), bytes);
    for protocol in [Protocol::DalmatinerJuly, Protocol::DalmatinerAugust] {
        let found = datagram(protocol, bytes);
        assert!(found.fatal.is_none());
        // A valid record is kept, whatever follows it.
        let longer = datagram(protocol, &[bytes, b"\xffgarbage"].concat());
        if found.malformed.is_empty() && !bytes.is_empty() {
            assert_eq!(longer.samples, found.samples);
            assert_eq!(longer.malformed.len(), 1);
        }
    }
}

/// The stream and batch modes of the last version, from the beginning of a connection and from
/// the middle.
pub(super) fn stream(bytes: &[u8]) {
    for bytes in [bytes, &[b"\0\0\0\x04\x04\x02\x01b", bytes].concat()] {
        check_pieces(Protocol::DalmatinerStream, bytes);
        check_twice(&mut *Protocol::DalmatinerStream.decoder(clock()), bytes);
    }
}

fn datagram(protocol: Protocol, bytes: &[u8]) -> Found {
    let mut heap = Heap::default();
    let mut decoder = protocol.datagram_decoder(clock(), &Room::default());
    assert_eq!(
        decoder.decode(bytes, &mut heap),
        Ok(bytes.len()),
        "a datagram is taken whole"
    );
    decoder.finish(&[], &mut heap);
    heap.found
}
