//! Real sockets on 127.0.0.1: what is sent arrives, and what is wrong is counted.

mod fixed;
mod hostile;
mod protocols;
mod requests;
mod taken_apart;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use fixed::{BAD, ENDLESS, FixedDecoder, FixedEncoder, PANIC, RECORD, TestIngest, WORSE, record};

use super::*;
use crate::batch::Batch;
use crate::emit::{Operation, Outcome, Target};
use crate::schedule::Slot;
use crate::series::SeriesId;
use crate::time::{Clock, MonotonicClock, Timestamp};
use crate::wire::Decoder;

/// Longer than anything here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A listener and all that it needs.
struct Testbed {
    // Only kept alive.
    _runtime: Runtime,
    clock: Arc<dyn Clock>,
    mileposts: Arc<Mileposts>,
    test_ingest: TestIngest,
    applied: Receiver<usize>,
    listener: Listener,
}

impl Testbed {
    fn new(options: ListenOptions) -> Self {
        Self::at(ANY_PORT, options)
    }

    fn at(address: SocketAddr, options: ListenOptions) -> Self {
        Self::decoding(address, options, || Box::new(FixedDecoder::default()))
    }

    fn decoding<M>(address: SocketAddr, options: ListenOptions, make: M) -> Self
    where
        M: Fn() -> Box<dyn Decoder> + Send + Sync + 'static,
    {
        Self::over(&Address::from(address), options, make)
    }

    /// Only whether it can be bound.
    fn bind(address: &Address, options: ListenOptions) -> Result<Listener, NetError> {
        let runtime = Runtime::start().unwrap();
        let ingest = TestIngest::new().0.ingest(|| Box::new(FixedDecoder::default()));
        let clock = Arc::new(MonotonicClock::new());
        Listener::bind(runtime.handle(), address, options, ingest, clock, None)
    }

    fn over<M>(address: &Address, options: ListenOptions, make: M) -> Self
    where
        M: Fn() -> Box<dyn Decoder> + Send + Sync + 'static,
    {
        Self::in_time(address, options, make, Arc::new(MonotonicClock::new()))
    }

    fn in_time<M>(address: &Address, options: ListenOptions, make: M, clock: Arc<dyn Clock>) -> Self
    where
        M: Fn() -> Box<dyn Decoder> + Send + Sync + 'static,
    {
        let runtime = Runtime::start().unwrap();
        let mileposts = Mileposts::new(100_000);
        let (test_ingest, applied) = TestIngest::new();
        let listener = Listener::bind(
            runtime.handle(),
            address,
            options,
            test_ingest.ingest(make),
            Arc::clone(&clock),
            Some(Arc::clone(&mileposts)),
        );
        Self {
            listener: listener.unwrap(),
            _runtime: runtime,
            clock,
            mileposts,
            test_ingest,
            applied,
        }
    }

    fn target(&self, options: EmitOptions) -> StreamTarget {
        let mileposts = Some(Arc::clone(&self.mileposts));
        let clock = Arc::clone(&self.clock);
        let address = self.listener.address();
        StreamTarget::connect(address, options, || Box::new(FixedEncoder), clock, mileposts).unwrap()
    }

    fn client(&self) -> TcpStream {
        let client = TcpStream::connect(self.listener.address().inet().unwrap()).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client
    }

    /// Waits until at least `count` samples have been applied.
    fn await_samples(&self, count: usize) {
        let mut seen = 0;
        while seen < count {
            seen += self.applied.recv_timeout(PATIENCE).unwrap();
        }
        assert_eq!(seen, count);
    }

    /// Waits until the listener's counts are as wanted.
    fn await_stats(&self, is_wanted: impl Fn(&ListenerStats) -> bool) {
        let until_ns = self.clock.now() + PATIENCE.as_nanos() as u64;
        while !is_wanted(&self.listener.stats()) {
            assert!(self.clock.now() < until_ns, "{:?}", self.listener.stats());
            self.clock.wait_until(self.clock.now() + 1_000_000);
        }
    }
}

