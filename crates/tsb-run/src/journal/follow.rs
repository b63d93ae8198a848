//! The thread that writes the journal of a run: it polls the run's counters and the store's
//! positions, and records what follows from them.
//!
//! It is not on the path of a sample. A claim is true only because the counters are read in a
//! certain order; the comment at each read says why.

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
use crate::beside::{beside, resumed};
use crate::run::{Rejects, SinkTotals, Watch};

/// Interval between two polls.
const LOOK_NS: u64 = SECOND_NS / 10;
/// Minimum interval between two records.
const RECORD_NS: u64 = SECOND_NS / 4;
/// Interval between two syncs of the file.
const SYNC_NS: u64 = SECOND_NS;
/// Longest single sleep: the end of a run waits at most this long for the thread.
const SLICE_NS: u64 = SECOND_NS / 50;
/// Upper bound of marks per worker that the receiving end has not reached yet.
const IN_FLIGHT_MAX: usize = 1 << 10;

/// How the run learns that a sample was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// Every operation is answered before the next one is sent.
    Answered,
    /// Every operation is answered, in any order, while others are sent.
    AnsweredLater,
    /// Every worker has an ordered connection, and the receiving end counts samples.
    Stream,
    /// Datagrams: arrivals are counted, and it is not known which were lost.
    Datagrams,
    /// No acknowledgement of any kind.
    Silent,
}

/// The run that a journal records.
#[derive(Clone, Copy, Debug)]
pub struct Followed<'a> {
    /// How it is known that a sample was taken.
    pub acceptance: Acceptance,
    /// The run's clock.
    pub clock: &'a dyn Clock,
    /// Start of the run, in nanoseconds on the clock.
    pub start_ns: u64,
    /// The emitter's counters.
    pub live: &'a Live,
    /// The sinks' counters.
    pub totals: &'a SinkTotals,
    /// The listener; it reports zeros if there is none.
    pub watch: &'a Watch,
    /// The samples that the store refused.
    pub rejects: &'a Rejects,
    /// The store, if it is in this process.
    pub store: Option<&'a dyn Store>,
}

/// Writes the journal of one run.
#[derive(Debug)]
pub struct Follower<'a> {
    journal: &'a Journal,
    section: u64,
    followed: Followed<'a>,
    claims: Claims,
    // For streams, per worker: operations and samples sent, in order, and the operations known
    // to have been accepted.
    in_flight: Vec<VecDeque<(u64, u64)>>,
    taken: Vec<u64>,
    refused_named: usize,
    refused_unnamed: u64,
    written: Reached,
    /// CPU time of the journal's thread, in nanoseconds.
    pub cpu_ns: u64,
}

impl<'a> Follower<'a> {
    /// Begins the journal of a run and writes its header.
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

    /// Polls and records until `is_over` is set, and once more after it.
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

    /// Calls `run` while another thread writes the journal, then writes the last record.
    pub fn beside<T>(mut self, run: impl FnOnce() -> T) -> T {
        // A panic of the journal's thread does not affect the result.
        let (result, _) = beside(|is_over| self.follow(is_over), run);
        self.end();
        resumed(result)
    }

    /// Polls, records and syncs a last time. Call it after the final flush.
    pub fn end(&mut self) {
        self.look();
        self.record();
        self.journal.sync();
    }

    /// Polls the counters and updates the claims.
    fn look(&mut self) {
        let marks = self.marks();
        if let Some(marks) = marks.filter(|marks| !self.claims.is_known(marks)) {
            // IMPORTANT: read after the operations were counted, so that the position covers
            // them.
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

    /// The operations accepted so far; `None` if nothing acknowledges them.
    fn marks(&mut self) -> Option<Marks> {
        let Followed {
            acceptance,
            live,
            totals,
            ..
        } = self.followed;
        // IMPORTANT: read first. Every counter that is read later covers at least these
        // operations.
        let issued: Vec<u64> = live.workers().iter().map(LiveWorker::issued).collect();
        let excepted: u64 = live.workers().iter().map(LiveWorker::excepted).sum();
        match acceptance {
            Acceptance::Silent => None,
            Acceptance::Answered => {
                // A remote server does not name the samples that it refuses.
                let refused = live.totals().rejected.saturating_sub(self.followed.rejects.total());
                Some(Marks {
                    operations: issued,
                    nameless: excepted + refused,
                })
            }
            Acceptance::AnsweredLater => {
                let in_flight = self.followed.watch.in_flight()?;
                let workers = issued.iter().enumerate();
                let operations = workers
                    .map(|(worker, &issued)| in_flight.settled(worker, issued))
                    .collect();
                // IMPORTANT: read after the operations that have ended, and so are in these.
                let (refused, without_end) = in_flight.refused_and_excepted();
                Some(Marks {
                    operations,
                    nameless: excepted + without_end + refused.saturating_sub(self.followed.rejects.total()),
                })
            }
            Acceptance::Stream => {
                self.arrive(&issued);
                let turned_away = self.followed.watch.turned_away();
                let unsettled = totals.unsettled.load(Ordering::Relaxed);
                Some(Marks {
                    operations: self.taken.clone(),
                    nameless: excepted + turned_away + unsettled,
                })
            }
            Acceptance::Datagrams => {
                let applied = totals.applied();
                // IMPORTANT: read after `applied`, so that every applied sample is among those
                // sent.
                let sent: u64 = sent(live).iter().sum();
                Some(Marks {
                    operations: issued,
                    nameless: excepted + sent.saturating_sub(applied),
                })
            }
        }
    }

    /// Finds the operations that have arrived through the connections. A connection keeps its
    /// order, so the first samples that a worker sent are the first that arrive.
    fn arrive(&mut self, issued: &[u64]) {
        let Followed {
            live, totals, watch, ..
        } = self.followed;
        let unsettled = totals.unsettled.load(Ordering::Acquire);
        let applied = totals.applied() + unsettled + watch.turned_away();
        // IMPORTANT: read after `applied`. No worker's applied samples exceed what it has sent
        // by now, so `applied` minus what all others sent is a lower bound for this worker.
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

    /// Appends a record if anything has changed since the last one.
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
        let is_same = reached.levels == self.written.levels
            && reached.sent == self.written.sent
            && reached.refused_unnamed == self.written.refused_unnamed;
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

/// Samples sent, per worker.
fn sent(live: &Live) -> Vec<u64> {
    live.workers().iter().map(|worker| worker.totals().samples).collect()
}
