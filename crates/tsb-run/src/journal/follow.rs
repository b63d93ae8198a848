//! The thread that keeps a journal: it looks at the counters of a run and at the positions of
//! its store, and writes down what follows from them.
//!
//! Nothing here is on the path of a sample. The order in which the counters are read is what
//! makes a claim true; each step says why.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::Durability;
use tsb_core::emit::{Live, LiveWorker};
use tsb_core::report::Exceptions;
use tsb_core::time::{Clock, SECOND_NS, thread_cpu_ns};
use tsb_stores::{Position, Store};

use super::claims::{Claims, Marks};
use super::file::Journal;
use super::record::{Header, Reached, Record};
use crate::run::{Rejects, SinkTotals, Watch};

/// From one look to the next.
const LOOK_NS: u64 = SECOND_NS / 10;
/// From one record to the next, where there is something to say.
const RECORD_NS: u64 = SECOND_NS / 4;
/// From one sync of the file to the next.
const SYNC_NS: u64 = SECOND_NS;
/// How long a sleep may keep the end of a run waiting.
const SLICE_NS: u64 = SECOND_NS / 50;
/// Marks of one worker that wait for the other end of a connection.
const IN_FLIGHT_MAX: usize = 1 << 10;

/// How it is known that a sample was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Each operation ends with its answer.
    Answered,
    /// A connection of each worker keeps the order, and its other end counts.
    Stream,
    /// Datagrams: what came is counted, and which were lost is not known.
    Datagrams,
    /// Nothing answers.
    Silent,
}

/// What a journal is kept of.
#[derive(Clone, Copy, Debug)]
pub struct Followed<'a> {
    /// How it is known that a sample was taken.
    pub way: Way,
    /// The run's clock.
    pub clock: &'a dyn Clock,
    /// When it starts, on the clock.
    pub start_ns: u64,
    /// The emitter's counters.
    pub live: &'a Live,
    /// The sinks' counters.
    pub totals: &'a SinkTotals,
    /// The listener, where there is one.
    pub watch: &'a Watch,
    /// What the store refused, by name.
    pub rejects: &'a Rejects,
    /// The store, where it is in this process.
    pub store: Option<&'a dyn Store>,
}

/// Keeps the journal of one run.
#[derive(Debug)]
pub struct Follower<'a> {
    journal: &'a Journal,
    section: u64,
    followed: Followed<'a>,
    claims: Claims,
    // Of each worker, in a stream: operations and samples sent, and what of it was taken.
    in_flight: Vec<VecDeque<(u64, u64)>>,
    taken: Vec<u64>,
    refused_named: usize,
    refused_unnamed: u64,
    written: Reached,
    /// CPU time of the thread, in nanoseconds.
    pub cpu_ns: u64,
}

impl<'a> Follower<'a> {
    /// Begins the journal of a run.
    pub fn begin(journal: &'a Journal, header: Header, followed: Followed<'a>) -> Self {
        let workers = followed.live.workers().len();
        let section = journal.begin(followed.clock.wall().0 as u64 ^ u64::from(header.pid).rotate_right(16));
        let claims = Claims::new(header.acknowledges, header.reaches, workers);
        journal.append(section, &[Record::Run(Box::new(header))]);
        Self {
            journal,
            section,
            followed,
            claims,
            in_flight: vec![VecDeque::new(); workers],
            taken: vec![0; workers],
            refused_named: 0,
            refused_unnamed: 0,
            written: Reached::default(),
            cpu_ns: 0,
        }
    }

    /// Follows the run until it is over.
    pub fn follow(&mut self, is_over: &AtomicBool) {
        let clock = self.followed.clock;
        let begun = clock.now();
        let (mut look_ns, mut record_ns, mut sync_ns) = (begun + LOOK_NS, begun, begun);
        while !is_over.load(Ordering::Acquire) {
            let now = clock.now();
            if now < look_ns {
                clock.wait_until(look_ns.min(now + SLICE_NS));
                continue;
            }
            self.look();
            if now >= record_ns {
                self.record();
                record_ns = now + RECORD_NS;
            }
            if now >= sync_ns {
                self.journal.sync();
                sync_ns = clock.now() + SYNC_NS;
            }
            look_ns = clock.now() + LOOK_NS;
        }
        self.look();
        self.record();
        self.cpu_ns = thread_cpu_ns();
    }

    /// Follows what `run` does, to its end.
    pub fn beside<T>(mut self, run: impl FnOnce() -> T) -> T {
        let is_over = AtomicBool::new(false);
        let result = std::thread::scope(|threads| {
            let following = threads.spawn(|| self.follow(&is_over));
            let result = run();
            is_over.store(true, Ordering::Release);
            // What a panic there said is nothing that the result needs.
            let _ = following.join();
            result
        });
        self.end();
        result
    }

