//! Emitter, socket, listener, decoder and store in one process: what `ingest_loopback`
//! times and `loopback_table` prints.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tsb_core::emit::{Operation, Outcome, Target};
use tsb_core::net::{
    EmitOptions, Intake, IntakeSink, ListenOptions, Listener, Mileposts, Registry, Runtime, TcpTarget,
};
use tsb_core::net::{ListenerReport, TargetReport};
use tsb_core::time::{Clock, MonotonicClock, thread_cpu_ns};
use tsb_core::wire::{Fatal, Malformed, Protocol, Sink};
use tsb_core::{Batch, SeriesId, SeriesKey, Timestamp};
use tsb_stores::{Refusals, Store};

use crate::mix;

/// Longer than any wait of a benchmark takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// The way from an emitter to a store, open.
#[derive(Debug)]
pub struct Loopback {
    // Dropped in this order.
    target: TcpTarget,
    listener: Listener,
    _runtime: Runtime,
    arrivals: Arc<Arrivals>,
    clock: Arc<dyn Clock>,
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
    fn series(&mut self, key: &SeriesKey) -> Option<SeriesId> {
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

    fn refused(&mut self, _samples: usize) {
        self.is_broken = true;
    }

    fn malformed(&mut self, _problem: &Malformed<'_>) {
        self.is_broken = true;
    }
}

impl IntakeSink for StoreSink {
    fn apply(&mut self, _consumed: u64) -> Result<(), Fatal> {
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
        Ok(())
    }
}

impl Loopback {
    /// One connection that speaks `protocol` and carries the `mix` fleet into `store`, or
    /// nowhere. With `keeps` everything that arrives is kept to be compared.
    ///
    /// # Panics
    /// When the machine has no loopback.
    #[expect(clippy::expect_used, reason = "a benchmark without sockets is of no use")]
    pub fn open(protocol: Protocol, store: Option<Arc<dyn Store>>, keeps: bool) -> Self {
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
        let ingest = move |_peer| Intake {
            decoder: protocol.decoder(Arc::clone(&decoder_clock)),
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
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = Listener::bind(
            runtime.handle(),
            address,
            ListenOptions::default(),
            ingest,
            Arc::clone(&clock),
            Some(Arc::clone(&mileposts)),
        );
        let listener = listener.expect("a port on loopback");
        let encoder = move || protocol.encoder(&catalog).expect("the fleet has plain names");
        let options = EmitOptions::default();
        let target = TcpTarget::connect(
            listener.address(),
            options,
            encoder,
            Arc::clone(&clock),
            Some(mileposts),
        );
        Self {
            target: target.expect("the listener answers"),
            listener,
            _runtime: runtime,
            arrivals,
            clock,
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
            let outcome = self.target.send(&Operation { batch, due });
            assert_eq!(outcome, Outcome::Sent, "{:?}", self.target.report().errors);
        }
        self.sent += values.len() as u64;
    }

    /// Waits until everything that was sent has been applied.
    ///
    /// # Panics
    /// When it does not come.
    pub fn settle(&mut self) {
        self.target.idle();
        self.arrivals.goal.store(self.sent, Ordering::Release);
        let waited = self
            .arrivals
            .has_come
            .wait_timeout_while(self.arrivals.applied(), PATIENCE, |applied| *applied < self.sent);
        let applied = *waited.unwrap_or_else(PoisonError::into_inner).0;
        assert_eq!(applied, self.sent, "{:?}", self.listener.stats());
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

/// Sends a few ticks and compares every sample that arrives with the one that was sent.
///
/// # Panics
/// When one is lost, altered, duplicated or out of order.
pub fn verify(protocol: Protocol, length: usize) {
    let mut way = Loopback::open(protocol, None, true);
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
