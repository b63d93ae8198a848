//! A canary in virtual time, in front of a store that loses, alters, delays and invents samples: each
//! fault is found, counted once and named, and nothing else is.
#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tsb_core::report::canary::{CanaryReport, FaultAge, FaultKind, NamedFault};
use tsb_core::time::{Clock, ManualClock, SECOND_NS};
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_run::canary::{Canary, CanaryObserver, CanaryOptions};
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::{
    Ack, Capabilities, Error, OnConflict, Position, Query, Refusals, Result, Scope, Stats, Store, StoreExt, Visitor,
};

const INTERVAL_NS: u64 = 30 * SECOND_NS;
/// For how long a sample is held back: two answers do not have it.
const HELD_NS: u64 = 40 * SECOND_NS;
const START_NS: u64 = 1_700_000_000 * SECOND_NS;
const DAY_NS: u64 = 86_400 * SECOND_NS;

type Sample = (u32, i64);

/// What a relay did, to the sample.
#[derive(Debug, Default)]
struct Done {
    lost: BTreeSet<Sample>,
    altered: BTreeSet<Sample>,
    late: BTreeSet<Sample>,
    /// Held back: when to deliver, and the value.
    held: BTreeMap<Sample, (u64, f64)>,
    /// Deleted at the server.
    deleted: BTreeSet<Sample>,
    /// Returned twice in each answer.
    doubled: BTreeSet<Sample>,
    /// Answers with a wrong value.
    wrong_answers: u64,
    acknowledged: u64,
    /// Acknowledged, and older than another sample of its batch.
    behind: u64,
}

/// Stands between a canary and a store.
#[derive(Debug)]
struct Relay {
    inner: MemoryStore,
    clock: Arc<ManualClock>,
    is_faulty: AtomicBool,
    is_down: AtomicBool,
    draws: AtomicU64,
    late: OnConflict,
    done: Mutex<Done>,
}

impl fmt::Display for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("relay(memory)")
    }
}

impl Relay {
    fn new(clock: &Arc<ManualClock>) -> Self {
        Self {
            inner: MemoryStore::new(MemoryOptions::default()),
            clock: Arc::clone(clock),
            is_faulty: AtomicBool::new(false),
            is_down: AtomicBool::new(false),
            draws: AtomicU64::new(1),
            late: OnConflict::Accepted,
            done: Mutex::default(),
        }
    }

    /// A number in [0, n), from a seed; `n` while there are no faults.
    fn draw(&self, n: u64) -> u64 {
        let mut x = self.draws.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        if self.is_faulty.load(Ordering::Relaxed) {
            (x ^ (x >> 31)) % n
        } else {
            n
        }
    }

    fn put(&self, (series, at): Sample, value: f64) {
        let batch = Batch::tick(SeriesId(series), Timestamp(at), std::slice::from_ref(&value));
        let _ = self.inner.write_all(&batch).unwrap();
    }

    /// Delivers what was held back for long enough.
    fn deliver(&self) {
        let now_ns = self.clock.now();
        let mut done = self.done.lock().unwrap();
        let due: Vec<(Sample, f64)> = (done.held.iter())
            .filter(|(_, (at_ns, _))| *at_ns <= now_ns)
            .map(|(sample, (_, value))| (*sample, *value))
            .collect();
        for (sample, value) in due {
            done.held.remove(&sample);
            self.put(sample, value);
        }
    }

    fn unanswered() -> Error {
        Error::Unanswered {
            action: "ask the relay".to_owned(),
            source: "it is down".into(),
        }
    }
}

impl Store for Relay {
    fn capabilities(&self) -> Capabilities {
        let mut capabilities = self.inner.capabilities();
        capabilities.late = self.late;
        capabilities
    }

    fn define(&self, series: &[(SeriesId, SeriesKey)]) -> Result<()> {
        match self.inner.define(series) {
            // A second canary of one name has the same ids.
            Err(Error::Conflict { .. }) => Ok(()),
            defined => defined,
        }
    }

