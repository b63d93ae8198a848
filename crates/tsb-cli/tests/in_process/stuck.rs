//! A store that never returns from a call: once a stop was asked for, or the run is over, it is
//! left behind, and the report says what there is without it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tsb_cli::args::RunOptions;
use tsb_cli::exit::Exit;
use tsb_cli::plan::Plan;
use tsb_cli::run::exit_of;
use tsb_core::ledger::Counter;
use tsb_core::report::{Report, Run};
use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_core::verdict::Status;
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_run::{Controls, FinishedRuns, StoreTimeouts, run_each};
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::{Ack, Query, Refusals, Result, Scope, Stats, Store, Visitor};

use crate::faulty_store::{Fault, FaultyStore};
use crate::runs::plan_of;

/// What a call may take here.
const PATIENCE: Duration = Duration::from_millis(300);
const WITHIN: &str = "within 0.3 s";

/// Where a store gets stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StuckCall {
    Nowhere,
    Define,
    Write,
    Newest,
    Stats,
    Flush,
    Query,
    Close,
    Drop,
}

/// Never returns from one of its methods.
#[derive(Debug)]
struct StuckStore {
    at: StuckCall,
    taken: Arc<AtomicU64>,
    in_hand: Arc<AtomicU64>,
    /// How often the run asked for the newest times.
    looks: AtomicU64,
    /// What the stuck call holds, and others of the store need.
    held: Mutex<()>,
}

impl StuckStore {
    fn go(&self, here: StuckCall) {
        if self.at == here {
            let _held = self.held.lock();
            loop {
                std::thread::park();
            }
        }
    }

    /// Waits for what the stuck call holds.
    fn need(&self) {
        drop(self.held.lock());
    }
}

impl Drop for StuckStore {
    fn drop(&mut self) {
        self.go(StuckCall::Drop);
    }
}

