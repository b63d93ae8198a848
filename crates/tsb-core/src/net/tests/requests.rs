//! HTTP over real sockets: what is confirmed, what is refused, and peers that do not read.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::series::{Catalog, SeriesKey};
use crate::wire::Protocol;
use crate::wire::http::Client;
use crate::wire::http::hawkular::{Hawkular, HawkularOptions};
use crate::wire::{SampleReader, Take};

fn testbed(protocol: Protocol, options: ListenOptions) -> Testbed {
    let decoders = Decoders::new(protocol, Carrier::Requests);
    Testbed::decoding(ANY_PORT, options, move || {
        decoders.make(Arc::new(MonotonicClock::new()))
    })
}

fn target(testbed: &Testbed, protocol: Protocol, series: usize, options: EmitOptions) -> HttpTarget {
    let client = Client::new(protocol, "localhost", "d").unwrap();
    target_of(testbed, client, protocol, series, options)
}

fn target_of(testbed: &Testbed, client: Client, protocol: Protocol, series: usize, options: EmitOptions) -> HttpTarget {
    let catalog: Catalog = (0..series)
        .map(|index| SeriesKey::new(format!("host{index:05}.load")))
        .collect();
    let encoder = protocol.encoder(&catalog).unwrap();
    let address = testbed.listener.address();
    HttpTarget::connect(address, options, client, encoder, Arc::clone(&testbed.clock)).unwrap()
}

/// A target of one series at a server of the test's own.
fn target_at(address: SocketAddr, options: EmitOptions) -> HttpTarget {
    let catalog: Catalog = [SeriesKey::new("a")].into_iter().collect();
    let client = Client::new(Protocol::Influx, "localhost", "d").unwrap();
    let encoder = Protocol::Influx.encoder(&catalog).unwrap();
    let clock = Arc::new(MonotonicClock::new());
    HttpTarget::connect(&Address::from(address), options, client, encoder, clock).unwrap()
}

fn send(target: &mut HttpTarget, second: i64, values: &[f64]) -> Outcome {
    let batch = Batch::tick(SeriesId(0), Timestamp::from_secs(second), values);
    target.send(&Operation::write(batch, 0, Slot::default()))
}

#[test]
fn every_request_is_confirmed_and_every_sample_arrives() {
    // Not OTLP, to which the first tick's time, 0, means that there is none.
    let protocols = [Protocol::Influx, Protocol::KairosdbJson, Protocol::RemoteWrite];
    let ways = protocols
        .iter()
        .flat_map(|protocol| [(*protocol, false), (*protocol, true)]);
    for (protocol, is_gzip) in ways {
        let testbed = testbed(protocol, ListenOptions::default());
        let (count, ticks) = (900, 20);
        let client = Client::new(protocol, "localhost", "d").unwrap();
        let client = if is_gzip { client.with_gzip() } else { client };
        let mut target = target_of(&testbed, client, protocol, count, EmitOptions::default());
        for tick in 0..ticks {
            let outcome = send(&mut target, i64::from(tick), &values(0, tick, count));
            let expected = Outcome::Done {
                accepted: count as u32,
                rejected: 0,
            };
            assert_eq!(outcome, expected, "{protocol}: {:?}", target.report());
        }
        let report = target.finish();
        assert_eq!((report.connections, report.n_errors), (1, 0), "{:?}", report.errors);
        let stats = testbed.listener.stop().stats;
        assert_eq!(stats.samples, count as u64 * u64::from(ticks), "{protocol}");
        assert_eq!((stats.malformed, stats.undecoded_bytes, stats.fatal_closes), (0, 0, 0));
        assert_eq!(stats.bytes, report.written_bytes);
        assert_ticks(&testbed.test_ingest, 0, count, ticks);
    }
}

#[test]
fn names_beyond_the_limit_are_refused_in_the_answer() {
    let testbed = testbed(Protocol::Influx, ListenOptions::default());
    let count = fixed::MAX_SERIES + 100;
    let mut target = target(&testbed, Protocol::Influx, count, EmitOptions::default());
    let outcome = send(&mut target, 1, &values(0, 1, count));
    let expected = Outcome::Done {
        accepted: fixed::MAX_SERIES as u32,
        rejected: 100,
    };
    assert_eq!(outcome, expected);
    let stats = testbed.listener.stop().stats;
    assert_eq!((stats.samples, stats.refused), (fixed::MAX_SERIES as u64, 100));
}

