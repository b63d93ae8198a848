//! Stores that lie about their newest sample, about what their retention took, and about
//! what waits in an unfinished step: no run into one of them is VALID.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tsb_cli::args::RunOptions;
use tsb_cli::plan::{Apply, Plan};
use tsb_core::ledger::{Counter, FindingKind};
use tsb_core::verdict::Status;
use tsb_core::{Batch, Durability, SeriesId, Timestamp};
use tsb_run::{Controls, Finished, run_store};
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::rrd::{RrdOptions, RrdStore};
use tsb_stores::{Ack, ArchiveRule, Capabilities, Consolidation, Query, Refusals, Result, Scope, Store, Visitor};

use crate::faulty_store::{Fault, FaultyStore};
use crate::runs::run_into;

const SECOND: i64 = 1_000_000_000;

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FalseAnswer {
    Nothing,
    /// `newest` is the wall clock's time.
    NewestIsNow,
    /// `newest` goes back to an hour ago from the fifth question on.
    NewestGoesBack,
    /// `newest` is an hour behind from the first question to the last.
    NewestIsOld,
    /// A retention is stated; `newest` is a year ahead when the run is over, and nothing is
    /// there any more.
    EverythingExpired,
    /// A retention is stated, and what is younger is gone too.
    ExpiresEarly,
    /// Takes the first write of each series, and acknowledges the others.
    ForgetsTheRest,
}

#[derive(Debug)]
struct LyingStore {
    lie: FalseAnswer,
    asked: AtomicU64,
    is_flushed: AtomicBool,
    writes: AtomicU64,
    first: u64,
}

fn wall() -> Timestamp {
    tsb_core::time::Clock::wall(&tsb_core::time::MonotonicClock::new())
}

impl Fault for LyingStore {
    fn capabilities(&self, inner: &dyn Store) -> Capabilities {
        let mut capabilities = inner.capabilities();
        if matches!(self.lie, FalseAnswer::EverythingExpired | FalseAnswer::ExpiresEarly) {
            capabilities.retention_ns = Some(3_600 * SECOND);
        }
        capabilities
    }
    fn write(&self, inner: &dyn Store, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        let number = self.writes.fetch_add(1, Ordering::Relaxed);
        if self.lie == FalseAnswer::ForgetsTheRest && number >= self.first {
            let mut ack = inner.write(&batch_of_nothing(), refused)?;
            ack.accepted = batch.len();
            return Ok(ack);
        }
        inner.write(batch, refused)
    }
    fn flush(&self, inner: &dyn Store, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.is_flushed.store(true, Ordering::Relaxed);
        inner.flush(scope, level)
    }
    fn query(&self, inner: &dyn Store, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        match self.lie {
            FalseAnswer::EverythingExpired => Ok(()),
            // Of each series the last nine minutes, whatever is stated.
            FalseAnswer::ExpiresEarly => {
                let mut newest = vec![None; query.series.len()];
                inner.newest(query.series, &mut newest)?;
                let newest = newest.into_iter().flatten().max().unwrap_or(Timestamp::MIN);
                inner.query(query, &mut |series, times, values| {
                    let from = times.partition_point(|at| *at < newest + -540 * SECOND);
                    if from == times.len() {
                        return ControlFlow::Continue(());
                    }
                    visit(series, &times[from..], &values[from..])
                })
            }
            _ => inner.query(query, visit),
        }
    }
    fn newest(&self, inner: &dyn Store, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        inner.newest(series, into)?;
        let asked = self.asked.fetch_add(1, Ordering::Relaxed);
        let is_over = self.is_flushed.load(Ordering::Relaxed);
        for newest in into.iter_mut().flatten() {
            match self.lie {
                FalseAnswer::NewestIsNow if !is_over => *newest = wall(),
                FalseAnswer::NewestGoesBack if (5..6).contains(&asked) => *newest = *newest + -3_600 * SECOND,
                FalseAnswer::NewestIsOld => *newest = *newest + -3_600 * SECOND,
                FalseAnswer::EverythingExpired if is_over => *newest = *newest + 365 * 86_400 * SECOND,
                _ => {}
            }
        }
        Ok(())
    }
}

