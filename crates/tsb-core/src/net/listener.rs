//! The listener of connections: it accepts or refuses them, and hands them to its ingest threads.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use super::address::Address;
use super::connection::Shared;
use super::cpu::IngestCpu;
use super::error::NetError;
use super::inbox::Inbox;
use super::ingest::Ingest;
use super::listener_view::ListenerView;
use super::milepost::{Mileposts, Timing};
use super::options::{Granted, ListenOptions, ROOM_AFTER};
use super::stats::{ListenerStats, add};
use super::stream::{ListeningSocket, UnregisteredStream, remove};
use super::worker::Worker;
use crate::time::Clock;

/// Pause after accepting has failed, for example for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);

/// Idle connections are looked for every quarter of the idle time-out, which counts here as no less than
/// this: every millisecond at most.
const LOOK_MIN: Duration = Duration::from_millis(4);
/// And as no more than this: every half a second at least.
const LOOK_MAX: Duration = Duration::from_secs(2);

/// Accepts connections, decodes their bytes, and passes the samples to sinks.
///
/// Dropping it without [`Listener::stop`] stops it too, and discards its counts.
#[derive(Debug)]
pub struct Listener {
    address: Address,
    granted: Granted,
    shared: Arc<Shared>,
    handle: Handle,
    acceptor: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
    workers: Vec<IngestThread>,
}

/// The listener's handle of an ingest thread.
#[derive(Debug)]
struct IngestThread {
    inbox: Arc<Inbox>,
    timing: Arc<Mutex<Timing>>,
    thread: Option<thread::JoinHandle<IngestCpu>>,
}

/// The final figures of a listener that has stopped.
#[derive(Clone, Debug)]
pub struct ListenerTotals {
    /// All counts.
    pub stats: ListenerStats,
    /// The mileposts passed since the last [`Listener::drain_timing`].
    pub timing: Timing,
    /// CPU time of the ingest threads.
    pub cpu: IngestCpu,
}

