//! The senders of a datagram socket, looked up by address.
//!
//! The number of senders is bounded, but every datagram is decoded: to admit a new sender when the
//! table is full, the one that sent the least lately is evicted. Its undecoded samples are
//! counted, and it is a new sender if it returns.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::waymark::WaymarkReceiver;
use crate::net::address::Address;
use crate::net::connection::{CountingSink, Shared};
use crate::net::cpu::Meter;
use crate::net::ingest::Intake;
use crate::net::milepost::Timing;
use crate::net::stats::add;
use crate::wire::Sequence;

/// Number of eviction searches that a sender survives for each datagram after its first.
const CREDIT: usize = 16;

/// One sender.
#[derive(Debug)]
pub(super) struct Peer {
    address: Address,
    intake: Intake,
    waymark_receiver: Option<WaymarkReceiver>,
    /// When it last sent a datagram, on the run's clock.
    heard_at: u64,
    /// Number of eviction searches that it still survives.
    credit: u8,
    /// The part of its sequence account that is already in the listener's counters.
    booked: Sequence,
    /// Number of bytes decoded so far.
    consumed: u64,
    /// Whether samples of it are decoded but not applied.
    is_touched: bool,
    /// Whether it announced the end of its data.
    has_ended: bool,
}

/// Datagrams of one sender that one call received together.
#[derive(Debug)]
pub(super) struct Read<'a> {
    /// Their bytes, one datagram after the other.
    pub(super) bytes: &'a [u8],
    /// Length of every datagram except the last.
    pub(super) each: usize,
    /// When their decoding began; 0 where operations are not timed.
    pub(super) at: u64,
}

/// The senders of one socket.
#[derive(Debug, Default)]
pub(super) struct Peers {
    by_address: HashMap<Address, usize, foldhash::fast::RandomState>,
    all: Vec<Peer>,
    /// Index of the sender of the last datagram.
    last: usize,
    /// Where the next eviction search starts.
    hand: usize,
    touched: Vec<usize>,
    /// Since when there has always been something to receive, on the listener's clock; `None` while
    /// there is nothing.
    pub(super) busy_from: Option<u64>,
}

impl Peers {
    /// Returns the index of a sender, and adds it if it is new.
    pub(super) fn find(
        &mut self,
        address: &Address,
        shared: &Shared,
        timing: &Mutex<Timing>,
        meter: &mut Meter,
    ) -> usize {
        if self.all.get(self.last).is_some_and(|peer| peer.address == *address) {
            return self.last;
        }
        if let Some(place) = self.by_address.get(address) {
            self.last = *place;
            return *place;
        }
        while self.all.len() >= shared.options.max_connections.max(1) {
            self.make_room(shared, timing, meter);
        }
        let peer = Peer {
            address: address.clone(),
            intake: shared.ingest.connect(address),
            waymark_receiver: shared.mileposts.as_ref().and_then(|all| all.waymark_receiver(address)),
            heard_at: shared.clock.now(),
            credit: 0,
            booked: Sequence::default(),
            consumed: 0,
            is_touched: false,
            has_ended: false,
        };
        add(&shared.counters.connections, 1);
        add(&shared.counters.open_connections, 1);
        self.last = self.all.len();
        self.by_address.insert(address.clone(), self.last);
        self.all.push(peer);
        self.last
    }

    /// Evicts one sender: the first in turn that has announced its end or has no credit left. Each
    /// look costs a sender credit, so a search is short on average whatever the number of new
    /// senders, and one-time senders evict each other rather than a regular one.
    fn make_room(&mut self, shared: &Shared, timing: &Mutex<Timing>, meter: &mut Meter) {
        loop {
            self.hand %= self.all.len().max(1);
            let Some(peer) = self.all.get_mut(self.hand) else {
                return;
            };
            if peer.has_ended || peer.credit == 0 {
                let (address, has_ended) = (peer.address.clone(), peer.has_ended);
                self.close(&address, shared, timing, meter);
                add(&shared.counters.forgotten_senders, u64::from(!has_ended));
                return;
            }
            peer.credit -= 1;
            self.hand += 1;
        }
    }

    /// Decodes datagrams of a peer. An error of the decoder ends only its datagram.
    pub(super) fn take(&mut self, place: usize, read: &Read<'_>, shared: &Shared, meter: &mut Meter) {
        let peer = &mut self.all[place];
        if peer.consumed > 0 {
            let datagrams = read.bytes.len().div_ceil(read.each.max(1));
            let earned = datagrams.saturating_mul(CREDIT).min(usize::from(u8::MAX));
            peer.credit = peer.credit.saturating_add(earned as u8);
        }
        if !peer.is_touched {
            peer.is_touched = true;
            self.touched.push(place);
        }
        let mut sink = CountingSink::new(&mut *peer.intake.sink, &shared.counters, meter);
        for datagram in read.bytes.chunks(read.each) {
            if let Some(waymark_receiver) = &mut peer.waymark_receiver {
                let lost = waymark_receiver.arrive(datagram);
                if lost > 0 {
                    add(&shared.counters.missing_datagrams, lost);
                }
            }
            let _ = peer.intake.decoder.decode(datagram, &mut sink);
        }
        if let Some(waymark_receiver) = &mut peer.waymark_receiver {
            waymark_receiver.read_by(read.at);
        }
        sink.publish();
        peer.consumed += read.bytes.len() as u64;
    }