fn batch_of_nothing() -> Batch<'static> {
    Batch::tick(SeriesId(0), Timestamp(0), &[])
}

fn liar(inner: impl Store, lie: FalseAnswer, first: u64) -> Arc<dyn Store> {
    let liar = LyingStore {
        lie,
        asked: AtomicU64::new(0),
        is_flushed: AtomicBool::new(false),
        writes: AtomicU64::new(0),
        first,
    };
    FaultyStore::new(inner, liar)
}

fn run(store: &Arc<dyn Store>, change: impl FnOnce(&mut RunOptions)) -> Finished {
    let mut options = RunOptions {
        workload: Some("mix".to_owned()),
        series: Some("540".to_owned()),
        duration: Some("2s".to_owned()),
        interval: Some("100ms".to_owned()),
        transport: Some("inproc".to_owned()),
        no_calibrate: Some(true),
        ..RunOptions::default()
    };
    change(&mut options);
    run_into(store, &options)
}

fn memory(lie: FalseAnswer) -> Finished {
    run(&liar(MemoryStore::new(MemoryOptions::default()), lie, 0), |_| ())
}

fn reasons(finished: &Finished) -> String {
    assert_eq!(
        finished.run.verdict.status,
        Status::Invalid,
        "{:?}",
        finished.run.verdict
    );
    finished.run.verdict.reasons.join("\n")
}

#[test]
fn a_store_that_tells_the_truth_has_nothing_held_against_it() {
    let finished = memory(FalseAnswer::Nothing);
    let ledger = &finished.run.ledger;
    assert!(ledger.violated.is_empty() && ledger.counts.is_balanced(), "{ledger:?}");
    assert!(
        finished.run.verdict.status > Status::Unverified,
        "{:?}",
        finished.run.verdict
    );
}

#[test]
fn a_newest_that_is_always_now_makes_the_run_invalid() {
    let finished = memory(FalseAnswer::NewestIsNow);
    let reasons = reasons(&finished);
    assert!(reasons.contains("nothing newer than"), "{reasons}");
    assert!(
        reasons.contains("newest of host00000.system.value00000 (#0)"),
        "{reasons}"
    );
    assert_eq!(finished.run.ledger.counts.get(Counter::Lost), Some(0));
}

#[test]
fn a_newest_that_goes_back_makes_the_run_invalid() {
    let reasons = reasons(&memory(FalseAnswer::NewestGoesBack));
    assert!(reasons.contains("and later that it is"), "{reasons}");
}

#[test]
fn a_newest_that_is_not_what_a_query_returns_makes_the_run_invalid() {
    let reasons = reasons(&memory(FalseAnswer::NewestIsOld));
    assert!(reasons.contains("and a query returns"), "{reasons}");
}

#[test]
fn samples_within_the_retention_are_lost_whatever_newest_says() {
    let finished = memory(FalseAnswer::EverythingExpired);
    let counts = &finished.run.ledger.counts;
    assert_eq!(counts.get(Counter::Expired), Some(0), "{counts:?}");
    assert_eq!(counts.get(Counter::Lost), counts.get(Counter::Accepted));
    assert!(counts.count(Counter::Lost) > 5_000, "{counts:?}");
    assert_eq!(finished.run.verdict.status, Status::Invalid);
}

