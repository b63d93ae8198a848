//! Emitter, socket, listener, decoder and store in one process: what `ingest_loopback`
//! times and `loopback_table` prints.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tsb_core::emit::{Operation, Outcome, Target};
use tsb_core::net::{
    Address, AnyListener, AnyTarget, Carrier, DatagramTarget, Decoders, EmitOptions, Intake, IntakeSink, ListenOptions,
    Mileposts, Registry, Runtime, StreamTarget,
};
use tsb_core::net::{ListenerReport, TargetReport};
use tsb_core::schedule::Slot;
use tsb_core::time::{Clock, MonotonicClock, thread_cpu_ns};
use tsb_core::wire::{Fatal, Malformed, NotAdmitted, Protocol, Sink};
use tsb_core::{Batch, SeriesId, SeriesKey, Timestamp};
use tsb_stores::{Refusals, Store};

use crate::mix;

/// Longer than any wait of a benchmark takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// Samples that may be on their way over UDP, where nothing holds up the sender: their
/// datagrams fit into the receive buffer.
const IN_FLIGHT: u64 = 4 * mix::SERIES as u64;

/// What of the receive buffer is asked for.
const RECEIVE_BUFFER: usize = 64 << 20;

/// The sockets between emitter and listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// TCP.
    Tcp,
    /// UDP, with segmentation where the kernel has it.
    Udp,
    /// A Unix stream socket.
    Unix,
    /// A Unix datagram socket.
    Unixgram,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Tcp, Self::Udp, Self::Unix, Self::Unixgram];

    /// As the identifier of a benchmark.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Unix => "unix",
            Self::Unixgram => "unixgram",
        }
    }

    fn carrier(self) -> Carrier {
        match self {
            Self::Tcp | Self::Unix => Carrier::Stream,
            Self::Udp | Self::Unixgram => Carrier::Datagrams,
        }
    }

    fn address(self) -> Address {
        match self {
            Self::Tcp | Self::Udp => Address::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            Self::Unix | Self::Unixgram => {
                let name = format!(
                    "tsb-bench-{}-{}.sock",
                    std::process::id(),
                    MonotonicClock::new().wall().0
                );
                Address::Unix(std::path::Path::new("/tmp").join(name))
            }
        }
    }
}

/// The way from an emitter to a store, open.
#[derive(Debug)]
pub struct Loopback {
    // Dropped in this order.
    target: AnyTarget,
    listener: AnyListener,
    _runtime: Runtime,
    arrivals: Arc<Arrivals>,
    clock: Arc<dyn Clock>,
    way: Way,
    sent: u64,
}

/// What the sink of the connection says to the emitting thread.
#[derive(Debug, Default)]
pub struct Arrivals {
    applied: Mutex<u64>,
    goal: AtomicU64,
    has_come: Condvar,
    /// CPU time of the ingest thread when it last applied something.
    ingest_cpu_ns: AtomicU64,
    /// What came, if it is kept to be compared.
    kept: Option<Mutex<Vec<(SeriesId, Timestamp, u64)>>>,
}

impl Arrivals {
    fn applied(&self) -> MutexGuard<'_, u64> {
        self.applied.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Hands batches to a store, or to nobody.
#[derive(Debug)]
struct StoreSink {
    store: Option<Arc<dyn Store>>,
    registry: Arc<Registry>,
    arrivals: Arc<Arrivals>,
    refusals: Refusals,
    pending: u64,
    is_broken: bool,
}

impl Sink for StoreSink {
    fn series(&mut self, key: &SeriesKey) -> Result<SeriesId, NotAdmitted> {
        self.registry.resolve(key)
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        self.pending += batch.len() as u64;
        if let Some(kept) = &self.arrivals.kept {
            let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
            kept.extend(batch.iter().map(|(id, at, value)| (id, at, value.to_bits())));
        }
        if let Some(store) = &self.store {
            let written = store.write(batch, &mut self.refusals);
            self.is_broken |= !written.is_ok_and(|ack| ack.accepted == batch.len());
        }
    }

    fn refused(&mut self, _why: NotAdmitted, _samples: usize) {
        self.is_broken = true;
    }

    fn unannounced(&mut self, _samples: usize) {
        self.is_broken = true;
    }

