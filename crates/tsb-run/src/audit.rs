//! The audit: generates again every sample that was sent, series by series, and compares it with
//! what the store returns.
//!
//! From the run itself it takes the ticks of each group that were issued, the samples and operations that
//! need not be stored (by name or as a count), and the store's answers about its newest samples. Retention
//! is as long as the store states, counted back from the newest sample that was sent (of archives of
//! slots, from the time of day if that is later), never from what the store returns.

mod auditor;
mod compare;
mod consolidate;
mod history;
mod newest;
mod repeat;
mod slots;
mod stated;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tsb_core::ledger::{FindingKind, Findings, LedgerFinding};
use tsb_core::time::{Clock, thread_cpu_ns};
use tsb_core::workload::{Replay, Workload};
use tsb_core::{Durability, SeriesId, Timestamp};
use tsb_stores::{Capabilities, Exactness, Store};

use auditor::Auditor;

pub(crate) use compare::supersede;
pub use compare::{Columns, Difference, Rules, Tally, compare};
pub use history::History;
pub use newest::{NewestAnswers, Wrong, WrongAnswers};

/// The first this many differences are listed by name; further ones are only counted.
const NAMED_MAX: usize = 10_000;

/// Whether a store acknowledges nothing although it can be read back: only reading back settles
/// what became of a sample.
pub fn is_unconfirmed(capabilities: &Capabilities) -> bool {
    capabilities.query && capabilities.acknowledges == Durability::Unconfirmed
}

/// Maximum time to wait until all samples are visible, in milliseconds.
const VISIBILITY_MAX_MS: u64 = 600_000;

/// Nanoseconds for which an accepted sample may stay invisible, as the store states: an audit that
/// begins earlier may find it lost. At most ten minutes.
pub fn visibility_wait_ns(capabilities: &Capabilities) -> u64 {
    capabilities.visibility_delay_ms.min(VISIBILITY_MAX_MS) * 1_000_000
}

/// The input of an audit.
#[derive(Debug)]
pub struct Scope<'a> {
    /// The store. It has been flushed, and nothing else writes to it.
    pub store: &'a dyn Store,
    /// What was sent.
    pub workload: &'a Workload,
    /// The timestamp of tick 0 at phase 0.
    pub base: Timestamp,
    /// What was written before the run.
    pub history: &'a History,
    /// Samples before this time are of earlier runs, and are left out; `None` if the store was
    /// empty before.
    pub since: Option<Timestamp>,
    /// The ticks of each group whose operations were handed to the target.
    pub ticks: &'a [Range<u64>],
    /// Samples that were rejected, by name; a sample rejected n times is listed n times.
    pub rejected: &'a [(SeriesId, Timestamp)],
    /// Ticks of groups that were issued and never sent.
    pub unsent: &'a [(u32, Range<u64>)],
    /// Ticks of groups that were sent and never answered: the store may or may not hold them.
    pub unanswered: &'a [(u32, Range<u64>)],
    /// Whether the run was killed while operations were unanswered. Samples newer than the newest
    /// accepted one of their series are then not expected: they were never sent, or lost before
    /// they were acknowledged.
    pub is_cut_off: bool,
    /// Ticks of groups whose samples may not all have arrived: lost in transport, or never
    /// answered. A row of a consolidating store that depends on one of them is not compared.
    pub in_doubt: &'a [(u32, Range<u64>)],
    /// Samples that were lost, or may have been, and cannot be identified. If there is one, no
    /// row of a consolidating store is compared.
    pub unnamed: u64,
    /// Whether the target acknowledges nothing: any sample that is not there may never have arrived,
    /// and counts as [`Audit::absent`].
    pub is_unconfirmed: bool,
    /// The time of day, from which archives of slots count back, and the time between two attempts
    /// of a read.
    pub clock: &'a dyn Clock,
    /// The store's answers about its newest samples, collected during the run.
    pub heard: &'a NewestAnswers,
    /// Number of auditing threads; 0 counts as 1.
    pub threads: usize,
    /// Incremented by the CPU time of those threads, in nanoseconds.
    pub cpu_ns: &'a AtomicU64,
}

