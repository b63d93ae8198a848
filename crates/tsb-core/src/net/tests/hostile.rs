//! Hostile peers over connections: bounded, counted, and the others unharmed.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Waker;

use super::*;
use crate::series::{Catalog, SeriesKey};
use crate::time::ManualClock;
use crate::wire::{self, Fatal, Next, Protocol, Sink};

fn graphite(options: ListenOptions) -> Testbed {
    let make = || Protocol::Graphite.decoder(Arc::new(MonotonicClock::new()));
    Testbed::decoding(ANY_PORT, options, make)
}

/// A client that behaves, whatever the others do.
fn good(testbed: &Testbed) -> StreamTarget {
    let keys = (0..100).map(|index| SeriesKey::new(format!("host{index:05}.load")));
    let catalog: Catalog = keys.collect();
    let encoder = move || Protocol::Graphite.encoder(&catalog).unwrap();
    let mileposts = Some(Arc::clone(&testbed.mileposts));
    let (address, clock) = (testbed.listener.address(), Arc::clone(&testbed.clock));
    StreamTarget::connect(address, EmitOptions::default(), encoder, clock, mileposts).unwrap()
}

#[test]
fn a_line_of_a_gigabyte_is_cut_off_early() {
    let testbed = graphite(ListenOptions::default());
    let target = good(&testbed);
    let mut client = testbed.client();
    let piece = vec![b'x'; 1 << 20];
    // It is closed long before the end, and then nothing more is taken.
    let sent = (0..1 << 10).take_while(|_| client.write_all(&piece).is_ok()).count();
    assert!(sent < 64, "{sent} MiB were taken");
    let report = send_ticks(target, &*testbed.clock, 0, 100, 20);
    assert_eq!(report.closing, Closing::Confirmed);
    let stats = testbed.listener.stop().stats;
    assert_eq!((stats.samples, stats.fatal_closes, stats.malformed), (2_000, 1, 1));
    assert!(stats.bytes < 4 << 20, "{} bytes were read", stats.bytes);
}

#[test]
fn half_a_line_and_silence_ends_after_the_idle_time() {
    let testbed = graphite(ListenOptions {
        idle_timeout: Some(Duration::from_millis(300)),
        ..ListenOptions::default()
    });
    let mut half = testbed.client();
    half.write_all(b"half.a.line 1").unwrap();
    assert!(is_closed(&mut half));
    let report = send_ticks(good(&testbed), &*testbed.clock, 0, 100, 20);
    assert_eq!(report.closing, Closing::Confirmed);
    let stats = testbed.listener.stop().stats;
    assert_eq!((stats.samples, stats.idle_closes, stats.malformed), (2_000, 1, 1));
}

/// Whether the other side closes when this much time has passed since it read the last bytes.
/// It notes when that was behind their application, so the clock may move too early for it: then
/// it moves once more.
fn is_closed_after(client: &mut TcpStream, clock: &ManualClock, idle: Duration) -> bool {
    const TRIES: u32 = 30;
    client.set_read_timeout(Some(PATIENCE / TRIES)).unwrap();
    (0..TRIES).any(|_| {
        clock.advance(idle.as_nanos() as u64);
        is_closed(client)
    })
}

/// Issue 15: 1,024 idle clients locked out all others, for good.
#[test]
fn idle_clients_make_room_for_others() {
    let clock = Arc::new(ManualClock::new());
    let options = ListenOptions {
        max_connections: 8,
        ..ListenOptions::default()
    };
    let make = || Box::new(FixedDecoder::default()) as Box<dyn Decoder>;
    let testbed = Testbed::in_time(
        &Address::from(ANY_PORT),
        options,
        make,
        Arc::clone(&clock) as Arc<dyn Clock>,
    );
    let mut idle: Vec<TcpStream> = (0..8).map(|_| testbed.client()).collect();
    for (index, client) in idle.iter_mut().enumerate() {
        client.write_all(&record(index as u32, 0, 1.0)).unwrap();
    }
    testbed.await_samples(8);
    assert!(
        is_closed(&mut testbed.client()),
        "there is no room, and no connection has been idle for long"
    );
    assert!(
        idle.iter_mut()
            .all(|client| is_closed_after(client, &clock, ROOM_AFTER))
    );
    testbed.client().write_all(&record(9, 0, 1.0)).unwrap();
    testbed.await_samples(1);
    let stats = testbed.listener.stop().stats;
    assert_eq!((stats.idle_closes, stats.refused_connections, stats.samples), (8, 1, 9));
}

