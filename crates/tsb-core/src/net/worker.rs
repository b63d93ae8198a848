//! An ingest thread: it serves the connections that are assigned to it.

use std::collections::{HashMap, VecDeque};
use std::io::{ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::runtime::Runtime;

use super::address::Address;
use super::connection::{Connection, ConnectionEnd, Shared};
use super::cpu::{IngestCpu, Meter};
use super::inbox::{Inbox, Messages};
use super::milepost::Timing;
use super::read_buffer::ReadBuffer;
use super::stats::add;
use super::stream::{Stream, UnregisteredStream};

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
    read_buffer: ReadBuffer,
    connections: HashMap<u64, Connection, foldhash::fast::FixedState>,
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
    Over(ConnectionEnd),
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
        let read_buffer = ReadBuffer::with_size(shared.options.read_bytes);
        Self {
            meter: Meter::new(Arc::clone(&shared.clock), index as u64),
            shared,
            inbox,
            reactor,
            timing,
            read_buffer,
            connections: HashMap::default(),
            next_id: 0,
            again: VecDeque::new(),
        }
    }

    /// Serves until it is asked to stop, then drains the received bytes.
    pub(super) fn run(mut self) -> IngestCpu {
        let mut messages = Messages::default();
        let mut has_spare_time = true;
        loop {
            self.meter.turn(has_spare_time);
            let limit = (!self.again.is_empty()).then_some(Duration::ZERO);
            // A single poll of the sockets counts as wire time.
            has_spare_time = if limit == Some(Duration::ZERO) {
                self.inbox.fetch(&self.reactor, &mut messages, limit);
                false
            } else {
                let (inbox, reactor) = (&self.inbox, &self.reactor);
                self.meter.wait(|| inbox.fetch(reactor, &mut messages, limit))
            };
            for (stream, peer) in messages.opened.drain(..) {
                self.open(stream, peer);
            }
            if messages.is_last {
                self.drain();
                return self.meter.finish();
            }
            for &id in &messages.ready {
                self.serve(id);
            }
            for _ in 0..self.again.len() {
                if let Some(id) = self.again.pop_front() {
                    self.serve(id);
                }
            }
            if let Some(after) = messages.close_idle_after {
                self.close_idle(after);
            }
        }
    }

    fn open(&mut self, stream: UnregisteredStream, peer: Address) {
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
        let made = catch_unwind(AssertUnwindSafe(|| Connection::new(stream, peer, waker, &shared)));
        if let Ok(connection) = made {
            self.connections.insert(id, connection);
            self.serve(id);
        } else {
            add(&shared.counters.panicked_connections, 1);
            shared.counters.open_connections.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Serves a connection for one turn. It may be closed already, with its waker still queued.
    fn serve(&mut self, id: u64) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        self.read_buffer.adopt(&mut connection.partial);
        let (shared, timing) = (&*self.shared, &*self.timing);
        let read_buffer = &mut self.read_buffer;
        let meter = &mut self.meter;
        let turn = catch_unwind(AssertUnwindSafe(|| {
            take_turn(connection, read_buffer, shared, timing, meter)
        }));
        match turn.unwrap_or(Turn::Over(ConnectionEnd::Panicked)) {
            Turn::Waiting => self.read_buffer.leave(&mut connection.partial),
            Turn::Unfinished => {
                self.read_buffer.leave(&mut connection.partial);
                self.again.push_back(id);
            }
            Turn::Over(end) => self.close(id, end),
        }
    }

    /// Ends a connection whose unread bytes are in the buffer.
    fn close(&mut self, id: u64, end: ConnectionEnd) {
        if let Some(connection) = self.connections.remove(&id) {
            let (shared, timing) = (&*self.shared, &*self.timing);
            let (read_buffer, meter) = (&mut self.read_buffer, &mut self.meter);
            if catch_unwind(AssertUnwindSafe(|| {
                connection.end(end, read_buffer, shared, timing, meter);
            }))
            .is_err()
            {
                read_buffer.clear();
                add(&shared.counters.panicked_connections, 1);
                shared.counters.open_connections.fetch_sub(1, Ordering::AcqRel);
            }
        }
    }

    fn close_idle(&mut self, idle: Duration) {
        let now = self.shared.clock.now();
        let is_idle = |connection: &Connection| now.saturating_sub(connection.read_at) >= idle.as_nanos() as u64;
        let connections = self.connections.iter();
        let suspects: Vec<u64> = connections
            .filter(|(_, connection)| is_idle(connection))
            .map(|(&id, _)| id)
            .collect();
        for id in suspects {
            // Bytes may be waiting in the socket because the thread was busy; the connection is
            // then not idle.
            self.serve(id);
            if let Some(connection) = self.connections.get_mut(&id)
                && is_idle(connection)
            {
                self.read_buffer.adopt(&mut connection.partial);
                self.close(id, ConnectionEnd::Idle);
            }
        }
    }

    /// Reads and applies what the kernel has received on every connection, then closes them.
    fn drain(&mut self) {
        let limit_ns = self.shared.options.drain_timeout.as_nanos() as u64;
        let deadline = self.shared.clock.now().saturating_add(limit_ns);
        let mut ids: Vec<u64> = self.connections.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let Some(connection) = self.connections.get_mut(&id) else {
                continue;
            };
            self.read_buffer.adopt(&mut connection.partial);
            let (shared, timing) = (&*self.shared, &*self.timing);
            let (read_buffer, meter) = (&mut self.read_buffer, &mut self.meter);
            let drained = catch_unwind(AssertUnwindSafe(|| {
                drain_connection(connection, read_buffer, shared, timing, meter, deadline)
            }));
            self.close(id, drained.unwrap_or(ConnectionEnd::Panicked));
        }
    }
}

