//! The thread of one datagram socket: it receives, decodes and applies until it is stopped.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::peers::{Peers, Read};
use super::receive_socket::{BUFFER_BYTES, ReceiveSocket, Received};
use crate::net::connection::Shared;
use crate::net::cpu::{IngestCpu, Meter};
use crate::net::milepost::Timing;
use crate::net::piece_size::PieceSize;
use crate::net::stats::add;
use crate::wire::Malformed;

/// Number of receive calls whose datagrams are applied together.
const TOGETHER: usize = 32;

/// How long one wait lasts, in milliseconds, before the thread checks whether it has to stop.
const WAIT_MS: u16 = 20;

/// The state of the thread.
pub(super) struct Receiver {
    socket: ReceiveSocket,
    shared: Arc<Shared>,
    timing: Arc<Mutex<Timing>>,
    stop: Arc<AtomicBool>,
    peers: Peers,
    buffer: Vec<u8>,
    piece_size: PieceSize,
    looked_at: u64,
    meter: Meter,
}

impl Receiver {
    /// The state of the calling thread, the listener's thread with this index.
    pub(super) fn new(
        index: usize,
        socket: ReceiveSocket,
        shared: Arc<Shared>,
        timing: Arc<Mutex<Timing>>,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self {
            meter: Meter::new(Arc::clone(&shared.clock), index as u64),
            socket,
            looked_at: shared.clock.now(),
            shared,
            timing,
            stop,
            peers: Peers::default(),
            buffer: vec![0; BUFFER_BYTES],
            piece_size: PieceSize::new(),
        }
    }

    /// Receives until the listener stops, then applies what the kernel still holds.
    pub(super) fn run(mut self) -> IngestCpu {
        let mut has_spare_time = true;
        while !self.stop.load(Ordering::Acquire) {
            self.meter.turn(has_spare_time);
            has_spare_time = !self.turn() && self.wait();
            self.look_for_idle();
        }
        self.meter.turn(false);
        let limit_ns = self.shared.options.drain_timeout.as_nanos() as u64;
        let deadline = self.shared.clock.now().saturating_add(limit_ns);
        while self.turn() && self.shared.clock.now() < deadline {}
        let (shared, timing, peers, meter) = (&self.shared, &self.timing, &mut self.peers, &mut self.meter);
        if catch_unwind(AssertUnwindSafe(|| peers.close_all(shared, timing, meter))).is_err() {
            add(&self.shared.counters.panicked_connections, 1);
        }
        if let Some((drops, untold)) = self.socket.drops() {
            let counters = &self.shared.counters;
            add(&counters.kernel_drops, untold);
            add(&counters.untold_kernel_drops, untold);
            debug_assert!(drops >= untold, "the table counts all of them");
        }
        self.meter.finish()
    }

    /// Waits until there is something to receive. Returns whether it had to wait long.
    fn wait(&mut self) -> bool {
        self.peers.busy_from = None;
        self.meter.wait(|| self.socket.wait(WAIT_MS))
    }

    /// Handles queued datagrams up to a limit. Returns `false` when the queue is empty.
    fn turn(&mut self) -> bool {
        let mut may_be_more = true;
        let mut calls = 0;
        let mut began_at = None;
        while may_be_more && calls < TOGETHER {
            match self.socket.receive(&mut self.buffer) {
                Ok(Some(received)) => {
                    calls += 1;
                    let mut taken_at = self.now();
                    self.peers.busy_from.get_or_insert(taken_at);
                    if PieceSize::is_long(taken_at - *began_at.get_or_insert(taken_at)) {
                        // Samples decoded before are applied first, so that they do not wait for
                        // this call, which ends the turn.
                        self.apply();
                        taken_at = self.now();
                        calls = TOGETHER;
                    }
                    self.take(&received, taken_at);
                }
                Ok(None) => may_be_more = false,
                Err(_) => {
                    // The error concerns the socket and no particular datagram; the next call
                    // continues.
                    add(&self.shared.counters.accept_errors, 1);
                    may_be_more = false;
                }
            }
        }
        if calls > 0 {
            self.apply();
        }
        may_be_more
    }

