//! Response time over a wire that acknowledges nothing.
//!
//! Where emitter and listener share a process, the emitter leaves a milepost for every
//! operation: where in the stream it ends, when it was due and when it started. The
//! ingest thread passes the milepost when the store has applied everything up to there,
//! and that is when the operation was done. It works for every protocol, because it needs
//! no room in the payload. Over datagrams it is datagrams that are counted, and waymarks
//! say which of them came.
//!
//! The ingest thread also knows when it read the bytes, so what an operation waited in
//! sockets is kept apart from what decoder and store took:
//!
//! ```text
//!   due        start                      read               applied
//!    |---lag----|---------delivery---------|------service------|
//!    |-----------------------response--------------------------|
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rtrb::{Consumer, Producer, RingBuffer};

use super::address::Address;
use super::datagram::{Marks, Track};
use crate::latency::Histogram;

/// One operation on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Milepost {
    /// The first datagram with one of its samples; 0 in a stream.
    pub(super) from: u64,
    /// The offset in the stream of the first byte after the operation; over datagrams, how
    /// many there are up to its last.
    pub(super) end: u64,
    /// When it was due, in nanoseconds of the run's clock.
    pub(super) due: u64,
    /// When it was started.
    pub(super) start: u64,
    /// How many samples it holds.
    pub(super) samples: u32,
    /// Its group in the roster.
    pub(super) group: u32,
    /// Which tick of the group it is.
    pub(super) tick: u64,
}

/// Room for the marks of so many datagrams an operation. A full receive buffer holds some ten
/// thousand, and where an emitter is a hundred times too fast, those are the hundredth part of
/// what is marked.
const DATAGRAMS: usize = 16;

/// The mileposts of all connections of a run, matched by the emitter's local address.
///
/// Share one between the targets and the listener of a process.
#[derive(Debug)]
pub struct Mileposts {
    capacity: usize,
    unclaimed: Mutex<HashMap<Address, Unclaimed>>,
}

/// What an emitter laid and no listener has asked for yet.
#[derive(Debug)]
enum Unclaimed {
    Stream(Consumer<Milepost>),
    Datagrams(Track),
}

