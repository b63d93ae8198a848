//! The listener: accepts, refuses, and hands connections to its ingest threads.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use super::address::Address;
use super::cpu::IngestCpu;
use super::error::NetError;
use super::glance::Glance;
use super::inbox::Inbox;
use super::ingest::Ingest;
use super::link::Shared;
use super::milepost::{Mileposts, Timing};
use super::options::{Granted, ListenOptions};
use super::stats::{ListenerStats, add};
use super::stream::{Door, Plain, remove};
use super::worker::Worker;
use crate::time::Clock;

/// How long to wait before accepting again after it failed (no file descriptor, ...).
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Connections that bring nothing are looked for four times in this, or in the idle time-out
/// between the two.
const LOOK_MIN: Duration = Duration::from_millis(4);
const LOOK_MAX: Duration = Duration::from_secs(2);

/// Accepts connections, decodes what they bring, and has it applied.
///
/// Dropping it without [`Listener::stop`] stops it as well, and forgets its counts.
#[derive(Debug)]
pub struct Listener {
    address: Address,
    granted: Granted,
    shared: Arc<Shared>,
    handle: Handle,
    acceptor: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
    workers: Vec<Hand>,
}

/// An ingest thread, seen from outside.
#[derive(Debug)]
struct Hand {
    inbox: Arc<Inbox>,
    timing: Arc<Mutex<Timing>>,
    thread: Option<thread::JoinHandle<IngestCpu>>,
}

/// What is known when a listener has stopped.
#[derive(Clone, Debug)]
pub struct ListenerReport {
    /// All counts, final.
    pub stats: ListenerStats,
    /// What the mileposts said since the last [`Listener::drain_timing`].
    pub timing: Timing,
    /// CPU time of the ingest threads.
    pub cpu: IngestCpu,
}

impl Listener {
    /// Listens on `address` (port 0: any free one; a Unix path must not exist, or be a socket
    /// that nobody listens on any more, which is replaced) and serves at once.
    ///
    /// `clock` is that of the run; with `mileposts` the operations of targets that share
    /// them are timed. Whoever passes an address other than loopback exposes the ingest
    /// to the network: there is no authentication. Not to be called on a tokio thread.
    ///
    /// # Errors
    /// [`NetError::Bind`], or [`NetError::Start`] when there is no thread to spare.
    pub fn bind(
        handle: &Handle,
        address: &Address,
        options: ListenOptions,
        ingest: impl Ingest + 'static,
        clock: Arc<dyn Clock>,
        mileposts: Option<Arc<Mileposts>>,
    ) -> Result<Self, NetError> {
        let bound = {
            let _context = handle.enter();
            Door::bind(address, &options)
        };
        let (listener, address, granted) = bound.map_err(|source| NetError::Bind {
            address: address.clone(),
            source,
        })?;
        let shared = Shared::new(options, ingest, clock, mileposts);
        let mut new = Self {
            address,
            granted,
            shared,
            handle: handle.clone(),
            acceptor: None,
            workers: Vec::new(),
        };
        for index in 0..new.shared.options.ingest_threads.max(1) {
            let hand = new.start_worker(index)?;
            new.workers.push(hand);
        }
        let (stop, stopped) = oneshot::channel();
        let inboxes = new.workers.iter().map(|hand| Arc::clone(&hand.inbox)).collect();
        let acceptor = Acceptor {
            shared: Arc::clone(&new.shared),
            inboxes,
            next: 0,
        };
        new.acceptor = Some((stop, handle.spawn(acceptor.run(listener, stopped))));
        Ok(new)
    }

    fn start_worker(&self, index: usize) -> Result<Hand, NetError> {
        let inbox = Arc::new(Inbox::default());
        let timing = Arc::new(Mutex::new(Timing::new()));
        let failed = |source| NetError::Start {
            what: "an ingest thread",
            source,
        };
        let mut reactor = Builder::new_current_thread();
        reactor.enable_io();
        let reactor = reactor.build().map_err(failed)?;
        let (shared, its_inbox, its_timing) = (Arc::clone(&self.shared), Arc::clone(&inbox), Arc::clone(&timing));
        let thread = thread::Builder::new().name(format!("tsb-ingest-{index}"));
        let run = move || Worker::new(index, shared, its_inbox, reactor, its_timing).run();
        let thread = thread.spawn(run).map_err(failed)?;
        Ok(Hand {
            inbox,
            timing,
            thread: Some(thread),
        })
    }

