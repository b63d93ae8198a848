//! Datagrams through real sockets: what is sent arrives, and what is lost is counted.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use super::*;
use crate::batch::Batch;
use crate::emit::{Operation, Outcome, Target};
use crate::net::tests::hand_over;
use crate::net::{
    Address, Closing, EmitOptions, Intake, IntakeSink, ListenOptions, ListenerTotals, Mileposts, Registry, TargetReport,
};
use crate::schedule::Slot;
use crate::series::{Catalog, SeriesId, SeriesKey};
use crate::time::{Clock, MonotonicClock, Timestamp};
use crate::wire::{Fatal, Malformed, NotAdmitted, Protocol, Room, Sink};

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The protocols that are sent in datagrams and bear a time to know samples by.
const PACKED: [Protocol; 3] = [Protocol::Graphite, Protocol::Influx, Protocol::Tsb];

/// Counts, keeps, and holds up what arrives.
#[derive(Clone, Debug, Default)]
struct Tally {
    samples: Arc<AtomicU64>,
    kept: Arc<Mutex<Vec<(u32, i64, u64)>>>,
    /// Locked by a test: nothing is applied.
    gate: Arc<Mutex<()>>,
}

#[derive(Debug)]
struct TallySink {
    tally: Tally,
    registry: Arc<Registry>,
}

impl Sink for TallySink {
    fn series(&mut self, key: &SeriesKey) -> Result<SeriesId, NotAdmitted> {
        self.registry.resolve(key)
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        self.tally.samples.fetch_add(batch.len() as u64, Ordering::Relaxed);
        let mut kept = self.tally.kept.lock().unwrap();
        kept.extend(batch.iter().map(|(id, at, value)| (id.0, at.0, value.to_bits())));
    }

    fn refused(&mut self, _why: NotAdmitted, _samples: usize) {}

    fn unannounced(&mut self, _samples: usize) {}

    fn malformed(&mut self, _problem: &Malformed<'_>) {}
}

impl IntakeSink for TallySink {
    fn apply(&mut self, _consumed: u64) -> Result<u64, Fatal> {
        drop(self.tally.gate.lock().unwrap());
        Ok(0)
    }
}

/// A listener and all that it needs.
struct Testbed {
    protocol: Protocol,
    catalog: Catalog,
    clock: Arc<dyn Clock>,
    mileposts: Arc<Mileposts>,
    tally: Tally,
    listener: DatagramListener,
}

fn catalog(series: usize) -> Catalog {
    (0..series)
        .map(|index| SeriesKey::new(format!("host{index:05}.load")))
        .collect()
}

impl Testbed {
    fn new(protocol: Protocol, series: usize, options: ListenOptions) -> Self {
        Self::at(&Address::from(ANY_PORT), protocol, series, options)
    }

    fn at(address: &Address, protocol: Protocol, series: usize, options: ListenOptions) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
        let (mileposts, tally) = (Mileposts::new(1 << 16), Tally::default());
        let catalog = catalog(series);
        let refuse = |_, _: &SeriesKey| Err("not of the fleet".to_owned());
        let registry = Arc::new(Registry::with_catalog(catalog.clone(), series, refuse));
        let (seen, budget, now) = (Mutex::new(tally.clone()), Room::default(), Arc::clone(&clock));
        let ingest = move |_: &Address| Intake {
            decoder: protocol.datagram_decoder(Arc::clone(&now), &budget),
            sink: Box::new(TallySink {
                tally: seen.lock().unwrap().clone(),
                registry: Arc::clone(&registry),
            }),
        };
        let told = Some(Arc::clone(&mileposts));
        let listener = DatagramListener::bind(address, options, ingest, Arc::clone(&clock), told).unwrap();
        Self {
            protocol,
            catalog,
            clock,
            mileposts,
            tally,
            listener,
        }
    }

    fn target(&self, options: EmitOptions) -> DatagramTarget {
        let limit = options.datagram_bytes;
        let make = |session| self.protocol.packer(&self.catalog, limit, session).unwrap();
        DatagramTarget::connect(
            self.listener.address(),
            options,
            make,
            Arc::clone(&self.clock),
            Some(&self.mileposts),
        )
        .unwrap()
    }

    /// Sends ticks in operations of `length` samples.
    fn send(&self, target: &mut DatagramTarget, ticks: std::ops::Range<i64>, length: usize) {
        let series = self.catalog.len();
        for tick in ticks {
            for first in (0..series).step_by(length) {
                let values: Vec<f64> = (first..series.min(first + length))
                    .map(|id| value(id as u32, tick))
                    .collect();
                let batch = Batch::tick(SeriesId(first as u32), Timestamp::from_secs(tick), &values);
                let due = self.clock.now();
                hand_over(target, batch, due);
            }
            target.idle();
        }
    }