/// Whether the other side closed; a reset is as good as an end.
fn is_closed(client: &mut TcpStream) -> bool {
    match client.read(&mut [0; 16]) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

fn values(first: u32, tick: u32, count: usize) -> Vec<f64> {
    (0..count)
        .map(|index| f64::from(first + index as u32) * 1e6 + f64::from(tick))
        .collect()
}

/// Sends a batch that is due at `due`, all of it.
pub(super) fn hand_over(target: &mut impl Target, batch: Batch<'_>, due: u64) {
    let slot = Slot::default();
    assert_eq!(target.send(&Operation::write(batch, due, slot)), Outcome::Sent);
}

/// Sends ticks of `count` series from `first` on, and returns what the target reports.
fn send_ticks(mut target: StreamTarget, clock: &dyn Clock, first: u32, count: usize, ticks: u32) -> TargetReport {
    for tick in 0..ticks {
        let values = values(first, tick, count);
        let batch = Batch::tick(SeriesId(first), Timestamp::from_secs(i64::from(tick)), &values);
        let due = clock.now();
        hand_over(&mut target, batch, due);
        if tick % 7 == 0 {
            target.idle();
        }
    }
    target.finish()
}

fn assert_ticks(test_ingest: &TestIngest, first: u32, count: usize, ticks: u32) {
    let arrived = test_ingest.arrived.lock().unwrap();
    for id in first..first + count as u32 {
        let expected = (0..ticks).map(|tick| (tick, values(id, tick, 1)[0]));
        assert!(arrived[&id].iter().copied().eq(expected), "series {id}");
    }
}

#[test]
fn every_sample_arrives_in_order_and_every_operation_is_timed() {
    let testbed = Testbed::new(ListenOptions {
        ingest_threads: 2,
        ..ListenOptions::default()
    });
    let (count, ticks) = (300, 200);
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
    for (worker, report) in reports.iter().enumerate() {
        assert_eq!(report.closing, Closing::Confirmed);
        assert_eq!(
            (report.operations, report.untimed, report.n_errors),
            (u64::from(ticks), 0, 0)
        );
        assert_eq!(report.written_bytes, (count * RECORD) as u64 * u64::from(ticks));
        assert_ticks(&testbed.test_ingest, worker as u32 * 1_000, count, ticks);
    }
    let ListenerTotals { stats, timing, cpu } = testbed.listener.stop();
    assert!(cpu.apply_ns > 0 && cpu.wire_ns > 0 && cpu.wait_ns > 0, "{cpu:?}");
    assert_eq!(cpu.wait_ns + cpu.wire_ns + cpu.apply_ns + cpu.measure_ns, cpu.total_ns);
    let samples = 3 * count as u64 * u64::from(ticks);
    assert_eq!((stats.connections, stats.samples, stats.malformed), (3, samples, 0));
    assert_eq!((stats.bytes, stats.undecoded_bytes), (samples * RECORD as u64, 0));
    assert_eq!((stats.open_connections, stats.cut_connections), (0, 0));
    assert_eq!(timing.response.count(), 3 * u64::from(ticks));
    assert_eq!((timing.samples, timing.unfinished), (samples, 0));
    assert!(timing.response.max() >= timing.service.min());
}

#[test]
fn a_slow_sink_blocks_the_emitter_and_loses_nothing() {
    let testbed = Testbed::new(ListenOptions {
        receive_buffer_bytes: Some(64 << 10),
        ..ListenOptions::default()
    });
    let (count, ticks) = (4_096, 128);
    let target = testbed.target(EmitOptions {
        send_buffer_bytes: Some(64 << 10),
        ..EmitOptions::default()
    });
    let closed = testbed.test_ingest.gate.lock().unwrap();
    let (done, is_done) = mpsc::sync_channel(1);
    let clock = Arc::clone(&testbed.clock);
    let emitter = thread::spawn(move || {
        let report = send_ticks(target, &*clock, 0, count, ticks);
        done.send(()).unwrap();
        report
    });
    // 8 MiB do not fit into buffers of 64 KiB.
    let early = is_done.recv_timeout(Duration::from_millis(100));
    assert_eq!(early, Err(RecvTimeoutError::Timeout));
    drop(closed);
    is_done.recv_timeout(PATIENCE).unwrap();
    let report = emitter.join().unwrap();
    assert!(report.blocked_ns > 50_000_000, "blocked for {} ns", report.blocked_ns);
    assert_eq!(report.closing, Closing::Confirmed);
    assert_ticks(&testbed.test_ingest, 0, count, ticks);
    let report = testbed.listener.stop();
    assert_eq!(report.stats.samples, count as u64 * u64::from(ticks));
    // What was due while the gate was closed waited: response time shows it.
    assert!(report.timing.response.max() > Some(50_000_000));
}

#[test]
fn records_cut_at_any_byte_are_put_together() {
    let testbed = Testbed::new(ListenOptions::default());
    let mut client = testbed.client();
    client.set_nodelay(true).unwrap();
    let stream: Vec<u8> = (0..500).flat_map(|tick| record(1, tick, 0.5)).collect();
    for piece in stream.chunks(7) {
        client.write_all(piece).unwrap();
    }
    testbed.await_samples(500);
    let arrived = testbed.test_ingest.arrived.lock().unwrap();
    assert!(arrived[&1].iter().map(|sample| sample.0).eq(0..500));
}

#[test]
fn half_a_record_and_garbage_are_counted_with_an_example() {
    let testbed = Testbed::new(ListenOptions::default());
    let mut client = testbed.client();
    client.write_all(&record(1, 0, 1.0)).unwrap();
    client.write_all(&record(BAD, 0, 1.0)).unwrap();
    client.write_all(&record(2, 0, 1.0)[..9]).unwrap();
    drop(client);
    testbed.await_samples(1);
    // The end of the connection is applied too.
    testbed.applied.recv_timeout(PATIENCE).unwrap();
    let stats = testbed.listener.stop().stats;
    assert_eq!((stats.samples, stats.malformed, stats.undecoded_bytes), (1, 2, 9));
    let kinds = stats
        .malformed_kinds
        .iter()
        .map(|kind| (kind.what.as_str(), kind.count));
    assert!(kinds.eq([("bad id", 1), ("cut short", 1)]));
    assert_eq!(stats.malformed_kinds[0].examples[0].matches("\\xff").count(), 4);
}

#[test]
fn fatal_overlong_and_panicking_connections_are_closed_and_others_live() {
    let testbed = Testbed::new(ListenOptions {
        max_record_bytes: 100_000,
        ..ListenOptions::default()
    });
    let mut good = testbed.client();
    good.write_all(&record(1, 0, 1.0)).unwrap();
    testbed.await_samples(1);
    let mut fatal = testbed.client();
    fatal.write_all(&record(WORSE, 0, 0.0)).unwrap();
    assert!(is_closed(&mut fatal));
    let mut panicking = testbed.client();
    panicking.write_all(&record(PANIC, 0, 0.0)).unwrap();
    assert!(is_closed(&mut panicking));
    let mut overlong = testbed.client();
    overlong.write_all(&record(ENDLESS, 0, 0.0)).unwrap();
    // It may be closed in the middle of this.
    let _ = overlong.write_all(&vec![0; 200_000]);
    assert!(is_closed(&mut overlong));
    good.write_all(&record(1, 1, 1.0)).unwrap();
    while testbed.applied.recv_timeout(PATIENCE).unwrap() == 0 {}
    let stats = testbed.listener.stop().stats;
    let closes = (stats.fatal_closes, stats.panicked_connections, stats.overlong_closes);
    assert_eq!(closes, (1, 1, 1));
    assert_eq!(stats.malformed_kinds[0].what, "record longer than the listener's limit");
    assert_eq!(stats.cut_connections, 1);
    assert_eq!(testbed.test_ingest.arrived.lock().unwrap()[&1].len(), 2);
}

#[test]
fn connections_beyond_the_limit_are_refused_until_one_goes() {
    let testbed = Testbed::new(ListenOptions {
        max_connections: 2,
        ..ListenOptions::default()
    });
    let mut taken: Vec<TcpStream> = (0..2).map(|_| testbed.client()).collect();
    for client in &mut taken {
        client.write_all(&record(1, 0, 1.0)).unwrap();
    }
    testbed.await_samples(2);
    for _ in 0..20 {
        assert!(is_closed(&mut testbed.client()));
    }
    let stats = testbed.listener.stats();
    assert_eq!(
        (stats.connections, stats.refused_connections, stats.open_connections),
        (2, 20, 2)
    );
    let mut leaver = taken.remove(0);
    leaver.shutdown(std::net::Shutdown::Write).unwrap();
    assert!(is_closed(&mut leaver));
    testbed.client().write_all(&record(2, 0, 1.0)).unwrap();
    while testbed.applied.recv_timeout(PATIENCE).unwrap() == 0 {}
    let stats = testbed.listener.stop().stats;
    assert_eq!((stats.connections, stats.samples), (3, 3));
}

#[test]
fn silence_is_closed_when_told_so_and_cut_at_the_end_otherwise() {
    let testbed = Testbed::new(ListenOptions {
        idle_timeout: Some(Duration::from_millis(20)),
        ..ListenOptions::default()
    });
    let mut silent = testbed.client();
    silent.write_all(&record(1, 0, 1.0)[..5]).unwrap();
    assert!(is_closed(&mut silent));
    let stats = testbed.listener.stop().stats;
    assert_eq!(
        (stats.idle_closes, stats.cut_connections, stats.undecoded_bytes),
        (1, 0, 5)
    );

    let testbed = Testbed::new(ListenOptions::default());
    let mut silent = testbed.client();
    let stats = testbed.listener.stop().stats;
    assert_eq!((stats.idle_closes, stats.cut_connections), (0, 1));
    assert!(is_closed(&mut silent));
}

#[test]
fn an_abrupt_reset_is_counted_and_harms_nobody() {
    let testbed = Testbed::new(ListenOptions::default());
    let mut rude = testbed.client();
    rude.write_all(&record(1, 0, 1.0)).unwrap();
    testbed.await_samples(1);
    socket2::SockRef::from(&rude).set_linger(Some(Duration::ZERO)).unwrap();
    drop(rude);
    let report = send_ticks(testbed.target(EmitOptions::default()), &*testbed.clock, 10, 5, 50);
    assert_eq!(report.closing, Closing::Confirmed);
    assert_ticks(&testbed.test_ingest, 10, 5, 50);
    let stats = testbed.listener.stop().stats;
    assert_eq!((stats.broken_connections, stats.samples), (1, 251));
}

#[test]
fn stopping_drains_what_was_received() {
    for round in 0..20 {
        let testbed = Testbed::new(ListenOptions::default());
        let mut client = testbed.client();
        let stream: Vec<u8> = (0..2_000).flat_map(|tick| record(round, tick, 0.5)).collect();
        client.write_all(&stream).unwrap();
        // Neither accepted nor read yet, perhaps; but received.
        let stats = testbed.listener.stop().stats;
        assert_eq!((stats.samples, stats.connections), (2_000, 1), "round {round}");
        assert!(is_closed(&mut client));
    }
}

#[test]
fn a_lost_connection_is_unknown_then_shed_then_made_anew() {
    let testbed = Testbed::new(ListenOptions::default());
    let address = testbed.listener.address().inet().unwrap();
    let mut target = testbed.target(EmitOptions {
        flush_bytes: 1,
        reconnect_after: Some(Duration::from_millis(1)),
        ..EmitOptions::default()
    });
    let values = [1.0; 10];
    let at = Timestamp::from_secs(1);
    let operation = Operation::write(Batch::tick(SeriesId(0), at, &values), 0, Slot::default());
    assert_eq!(target.send(&operation), Outcome::Sent);
    testbed.await_samples(10);
    // Stops, and resets the connection when more arrives.
    testbed.listener.stop();
    let mut lost = target.send(&operation);
    while lost == Outcome::Sent {
        lost = target.send(&operation);
    }
    assert_eq!(lost, Outcome::Unknown);
    let clock = &*testbed.clock;
    clock.wait_until(clock.now() + 2_000_000);
    assert_eq!(target.send(&operation), Outcome::Shed);
    let text = target.report().errors[0].to_string();
    assert!(
        text.starts_with(&format!("connection to {address} lost after")),
        "{text}"
    );
    let refused = target.report().errors[1].to_string();
    assert_eq!(refused, format!("cannot connect to {address}"));
    let again = Testbed::at(address, ListenOptions::default());
    clock.wait_until(clock.now() + 2_000_000);
    assert_eq!(target.send(&operation), Outcome::Sent);
    let report = target.finish();
    assert_eq!(
        (report.connections, report.shed_samples, report.unsent_samples),
        (2, 10, 0)
    );
    assert_eq!(report.closing, Closing::Confirmed);
    assert_eq!(again.listener.stop().stats.samples, 10);
}

#[test]
fn a_peer_that_reads_nothing_is_given_up_or_interrupted() {
    let deaf = std::net::TcpListener::bind(ANY_PORT).unwrap();
    let address = Address::from(deaf.local_addr().unwrap());
    let connect = |stall_timeout| {
        let options = EmitOptions {
            stall_timeout,
            close_timeout: Duration::from_millis(10),
            ..EmitOptions::default()
        };
        let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
        let encoder = || -> Box<dyn crate::wire::Encoder> { Box::new(FixedEncoder) };
        StreamTarget::connect(&address, options, encoder, clock, None).unwrap()
    };
    let values = vec![1.0; 10_000];
    let operation = Operation::write(
        Batch::tick(SeriesId(0), Timestamp::from_secs(1), &values),
        0,
        Slot::default(),
    );
    let mut target = connect(Some(Duration::from_millis(20)));
    while target.send(&operation) == Outcome::Sent {}
    assert!(matches!(
        target.report().errors[0],
        NetError::Stalled { after_ms: 20, .. }
    ));
    let mut target = connect(None);
    let interrupter = target.interrupter();
    let waiter = thread::spawn(move || interrupter.interrupt());
    while target.send(&operation) == Outcome::Sent {}
    assert!(matches!(target.report().errors[0], NetError::Interrupted { .. }));
    waiter.join().unwrap();
    let target = connect(None);
    assert_eq!(target.finish().closing, Closing::TimedOut);
}