    /// Where it listens, with the port that it got.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The socket buffers that connections start with.
    pub fn granted(&self) -> Granted {
        self.granted
    }

    /// The counts as they are now.
    pub fn stats(&self) -> ListenerStats {
        self.shared.counters.snapshot()
    }

    /// Sees what it counts, also while it is being stopped.
    pub fn glance(&self) -> Glance {
        let timings = self.workers.iter().map(|hand| Arc::clone(&hand.timing));
        Glance::new(Arc::clone(&self.shared), timings.collect())
    }

    /// Moves what was timed since the last call into `into`: for the interval log.
    pub fn drain_timing(&self, into: &mut Timing) {
        for hand in &self.workers {
            into.absorb(&mut hand.timing.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Accepts nothing more, applies everything that the kernel has received (for at most
    /// [`ListenOptions::drain_timeout`]), closes all connections and joins the threads.
    /// Not to be called on a tokio thread.
    pub fn stop(mut self) -> ListenerReport {
        let cpu = self.halt();
        let mut timing = Timing::new();
        self.drain_timing(&mut timing);
        ListenerReport {
            stats: self.stats(),
            timing,
            cpu,
        }
    }

    /// Ends all threads; what they have used.
    fn halt(&mut self) -> IngestCpu {
        if let Some((stop, acceptor)) = self.acceptor.take() {
            let _ = stop.send(());
            // It hands over what is in the backlog before it ends. On a tokio thread, where
            // blocking is forbidden, a drop must do without waiting.
            if Handle::try_current().is_err() {
                let _ = self.handle.block_on(acceptor);
            } else {
                acceptor.abort();
            }
        }
        for hand in &self.workers {
            hand.inbox.stop();
        }
        let mut cpu = IngestCpu::default();
        for hand in &mut self.workers {
            // A panic of the thread itself has nobody to go to.
            if let Some(Ok(used)) = hand.thread.take().map(thread::JoinHandle::join) {
                cpu.merge(&used);
            }
        }
        cpu
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.halt();
        remove(&self.address);
    }
}

/// The accepting task: all that runs on tokio.
struct Acceptor {
    shared: Arc<Shared>,
    inboxes: Vec<Arc<Inbox>>,
    next: usize,
}

impl Acceptor {
    async fn run(mut self, listener: Door, mut stopped: oneshot::Receiver<()>) {
        let idle = self.shared.options.idle_timeout;
        let mut look = tokio::time::interval(idle.unwrap_or_default().clamp(LOOK_MIN, LOOK_MAX) / 4);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _ = &mut stopped => break,
                _ = look.tick(), if idle.is_some() => self.inboxes.iter().for_each(|inbox| inbox.look()),
                accepted = listener.accept() => {
                    // The ingest thread registers it anew, with its own reactor.
                    if let Ok((stream, peer)) = accepted {
                        self.admit(stream, peer);
                    } else {
                        add(&self.shared.counters.accept_errors, 1);
                        self.shared.was_crowded.store(true, Ordering::Release);
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        }
        self.empty_backlog(listener);
    }

    /// Takes the connections that the kernel had accepted for us: their peers may have
    /// sent everything already.
    fn empty_backlog(&mut self, listener: Door) {
        listener.backlog(|accepted| match accepted {
            Ok((stream, peer)) => self.admit(stream, peer),
            Err(_) => add(&self.shared.counters.accept_errors, 1),
        });
    }

    /// Hands a connection to the next ingest thread, or closes it.
    fn admit(&mut self, stream: Plain, peer: Address) {
        let counters = &self.shared.counters;
        // Only this task adds, so the limit holds.
        let open = counters.open_connections.load(Ordering::Acquire);
        if open >= self.shared.options.max_connections.max(1) as u64 {
            add(&counters.refused_connections, 1);
            self.shared.was_crowded.store(true, Ordering::Release);
            return;
        }
        add(&counters.open_connections, 1);
        add(&counters.connections, 1);
        stream.answer_at_once();
        self.inboxes[self.next].open(stream, peer);
        self.next = (self.next + 1) % self.inboxes.len();
    }
}
