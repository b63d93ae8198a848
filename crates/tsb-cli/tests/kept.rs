//! A report that exists is never lost: whatever a store does at whatever moment, what was
//! measured of it and of the others is reported, and the verdict says what happened.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tsb_cli::args::RunOptions;
use tsb_cli::exit::Exit;
use tsb_cli::failure::Failure;
use tsb_cli::plan::{Apply, Plan};
use tsb_core::ledger::Counter;
use tsb_core::report::{Report, Run};
use tsb_core::verdict::Status;
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_run::{Controls, Kept, run_each};
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::{Ack, Error, Query, Refusals, Result, Scope, Stats, Store, Visitor};

/// Where a store goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Nowhere,
    Open,
    Define,
    Write,
    Newest,
    /// In the watching thread, which then ends.
    Watched,
    Stats,
    Flush,
    Query,
    Close,
    Drop,
}

#[path = "support/wrong.rs"]
mod wrong;

use wrong::{Fault, Wrong};

/// Goes wrong in one place.
#[derive(Debug)]
struct Trap {
    at: At,
    panics: bool,
    /// It works at first.
    is_on: AtomicBool,
    /// Set when it is asked for samples.
    was_read: Arc<AtomicBool>,
    is_flushed: AtomicBool,
}

/// A panic that cannot even be looked at without another: it passes whatever guards a store.
#[derive(Debug)]
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("boom");
    }
}

impl Trap {
    fn go(&self, here: At) -> Result<()> {
        if self.at != here || !self.is_on.load(Ordering::SeqCst) {
            return Ok(());
        }
        assert!(!self.panics, "boom");
        Err(Error::Backend {
            action: "do it".to_owned(),
            source: "boom".into(),
        })
    }
}

impl Drop for Trap {
    fn drop(&mut self) {
        self.go(At::Drop).unwrap();
    }
}

impl Fault for Trap {
    fn define(&self, inner: &dyn Store, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.go(At::Define)?;
        inner.define(series)
    }
    fn write(&self, inner: &dyn Store, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        if inner.stats().accepted > 1_000 {
            self.go(At::Write)?;
        }
        inner.write(batch, refused)
    }
    fn flush(&self, inner: &dyn Store, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.is_flushed.store(true, Ordering::SeqCst);
        self.go(At::Flush)?;
        inner.flush(scope, level)
    }
    fn query(&self, inner: &dyn Store, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        self.was_read.store(true, Ordering::SeqCst);
        self.go(At::Query)?;
        inner.query(query, visit)
    }
    fn newest(&self, inner: &dyn Store, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.go(At::Newest)?;
        let is_watched = self.at == At::Watched && self.is_on.load(Ordering::SeqCst);
        // While the run goes on, the watching thread alone asks.
        if is_watched && !self.is_flushed.load(Ordering::SeqCst) && inner.stats().accepted > 1_000 {
            std::panic::panic_any(Bomb);
        }
        inner.newest(series, into)
    }
    fn stats(&self, inner: &dyn Store) -> Stats {
        let stats = inner.stats();
        if stats.accepted > 0 {
            self.go(At::Stats).unwrap();
        }
        stats
    }
    fn close(&self, inner: &dyn Store) -> Result<()> {
        self.go(At::Close)?;
        inner.close()
    }
}

fn wrong(at: At, panics: bool, is_on: bool, was_read: &Arc<AtomicBool>) -> Arc<dyn Store> {
    let trap = Trap {
        at,
        panics,
        is_on: AtomicBool::new(is_on),
        was_read: Arc::clone(was_read),
        is_flushed: AtomicBool::new(false),
    };
    Wrong::new(MemoryStore::new(MemoryOptions::default()), trap)
}

fn plan(transport: &str) -> Plan {
    let options = RunOptions {
        store: vec!["memory:".into(), "memory:?max_series=1M".into()],
        workload: Some("mix".to_owned()),
        series: Some("540".to_owned()),
        rate: Some("20k".to_owned()),
        duration: Some("400ms".to_owned()),
        transport: Some(transport.to_owned()),
        no_calibrate: Some(true),
        ..RunOptions::default()
    };
    let mut plan = Plan::default();
    plan.apply(&options).unwrap();
    plan.complete().unwrap()
}

fn quiet() -> Controls {
    Controls::default()
}

/// Runs two stores of which the one at `index` goes wrong.
fn two(index: usize, at: At, panics: bool, transport: &str) -> (Report, Option<Failure>) {
    let kept = Kept::new(None);
    let plan = plan(transport);
    let bad = plan.stores[index].clone();
    let open = |single: &Plan| {
        let is_wrong = single.stores[0] == bad;
        if is_wrong && at == At::Open {
            return Err(tsb_run::Error::unreachable("cannot open wrong").because_of("boom"));
        }
        Ok(wrong(at, panics, is_wrong, &Arc::default()))
    };
    let failed = run_each(&plan, &quiet(), &open, &kept, |_| {}).unwrap();
    (kept.report(), failed.map(Failure::from))
}

fn is_whole(run: &Run) {
    assert_ne!(run.verdict.status, Status::Invalid, "{:?}", run.verdict);
    assert!(run.ledger.counts.count(Counter::Verified) > 1_000);
}

