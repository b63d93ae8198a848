//! The listener of datagrams: its sockets, one receiving thread per socket, and their counts.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::receive_socket::ReceiveSocket;
use super::receiver::Receiver;
use crate::net::address::Address;
use crate::net::connection::Shared;
use crate::net::cpu::IngestCpu;
use crate::net::error::NetError;
use crate::net::ingest::Ingest;
use crate::net::listener::ListenerTotals;
use crate::net::listener_view::ListenerView;
use crate::net::milepost::{Mileposts, Timing};
use crate::net::options::{Granted, ListenOptions};
use crate::net::stats::{ListenerStats, add};
use crate::time::Clock;

/// Receives datagrams, decodes each on its own, and passes the samples to the sinks.
///
/// With several ingest threads each has its own UDP socket on the same port, and the kernel
/// assigns each sender to one of them. Dropping the listener without [`DatagramListener::stop`]
/// stops it too, and discards its counts.
#[derive(Debug)]
pub struct DatagramListener {
    address: Address,
    granted: Granted,
    merges: bool,
    shared: Arc<Shared>,
    stop: Arc<AtomicBool>,
    threads: Vec<ReceiveThread>,
}

#[derive(Debug)]
struct ReceiveThread {
    timing: Arc<Mutex<Timing>>,
    thread: Option<thread::JoinHandle<IngestCpu>>,
}

impl DatagramListener {
    /// Binds to `address` and starts to receive. Port 0 means any free port. A Unix path must not
    /// exist, or must be a socket that no process reads any more, which is replaced.
    ///
    /// `clock` is the run's clock. With `mileposts`, the operations of targets that share them are
    /// timed. An address other than loopback exposes the listener to the network: there is no
    /// authentication, and sender addresses can be forged.
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
        // A Unix socket has a single queue, however many threads read it.
        let sockets = if address.inet().is_some() {
            options.ingest_threads.max(1)
        } else {
            1
        };
        let first = ReceiveSocket::bind(address, &options, sockets > 1).map_err(failed)?;
        let bound = first.address.clone();
        let mut receive_sockets = vec![first];
        for _ in 1..sockets {
            receive_sockets.push(ReceiveSocket::bind(&bound, &options, true).map_err(failed)?);
        }
        let mut new = Self {
            address: bound,
            granted: receive_sockets.first().map(|socket| socket.granted).unwrap_or_default(),
            merges: receive_sockets.iter().all(|socket| socket.merges),
            shared: Shared::new(options, ingest, clock, mileposts),
            stop: Arc::default(),
            threads: Vec::new(),
        };
        for (index, socket) in receive_sockets.into_iter().enumerate() {
            let receiver = new.start(index, socket)?;
            new.threads.push(receiver);
        }
        Ok(new)
    }

    fn start(&self, index: usize, socket: ReceiveSocket) -> Result<ReceiveThread, NetError> {
        let timing = Arc::new(Mutex::new(Timing::new()));
        let (shared, its_timing, stop) = (Arc::clone(&self.shared), Arc::clone(&timing), Arc::clone(&self.stop));
        let thread = thread::Builder::new().name(format!("tsb-ingest-{index}"));
        let run = move || Receiver::new(index, socket, shared, its_timing, stop).run();
        let thread = thread.spawn(run).map_err(|source| NetError::Start {
            what: "an ingest thread",
            source,
        })?;
        Ok(ReceiveThread {
            timing,
            thread: Some(thread),
        })
    }

    /// The address that it is bound to, with the port that the kernel chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The buffer sizes of each socket that the kernel granted.
    pub fn granted(&self) -> Granted {
        self.granted
    }

    /// Whether the kernel may merge several datagrams into one receive (GRO).
    pub fn merges(&self) -> bool {
        self.merges
    }

    /// The current counts.
    pub fn stats(&self) -> ListenerStats {
        self.shared.counters.snapshot()
    }

    /// A view of the counts that stays usable while the listener is being stopped.
    pub fn view(&self) -> ListenerView {
        let timings = self.threads.iter().map(|receiver| Arc::clone(&receiver.timing));
        ListenerView::new(Arc::clone(&self.shared), timings.collect())
    }

    /// Moves what was timed since the last call into `into`: for the interval log.
    pub fn drain_timing(&self, into: &mut Timing) {
        for receiver in &self.threads {
            into.absorb(&mut receiver.timing.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Applies everything that the kernel has received, within [`ListenOptions::drain_timeout`],
    /// reads the kernel's drop counts, and joins the threads.
    pub fn stop(mut self) -> ListenerTotals {
        let cpu = self.halt();
        let mut timing = Timing::new();
        self.drain_timing(&mut timing);
        if let Some(mileposts) = &self.shared.mileposts {
            let lost = mileposts.abandon_unheard(&mut timing);
            add(&self.shared.counters.missing_datagrams, lost);
        }
        ListenerTotals {
            stats: self.stats(),
            timing,
            cpu,
        }
    }

    /// Stops all threads and returns the CPU time that they used.
    fn halt(&mut self) -> IngestCpu {
        self.stop.store(true, Ordering::Release);
        let mut cpu = IngestCpu::default();
        for receiver in &mut self.threads {
            // A panic outside decoder and sink has no one to report to here; the thread's CPU time
            // is lost.
            if let Some(Ok(used)) = receiver.thread.take().map(thread::JoinHandle::join) {
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
