//! The audit: everything that was sent is generated once more, series by series, and
//! compared with what the store returns.
//!
//! It uses nothing of what the run remembered but how far each worker came and which
//! samples were rejected by name.

mod compare;
mod consolidate;

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tsb_core::ledger::{Finding, FindingKind, Findings};
use tsb_core::workload::{Replay, Workload};
use tsb_core::{SeriesId, Timestamp};
use tsb_stores::{Consolidated, Exactness, Query, Resample, Store, StoreExt, TimeRange};

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
    /// Ticks of groups that were issued and never sent.
    pub unsent: &'a [(u32, Range<u64>)],
    /// Ticks of groups that were sent and never answered: they may be there or not.
    pub unanswered: &'a [(u32, Range<u64>)],
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
    /// Of these, never answered, and not there.
    pub absent: u64,
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
            absent: 0,
            tally: Tally::default(),
            findings: Findings::new(NAMED_MAX),
        }
    }
}

impl Audit {
    fn add(&mut self, other: Self) {
        self.sent += other.sent;
        self.rejected += other.rejected;
        self.absent += other.absent;
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

/// Takes out of the differences what is missing because it was never answered; how many.
fn settle(differences: &mut Vec<Difference>, mut unanswered: HashMap<Timestamp, u32>) -> u64 {
    let before = differences.len();
    differences.retain(|difference| match difference {
        Difference::Missing { at, .. } => {
            let left = unanswered.get_mut(at).filter(|left| **left > 0);
            left.map(|left| *left -= 1).is_none()
        }
        _ => true,
    });
    (before - differences.len()) as u64
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
                if let Some(unsent) = self.named(&mut replay, self.unsent, id) {
                    sent.remove(unsent);
                }
                audit.sent += sent.len() as u64;
                if let Some(rejected) = rejected.get(&id) {
                    audit.rejected += sent.remove(rejected.clone());
                }
                let mut notes = Vec::new();
                let note = &mut |difference| notes.push(difference);
                let mut tally = if let Exactness::Consolidated(rule) = rules.exactness {
                    consolidate::compare(&rule, &sent, &self.archives(&rule, id)?, note)
                } else {
                    self.read(id, &mut found)?;
                    compare(&mut sent, &found, rules, note)
                };
                if let Some(unanswered) = self.named(&mut replay, self.unanswered, id) {
                    let absent = settle(&mut notes, unanswered);
                    tally.missing -= absent;
                    audit.absent += absent;
                }
                audit.tally.add(&tally);
                let named = notes.into_iter().map(|difference| finding(id, difference));
                named.for_each(|finding| audit.findings.push(finding));
            }
            done.fetch_add(STRIDE as u64, Ordering::Relaxed);
        }
    }

    /// The samples of a series in some ticks, by timestamp: how many there are of each.
    fn named(
        &self,
        replay: &mut Replay<'_>,
        ticks: &[(u32, Range<u64>)],
        id: SeriesId,
    ) -> Option<HashMap<Timestamp, u32>> {
        let group = self.workload.group_of(id)?;
        let mut named: Option<HashMap<Timestamp, u32>> = None;
        for (_, ticks) in ticks.iter().filter(|(of, _)| *of as usize == group) {
            let mut columns = Columns::default();
            replay.series(id, ticks.clone(), &mut |chunk| columns.extend(chunk));
            let named = named.get_or_insert_default();
            for at in columns.times {
                *named.entry(at).or_default() += 1;
            }
        }
        named
    }

    /// The known rows of every archive, each with its end.
    fn archives(&self, rule: &Consolidated, id: SeriesId) -> tsb_stores::Result<Vec<consolidate::Found>> {
        let read = |archive: tsb_stores::ArchiveRule| {
            let span_s = rule.step_s as i64 * i64::from(archive.steps);
            let resample = Resample {
                step_ns: span_s * 1_000_000_000,
                consolidation: archive.consolidation,
            };
            let rows = self.store.rows(id, TimeRange::ALL, Some(resample))?;
            // A resampled row is stamped with its start.
            Ok(rows
                .into_iter()
                .map(|(at, value)| (at.as_secs() + span_s, value))
                .collect())
        };
        rule.archives().map(read).collect()
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