fn is_invalid_for(run: &Run, word: &str) {
    assert_eq!(run.verdict.status, Status::Invalid, "{word}: {:?}", run.verdict);
    let says = |reason: &String| reason.contains("boom") && reason.contains(word);
    assert!(run.verdict.reasons.iter().any(says), "{word}: {:?}", run.verdict);
    assert!(
        run.ledger.counts.count(Counter::Sent) > 1_000,
        "{word}: {:?}",
        run.ledger
    );
}

#[test]
fn a_panic_of_a_store_in_any_phase_leaves_both_reports() {
    for (at, word) in [
        (At::Write, "panicked"),
        (At::Newest, "panicked in newest"),
        (At::Stats, "panicked in stats"),
        (At::Flush, "panicked in flush"),
        (At::Query, "panicked in query"),
        (At::Close, "panicked in close"),
        (At::Drop, "panicked in drop"),
    ] {
        let (report, failed) = two(0, at, true, "inproc");
        assert!(failed.is_none(), "{at:?}: {failed:?}");
        assert_eq!(report.runs.len(), 2, "{at:?}");
        is_invalid_for(&report.runs[0], word);
        is_whole(&report.runs[1]);
    }
}

#[test]
fn a_panic_of_the_watching_thread_leaves_what_was_measured() {
    for transport in ["inproc", "tcp"] {
        let (report, failed) = two(0, At::Watched, true, transport);
        assert!(failed.is_none(), "{failed:?}");
        let run = &report.runs[0];
        is_invalid_for(run, "the watching thread panicked");
        let counts = &run.ledger.counts;
        assert!(
            counts.is_balanced() && run.ledger.violated.is_empty(),
            "{:?}",
            run.ledger
        );
        assert!(counts.count(Counter::Verified) > 1_000, "{counts:?}");
        assert_eq!(counts.get(Counter::Verified), counts.get(Counter::Accepted));
        assert!(
            run.latency.response.count > 0 && !run.intervals.is_empty(),
            "{transport}"
        );
        let accepted: u64 = run.intervals.iter().map(|interval| interval.accepted).sum();
        assert_eq!(Some(accepted), counts.get(Counter::Accepted), "{transport}");
        is_whole(&report.runs[1]);
    }
}

#[test]
fn an_error_of_a_store_in_any_phase_leaves_both_reports() {
    for (at, word) in [
        (At::Write, "do it"),
        (At::Flush, "cannot flush"),
        (At::Query, "cannot read back"),
        (At::Close, "cannot close"),
    ] {
        let (report, failed) = two(1, at, false, "inproc");
        assert!(failed.is_none(), "{at:?}: {failed:?}");
        assert_eq!(report.runs.len(), 2, "{at:?}");
        is_whole(&report.runs[0]);
        is_invalid_for(&report.runs[1], word);
    }
}

#[test]
fn a_panic_behind_a_listener_is_the_stores_and_is_said() {
    let (report, failed) = two(0, At::Write, true, "tcp");
    assert!(failed.is_none(), "{failed:?}");
    assert_eq!(report.runs.len(), 2);
    is_invalid_for(&report.runs[0], "panicked in write");
    is_whole(&report.runs[1]);
}

#[test]
fn a_later_store_that_cannot_begin_leaves_the_report_of_the_first() {
    for (at, panics, exit) in [
        (At::Open, false, Exit::Unreachable),
        (At::Define, false, Exit::Usage),
        (At::Define, true, Exit::Usage),
    ] {
        let (report, failed) = two(1, at, panics, "inproc");
        assert_eq!(failed.map(|failure| failure.exit), Some(exit), "{at:?}");
        assert_eq!(report.runs.len(), 1, "{at:?}");
        is_whole(&report.runs[0]);
        let notes = &report.runs[0].notes;
        let says = |note: &String| note.contains("was not measured") && note.contains("boom");
        assert!(notes.iter().any(says), "{at:?}: {notes:?}");
    }
}

#[test]
fn what_was_measured_is_kept_before_it_is_read_back() {
    let was_read = Arc::new(AtomicBool::new(false));
    let read = Arc::clone(&was_read);
    let seen = Arc::new(Mutex::new(None));
    let keep = Arc::clone(&seen);
    let mut controls = quiet();
    controls.provisional = Some(Arc::new(move |run: &Run| {
        assert!(!read.load(Ordering::SeqCst), "it is read back already");
        *keep.lock().unwrap() = Some(run.clone());
    }));
    let open = |_: &Plan| Ok(wrong(At::Nowhere, false, false, &was_read));
    let mut plan = plan("inproc");
    plan.stores.truncate(1);
    let kept = Kept::new(None);
    assert!(run_each(&plan, &controls, &open, &kept, |_| {}).unwrap().is_none());
    assert!(was_read.load(Ordering::SeqCst));
    let provisional = seen.lock().unwrap().take().unwrap();
    assert_eq!(provisional.verdict.status, Status::Unverified);
    assert!(
        provisional
            .verdict
            .reasons
            .iter()
            .any(|reason| reason.contains("read back"))
    );
    let run = &kept.report().runs[0];
    is_whole(run);
    assert_eq!(
        provisional.ledger.counts.get(Counter::Sent),
        run.ledger.counts.get(Counter::Sent)
    );
}