/// Without a crowd, silence is ended later.
#[test]
fn silence_ends_after_ten_minutes_by_default() {
    let clock = Arc::new(ManualClock::new());
    let make = || Box::new(FixedDecoder::default()) as Box<dyn Decoder>;
    let told = Arc::clone(&clock) as Arc<dyn Clock>;
    let testbed = Testbed::in_time(&Address::from(ANY_PORT), ListenOptions::default(), make, told);
    let mut silent = testbed.client();
    silent.write_all(&record(1, 0, 1.0)).unwrap();
    testbed.await_samples(1);
    assert!(is_closed_after(&mut silent, &clock, Duration::from_mins(10)));
    assert_eq!(testbed.listener.stop().stats.idle_closes, 1);
}

/// Issue 15: a socket left by a kill kept the next listener from starting.
#[test]
fn a_socket_that_nobody_listens_on_is_replaced_and_nothing_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("left.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "the standard library leaves it, as a kill does");
    let make = || Box::new(FixedDecoder::default()) as Box<dyn Decoder>;
    let testbed = Testbed::over(&Address::Unix(path.clone()), ListenOptions::default(), make);
    let why = |path: &std::path::Path| {
        let refused = Testbed::bind(&Address::Unix(path.to_owned()), ListenOptions::default()).unwrap_err();
        std::error::Error::source(&refused).unwrap().to_string()
    };
    assert_eq!(why(&path), "another process listens on this socket");
    drop(testbed);
    let file = folder.path().join("file");
    std::fs::write(&file, "kept").unwrap();
    assert_eq!(why(&file), "the path exists and is not a socket");
    assert_eq!(std::fs::read(&file).unwrap(), b"kept");
}

#[test]
fn ten_thousand_connections_are_refused_beyond_the_limit() {
    const CONNECTIONS: usize = 10_000;
    let testbed = graphite(ListenOptions {
        max_connections: 100,
        ..ListenOptions::default()
    });
    let mut target = good(&testbed);
    let values = [1.0; 100];
    let mut send = |second| {
        let batch = Batch::tick(SeriesId(0), Timestamp::from_secs(second), &values);
        let due = testbed.clock.now();
        hand_over(&mut target, batch, due);
        target.idle();
    };
    send(0);
    testbed.await_samples(100);
    // With the target they are all that may connect, and they stay, so every later one is refused.
    let admitted: Vec<_> = (1..100).map(|_| testbed.client()).collect();
    testbed.await_stats(|stats| stats.open_connections == 100);
    // As many at a time as a machine with few descriptors can hold.
    let mut held = VecDeque::new();
    for index in 0..CONNECTIONS {
        held.push_back(testbed.client());
        if held.len() > 300 {
            held.pop_front();
        }
        if index % 1_000 == 0 {
            assert!(testbed.listener.stats().open_connections <= 100);
            send(1 + index as i64 / 1_000);
        }
    }
    // Before anything ends and makes room.
    testbed.await_stats(|stats| stats.connections + stats.refused_connections == CONNECTIONS as u64 + 100);
    let report = target.finish();
    assert_eq!(report.closing, Closing::Confirmed);
    drop((held, admitted));
    let stats = testbed.listener.stop().stats;
    assert_eq!(
        (stats.connections, stats.refused_connections),
        (100, CONNECTIONS as u64)
    );
    assert_eq!((stats.samples, stats.open_connections), (1_100, 0));
}