impl Mileposts {
    /// Room for `capacity` operations in flight on each connection; an operation that
    /// finds no room is sent all the same and counted as untimed.
    pub fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            capacity: capacity.max(1),
            unclaimed: Mutex::default(),
        })
    }

    /// The emitter's end. To be called before the first byte is sent from `local`.
    pub(super) fn lay(&self, local: &Address) -> Producer<Milepost> {
        let (producer, consumer) = RingBuffer::new(self.capacity);
        self.lock().insert(local.clone(), Unclaimed::Stream(consumer));
        producer
    }

    /// The same for one of so many datagram sockets, which share the room.
    pub(super) fn mark(&self, local: &Address, sockets: usize) -> Marks {
        let share = |room: usize| (room / sockets.max(1)).max(1024);
        let capacity = share(self.capacity.saturating_mul(DATAGRAMS));
        let (mileposts, laid) = RingBuffer::new(share(self.capacity));
        let (marks, marked) = RingBuffer::new(capacity);
        self.lock()
            .insert(local.clone(), Unclaimed::Datagrams(Track::new(laid, marked)));
        Marks::new(mileposts, marks, capacity)
    }

    /// The listener's end. To be called after the first byte has come from `peer`.
    pub(super) fn claim(&self, peer: &Address) -> Option<Consumer<Milepost>> {
        match self.lock().remove(peer)? {
            Unclaimed::Stream(mileposts) => Some(mileposts),
            Unclaimed::Datagrams(_) => None,
        }
    }

    /// The listener's end of datagrams. To be called after the first has come from `peer`.
    pub(super) fn track(&self, peer: &Address) -> Option<Track> {
        match self.lock().remove(peer)? {
            Unclaimed::Stream(_) => None,
            Unclaimed::Datagrams(track) => Some(track),
        }
    }

    /// Gives up on the datagrams of senders of which none came; returns how many there are.
    pub(super) fn abandon_unheard(&self, timing: &mut Timing) -> u64 {
        let mut lost = 0;
        self.lock().retain(|_, unclaimed| match unclaimed {
            Unclaimed::Stream(_) => true,
            Unclaimed::Datagrams(track) => {
                lost += track.abandon(timing);
                false
            }
        });
        lost
    }

    /// Nothing more will come from `local`; whoever claimed its mileposts keeps them.
    pub(super) fn forget(&self, local: &Address) {
        self.lock().remove(local);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Address, Unclaimed>> {
        self.unclaimed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the mileposts said.
#[derive(Clone, Debug)]
pub struct Timing {
    /// Due until applied, in nanoseconds; one entry an operation.
    pub response: Histogram,
    /// Start until the ingest thread had read it, in nanoseconds; one entry for each operation.
    pub delivery: Histogram,
    /// Read until applied, in nanoseconds: decoder and store; one entry for each operation.
    pub service: Histogram,
    /// Samples of those operations.
    pub samples: u64,
    /// Operations whose bytes never came, or were cut short by the end of a connection.
    pub unfinished: u64,
    /// Operations of which a datagram was lost: they never ended, so they have no time.
    pub lost: u64,
    /// The group and the tick of the unfinished and the lost: of the first 131,072, beside the
    /// counts, which are exact.
    pub named: Vec<(u32, u64)>,
}

/// Operations that did not arrive whole are named up to this many.
const NAMED_MAX: usize = 1 << 17;

impl Timing {
    /// Nothing timed yet.
    pub fn new() -> Self {
        Self {
            response: Histogram::new(),
            delivery: Histogram::new(),
            service: Histogram::new(),
            samples: 0,
            unfinished: 0,
            lost: 0,
            named: Vec::new(),
        }
    }

    /// Times an operation whose last byte was read at `read`, and that is applied at `now`.
    pub(super) fn record(&mut self, milepost: &Milepost, read: u64, now: u64) {
        let read = read.clamp(milepost.start.min(now), now);
        self.response.record(now.saturating_sub(milepost.due));
        self.delivery.record(read - milepost.start.min(now));
        self.service.record(now - read);
        self.samples += u64::from(milepost.samples);
    }

    /// An operation did not arrive whole.
    pub(super) fn lose(&mut self, milepost: &Milepost) {
        self.lost += 1;
        self.name(milepost);
    }

    /// The end of an operation never came.
    pub(super) fn leave(&mut self, milepost: &Milepost) {
        self.unfinished += 1;
        self.name(milepost);
    }

    fn name(&mut self, milepost: &Milepost) {
        if self.named.len() < NAMED_MAX {
            self.named.push((milepost.group, milepost.tick));
        }
    }

    /// Passes every milepost up to offset `applied`, at time `now`; the bytes up to there
    /// were read by `read`.
    pub(super) fn pass(&mut self, mileposts: &mut Consumer<Milepost>, applied: u64, read: u64, now: u64) {
        while let Ok(next) = mileposts.peek() {
            if next.end > applied {
                break;
            }
            self.record(&next.clone(), read, now);
            let _ = mileposts.pop();
        }
    }

    /// Gives up on whatever mileposts are left.
    pub(super) fn abandon(&mut self, mileposts: &mut Consumer<Milepost>) {
        while let Ok(milepost) = mileposts.pop() {
            self.leave(&milepost);
        }
    }

    /// Adds what `other` knows and empties it.
    pub fn absorb(&mut self, other: &mut Self) {
        self.response.merge(&other.response);
        self.delivery.merge(&other.delivery);
        self.service.merge(&other.service);
        self.samples += other.samples;
        self.unfinished += other.unfinished;
        self.lost += other.lost;
        let room = NAMED_MAX.saturating_sub(self.named.len());
        self.named.extend(other.named.drain(..).take(room));
        other.response.clear();
        other.delivery.clear();
        other.service.clear();
        other.samples = 0;
        other.unfinished = 0;
        other.lost = 0;
    }
}

impl Default for Timing {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_milepost_is_passed_when_its_last_byte_is_applied() {
        let mileposts = Mileposts::new(8);
        let address = Address::from(std::net::SocketAddr::from(([127, 0, 0, 1], 4242)));
        let mut laid = mileposts.lay(&address);
        let mut claimed = mileposts.claim(&address).unwrap();
        assert!(mileposts.claim(&address).is_none());
        for (end, due) in [(100, 1_000), (250, 2_000)] {
            let start = due + 10;
            laid.push(Milepost {
                from: 0,
                end,
                due,
                start,
                samples: 5,
                group: 3,
                tick: due,
            })
            .unwrap();
        }
        let mut timing = Timing::new();
        timing.pass(&mut claimed, 249, 1_400, 1_500);
        assert_eq!((timing.response.count(), timing.samples), (1, 5));
        assert_eq!(timing.response.max(), Some(500));
        assert_eq!(timing.delivery.max(), Some(390));
        assert_eq!(timing.service.max(), Some(100));
        timing.abandon(&mut claimed);
        assert_eq!((timing.unfinished, &timing.named[..]), (1, &[(3, 2_000)][..]));
        let mut sum = Timing::new();
        sum.absorb(&mut timing);
        assert_eq!((sum.response.count(), sum.unfinished, sum.named.len()), (1, 1, 1));
        assert_eq!((timing.response.count(), timing.samples), (0, 0));
    }
}
