//! A run of two stores of which one fails, in each phase and in each way: what was measured of
//! both is reported, the verdict says what happened, and the run ends.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

mod faulty_store;

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tsb_core::ledger::Counter;
use tsb_core::report::{Report, Run};
use tsb_core::time::SECOND_NS;
use tsb_core::verdict::Status;
use tsb_run::{AskedRate, Controls, Error, FinishedRuns, Plan, Transport, run_each, run_plan};
use tsb_stores::Store;

use FailureKind::{Errs, IsSilent, IsSlow, Panics, PanicsTwice, TakesLong};
use Transport::{Inproc, Tcp};
use faulty_store::{FailureKind, Fault, FaultyStore, MESSAGE, Method};

/// No case takes longer; one that does hangs.
const PATIENCE: Duration = Duration::from_mins(1);
/// Samples that a run without a failure measures at least: it asks for 4,000.
const MEASURED: u64 = 1_000;

fn plan(transport: Transport) -> Plan {
    let mut plan = Plan {
        // The names of the two; nothing is projected for stores that are not `memory:`.
        stores: ["null:", "ring:"].map(|spec| spec.parse().unwrap()).to_vec(),
        transport,
        duration_ns: Some(SECOND_NS / 5),
        rate: AskedRate::PerSecond(20_000),
        report_interval_ns: SECOND_NS / 20,
        calibrate: false,
        ..Plan::default()
    };
    plan.workload.series = Some(540);
    plan.complete().unwrap()
}

/// The report of both stores, and the error of one that could not be run.
type Outcome = (Report, Result<Option<Error>, Error>);

/// A run of two stores on a thread of its own.
struct Running(Receiver<Outcome>);

/// Starts a run of two stores of which the one at `index` fails.
fn start(index: usize, faults: &[Fault], transport: Transport) -> Running {
    faulty_store::hush();
    let (faults, (tell, told)) = (faults.to_vec(), sync_channel(1));
    std::thread::spawn(move || {
        let plan = plan(transport);
        let bad = plan.stores[index].clone();
        let open = |single: &Plan| {
            let faults = if single.stores[0] == bad { &faults[..] } else { &[] };
            for fault in faults.iter().filter(|fault| fault.method == Method::Open) {
                let opened = fault.strike(0);
                opened.map_err(|error| Error::unreachable("cannot open trap").because(&error))?;
            }
            Ok((Arc::new(FaultyStore::new(faults.to_vec())) as Arc<dyn Store>).into())
        };
        let kept = FinishedRuns::new(None);
        let ended = run_each(&plan, &Controls::default(), &open, &kept, |_| {});
        // Nobody waits any more if it took too long.
        let _ = tell.send((kept.report(), ended));
    });
    Running(told)
}

impl Running {
    /// Waits for its end. Fails if that takes too long.
    fn end(self) -> Outcome {
        let ended = self.0.recv_timeout(PATIENCE);
        ended.unwrap_or_else(|error| panic!("the run hangs: {error}"))
    }
}

/// Makes the same faults in the first store of two and in the second, at the same time.
fn in_each(faults: &[Fault], transport: Transport) -> [Outcome; 2] {
    [0, 1].map(|index| start(index, faults, transport)).map(Running::end)
}

/// Checks both reports: that of the store at `index`, which failed as `words` say, and the other.
fn both_are_there((report, ended): &Outcome, index: usize, words: &str, case: &str) {
    assert!(matches!(ended, Ok(None)), "{case}: {ended:?}");
    assert_eq!(report.runs.len(), 2, "{case}");
    is_invalid(&report.runs[index], words, case);
    is_whole(&report.runs[1 - index], case);
}

/// The report of a store without a fault: complete, read back and judged.
fn is_whole(run: &Run, case: &str) {
    let sound = !matches!(run.verdict.status, Status::Invalid | Status::Unverified);
    assert!(sound, "{case}: {:?}", run.verdict);
    let counts = &run.ledger.counts;
    assert!(counts.count(Counter::Verified) > MEASURED, "{case}: {counts:?}");
    assert_eq!(counts.get(Counter::Verified), counts.get(Counter::Accepted), "{case}");
    assert!(run.staleness.is_some() && !run.intervals.is_empty(), "{case}");
}

