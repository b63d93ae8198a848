//! What else happened during a run, as a watching thread saw it: events with a beginning and an
//! end, to be held against the slowest operations.

use crate::report::{EventDuring, EventKind};

/// Number of events that are kept; further ones are counted.
pub const EVENTS_MAX: usize = 1 << 16;

/// One event, on the run's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Event {
    kind: EventKind,
    from_ns: u64,
    until_ns: u64,
}

/// The events of a run, in the order in which they were seen.
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    events: Vec<Event>,
    dropped: u64,
}

impl EventLog {
    /// Adds an event. One that goes on from where an earlier one of its kind ended lengthens that.
    pub fn add(&mut self, kind: EventKind, from_ns: u64, until_ns: u64) {
        // The last of each kind is near the end: what is seen together is added together.
        let recent = self.events.iter_mut().rev().take(2 * EventKind::ALL.len());
        if let Some(last) = recent.into_iter().find(|event| event.kind == kind)
            && last.until_ns >= from_ns
        {
            last.until_ns = last.until_ns.max(until_ns);
        } else if self.events.len() < EVENTS_MAX {
            self.events.push(Event {
                kind,
                from_ns,
                until_ns,
            });
        } else {
            self.dropped += 1;
        }
    }

    /// Events for which there was no room.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The events that overlap a time of the run's clock, by kind.
    pub fn during(&self, from_ns: u64, until_ns: u64) -> Vec<EventDuring> {
        let mut all: Vec<EventDuring> = Vec::new();
        for event in &self.events {
            let overlap_ns = event.until_ns.min(until_ns).saturating_sub(event.from_ns.max(from_ns));
            if overlap_ns == 0 {
                continue;
            }
            match all.iter_mut().find(|during| during.kind == event.kind) {
                Some(during) => during.add(overlap_ns),
                None => all.push(EventDuring::new(event.kind, overlap_ns)),
            }
        }
        all.sort_unstable_by_key(|during| during.kind);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operation_names_the_events_that_it_overlaps() {
        let mut log = EventLog::default();
        log.add(EventKind::Commit, 100, 200);
        log.add(EventKind::DiskStall, 150, 200);
        // Seen in two windows in a row, it is one event.
        log.add(EventKind::Commit, 200, 260);
        log.add(EventKind::Commit, 300, 310);
        assert_eq!(log.during(0, 100), []);
        assert_eq!(log.during(260, 300), []);
        let (commit, stall) = (EventKind::Commit, EventKind::DiskStall);
        let all = log.during(190, 305).into_iter();
        let all: Vec<_> = all.map(|one| (one.kind, one.events, one.overlap_ns)).collect();
        assert_eq!(all, [(stall, 1, 10), (commit, 2, 70 + 5)]);
    }

    #[test]
    fn what_finds_no_room_is_counted() {
        let mut log = EventLog::default();
        let max = EVENTS_MAX as u64;
        (0..max + 7).for_each(|index| log.add(EventKind::Paused, 10 * index, 10 * index + 5));
        assert_eq!((log.events.len(), log.dropped()), (EVENTS_MAX, 7));
        // What goes on finds room always.
        log.add(EventKind::Paused, 10 * (max - 1) + 5, 10 * (max + 100));
        assert_eq!(log.dropped(), 7);
        assert_eq!(log.during(10 * max, 20 * max)[0].overlap_ns, 1_000);
    }
}