fn take_turn(
    connection: &mut Connection,
    read_buffer: &mut ReadBuffer,
    shared: &Shared,
    timing: &Mutex<Timing>,
    meter: &mut Meter,
) -> Turn {
    for _ in 0..READS_A_TURN {
        match step(connection, read_buffer, shared, timing, meter) {
            Ok(true) => {}
            Ok(false) => return Turn::Waiting,
            Err(end) => return Turn::Over(end),
        }
    }
    Turn::Unfinished
}

/// Reads and decodes once. `Ok(false)`: there is nothing to do now, and the waker is armed.
fn step(
    connection: &mut Connection,
    read_buffer: &mut ReadBuffer,
    shared: &Shared,
    timing: &Mutex<Timing>,
    meter: &mut Meter,
) -> Result<bool, ConnectionEnd> {
    let was_held = connection.answers.are_held();
    connection.write_answers(shared);
    if connection.is_ending {
        return connection.ended().map(|()| false);
    }
    if connection.answers.are_held() {
        return Ok(false);
    }
    // Bytes left undecoded because of waiting answers or of work on another thread come first.
    let was_busy = std::mem::take(&mut connection.is_busy);
    if was_held || was_busy || connection.read(read_buffer, shared)? {
        connection.decode_and_apply(read_buffer, shared, timing, meter)?;
        return Ok(!connection.is_busy);
    }
    Ok(false)
}

/// Reads without tokio, whose readiness may lag behind what the kernel holds.
fn drain_connection(
    connection: &mut Connection,
    read_buffer: &mut ReadBuffer,
    shared: &Shared,
    timing: &Mutex<Timing>,
    meter: &mut Meter,
    deadline: u64,
) -> ConnectionEnd {
    let Some(Ok(mut stream)) = connection.stream.take().map(Stream::into_unregistered) else {
        return ConnectionEnd::Cut;
    };
    while !connection.is_ending && shared.clock.now() < deadline {
        let Some(room) = read_buffer.room(shared.options.max_record_bytes) else {
            return ConnectionEnd::Overlong;
        };
        match stream.read(room) {
            Ok(0) => return ConnectionEnd::Eof,
            Ok(count) => {
                read_buffer.filled(count);
                connection.arrived(count, shared);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return ConnectionEnd::Cut,
            Err(_) => return ConnectionEnd::Broken,
        }
        let applied = connection.decode_and_apply(read_buffer, shared, timing, meter);
        add(
            &shared.counters.answer_bytes,
            connection.answers.write_unregistered(&mut stream) as u64,
        );
        if let Err(end) = applied {
            return end;
        }
        if connection.answers.are_held() {
            break;
        }
    }
    if connection.is_ending && connection.answers.waiting() == 0 {
        return ConnectionEnd::Eof;
    }
    ConnectionEnd::Cut
}
