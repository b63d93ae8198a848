//! Mileposts: response time over a wire without acknowledgements.
//!
//! Where emitter and listener share a process, the emitter queues a milepost for every operation:
//! the operation's end in the byte stream, its due time and its start. The ingest thread passes
//! the milepost when the store has applied everything up to that offset, and this is when the
//! operation was done. It needs no room in the payload, so it works for every protocol. Over
//! datagrams, mileposts count datagrams instead of bytes, and waymarks show which of these
//! arrived.
//!
//! The ingest thread also knows when it read the bytes, so the time in sockets is kept apart from
//! the time in decoder and store:
//!
//! ```text
//!   due        start      encoded         read               applied
//!    |---lag----|-encoding--|--transport---|                   |
//!               |---------delivery---------|------service------|
//!    |-----------------------response--------------------------|
//! ```

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rtrb::{Consumer, Producer, RingBuffer};

use super::address::Address;
use super::datagram::{WaymarkReceiver, WaymarkSender};
use crate::breakdown::{Breakdown, Parts};
use crate::latency::Histogram;
use crate::schedule::Slot;

/// One operation on the wire, as its emitter sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Milepost {
    /// Number of the first datagram that holds one of its samples; 0 in a stream.
    pub(super) from: u64,
    /// The stream offset of the first byte after the operation; over datagrams, the number of
    /// datagrams up to and including its last.
    pub(super) end: u64,
    /// Due time, in nanoseconds of the run's clock.
    pub(super) due: u64,
    /// The part of the time from due until start in which the emitter itself was late, in
    /// nanoseconds.
    pub(super) late: u64,
    /// Start time, on the same clock.
    pub(super) start: u64,
    /// When all of it was encoded, on the same clock.
    pub(super) encoded: u64,
    /// Number of samples.
    pub(super) samples: u32,
    /// Its group in the roster.
    pub(super) group: u32,
    /// Tick of the group.
    pub(super) tick: u64,
}

impl Milepost {
    /// What the response time consists of. `start` and `arrival.read` are not later than `now`.
    fn parts(&self, start: u64, arrival: Arrival, now: u64) -> Parts {
        let mut parts = Parts::of_lag(start.saturating_sub(self.due), self.late);
        let encoded = self.encoded.clamp(start, arrival.read);
        let behind = arrival.busy_until.min(arrival.read);
        let waiting_ns = behind.saturating_sub(encoded.max(arrival.busy_from));
        parts.encoding_ns = encoded - start;
        parts.waiting_ns += waiting_ns;
        parts.transport_ns = arrival.read - encoded - waiting_ns;
        parts.store_ns = now - arrival.read;
        parts
    }
}

/// When the receiver had read an operation, and how long it had been busy with earlier ones: an
/// operation that was there meanwhile waited for them. On the run's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Since when it has been busy without a pause.
    pub(super) busy_from: u64,
    /// When it was done with the last earlier operation.
    pub(super) busy_until: u64,
    /// When the operation's last byte was read.
    pub(super) read: u64,
}

/// Marks reserved per operation. The mark of a lost datagram stays in the queue until a later datagram
/// arrives: if one in a hundred arrives, the ten thousand in a full receive buffer span a million marks.
const DATAGRAMS: usize = 16;

/// The mileposts of all connections of a run, matched by the emitter's local address.
///
/// Share one between the targets and the listener of a process.
#[derive(Debug)]
pub struct Mileposts {
    capacity: usize,
    unclaimed: Mutex<HashMap<Address, Unclaimed>>,
}

/// The listener's end of the queue of an emitter, until a listener claims it.
#[derive(Debug)]
enum Unclaimed {
    Stream(Consumer<Milepost>),
    Datagrams(WaymarkReceiver),
}

