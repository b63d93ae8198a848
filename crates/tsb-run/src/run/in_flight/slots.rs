//! The writes of one worker that are in flight: which there are, in which order they were handed
//! over, and which of them has to wait for an earlier one. Pure: no lock, no clock.
//!
//! A slot is room for one write, and is used again and again; slots are made as they are needed,
//! up to a bound. The slots in flight form a list, oldest first, so that it is known at any time up
//! to which operation everything has ended.

use std::task::{Context, Poll, Waker};

use tsb_core::schedule::Slot as Operation;
use tsb_core::{Batch, BatchBuf, Ids};

/// No slot.
const NONE: u32 = u32::MAX;

/// A write, from the moment at which it was handed over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Write {
    /// Its operation.
    pub(super) operation: Operation,
    /// When it was due, on the run's clock.
    pub(super) due_ns: u64,
    /// The part of the time from due to begun in which the emitter itself was late.
    pub(super) late_ns: u64,
    /// When it was handed over, on the run's clock.
    pub(super) begun_ns: u64,
    /// How many operations of its worker came before it, the empty ones too.
    pub(super) preceding: u64,
    /// From when it waits for a higher durability, if that is measured.
    pub(super) since_ns: Option<u64>,
    /// Its samples.
    pub(super) samples: u32,
}

/// What a slot does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SlotState {
    Free,
    /// Behind a write of the same group that has not ended.
    Behind,
    /// Its lane may take it.
    Ready,
    /// Its lane has taken it.
    UnderWay,
}

#[derive(Debug)]
struct Slot {
    state: SlotState,
    write: Write,
    batch: BatchBuf,
    // Neighbours in the list of slots in flight.
    older: u32,
    newer: u32,
    // The next write of the same group, which waits for this one.
    successor: u32,
    waker: Option<Waker>,
}

/// The slots of a worker.
#[derive(Debug)]
pub(super) struct Slots {
    list: Vec<Slot>,
    bound: usize,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
    in_flight: usize,
    most: usize,
    is_over: bool,
    first_group: u32,
    // The last write in flight of each group; empty if writes of a group need not be in order.
    last_of: Vec<u32>,
}

/// A slot that was given a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Filled {
    /// Its number.
    pub(super) slot: u32,
    /// It is used for the first time, and has no lane yet.
    pub(super) is_new: bool,
}

impl Slots {
    /// Room for `bound` writes of these groups, in order within each if `is_ordered`.
    pub(super) fn new(bound: usize, groups: &std::ops::Range<u32>, is_ordered: bool) -> Self {
        let ordered = if is_ordered { groups.len() } else { 0 };
        Self {
            list: Vec::new(),
            bound: bound.clamp(1, NONE as usize),
            free: Vec::new(),
            oldest: NONE,
            newest: NONE,
            in_flight: 0,
            most: 0,
            is_over: false,
            first_group: groups.start,
            last_of: vec![NONE; ordered],
        }
    }

    /// Whether another write may be handed over.
    pub(super) fn has_room(&self) -> bool {
        self.in_flight < self.bound
    }

    /// Writes in flight now.
    pub(super) const fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// The most writes that were in flight at a time.
    pub(super) const fn most(&self) -> usize {
        self.most
    }

    /// The oldest write in flight.
    pub(super) fn oldest(&self) -> Option<&Write> {
        self.list.get(self.oldest as usize).map(|slot| &slot.write)
    }

    /// The writes in flight, oldest first.
    pub(super) fn writes(&self) -> impl Iterator<Item = &Write> {
        let mut next = self.oldest;
        std::iter::from_fn(move || {
            let slot = self.list.get(next as usize)?;
            next = slot.newer;
            Some(&slot.write)
        })
    }