    /// The last look, when all has been flushed.
    pub fn end(&mut self) {
        self.look();
        self.record();
        self.journal.sync();
    }

    /// Sees what has been taken, and how far it has got.
    fn look(&mut self) {
        let marks = self.marks();
        if let Some(marks) = marks.filter(|marks| !self.claims.is_known(marks)) {
            // After the operations were counted: it covers them.
            let position = self.position(Durability::Unconfirmed);
            self.claims.accept(marks, position);
        }
        let levels: Vec<Durability> = self.claims.higher().collect();
        for level in levels {
            let position = self.position(level);
            self.claims.reach(level, position);
        }
    }

    fn position(&self, level: Durability) -> Position {
        self.followed.store.map_or(Position(0), |store| store.durable(level))
    }

    /// What has been taken by now.
    fn marks(&mut self) -> Option<Marks> {
        let Followed { way, live, totals, .. } = self.followed;
        // First: everything that is read later covers at least these operations.
        let issued: Vec<u64> = live.workers().iter().map(LiveWorker::issued).collect();
        let excepted: u64 = live.workers().iter().map(LiveWorker::excepted).sum();
        match way {
            Way::Silent => None,
            Way::Answered => {
                // A server's refusals have no names.
                let refused = live.totals().rejected.saturating_sub(self.followed.rejects.total());
                Some(Marks {
                    operations: issued,
                    nameless: excepted + refused,
                })
            }
            Way::Stream => {
                self.arrive(&issued);
                let turned_away = self.followed.watch.turned_away();
                let unsettled = totals.unsettled.load(Ordering::Relaxed);
                Some(Marks {
                    operations: self.taken.clone(),
                    nameless: excepted + turned_away + unsettled,
                })
            }
            Way::Datagrams => {
                let applied = totals.applied();
                // After that: so every sample that was applied is among those sent.
                let sent: u64 = sent(live).iter().sum();
                Some(Marks {
                    operations: issued,
                    nameless: excepted + sent.saturating_sub(applied),
                })
            }
        }
    }

    /// Sees which operations have come out of the connections: the first samples that a worker
    /// sent are the first that are taken.
    fn arrive(&mut self, issued: &[u64]) {
        let Followed {
            live, totals, watch, ..
        } = self.followed;
        let unsettled = totals.unsettled.load(Ordering::Acquire);
        let applied = totals.applied() + unsettled + watch.turned_away();
        // After that: no more of the others' samples were applied than they had sent by now.
        let sent = sent(live);
        let all: u64 = sent.iter().sum();
        for (index, in_flight) in self.in_flight.iter_mut().enumerate() {
            let mine = sent.get(index).copied().unwrap_or(0);
            let operations = issued.get(index).copied().unwrap_or(0);
            let is_new = in_flight.back().is_none_or(|(before, _)| *before < operations);
            if is_new && in_flight.len() < IN_FLIGHT_MAX {
                in_flight.push_back((operations, mine));
            }
            let at_least = applied.saturating_sub(all - mine);
            while let Some((operations, _)) = in_flight.pop_front_if(|(_, samples)| *samples <= at_least) {
                self.taken[index] = operations;
            }
        }
    }

    /// Writes what is new.
    fn record(&mut self) {
        let levels = self.claims.now();
        let (refused, total) = self.followed.rejects.since(self.refused_named);
        self.refused_named += refused.len();
        let mut names = Exceptions::default();
        names.add_rejected(refused);
        self.refused_unnamed += names.rejected_unnamed;
        let beyond_names = total.saturating_sub(self.refused_named as u64);
        let reached = Reached {
            at_ns: self.followed.clock.now().saturating_sub(self.followed.start_ns),
            sent: sent(self.followed.live).iter().sum(),
            levels,
            refused_unnamed: self.refused_unnamed + beyond_names,
        };
        let is_same = reached.levels == self.written.levels && reached.sent == self.written.sent;
        if is_same && names.rejected.is_empty() {
            return;
        }
        let mut records = Vec::new();
        if !names.rejected.is_empty() {
            records.push(Record::Refused {
                samples: names.rejected,
            });
        }
        records.push(Record::Reached(reached.clone()));
        self.journal.append(self.section, &records);
        self.written = reached;
    }
}

/// Samples that each worker has sent.
fn sent(live: &Live) -> Vec<u64> {
    live.workers().iter().map(|worker| worker.totals().samples).collect()
}
