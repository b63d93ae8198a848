//! Fuzzes the decoder of Influx lines against itself without learned names.
//!
//! A decoder that has seen no name parses its first line with the exact parser, so the fast
//! paths are compared with a new decoder per line.

use tsb_core::wire::influx::InfluxDecoder;
use tsb_core::wire::{Decoder, Protocol};

use super::codec::{Heap, check_pieces, check_twice, clock};

/// Asserts that the fast paths and the exact parser agree for any bytes.
pub(super) fn check(bytes: &[u8]) {
    let found = check_pieces(Protocol::Influx, bytes);
    let mut heap = Heap::default();
    let mut start = 0;
    for (feed, _) in bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        let mut decoder = InfluxDecoder::new(clock());
        match decoder.decode(&bytes[start..=feed], &mut heap) {
            Ok(consumed) => start += consumed,
            Err(_) => break,
        }
    }
    if found.fatal.is_none() {
        InfluxDecoder::new(clock()).finish(&bytes[start..], &mut heap);
        assert_eq!(found, heap.found);
    }
    check_twice(&mut *Protocol::Influx.decoder(clock()), bytes);
    check_datagram(bytes, found.malformed.is_empty());
}

/// A datagram is consumed as a whole, and lines that are valid on a stream are valid in it.
fn check_datagram(bytes: &[u8], is_good: bool) {
    let mut decoder = InfluxDecoder::of_datagrams(clock());
    let mut heap = Heap::default();
    assert_eq!(decoder.decode(bytes, &mut heap), Ok(bytes.len()));
    if is_good {
        assert!(heap.found.malformed.is_empty(), "{:?}", heap.found.malformed);
    }
}