    fn client(&self) -> UdpSocket {
        let client = UdpSocket::bind(ANY_PORT).unwrap();
        client.connect(self.listener.address().inet().unwrap()).unwrap();
        client
    }

    /// Waits until at least `count` samples have arrived, or 30 s have passed.
    fn await_samples(&self, count: u64) {
        let until = self.clock.now() + 30_000_000_000;
        while self.tally.samples.load(Ordering::Relaxed) < count && self.clock.now() < until {
            self.clock.wait_until(self.clock.now() + 1_000_000);
        }
        assert_eq!(self.tally.samples.load(Ordering::Relaxed), count);
    }
}

fn value(id: u32, tick: i64) -> f64 {
    f64::from(id) * 1e4 + tick as f64
}

fn big_buffer() -> ListenOptions {
    ListenOptions {
        receive_buffer_bytes: Some(8 << 20),
        ..ListenOptions::default()
    }
}

/// Both sides' accounts of what was sent and what came, all of which must agree.
fn settle(testbed: Testbed, target: DatagramTarget) -> (TargetReport, ListenerTotals) {
    let sent = target.finish();
    let received = testbed.listener.stop();
    let stats = &received.stats;
    let lost = sent.samples - stats.samples - stats.refused - stats.unannounced;
    let lost_datagrams = sent.datagrams - stats.datagrams;
    assert_eq!(stats.missing_datagrams, lost_datagrams, "waymarks: {stats:?}");
    if testbed.protocol == Protocol::Tsb {
        // Numbers tell nothing of a tail whose end was lost, all five times; waymarks do.
        let heard_the_end = stats.ended_senders > 0;
        let is_known = stats.missing_samples == lost || (!heard_the_end && stats.missing_samples < lost);
        assert!(is_known, "{lost} lost, numbers: {stats:?}");
    }
    let timing = &received.timing;
    let operations = timing.response.count() + timing.lost + timing.unfinished + sent.untimed;
    assert_eq!(operations, sent.operations, "{timing:?}");
    let mut kept = testbed.tally.kept.lock().unwrap();
    kept.sort_unstable();
    kept.dedup();
    assert_eq!(kept.len() as u64, stats.samples, "nothing came twice");
    let is_right = |(id, at, bits): &(u32, i64, u64)| *bits == value(*id, at / 1_000_000_000).to_bits();
    assert!(kept.iter().all(is_right), "every sample is the one that was sent");
    (sent, received)
}

#[test]
fn every_sample_arrives_over_every_kind_of_socket() {
    let folder = tempfile::tempdir().unwrap();
    for protocol in PACKED {
        for (gso, sockets, threads) in [(true, 1, 1), (false, 3, 2), (true, 30, 2)] {
            for address in [
                Address::from(ANY_PORT),
                Address::from(folder.path().join("ingest.sock")),
            ] {
                let options = ListenOptions {
                    ingest_threads: threads,
                    ..big_buffer()
                };
                let testbed = Testbed::at(&address, protocol, 1_000, options);
                let mut target = testbed.target(EmitOptions {
                    sockets,
                    gso,
                    ..EmitOptions::default()
                });
                let case = format!("{protocol} {address} gso {gso}, {sockets} sockets");
                testbed.send(&mut target, 0..20, 54);
                testbed.await_samples(20_000);
                let (sent, received) = settle(testbed, target);
                assert_eq!((sent.closing, sent.n_errors), (Closing::Unconfirmed, 0), "{case}");
                assert_eq!((received.stats.samples, received.timing.lost), (20_000, 0), "{case}");
                assert_eq!((received.stats.malformed, received.stats.refused), (0, 0), "{case}");
                assert_eq!(received.stats.bytes, sent.written_bytes, "{case}");
                assert_eq!(received.stats.open_connections, 0, "{case}");
                assert!(received.stats.connections <= sockets as u64, "{case}");
                assert_eq!(received.timing.response.count(), sent.operations, "{case}");
            }
        }
    }
}

