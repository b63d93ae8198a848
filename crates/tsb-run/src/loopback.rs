//! The path of a sample on this machine without a run around it: targets, sockets, a listener and a
//! store, or nothing where the store would be.
//!
//! A [`Loopback`] has the listener and the targets of a run over a wire, but one ingest thread, and it
//! closes a connection that is idle for 10 minutes. The caller decides what is sent and when: benchmarks do, which time that path, and programs that
//! bring load of their own. Every sample must be taken: one that is malformed, unknown or refused
//! by the store breaks the loopback, and its calls say why.
//!
//! ```
//! use std::time::Duration;
//! use tsb_core::emit::{Operation, Outcome, Target};
//! use tsb_core::schedule::Slot;
//! use tsb_core::wire::Protocol;
//! use tsb_core::{Batch, Catalog, SeriesId, SeriesKey, Timestamp};
//! use tsb_run::Transport;
//! use tsb_run::loopback::{Loopback, Setup};
//!
//! let catalog: Catalog = ["a", "b"].map(SeriesKey::new).into_iter().collect();
//! let loopback = Loopback::open(&Setup::new(Protocol::Graphite, Transport::Tcp), catalog, None)?;
//! let mut target = loopback.connect()?;
//! let batch = Batch::tick(SeriesId(0), Timestamp::from_secs(1_700_000_000), &[1.0, 2.0]);
//! let (due, slot) = (loopback.clock().now(), Slot::default());
//! assert_eq!(target.send(&Operation::write(batch, due, slot)), Outcome::Sent);
//! target.idle();
//! loopback.await_applied(2, Duration::from_mins(1))?;
//! target.finish();
//! assert_eq!(loopback.close()?.stats.samples, 2);
//! # Ok::<(), tsb_run::Error>(())
//! ```

mod arrivals;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tsb_core::net::{Address, AnyListener, AnyTarget, Carrier, ListenOptions, ListenerStats, ListenerTotals, Runtime};
use tsb_core::time::{Clock, MonotonicClock};
use tsb_core::wire::{Protocol, UnsupportedSeries};
use tsb_core::{Catalog, SeriesId, Timestamp};
use tsb_stores::Store;

use crate::error::Error;
use crate::plan::{Transport, WirePlan};
use crate::run::route::{self, Route};
use crate::run::{Rejects, SinkTotals, StoreSink, Writer};
use arrivals::{Arrivals, ArrivalsSink};

/// What a [`Loopback`] is made of.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How samples become bytes.
    pub protocol: Protocol,
    /// What carries the bytes; not `inproc`.
    pub transport: Transport,
    /// The options of both ends.
    pub wire: WirePlan,
    /// The folder for Unix sockets.
    pub sockets: PathBuf,
    /// Whether the report of the listener says how long operations took until they were applied.
    pub is_timed: bool,
    /// Whether everything that arrives is kept to be compared.
    pub is_kept: bool,
}

impl Setup {
    /// A protocol over a transport with default options and Unix sockets in `/tmp`; operations are
    /// not timed, and nothing is kept.
    pub fn new(protocol: Protocol, transport: Transport) -> Self {
        Self {
            protocol,
            transport,
            wire: WirePlan::default(),
            sockets: "/tmp".into(),
            is_timed: false,
            is_kept: false,
        }
    }

    /// Refuses what the protocol and the transport cannot do.
    fn check(&self, catalog: &Catalog) -> Result<(), Error> {
        let (protocol, transport) = (self.protocol, self.transport);
        let failure = || Error::plan(format!("cannot send {protocol} over {}", transport.name()));
        if !transport.is_wire() {
            return Err(failure().because_of("it has no socket"));
        }
        transport.carries(protocol).map_err(|why| failure().because_of(why))?;
        self.wire.check()?;
        let carried: Result<(), UnsupportedSeries> = match transport.carrier() {
            Carrier::Stream | Carrier::Requests => protocol.encoder(catalog).map(drop),
            Carrier::Datagrams => protocol.packer(catalog, self.wire.datagram_bytes, 0).map(drop),
        };
        carried.map_err(|error| failure().because(&error))
    }

    fn listen_options(&self, series: usize) -> ListenOptions {
        let is_datagrams = self.transport.carrier() == Carrier::Datagrams;
        ListenOptions {
            receive_buffer_bytes: is_datagrams.then(|| self.wire.receive_buffer(series)),
            gro: self.wire.gro,
            ..ListenOptions::default()
        }
    }
}

/// A listener on this machine with one ingest thread, and what it applied. Finish or drop its
/// targets before it.
#[derive(Debug)]
pub struct Loopback {
    // Dropped in this order.
    listener: AnyListener,
    runtime: Runtime,
    route: Route,
    wire: WirePlan,
    catalog: Arc<Catalog>,
    arrivals: Arc<Arrivals>,
    totals: Arc<SinkTotals>,
}