#[test]
fn samples_gone_within_the_retention_are_lost_and_older_ones_expired() {
    // Three hours of the fleet in a second, and a stated retention of one.
    let faster = |options: &mut RunOptions| {
        options.interval = Some("60s".to_owned());
        options.series = Some("54".to_owned());
        options.rate = Some("9720".to_owned());
        options.duration = Some("1s".to_owned());
    };
    let store = liar(MemoryStore::new(MemoryOptions::default()), FalseAnswer::ExpiresEarly, 0);
    let finished = run(&store, faster);
    let counts = &finished.run.ledger.counts;
    // Sixty minutes are kept and ten samples are there, of each series.
    assert!(counts.is_balanced(), "{:?}", finished.run.ledger);
    assert_eq!(counts.get(Counter::Verified), Some(540), "{counts:?}");
    let lost = counts.count(Counter::Lost);
    assert!((54 * 50..=54 * 51).contains(&lost), "{counts:?}");
    let expired = counts.count(Counter::Expired);
    assert_eq!(expired + lost + 540, counts.count(Counter::Accepted), "{counts:?}");
    assert!(expired > 54 * 100, "{counts:?}");
    // The same without the lie, in a store that does as it says.
    let kept = MemoryOptions {
        retention_ns: Some(3_600 * SECOND),
        ..MemoryOptions::default()
    };
    let honest: Arc<dyn Store> = Arc::new(MemoryStore::new(kept));
    let finished = run(&honest, faster);
    let counts = &finished.run.ledger.counts;
    assert_eq!(counts.get(Counter::Lost), Some(0), "{:?}", finished.run.ledger);
    assert!(finished.run.ledger.violated.is_empty(), "{:?}", finished.run.ledger);
    assert!(counts.count(Counter::Expired) > 54 * 100, "{counts:?}");
}

fn rrd(folder: &Path, lie: FalseAnswer, first: u64) -> Arc<dyn Store> {
    let options = RrdOptions {
        archives: vec![ArchiveRule::new(Consolidation::Average, 1, 100)],
        ..RrdOptions::default()
    };
    liar(RrdStore::open(folder, options).unwrap(), lie, first)
}

#[test]
fn samples_missing_in_an_unfinished_step_are_lost() {
    let short = |options: &mut RunOptions| options.series = Some("54".to_owned());
    let folder = tempfile::tempdir().unwrap();
    // A host is a batch: the first write is all that it takes of its series.
    let finished = run(&rrd(folder.path(), FalseAnswer::ForgetsTheRest, 1), short);
    let counts = &finished.run.ledger.counts;
    let accepted = counts.count(Counter::Accepted);
    assert!(accepted > 500, "{counts:?}");
    assert_eq!(counts.count(Counter::Lost), accepted - 54, "{counts:?}");
    assert_eq!(finished.run.verdict.status, Status::Invalid);
    let loss = &finished.run.ledger.losses[0];
    assert_eq!(loss.kind, FindingKind::Lost);
    assert!(loss.key.is_some(), "{loss:?}");
    let folder = tempfile::tempdir().unwrap();
    let finished = run(&rrd(folder.path(), FalseAnswer::Nothing, 0), short);
    let counts = &finished.run.ledger.counts;
    assert_eq!(counts.get(Counter::Lost), Some(0), "{:?}", finished.run.ledger);
    assert_eq!(counts.count(Counter::Verified), 0, "{counts:?}");
}

#[test]
fn a_fleet_beyond_the_heartbeat_is_refused_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let store = rrd(folder.path(), FalseAnswer::Nothing, 0);
    let plan = |interval: &str| {
        let mut plan = Plan::default();
        let options = RunOptions {
            series: Some("54".to_owned()),
            interval: Some(interval.to_owned()),
            duration: Some("100ms".to_owned()),
            transport: Some("inproc".to_owned()),
            no_calibrate: Some(true),
            ..RunOptions::default()
        };
        plan.apply(&options).unwrap();
        plan.complete().unwrap()
    };
    let controls = Controls::default();
    let refused = run_store(&plan("1800s"), &store, &controls).unwrap_err();
    let words = format!("{refused:?}");
    for part in ["54 of 54 series", "1800 s", "heartbeat of 600 s", "?heartbeat=3600s"] {
        assert!(words.contains(part), "{words}");
    }
    let mut samples = 0;
    let query = Query {
        series: &[SeriesId(0)],
        range: tsb_stores::TimeRange::ALL,
        resample: None,
    };
    // Nothing was sent, nothing was defined.
    let asked = store.query(&query, &mut |_, times, _| {
        samples += times.len();
        ControlFlow::Continue(())
    });
    assert!(asked.is_err() && samples == 0);
    assert!(run_store(&plan("600s"), &store, &controls).is_ok());
}