    fn write(&self, batch: &Batch<'_>, _: &mut Refusals) -> Result<Ack> {
        self.deliver();
        if self.is_down.load(Ordering::Relaxed) {
            return Err(Error::Unreachable {
                action: "write to the relay".to_owned(),
                source: "it is down".into(),
            });
        }
        // The store keeps every second sample, and the client gets an error that says nothing of that.
        let is_unknown = self.draw(200) == 0;
        let newest = batch.iter().map(|(_, at, _)| at).max();
        for (index, (series, at, value)) in batch.iter().enumerate() {
            let sample = (series.0, at.0);
            if is_unknown {
                if index % 2 == 0 {
                    self.put(sample, value);
                }
                continue;
            }
            let mut done = self.done.lock().unwrap();
            done.acknowledged += 1;
            done.behind += u64::from(Some(at) < newest);
            match self.draw(2_000) {
                0..4 => {
                    done.lost.insert(sample);
                    continue;
                }
                4..8 => {
                    done.altered.insert(sample);
                    self.put(sample, value + 1.0);
                    continue;
                }
                8..12 => {
                    done.late.insert(sample);
                    done.held.insert(sample, (self.clock.now() + HELD_NS, value));
                    continue;
                }
                12 => drop(done.doubled.insert(sample)),
                _ => {}
            }
            self.put(sample, value);
        }
        if is_unknown {
            return Err(Error::Unknown {
                action: "write to the relay".to_owned(),
                source: "the connection was lost".into(),
            });
        }
        Ok(Ack::new(
            batch.len(),
            0,
            Position(self.clock.now()),
            Durability::Volatile,
        ))
    }

    fn durable(&self, _: Durability) -> Position {
        Position(0)
    }

    fn flush(&self, _: Scope<'_>, _: Durability) -> Result<()> {
        Ok(())
    }

    fn query(&self, query: &Query<'_>, visit: &mut Visitor<'_>) -> Result<()> {
        self.deliver();
        if self.is_down.load(Ordering::Relaxed) {
            return Err(Self::unanswered());
        }
        let mut is_wrong = self.draw(300) == 0;
        self.inner.query(query, &mut |series, times, values| {
            let mut done = self.done.lock().unwrap();
            let (mut kept, mut shown) = (Vec::new(), Vec::new());
            for (&at, &value) in times.iter().zip(values) {
                let sample = (series.0, at.0);
                let copies = match (done.deleted.contains(&sample), done.doubled.contains(&sample)) {
                    (true, _) => 0,
                    (false, is_doubled) => 1 + usize::from(is_doubled),
                };
                let is_plain = copies == 1 && !done.altered.contains(&sample);
                let value = if is_wrong && is_plain {
                    is_wrong = false;
                    done.wrong_answers += 1;
                    value + 0.5
                } else {
                    value
                };
                kept.extend(std::iter::repeat_n(at, copies));
                shown.extend(std::iter::repeat_n(value, copies));
            }
            if kept.is_empty() {
                return ControlFlow::Continue(());
            }
            visit(series, &kept, &shown)
        })
    }

    fn newest(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.deliver();
        if self.is_down.load(Ordering::Relaxed) {
            return Err(Self::unanswered());
        }
        self.inner.newest(series, into)
    }

    fn newest_accepted(&self, series: &[SeriesId], into: &mut [Option<Timestamp>]) -> Result<()> {
        self.inner.newest_accepted(series, into)
    }

    fn stats(&self) -> Stats {
        self.inner.stats()
    }

    fn close(&self) -> Result<()> {
        Ok(())
    }
}

#[derive(Debug, Default)]
struct Heard {
    faults: Mutex<Vec<NamedFault>>,
    failed: AtomicU64,
}

impl Heard {
    /// The samples that were named with a kind of fault.
    fn named(&self, kind: FaultKind) -> Vec<Sample> {
        let faults = self.faults.lock().unwrap();
        let mut named: Vec<Sample> = (faults.iter())
            .filter(|fault| fault.kind == kind)
            .flat_map(|fault| {
                let series = fault.series.rsplit_once("series=").unwrap().1;
                let series = series.trim_end_matches('}').trim_matches('"').parse().unwrap();
                (0..fault.samples as i64).map(move |n| (series, fault.first.0 + n * INTERVAL_NS as i64))
            })
            .collect();
        named.sort_unstable();
        named
    }
}

impl CanaryObserver for Heard {
    fn fault(&self, fault: &NamedFault) {
        self.faults.lock().unwrap().push(fault.clone());
    }

    fn failed(&self, _: &'static str, _: &Error) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    fn stepped(&self, canary: &Canary) {
        assert!(canary.report().is_balanced(), "{:?}", canary.report().samples);
    }
}

fn options() -> CanaryOptions {
    let mut options = CanaryOptions::default();
    options.series = 4;
    options.interval_ns = INTERVAL_NS;
    options
}

fn start(relay: &Arc<Relay>, heard: &Heard) -> Canary {
    let store = Arc::clone(relay) as Arc<dyn Store>;
    let clock = Arc::clone(&relay.clock) as Arc<dyn Clock>;
    Canary::start(store, clock, options(), heard).unwrap()
}