    /// Gives a write and its samples to a slot, and wakes its lane unless it has to wait for an
    /// earlier write of its group. `None` if all are in flight.
    pub(super) fn fill(&mut self, write: Write, batch: &Batch<'_>) -> Option<Filled> {
        if !self.has_room() {
            return None;
        }
        let is_new = self.free.is_empty();
        let number = self.free.pop().unwrap_or(self.list.len() as u32);
        if is_new {
            self.list.push(Slot {
                state: SlotState::Free,
                write: Write::default(),
                batch: BatchBuf::with_capacity(batch.len()),
                older: NONE,
                newer: NONE,
                successor: NONE,
                waker: None,
            });
        }
        let earlier = self.follow(write.operation.group, number);
        let older = std::mem::replace(&mut self.newest, number);
        if let Some(slot) = self.list.get_mut(older as usize) {
            slot.newer = number;
        } else {
            self.oldest = number;
        }
        let slot = self.list.get_mut(number as usize)?;
        slot.write = write;
        (slot.older, slot.newer, slot.successor) = (older, NONE, NONE);
        copy(batch, &mut slot.batch);
        if earlier == NONE {
            slot.ready();
        } else {
            slot.state = SlotState::Behind;
        }
        self.in_flight += 1;
        self.most = self.most.max(self.in_flight);
        Some(Filled { slot: number, is_new })
    }

    /// Makes a write the last one of its group. Returns the slot of the one before it, if that is
    /// in flight and order matters.
    fn follow(&mut self, group: u32, number: u32) -> u32 {
        let place = group.wrapping_sub(self.first_group) as usize;
        let Some(last) = self.last_of.get_mut(place) else {
            return NONE;
        };
        let earlier = std::mem::replace(last, number);
        if let Some(slot) = self.list.get_mut(earlier as usize) {
            slot.successor = number;
        }
        earlier
    }

    /// The lane of a slot takes its write, and exchanges its own buffer for the samples.
    /// `Ready(false)` if there will be no more writes.
    pub(super) fn take(&mut self, number: u32, batch: &mut BatchBuf, context: &mut Context<'_>) -> Poll<bool> {
        let is_over = self.is_over;
        let Some(slot) = self.list.get_mut(number as usize) else {
            return Poll::Ready(false);
        };
        match slot.state {
            SlotState::Ready => {
                slot.state = SlotState::UnderWay;
                std::mem::swap(&mut slot.batch, batch);
                Poll::Ready(true)
            }
            SlotState::Free if is_over => Poll::Ready(false),
            // A lane under way is not polled.
            SlotState::Free | SlotState::Behind | SlotState::UnderWay => {
                match &mut slot.waker {
                    Some(waker) => waker.clone_from(context.waker()),
                    None => slot.waker = Some(context.waker().clone()),
                }
                Poll::Pending
            }
        }
    }

    /// The write that the lane of a slot has taken.
    pub(super) fn under_way(&self, number: u32) -> Option<Write> {
        let slot = self.list.get(number as usize)?;
        (slot.state == SlotState::UnderWay).then_some(slot.write)
    }

    /// A write has ended: its slot is free, and the next write of its group may begin.
    pub(super) fn end(&mut self, number: u32) {
        let Some(slot) = self.list.get_mut(number as usize) else {
            return;
        };
        if slot.state == SlotState::Free {
            return;
        }
        slot.state = SlotState::Free;
        let (older, newer, successor) = (slot.older, slot.newer, slot.successor);
        let group = slot.write.operation.group;
        match self.list.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
        match self.list.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        let place = group.wrapping_sub(self.first_group) as usize;
        if let Some(last) = self.last_of.get_mut(place).filter(|last| **last == number) {
            *last = NONE;
        }
        let successor = self.list.get_mut(successor as usize);
        if let Some(successor) = successor.filter(|slot| slot.state == SlotState::Behind) {
            successor.ready();
        }
        self.in_flight -= 1;
        self.free.push(number);
    }

