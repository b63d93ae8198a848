//! Waymarks: which datagrams arrived, where emitter and listener share a process.
//!
//! The emitter queues a waymark, a hash of the bytes, for every datagram that it sends; the
//! listener searches the queue for the mark of each datagram that it receives. The marks that it
//! skips belong to lost datagrams. This needs no room in the payload, so it works for every
//! protocol, and it shows for each operation whether all of it arrived.

use std::collections::VecDeque;
use std::ops::Range;

use rtrb::{Consumer, Producer};

use crate::net::milepost::{Arrival, Milepost, Timing};

/// A hash of a datagram's beginning, end and length. In text protocols the timestamp is at the end
/// of a line, so the beginning alone is the same at every tick.
#[inline]
pub(in crate::net) fn mark_of(datagram: &[u8]) -> u64 {
    const HEAD: usize = 64;
    const TAIL: usize = 32;
    let (head, rest) = datagram.split_at(datagram.len().min(HEAD));
    let tail = &rest[rest.len().saturating_sub(TAIL)..];
    mix(mix(datagram.len() as u64, head), tail)
}

#[inline]
fn mix(mut hash: u64, bytes: &[u8]) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        hash = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(MULTIPLIER);
        hash ^= hash >> 29;
    }
    rest.iter()
        .fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(MULTIPLIER))
}

/// The emitter's end of the queue of marks.
#[derive(Debug)]
pub(in crate::net) struct WaymarkSender {
    mileposts: Producer<Milepost>,
    laid: Producer<u64>,
    capacity: usize,
    /// Number of datagrams marked so far.
    marked: u64,
    /// A mark did not fit into the queue: no datagram is marked until the listener has consumed
    /// all others.
    is_lost: bool,
}

impl WaymarkSender {
    pub(in crate::net) fn new(mileposts: Producer<Milepost>, marks: Producer<u64>, capacity: usize) -> Self {
        Self {
            mileposts,
            laid: marks,
            capacity,
            marked: 0,
            is_lost: false,
        }
    }

    /// Number of datagrams marked so far.
    pub(super) fn marked(&self) -> u64 {
        self.marked
    }

    /// Queues the milepost of an operation whose samples are in datagrams `from..to`, as marked.
    /// Returns `false` if there was no room: the operation is not timed.
    pub(super) fn queue(&mut self, from: u64, milepost: Milepost) -> bool {
        let milepost = Milepost { from, ..milepost };
        !self.is_lost && self.mileposts.push(milepost).is_ok()
    }

    /// Marks a datagram that is about to be sent.
    pub(super) fn mark(&mut self, datagram: &[u8]) {
        if self.is_lost && self.laid.slots() == self.capacity {
            self.is_lost = false;
        }
        if !self.is_lost {
            let laid = self.laid.push(mark_of(datagram));
            self.is_lost = laid.is_err();
            self.marked += u64::from(laid.is_ok());
        }
    }
}

/// The listener's end of the queue of marks.
#[derive(Debug)]
pub(in crate::net) struct WaymarkReceiver {
    mileposts: Consumer<Milepost>,
    marks: Consumer<u64>,
    /// Number of marks passed so far.
    passed: u64,
    /// Ranges of marks whose datagrams did not arrive, kept as long as an operation may refer to
    /// them.
    lost: VecDeque<Range<u64>>,
    /// Number of marks passed, with the time, for each read since mileposts were last passed.
    read: Vec<(u64, u64)>,
}

/// Initial capacity for reads that are not applied yet; it grows when more are applied together.
const READS: usize = 32;

impl WaymarkReceiver {
    pub(in crate::net) fn new(mileposts: Consumer<Milepost>, marks: Consumer<u64>) -> Self {
        Self {
            mileposts,
            marks,
            passed: 0,
            lost: VecDeque::new(),
            read: Vec::with_capacity(READS),
        }
    }

    /// Records that a datagram arrived. Returns how many datagrams before it are newly known to be
    /// lost.
    #[inline]
    pub(super) fn arrive(&mut self, datagram: &[u8]) -> u64 {
        let mark = mark_of(datagram);
        if self.marks.peek() == Ok(&mark) {
            let _ = self.marks.pop();
            self.passed += 1;
            return 0;
        }
        self.skip_to(mark)
    }