    /// The time where operations are timed, else 0, to save the clock reading.
    #[inline]
    fn now(&self) -> u64 {
        match self.shared.mileposts {
            Some(_) => self.shared.clock.now(),
            None => 0,
        }
    }

    fn apply(&mut self) {
        let (shared, timing, peers, meter) = (&self.shared, &self.timing, &mut self.peers, &mut self.meter);
        if catch_unwind(AssertUnwindSafe(|| peers.apply(shared, timing, meter))).is_err() {
            add(&self.shared.counters.panicked_connections, 1);
        }
    }

    fn take(&mut self, received: &Received, mut taken_at: u64) {
        let counters = &self.shared.counters;
        let bytes = &self.buffer[..received.bytes];
        add(
            &counters.datagrams,
            received.bytes.div_ceil(received.each).max(1) as u64,
        );
        add(&counters.bytes, received.bytes as u64);
        if received.dropped > 0 {
            add(&counters.kernel_drops, u64::from(received.dropped));
        }
        if received.is_cut {
            add(&counters.malformed, 1);
            counters.malformed(&Malformed {
                what: "a datagram is longer than 64 KiB",
                bytes,
            });
            return;
        }
        if bytes.is_empty() {
            add(&counters.empty_datagrams, 1);
            return;
        }
        let mut from = 0;
        while from < received.bytes {
            // A piece consists of whole datagrams.
            let piece = self.piece_size.next(received.bytes - from, received.each);
            let is_last = from + piece == received.bytes || self.shared.mileposts.is_none();
            let end = if is_last {
                received.bytes
            } else {
                from + piece - piece % received.each
            };
            self.decode(received, from..end, taken_at);
            if received.each >= received.bytes {
                // A single datagram cannot be divided, so its duration is not needed.
                return;
            }
            let now = self.now();
            // The size offered counts and not the size decoded: whole datagrams fill only part of
            // it, and pieces would never grow.
            self.piece_size.took(piece, now - taken_at);
            from = end;
            if !is_last {
                self.apply();
                taken_at = now;
            }
        }
    }

    fn decode(&mut self, received: &Received, range: Range<usize>, at: u64) {
        let (shared, timing, peers, meter) = (&self.shared, &self.timing, &mut self.peers, &mut self.meter);
        let read = Read {
            bytes: &self.buffer[range],
            each: received.each,
            at,
        };
        let found = catch_unwind(AssertUnwindSafe(|| peers.find(&received.from, shared, timing, meter)));
        let Ok(place) = found else {
            add(&shared.counters.panicked_connections, 1);
            not_taken(&read, shared);
            return;
        };
        let taken = catch_unwind(AssertUnwindSafe(|| peers.take(place, &read, shared, meter)));
        if taken.is_err() {
            peers.drop_broken(place, shared);
            not_taken(&read, shared);
        }
    }

    fn look_for_idle(&mut self) {
        const EVERY_NS: u64 = 100_000_000;
        let Some(idle) = self.shared.options.idle_timeout else {
            return;
        };
        let now = self.shared.clock.now();
        if now.saturating_sub(self.looked_at) >= EVERY_NS {
            self.looked_at = now;
            let (shared, timing, peers, meter) = (&self.shared, &self.timing, &mut self.peers, &mut self.meter);
            let closing = AssertUnwindSafe(|| peers.close_idle(idle.as_nanos() as u64, shared, timing, meter));
            if catch_unwind(closing).is_err() {
                add(&self.shared.counters.panicked_connections, 1);
            }
        }
    }
}

/// Counts datagrams whose decoder or sink panicked, which is a bug. The number of samples in them
/// is unknown, so each counts as one malformed record.
fn not_taken(read: &Read<'_>, shared: &Shared) {
    for datagram in read.bytes.chunks(read.each) {
        add(&shared.counters.malformed, 1);
        shared.counters.malformed(&Malformed {
            what: "a datagram that the listener could not take (a bug of tsb)",
            bytes: datagram,
        });
    }
    add(&shared.counters.undecoded_bytes, read.bytes.len() as u64);
}
