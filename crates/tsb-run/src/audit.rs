//! The audit: everything that was sent is generated once more, series by series, and
//! compared with what the store returns.
//!
//! It uses nothing of what the run remembered but how far each worker came, which samples
//! were rejected by name, and what the store said of its newest samples. Where a retention
//! begins follows from what was sent, not from what the store says.

mod auditor;
mod compare;
mod consolidate;
mod newest;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use tsb_core::ledger::{Finding, FindingKind, Findings};
use tsb_core::time::thread_cpu_ns;
use tsb_core::workload::Workload;
use tsb_core::{SeriesId, Timestamp};
use tsb_stores::{Exactness, Store};

use auditor::Auditor;

pub use compare::{Columns, Difference, Rules, Tally, compare};
pub use newest::{Heard, Lies, Wrong};

/// Differences are named up to this many; beyond it they are only counted.
const NAMED_MAX: usize = 10_000;

/// What an audit needs to know of a run.
#[derive(Debug)]
pub struct Scope<'a> {
    /// The store, flushed and quiet.
    pub store: &'a dyn Store,
    /// What was sent.
    pub workload: &'a Workload,
    /// The timestamp of tick 0 at phase 0.
    pub base: Timestamp,
    /// The ticks of each group whose operations were handed to the target.
    pub ticks: &'a [Range<u64>],
    /// Samples that were rejected, by name, each as often as it was.
    pub rejected: &'a [(SeriesId, Timestamp)],
    /// Ticks of groups that were issued and never sent.
    pub unsent: &'a [(u32, Range<u64>)],
    /// Ticks of groups that were sent and never answered: they may be there or not.
    pub unanswered: &'a [(u32, Range<u64>)],
    /// The run ended anywhere among those: of each series, what is behind the newest sample
    /// that its store accepted was not sent, or is gone with what was not acknowledged.
    pub is_cut_off: bool,
    /// Ticks of groups of which it is not known whether all their samples came: lost on the
    /// way, or never answered. A row of a consolidating store that depends on one of them is
    /// not compared.
    pub in_doubt: &'a [(u32, Range<u64>)],
    /// Samples that did not come, or may not have come, and that nobody can name: with any,
    /// no row of a consolidating store is compared.
    pub unnamed: u64,
    /// What the store said of its newest samples while the run went on.
    pub heard: &'a Heard,
    /// Auditing threads.
    pub threads: usize,
    /// Is told what CPU time those threads used, in nanoseconds.
    pub cpu_ns: &'a AtomicU64,
}

/// What an audit found.
#[derive(Debug)]
pub struct Audit {
    /// Samples that were sent, generated once more.
    pub sent: u64,
    /// Of these, rejected by name.
    pub rejected: u64,
    /// Of these, never answered.
    pub unanswered: u64,
    /// Of these, never answered, and not there.
    pub absent: u64,
    /// The others, by what became of them.
    pub tally: Tally,
    /// Differences by name, the first ones.
    pub findings: Findings,
    /// Series whose newest sample is not what the store said.
    pub lies: Lies,
    /// The same in words, with what was wrong already while the run went on.
    pub newest_wrong: Vec<String>,
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
            lies: Lies::default(),
            newest_wrong: Vec::new(),
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
        self.lies.merge(other.lies);
    }

    fn note(&mut self, series: SeriesId, difference: Difference) {
        self.findings.push(finding(series, difference));
    }
}

/// A difference in the words of the ledger.
fn finding(series: SeriesId, difference: Difference) -> Finding {
    let (at, kind, expected, found) = match difference {
        Difference::Missing { at, expected } => (at, FindingKind::Lost, Some(expected), None),
        Difference::Altered { at, expected, found } => (at, FindingKind::Altered, Some(expected), Some(found)),
        Difference::Copy { at, found } => (at, FindingKind::Duplicated, None, Some(found)),
        Difference::Invented { at, found } => (at, FindingKind::Invented, None, Some(found)),
    };
    Finding {
        series,
        key: None,
        at,
        kind,
        expected,
        found,
    }
}

/// What is known of samples by name.
#[derive(Debug, Default)]
struct Named {
    /// Of a series: timestamp to how often it was rejected.
    rejected: HashMap<SeriesId, HashMap<Timestamp, u32>>,
    /// Of a group: the ticks that were never sent.
    unsent: HashMap<u32, Vec<Range<u64>>>,
    /// Of a group: the ticks that were never answered.
    unanswered: HashMap<u32, Vec<Range<u64>>>,
    /// Of a group: the ticks that may not have come whole.
    in_doubt: HashMap<u32, Vec<Range<u64>>>,
}

impl Named {
    fn of(scope: &Scope<'_>) -> Self {
        let mut named = Self::default();
        for &(series, at) in scope.rejected {
            *named.rejected.entry(series).or_default().entry(at).or_default() += 1;
        }
        let kinds = [
            (scope.unsent, &mut named.unsent),
            (scope.unanswered, &mut named.unanswered),
            (scope.in_doubt, &mut named.in_doubt),
        ];
        for (list, by_group) in kinds {
            for (group, ticks) in list {
                by_group.entry(*group).or_default().push(ticks.clone());
            }
        }
        named
    }
}

impl Scope<'_> {
    /// Runs the audit. `done` counts series, for progress.
    ///
    /// # Errors
    /// The store's, where it cannot be read.
    pub fn run(&self, done: &AtomicU64) -> tsb_stores::Result<Audit> {
        let named = Named::of(self);
        let rules = Rules::of(&self.store.capabilities(), self.kept_from(&named));
        let mut whole = Audit::default();
        for part in self.in_parallel(&named, &|auditor| auditor.compare(&rules, done)) {
            whole.add(part?);
        }
        whole.findings.name(self.workload.catalog());
        whole.lies.merge(self.heard.lies(!self.unanswered.is_empty()));
        whole.newest_wrong = whole.lies.violations(self.workload);
        Ok(whole)
    }

    /// Samples before this may be gone by the store's own statement: it counts from the newest
    /// sample that was sent, whatever the store says is its newest.
    fn kept_from(&self, named: &Named) -> Timestamp {
        let capabilities = self.store.capabilities();
        let retention_ns = match capabilities.exactness {
            // Archives say for each row whether it must still be there.
            Exactness::Consolidated(_) => None,
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

    /// Gives each thread an auditor; they share the series between them.
    fn in_parallel<T: Send>(&self, named: &Named, work: &(dyn Fn(Auditor<'_>) -> T + Sync)) -> Vec<T> {
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
