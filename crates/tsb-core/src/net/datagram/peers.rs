//! Who sends to a datagram socket: found by address.
//!
//! What is kept of senders is bounded, and being heard is not: where there is no room for a
//! new sender, the one that has sent the least of late is forgotten. What waited of it is
//! counted, and it is a new sender when it comes back.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use super::waymark::Track;
use crate::net::address::Address;
use crate::net::cpu::Meter;
use crate::net::ingest::Intake;
use crate::net::link::{Counting, Shared};
use crate::net::milepost::Timing;
use crate::net::stats::add;
use crate::wire::Sequence;

/// How many searches for room a sender outlasts for each datagram behind its first.
const CREDIT: usize = 16;

/// One sender.
#[derive(Debug)]
pub(super) struct Peer {
    address: Address,
    intake: Intake,
    track: Option<Track>,
    /// When it last sent something.
    heard_at: u64,
    /// How many searches for room it outlasts.
    credit: u8,
    /// What of its account is in the counters.
    booked: Sequence,
    /// Bytes decoded so far.
    consumed: u64,
    /// Something of it is not applied yet.
    is_touched: bool,
    /// It said that nothing follows.
    has_ended: bool,
}

/// Datagrams of one sender that were read together.
#[derive(Debug)]
pub(super) struct Read<'a> {
    /// Their bytes.
    pub(super) bytes: &'a [u8],
    /// The length of each but the last.
    pub(super) each: usize,
    /// When they were taken up; 0 where nothing is timed.
    pub(super) at: u64,
}

/// The senders of one socket.
#[derive(Debug, Default)]
pub(super) struct Peers {
    by_address: HashMap<Address, usize, foldhash::fast::RandomState>,
    all: Vec<Peer>,
    /// Who sent last.
    last: usize,
    /// Who is looked at first when room is needed.
    hand: usize,
    touched: Vec<usize>,
}

impl Peers {
    /// Makes sure that the sender is known, and returns its place.
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
            track: shared.mileposts.as_ref().and_then(|all| all.track(address)),
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

    /// Forgets one sender: the first, in turn, that said that nothing follows or has no credit.
    /// Each look costs a sender some, so a search is short on average however many strangers
    /// come, and strangers that come once make room for each other.
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

    /// Decodes datagrams of a peer. `false`: it is over with this peer.
    pub(super) fn take(&mut self, place: usize, read: &Read<'_>, shared: &Shared, meter: &mut Meter) -> bool {
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
        let mut sink = Counting::new(&mut *peer.intake.sink, &shared.counters, meter);
        let mut is_good = true;
        for datagram in read.bytes.chunks(read.each) {
            if let Some(track) = &mut peer.track {
                let lost = track.arrive(datagram);
                if lost > 0 {
                    add(&shared.counters.missing_datagrams, lost);
                }
            }
            is_good &= peer.intake.decoder.decode(datagram, &mut sink).is_ok();
        }
        if let Some(track) = &mut peer.track {
            track.read_by(read.at);
        }
        sink.publish();
        peer.consumed += read.bytes.len() as u64;
        is_good
    }

    /// Has everything applied that was decoded since the last call, and closes the peers
    /// whose sink cannot go on.
    pub(super) fn apply(&mut self, shared: &Shared, timing: &Mutex<Timing>, meter: &mut Meter) {
        let mut failed = Vec::new();
        for place in std::mem::take(&mut self.touched) {
            let peer = &mut self.all[place];
            peer.is_touched = false;
            let applied = peer.intake.sink.apply(peer.consumed);
            let now = shared.clock.now();
            peer.heard_at = now;
            peer.book(shared, meter);
            if let Some(track) = &mut peer.track {
                track.pass(&mut timing.lock().unwrap_or_else(PoisonError::into_inner), now);
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

    /// Closes peers that sent nothing for so long.
    pub(super) fn close_idle(&mut self, idle_ns: u64, shared: &Shared, timing: &Mutex<Timing>, meter: &mut Meter) {
        let now = shared.clock.now();
        let before = self.all.len();
        self.close_if(shared, timing, meter, |peer| {
            now.saturating_sub(peer.heard_at) >= idle_ns
        });
        add(&shared.counters.idle_closes, (before - self.all.len()) as u64);
    }

    /// Closes all of them.
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
            if let Some(track) = &mut peer.track {
                let lost = track.abandon(&mut timing.lock().unwrap_or_else(PoisonError::into_inner));
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

    /// Drops a peer whose decoder or sink panicked: nothing of it can be trusted.
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
        // The last one has moved into its place.
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
    /// Puts what its account says into the counters.
    fn book(&mut self, shared: &Shared, meter: &mut Meter) {
        let Some(now) = self.intake.decoder.sequence() else {
            return;
        };
        // What came late is taken back: the counters wrap around zero together.
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

    /// Tells the decoder that nothing more comes, and has the last samples applied.
    fn end(&mut self, shared: &Shared, meter: &mut Meter) {
        let mut sink = Counting::new(&mut *self.intake.sink, &shared.counters, meter);
        self.intake.decoder.finish(&[], &mut sink);
        sink.publish();
        if self.intake.sink.apply(self.consumed).is_err() {
            add(&shared.counters.fatal_closes, 1);
        }
    }
}