    /// Records that everything that arrived so far was read at `now`.
    #[inline]
    pub(super) fn read_by(&mut self, now: u64) {
        self.read.push((self.passed, now));
    }

    #[cold]
    fn skip_to(&mut self, mark: u64) -> u64 {
        let slots = self.marks.slots();
        let is_full = slots == self.marks.buffer().capacity();
        let Ok(chunk) = self.marks.read_chunk(slots) else {
            return 0;
        };
        let (first, second) = chunk.as_slices();
        let found = first.iter().chain(second).position(|other| *other == mark);
        let (lost, arrived) = match found {
            Some(ahead) => (ahead, 1),
            // It was sent while the queue was full, so after every datagram in it: none of these
            // can arrive any more, and the emitter is waiting for their room.
            None if is_full => (slots, 0),
            // The datagram is late, a duplicate, foreign, or sent just before the queue had room
            // again.
            None => return 0,
        };
        chunk.commit(lost + arrived);
        let range = self.passed..self.passed + lost as u64;
        self.passed = range.end + arrived as u64;
        self.lost.push_back(range);
        lost as u64
    }

    /// Passes every milepost all of whose datagrams have arrived or are lost, at time `now`. The
    /// receiver has been busy since `busy_from`.
    pub(super) fn pass(&mut self, timing: &mut Timing, busy_from: u64, now: u64) {
        let mut reads = self.read.iter().copied().peekable();
        while let Ok(next) = self.mileposts.peek() {
            if next.end > self.passed {
                break;
            }
            while self.lost.front().is_some_and(|lost| lost.end <= next.from) {
                self.lost.pop_front();
            }
            if self.lost.front().is_some_and(|lost| lost.start < next.end) {
                timing.lose(&next.clone());
            } else {
                while reads.next_if(|(passed, _)| *passed < next.end).is_some() {}
                let read = reads.peek().map_or(now, |(_, at)| *at);
                let arrival = Arrival {
                    busy_from,
                    busy_until: read,
                    read,
                };
                timing.record(next, arrival, now);
            }
            let _ = self.mileposts.pop();
        }
        // The mileposts that are left end with a datagram that has not been read.
        self.read.clear();
        if self.mileposts.is_empty() && self.lost.len() > 1 {
            self.lost.drain(..self.lost.len() - 1);
        }
    }

