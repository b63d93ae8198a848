//! Measures the loss window: how long acknowledged samples waited until they reached the store's
//! highest durability level.
//!
//! Writers note the position of each write and check it again at the next write, so a wait is
//! known only to the time between two writes. Writes that still wait at the end are settled
//! after the run's last flush. It is *not* a latency of operations: a store that acknowledges at
//! its highest level has no loss window.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tsb_core::latency::{Histogram, Summary};
use tsb_core::schedule::{Agenda, Pace, Planned, Progress, Timetable};
use tsb_core::time::Clock;
use tsb_core::{Durability, Timestamp};
use tsb_stores::{Position, Store};

/// Writes that one writer remembers; further ones count as untimed.
const REMEMBERED: usize = 1 << 16;

/// The cost of noting a write is measured in this many rounds of `REHEARSED` writes each.
const ROUNDS: usize = 8;
const REHEARSED: u64 = 64;

/// The waits of all writers of a run.
#[derive(Debug)]
pub struct LossWindow {
    clock: Arc<dyn Clock>,
    level: Durability,
    start_ns: u64,
    base: Timestamp,
    timetable: Timetable,
    settled: Mutex<SettledWaits>,
}

#[derive(Debug, Default)]
struct SettledWaits {
    waits: Histogram,
    samples: u64,
    untimed: u64,
    left: Vec<PendingWrite>,
    // Time that the measurement itself took, in nanoseconds.
    spent_ns: u64,
}

/// A write that has not reached the level yet.
#[derive(Clone, Copy, Debug)]
struct PendingWrite {
    position: Position,
    since_ns: u64,
    samples: u64,
}

impl LossWindow {
    /// The window of a store; `None` if it acknowledges at its highest level.
    pub fn of(
        store: &dyn Store,
        clock: &Arc<dyn Clock>,
        (start_ns, base): (u64, Timestamp),
        timetable: &Timetable,
    ) -> Option<Arc<Self>> {
        let capabilities = store.capabilities();
        (capabilities.acknowledges < capabilities.reaches).then(|| {
            Arc::new(Self {
                clock: Arc::clone(clock),
                level: capabilities.reaches,
                start_ns,
                base,
                timetable: timetable.clone(),
                settled: Mutex::default(),
            })
        })
    }

    /// Settles the writes that still waited when the writers ended. Call it right after a flush.
    /// Returns the time on the clock.
    pub fn flushed(&self, store: &dyn Store) -> u64 {
        let now = self.clock.now();
        let durable = store.durable(self.level);
        let mut settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        for probe in std::mem::take(&mut settled.left) {
            if probe.position <= durable {
                settled.waits.record(now.saturating_sub(probe.since_ns));
                settled.samples += probe.samples;
            } else {
                settled.untimed += 1;
            }
        }
        now
    }

    /// The waits so far, and the number of writes that could not be timed.
    pub fn summary(&self) -> (Summary, u64) {
        let settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        (Summary::new(&settled.waits, settled.samples), settled.untimed)
    }

    /// The waits so far, in full.
    pub fn waits(&self) -> Histogram {
        let settled = self.settled.lock().unwrap_or_else(PoisonError::into_inner);
        settled.waits.clone()
    }

    /// Time that ended writers spent on the measurement, in nanoseconds.
    pub fn spent_ns(&self) -> u64 {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner).spent_ns
    }
}

/// Finds the due time of a fleet time by iterating the schedule as writes come.
#[derive(Debug)]
struct DueTimes {
    agenda: Agenda,
    next: Option<Planned>,
    progress: Progress,
}

impl DueTimes {
    fn new(timetable: &Timetable) -> Self {
        let mut agenda = timetable.agenda(0..timetable.roster.groups().len() as u32);
        Self {
            next: agenda.next(),
            agenda,
            progress: Progress::default(),
        }
    }

    /// The due time of a fleet time, in nanoseconds since the start.
    fn due_ns(&mut self, fleet_ns: u64) -> u64 {
        while let Some(Planned { slot, due_ns }) = self.next
            && slot.offset_ns <= fleet_ns
        {
            self.progress.note(slot.offset_ns, due_ns.unwrap_or(0));
            self.next = self.agenda.next();
        }
        self.progress.wall_ns(fleet_ns)
    }
}