#[test]
fn connections_over_unix_sockets_are_as_good_as_over_tcp() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ingest.sock");
    let testbed = Testbed::over(&Address::Unix(path.clone()), ListenOptions::default(), || {
        Box::new(FixedDecoder::default())
    });
    let (count, ticks) = (300, 100);
    let reports: Vec<TargetReport> = thread::scope(|scope| {
        let emitters: Vec<_> = (0..3)
            .map(|worker| {
                let target = testbed.target(EmitOptions::default());
                let clock = &*testbed.clock;
                scope.spawn(move || send_ticks(target, clock, worker * 1_000, count, ticks))
            })
            .collect();
        emitters.into_iter().map(|emitter| emitter.join().unwrap()).collect()
    });
    assert!(reports.iter().all(|report| report.closing == Closing::Confirmed));
    let taken = Testbed::bind(&Address::Unix(path.clone()), ListenOptions::default());
    assert!(matches!(taken, Err(NetError::Bind { .. })), "the path is in use");
    let received = testbed.listener.stop();
    assert_eq!(received.stats.samples, 3 * count as u64 * u64::from(ticks));
    assert_eq!(received.timing.response.count(), 3 * u64::from(ticks));
    for worker in 0..3 {
        assert_ticks(&testbed.test_ingest, worker * 1_000, count, ticks);
    }
    assert!(!path.exists(), "the file is removed");
}

/// Takes nothing as long as its work goes on elsewhere.
#[derive(Clone, Debug, Default)]
struct Busy {
    is_done: Arc<AtomicBool>,
    waker: Arc<Mutex<Option<Waker>>>,
}

impl Decoder for Busy {
    fn decode(&mut self, bytes: &[u8], _sink: &mut dyn Sink) -> Result<usize, Fatal> {
        Ok(if self.is_done.load(Ordering::Acquire) {
            bytes.len()
        } else {
            0
        })
    }

    fn answer(&mut self, _peer: wire::Peer, out: &mut Vec<u8>) -> Next {
        if !self.is_done.load(Ordering::Acquire) {
            return Next::Later;
        }
        if self.waker.lock().unwrap().take().is_some() {
            out.extend_from_slice(b"done");
        }
        Next::Over
    }

    fn wake_with(&mut self, waker: &Waker) {
        *self.waker.lock().unwrap() = Some(waker.clone());
    }

    fn sequence(&self) -> Option<wire::Sequence> {
        None
    }

    fn finish(&mut self, _rest: &[u8], _sink: &mut dyn Sink) {}
}

/// Issue 15: a command that takes long held up every client of its thread.
#[test]
fn work_elsewhere_holds_up_its_own_connection_only() {
    let busy = Busy::default();
    let (first, is_first) = (Mutex::new(busy.clone()), AtomicBool::new(true));
    let make = move || -> Box<dyn Decoder> {
        if is_first.swap(false, Ordering::AcqRel) {
            Box::new(first.lock().unwrap().clone())
        } else {
            Box::new(FixedDecoder::default())
        }
    };
    let testbed = Testbed::decoding(ANY_PORT, ListenOptions::default(), make);
    let mut waiting = testbed.client();
    waiting.write_all(b"work").unwrap();
    while testbed.listener.stats().bytes < 4 {
        thread::yield_now();
    }
    testbed.client().write_all(&record(1, 0, 1.0)).unwrap();
    while testbed.test_ingest.arrived.lock().unwrap().is_empty() {
        thread::yield_now();
    }
    busy.is_done.store(true, Ordering::Release);
    let waker = busy.waker.lock().unwrap().clone();
    waker.unwrap().wake();
    let mut said = String::new();
    waiting.read_to_string(&mut said).unwrap();
    assert_eq!(said, "done");
}
