//! The `mix` fleet from an emitter through a socket of this machine into a store: what
//! `ingest_loopback` times and `loopback_table` prints.

use std::sync::Arc;
use std::time::Duration;

use tsb_core::emit::{Operation, Outcome, Target};
use tsb_core::net::{AnyTarget, Carrier, ListenerTotals, TargetReport};
use tsb_core::schedule::Slot;
use tsb_core::time::Clock;
use tsb_core::wire::Protocol;
use tsb_core::{Batch, SeriesId, Timestamp};
use tsb_run::loopback::Setup;
use tsb_run::{Transport, WirePlan};
use tsb_stores::Store;

use crate::mix;

/// Longer than any wait of a benchmark takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// Samples that may be on their way over UDP, where nothing holds up the sender: their
/// datagrams fit into the receive buffer.
const IN_FLIGHT: u64 = 4 * mix::SERIES as u64;

/// What of the receive buffer is asked for.
const RECEIVE_BUFFER: u64 = 64 << 20;

/// The way from an emitter to a store, open.
#[derive(Debug)]
pub struct Loopback {
    // Dropped in this order.
    target: AnyTarget,
    inner: tsb_run::loopback::Loopback,
    transport: Transport,
    sent: u64,
}

impl Loopback {
    /// One socket that speaks `protocol` and carries the `mix` fleet into `store`, or
    /// nowhere. With `is_kept` everything that arrives is kept to be compared.
    ///
    /// # Panics
    /// When the machine has no loopback.
    #[expect(clippy::expect_used, reason = "a benchmark without sockets is of no use")]
    pub fn open(protocol: Protocol, transport: Transport, store: Option<Arc<dyn Store>>, is_kept: bool) -> Self {
        let setup = Setup {
            wire: WirePlan {
                receive_buffer_bytes: Some(RECEIVE_BUFFER),
                ..WirePlan::default()
            },
            is_timed: true,
            is_kept,
            ..Setup::new(protocol, transport)
        };
        let inner = tsb_run::loopback::Loopback::open(&setup, mix::catalog(), store).expect("a socket on this machine");
        Self {
            target: inner.connect().expect("the listener answers"),
            inner,
            transport,
            sent: 0,
        }
    }

    /// The clock of it all.
    pub fn clock(&self) -> &dyn Clock {
        &**self.inner.clock()
    }

    /// Sends one tick of the whole fleet in operations of `length` samples.
    ///
    /// # Panics
    /// When the connection breaks.
    pub fn send(&mut self, at: Timestamp, values: &[f64], length: usize) {
        for (index, values) in values.chunks(length).enumerate() {
            let batch = Batch::tick(SeriesId((index * length) as u32), at, values);
            let due = self.inner.clock().now();
            let outcome = self.target.send(&Operation::write(batch, due, Slot::default()));
            assert_eq!(outcome, Outcome::Sent, "the socket is lost");
        }
        self.sent += values.len() as u64;
        if self.transport == Transport::Udp {
            self.await_applied(self.sent.saturating_sub(IN_FLIGHT));
        }
    }

    /// Waits until everything that was sent has been applied.
    ///
    /// # Panics
    /// When it does not come.
    pub fn settle(&mut self) {
        self.target.idle();
        self.await_applied(self.sent);
    }

    #[expect(clippy::expect_used, reason = "a benchmark that loses samples is of no use")]
    fn await_applied(&self, goal: u64) {
        self.inner.await_applied(goal, PATIENCE).expect("every sample arrives");
    }

    /// CPU time of the ingest thread up to the last bytes that it applied.
    pub fn ingest_cpu_ns(&self) -> u64 {
        self.inner.ingest_cpu_ns()
    }

    /// What arrived so far, if it is kept.
    pub fn kept(&self) -> Vec<(SeriesId, Timestamp, u64)> {
        self.inner.kept()
    }

    /// Ends it: both sides' reports, and all their samples equal.
    ///
    /// # Panics
    /// When the two do not agree.
    #[expect(clippy::expect_used, reason = "a benchmark that loses samples is of no use")]
    pub fn close(self) -> (TargetReport, ListenerTotals) {
        let sent = self.target.finish();
        let received = self.inner.close().expect("every sample was taken");
        assert_eq!(sent.samples, received.stats.samples);
        assert_eq!(sent.written_bytes, received.stats.bytes);
        assert_eq!(received.timing.response.count() + sent.untimed, sent.operations);
        (sent, received)
    }
}

/// The protocols that carry the values of the fleet with their times, each over what it
/// runs over.
pub fn wires() -> impl Iterator<Item = (Protocol, Transport)> {
    let unanswered = Transport::WIRES
        .into_iter()
        .filter(|transport| !transport.is_answered());
    let all = Protocol::ALL
        .into_iter()
        .filter(|protocol| protocol.capabilities().timestamps && !protocol.capabilities().integers_only);
    all.flat_map(move |protocol| unanswered.clone().map(move |transport| (protocol, transport)))
        .filter(|(protocol, transport)| match transport.carrier() {
            Carrier::Datagrams => protocol.is_packed(),
            Carrier::Stream | Carrier::Requests => transport.carries(*protocol).is_ok(),
        })
}

/// Sends a few ticks and compares every sample that arrives with the one that was sent.
///
/// # Panics
/// When one is lost, altered, duplicated or out of order.
pub fn verify(protocol: Protocol, transport: Transport, length: usize) {
    let mut way = Loopback::open(protocol, transport, None, true);
    let mut fleet = mix::Mix::new(7);
    let (mut values, mut expected) = (Vec::new(), Vec::new());
    for tick in 0..3 {
        let at = Timestamp::from_secs(1_700_000_000 + tick);
        fleet.tick(&mut values);
        way.send(at, &values, length);
        let ids = (0..).map(SeriesId);
        expected.extend(ids.zip(&values).map(|(id, value)| (id, at, value.to_bits())));
    }
    way.settle();
    assert!(way.kept() == expected, "{protocol}: what arrived is not what was sent");
    way.close();
}
