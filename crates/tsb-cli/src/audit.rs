//! The audit: everything that was sent is generated once more, series by series, and
//! compared with what the store returns.
//!
//! It uses nothing of what the run remembered but how far each worker came and which
//! samples were rejected by name.

mod compare;

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tsb_core::ledger::{Finding, FindingKind, Findings};
use tsb_core::workload::Workload;
use tsb_core::{SeriesId, Timestamp};
use tsb_stores::{Query, Store, TimeRange};

pub use compare::{Columns, Difference, Rules, Tally, compare};

/// Differences are named up to this many; beyond it they are only counted.
const NAMED_MAX: usize = 10_000;
/// Series that an auditor takes at a time.
const STRIDE: usize = 64;

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
    /// Auditing threads.
    pub threads: usize,
}

/// What an audit found.
#[derive(Debug)]
pub struct Audit {
    /// Samples that were sent, generated once more.
    pub sent: u64,
    /// Of these, rejected by name.
    pub rejected: u64,
    /// The others, by what became of them.
    pub tally: Tally,
    /// Differences by name, the first ones.
    pub findings: Findings,
}

impl Default for Audit {
    fn default() -> Self {
        Self {
            sent: 0,
            rejected: 0,
            tally: Tally::default(),
            findings: Findings::new(NAMED_MAX),
        }
    }
}

impl Audit {
    fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.rejected += other.rejected;
        self.tally.add(&other.tally);
        self.findings.merge(other.findings);
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
        at,
        kind,
        expected,
        found,
    }
}

/// Rejected samples of a series: timestamp to how often.
type Rejected = HashMap<SeriesId, HashMap<Timestamp, u32>>;

impl Scope<'_> {
    /// Runs the audit. `done` counts series, for progress.
    pub fn run(&self, done: &AtomicU64) -> tsb_stores::Result<Audit> {
        let mut rejected = Rejected::new();
        for &(series, at) in self.rejected {
            *rejected.entry(series).or_default().entry(at).or_default() += 1;
        }
        let rules = Rules::of(&self.store.capabilities(), self.keeps_from()?);
        let next = AtomicUsize::new(0);
        let whole = Mutex::new(Ok(Audit::default()));
        std::thread::scope(|threads| {
            for _ in 0..self.threads.max(1) {
                threads.spawn(|| {
                    let part = self.part(&rules, &rejected, &next, done);
                    let mut whole = whole.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                    match (&mut *whole, part) {
                        (Ok(whole), Ok(part)) => whole.add(part),
                        (whole @ Ok(_), Err(error)) => *whole = Err(error),
                        (Err(_), _) => {}
                    }
                });
            }
        });
        whole.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Samples before this may be gone by the store's own statement.
    fn keeps_from(&self) -> tsb_stores::Result<Timestamp> {
        let Some(retention_ns) = self.store.capabilities().retention_ns else {
            return Ok(Timestamp::MIN);
        };
        let series: Vec<SeriesId> = (0..self.workload.catalog().len() as u32).map(SeriesId).collect();
        let mut newest = vec![None; series.len()];
        self.store.newest(&series, &mut newest)?;
        Ok(newest
            .into_iter()
            .flatten()
            .max()
            .map_or(Timestamp::MIN, |newest| newest + -retention_ns))
    }

    /// One auditor: takes series until there are no more.
    fn part(
        &self,
        rules: &Rules,
        rejected: &Rejected,
        next: &AtomicUsize,
        done: &AtomicU64,
    ) -> tsb_stores::Result<Audit> {
        let series = self.workload.catalog().len();
        let mut replay = self.workload.replay(self.base);
        let (mut sent, mut found) = (Columns::default(), Columns::default());
        let mut audit = Audit::default();
        loop {
            let from = next.fetch_add(STRIDE, Ordering::Relaxed);
            if from >= series {
                return Ok(audit);
            }
            for id in (from..series.min(from + STRIDE)).map(|index| SeriesId(index as u32)) {
                sent.clear();
                let ticks = self
                    .workload
                    .group_of(id)
                    .and_then(|group| self.ticks.get(group))
                    .cloned();
                replay.series(id, ticks.unwrap_or(0..0), &mut |chunk| sent.extend(chunk));
                audit.sent += sent.len() as u64;
                if let Some(rejected) = rejected.get(&id) {
                    audit.rejected += sent.remove(rejected.clone());
                }
                self.read(id, &mut found)?;
                let mut notes = Vec::new();
                let tally = compare(&mut sent, &found, rules, &mut |difference| notes.push(difference));
                audit.tally.add(&tally);
                let named = notes.into_iter().map(|difference| finding(id, difference));
                named.for_each(|finding| audit.findings.push(finding));
            }
            done.fetch_add(STRIDE as u64, Ordering::Relaxed);
        }
    }

    fn read(&self, id: SeriesId, found: &mut Columns) -> tsb_stores::Result<()> {
        found.clear();
        let query = Query {
            series: &[id],
            range: TimeRange::ALL,
            resample: None,
        };
        self.store.query(&query, &mut |_, times, values| {
            found.times.extend_from_slice(times);
            found.values.extend_from_slice(values);
            ControlFlow::Continue(())
        })
    }
}