impl Listener {
    /// Binds to `address` and starts to accept. Port 0 means any free port. A Unix path must not
    /// exist, or must be a socket on which no process listens any more, which is replaced.
    ///
    /// `clock` is the run's clock. With `mileposts`, the operations of targets that share them are
    /// timed. An address other than loopback exposes the listener to the network: there is no
    /// authentication. Must not be called on a tokio thread.
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
            ListeningSocket::bind(address, &options)
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
            let worker = new.start_worker(index)?;
            new.workers.push(worker);
        }
        let (stop, stopped) = oneshot::channel();
        let inboxes = new.workers.iter().map(|worker| Arc::clone(&worker.inbox)).collect();
        let acceptor = Acceptor {
            shared: Arc::clone(&new.shared),
            inboxes,
            next: 0,
            was_refused: false,
        };
        new.acceptor = Some((stop, handle.spawn(acceptor.run(listener, stopped))));
        Ok(new)
    }

    fn start_worker(&self, index: usize) -> Result<IngestThread, NetError> {
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
        Ok(IngestThread {
            inbox,
            timing,
            thread: Some(thread),
        })
    }

    /// The address that it is bound to, with the port that the kernel chose.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The socket buffer sizes that connections start with.
    pub fn granted(&self) -> Granted {
        self.granted
    }

    /// The current counts.
    pub fn stats(&self) -> ListenerStats {
        self.shared.counters.snapshot()
    }

    /// A view of the counts that stays usable while the listener is being stopped.
    pub fn view(&self) -> ListenerView {
        let timings = self.workers.iter().map(|worker| Arc::clone(&worker.timing));
        ListenerView::new(Arc::clone(&self.shared), timings.collect())
    }

    /// Moves what was timed since the last call into `into`: for the interval log.
    pub fn drain_timing(&self, into: &mut Timing) {
        for worker in &self.workers {
            into.absorb(&mut worker.timing.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    /// Stops accepting, applies everything that the kernel has received, within
    /// [`ListenOptions::drain_timeout`], closes all connections and joins the threads. Must not be
    /// called on a tokio thread.
    pub fn stop(mut self) -> ListenerTotals {
        let cpu = self.halt();
        let mut timing = Timing::new();
        self.drain_timing(&mut timing);
        ListenerTotals {
            stats: self.stats(),
            timing,
            cpu,
        }
    }

    /// Stops all threads and returns the CPU time that they used.
    fn halt(&mut self) -> IngestCpu {
        if let Some((stop, acceptor)) = self.acceptor.take() {
            let _ = stop.send(());
            // The acceptor hands over the kernel's backlog before it ends. On a tokio thread,
            // where blocking is forbidden, a drop does not wait for that.
            if Handle::try_current().is_err() {
                let _ = self.handle.block_on(acceptor);
            } else {
                acceptor.abort();
            }
        }
        for worker in &self.workers {
            worker.inbox.stop();
        }
        let mut cpu = IngestCpu::default();
        for worker in &mut self.workers {
            // A panic outside decoder and sink has no one to report to here; the thread's CPU time
            // is lost.
            if let Some(Ok(used)) = worker.thread.take().map(thread::JoinHandle::join) {
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

/// The accepting task, the only part of a listener that runs on tokio.
struct Acceptor {
    shared: Arc<Shared>,
    inboxes: Vec<Arc<Inbox>>,
    next: usize,
    /// Whether a connection was refused for lack of room since idle ones were last closed.
    was_refused: bool,
}

impl Acceptor {
    async fn run(mut self, listener: ListeningSocket, mut stopped: oneshot::Receiver<()>) {
        let idle = self.shared.options.idle_timeout;
        let mut look = tokio::time::interval(idle.unwrap_or_default().clamp(LOOK_MIN, LOOK_MAX) / 4);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                biased;
                _ = &mut stopped => break,
                _ = look.tick(), if idle.is_some() => self.close_idle(idle.unwrap_or_default()),
                accepted = listener.accept() => {
                    // The ingest thread registers the socket anew, with its own reactor.
                    if let Ok((stream, peer)) = accepted {
                        self.admit(stream, peer);
                    } else {
                        add(&self.shared.counters.accept_errors, 1);
                        self.was_refused = true;
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                }
            }
        }
        self.empty_backlog(listener);
    }

    /// Has every ingest thread close its idle connections, earlier where there is no room.
    fn close_idle(&mut self, idle: Duration) {
        let is_crowded = std::mem::take(&mut self.was_refused) || self.shared.is_full();
        let after = if is_crowded { idle.min(ROOM_AFTER) } else { idle };
        self.inboxes.iter().for_each(|inbox| inbox.close_idle(after));
    }

    /// Accepts the connections in the kernel's backlog: their peers may already have sent all
    /// their data.
    fn empty_backlog(&mut self, listener: ListeningSocket) {
        listener.backlog(|accepted| match accepted {
            Ok((stream, peer)) => self.admit(stream, peer),
            Err(_) => add(&self.shared.counters.accept_errors, 1),
        });
    }

    /// Hands a connection to the next ingest thread, or closes it at the limit.
    fn admit(&mut self, stream: UnregisteredStream, peer: Address) {
        let counters = &self.shared.counters;
        // Only this task adds connections, so the limit holds.
        if self.shared.is_full() {
            add(&counters.refused_connections, 1);
            self.was_refused = true;
            return;
        }
        add(&counters.open_connections, 1);
        add(&counters.connections, 1);
        stream.answer_at_once();
        self.inboxes[self.next].open(stream, peer);
        self.next = (self.next + 1) % self.inboxes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::inbox::Messages;
    use crate::net::ingest::Intake;
    use crate::time::ManualClock;

    #[test]
    fn every_ingest_thread_makes_room_after_a_refusal_and_only_once() {
        const IDLE: Duration = Duration::from_mins(10);
        let no_client = |_: &Address| -> Intake { unreachable!("nobody connects") };
        let clock = Arc::new(ManualClock::new());
        let mut acceptor = Acceptor {
            shared: Shared::new(ListenOptions::default(), no_client, clock, None),
            inboxes: vec![Arc::default(), Arc::default()],
            next: 0,
            was_refused: true,
        };
        let reactor = Builder::new_current_thread().build().unwrap();
        for after in [ROOM_AFTER, IDLE] {
            acceptor.close_idle(IDLE);
            for inbox in &acceptor.inboxes {
                let mut messages = Messages::default();
                inbox.fetch(&reactor, &mut messages, Some(Duration::ZERO));
                assert_eq!(messages.close_idle_after, Some(after));
            }
        }
    }
}
