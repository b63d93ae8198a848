//! Hostile peers over connections: bounded, counted, and the others unharmed.

use std::collections::VecDeque;

use super::*;
use crate::series::{Catalog, SeriesKey};
use crate::wire::Protocol;

fn graphite(options: ListenOptions) -> Bed {
    let make = || Protocol::Graphite.decoder(Arc::new(MonotonicClock::new()));
    Bed::decoding(ANY_PORT, options, make)
}

/// A client that behaves, whatever the others do.
fn good(bed: &Bed) -> StreamTarget {
    let keys = (0..100).map(|index| SeriesKey::new(format!("host{index:05}.load")));
    let catalog: Catalog = keys.collect();
    let encoder = move || Protocol::Graphite.encoder(&catalog).unwrap();
    let mileposts = Some(Arc::clone(&bed.mileposts));
    let (address, clock) = (bed.listener.address(), Arc::clone(&bed.clock));
    StreamTarget::connect(address, EmitOptions::default(), encoder, clock, mileposts).unwrap()
}

#[test]
fn a_line_of_a_gigabyte_is_cut_off_early() {
    let bed = graphite(ListenOptions::default());
    let target = good(&bed);
    let mut client = bed.client();
    let piece = vec![b'x'; 1 << 20];
    // It is closed long before the end, and then nothing more is taken.
    let sent = (0..1 << 10).take_while(|_| client.write_all(&piece).is_ok()).count();
    assert!(sent < 64, "{sent} MiB were taken");
    let report = send_ticks(target, &*bed.clock, 0, 100, 20);
    assert_eq!(report.closing, Closing::Confirmed);
    let stats = bed.listener.stop().stats;
    assert_eq!((stats.samples, stats.fatal_closes, stats.malformed), (2_000, 1, 1));
    assert!(stats.bytes < 4 << 20, "{} bytes were read", stats.bytes);
}

#[test]
fn half_a_line_and_silence_ends_after_the_idle_time() {
    let bed = graphite(ListenOptions {
        idle_timeout: Some(Duration::from_millis(300)),
        ..ListenOptions::default()
    });
    let mut half = bed.client();
    half.write_all(b"half.a.line 1").unwrap();
    assert!(is_closed(&mut half));
    let report = send_ticks(good(&bed), &*bed.clock, 0, 100, 20);
    assert_eq!(report.closing, Closing::Confirmed);
    let stats = bed.listener.stop().stats;
    assert_eq!((stats.samples, stats.idle_closes, stats.malformed), (2_000, 1, 1));
}

#[test]
fn ten_thousand_connections_are_refused_beyond_the_limit() {
    const CONNECTIONS: usize = 10_000;
    let bed = graphite(ListenOptions {
        max_connections: 100,
        ..ListenOptions::default()
    });
    let mut target = good(&bed);
    let values = [1.0; 100];
    let mut send = |second| {
        let batch = Batch::tick(SeriesId(0), Timestamp::from_secs(second), &values);
        let due = bed.clock.now();
        assert_eq!(target.send(&Operation { batch, due }), Outcome::Sent);
        target.idle();
    };
    send(0);
    bed.await_samples(100);
    // As many at a time as a machine with few descriptors can hold.
    let mut held = VecDeque::new();
    for index in 0..CONNECTIONS {
        held.push_back(bed.client());
        if held.len() > 300 {
            held.pop_front();
        }
        if index % 1_000 == 0 {
            assert!(bed.listener.stats().open_connections <= 100);
            send(1 + index as i64 / 1_000);
        }
    }
    let report = target.finish();
    assert_eq!(report.closing, Closing::Confirmed);
    drop(held);
    let stats = bed.listener.stop().stats;
    assert_eq!(stats.connections + stats.refused_connections, CONNECTIONS as u64 + 1);
    assert!(stats.refused_connections > 5_000, "{stats:?}");
    assert_eq!((stats.samples, stats.open_connections), (1_100, 0));
}

#[test]
fn connections_over_unix_sockets_are_as_good_as_over_tcp() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ingest.sock");
    let bed = Bed::over(&Address::Unix(path.clone()), ListenOptions::default(), || {
        Box::new(FixedDecoder::default())
    });
    let (count, ticks) = (300, 100);
    let reports: Vec<TargetReport> = thread::scope(|scope| {
        let emitters: Vec<_> = (0..3)
            .map(|worker| {
                let target = bed.target(EmitOptions::default());
                let clock = &*bed.clock;
                scope.spawn(move || send_ticks(target, clock, worker * 1_000, count, ticks))
            })
            .collect();
        emitters.into_iter().map(|emitter| emitter.join().unwrap()).collect()
    });
    assert!(reports.iter().all(|report| report.closing == Closing::Confirmed));
    let taken = Bed::bind(&Address::Unix(path.clone()), ListenOptions::default());
    assert!(matches!(taken, Err(NetError::Bind { .. })), "the path is in use");
    let received = bed.listener.stop();
    assert_eq!(received.stats.samples, 3 * count as u64 * u64::from(ticks));
    assert_eq!(received.timing.response.count(), 3 * u64::from(ticks));
    for worker in 0..3 {
        assert_ticks(&bed.inlet, worker * 1_000, count, ticks);
    }
    assert!(!path.exists(), "the file is removed");
}