/// Steps through some time.
fn pass(canary: &mut Canary, clock: &ManualClock, ns: u64, heard: &Heard) {
    for _ in 0..ns / INTERVAL_NS {
        clock.advance(INTERVAL_NS);
        canary.step(heard).unwrap();
    }
}

fn virtual_clock() -> Arc<ManualClock> {
    let clock = ManualClock::new();
    clock.advance(START_NS);
    Arc::new(clock)
}

fn expected(set: &BTreeSet<Sample>) -> Vec<Sample> {
    set.iter().copied().collect()
}

/// Holds a report, and what was named, against what the relay did.
fn check(report: &CanaryReport, relay: &Relay, heard: &Heard) {
    let done = relay.done.lock().unwrap();
    let lost: BTreeSet<Sample> = done.lost.union(&done.deleted).copied().collect();
    for (kind, samples) in [
        (FaultKind::Lost, &lost),
        (FaultKind::Altered, &done.altered),
        (FaultKind::Late, &done.late),
        (FaultKind::Duplicated, &done.doubled),
        (FaultKind::Invented, &BTreeSet::new()),
        (FaultKind::Returned, &BTreeSet::new()),
    ] {
        assert_eq!(heard.named(kind), expected(samples), "{}", kind.name());
        assert_eq!(report.count(kind), samples.len() as u64, "{}", kind.name());
    }
}

#[test]
fn in_a_week_each_fault_is_found_once_and_named() {
    let clock = virtual_clock();
    let relay = Arc::new(Relay::new(&clock));
    let heard = Heard::default();
    let mut canary = start(&relay, &heard);
    relay.is_faulty.store(true, Ordering::Relaxed);
    for day in 0..7 {
        pass(&mut canary, &clock, DAY_NS / 2, &heard);
        // Ten minutes in which nobody answers.
        relay.is_down.store(true, Ordering::Relaxed);
        pass(&mut canary, &clock, 600 * SECOND_NS, &heard);
        relay.is_down.store(false, Ordering::Relaxed);
        if day > 0 {
            delete(&relay, 3_600 * SECOND_NS * day);
        }
        pass(&mut canary, &clock, DAY_NS / 2, &heard);
    }
    relay.is_faulty.store(false, Ordering::Relaxed);
    pass(&mut canary, &clock, 86_400 * SECOND_NS, &heard);
    let report = canary.report();
    check(&report, &relay, &heard);
    let done = relay.done.lock().unwrap();
    assert!(done.lost.len() > 100 && done.altered.len() > 100 && done.late.len() > 100 && done.doubled.len() > 20);
    assert_eq!(report.samples.acknowledged, done.acknowledged);
    assert_eq!((report.samples.open, report.samples.let_go_unseen), (0, 0));
    assert!(report.samples.unknown > 0 && heard.failed.load(Ordering::Relaxed) > 7 * 20);
    assert_eq!(report.samples.skipped, 0);
    let wrong: u64 = report.questions.values().map(|question| question.wrong).sum();
    assert!(done.wrong_answers > 50 && wrong > done.wrong_answers, "{wrong}");
    assert!(!report.is_sound());
    // Found by a question that reaches so far back, and said to be as old.
    let by_age = |age| {
        report
            .faults
            .iter()
            .any(|fault| fault.kind == FaultKind::Lost && fault.age == age)
    };
    assert!(by_age(FaultAge::Hour) && by_age(FaultAge::Day), "{:?}", report.faults);
    assert!(
        report
            .faults
            .iter()
            .all(|fault| fault.durability == Durability::Volatile)
    );
}

/// Deletes ten samples that were seen, of this age.
fn delete(relay: &Relay, age_ns: u64) {
    let newest = (relay.clock.now() - age_ns) / INTERVAL_NS;
    let mut done = relay.done.lock().unwrap();
    for tick in newest - 40..newest {
        let sample = (2, (tick * INTERVAL_NS) as i64);
        let is_plain = ![&done.lost, &done.altered, &done.doubled]
            .into_iter()
            .any(|set| set.contains(&sample));
        let is_there = || !relay.inner.samples(SeriesId(2), one(sample.1)).unwrap().is_empty();
        if tick % 4 == 0 && is_plain && is_there() {
            done.deleted.insert(sample);
        }
    }
}

fn one(at: i64) -> tsb_stores::TimeRange {
    tsb_stores::TimeRange {
        start: Timestamp(at),
        end: Timestamp(at + 1),
    }
}

