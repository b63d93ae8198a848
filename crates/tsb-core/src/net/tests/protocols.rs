//! The real codecs through real sockets: whole, too many names, and garbage.

use proptest::prelude::*;

use super::*;
use crate::series::{Catalog, SeriesKey};
use crate::time::ManualClock;
use crate::wire::Protocol;

/// The protocols that run over a connection and carry what is sent here: fractions, from
/// the first second of 1970 on.
fn streams() -> impl Iterator<Item = Protocol> {
    let all = Protocol::ALL.into_iter();
    all.filter(|protocol| {
        let facts = protocol.capabilities();
        facts.streams && facts.timestamps && !facts.integers_only && *protocol != Protocol::Opentsdb
    })
}

fn testbed(protocol: Protocol) -> Testbed {
    let make = move || protocol.decoder(Arc::new(ManualClock::new()));
    Testbed::decoding(ANY_PORT, ListenOptions::default(), make)
}

fn target(testbed: &Testbed, protocol: Protocol, series: usize) -> StreamTarget {
    let keys = (0..series).map(|index| SeriesKey::new(format!("host{index:05}.load")));
    let catalog: Catalog = keys.collect();
    let encoder = move || protocol.encoder(&catalog).unwrap();
    let mileposts = Some(Arc::clone(&testbed.mileposts));
    let options = EmitOptions::default();
    StreamTarget::connect(
        testbed.listener.address(),
        options,
        encoder,
        Arc::clone(&testbed.clock),
        mileposts,
    )
    .unwrap()
}

#[test]
fn every_protocol_carries_every_sample_and_times_every_operation() {
    for protocol in streams() {
        let testbed = testbed(protocol);
        // Whole ticks are encoded in pieces; these are cut in the middle of one.
        let (count, ticks) = (900, 60);
        let report = send_ticks(target(&testbed, protocol, count), &*testbed.clock, 0, count, ticks);
        assert_eq!((report.closing, report.skipped_samples), (Closing::Confirmed, 0));
        let received = testbed.listener.stop();
        assert_eq!(received.stats.samples, count as u64 * u64::from(ticks), "{protocol}");
        assert_eq!(received.timing.response.count(), u64::from(ticks), "{protocol}");
        assert_eq!((received.stats.missing_frames, received.stats.undecoded_bytes), (0, 0));
        // Names were met in id order, so the listener's ids are the emitter's.
        assert_ticks(&testbed.test_ingest, 0, count, ticks);
    }
}

#[test]
fn a_flood_of_names_is_stopped_and_counted_and_the_known_go_on() {
    for protocol in streams() {
        let testbed = testbed(protocol);
        let (count, ticks) = (5_000, 3);
        let report = send_ticks(target(&testbed, protocol, count), &*testbed.clock, 0, count, ticks);
        assert_eq!(report.closing, Closing::Confirmed, "{protocol}");
        let stats = testbed.listener.stop().stats;
        let (admitted, refused) = (fixed::MAX_SERIES as u64 * 3, (count - fixed::MAX_SERIES) as u64 * 3);
        assert_eq!((stats.samples, stats.refused), (admitted, refused), "{protocol}");
        assert_eq!(testbed.test_ingest.registry.len(), fixed::MAX_SERIES);
        assert_ticks(&testbed.test_ingest, 0, fixed::MAX_SERIES, ticks);
    }
}

#[test]
fn silent_connections_in_hundreds_harm_nobody() {
    let testbed = testbed(Protocol::Graphite);
    let silent: Vec<TcpStream> = (0..200).map(|_| testbed.client()).collect();
    let mut half = testbed.client();
    half.write_all(b"half.a.line 1").unwrap();
    let report = send_ticks(target(&testbed, Protocol::Graphite, 100), &*testbed.clock, 0, 100, 20);
    assert_eq!(report.closing, Closing::Confirmed);
    let stats = testbed.listener.stop().stats;
    assert_eq!(
        (stats.samples, stats.connections, stats.cut_connections),
        (2_000, 202, 201)
    );
    assert_eq!((stats.malformed, stats.undecoded_bytes), (1, 13));
    drop(silent);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Whatever comes is counted byte for byte, and the listener lives.
    #[test]
    fn garbage_is_accounted_for(
        pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..3_000), 0..8),
        text in "[a-z0-9. \n-]{0,400}",
        is_text_first in any::<bool>(),
    ) {
        for protocol in streams() {
            let testbed = testbed(protocol);
            let mut client = testbed.client();
            let mut garbage = pieces.concat();
            let at = if is_text_first { 0 } else { garbage.len() };
            garbage.splice(at..at, text.bytes());
            // It may be closed in the middle of this.
            let is_taken = client.write_all(&garbage).is_ok();
            drop(client);
            let report = send_ticks(target(&testbed, protocol, 10), &*testbed.clock, 0, 10, 5);
            prop_assert_eq!(report.closing, Closing::Confirmed);
            let stats = testbed.listener.stop().stats;
            prop_assert_eq!(stats.connections, 2);
            prop_assert_eq!(stats.panicked_connections, 0);
            prop_assert!(stats.samples >= 50);
            let is_whole = is_taken && stats.fatal_closes == 0 && stats.broken_connections == 0;
            if is_whole {
                prop_assert_eq!(stats.bytes, garbage.len() as u64 + report.written_bytes);
            }
            let kinds: u64 = stats.malformed_kinds.iter().map(|kind| kind.count).sum();
            prop_assert_eq!(kinds, stats.malformed);
            prop_assert_eq!(stats.open_connections, 0);
        }
    }
}