/// The report of the store with a fault: it has what was measured until then, `words` and the
/// store's message are in one of the verdict's reasons, and it is not sound.
fn is_invalid(run: &Run, words: &str, case: &str) {
    assert_eq!(run.verdict.status, Status::Invalid, "{case}: {:?}", run.verdict);
    let reasons = &run.verdict.reasons;
    let says = |reason: &String| reason.contains(MESSAGE) && reason.contains(words);
    assert!(reasons.iter().any(says), "{case}: {words:?} is not in {reasons:?}");
    let counts = &run.ledger.counts;
    for counter in [Counter::Due, Counter::Sent, Counter::Accepted] {
        assert!(counts.count(counter) > MEASURED, "{case}: {counter:?} in {counts:?}");
    }
    assert!(
        run.rate.held_per_second > 0.0 && run.rate.asked_per_second > Some(0.0),
        "{case}"
    );
    assert!(run.latency.lag.count > 0, "{case}");
    assert!(
        run.latency.response.count > 0 && run.latency.response.max_ns > Some(0),
        "{case}"
    );
    // Reading back settles what became of a write that did not return.
    let (accepted, unknown) = (counts.count(Counter::Accepted), counts.count(Counter::Unknown));
    let seen: u64 = run.intervals.iter().map(|interval| interval.accepted).sum();
    assert!(
        (seen..=seen + unknown).contains(&accepted),
        "{case}: {seen} in {counts:?}"
    );
    assert!(run.durability.copies > 0 && !run.target.store.is_empty(), "{case}");
}

/// A fault after something was measured, and what a reason of the verdict says of it.
struct Case {
    method: Method,
    kind: FailureKind,
    /// Number of calls that succeed before.
    after: u64,
    transport: Transport,
    words: &'static str,
}

impl Case {
    /// Makes the fault in the first store of two and in the second.
    fn start(&self) -> [Running; 2] {
        let fault = Fault::new(self.method, self.kind, self.after);
        [0, 1].map(|index| start(index, std::slice::from_ref(&fault), self.transport))
    }

    fn check(&self, outcome: &Outcome, index: usize) {
        let name = format!(
            "{:?} {:?} over {:?} in store {index}",
            self.method, self.kind, self.transport
        );
        both_are_there(outcome, index, self.words, &name);
        // The listener ends a connection whose store has failed, so that the rest of what was
        // sent never came; the ledger says so.
        let is_cut = self.transport == Tcp && matches!(self.method, Method::Write | Method::Durable);
        let ledger = &outcome.0.runs[index].ledger;
        let balances = ledger.counts.is_balanced() && ledger.violated.is_empty();
        assert!(is_cut || balances, "{name}: {ledger:?}");
        let blamed = ledger.violated.iter().find(|said| said.contains("delivers everything"));
        assert_eq!(blamed, None, "{name}: the wire did what it should");
    }
}

const fn case(method: Method, kind: FailureKind, after: u64, transport: Transport, words: &'static str) -> Case {
    Case {
        method,
        kind,
        after,
        transport,
        words,
    }
}

/// Cases that run at a time: a run of so few samples waits most of its time.
const AT_ONCE: usize = 5;
/// Calls of `write` before one fails, so that enough was measured: a batch is about 50 samples.
const WRITES: u64 = 30;

/// Every method that a run calls after it has begun, in the order of the phases. `durable`,
/// `stats` and dropping return no error. Nothing here can be without consequence: each makes a
/// figure of the report wrong, or loses what was acknowledged.
const CASES: &[Case] = &[
    case(Method::Write, Errs, WRITES, Inproc, "do it"),
    case(Method::Write, Panics, WRITES, Inproc, "panicked"),
    case(Method::Write, Errs, WRITES, Tcp, "do it"),
    case(Method::Write, Panics, WRITES, Tcp, "panicked in write"),
    // The first calls are those of the thread that watches.
    case(Method::Newest, Errs, 0, Inproc, "do it"),
    case(Method::Newest, Panics, 0, Inproc, "panicked in newest"),
    case(Method::Newest, PanicsTwice, 0, Inproc, "the monitor thread panicked"),
    case(Method::Newest, Errs, 0, Tcp, "do it"),
    // While it is written, by the threads that write.
    case(Method::Durable, Panics, WRITES, Inproc, "panicked"),
    case(Method::Durable, Panics, WRITES, Tcp, "panicked"),
    case(Method::Flush, Errs, 0, Inproc, "cannot flush"),
    case(Method::Flush, Panics, 0, Inproc, "panicked in flush"),
    case(Method::Flush, Panics, 0, Tcp, "panicked in flush"),
    case(Method::Query, Errs, 3, Inproc, "cannot read back"),
    case(Method::Query, Panics, 3, Inproc, "panicked in query"),
    case(Method::Stats, Panics, 0, Inproc, "panicked in stats"),
    case(Method::Stats, Panics, 4, Inproc, "panicked in stats"),
    case(Method::Close, Errs, 0, Inproc, "cannot close"),
    case(Method::Close, Panics, 0, Inproc, "panicked in close"),
    case(Method::Drop, Panics, 0, Inproc, "panicked in drop"),
];

