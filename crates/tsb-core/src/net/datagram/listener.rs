//! The listener of datagrams: sockets, their threads, and what they counted.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::inlet::Inlet;
use super::receiver::Receiver;
use crate::net::address::Address;
use crate::net::cpu::IngestCpu;
use crate::net::error::NetError;
use crate::net::glance::Glance;
use crate::net::ingest::Ingest;
use crate::net::link::Shared;
use crate::net::listener::ListenerReport;
use crate::net::milepost::{Mileposts, Timing};
use crate::net::options::{Granted, ListenOptions};
use crate::net::stats::{ListenerStats, add};
use crate::time::Clock;

/// Receives datagrams, decodes each by itself, and has their samples applied.
///
/// With several ingest threads each has a UDP socket of its own on one port, and the kernel
/// gives each sender to one of them. Dropping it without [`DatagramListener::stop`] stops it
/// as well, and forgets its counts.
#[derive(Debug)]
pub struct DatagramListener {
    address: Address,
    granted: Granted,
    merges: bool,
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    threads: Vec<Hand>,
}

#[derive(Debug)]
struct Hand {
    timing: Arc<Mutex<Timing>>,
    thread: Option<thread::JoinHandle<IngestCpu>>,
}

impl DatagramListener {
    /// Listens on `address` (port 0: any free one; a Unix path must not exist, or be a socket
    /// that nobody reads any more, which is replaced) and serves at once.
    ///
    /// `clock` is that of the run; with `mileposts` the operations of targets that share
    /// them are timed. Whoever passes an address other than loopback exposes the ingest to
    /// the network: there is no authentication, and senders can be forged.
    ///
    /// # Errors
    /// [`NetError::Bind`], or [`NetError::Start`] when there is no thread to spare.
    pub fn bind(
        address: &Address,
        options: ListenOptions,
        ingest: impl Ingest + 'static,
        clock: Arc<dyn Clock>,
        mileposts: Option<Arc<Mileposts>>,
    ) -> Result<Self, NetError> {
        let failed = |source: io::Error| NetError::Bind {
            address: address.clone(),
            source,
        };
        // A Unix socket has one queue, whatever the number of its readers.
        let sockets = if address.inet().is_some() {
            options.ingest_threads.max(1)
        } else {
            1
        };
        let first = Inlet::bind(address, &options, sockets > 1).map_err(failed)?;
        let bound = first.address.clone();
        let mut inlets = vec![first];
        for _ in 1..sockets {
            inlets.push(Inlet::bind(&bound, &options, true).map_err(failed)?);
        }
        let mut new = Self {
            address: bound,
            granted: inlets.first().map(|inlet| inlet.granted).unwrap_or_default(),
            merges: inlets.iter().all(|inlet| inlet.merges),
            shared: Shared::new(options, ingest, clock, mileposts),
            stop: Arc::default(),
            threads: Vec::new(),
        };
        for (index, inlet) in inlets.into_iter().enumerate() {
            let hand = new.start(index, inlet)?;
            new.threads.push(hand);
        }
        Ok(new)
    }

    fn start(&self, index: usize, inlet: Inlet) -> Result<Hand, NetError> {
        let timing = Arc::new(Mutex::new(Timing::new()));
        let (shared, its_timing, stop) = (Arc::clone(&self.shared), Arc::clone(&timing), Arc::clone(&self.stop));
        let thread = thread::Builder::new().name(format!("tsb-ingest-{index}"));
        let run = move || Receiver::new(index, inlet, shared, its_timing, stop).run();
        let thread = thread.spawn(run).map_err(|source| NetError::Start {
            what: "an ingest thread",
            source,
        })?;
        Ok(Hand {
            timing,
            thread: Some(thread),
        })
    }

    /// Where it listens, with the port that it got.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The socket buffers, of each socket, as the kernel granted them.
    pub fn granted(&self) -> Granted {
        self.granted
    }

    /// Whether the kernel may hand over several datagrams in one (GRO).
    pub fn merges(&self) -> bool {
        self.merges
    }

    /// The counts as they are now.
    pub fn stats(&self) -> ListenerStats {
        self.shared.counters.snapshot()
    }

    /// Sees what it counts, also while it is being stopped.
    pub fn glance(&self) -> Glance {
        let timings = self.threads.iter().map(|hand| Arc::clone(&hand.timing));
        Glance::new(Arc::clone(&self.shared), timings.collect())
    }

    /// Moves what was timed since the last call into `into`: for the interval log.
    pub fn drain_timing(&self, into: &mut Timing) {
        for hand in &self.threads {
            into.absorb(&mut hand.timing.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Applies everything that the kernel has received (for at most
    /// [`ListenOptions::drain_timeout`]), asks it what it dropped, and joins the threads.
    pub fn stop(mut self) -> ListenerReport {
        let cpu = self.halt();
        let mut timing = Timing::new();
        self.drain_timing(&mut timing);
        if let Some(mileposts) = &self.shared.mileposts {
            let lost = mileposts.abandon_unheard(&mut timing);
            add(&self.shared.counters.missing_datagrams, lost);
        }
        ListenerReport {
            stats: self.stats(),
            timing,
            cpu,
        }
    }

    /// Ends all threads; what they have used.
    fn halt(&mut self) -> IngestCpu {
        self.stop.store(true, Ordering::Release);
        let mut cpu = IngestCpu::default();
        for hand in &mut self.threads {
            // A panic of the thread itself has nobody to go to.
            if let Some(Ok(used)) = hand.thread.take().map(thread::JoinHandle::join) {
                cpu.merge(&used);
            }
        }
        cpu
    }
}

impl Drop for DatagramListener {
    fn drop(&mut self) {
        self.halt();
    }
}