impl Fault for StuckStore {
    fn define(&self, inner: &dyn Store, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        self.go(StuckCall::Define);
        inner.define(series)
    }
    fn write(&self, inner: &dyn Store, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
        // Only once the run was looked at: a stuck store lets nobody look.
        if self.taken.load(Ordering::SeqCst) > 2_000 && self.looks.load(Ordering::SeqCst) > 0 {
            self.in_hand.store(batch.len() as u64, Ordering::SeqCst);
            self.go(StuckCall::Write);
        }
        let ack = inner.write(batch, refused)?;
        self.taken.fetch_add(ack.accepted as u64, Ordering::SeqCst);
        Ok(ack)
    }
    fn flush(&self, inner: &dyn Store, scope: Scope<'_>, level: Durability) -> Result<()> {
        self.go(StuckCall::Flush);
        inner.flush(scope, level)
    }
    fn query(&self, inner: &dyn Store, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        self.go(StuckCall::Query);
        inner.query(query, visit)
    }
    fn newest(&self, inner: &dyn Store, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.need();
        if self.taken.load(Ordering::SeqCst) > 2_000 {
            self.go(StuckCall::Newest);
        }
        inner.newest(series, into)?;
        self.looks.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
    fn stats(&self, inner: &dyn Store) -> Stats {
        self.need();
        let stats = inner.stats();
        if stats.accepted > 0 {
            self.go(StuckCall::Stats);
        }
        stats
    }
    fn close(&self, inner: &dyn Store) -> Result<()> {
        self.go(StuckCall::Close);
        inner.close()
    }
}

fn plan(transport: &str, duration: &str) -> Plan {
    let options = RunOptions {
        store: vec!["memory:".into(), "memory:?max_series=1M".into()],
        workload: Some("mix".to_owned()),
        series: Some("540".to_owned()),
        rate: Some("20k".to_owned()),
        duration: Some(duration.to_owned()),
        transport: Some(transport.to_owned()),
        report_interval: Some("100ms".to_owned()),
        no_calibrate: Some(true),
        ..RunOptions::default()
    };
    plan_of(&options)
}

fn controls() -> Controls {
    Controls {
        store_timeouts: StoreTimeouts {
            stopped: PATIENCE,
            ended: PATIENCE,
        },
        ..Controls::default()
    }
}

/// What the stuck store knows of its samples.
#[derive(Clone, Debug, Default)]
struct StoreCounts {
    taken: Arc<AtomicU64>,
    in_hand: Arc<AtomicU64>,
}

/// Runs two stores, of which the first gets stuck.
fn run(at: StuckCall, plan: &Plan, controls: &Controls) -> (Report, StoreCounts) {
    let (kept, known) = (FinishedRuns::new(None), StoreCounts::default());
    let first = plan.stores[0].clone();
    let open = |single: &Plan| {
        let is_first = single.stores[0] == first;
        let swamp = StuckStore {
            at: if is_first { at } else { StuckCall::Nowhere },
            taken: if is_first {
                Arc::clone(&known.taken)
            } else {
                Arc::default()
            },
            in_hand: if is_first {
                Arc::clone(&known.in_hand)
            } else {
                Arc::default()
            },
            looks: AtomicU64::new(0),
            held: Mutex::new(()),
        };
        let store: Arc<dyn Store> = FaultyStore::new(MemoryStore::new(MemoryOptions::default()), swamp);
        Ok(store.into())
    };
    let failed = run_each(plan, controls, &open, &kept, |_| {}).unwrap();
    assert!(failed.is_none(), "{at:?}: {failed:?}");
    (kept.report(), known)
}

fn is_left_behind(run: &Run, word: &str) {
    assert_eq!(run.verdict.status, Status::Unverified, "{word}: {:?}", run.verdict);
    let said = format!("the store did not return from {word} {WITHIN}");
    let says = |reason: &String| reason.contains(&said);
    assert!(run.verdict.reasons.iter().any(says), "{word}: {:?}", run.verdict);
    let counts = &run.ledger.counts;
    assert!(
        counts.is_balanced() && run.ledger.violated.is_empty(),
        "{:?}",
        run.ledger
    );
    assert!(
        run.notes.iter().any(|note| note.contains("left behind")),
        "{:?}",
        run.notes
    );
}

fn is_whole(run: &Run) {
    assert!(run.verdict.status > Status::Unverified, "{:?}", run.verdict);
    assert!(run.ledger.counts.count(Counter::Verified) > 1_000);
}

#[test]
fn a_store_stuck_at_the_end_leaves_both_reports() {
    for (at, word) in [
        (StuckCall::Write, "write"),
        (StuckCall::Newest, "newest"),
        (StuckCall::Stats, "stats"),
        (StuckCall::Flush, "flush"),
        (StuckCall::Query, "query"),
        (StuckCall::Close, "close"),
        (StuckCall::Drop, "drop"),
    ] {
        let (report, known) = run(at, &plan("inproc", "400ms"), &controls());
        assert_eq!(report.runs.len(), 2, "{at:?}");
        let run = &report.runs[0];
        is_left_behind(run, word);
        assert!(!run.interrupted, "{at:?}");
        assert!(
            run.ledger.counts.count(Counter::Sent) > 1_000,
            "{at:?}: {:?}",
            run.ledger
        );
        let taken = known.taken.load(Ordering::SeqCst);
        assert_eq!(run.ledger.counts.count(Counter::Accepted), taken, "{at:?}");
        // Where the watching thread itself is stuck, it sees one long interval.
        let is_seen = run.intervals.len() > 1 && run.staleness.is_some();
        assert!(is_seen || at == StuckCall::Newest, "{at:?}: {:?}", run.intervals);
        let is_read = matches!(at, StuckCall::Close | StuckCall::Drop);
        assert_eq!(run.ledger.counts.count(Counter::Verified) > 1_000, is_read, "{at:?}");
        is_whole(&report.runs[1]);
    }
}

#[test]
fn the_counts_of_a_stuck_write_are_exact() {
    let (report, known) = run(StuckCall::Write, &plan("inproc", "400ms"), &controls());
    let run = &report.runs[0];
    let count = |counter| run.ledger.counts.count(counter);
    let (taken, in_hand) = (known.taken.load(Ordering::SeqCst), known.in_hand.load(Ordering::SeqCst));
    assert_eq!(count(Counter::Confirmed), taken);
    assert_eq!(count(Counter::Unknown), in_hand);
    assert_eq!(count(Counter::Sent), taken + in_hand);
    // 20,000 per second for 0.4 s, whatever of it was sent.
    assert!((7_000..9_000).contains(&count(Counter::Due)), "{:?}", run.ledger);
    let exceptions = run.exceptions.as_ref().unwrap();
    assert_eq!(exceptions.operations.len(), 1, "{exceptions:?}");
    let issued: u64 = run
        .issued
        .iter()
        .map(|issued| u64::from(issued.groups) * (issued.end_tick - issued.first_tick))
        .sum();
    assert!(issued > 10, "{:?}", run.issued);
    assert!(run.latency.response.count > 0, "{:?}", run.latency);
    assert!(
        run.notes.iter().any(|note| note.contains("did not come back")),
        "{:?}",
        run.notes
    );
}

/// A store that takes a tenth of what is due, and is stuck when the emitter has ended.
#[test]
fn what_was_never_sent_is_counted_once() {
    #[derive(Debug)]
    struct SlowStore;
    impl Fault for SlowStore {
        fn write(&self, inner: &dyn Store, batch: &Batch<'_>, refused: &mut Refusals) -> Result<Ack> {
            let clock = MonotonicClock::new();
            clock.wait_until(clock.now() + SECOND_NS / 40);
            inner.write(batch, refused)
        }
        fn flush(&self, _: &dyn Store, _: Scope<'_>, _: Durability) -> Result<()> {
            loop {
                std::thread::park();
            }
        }
    }
    let kept = FinishedRuns::new(None);
    let mut plan = plan("inproc", "400ms");
    plan.stores.truncate(1);
    let open = |_: &Plan| {
        let store: Arc<dyn Store> = FaultyStore::new(MemoryStore::new(MemoryOptions::default()), SlowStore);
        Ok(store.into())
    };
    assert!(run_each(&plan, &controls(), &open, &kept, |_| {}).unwrap().is_none());
    let run = &kept.report().runs[0];
    is_left_behind(run, "flush");
    let count = |counter| run.ledger.counts.count(counter);
    assert!(count(Counter::Sent) < 4_000, "{:?}", run.ledger);
    // 20,000 per second for 0.4 s.
    assert!((7_000..9_000).contains(&count(Counter::Due)), "{:?}", run.ledger);
    let asked = run.rate.asked_per_second.unwrap();
    assert!((18_000.0..22_000.0).contains(&asked), "{asked}");
}

#[test]
fn a_store_stuck_behind_a_listener_leaves_what_its_counters_say() {
    let (report, known) = run(StuckCall::Write, &plan("tcp", "400ms"), &controls());
    let run = &report.runs[0];
    is_left_behind(run, "write");
    let count = |counter| run.ledger.counts.count(counter);
    // What was taken of the read that does not end is in no count.
    assert!(count(Counter::Accepted) <= known.taken.load(Ordering::SeqCst));
    assert_eq!(
        count(Counter::Sent),
        count(Counter::Confirmed) + count(Counter::Unknown)
    );
    assert!(count(Counter::Unknown) > 0 && !run.intervals.is_empty());
    is_whole(&report.runs[1]);
}

#[test]
fn a_stop_is_obeyed_in_every_phase() {
    for (at, word) in [
        (StuckCall::Define, "define"),
        (StuckCall::Write, "write"),
        (StuckCall::Flush, "flush"),
        (StuckCall::Query, "query"),
        (StuckCall::Close, "close"),
    ] {
        let mut controls = controls();
        // At the end of a run there would be no end.
        controls.store_timeouts.ended = Duration::from_hours(1);
        let stop = Arc::clone(&controls.stops.stop);
        let clock = MonotonicClock::new();
        let stopping = std::thread::spawn(move || {
            MonotonicClock::new().wait_until(2 * SECOND_NS);
            stop.store(true, Ordering::SeqCst);
        });
        let (report, _) = run(at, &plan("inproc", "400ms"), &controls);
        let taken_ns = clock.now();
        stopping.join().unwrap();
        assert_eq!(report.runs.len(), 1, "{at:?}: a stop ends all stores");
        is_left_behind(&report.runs[0], word);
        assert!(report.runs[0].interrupted, "{at:?}");
        assert_eq!(exit_of(&report, true), Exit::Interrupted, "{at:?}");
        assert!((2 * SECOND_NS..5 * SECOND_NS).contains(&taken_ns), "{at:?}: {taken_ns}");
    }
}

#[test]
fn a_second_request_waits_for_nothing_and_leaves_the_report() {
    for (at, word) in [
        (StuckCall::Define, "define"),
        (StuckCall::Write, "write"),
        (StuckCall::Query, "query"),
        (StuckCall::Close, "close"),
    ] {
        let mut controls = controls();
        controls.store_timeouts.ended = Duration::from_hours(1);
        controls.store_timeouts.stopped = Duration::from_hours(1);
        let (stop, at_once) = (Arc::clone(&controls.stops.stop), Arc::clone(&controls.stops.at_once));
        let asking = std::thread::spawn(move || {
            MonotonicClock::new().wait_until(2 * SECOND_NS);
            stop.store(true, Ordering::SeqCst);
            MonotonicClock::new().wait_until(SECOND_NS / 10);
            at_once.store(true, Ordering::SeqCst);
        });
        let (report, _) = run(at, &plan("inproc", "400ms"), &controls);
        asking.join().unwrap();
        let run = &report.runs[0];
        assert_eq!(run.verdict.status, Status::Unverified, "{at:?}");
        let said = format!("had not returned from {word}");
        assert!(
            run.verdict.reasons.iter().any(|reason| reason.contains(&said)),
            "{:?}",
            run.verdict
        );
        assert_eq!(exit_of(&report, true), Exit::Interrupted, "{at:?}");
    }
}

#[test]
fn a_slow_store_that_returns_is_not_abandoned() {
    #[derive(Debug)]
    struct SlowStore;
    impl Fault for SlowStore {
        fn flush(&self, inner: &dyn Store, scope: Scope<'_>, level: Durability) -> Result<()> {
            MonotonicClock::new().wait_until(PATIENCE.as_nanos() as u64 / 2);
            inner.flush(scope, level)
        }
        fn close(&self, inner: &dyn Store) -> Result<()> {
            MonotonicClock::new().wait_until(PATIENCE.as_nanos() as u64 / 2);
            inner.close()
        }
    }
    let kept = FinishedRuns::new(None);
    let mut plan = plan("tcp", "400ms");
    plan.stores.truncate(1);
    let open = |_: &Plan| {
        let store: Arc<dyn Store> = FaultyStore::new(MemoryStore::new(MemoryOptions::default()), SlowStore);
        Ok(store.into())
    };
    assert!(run_each(&plan, &controls(), &open, &kept, |_| {}).unwrap().is_none());
    is_whole(&kept.report().runs[0]);
}