    /// The lane of a slot is gone: the slot is never used again. Returns the write that it had.
    pub(super) fn abandon(&mut self, number: u32) -> Option<Write> {
        let slot = self.list.get(number as usize)?;
        let write = (slot.state != SlotState::Free).then_some(slot.write);
        if write.is_none() && self.is_over {
            return None;
        }
        self.end(number);
        // IMPORTANT: it is free now, and no lane would take a write from it.
        self.free.retain(|free| *free != number);
        write
    }

    /// There will be no more writes: lanes that have nothing to write are over.
    pub(super) fn finish(&mut self) {
        self.is_over = true;
        for waker in self.list.iter_mut().filter_map(|slot| slot.waker.take()) {
            waker.wake();
        }
    }
}

impl Slot {
    /// Its lane may take the write.
    fn ready(&mut self) {
        self.state = SlotState::Ready;
        if let Some(waker) = &self.waker {
            waker.wake_by_ref();
        }
    }
}

/// Copies samples into a buffer that has been used before.
fn copy(batch: &Batch<'_>, into: &mut BatchBuf) {
    into.clear();
    match batch.ids() {
        Ids::Range(first) => into.extend(first, batch.times(), batch.values()),
        Ids::Each(_) => batch.iter().for_each(|(id, at, value)| into.push(id, at, value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsb_core::{SeriesId, Timestamp};

    fn write(group: u32, tick: u64, preceding: u64) -> Write {
        Write {
            operation: Operation {
                group,
                tick,
                offset_ns: tick,
            },
            preceding,
            samples: 2,
            ..Write::default()
        }
    }

    fn fill(slots: &mut Slots, write: Write) -> Option<u32> {
        let values = [write.preceding as f64, 1.0];
        let batch = Batch::tick(SeriesId(7), Timestamp(write.operation.tick as i64), &values);
        slots.fill(write, &batch).map(|filled| filled.slot)
    }

    fn take(slots: &mut Slots, slot: u32) -> Poll<bool> {
        let mut batch = BatchBuf::new();
        let taken = slots.take(slot, &mut batch, &mut Context::from_waker(Waker::noop()));
        assert_eq!(batch.is_empty(), taken != Poll::Ready(true));
        taken
    }

    #[test]
    fn the_oldest_write_says_up_to_where_all_have_ended() {
        let mut slots = Slots::new(3, &(0..10), false);
        let all: Vec<u32> = (0..3).filter_map(|n| fill(&mut slots, write(n, 5, n.into()))).collect();
        assert_eq!(all, [0, 1, 2]);
        assert!(fill(&mut slots, write(3, 5, 3)).is_none() && !slots.has_room());
        for slot in all {
            assert_eq!(take(&mut slots, slot), Poll::Ready(true));
        }
        let oldest = |slots: &Slots| slots.oldest().map(|write| write.preceding);
        slots.end(1);
        assert_eq!((oldest(&slots), slots.in_flight()), (Some(0), 2));
        slots.end(0);
        assert_eq!(oldest(&slots), Some(2));
        // A slot is used again, and goes behind those that are in flight.
        assert_eq!(fill(&mut slots, write(4, 5, 4)), Some(0));
        let order: Vec<u64> = slots.writes().map(|write| write.preceding).collect();
        assert_eq!(order, [2, 4]);
        slots.end(2);
        slots.end(0);
        // What has ended has ended once.
        slots.end(0);
        assert_eq!((oldest(&slots), slots.in_flight(), slots.most()), (None, 0, 3));
    }

    #[test]
    fn a_write_waits_for_an_earlier_one_of_its_group_and_for_no_other() {
        let mut slots = Slots::new(8, &(10..12), true);
        let slot = |slots: &mut Slots, group, tick| fill(slots, write(group, tick, 0)).unwrap();
        let (first, second) = (slot(&mut slots, 10, 1), slot(&mut slots, 10, 2));
        let (third, other) = (slot(&mut slots, 10, 3), slot(&mut slots, 11, 1));
        assert_eq!(take(&mut slots, first), Poll::Ready(true));
        assert_eq!(take(&mut slots, other), Poll::Ready(true));
        assert_eq!(take(&mut slots, second), Poll::Pending);
        slots.end(first);
        assert_eq!(take(&mut slots, third), Poll::Pending);
        assert_eq!(take(&mut slots, second), Poll::Ready(true));
        slots.end(second);
        assert_eq!(take(&mut slots, third), Poll::Ready(true));
        slots.end(third);
        let again = slot(&mut slots, 10, 4);
        assert_eq!(take(&mut slots, again), Poll::Ready(true));
        // Without an order they all go at once.
        let mut slots = Slots::new(8, &(10..12), false);
        for tick in 0..3 {
            let slot = slot(&mut slots, 10, tick);
            assert_eq!(take(&mut slots, slot), Poll::Ready(true));
        }
    }

    proptest::proptest! {
        /// Against a list of all writes in the order in which they were handed over.
        #[test]
        fn writes_are_in_flight_from_the_handover_to_their_end(
            bound in 1_usize..20,
            is_ordered in proptest::bool::ANY,
            steps in proptest::collection::vec((0_u32..5, 0_usize..20), 1..300),
        ) {
            let mut slots = Slots::new(bound, &(0..5), is_ordered);
            // (group, number, slot, whether its lane has taken it)
            let mut model: Vec<(u32, u64, u32, bool)> = Vec::new();
            for (number, (group, chosen)) in (0..).zip(steps) {
                match fill(&mut slots, write(group, number, number)) {
                    Some(slot) => model.push((group, number, slot, false)),
                    None => assert_eq!(model.len(), bound),
                }
                for index in 0..model.len() {
                    let (group, _, slot, is_taken) = model[index];
                    let is_behind = is_ordered && model[..index].iter().any(|(of, ..)| *of == group);
                    if !is_taken {
                        assert_eq!(take(&mut slots, slot) == Poll::Ready(true), !is_behind);
                        model[index].3 = !is_behind;
                    }
                }
                // An arbitrary one of those that were taken ends.
                let taken: Vec<usize> = (0..model.len()).filter(|&index| model[index].3).collect();
                if chosen < taken.len() {
                    let (.., slot, _) = model.remove(taken[chosen]);
                    slots.end(slot);
                }
                let numbers: Vec<u64> = slots.writes().map(|write| write.preceding).collect();
                assert_eq!(numbers, model.iter().map(|(_, number, ..)| *number).collect::<Vec<_>>());
                assert_eq!(slots.oldest().map(|write| write.preceding), numbers.first().copied());
                assert_eq!(slots.in_flight(), numbers.len());
            }
        }
    }

    #[test]
    fn lanes_end_when_there_is_nothing_left_and_one_that_is_gone_leaves_its_write() {
        let mut slots = Slots::new(2, &(0..2), false);
        let (gone, other) = (
            fill(&mut slots, write(0, 1, 0)).unwrap(),
            fill(&mut slots, write(1, 1, 1)).unwrap(),
        );
        assert_eq!(take(&mut slots, gone), Poll::Ready(true));
        assert_eq!(slots.abandon(gone).map(|write| write.operation.group), Some(0));
        assert!(slots.abandon(gone).is_none());
        let fresh = write(0, 2, 2);
        let replaced = slots.fill(fresh, &Batch::tick(SeriesId(0), Timestamp(2), &[1.0]));
        let expected = Filled { slot: 2, is_new: true };
        assert_eq!(replaced, Some(expected), "a slot without a lane is not used again");
        assert_eq!(take(&mut slots, 2), Poll::Ready(true));
        slots.end(2);
        slots.finish();
        assert_eq!(take(&mut slots, 2), Poll::Ready(false));
        assert_eq!(take(&mut slots, other), Poll::Ready(true));
        slots.end(other);
        assert_eq!(take(&mut slots, other), Poll::Ready(false));
    }
}