/// A burst beyond the buffer, while no thread reads: what is lost is known to the sample by
/// the numbers in the protocol, by the waymarks and by the difference of both sides, and
/// the kernel's own count says the same of datagrams.
#[test]
fn a_loss_is_known_to_the_last_datagram() {
    let mut last_burst = 0;
    for protocol in PACKED {
        for (gso, gro) in [(false, false), (true, false), (true, true), (false, true)] {
            let case = format!("{protocol}, gso {gso}, gro {gro}");
            let testbed = Testbed::new(
                protocol,
                5_000,
                ListenOptions {
                    receive_buffer_bytes: Some(64 << 10),
                    gro,
                    ..ListenOptions::default()
                },
            );
            let mut target = testbed.target(EmitOptions {
                gso,
                ..EmitOptions::default()
            });
            testbed.send(&mut target, 0..1, 54);
            let gate = Arc::clone(&testbed.tally.gate);
            let closed = gate.lock().unwrap();
            testbed.send(&mut target, 1..6, 54);
            drop(closed);
            let (sent, received) = settle(testbed, target);
            let stats = received.stats;
            let lost = sent.datagrams - stats.datagrams;
            assert!(lost > 50, "{case}: {lost} datagrams lost");
            assert!(received.timing.lost + received.timing.unfinished > 10, "{case}");
            if gso && gro {
                // A unit of many datagrams counts as one when it is dropped as one.
                assert!(stats.kernel_drops < lost / 10, "{case}: {}", stats.kernel_drops);
                assert!(stats.kernel_drops * sent.segments >= lost, "{case}");
            } else {
                assert_eq!(stats.kernel_drops, lost, "{case}");
            }
            last_burst += stats.untold_kernel_drops;
        }
    }
    assert!(last_burst > 0, "the drops of a last burst ride on no datagram");
}

#[test]
fn a_sender_of_which_nothing_came_is_missed_as_well() {
    for protocol in PACKED {
        let small = ListenOptions {
            receive_buffer_bytes: Some(4 << 10),
            ..ListenOptions::default()
        };
        let testbed = Testbed::new(protocol, 2_000, small);
        let gate = Arc::clone(&testbed.tally.gate);
        let closed = gate.lock().unwrap();
        let mut loud = testbed.target(EmitOptions::default());
        testbed.send(&mut loud, 0..2, 54);
        while testbed.tally.samples.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        // No thread reads any more, and this leaves no room for another datagram.
        testbed.send(&mut loud, 2..6, 54);
        let mut unheard = testbed.target(EmitOptions::default());
        testbed.send(&mut unheard, 6..7, 54);
        let sent = [loud.finish(), unheard.finish()];
        drop(closed);
        let received = testbed.listener.stop();
        let stats = &received.stats;
        let sum = |of: fn(&TargetReport) -> u64| sent.iter().map(of).sum::<u64>();
        assert_eq!(
            stats.missing_datagrams,
            sum(|one| one.datagrams) - stats.datagrams,
            "{stats:?}"
        );
        let timing = &received.timing;
        let operations = timing.response.count() + timing.lost + timing.unfinished;
        assert_eq!(
            operations + sum(|one| one.untimed),
            sum(|one| one.operations),
            "{timing:?}"
        );
    }
}

#[test]
fn datagrams_of_every_size_harm_nobody() {
    for protocol in PACKED {
        let testbed = Testbed::new(protocol, 200, big_buffer());
        let mut target = testbed.target(EmitOptions::default());
        testbed.send(&mut target, 0..5, 54);
        let rude = testbed.client();
        let garbage: Vec<u8> = (0..65_507u32).map(|at| (at * 7 % 253) as u8 + 1).collect();
        let mut sent = 0;
        for size in (0..2_000).chain((2_000..65_507).step_by(61)).chain([65_506, 65_507]) {
            assert_eq!(rude.send(&garbage[..size]).unwrap(), size);
            sent += 1;
            if sent % 32 == 0 {
                await_datagrams(&testbed, sent);
            }
        }
        testbed.send(&mut target, 5..10, 54);
        await_datagrams(&testbed, sent);
        let report = target.finish();
        let stats = testbed.listener.stop().stats;
        assert_eq!(stats.datagrams, sent + report.datagrams, "{protocol}");
        assert_eq!((stats.samples, stats.empty_datagrams), (2_000, 1), "{protocol}");
        assert!(stats.malformed >= sent - 1, "{protocol}: {}", stats.malformed);
        assert_eq!((stats.kernel_drops, stats.panicked_connections), (0, 0), "{protocol}");
        assert!(stats.malformed_kinds.len() < 32, "{protocol}");
    }
}

/// Waits until at least `count` datagrams have arrived.
fn await_datagrams(testbed: &Testbed, count: u64) {
    let until = testbed.clock.now() + 30_000_000_000;
    while testbed.listener.stats().datagrams < count {
        assert!(testbed.clock.now() < until, "{:?}", testbed.listener.stats());
        testbed.clock.wait_until(testbed.clock.now() + 200_000);
    }
}

