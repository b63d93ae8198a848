//! Fuzzes the decoders of HTTP requests: samples and responses must not depend on how the bytes
//! are split.

use std::ops::ControlFlow;

use tsb_core::wire::http::Databases;
use tsb_core::wire::http::hawkular::{Backend, Behaviour, Hawkular, HawkularOptions};
use tsb_core::wire::{Decoder, MAX_RECORD, Next, Peer, Protocol, Room};
use tsb_core::wire::{SampleReader, Take};
use tsb_core::{SeriesKey, Timestamp};

use super::codec::{Found, Heap, clock};

/// Asserts that the result and the responses do not depend on the pieces, and that no memory
/// held for a connection outlives it.
pub(super) fn check(bytes: &[u8]) {
    for protocol in [
        Protocol::Influx,
        Protocol::KairosdbJson,
        Protocol::Otlp,
        Protocol::RemoteWrite,
    ] {
        check_decoder(bytes, |room| decoder(protocol, room));
    }
}

/// The same for Hawkular's interface, in each behaviour and over each backend.
pub(super) fn hawkular(bytes: &[u8]) {
    for behaviour in Behaviour::ALL {
        for backend in Backend::ALL {
            check_decoder(bytes, |room| {
                let endpoint = Hawkular::new(HawkularOptions { behaviour, backend }, room.clone());
                Box::new(endpoint.decoder(&clock(), Box::new(TwoSamples)))
            });
        }
    }
}

fn check_decoder(bytes: &[u8], make: impl Fn(&Room) -> Box<dyn Decoder>) {
    let is_gzip = bytes.windows(4).any(|word| word.eq_ignore_ascii_case(b"gzip"));
    let room = Room::default();
    let all = room.held.left();
    let whole = talk(make(&room), bytes, bytes.len().max(1));
    for piece in [1 + bytes.len() / 3, 61, 5] {
        if piece * 400 > bytes.len() {
            assert_same(&talk(make(&room), bytes, piece), &whole, piece, is_gzip);
        }
    }
    assert_eq!(room.held.left(), all, "memory is given back");
}

/// A store in which each series has two samples.
#[derive(Debug)]
struct TwoSamples;

impl SampleReader for TwoSamples {
    fn samples(
        &mut self,
        _key: &SeriesKey,
        start: Timestamp,
        end: Timestamp,
        take: &mut Take<'_>,
    ) -> Result<(), String> {
        assert!(start < end, "an empty range is not asked for");
        for (second, value) in [(970, 1.5), (999, -2.0)] {
            let at = Timestamp::from_secs(second);
            if start <= at && at < end && take(&[at], &[value]) == ControlFlow::Break(()) {
                break;
            }
        }
        Ok(())
    }

    fn newest(&mut self, keys: &[SeriesKey]) -> Result<Vec<Option<Timestamp>>, String> {
        Ok(vec![Some(Timestamp::from_secs(999)); keys.len()])
    }

    fn keys(&self) -> Vec<SeriesKey> {
        vec![SeriesKey::new("a"), SeriesKey::with_labels("a", [("tenant", "t")])]
    }
}

/// Asserts equal results and responses; but how much of a compressed body is inflated before it
/// is known to be broken or incomplete depends on how it arrived.
fn assert_same(one: &(Found, Vec<u8>), other: &(Found, Vec<u8>), piece: usize, is_gzip: bool) {
    let breaks = ["a compressed body is not gzip", "the last request has no end"];
    if !is_gzip || !breaks.iter().any(|what| one.0.malformed.contains(what)) {
        assert_eq!(one, other, "in pieces of {piece}");
        return;
    }
    assert_eq!((&one.0.malformed.last(), &one.1), (&other.0.malformed.last(), &other.1));
    let pairs = one.0.samples.iter().zip(&other.0.samples);
    assert!(
        pairs.into_iter().all(|(one, other)| one == other),
        "in pieces of {piece}"
    );
}

fn decoder(protocol: Protocol, room: &Room) -> Box<dyn Decoder> {
    let databases = Databases::default();
    assert!(databases.create("d"));
    let decoder = protocol.http_decoder(clock(), room, &databases);
    decoder.unwrap_or_else(|| panic!("{protocol} is no body of requests"))
}

fn talk(mut decoder: Box<dyn Decoder>, bytes: &[u8], piece: usize) -> (Found, Vec<u8>) {
    let (mut heap, mut answers) = (Heap::default(), Vec::new());
    let (mut start, mut end) = (0, 0);
    while end < bytes.len() {
        end = bytes.len().min(end + piece);
        loop {
            let waiting = &bytes[start..end];
            let consumed = decoder.decode(waiting, &mut heap);
            let consumed = consumed.unwrap_or_else(|fatal| panic!("{}: it is answered, not closed", fatal.what));
            assert!(consumed <= waiting.len(), "consumed more than there is");
            start += consumed;
            let peer = Peer {
                rejected: 0,
                is_listening: true,
            };
            match decoder.answer(peer, &mut answers) {
                Next::More | Next::Later => break,
                Next::Again => {}
                Next::Over => return (heap.found, answers),
            }
        }
        assert!(end - start < MAX_RECORD, "neither consumed nor refused a full buffer");
    }
    decoder.finish(&bytes[start..], &mut heap);
    (heap.found, answers)
}