#[test]
fn a_failure_in_any_phase_leaves_both_reports() {
    for some in CASES.chunks(AT_ONCE) {
        let all: Vec<(&Case, [Running; 2])> = some.iter().map(|case| (case, case.start())).collect();
        for (case, running) in all {
            for (index, outcome) in running.map(Running::end).iter().enumerate() {
                case.check(outcome, index);
            }
        }
    }
}

#[test]
fn a_close_that_fails_after_an_earlier_failure_is_said_too() {
    for (method, kind, words) in [
        (Method::Write, Errs, "do it"),
        (Method::Write, Panics, "panicked"),
        (Method::Flush, Errs, "cannot flush"),
        (Method::Query, Panics, "panicked in query"),
    ] {
        let after = if method == Method::Write { WRITES } else { 0 };
        let faults = [Fault::new(method, kind, after), Fault::new(Method::Close, Errs, 0)];
        for (index, outcome) in in_each(&faults, Inproc).iter().enumerate() {
            let name = format!("{method:?} {kind:?}, then close, in store {index}");
            both_are_there(outcome, index, words, &name);
            is_invalid(&outcome.0.runs[index], "cannot close", &name);
        }
    }
}

#[test]
fn a_newest_that_fails_only_while_samples_are_written_is_said() {
    for transport in [Inproc, Tcp] {
        let fault = Fault {
            method: Method::Newest,
            kind: Errs,
            calls: 0..1,
        };
        for (index, outcome) in in_each(&[fault], transport).iter().enumerate() {
            let name = format!("{transport:?} in store {index}");
            both_are_there(outcome, index, "cannot say its newest samples", &name);
        }
    }
}

/// An answer that takes longer than the interval of a series has samples that came after the question;
/// they are as old as they are when it is there.
#[test]
fn a_store_that_answers_slowly_is_stale() {
    let fault = Fault::new(Method::Newest, IsSlow, 0);
    let [(report, _), _] = in_each(&[fault], Inproc);
    let staleness = report.runs[0].staleness.unwrap();
    assert!(staleness.p50_ms > 0.0, "{staleness:?}");
    let fault = Fault::new(Method::Newest, TakesLong, 0);
    let [(report, _), _] = in_each(&[fault], Inproc);
    let notes = &report.runs[0].notes;
    let is_said = |note: &String| note.contains("the store took up to 1.2") && note.contains("to say what its newest");
    assert!(notes.iter().any(is_said), "{notes:?}");
}

/// A server may count all its samples to say its statistics. The start is set after that: it had passed, so
/// samples were sent later than their timestamps say, and the process seemed to have stood still.
#[test]
fn a_store_that_takes_long_to_say_its_statistics_delays_the_start() {
    let fault = Fault::new(Method::Stats, TakesLong, 0);
    let [(report, _), _] = in_each(&[fault], Inproc);
    let run = &report.runs[0];
    is_whole(run, "slow statistics");
    let until_ns = run.intervals.iter().map(|interval| interval.end_ns).max();
    assert!(until_ns < Some(SECOND_NS), "{until_ns:?}");
    let is_late = |note: &String| note.contains("later than their timestamps say");
    assert!(!run.notes.iter().any(is_late), "{:?}", run.notes);
}

/// The run of a store with a fault in its read-back.
fn read_back_with(method: Method, kind: FailureKind, calls: std::ops::Range<u64>) -> Run {
    let [outcome, _] = in_each(&[Fault { method, kind, calls }], Inproc);
    let (report, _) = outcome;
    report.runs[0].clone()
}

/// It fails before its answers, and within one that is about many series.
#[test]
fn a_store_that_is_silent_at_first_is_read_back() {
    for (method, calls) in [(Method::Query, 0..2), (Method::Chunk, 20..22)] {
        let run = read_back_with(method, IsSilent, calls);
        is_whole(&run, "silent twice");
        let note = "2 reads of the read-back were not answered, and were repeated";
        assert!(run.notes.iter().any(|said| said == note), "{method:?}: {:?}", run.notes);
    }
}

/// Ten answers break off, some of them in one question about 64 series, and each has gone on before.
#[test]
fn a_store_that_answers_in_parts_is_asked_on() {
    let faults: Vec<Fault> = (1..=10)
        .map(|number| Fault {
            method: Method::Chunk,
            kind: IsSilent,
            calls: number * 3..number * 3 + 1,
        })
        .collect();
    let [(report, _), _] = in_each(&faults, Inproc);
    is_whole(&report.runs[0], "ten parts");
    let note = "10 reads of the read-back were not answered, and were repeated";
    let notes = &report.runs[0].notes;
    assert!(notes.iter().any(|said| said == note), "{notes:?}");
}