/// The result of an audit.
#[derive(Debug)]
#[non_exhaustive]
pub struct Audit {
    /// Samples that were sent, as counted by generating them again.
    pub sent: u64,
    /// Of these, rejected by name.
    pub rejected: u64,
    /// Of these, never answered.
    pub unanswered: u64,
    /// Of these, never answered, and not in the store.
    pub absent: u64,
    /// The other samples, by outcome.
    pub tally: Tally,
    /// The first differences, by name.
    pub findings: Findings,
    /// Series about whose newest sample an answer was wrong, during the run or when it was read back.
    pub wrong_answers: WrongAnswers,
    /// The same as sentences.
    pub newest_wrong: Vec<String>,
    /// Number of reads that the store did not answer and that were repeated.
    pub repeated_reads: u64,
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            sent: 0,
            rejected: 0,
            unanswered: 0,
            absent: 0,
            tally: Tally::default(),
            findings: Findings::new(NAMED_MAX),
            wrong_answers: WrongAnswers::default(),
            newest_wrong: Vec::new(),
            repeated_reads: 0,
        }
    }
}

impl Audit {
    fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.rejected += other.rejected;
        self.unanswered += other.unanswered;
        self.absent += other.absent;
        self.tally.add(&other.tally);
        self.findings.merge(other.findings);
        self.wrong_answers.merge(other.wrong_answers);
        self.repeated_reads += other.repeated_reads;
    }

    fn note(&mut self, series: SeriesId, difference: Difference) {
        self.findings.push(finding(series, difference));
    }
}

/// Converts a difference into a finding of the ledger.
fn finding(series: SeriesId, difference: Difference) -> LedgerFinding {
    let (at, kind, expected, found) = match difference {
        Difference::Missing { at, expected } => (at, FindingKind::Lost, Some(expected), None),
        Difference::Altered { at, expected, found } => (at, FindingKind::Altered, Some(expected), Some(found)),
        Difference::Copy { at, found } => (at, FindingKind::Duplicated, None, Some(found)),
        Difference::Invented { at, found } => (at, FindingKind::Invented, None, Some(found)),
    };
    LedgerFinding {
        series,
        key: None,
        at,
        kind,
        expected,
        found,
    }
}

/// The samples that are known by name, by kind.
#[derive(Debug, Default)]
pub(crate) struct NamedSamples {
    /// Per series: how often each timestamp was rejected.
    pub(crate) rejected: HashMap<SeriesId, HashMap<Timestamp, u32>>,
    /// Per group: the ticks that were never sent.
    pub(crate) unsent: TicksByGroup,
    /// Per group: the ticks that were never answered.
    unanswered: TicksByGroup,
    /// Per group: the ticks whose samples may not all have arrived.
    pub(crate) in_doubt: TicksByGroup,
}

/// Ranges of ticks by the group that they belong to.
#[derive(Debug, Default)]
pub(crate) struct TicksByGroup(HashMap<u32, Vec<Range<u64>>>);

impl TicksByGroup {
    fn of(list: &[(u32, Range<u64>)]) -> Self {
        let mut by_group: HashMap<u32, Vec<Range<u64>>> = HashMap::new();
        for (group, ticks) in list {
            by_group.entry(*group).or_default().push(ticks.clone());
        }
        Self(by_group)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Counts the samples of a series in these ticks, by timestamp.
    pub(crate) fn samples_of(
        &self,
        id: SeriesId,
        workload: &Workload,
        replay: &mut Replay<'_>,
    ) -> Option<HashMap<Timestamp, u32>> {
        let group = workload.group_of(id)?;
        let ticks = self.0.get(&(group as u32))?;
        let mut samples: HashMap<Timestamp, u32> = HashMap::new();
        for ticks in ticks {
            let mut columns = Columns::default();
            replay.series(id, ticks.clone(), &mut |chunk| columns.extend(chunk));
            for at in columns.times {
                *samples.entry(at).or_default() += 1;
            }
        }
        Some(samples)
    }
}

impl NamedSamples {
    fn of(scope: &Scope<'_>) -> Self {
        Self {
            unanswered: TicksByGroup::of(scope.unanswered),
            ..Self::new(scope.rejected, scope.unsent, scope.in_doubt)
        }
    }