    fn malformed(&mut self, _problem: &Malformed<'_>) {
        self.is_broken = true;
    }
}

impl IntakeSink for StoreSink {
    fn apply(&mut self, _consumed: u64) -> Result<u64, Fatal> {
        if self.is_broken {
            return Err(Fatal {
                what: "a sample of the benchmark was not taken",
            });
        }
        self.arrivals.ingest_cpu_ns.store(thread_cpu_ns(), Ordering::Relaxed);
        let mut applied = self.arrivals.applied();
        *applied += std::mem::take(&mut self.pending);
        if *applied >= self.arrivals.goal.load(Ordering::Acquire) {
            self.arrivals.has_come.notify_one();
        }
        Ok(0)
    }
}

impl Loopback {
    /// One socket that speaks `protocol` and carries the `mix` fleet into `store`, or
    /// nowhere. With `keeps` everything that arrives is kept to be compared.
    ///
    /// # Panics
    /// When the machine has no loopback.
    #[expect(clippy::expect_used, reason = "a benchmark without sockets is of no use")]
    pub fn open(protocol: Protocol, way: Way, store: Option<Arc<dyn Store>>, keeps: bool) -> Self {
        let runtime = Runtime::start().expect("a thread");
        let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
        let catalog = mix::catalog();
        if let Some(store) = &store {
            store.define(&catalog.definitions()).expect("the fleet fits the store");
        }
        let arrivals = Arc::new(Arrivals {
            kept: keeps.then(Mutex::default),
            ..Arrivals::default()
        });
        let refuse = |_, _: &SeriesKey| Err("not of the fleet".to_owned());
        let registry = Arc::new(Registry::with_catalog(catalog.clone(), catalog.len(), refuse));
        let (told, decoder_clock) = (Arc::clone(&arrivals), Arc::clone(&clock));
        let decoders = Decoders::new(protocol, way.carrier());
        let ingest = move |_: &Address| Intake {
            decoder: decoders.make(Arc::clone(&decoder_clock)),
            sink: Box::new(StoreSink {
                store: store.clone(),
                registry: Arc::clone(&registry),
                arrivals: Arc::clone(&told),
                refusals: Refusals::new(),
                pending: 0,
                is_broken: false,
            }),
        };
        let mileposts = Mileposts::new(1 << 16);
        let options = ListenOptions {
            receive_buffer_bytes: (way.carrier() == Carrier::Datagrams).then_some(RECEIVE_BUFFER),
            ..ListenOptions::default()
        };
        let (told, marks) = (Arc::clone(&clock), Some(Arc::clone(&mileposts)));
        let listener = AnyListener::bind(
            runtime.handle(),
            way.carrier(),
            &way.address(),
            options,
            ingest,
            told,
            marks,
        );
        let listener = listener.expect("a socket on this machine");
        let options = EmitOptions::default();
        let (address, told, marks) = (listener.address(), Arc::clone(&clock), Some(mileposts));
        let target = match way.carrier() {
            Carrier::Stream | Carrier::Requests => {
                let encoder = move || protocol.encoder(&catalog).expect("the fleet has plain names");
                StreamTarget::connect(address, options, encoder, told, marks)
                    .map(|target| AnyTarget::Stream(Box::new(target)))
            }
            Carrier::Datagrams => {
                let limit = options.datagram_bytes;
                let packer = |session| {
                    protocol
                        .packer(&catalog, limit, session)
                        .expect("the fleet has plain names")
                };
                DatagramTarget::connect(address, options, packer, told, marks.as_deref())
                    .map(|target| AnyTarget::Datagrams(Box::new(target)))
            }
        };
        Self {
            target: target.expect("the listener answers"),
            listener,
            _runtime: runtime,
            arrivals,
            clock,
            way,
            sent: 0,
        }
    }

    /// The clock of it all.
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Sends one tick of the whole fleet in operations of `length` samples.
    ///
    /// # Panics
    /// When the connection breaks.
    pub fn send(&mut self, at: Timestamp, values: &[f64], length: usize) {
        for (index, values) in values.chunks(length).enumerate() {
            let batch = Batch::tick(SeriesId((index * length) as u32), at, values);
            let due = self.clock.now();
            let outcome = self.target.send(&Operation {
                batch,
                due,
                slot: Slot::default(),
            });
            assert_eq!(outcome, Outcome::Sent, "the socket is lost");
        }
        self.sent += values.len() as u64;
        if self.way == Way::Udp {
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

    fn await_applied(&self, goal: u64) {
        self.arrivals.goal.store(goal, Ordering::Release);
        let waited = self
            .arrivals
            .has_come
            .wait_timeout_while(self.arrivals.applied(), PATIENCE, |applied| *applied < goal);
        let applied = *waited.unwrap_or_else(PoisonError::into_inner).0;
        assert!(applied >= goal, "{applied} of {goal}: {:?}", self.listener.stats());
        self.arrivals.goal.store(u64::MAX, Ordering::Release);
    }

    /// CPU time of the ingest thread up to the last bytes that it applied.
    pub fn ingest_cpu_ns(&self) -> u64 {
        self.arrivals.ingest_cpu_ns.load(Ordering::Relaxed)
    }

    /// What arrived so far, if it is kept.
    pub fn kept(&self) -> Vec<(SeriesId, Timestamp, u64)> {
        let kept = self.arrivals.kept.as_ref();
        kept.map_or_else(Vec::new, |kept| {
            kept.lock().unwrap_or_else(PoisonError::into_inner).clone()
        })
    }

    /// Ends it: both sides' reports, and all their samples equal.
    ///
    /// # Panics
    /// When the two do not agree.
    pub fn close(self) -> (TargetReport, ListenerReport) {
        let sent = self.target.finish();
        let received = self.listener.stop();
        assert_eq!(sent.samples, received.stats.samples);
        assert_eq!(sent.written_bytes, received.stats.bytes);
        assert_eq!(received.timing.response.count() + sent.untimed, sent.operations);
        (sent, received)
    }
}

/// The protocols that carry the values of the fleet with their times, each over what it
/// runs over.
pub fn ways() -> impl Iterator<Item = (Protocol, Way)> {
    let all = Protocol::ALL
        .into_iter()
        .filter(|protocol| protocol.facts().timestamps && !protocol.facts().integers_only);
    all.flat_map(|protocol| Way::ALL.map(|way| (protocol, way)))
        .filter(|(protocol, way)| match way.carrier() {
            Carrier::Stream => protocol.facts().streams,
            Carrier::Requests => protocol.facts().http,
            Carrier::Datagrams => protocol.is_packed(),
        })
}

/// Sends a few ticks and compares every sample that arrives with the one that was sent.
///
/// # Panics
/// When one is lost, altered, duplicated or out of order.
pub fn verify(protocol: Protocol, over: Way, length: usize) {
    let mut way = Loopback::open(protocol, over, None, true);
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