/// Issue 15: a listener dropped every sender beyond its first 1,024, for good and in silence.
#[test]
fn senders_beyond_the_limit_are_heard_and_others_forgotten() {
    for protocol in PACKED {
        let options = ListenOptions {
            max_connections: 50,
            ..big_buffer()
        };
        let testbed = Testbed::new(protocol, 200, options);
        let mut target = testbed.target(EmitOptions::default());
        testbed.send(&mut target, 0..5, 54);
        testbed.await_samples(1_000);
        for round in 1..=3_000 {
            testbed.client().send(b"x 1 1\n").unwrap();
            if round % 100 == 0 {
                await_datagrams(&testbed, round);
            }
        }
        testbed.send(&mut target, 5..10, 54);
        testbed.await_samples(2_000);
        let stats = testbed.listener.stats();
        assert!(stats.open_connections <= 50, "{protocol}: {}", stats.open_connections);
        target.finish();
        let stats = testbed.listener.stop().stats;
        // What nobody knows is refused or malformed, and that is in the ledger.
        assert_eq!(
            (stats.samples, stats.received()),
            (2_000, 5_000),
            "{protocol}: {stats:?}"
        );
        assert_eq!((stats.refused_connections, stats.undecoded_bytes), (0, 0));
        assert!(
            stats.forgotten_senders > 2_900,
            "{protocol}: {}",
            stats.forgotten_senders
        );
    }
}

#[test]
fn a_flood_of_names_is_stopped_and_the_known_go_on() {
    let testbed = Testbed::new(Protocol::Graphite, 200, big_buffer());
    let mut target = testbed.target(EmitOptions::default());
    testbed.send(&mut target, 0..5, 54);
    let rude = testbed.client();
    for round in 0..2_000u64 {
        let lines: Vec<String> = (0..40).map(|name| format!("flood.{round}.{name} 1 1\n")).collect();
        rude.send(lines.concat().as_bytes()).unwrap();
        if round % 50 == 0 {
            await_datagrams(&testbed, round);
        }
    }
    testbed.send(&mut target, 5..10, 54);
    testbed.await_samples(2_000);
    target.finish();
    let stats = testbed.listener.stop().stats;
    assert_eq!((stats.samples, stats.refused, stats.malformed), (2_000, 80_000, 0));
}

#[test]
fn a_line_needs_no_line_feed_at_the_end_of_its_datagram() {
    let testbed = Testbed::new(Protocol::Graphite, 3, big_buffer());
    let client = testbed.client();
    client.send(b"host00000.load 10000 1").unwrap();
    client
        .send(b"host00001.load 10001 1\nhost00002.load 20001 1\r")
        .unwrap();
    client.send(b"host00001.load oops 1\nhost00000.load").unwrap();
    testbed.await_samples(3);
    await_datagrams(&testbed, 3);
    let stats = testbed.listener.stop().stats;
    assert_eq!((stats.samples, stats.malformed, stats.fatal_closes), (3, 2, 0));
}

#[test]
fn a_queue_that_nobody_reads_is_given_up_or_interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deaf.sock");
    let _deaf = std::os::unix::net::UnixDatagram::bind(&path).unwrap();
    let connect = |stall_timeout| {
        let options = EmitOptions {
            stall_timeout,
            ..EmitOptions::default()
        };
        let packer = |session| Protocol::Tsb.packer(&catalog(1_000), 1_400, session).unwrap();
        let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
        DatagramTarget::connect(&Address::Unix(path.clone()), options, packer, clock, None).unwrap()
    };
    let values = vec![1.0; 1_000];
    let operation = Operation::write(
        Batch::tick(SeriesId(0), Timestamp::from_secs(1), &values),
        0,
        Slot::default(),
    );
    let mut target = connect(Some(std::time::Duration::from_millis(20)));
    while target.send(&operation) == Outcome::Sent {}
    assert_eq!(target.send(&operation), Outcome::Shed);
    let report = target.finish();
    assert!(
        report.errors[0].to_string().ends_with("took nothing for 20 ms"),
        "{:?}",
        report.errors
    );
    assert!(report.blocked_ns >= 20_000_000 && report.unsent_samples > 0);
    let mut target = connect(None);
    let interrupter = target.interrupter();
    let waiter = std::thread::spawn(move || interrupter.interrupt());
    while target.send(&operation) == Outcome::Sent {}
    waiter.join().unwrap();
    assert_eq!(target.finish().closing, Closing::Lost);
}

#[test]
fn where_nobody_listens_the_sender_hears_of_it() {
    let gone = UdpSocket::bind(ANY_PORT).unwrap().local_addr().unwrap();
    let packer = |session| Protocol::Tsb.packer(&catalog(100), 1_400, session).unwrap();
    let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
    let address = Address::from(gone);
    let mut target = DatagramTarget::connect(&address, EmitOptions::default(), packer, clock, None).unwrap();
    let values = vec![1.0; 100];
    for second in 0..10 {
        let batch = Batch::tick(SeriesId(0), Timestamp::from_secs(second), &values);
        hand_over(&mut target, batch, 0);
        target.idle();
    }
    let report = target.finish();
    assert!(report.refusals > 5, "{report:?}");
    assert!(!report.errors.is_empty());
}