    /// Samples that were rejected, and ticks of groups that were never sent or may not have
    /// arrived.
    pub(crate) fn new(
        rejected: &[(SeriesId, Timestamp)],
        unsent: &[(u32, Range<u64>)],
        in_doubt: &[(u32, Range<u64>)],
    ) -> Self {
        let mut by_series: HashMap<SeriesId, HashMap<Timestamp, u32>> = HashMap::new();
        for &(series, at) in rejected {
            *by_series.entry(series).or_default().entry(at).or_default() += 1;
        }
        Self {
            rejected: by_series,
            unsent: TicksByGroup::of(unsent),
            unanswered: TicksByGroup::default(),
            in_doubt: TicksByGroup::of(in_doubt),
        }
    }
}

impl Scope<'_> {
    /// The timestamp, unless it is of an earlier run.
    fn of_this_run(&self, at: Option<Timestamp>) -> Option<Timestamp> {
        at.filter(|at| self.since.is_none_or(|since| *at >= since))
    }

    /// Runs the audit. `done` is incremented by the number of series compared so far.
    ///
    /// # Errors
    /// The store's error if it cannot be read.
    pub fn run(&self, done: &AtomicU64) -> tsb_stores::Result<Audit> {
        let named = NamedSamples::of(self);
        let rules = Rules::of(&self.store.capabilities(), self.kept_from(&named));
        let mut whole = Audit::default();
        for part in self.in_parallel(&named, &|auditor| auditor.compare(&rules, done)) {
            whole.add(part?);
        }
        whole.findings.name(self.workload.catalog());
        whole.wrong_answers.merge(
            self.heard
                .wrong_answers(self.is_unconfirmed || !self.unanswered.is_empty()),
        );
        whole.newest_wrong = whole.wrong_answers.violations(self.workload);
        Ok(whole)
    }

    /// The store's stated retention may have removed samples before this time. It counts back
    /// from the newest sample that was sent, not from the newest one that the store reports.
    fn kept_from(&self, named: &NamedSamples) -> Timestamp {
        let capabilities = self.store.capabilities();
        let retention_ns = match capabilities.exactness {
            // Each archive states for itself which rows it must still hold.
            Exactness::Consolidated(_) | Exactness::Slots(_) => None,
            _ => capabilities.retention_ns,
        };
        let Some(retention_ns) = retention_ns else {
            return Timestamp::MIN;
        };
        let newest = self
            .in_parallel(named, &|auditor| auditor.newest())
            .into_iter()
            .flatten()
            .max();
        newest.map_or(Timestamp::MIN, |newest| newest + -retention_ns)
    }

    /// Runs `work` on `threads` threads, each with its own auditor; the auditors divide the
    /// series among themselves.
    fn in_parallel<T: Send>(&self, named: &NamedSamples, work: &(dyn Fn(Auditor<'_>) -> T + Sync)) -> Vec<T> {
        let next = AtomicUsize::new(0);
        let parts = Mutex::new(Vec::new());
        std::thread::scope(|threads| {
            for _ in 0..self.threads.max(1) {
                threads.spawn(|| {
                    let part = work(Auditor::new(self, named, &next));
                    self.cpu_ns.fetch_add(thread_cpu_ns(), Ordering::Relaxed);
                    parts.lock().unwrap_or_else(PoisonError::into_inner).push(part);
                });
            }
        });
        parts.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