/// The waits of one writer, added to the window when it is dropped.
#[derive(Debug)]
pub struct WriterWaits {
    window: Arc<LossWindow>,
    // Set if neither the fleet's pace nor the caller says when a write was due.
    walk: Option<DueTimes>,
    waiting: VecDeque<PendingWrite>,
    mine: SettledWaits,
    /// Time that noting a write takes if it settles none, in nanoseconds.
    usual_ns: u64,
}

impl WriterWaits {
    /// No writes yet. Measures its own cost first.
    pub fn new(window: Arc<LossWindow>) -> Self {
        let timetable = &window.timetable;
        let is_shaped = matches!(timetable.pace, Pace::Shape(_)) && timetable.pace.is_open_loop();
        let mut new = Self {
            usual_ns: 0,
            walk: is_shaped.then(|| DueTimes::new(timetable)),
            window,
            waiting: VecDeque::with_capacity(REMEMBERED),
            mine: SettledWaits::default(),
        };
        new.usual_ns = (0..ROUNDS).map(|_| new.rehearse()).min().unwrap_or(0);
        new.mine.spent_ns = 0;
        new
    }

    /// Average time that noting a write takes if it settles none.
    fn rehearse(&mut self) -> u64 {
        let started = self.window.clock.now();
        for write in 0..REHEARSED {
            let since_ns = self.begin(self.window.base, None);
            self.remember(Position(write), since_ns, 1);
        }
        let taken = self.window.clock.now() - started;
        self.waiting.clear();
        taken / REHEARSED
    }

    #[inline]
    fn remember(&mut self, position: Position, since_ns: u64, samples: u64) {
        if self.waiting.len() == REMEMBERED {
            self.mine.untimed += 1;
        } else {
            self.waiting.push_back(PendingWrite {
                position,
                since_ns,
                samples,
            });
        }
    }

    /// The time from which a write waits: its due time, given by the caller or derived from its
    /// timestamp `at`. In a closed loop nothing is due, and it waits from now on.
    pub fn begin(&mut self, at: Timestamp, due_ns: Option<u64>) -> u64 {
        let window = &self.window;
        let now = window.clock.now();
        let fleet_ns = || u64::try_from(at - window.base).unwrap_or(0);
        let since_start = match (due_ns, &mut self.walk, &window.timetable.pace) {
            (Some(due_ns), ..) => return due_ns.min(now),
            (None, Some(walk), _) => walk.due_ns(fleet_ns()),
            (None, None, Pace::Fleet(speed)) => speed.wall_ns(fleet_ns()),
            (None, None, Pace::Shape(_)) => return now,
        };
        window.start_ns.saturating_add(since_start).min(now)
    }

    /// Notes a write, and settles earlier writes that have reached the level.
    pub fn end(&mut self, store: &dyn Store, position: Position, since_ns: u64, samples: u64) {
        self.remember(position, since_ns, samples);
        self.mine.spent_ns += self.usual_ns;
        let durable = store.durable(self.window.level);
        if self.waiting.front().is_none_or(|first| first.position > durable) {
            return;
        }
        let now = self.window.clock.now();
        while let Some(probe) = self.waiting.front().filter(|probe| probe.position <= durable) {
            self.mine.waits.record(now.saturating_sub(probe.since_ns));
            self.mine.samples += probe.samples;
            self.waiting.pop_front();
        }
        self.mine.spent_ns += self.window.clock.now() - now;
    }
}