#[test]
fn a_lost_connection_is_unknown_and_then_sheds_or_connects_anew() {
    for reconnect_after in [None, Some(Duration::ZERO)] {
        let listener = std::net::TcpListener::bind(ANY_PORT).unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            for kept in [false, true] {
                let Ok((mut stream, _)) = listener.accept() else { return };
                let mut read = || {
                    let mut bytes = [0; 4096];
                    stream.read(&mut bytes).unwrap_or(0) > 0
                };
                if !kept {
                    // The database is created, and the write is never answered.
                    read();
                    stream
                        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                        .unwrap();
                    let mut bytes = [0; 4096];
                    let _ = stream.read(&mut bytes);
                } else if read() {
                    stream
                        .write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
                        .unwrap();
                }
            }
        });
        let options = EmitOptions {
            reconnect_after,
            ..EmitOptions::default()
        };
        let mut target = target_at(address, options);
        assert_eq!(send(&mut target, 1, &[1.0]), Outcome::Unknown);
        let next = send(&mut target, 2, &[1.0]);
        if reconnect_after.is_some() {
            let expected = Outcome::Done {
                accepted: 1,
                rejected: 0,
            };
            assert_eq!(next, expected);
            server.join().unwrap();
        } else {
            assert_eq!(next, Outcome::Shed);
            // The server still waits for somebody.
            drop(TcpStream::connect(address));
            server.join().unwrap();
        }
    }
}

#[test]
fn what_finds_no_connection_was_not_sent() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = [0; 4096];
        let _ = stream.read(&mut bytes).unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .unwrap();
        // Nobody listens any more.
    });
    let options = EmitOptions {
        reconnect_after: Some(Duration::from_millis(1)),
        ..EmitOptions::default()
    };
    let mut target = target_at(address, options);
    server.join().unwrap();
    assert_eq!(send(&mut target, 1, &[1.0]), Outcome::Shed);
    let report = target.finish();
    assert_eq!((report.shed_samples, report.samples, report.operations), (1, 0, 0));
}

#[test]
fn a_peer_that_never_reads_its_answers_is_not_read_either() {
    let testbed = testbed(Protocol::Influx, ListenOptions::default());
    let mut mute = testbed.client();
    mute.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let asked = b"GET /nowhere HTTP/1.1\r\n\r\n".repeat(1_000);
    // Its answers fill the socket's buffers, then ours, and then nothing more is taken.
    let taken = (0..10_000).take_while(|_| mute.write_all(&asked).is_ok()).count();
    assert!(taken < 9_999, "{taken}");
    let mut target = target(&testbed, Protocol::Influx, 10, EmitOptions::default());
    assert!(matches!(
        send(&mut target, 1, &values(0, 1, 10)),
        Outcome::Done { accepted: 10, .. }
    ));
    target.finish();
    let stats = testbed.listener.stop().stats;
    assert_eq!((stats.samples, stats.panicked_connections), (10, 0));
    assert!(stats.untaken_answer_bytes < 256 << 10, "{stats:?}");
}

#[test]
fn opentsdb_tells_its_errors_and_forgets_them_where_nobody_listens() {
    let make = || Protocol::Opentsdb.decoder(Arc::new(MonotonicClock::new()));
    let testbed = Testbed::decoding(ANY_PORT, ListenOptions::default(), make);
    let mut client = testbed.client();
    client
        .write_all(b"put a 1\nput host00001.load 60 1 a=b\nversion\n")
        .unwrap();
    let expected =
        "put: illegal argument: not enough arguments (need least 4, got 2)\nnet.opentsdb 2.4, as tsb speaks it\n";
    let mut told = vec![0; expected.len()];
    client.read_exact(&mut told).unwrap();
    assert_eq!(String::from_utf8(told).unwrap(), expected);
    let mut mute = testbed.client();
    let bad = b"put a 1\n".repeat(10_000);
    for _ in 0..200 {
        mute.write_all(&bad).unwrap();
    }
    drop(client);
    // Closed without a word of what it was told being read.
    drop(mute);
    let stats = testbed.listener.stop().stats;
    assert!(stats.malformed > 1_000_000, "{}", stats.malformed);
    assert!(stats.untaken_answer_bytes < 256 << 10, "{}", stats.untaken_answer_bytes);
}

/// Connects a pool for one series to a server of the test.
fn pool(address: &Address, connections: usize, options: EmitOptions) -> HttpPool {
    let catalog: Catalog = (0..900)
        .map(|index| SeriesKey::new(format!("host{index:05}.load")))
        .collect();
    let client = Client::new(Protocol::Influx, "localhost", "d").unwrap();
    let encoder = Protocol::Influx.encoder(&catalog).unwrap();
    let clock = Arc::new(MonotonicClock::new());
    HttpPool::connect(address, connections, options, client, encoder, clock).unwrap()
}