    /// Applies everything decoded since the last call, and closes the peers whose sink has failed.
    pub(super) fn apply(&mut self, shared: &Shared, timing: &Mutex<Timing>, meter: &mut Meter) {
        let mut failed = Vec::new();
        // One at a time: what panics at one of them leaves the others for the next call.
        while let Some(place) = self.touched.pop() {
            let peer = &mut self.all[place];
            peer.is_touched = false;
            let applied = peer.intake.sink.apply(peer.consumed);
            let now = shared.clock.now();
            peer.heard_at = now;
            peer.book(shared, meter);
            if let Some(waymark_receiver) = &mut peer.waymark_receiver {
                let mut timing = timing.lock().unwrap_or_else(PoisonError::into_inner);
                waymark_receiver.pass(&mut timing, self.busy_from.unwrap_or(now), now);
            }
            if applied.is_err() {
                add(&shared.counters.fatal_closes, 1);
                failed.push(peer.address.clone());
            }
        }
        for address in failed {
            self.close(&address, shared, timing, meter);
        }
    }

    /// Closes peers that have sent nothing for `idle_ns` nanoseconds.
    pub(super) fn close_idle(&mut self, idle_ns: u64, shared: &Shared, timing: &Mutex<Timing>, meter: &mut Meter) {
        let now = shared.clock.now();
        let before = self.all.len();
        self.close_if(shared, timing, meter, |peer| {
            now.saturating_sub(peer.heard_at) >= idle_ns
        });
        add(&shared.counters.idle_closes, (before - self.all.len()) as u64);
    }

    /// Closes all peers.
    pub(super) fn close_all(&mut self, shared: &Shared, timing: &Mutex<Timing>, meter: &mut Meter) {
        self.close_if(shared, timing, meter, |_| true);
    }

    fn close_if(&mut self, shared: &Shared, timing: &Mutex<Timing>, meter: &mut Meter, which: impl Fn(&Peer) -> bool) {
        let closed: Vec<Address> = self
            .all
            .iter()
            .filter(|peer| which(peer))
            .map(|peer| peer.address.clone())
            .collect();
        for address in closed {
            self.close(&address, shared, timing, meter);
        }
    }

    fn close(&mut self, address: &Address, shared: &Shared, timing: &Mutex<Timing>, meter: &mut Meter) {
        if let Some(mut peer) = self.forget(address) {
            peer.end(shared, meter);
            if let Some(waymark_receiver) = &mut peer.waymark_receiver {
                let lost = waymark_receiver.abandon(&mut timing.lock().unwrap_or_else(PoisonError::into_inner));
                add(&shared.counters.missing_datagrams, lost);
            }
            if !peer.has_ended {
                shared
                    .counters
                    .open_connections
                    .fetch_sub(1, std::sync::atomic::Ordering::AcqRel);
            }
        }
    }

    /// Drops a peer whose decoder or sink panicked: its state cannot be trusted.
    pub(super) fn drop_broken(&mut self, place: usize, shared: &Shared) {
        add(&shared.counters.panicked_connections, 1);
        if let Some(address) = self.all.get(place).map(|peer| peer.address.clone())
            && let Some(peer) = self.forget(&address)
            && !peer.has_ended
        {
            shared
                .counters
                .open_connections
                .fetch_sub(1, std::sync::atomic::Ordering::AcqRel);
        }
    }

    fn forget(&mut self, address: &Address) -> Option<Peer> {
        let place = self.by_address.remove(address)?;
        let peer = self.all.swap_remove(place);
        // `swap_remove` has moved the last peer to this index.
        let moved_from = self.all.len();
        if let Some(moved) = self.all.get(place) {
            self.by_address.insert(moved.address.clone(), place);
        }
        self.last = 0;
        self.touched.retain(|&touched| touched != place);
        for touched in &mut self.touched {
            if *touched == moved_from {
                *touched = place;
            }
        }
        Some(peer)
    }
}

impl Peer {
    /// Adds what is new in its sequence account to the counters.
    fn book(&mut self, shared: &Shared, meter: &mut Meter) {
        let Some(now) = self.intake.decoder.sequence() else {
            return;
        };
        // A sample that arrives late reduces the missing count: the wrapping addition subtracts.
        add(
            &shared.counters.missing_samples,
            now.missing.wrapping_sub(self.booked.missing),
        );
        add(
            &shared.counters.repeated_samples,
            now.repeated.wrapping_sub(self.booked.repeated),
        );
        if now.has_ended != self.has_ended {
            self.has_ended = now.has_ended;
            if now.has_ended {
                add(&shared.counters.ended_senders, 1);
                self.end(shared, meter);
                shared
                    .counters
                    .open_connections
                    .fetch_sub(1, std::sync::atomic::Ordering::AcqRel);
            } else {
                add(&shared.counters.connections, 1);
                add(&shared.counters.open_connections, 1);
            }
        }
        self.booked = now;
    }

    /// Tells the decoder that the input has ended, and applies the last samples.
    fn end(&mut self, shared: &Shared, meter: &mut Meter) {
        let mut sink = CountingSink::new(&mut *self.intake.sink, &shared.counters, meter);
        self.intake.decoder.finish(&[], &mut sink);
        sink.publish();
        if self.intake.sink.apply(self.consumed).is_err() {
            add(&shared.counters.fatal_closes, 1);
        }
    }
}