#[test]
fn an_answer_about_another_series_is_an_error() {
    let run = read_back_with(Method::ChunkName, Errs, 20..21);
    assert_eq!(run.verdict.status, Status::Invalid, "{:?}", run.verdict);
    let is_said = |reason: &String| reason.contains("the store answered about series #0, which was not the next");
    assert!(run.verdict.reasons.iter().any(is_said), "{:?}", run.verdict.reasons);
}

#[test]
fn a_store_that_stays_silent_is_not_verified() {
    let run = read_back_with(Method::Query, IsSilent, 0..u64::MAX);
    assert_eq!(run.verdict.status, Status::Unverified, "{:?}", run.verdict);
    let reasons = &run.verdict.reasons;
    assert!(
        reasons.iter().any(|reason| reason.contains("cannot read back")),
        "{reasons:?}"
    );
}

#[test]
fn a_panic_of_the_watching_thread_loses_no_interval_and_no_audit() {
    for transport in [Inproc, Tcp] {
        let fault = Fault {
            method: Method::Newest,
            kind: PanicsTwice,
            calls: 0..1,
        };
        for (index, outcome) in in_each(&[fault], transport).iter().enumerate() {
            let name = format!("{transport:?} in store {index}");
            both_are_there(outcome, index, "the monitor thread panicked", &name);
            let ledger = &outcome.0.runs[index].ledger;
            let counts = &ledger.counts;
            assert!(counts.is_balanced() && ledger.violated.is_empty(), "{name}: {ledger:?}");
            assert_eq!(counts.get(Counter::Verified), counts.get(Counter::Accepted), "{name}");
        }
    }
}

/// Nothing was measured of a store that cannot be opened or defined, so there is no report of it.
#[test]
fn a_store_that_cannot_begin_loses_no_report_of_another() {
    for (method, kind) in [
        (Method::Open, Errs),
        (Method::Open, Panics),
        (Method::Define, Errs),
        (Method::Define, Panics),
    ] {
        let name = format!("{method:?} {kind:?}");
        let is_right = |error: &Error| match (method, kind) {
            (Method::Open, Errs) => matches!(error, Error::Unreachable(_)),
            (Method::Open, _) => matches!(error, Error::Internal(_)),
            _ => matches!(error, Error::Plan(_)),
        };
        let says = |error: &Error| is_right(error) && error.to_string().contains(MESSAGE);
        let [first, second] = in_each(&[Fault::new(method, kind, 0)], Inproc);
        let (report, ended) = second;
        assert!(matches!(&ended, Ok(Some(error)) if says(error)), "{name}: {ended:?}");
        assert_eq!(report.runs.len(), 1, "{name}");
        is_whole(&report.runs[0], &name);
        let notes = &report.runs[0].notes;
        let is_noted = |note: &String| note.contains("was not measured") && note.contains(MESSAGE);
        assert!(notes.iter().any(is_noted), "{name}: {notes:?}");
        // The first store ends the command: there is no report yet that could be lost.
        let (report, ended) = first;
        assert!(matches!(&ended, Err(error) if says(error)), "{name}: {ended:?}");
        assert!(report.runs.is_empty(), "{name}");
    }
}

#[test]
fn measured_results_are_kept_before_reading_back() {
    let store = Arc::new(FaultyStore::new(Vec::new()));
    let (queried, seen) = (Arc::clone(&store), Arc::new(Mutex::new(None)));
    let keep = Arc::clone(&seen);
    let controls = Controls {
        provisional: Some(Arc::new(move |run: &Run| {
            assert_eq!(queried.queries.load(Ordering::SeqCst), 0, "it is read back already");
            *keep.lock().unwrap() = Some(run.clone());
        })),
        ..Controls::default()
    };
    let opened = Arc::clone(&store);
    let open = move |_: &Plan| Ok((Arc::clone(&opened) as Arc<dyn Store>).into());
    let run = run_plan(&plan(Inproc), &controls, &open).unwrap().run;
    assert!(store.queries.load(Ordering::SeqCst) > 0);
    let provisional = seen.lock().unwrap().take().unwrap();
    assert_eq!(provisional.verdict.status, Status::Unverified);
    let reasons = &provisional.verdict.reasons;
    assert!(reasons.iter().any(|reason| reason.contains("read back")), "{reasons:?}");
    is_whole(&run, "read back");
    let sent = |run: &Run| run.ledger.counts.get(Counter::Sent);
    assert_eq!(sent(&provisional), sent(&run));
}
