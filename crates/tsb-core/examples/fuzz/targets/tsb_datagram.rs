//! Fuzzes the decoder of tsb's own protocol over datagrams.

use tsb_core::wire::{Protocol, Room};

use super::codec::{Heap, clock};
use super::tsb::repair;

/// Memory budget of all peers, in bytes.
const BUDGET: usize = 1 << 20;

/// Asserts that a datagram is always consumed as a whole, and that no memory is held for a peer
/// that is gone: with the bytes as they are, with corrected checksums, and with each frame in a
/// datagram of its own, forwards and in reverse.
pub(super) fn check(bytes: &[u8]) {
    let repaired = repair(bytes);
    let frames = split(&repaired);
    let backwards: Vec<&[u8]> = frames.iter().rev().copied().collect();
    for datagrams in [vec![bytes, &repaired], frames, backwards] {
        let room = Room::of(BUDGET);
        let mut decoder = Protocol::Tsb.datagram_decoder(clock(), &room);
        let mut heap = Heap::default();
        for datagram in &datagrams {
            assert_eq!(decoder.decode(datagram, &mut heap), Ok(datagram.len()));
        }
        decoder.finish(&[], &mut heap);
        assert!(
            decoder
                .sequence()
                .is_some_and(|account| account.missing <= account.next)
        );
        drop(decoder);
        assert_eq!(
            room.held.left().min(room.names.left()),
            BUDGET,
            "something is held for nobody"
        );
    }
}

/// The frames that can be found, and the rest.
fn split(bytes: &[u8]) -> Vec<&[u8]> {
    let (mut frames, mut rest) = (Vec::new(), bytes);
    while let Some(length) = rest.get(8..12) {
        let length = u32::from_le_bytes([length[0], length[1], length[2], length[3]]) as usize;
        let Some((frame, behind)) = rest.split_at_checked(24 + length) else {
            break;
        };
        frames.push(frame);
        rest = behind;
    }
    frames.push(rest);
    frames
}