impl Mileposts {
    /// Queues with room for `capacity` operations in flight per connection. An operation that
    /// finds no room is sent nevertheless and counted as untimed.
    pub fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            capacity: capacity.max(1),
            unclaimed: Mutex::default(),
        })
    }

    /// Creates the emitter's end. Call it before the first byte is sent from `local`.
    pub(super) fn sender(&self, local: &Address) -> Producer<Milepost> {
        let (producer, consumer) = RingBuffer::new(self.capacity);
        self.lock().insert(local.clone(), Unclaimed::Stream(consumer));
        producer
    }

    /// The same for one of `sockets` datagram sockets, which share the capacity.
    pub(super) fn mark(&self, local: &Address, sockets: usize) -> WaymarkSender {
        let share = |room: usize| (room / sockets.max(1)).max(1024);
        let capacity = share(self.capacity.saturating_mul(DATAGRAMS));
        let (mileposts, laid) = RingBuffer::new(share(self.capacity));
        let (marks, marked) = RingBuffer::new(capacity);
        self.lock()
            .insert(local.clone(), Unclaimed::Datagrams(WaymarkReceiver::new(laid, marked)));
        WaymarkSender::new(mileposts, marks, capacity)
    }

    /// Takes the listener's end. Call it after the first byte has arrived from `peer`.
    pub(super) fn claim(&self, peer: &Address) -> Option<Consumer<Milepost>> {
        match self.lock().remove(peer)? {
            Unclaimed::Stream(mileposts) => Some(mileposts),
            Unclaimed::Datagrams(_) => None,
        }
    }

    /// Takes the listener's end for datagrams. Call it after the first has arrived from `peer`.
    pub(super) fn waymark_receiver(&self, peer: &Address) -> Option<WaymarkReceiver> {
        match self.lock().remove(peer)? {
            Unclaimed::Stream(_) => None,
            Unclaimed::Datagrams(waymark_receiver) => Some(waymark_receiver),
        }
    }

    /// Gives up on the datagrams of senders from which none arrived; returns their number.
    pub(super) fn abandon_unheard(&self, timing: &mut Timing) -> u64 {
        let mut lost = 0;
        self.lock().retain(|_, unclaimed| match unclaimed {
            Unclaimed::Stream(_) => true,
            Unclaimed::Datagrams(waymark_receiver) => {
                lost += waymark_receiver.abandon(timing);
                false
            }
        });
        lost
    }

    /// Discards the unclaimed queue of `local`, which sends no more. A claimed one is not
    /// affected.
    pub(super) fn forget(&self, local: &Address) {
        self.lock().remove(local);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Address, Unclaimed>> {
        self.unclaimed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The times that the mileposts gave.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Timing {
    /// Due until applied, in nanoseconds; one entry per operation.
    pub response: Histogram,
    /// Start until the ingest thread had read the operation, in nanoseconds; one entry per
    /// operation.
    pub delivery: Histogram,
    /// Read until applied, in nanoseconds: decoder and store; one entry per operation.
    pub service: Histogram,
    /// What response times consist of.
    pub breakdown: Breakdown,
    /// Number of samples of the timed operations.
    pub samples: u64,
    /// Operations whose last byte never arrived because the connection ended before.
    pub unfinished: u64,
    /// Operations of which a datagram was lost. They never ended, so they have no time.
    pub lost: u64,
    /// Group and tick of the unfinished and lost operations: the first 131,072 of them. The two
    /// counts are exact.
    pub named: Vec<(u32, u64)>,
}

/// Maximum number of operations in `named`.
const NAMED_MAX: usize = 1 << 17;

impl Timing {
    /// Timings of no operation.
    pub fn new() -> Self {
        Self {
            response: Histogram::new(),
            delivery: Histogram::new(),
            service: Histogram::new(),
            breakdown: Breakdown::new(),
            samples: 0,
            unfinished: 0,
            lost: 0,
            named: Vec::new(),
        }
    }

    /// Times an operation whose last byte was read at `arrival.read` and that was applied at `now`.
    pub(super) fn record(&mut self, milepost: &Milepost, arrival: Arrival, now: u64) {
        let start = milepost.start.min(now);
        let read = arrival.read.clamp(start, now);
        self.response.record(now.saturating_sub(milepost.due));
        self.delivery.record(read - start);
        self.service.record(now - read);
        let slot = Slot {
            group: milepost.group,
            tick: milepost.tick,
            offset_ns: 0,
        };
        self.breakdown.record(
            slot,
            milepost.due,
            &milepost.parts(start, Arrival { read, ..arrival }, now),
        );
        self.samples += u64::from(milepost.samples);
    }

    /// Counts an operation of which a datagram was lost.
    pub(super) fn lose(&mut self, milepost: &Milepost) {
        self.lost += 1;
        self.name(milepost);
    }

    /// Counts an operation whose end never arrived.
    pub(super) fn leave(&mut self, milepost: &Milepost) {
        self.unfinished += 1;
        self.name(milepost);
    }

    fn name(&mut self, milepost: &Milepost) {
        if self.named.len() < NAMED_MAX {
            self.named.push((milepost.group, milepost.tick));
        }
    }

    /// Passes every milepost up to stream offset `applied`, at time `now`; the bytes up to there
    /// arrived as `arrival` says.
    pub(super) fn pass(&mut self, mileposts: &mut Consumer<Milepost>, applied: u64, arrival: Arrival, now: u64) {
        while let Ok(next) = mileposts.peek() {
            if next.end > applied {
                break;
            }
            self.record(&next.clone(), arrival, now);
            let _ = mileposts.pop();
        }
    }

    /// Counts all remaining mileposts as unfinished.
    pub(super) fn abandon(&mut self, mileposts: &mut Consumer<Milepost>) {
        while let Ok(milepost) = mileposts.pop() {
            self.leave(&milepost);
        }
    }

    /// Adds the contents of `other`, and empties it.
    pub fn absorb(&mut self, other: &mut Self) {
        self.response.merge(&other.response);
        self.delivery.merge(&other.delivery);
        self.service.merge(&other.service);
        self.breakdown.merge(&other.breakdown);
        self.samples += other.samples;
        self.unfinished += other.unfinished;
        self.lost += other.lost;
        let room = NAMED_MAX.saturating_sub(self.named.len());
        self.named.extend(other.named.drain(..).take(room));
        other.response.clear();
        other.delivery.clear();
        other.service.clear();
        other.breakdown.clear();
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
        let mut laid = mileposts.sender(&address);
        let mut claimed = mileposts.claim(&address).unwrap();
        assert!(mileposts.claim(&address).is_none());
        for (end, due) in [(100, 1_000), (250, 2_000)] {
            let start = due + 10;
            laid.push(Milepost {
                from: 0,
                end,
                due,
                late: 0,
                start,
                encoded: start + 40,
                samples: 5,
                group: 3,
                tick: due,
            })
            .unwrap();
        }
        let mut timing = Timing::new();
        let arrival = Arrival {
            busy_from: 0,
            busy_until: 1_300,
            read: 1_400,
        };
        timing.pass(&mut claimed, 249, arrival, 1_500);
        assert_eq!((timing.response.count(), timing.samples), (1, 5));
        assert_eq!(timing.response.max(), Some(500));
        assert_eq!(timing.delivery.max(), Some(390));
        assert_eq!(timing.service.max(), Some(100));
        // Of the lag of 10 none was the emitter's own; it was encoded at 1,050 and waited until 1,300.
        let parts = timing.breakdown.worst()[0].parts;
        assert_eq!((parts.waiting_ns, parts.late_ns), (10 + 250, 0));
        assert_eq!((parts.encoding_ns, parts.transport_ns, parts.store_ns), (40, 100, 100));
        timing.abandon(&mut claimed);
        assert_eq!((timing.unfinished, &timing.named[..]), (1, &[(3, 2_000)][..]));
        let mut sum = Timing::new();
        sum.absorb(&mut timing);
        assert_eq!((sum.response.count(), sum.unfinished, sum.named.len()), (1, 1, 1));
        assert_eq!((timing.response.count(), timing.samples), (0, 0));
    }
}
