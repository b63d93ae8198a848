//! The path of a sample without a run: what arrives is what was sent, over every pair of protocol
//! and transport, and a sample that is not taken is an error.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::sync::Arc;
use std::time::Duration;

use tsb_core::emit::{Operation, Outcome, Target};
use tsb_core::net::AnyTarget;
use tsb_core::schedule::Slot;
use tsb_core::wire::Protocol;
use tsb_core::{Batch, Catalog, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_run::loopback::{Loopback, Setup};
use tsb_run::{Error, Transport, WriteOnly};
use tsb_stores::Store;
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::null::NullStore;
use tsb_stores::throttle::{Throttle, ThrottleOptions};

const SERIES: usize = 9;
const PATIENCE: Duration = Duration::from_secs(30);

fn catalog() -> Catalog {
    (0..SERIES).map(|index| SeriesKey::new(format!("a{index}"))).collect()
}

fn at(tick: i64) -> Timestamp {
    Timestamp::from_secs(1_700_000_000 + tick)
}

fn send(loopback: &Loopback, target: &mut AnyTarget, tick: i64) -> Outcome {
    let values = [tick as f64; SERIES];
    let outcome = target.send(&Operation::write(
        Batch::tick(SeriesId(0), at(tick), &values),
        loopback.clock().now(),
        Slot::default(),
    ));
    target.idle();
    outcome
}

fn routes() -> impl Iterator<Item = (Protocol, Transport)> {
    let all = Protocol::ALL
        .into_iter()
        .filter(|protocol| protocol.capabilities().timestamps);
    all.flat_map(|protocol| Transport::WIRES.map(|transport| (protocol, transport)))
        .filter(|(protocol, transport)| transport.carries(*protocol).is_ok())
}

#[test]
fn samples_arrive_as_sent_over_every_protocol_and_transport() {
    let mut count = 0;
    for (protocol, transport) in routes() {
        let setup = Setup {
            is_timed: true,
            is_kept: true,
            ..Setup::new(protocol, transport)
        };
        let store: Arc<dyn Store> = Arc::new(MemoryStore::new(MemoryOptions::default()));
        let loopback = Loopback::open(&setup, catalog(), Some(Arc::clone(&store))).unwrap();
        let mut target = loopback.connect().unwrap();
        for tick in 0..3 {
            let outcome = send(&loopback, &mut target, tick);
            assert!(matches!(outcome, Outcome::Sent | Outcome::Done { .. }), "{outcome:?}");
        }
        loopback.await_applied(3 * SERIES as u64, PATIENCE).unwrap();
        let ids = (0..SERIES as u32).map(SeriesId);
        let sent = (0..3).flat_map(|tick| ids.clone().map(move |id| (id, at(tick), (tick as f64).to_bits())));
        assert_eq!(loopback.kept(), sent.collect::<Vec<_>>(), "{setup:?}");
        assert!(loopback.ingest_cpu_ns() > 0);
        let sent = target.finish();
        let received = loopback.close().unwrap();
        assert_eq!((sent.samples, received.stats.samples), (27, 27), "{setup:?}");
        if !transport.is_answered() {
            assert_eq!(received.timing.response.count() + sent.untimed, 3, "{setup:?}");
        }
        assert_eq!(store.stats().accepted, 27, "{setup:?}");
        count += 1;
    }
    assert_eq!(count, 32);
}

#[test]
fn without_a_store_samples_are_counted_and_nothing_is_kept() {
    let loopback = Loopback::open(&Setup::new(Protocol::Tsb, Transport::Unix), catalog(), None).unwrap();
    let mut target = loopback.connect().unwrap();
    assert_eq!(send(&loopback, &mut target, 0), Outcome::Sent);
    loopback.await_applied(9, PATIENCE).unwrap();
    assert_eq!((loopback.applied(), loopback.stats().samples), (9, 9));
    assert_eq!(loopback.kept(), []);
    target.finish();
    assert_eq!(loopback.close().unwrap().timing.response.count(), 0);
}

#[test]
fn samples_that_do_not_come_are_an_error_once_patience_ends() {
    let loopback = Loopback::open(&Setup::new(Protocol::Tsb, Transport::Tcp), catalog(), None).unwrap();
    let error = loopback.await_applied(1, Duration::from_millis(20)).unwrap_err();
    assert!(matches!(error, Error::Internal(_)), "{error:?}");
    assert!(
        error.to_string().starts_with("0 of 1 samples were applied in 0.02 s"),
        "{error}"
    );
    loopback.close().unwrap();
}

/// What waiting and closing say of a loopback into `store`, after one tick.
fn broken(store: Arc<dyn Store>) -> [String; 2] {
    let loopback = Loopback::open(&Setup::new(Protocol::Graphite, Transport::Tcp), catalog(), Some(store)).unwrap();
    let mut target = loopback.connect().unwrap();
    // It is handed over, whatever becomes of it.
    assert_eq!(send(&loopback, &mut target, 0), Outcome::Sent);
    let waited = loopback.await_applied(9, PATIENCE).unwrap_err();
    drop(target);
    [waited, loopback.close().unwrap_err()].map(|error| error.to_string())
}

#[test]
fn a_store_that_fails_or_refuses_breaks_it_at_once() {
    let failing = WriteOnly::new("failing", Durability::Volatile, |_, _| Err(tsb_stores::Error::Closed));
    let panicking = WriteOnly::new("panicking", Durability::Volatile, |_, _| panic!("boom"));
    let refusing = ThrottleOptions {
        error_one_in: Some(1),
        ..ThrottleOptions::default()
    };
    let clock = Arc::new(tsb_core::time::MonotonicClock::new());
    let refusing = Throttle::new(NullStore::new(), refusing, clock).unwrap();
    for (store, why) in [
        (Arc::new(failing) as Arc<dyn Store>, "store is closed"),
        (
            Arc::new(panicking),
            "store is poisoned by an earlier failure: the store panicked in write: boom",
        ),
        (Arc::new(refusing), "the store refused 9 samples"),
    ] {
        for said in broken(store) {
            assert_eq!(said, format!("cannot apply a sample: {why}"));
        }
    }
}

#[test]
fn a_stranger_breaks_it() {
    let loopback = Loopback::open(&Setup::new(Protocol::Graphite, Transport::Tcp), catalog(), None).unwrap();
    let tsb_core::net::Address::Inet(address) = loopback.address() else {
        panic!("{}", loopback.address());
    };
    let mut stranger = std::net::TcpStream::connect(address).unwrap();
    std::io::Write::write_all(&mut stranger, b"b 1 1700000000\n").unwrap();
    let error = loopback.await_applied(1, PATIENCE).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot apply a sample: 1 samples were refused: series_limit"
    );
    assert!(loopback.close().is_err());
}

#[test]
fn unsupported_pairs_of_protocol_and_transport_are_refused() {
    for (protocol, transport) in [
        (Protocol::Graphite, Transport::Inproc),
        (Protocol::KairosdbJson, Transport::Tcp),
        (Protocol::Tsb, Transport::Http),
    ] {
        let refused = Loopback::open(&Setup::new(protocol, transport), catalog(), None).unwrap_err();
        assert!(matches!(refused, Error::Plan(_)), "{refused:?}");
    }
}