/// Writes `count` batches at once, each in a task of its own, and returns their outcomes.
fn write_at_once(pool: &HttpPool, count: usize, series: usize) -> Vec<Outcome> {
    let tasks: Vec<_> = (0..count)
        .map(|tick| {
            let sender = pool.sender();
            pool.handle().spawn(async move {
                let values = values(0, tick as u32, series);
                let batch = Batch::tick(SeriesId(0), Timestamp::from_secs(tick as i64), &values);
                sender.write(&batch).await
            })
        })
        .collect();
    let waiting = async {
        let mut outcomes = Vec::new();
        for task in tasks {
            outcomes.push(task.await.unwrap());
        }
        outcomes
    };
    pool.handle().block_on(waiting)
}

fn counted(outcomes: &[Outcome], wanted: Outcome) -> usize {
    outcomes.iter().filter(|outcome| **outcome == wanted).count()
}

const ONE: Outcome = Outcome::Done {
    accepted: 1,
    rejected: 0,
};

#[test]
fn writes_that_share_connections_are_each_confirmed_and_all_arrive() {
    let testbed = testbed(Protocol::Influx, ListenOptions::default());
    let (count, ticks) = (900, 40_u32);
    let pool = pool(testbed.listener.address(), 3, EmitOptions::default());
    let outcomes = write_at_once(&pool, ticks as usize, count);
    let done = Outcome::Done {
        accepted: count as u32,
        rejected: 0,
    };
    assert_eq!(counted(&outcomes, done), ticks as usize, "{outcomes:?}");
    let (reports, _) = pool.finish();
    assert_eq!(reports.len(), 3);
    assert_eq!(
        reports.iter().map(|report| report.operations).sum::<u64>(),
        u64::from(ticks)
    );
    for report in &reports {
        assert_eq!((report.connections, report.n_errors), (1, 0), "{report:?}");
        assert_eq!(report.closing, Closing::Confirmed);
        assert!(report.operations > 0, "a connection was never used");
    }
    let stats = testbed.listener.stop().stats;
    assert_eq!(stats.samples, count as u64 * u64::from(ticks));
    assert_eq!(
        stats.bytes,
        reports.iter().map(|report| report.written_bytes).sum::<u64>()
    );
}

/// A server that treats the writes of its n-th connection as `serve` says, after the request that
/// creates the database.
fn misbehaving(serve: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> (Address, Arc<AtomicUsize>) {
    let listener = std::net::TcpListener::bind(ANY_PORT).unwrap();
    let address = Address::from(listener.local_addr().unwrap());
    let (serve, accepted) = (Arc::new(serve), Arc::new(AtomicUsize::new(0)));
    let counter = Arc::clone(&accepted);
    thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            counter.fetch_add(1, Ordering::SeqCst);
            let serve = Arc::clone(&serve);
            thread::spawn(move || {
                let mut stream = stream;
                // The first connection creates the database.
                if number == 0 {
                    if !request_came(&mut stream) {
                        return;
                    }
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                }
                serve(number, stream);
            });
        }
    });
    (address, accepted)
}

fn request_came(stream: &mut TcpStream) -> bool {
    stream.read(&mut [0; 4096]).unwrap_or(0) > 0
}

const NO_CONTENT: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

#[test]
fn time_outs_lost_connections_and_late_answers_are_each_unknown_once() {
    let options = EmitOptions {
        answer_timeout: Some(Duration::from_secs(2)),
        ..EmitOptions::default()
    };
    let (tell, told) = mpsc::sync_channel(64);
    let (address, _) = misbehaving(move |number, mut stream| {
        while request_came(&mut stream) {
            match number {
                // Closes without an answer.
                0 => return,
                // Answers too late.
                1 => {
                    let clock = MonotonicClock::new();
                    clock.wait_until(clock.now() + 3_000_000_000);
                    let _ = stream.write_all(NO_CONTENT);
                    let _ = tell.send(());
                }
                _ => stream.write_all(NO_CONTENT).unwrap(),
            }
        }
    });
    let pool = pool(&address, 3, options);
    let outcomes = write_at_once(&pool, 30, 1);
    assert_eq!(counted(&outcomes, Outcome::Unknown), 2, "{outcomes:?}");
    assert_eq!(counted(&outcomes, ONE), 28, "{outcomes:?}");
    told.recv_timeout(PATIENCE).unwrap();
    // The late answer belongs to no write that comes after it.
    assert_eq!(counted(&write_at_once(&pool, 10, 1), ONE), 10);
    let (reports, _) = pool.finish();
    let errors: Vec<String> = reports
        .iter()
        .flat_map(|report| &report.errors)
        .map(ToString::to_string)
        .collect();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(
        errors
            .iter()
            .any(|error| error.contains("did not answer within 2000 ms")),
        "{errors:?}"
    );
    let lost = reports.iter().filter(|report| report.closing == Closing::Lost);
    assert_eq!(lost.count(), 2);
    assert_eq!(reports.iter().map(|report| report.operations).sum::<u64>(), 40);
}

