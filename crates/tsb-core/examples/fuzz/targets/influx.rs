//! The decoder of Influx lines against itself without anything learnt.
//!
//! A decoder that has seen no name reads its first line the exact way, so a new one for
//! each line is what the fast ways are compared with.

use tsb_core::wire::influx::InfluxDecoder;
use tsb_core::wire::{Decoder, Protocol};

use super::codec::{Heap, check_pieces, check_twice, clock};

/// Asserts that fast and exact say the same of any bytes.
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

/// A datagram is taken as a whole, and well-formed lines are the same to it.
fn check_datagram(bytes: &[u8], is_good: bool) {
    let mut decoder = InfluxDecoder::of_datagrams(clock());
    let mut heap = Heap::default();
    assert_eq!(decoder.decode(bytes, &mut heap), Ok(bytes.len()));
    if is_good {
        assert!(heap.found.malformed.is_empty(), "{:?}", heap.found.malformed);
    }
}