    /// Gives up on all remaining marks; returns how many datagrams never arrived.
    pub(in crate::net) fn abandon(&mut self, timing: &mut Timing) -> u64 {
        while let Ok(milepost) = self.mileposts.pop() {
            timing.leave(&milepost);
        }
        let mut lost = 0;
        while self.marks.pop().is_ok() {
            lost += 1;
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use rtrb::RingBuffer;

    use super::*;

    fn pair(capacity: usize) -> (WaymarkSender, WaymarkReceiver) {
        let (mileposts, laid) = RingBuffer::new(capacity);
        let (marks, marked) = RingBuffer::new(capacity);
        (
            WaymarkSender::new(mileposts, marks, capacity),
            WaymarkReceiver::new(laid, marked),
        )
    }

    fn operation(end: u64) -> Milepost {
        Milepost {
            from: 0,
            end,
            due: 100,
            late: 4,
            start: 110,
            encoded: 150,
            samples: 5,
            group: 7,
            tick: end,
        }
    }

    #[test]
    fn marks_of_what_was_dropped_do_not_hold_up_the_next() {
        let (mut marks, mut waymark_receiver) = pair(64);
        let mut timing = Timing::new();
        let datagram = |index: u64| [index.to_le_bytes(); 20].concat();
        let (mut sent, mut lost) = (0, 0);
        // Of each hundred one arrives that is marked, and one that found no room.
        for index in 0..20_000_u64 {
            let before = marks.marked();
            marks.mark(&datagram(index));
            sent += marks.marked() - before;
            if [20, 99].contains(&(index % 100)) {
                lost += waymark_receiver.arrive(&datagram(index));
            }
        }
        assert_eq!((sent, sent - lost), (200 * (21 + 64), 200));
        // When all arrive again, all are known again.
        let before = marks.marked();
        for index in 20_000..20_100 {
            marks.mark(&datagram(index));
            assert_eq!(waymark_receiver.arrive(&datagram(index)), 0);
        }
        assert_eq!(marks.marked() - before, 100);
        assert_eq!(waymark_receiver.abandon(&mut timing), 0);
    }

    #[test]
    fn an_operation_is_timed_if_all_its_datagrams_came() {
        let (mut marks, mut waymark_receiver) = pair(64);
        let datagrams: Vec<Vec<u8>> = (0..10u8).map(|index| vec![index; 100]).collect();
        // Operations in datagrams 0..2, 1..3, 3..4, 4..8, 8..10; datagrams 2 and 6 are lost.
        for (from, end) in [(0, 2), (1, 3), (3, 4), (4, 8), (8, 10)] {
            assert!(marks.queue(from, operation(end)));
        }
        for datagram in &datagrams {
            marks.mark(datagram);
        }
        assert_eq!(marks.marked(), 10);
        let mut timing = Timing::new();
        let mut lost = 0;
        for (index, datagram) in datagrams.iter().enumerate() {
            if index != 2 && index != 6 {
                lost += waymark_receiver.arrive(datagram);
                waymark_receiver.read_by(200 + index as u64 * 100);
            }
        }
        assert_eq!(waymark_receiver.arrive(&datagrams[1]), 0, "doubled");
        assert_eq!(waymark_receiver.arrive(b"of another"), 0);
        waymark_receiver.pass(&mut timing, 250, 1_000);
        assert_eq!((lost, timing.response.count(), timing.lost), (2, 3, 2));
        assert_eq!(timing.named, [(7, 3), (7, 8)]);
        // Their last datagrams were read at 300, 500 and 1,100; what is read late is not timed
        // as read after it was applied.
        assert_eq!((timing.delivery.min(), timing.delivery.max()), (Some(190), Some(890)));
        assert_eq!((timing.service.min(), timing.service.max()), (Some(0), Some(700)));
        // That which was read at 500 waited from 250 on for the receiver.
        let fifth = timing.breakdown.worst().into_iter().find(|one| one.tick == 4).unwrap();
        assert_eq!((fifth.parts.waiting_ns, fifth.parts.late_ns), (6 + 250, 4));
        assert_eq!(
            (fifth.parts.encoding_ns, fifth.parts.transport_ns, fifth.parts.store_ns),
            (40, 100, 500)
        );
        assert_eq!(waymark_receiver.abandon(&mut timing), 0);
    }

    #[test]
    fn a_mark_tells_ticks_apart_that_differ_in_their_last_time_only() {
        let tick = |second: u32| {
            let line = format!("cpu,host=host_12,region=eu-west-1 usage_user=58,usage_system=2 {second}000000000\n");
            [line.as_bytes(); 16].concat()
        };
        assert_ne!(mark_of(&tick(1_700_000_000)), mark_of(&tick(1_700_000_001)));
        let short: Vec<u64> = (0..=120).map(|length| mark_of(&vec![0; length])).collect();
        assert!(
            short
                .iter()
                .enumerate()
                .all(|(index, mark)| !short[..index].contains(mark))
        );
        for flipped in (0..64).chain(88..120) {
            let mut datagram = vec![0; 120];
            datagram[flipped] = 1;
            assert_ne!(mark_of(&datagram), short[120], "{flipped}");
        }
    }

    #[test]
    fn operations_beyond_capacity_are_untimed_and_leave_the_others_exact() {
        let (mut marks, mut waymark_receiver) = pair(4);
        let datagrams: Vec<Vec<u8>> = (0..20u8).map(|index| vec![index; 100]).collect();
        let mut timing = Timing::new();
        datagrams[..8].iter().for_each(|datagram| marks.mark(datagram));
        assert!(!marks.queue(0, operation(1)));
        for datagram in &datagrams[..8] {
            assert_eq!(waymark_receiver.arrive(datagram), 0);
        }
        marks.mark(&datagrams[8]);
        assert!(marks.queue(4, operation(5)));
        assert_eq!(waymark_receiver.arrive(&datagrams[8]), 0);
        waymark_receiver.pass(&mut timing, 250, 1_000);
        assert_eq!((timing.response.count(), timing.lost), (1, 0));
        marks.mark(&datagrams[9]);
        assert!(marks.queue(5, operation(6)));
        assert_eq!(waymark_receiver.abandon(&mut timing), 1);
        assert_eq!(timing.unfinished, 1);
    }
}