#[test]
fn without_a_connection_writes_are_shed_or_wait_for_the_next_attempt() {
    for reconnect_after in [None, Some(Duration::ZERO)] {
        let options = EmitOptions {
            reconnect_after,
            ..EmitOptions::default()
        };
        // The first two connections are lost with their first write.
        let (address, accepted) = misbehaving(|number, mut stream| {
            while request_came(&mut stream) {
                if number < 2 {
                    return;
                }
                stream.write_all(NO_CONTENT).unwrap();
            }
        });
        let pool = pool(&address, 2, options);
        let outcomes = write_at_once(&pool, 20, 1);
        assert_eq!(counted(&outcomes, Outcome::Unknown), 2, "{outcomes:?}");
        let rest = if reconnect_after.is_some() { ONE } else { Outcome::Shed };
        assert_eq!(counted(&outcomes, rest), 18, "{outcomes:?}");
        let (reports, _) = pool.finish();
        let shed: u64 = reports.iter().map(|report| report.shed_samples).sum();
        assert_eq!(shed, if reconnect_after.is_some() { 0 } else { 18 });
        let made = accepted.load(Ordering::SeqCst);
        assert_eq!(
            reports.iter().map(|report| report.connections).sum::<u64>(),
            made as u64
        );
    }
}

#[test]
fn an_interrupter_ends_requests_and_waits_for_a_connection() {
    let (tell, told) = mpsc::sync_channel(64);
    let (address, _) = misbehaving(move |_, mut stream| {
        while request_came(&mut stream) {
            let _ = tell.send(());
        }
    });
    let pool = pool(&address, 2, EmitOptions::default());
    let interrupter = pool.interrupter();
    let interrupting = thread::spawn(move || {
        for _ in 0..2 {
            told.recv_timeout(PATIENCE).unwrap();
        }
        interrupter.interrupt();
    });
    let outcomes = write_at_once(&pool, 10, 1);
    interrupting.join().unwrap();
    assert_eq!(counted(&outcomes, Outcome::Unknown), 2, "{outcomes:?}");
    assert_eq!(counted(&outcomes, Outcome::Shed), 8, "{outcomes:?}");
    assert_eq!(counted(&write_at_once(&pool, 1, 1), Outcome::Shed), 1);
}

/// A store with one long series.
#[derive(Debug)]
struct LongSeries;

/// An answer of 17 MB: more than the buffers of two sockets hold.
const LONG: i64 = 400_000;

impl SampleReader for LongSeries {
    fn samples(&mut self, _: &SeriesKey, _: Timestamp, _: Timestamp, take: &mut Take<'_>) -> Result<(), String> {
        for millis in 0..LONG {
            let _ = take(&[Timestamp::from_millis(1_500_000_000_000 + millis)], &[0.5]);
        }
        Ok(())
    }

    fn newest(&mut self, keys: &[SeriesKey]) -> Result<Vec<Option<Timestamp>>, String> {
        Ok(vec![Some(Timestamp::from_millis(1_500_000_000_000 + LONG)); keys.len()])
    }

    fn keys(&self) -> Vec<SeriesKey> {
        Vec::new()
    }
}

#[test]
fn a_connection_closes_after_the_whole_of_its_last_answer() {
    let room = crate::wire::Room::default();
    let endpoint = Hawkular::new(HawkularOptions::default(), room.clone());
    let testbed = Testbed::decoding(ANY_PORT, ListenOptions::default(), move || {
        let clock = Arc::new(MonotonicClock::new()) as Arc<dyn Clock>;
        Box::new(endpoint.decoder(&clock, Box::new(LongSeries)))
    });
    let mut client = testbed.client();
    let target = "/hawkular/metrics/gauges/a/raw?start=1500000000000&end=1500001000000&limit=1000000";
    write!(
        client,
        "GET {target} HTTP/1.1\r\nConnection: close\r\nContent-Length: 4\r\n\r\nnull"
    )
    .unwrap();
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).unwrap();
    let items = memchr::memmem::find_iter(&answer, b"timestamp").count();
    assert_eq!(items as i64, LONG - 30_000, "0.15.4 leaves out the slot of the start");
    let stats = testbed.listener.stop().stats;
    assert_eq!(
        (stats.untaken_answer_bytes, stats.cut_connections, stats.malformed),
        (0, 0, 0)
    );
    assert_eq!(
        room.held.left(),
        crate::wire::Room::default().held.left(),
        "memory is given back"
    );
}