impl Loopback {
    /// Listens for the series of `catalog`, defines them in `store`, and writes what arrives to it;
    /// without a store, samples are counted only.
    ///
    /// # Errors
    /// [`Error::Plan`] where the protocol cannot carry these series over this transport,
    /// [`Error::Unreachable`] where the store does not define them or the machine has no such
    /// socket, [`Error::Internal`] where the network runtime does not start.
    pub fn open(setup: &Setup, catalog: Catalog, store: Option<Arc<dyn Store>>) -> Result<Self, Error> {
        setup.check(&catalog)?;
        if let Some(store) = &store {
            let defined = store.define(&catalog.definitions());
            defined.map_err(|error| Error::unreachable(format!("cannot define series in {store}")).because(&error))?;
        }
        let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
        let mut route = Route::new(setup.protocol, setup.transport, &clock);
        if setup.is_timed {
            route = route.timed();
        }
        let runtime = route::runtime()?;
        let arrivals = Arc::new(Arrivals::new(setup.is_kept));
        let (rejects, totals) = (Arc::new(Rejects::new()), Arc::new(SinkTotals::default()));
        let registry = route::only(catalog.clone(), catalog.len());
        let sink = {
            let (arrivals, totals) = (Arc::clone(&arrivals), Arc::clone(&totals));
            move || {
                let sink = store.as_ref().map(|store| {
                    let writer = Writer::new(Arc::clone(store), Arc::clone(&rejects), Arc::clone(&totals));
                    StoreSink::new(writer, Arc::clone(&registry))
                });
                ArrivalsSink::new(Arc::clone(&registry), sink, Arc::clone(&arrivals))
            }
        };
        let options = setup.listen_options(catalog.len());
        let listener = route.listen_here(&runtime, &setup.sockets, options, sink)?;
        Ok(Self {
            listener,
            runtime,
            route,
            wire: setup.wire.clone(),
            catalog: Arc::new(catalog),
            arrivals,
            totals,
        })
    }

    /// A target that sends to it, as one emitting thread of a run has it.
    ///
    /// # Errors
    /// [`Error::Unreachable`] where the listener does not answer.
    pub fn connect(&self) -> Result<AnyTarget, Error> {
        let address = self.address();
        let target = self
            .route
            .connect(address, &self.wire, 1, &self.catalog, |catalog| catalog);
        target.map_err(|error| Error::unreachable(format!("cannot send to {address}")).because(&error))
    }

    /// Where it listens, for senders of the caller's own.
    pub fn address(&self) -> &Address {
        self.listener.address()
    }

    /// The clock of both ends, on which operations are due.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.route.clock
    }

    /// Samples that were applied so far.
    pub fn applied(&self) -> u64 {
        self.arrivals.applied()
    }

    /// Waits until `samples` samples have been applied, for at most `patience`. One thread at a
    /// time may wait.
    ///
    /// # Errors
    /// [`Error::Internal`] when they do not come, or when a sample was not taken.
    pub fn await_applied(&self, samples: u64, patience: Duration) -> Result<(), Error> {
        let applied = self.arrivals.wait(samples, patience);
        self.check()?;
        if applied < samples {
            let (seconds, stats) = (patience.as_secs_f64(), self.stats());
            return Err(
                Error::internal(format!("{applied} of {samples} samples were applied in {seconds} s"))
                    .because_of(format!("the listener has counted {stats:?}")),
            );
        }
        Ok(())
    }

    /// CPU time of the ingest thread up to the last bytes that it applied, in nanoseconds.
    pub fn ingest_cpu_ns(&self) -> u64 {
        self.arrivals.ingest_cpu_ns()
    }

    /// What the listener has counted so far.
    pub fn stats(&self) -> ListenerStats {
        self.listener.stats()
    }

    /// What arrived so far, if it is kept: series, times and the bits of the values, in order.
    pub fn kept(&self) -> Vec<(SeriesId, Timestamp, u64)> {
        self.arrivals.kept()
    }

    /// Applies what was received, and stops. The store stays open: it is the caller's.
    ///
    /// # Errors
    /// [`Error::Internal`] when a sample was not taken.
    pub fn close(self) -> Result<ListenerTotals, Error> {
        let Self {
            listener,
            runtime,
            arrivals,
            totals,
            ..
        } = self;
        let report = listener.stop();
        runtime.stop();
        check(&arrivals, &totals).map(|()| report)
    }

    fn check(&self) -> Result<(), Error> {
        check(&self.arrivals, &self.totals)
    }
}

/// Why a sample was not taken, if one was not.
fn check(arrivals: &Arrivals, totals: &SinkTotals) -> Result<(), Error> {
    let broken = || Error::internal("cannot apply a sample");
    if let Some(error) = totals.failure().or_else(|| totals.hindrance()) {
        return Err(broken().because(&*error));
    }
    match arrivals.broken() {
        Some(why) => Err(broken().because_of(why)),
        None => Ok(()),
    }
}
