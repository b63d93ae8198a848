//! An ingest thread: it serves the connections that are assigned to it.

use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Runtime;

use super::address::Address;
use super::cpu::{IngestCpu, Meter};
use super::inbox::{Inbox, Mail};
use super::link::{End, Link, Shared};
use super::milepost::Timing;
use super::options::ROOM_AFTER;
use super::stats::add;
use super::stream::{Plain, Stream};
use super::window::Window;

/// Reads from one connection before the next gets its turn.
const READS_A_TURN: usize = 4;

/// The state of one ingest thread.
pub(super) struct Worker {
    shared: Arc<Shared>,
    inbox: Arc<Inbox>,
    /// The reactor of this thread's sockets. It runs only while the thread waits: decoders and
    /// stores are never called inside it.
    reactor: Runtime,
    timing: Arc<Mutex<Timing>>,
    window: Window,
    links: HashMap<u64, Link, foldhash::fast::FixedState>,
    next_id: u64,
    /// Connections whose turn ended while they still had bytes to read.
    again: VecDeque<u64>,
    meter: Meter,
}

/// How a turn of a connection ended.
enum Turn {
    /// Nothing more to read; the waker is armed.
    Waiting,
    /// There may be more to read.
    Unfinished,
    /// The connection has ended.
    Over(End),
}

impl Worker {
    /// The state of the calling thread, the one with this number.
    pub(super) fn new(
        index: usize,
        shared: Arc<Shared>,
        inbox: Arc<Inbox>,
        reactor: Runtime,
        timing: Arc<Mutex<Timing>>,
    ) -> Self {
        let window = Window::with_size(shared.options.read_bytes);
        Self {
            meter: Meter::new(Arc::clone(&shared.clock), index as u64),
            shared,
            inbox,
            reactor,
            timing,
            window,
            links: HashMap::default(),
            next_id: 0,
            again: VecDeque::new(),
        }
    }

    /// Serves until it is asked to stop, then drains the received bytes.
    pub(super) fn run(mut self) -> IngestCpu {
        let mut mail = Mail::default();
        let mut has_spare_time = true;
        loop {
            self.meter.turn(has_spare_time);
            let limit = (!self.again.is_empty()).then_some(Duration::ZERO);
            // A single poll of the sockets counts as wire time.
            has_spare_time = if limit == Some(Duration::ZERO) {
                self.inbox.fetch(&self.reactor, &mut mail, limit);
                false
            } else {
                let (inbox, reactor) = (&self.inbox, &self.reactor);
                self.meter.wait(|| inbox.fetch(reactor, &mut mail, limit))
            };
            for (stream, peer) in mail.opened.drain(..) {
                self.open(stream, peer);
            }
            if mail.is_last {
                self.drain();
                return self.meter.finish();
            }
            for &id in &mail.ready {
                self.serve(id);
            }
            for _ in 0..self.again.len() {
                if let Some(id) = self.again.pop_front() {
                    self.serve(id);
                }
            }
            if mail.looks
                && let Some(idle) = self.shared.options.idle_timeout
            {
                self.close_idle(if self.shared.is_crowded() {
                    idle.min(ROOM_AFTER)
                } else {
                    idle
                });
            }
        }
    }