impl Drop for WriterWaits {
    fn drop(&mut self) {
        let mut settled = self.window.settled.lock().unwrap_or_else(PoisonError::into_inner);
        settled.waits.merge(&self.mine.waits);
        settled.samples += self.mine.samples;
        settled.untimed += self.mine.untimed;
        settled.spent_ns += self.mine.spent_ns;
        settled.left.extend(self.waiting.drain(..));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tsb_core::schedule::{Group, Roster, Speed};
    use tsb_core::time::{ManualClock, SECOND_NS};
    use tsb_stores::memory::{MemoryOptions, MemoryStore};

    /// One group of ten samples each second, up to a minute.
    fn paced(pace: Pace) -> Timetable {
        Timetable {
            roster: Roster::new(vec![Group::new(SECOND_NS, 0, 10)]).unwrap(),
            pace,
            end_ns: Some(60 * SECOND_NS),
            fleet_end_ns: None,
        }
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn a_wait_in_a_schedule_begins_when_the_operation_was_due() {
        let folder = tempfile::tempdir().unwrap();
        let store = crate::spec::open(&format!("sqlite:{}?commit=2h", folder.path().join("x.db").display())).unwrap();
        let clock = Arc::new(ManualClock::new());
        let shared: Arc<dyn Clock> = Arc::clone(&clock) as Arc<dyn Clock>;
        let start_ns = 7 * SECOND_NS;
        // Ten operations of ten samples each second, of a fleet that reports once a second.
        let hundred = Pace::Shape("constant:100".parse().unwrap());
        let window = |pace| LossWindow::of(&*store, &shared, (start_ns, Timestamp(0)), &paced(pace)).unwrap();
        let mut waits = WriterWaits::new(window(hundred));
        // All are written 30 seconds late.
        clock.wait_until(start_ns + 30 * SECOND_NS);
        let tick = |tick: u64| Timestamp((tick * SECOND_NS) as i64);
        for number in [0, 1, 5, 100, 7] {
            let expected = start_ns + number * SECOND_NS / 10;
            assert_eq!(waits.begin(tick(number), None), expected, "operation {number}");
        }
        // Who knows when it was due says it; nothing waits before it is written.
        assert_eq!(waits.begin(tick(3), Some(start_ns + 5)), start_ns + 5);
        assert_eq!(waits.begin(tick(590), None), start_ns + 30 * SECOND_NS);
        // A closed loop has no due times.
        let mut flat_out = WriterWaits::new(window(Pace::Shape("max".parse().unwrap())));
        assert_eq!(flat_out.begin(tick(1), None), start_ns + 30 * SECOND_NS);
    }

    #[test]
    fn a_store_that_says_all_with_its_acks_has_no_window() {
        let clock: Arc<dyn Clock> = Arc::new(ManualClock::new());
        let store = MemoryStore::new(MemoryOptions::default());
        assert!(LossWindow::of(&store, &clock, (0, Timestamp(0)), &paced(Pace::Fleet(Speed::NATURAL))).is_none());
    }

    #[cfg(feature = "sqlite")]
    #[test]
    fn waits_run_from_the_due_time_to_the_commit() {
        use tsb_core::{Batch, SeriesId, SeriesKey};
        use tsb_stores::StoreExt;

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let store = crate::spec::open(&format!("sqlite:{}?commit=2h", path.display())).unwrap();
        store.define(&[(SeriesId(0), SeriesKey::new("a"))]).unwrap();
        let clock = Arc::new(ManualClock::new());
        let shared: Arc<dyn Clock> = Arc::clone(&clock) as Arc<dyn Clock>;
        let timetable = paced(Pace::Fleet(Speed::NATURAL));
        let window = LossWindow::of(&*store, &shared, (0, Timestamp(0)), &timetable).unwrap();
        let mut waits = WriterWaits::new(Arc::clone(&window));
        for tick in 0..3 {
            clock.wait_until(tick * 1_000 + 10);
            let since = waits.begin(Timestamp(tick as i64 * 1_000), None);
            assert_eq!(since, tick * 1_000);
            let ack = store.write_all(&Batch::tick(SeriesId(0), Timestamp(tick as i64 * 1_000), &[1.0]));
            waits.end(&*store, ack.unwrap().position, since, 1);
        }
        assert_eq!(window.summary().0.count, 0);
        drop(waits);
        clock.wait_until(5_000);
        store.flush(tsb_stores::Scope::All, Durability::Synced).unwrap();
        window.flushed(&*store);
        let (summary, untimed) = window.summary();
        assert_eq!((summary.count, summary.samples, untimed), (3, 3, 0));
        assert_eq!(summary.max_ns.map(|ns| ns / 100), Some(50));
        store.close().unwrap();
    }
}