#[test]
fn a_canary_that_starts_again_takes_what_is_there_for_its_own() {
    let clock = virtual_clock();
    let relay = Arc::new(Relay::new(&clock));
    let heard = Heard::default();
    let mut first = start(&relay, &heard);
    pass(&mut first, &clock, DAY_NS, &heard);
    let written = first.report().samples.acknowledged;
    drop(first);
    // An hour in which there is none.
    clock.advance(3_600 * SECOND_NS);
    let mut second = start(&relay, &heard);
    assert_eq!(second.report().samples.found_at_start, written);
    delete(&relay, 7_200 * SECOND_NS);
    pass(&mut second, &clock, DAY_NS, &heard);
    let report = second.report();
    assert_eq!(relay.done.lock().unwrap().deleted.len(), 10);
    check(&report, &relay, &heard);
    // What the first one wrote has a level that the second does not know.
    let levels: Vec<Durability> = report.faults.iter().map(|fault| fault.durability).collect();
    assert_eq!(levels, [Durability::Unconfirmed]);
}

#[test]
fn samples_that_nobody_wrote_are_invented_once() {
    let clock = virtual_clock();
    let relay = Arc::new(Relay::new(&clock));
    let heard = Heard::default();
    let mut canary = start(&relay, &heard);
    pass(&mut canary, &clock, 600 * SECOND_NS, &heard);
    // A minute without a step, and a row at each of its ticks; and one between two ticks.
    let skipped = clock.now();
    clock.advance(2 * INTERVAL_NS);
    pass(&mut canary, &clock, INTERVAL_NS, &heard);
    let mut invented = BTreeSet::new();
    for sample in [
        (1, (skipped + INTERVAL_NS) as i64),
        (1, (skipped + 2 * INTERVAL_NS) as i64),
        (3, skipped as i64 - 7),
    ] {
        relay.put(sample, 5.0);
        invented.insert(sample);
    }
    pass(&mut canary, &clock, 7_200 * SECOND_NS, &heard);
    let report = canary.report();
    assert_eq!(heard.named(FaultKind::Invented), expected(&invented));
    assert_eq!(report.count(FaultKind::Invented), 3);
    assert!(report.samples.skipped >= 6, "{:?}", report.samples);
    assert!(!report.is_sound());
}

#[test]
fn a_sound_store_has_no_faults_and_takes_samples_late() {
    for late in [OnConflict::Accepted, OnConflict::Rejected] {
        let clock = virtual_clock();
        let mut relay = Relay::new(&clock);
        relay.late = late;
        let relay = Arc::new(relay);
        let heard = Heard::default();
        let mut canary = start(&relay, &heard);
        pass(&mut canary, &clock, DAY_NS, &heard);
        let report = canary.report();
        assert!(report.is_sound() && report.faults.is_empty(), "{:?}", report.faults);
        let questions: Vec<&str> = report.questions.keys().map(String::as_str).collect();
        assert_eq!(
            questions,
            ["day", "doubtful", "fresh", "hour", "newest", "random", "start", "week"]
        );
        assert!(report.samples.acknowledged > 4 * 2_800);
        let age_ns = clock.wall() - report.newest_visible.unwrap();
        assert!(age_ns <= 9 * INTERVAL_NS as i64, "{age_ns}");
        let behind = relay.done.lock().unwrap().behind;
        match late {
            OnConflict::Rejected => assert!(behind == 0 && age_ns < INTERVAL_NS as i64, "{behind}, {age_ns}"),
            _ => assert!(behind > 4 * 2_880 / 32, "{behind}"),
        }
    }
}

#[test]
fn what_a_store_cannot_keep_is_refused() {
    let clock = virtual_clock() as Arc<dyn Clock>;
    let refusal = |spec: &str, change: &dyn Fn(&mut CanaryOptions)| {
        let mut options = options();
        change(&mut options);
        let store: Arc<dyn Store> = tsb_run::spec::open(spec).unwrap().into();
        let refused = Canary::start(store, Arc::clone(&clock), options, &Heard::default()).err();
        refused.map(|error| error.to_string()).unwrap_or_default()
    };
    let keep = |_: &mut CanaryOptions| {};
    assert!(refusal("null:", &keep).contains("cannot be read"));
    assert!(refusal("memory:?retention=2m", &keep).contains("at least 16"));
    assert!(refusal("ring:", &|options| options.interval_ns = 31 * SECOND_NS).contains("a multiple"));
    assert!(refusal("memory:", &|options| options.series = 0).contains("1 to 10,000 series"));
    assert!(refusal("memory:", &|options| options.interval_ns = 1).contains("one second"));
    assert!(refusal("memory:", &|options| options.series = 10_000).contains("fewer series"));
    assert_eq!(refusal("memory:", &keep), "");
}
