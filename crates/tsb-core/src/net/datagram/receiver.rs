//! The thread of one datagram socket: receives, decodes, applies.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::inlet::{BUFFER_BYTES, Inlet, Received};
use super::peers::Peers;
use crate::net::link::Shared;
use crate::net::milepost::Timing;
use crate::net::stats::add;
use crate::wire::Malformed;

/// Calls whose datagrams are applied together.
const TOGETHER: usize = 32;

/// How long a wait goes on before the end is looked for, in milliseconds.
const SLICE_MS: u16 = 20;

/// The state of the thread.
pub(super) struct Receiver {
    inlet: Inlet,
    shared: Arc<Shared>,
    timing: Arc<Mutex<Timing>>,
    stop: Arc<AtomicBool>,
    peers: Peers,
    buffer: Vec<u8>,
    looked_at: u64,
}

impl Receiver {
    pub(super) fn new(inlet: Inlet, shared: Arc<Shared>, timing: Arc<Mutex<Timing>>, stop: Arc<AtomicBool>) -> Self {
        Self {
            inlet,
            looked_at: shared.clock.now(),
            shared,
            timing,
            stop,
            peers: Peers::default(),
            buffer: vec![0; BUFFER_BYTES],
        }
    }

    /// Serves until told to stop, then takes what the kernel has received.
    pub(super) fn run(mut self) {
        while !self.stop.load(Ordering::Acquire) {
            if !self.turn() {
                self.inlet.wait(SLICE_MS);
            }
            self.look_for_idle();
        }
        let limit_ns = self.shared.options.drain_timeout.as_nanos() as u64;
        let deadline = self.shared.clock.now().saturating_add(limit_ns);
        while self.turn() && self.shared.clock.now() < deadline {}
        let (shared, timing, peers) = (&self.shared, &self.timing, &mut self.peers);
        if catch_unwind(AssertUnwindSafe(|| peers.close_all(shared, timing))).is_err() {
            add(&self.shared.counters.panicked_connections, 1);
        }
        if let Some((drops, untold)) = self.inlet.drops() {
            let counters = &self.shared.counters;
            add(&counters.kernel_drops, untold);
            add(&counters.untold_kernel_drops, untold);
            debug_assert!(drops >= untold, "the table counts all of them");
        }
    }

    /// Takes what is there, up to a limit. `false`: there is nothing more.
    fn turn(&mut self) -> bool {
        let mut may_be_more = true;
        let mut calls = 0;
        while may_be_more && calls < TOGETHER {
            match self.inlet.receive(&mut self.buffer) {
                Ok(Some(received)) => {
                    self.take(&received);
                    calls += 1;
                }
                Ok(None) => may_be_more = false,
                Err(_) => {
                    // Said of the socket, not of a datagram; the next call goes on.
                    add(&self.shared.counters.accept_errors, 1);
                    may_be_more = false;
                }
            }
        }
        if calls > 0 {
            let (shared, timing, peers) = (&self.shared, &self.timing, &mut self.peers);
            if catch_unwind(AssertUnwindSafe(|| peers.apply(shared, timing))).is_err() {
                add(&self.shared.counters.panicked_connections, 1);
            }
        }
        may_be_more
    }

    fn take(&mut self, received: &Received) {
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
        let (shared, timing, peers) = (&self.shared, &self.timing, &mut self.peers);
        let found = catch_unwind(AssertUnwindSafe(|| peers.find(&received.from, shared, timing)));
        let Ok(Some(place)) = found else {
            add(&counters.refused_connections, 1);
            add(&counters.undecoded_bytes, bytes.len() as u64);
            return;
        };
        let taken = catch_unwind(AssertUnwindSafe(|| peers.take(place, bytes, received.each, shared)));
        if taken.is_err() {
            self.peers.drop_broken(place, &self.shared);
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
            let (shared, timing, peers) = (&self.shared, &self.timing, &mut self.peers);
            let closing = AssertUnwindSafe(|| peers.close_idle(idle.as_nanos() as u64, shared, timing));
            if catch_unwind(closing).is_err() {
                add(&self.shared.counters.panicked_connections, 1);
            }
        }
    }
}