    fn open(&mut self, stream: Plain, peer: Address) {
        let registered = {
            let _context = self.reactor.enter();
            Stream::register(stream)
        };
        let Ok(stream) = registered else {
            add(&self.shared.counters.accept_errors, 1);
            self.shared.counters.open_connections.fetch_sub(1, Ordering::AcqRel);
            return;
        };
        let id = self.next_id;
        self.next_id += 1;
        let waker = self.inbox.waker(id);
        let shared = Arc::clone(&self.shared);
        let made = catch_unwind(AssertUnwindSafe(|| Link::new(stream, peer, waker, &shared)));
        if let Ok(link) = made {
            self.links.insert(id, link);
            self.serve(id);
        } else {
            add(&shared.counters.panicked_connections, 1);
            shared.counters.open_connections.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Serves a connection for one turn. It may be closed already, with its waker still queued.
    fn serve(&mut self, id: u64) {
        let Some(link) = self.links.get_mut(&id) else {
            return;
        };
        self.window.adopt(&mut link.rest);
        let (shared, timing) = (&*self.shared, &*self.timing);
        let window = &mut self.window;
        let meter = &mut self.meter;
        let turn = catch_unwind(AssertUnwindSafe(|| take_turn(link, window, shared, timing, meter)));
        match turn.unwrap_or(Turn::Over(End::Panicked)) {
            Turn::Waiting => self.window.leave(&mut link.rest),
            Turn::Unfinished => {
                self.window.leave(&mut link.rest);
                self.again.push_back(id);
            }
            Turn::Over(end) => self.close(id, end),
        }
    }

    /// Ends a connection whose unread bytes are in the window.
    fn close(&mut self, id: u64, end: End) {
        if let Some(link) = self.links.remove(&id) {
            let (shared, timing) = (&*self.shared, &*self.timing);
            let (window, meter) = (&mut self.window, &mut self.meter);
            if catch_unwind(AssertUnwindSafe(|| link.end(end, window, shared, timing, meter))).is_err() {
                window.clear();
                add(&shared.counters.panicked_connections, 1);
                shared.counters.open_connections.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }

    fn close_idle(&mut self, idle: Duration) {
        let now = self.shared.clock.now();
        let is_idle = |link: &Link| now.saturating_sub(link.read_at) >= idle.as_nanos() as u64;
        let links = self.links.iter();
        let suspects: Vec<u64> = links.filter(|(_, link)| is_idle(link)).map(|(&id, _)| id).collect();
        for id in suspects {
            // Bytes may be waiting in the socket because the thread was busy; the connection is
            // then not idle.
            self.serve(id);
            if let Some(link) = self.links.get_mut(&id)
                && is_idle(link)
            {
                self.window.adopt(&mut link.rest);
                self.close(id, End::Idle);
            }
        }
    }

    /// Reads and applies what the kernel has received on every connection, then closes them.
    fn drain(&mut self) {
        let limit_ns = self.shared.options.drain_timeout.as_nanos() as u64;
        let deadline = self.shared.clock.now().saturating_add(limit_ns);
        let mut ids: Vec<u64> = self.links.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let Some(link) = self.links.get_mut(&id) else {
                continue;
            };
            self.window.adopt(&mut link.rest);
            let (shared, timing) = (&*self.shared, &*self.timing);
            let (window, meter) = (&mut self.window, &mut self.meter);
            let drained = catch_unwind(AssertUnwindSafe(|| {
                drain_link(link, window, shared, timing, meter, deadline)
            }));
            self.close(id, drained.unwrap_or(End::Panicked));
        }
    }
}

fn take_turn(link: &mut Link, window: &mut Window, shared: &Shared, timing: &Mutex<Timing>, meter: &mut Meter) -> Turn {
    for _ in 0..READS_A_TURN {
        match step(link, window, shared, timing, meter) {
            Ok(true) => {}
            Ok(false) => return Turn::Waiting,
            Err(end) => return Turn::Over(end),
        }
    }
    Turn::Unfinished
}

/// Reads and decodes once. `Ok(false)`: there is nothing to do now, and the waker is armed.
fn step(
    link: &mut Link,
    window: &mut Window,
    shared: &Shared,
    timing: &Mutex<Timing>,
    meter: &mut Meter,
) -> Result<bool, End> {
    let was_held = link.answers.are_held();
    link.speak(shared);
    if link.answers.are_held() {
        return Ok(false);
    }
    // Bytes left undecoded because of waiting answers or of work on another thread come first.
    let was_busy = std::mem::take(&mut link.is_busy);
    if was_held || was_busy || link.read(window, shared)? {
        link.digest(window, shared, timing, meter)?;
        return Ok(!link.is_busy);
    }
    Ok(false)
}

/// Reads without tokio, whose readiness may lag behind what the kernel holds.
fn drain_link(
    link: &mut Link,
    window: &mut Window,
    shared: &Shared,
    timing: &Mutex<Timing>,
    meter: &mut Meter,
    deadline: u64,
) -> End {
    let Some(Ok(mut stream)) = link.stream.take().map(Stream::into_plain) else {
        return End::Cut;
    };
    while shared.clock.now() < deadline {
        let Some(room) = window.room(shared.options.max_record_bytes) else {
            return End::Overlong;
        };
        match stream.read(room) {
            Ok(0) => return End::Eof,
            Ok(count) => {
                window.filled(count);
                link.arrived(count, shared);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return End::Cut,
            Err(_) => return End::Broken,
        }
        let digested = link.digest(window, shared, timing, meter);
        add(
            &shared.counters.answer_bytes,
            link.answers.write_plain(&mut stream) as u64,
        );
        if let Err(end) = digested {
            return end;
        }
        if link.answers.are_held() {
            break;
        }
    }
    End::Cut
}
