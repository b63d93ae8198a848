//! The place of each embedded store: made by a run, measured, refused when it is not empty,
//! appended to, and removed, by the library and by the command that the report names.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::path::Path;
use std::process::Command;

use tsb_core::ledger::Counter;
use tsb_core::report::{PlaceReport, Run};
use tsb_core::time::SECOND_NS;
use tsb_core::verdict::Status;
use tsb_run::place::{Place, RoundPlace};
use tsb_run::spec::{Spec, known};
use tsb_run::{AskedRate, Controls, Error, Plan, Transport, run_plan};

/// Series of the fleet, with a sample every 100 ms.
const SERIES: usize = 54;

/// An embedded store, whose spec has `{}` for a folder of its own.
struct Case {
    spec: &'static str,
    /// Kind of its place; `None` if it keeps nothing.
    kind: Option<&'static str>,
    /// How long a run takes. A consolidating store needs steps to compare.
    duration_ns: u64,
}

const SHORT_NS: u64 = 3 * SECOND_NS / 10;
const STEPS_NS: u64 = 5 * SECOND_NS / 2;

const fn case(spec: &'static str, kind: Option<&'static str>, duration_ns: u64) -> Case {
    Case {
        spec,
        kind,
        duration_ns,
    }
}

const CASES: [Case; 14] = [
    case("null:", None, SHORT_NS),
    case("memory:", None, SHORT_NS),
    case("ring:?slot=100ms&retention=1m", None, SHORT_NS),
    case("write-cache+memory:", None, SHORT_NS),
    case("throttle+memory:", None, SHORT_NS),
    case("sqlite:{}/a b'$x.db", Some("file"), SHORT_NS),
    case("sqlite:{}/x.db?layout=rows", Some("file"), SHORT_NS),
    case("sqlite:{}/x.db?layout=mohawk", Some("file"), SHORT_NS),
    case("throttle+sqlite:{}/x.db?commit=1s", Some("file"), SHORT_NS),
    case("mstore:{}/files?step=100ms", Some("folder"), SHORT_NS),
    case("rrd:{}/files?step=1s", Some("folder"), STEPS_NS),
    case("write-cache+rrd:{}/files?step=1s", Some("folder"), STEPS_NS),
    case(
        "write-cache+rrd:{}/files?step=1s&write-cache.journal={}/journal",
        Some("folder"),
        STEPS_NS,
    ),
    case(
        "throttle+write-cache+rrd:{}/my files/?step=1s&write-cache.journal={}/my journal",
        Some("folder"),
        STEPS_NS,
    ),
];

fn plan(spec: &Spec, duration_ns: u64, append: bool) -> Plan {
    let mut plan = Plan {
        stores: vec![spec.clone()],
        transport: Transport::Inproc,
        duration_ns: Some(duration_ns),
        rate: AskedRate::Natural,
        report_interval_ns: SECOND_NS / 10,
        calibrate: false,
        append,
        ..Plan::default()
    };
    plan.workload.series = Some(SERIES);
    plan.workload.interval_ns = Some(SECOND_NS / 10);
    plan.complete().unwrap()
}

fn run(spec: &Spec, duration_ns: u64, append: bool) -> Result<Run, Error> {
    let ended = run_plan(&plan(spec, duration_ns, append), &Controls::default(), &tsb_run::open);
    ended.map(|finished| finished.run)
}

fn count(run: &Run, counter: Counter) -> u64 {
    run.ledger.counts.count(counter)
}

/// Everything that the run sent is there, and nothing else was judged.
fn is_sound(run: &Run, case: &Case) {
    let spec = case.spec;
    assert_ne!(run.verdict.status, Status::Invalid, "{spec}: {:?}", run.verdict);
    assert!(run.ledger.violated.is_empty(), "{spec}: {:?}", run.ledger.violated);
    for counter in [Counter::Lost, Counter::Altered, Counter::Duplicated] {
        assert_eq!(count(run, counter), 0, "{spec}: {counter:?}");
    }
    if !spec.starts_with("null") {
        assert!(count(run, Counter::Verified) > 0, "{spec}: {:?}", run.ledger.counts);
    }
    if !spec.contains("rrd") && !spec.starts_with("null") {
        assert_eq!(count(run, Counter::Verified), count(run, Counter::Accepted), "{spec}");
    }
}

fn filled(case: &Case, spec: &Spec) -> Run {
    let run = run(spec, case.duration_ns, false).unwrap();
    is_sound(&run, case);
    run
}

/// What the report says of the place of a run that filled it.
fn is_reported(run: &Run, case: &Case) -> PlaceReport {
    let place = run.place.clone().unwrap();
    assert_eq!(Some(place.kind.as_str()), case.kind, "{}", case.spec);
    assert!(place.bytes.is_some_and(|bytes| bytes >= 4_096), "{place:?}");
    assert!(
        run.size.is_some() && run.cost.bytes_per_sample.is_some(),
        "{}",
        case.spec
    );
    assert_eq!(place.earlier, None);
    place
}

fn is_refused(case: &Case, spec: &Spec, command: &str) {
    let before = names(spec);
    let refused = run(spec, case.duration_ns, false).unwrap_err();
    let hint = refused.explanation().hint().unwrap_or_default();
    assert!(refused.to_string().contains("it already holds"), "{refused}");
    assert!(hint.contains("--append") && hint.contains(command), "{hint}");
    assert_eq!(names(spec), before, "{}: a refused run leaves no file", case.spec);
}

/// The names of the files beside the store's path, and below it.
fn names(spec: &Spec) -> Vec<std::path::PathBuf> {
    let mut open = vec![Path::new(spec.path()).parent().unwrap().to_owned()];
    let mut names = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path.clone());
            }
            // The journal of a cache begins a segment each time it is opened.
            let is_segment = path.to_string_lossy().contains("tsb.journal.");
            names.extend(Some(path).filter(|_| !is_segment));
        }
    }
    names.sort_unstable();
    names
}

fn is_appended_to(case: &Case, spec: &Spec, first: &Run) {
    let second = run(spec, case.duration_ns, true).unwrap();
    is_sound(&second, case);
    let place = second.place.as_ref().unwrap();
    let earlier = place.earlier.unwrap();
    assert!(earlier.before_ns > first.started_at_ns && earlier.before_ns <= second.started_at_ns);
    if spec.scheme() == "rrd" {
        assert_eq!((earlier.samples, earlier.series), (None, Some(SERIES as u64)));
    } else {
        assert_eq!(earlier.samples, Some(count(first, Counter::Accepted)), "{}", case.spec);
    }
    assert!(second.size.is_none() && second.cost.bytes_per_sample.is_none() && second.cost.projection.is_none());
    assert!(second.cost.disk_bytes_per_sample.is_none() && second.cost.sealed_bytes_per_sample.is_none());
    let notes = second.notes.join("; ");
    assert!(notes.contains("before this run"), "{}: {notes}", case.spec);
}

/// A file of another program beside the store's, which no removal touches.
fn foreign(spec: &Spec) -> std::path::PathBuf {
    let folder = Path::new(spec.path());
    let folder = if spec.scheme() == "sqlite" {
        folder.parent().unwrap()
    } else {
        folder
    };
    std::fs::create_dir_all(folder).unwrap();
    let path = folder.join("notes.txt");
    std::fs::write(&path, "of another program").unwrap();
    path
}

fn shell(command: &str) {
    let output = Command::new("sh").args(["-c", command]).output().unwrap();
    assert!(output.status.success(), "{command}: {output:?}");
}

/// The life of a place.
fn check(case: &Case) {
    let folder = tempfile::tempdir().unwrap();
    let text = case.spec.replace("{}", folder.path().to_str().unwrap());
    let spec: Spec = text.parse().unwrap();
    let first = filled(case, &spec);
    if case.kind.is_none() {
        assert!(first.place.is_none() && Place::of(&spec).unwrap().is_none(), "{text}");
        // Nothing is left that a second run could find.
        filled(case, &spec);
        return;
    }
    let reported = is_reported(&first, case);
    let command = reported.remove.unwrap();
    let place = Place::of(&spec).unwrap().unwrap();
    assert!(!place.is_empty().unwrap() && place.earlier_run().unwrap().is_none());
    assert_eq!(place.disk_bytes(), reported.bytes, "{text}");
    is_refused(case, &spec, &command);
    is_appended_to(case, &spec, &first);

    place.remove().unwrap();
    assert!(place.is_empty().unwrap(), "{text}: {:?}", names(&spec));
    assert_eq!(names(&spec), Vec::<std::path::PathBuf>::new(), "{text}");
    place.remove().unwrap();

    let notes = foreign(&spec);
    filled(case, &spec);
    shell(&command);
    assert!(place.is_empty().unwrap(), "{text}: {:?}", names(&spec));
    filled(case, &spec);
    place.remove().unwrap();
    assert!(
        place.is_empty().unwrap() && notes.is_file(),
        "{text}: {:?}",
        names(&spec)
    );
}

#[test]
fn each_place_is_made_measured_refused_appended_to_and_removed() {
    std::thread::scope(|threads| {
        for case in CASES {
            threads.spawn(move || check(&case));
        }
    });
}

/// Stores outside of this process that have no address; their places are tested with them.
const ELSEWHERE: [&str; 2] = ["exec", "rrdcached"];

/// The places of servers are tested with the servers.
#[test]
fn every_embedded_store_has_a_case() {
    let embedded = known()
        .iter()
        .filter(|info| !info.path.is_address() && !ELSEWHERE.contains(&info.scheme));
    for info in embedded {
        let is_named = |case: &Case| {
            let (schemes, _) = case.spec.split_once(':').unwrap();
            schemes.split('+').any(|scheme| scheme == info.scheme)
        };
        assert!(CASES.iter().any(is_named), "{}", info.scheme);
    }
}

#[test]
fn a_round_has_a_place_of_its_own_that_is_removed_after_it() {
    std::thread::scope(|threads| {
        for case in CASES {
            threads.spawn(move || {
                let folder = tempfile::tempdir().unwrap();
                let text = case.spec.replace("{}", folder.path().to_str().unwrap());
                let spec: Spec = text.parse().unwrap();
                for round in [1, 11] {
                    let own = RoundPlace::new(&spec, round).unwrap();
                    assert_eq!(own.spec() == &spec, case.kind.is_none(), "{}", own.spec());
                    filled(&case, own.spec());
                    let place = own.place().cloned();
                    if let Some(place) = &place {
                        assert!(!place.is_empty().unwrap());
                        let again = RoundPlace::new(&spec, round).unwrap_err();
                        assert!(again.explanation().hint().unwrap().contains("remove it: "), "{again}");
                        // The one that was refused has removed nothing.
                        assert!(!place.is_empty().unwrap());
                    }
                    own.remove().unwrap();
                    assert!(place.is_none_or(|place| place.is_empty().unwrap()));
                }
                let left = std::fs::read_dir(folder.path()).unwrap().count();
                assert_eq!(left, 0, "{text}");
            });
        }
    });
}

#[test]
fn a_dropped_round_is_removed_and_a_kept_one_stays() {
    let folder = tempfile::tempdir().unwrap();
    let spec: Spec = format!("sqlite:{}/x.db", folder.path().display()).parse().unwrap();
    let place = |round| {
        let own = RoundPlace::new(&spec, round).unwrap();
        run(own.spec(), SHORT_NS, false).unwrap();
        own
    };
    let (dropped, kept) = (place(1), place(2));
    let (gone, stays) = (dropped.place().cloned().unwrap(), kept.place().cloned().unwrap());
    drop(dropped);
    kept.keep();
    assert!(gone.is_empty().unwrap() && !stays.is_empty().unwrap());
}

#[test]
fn samples_lost_of_an_appended_run_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let spec = |options: &str| -> Spec {
        let text = format!("throttle+sqlite:{}/x.db?{options}", folder.path().display());
        text.parse().unwrap()
    };
    run(&spec("commit=each"), SHORT_NS, false).unwrap();
    let second = run(&spec("throttle.lose_one_in=7"), SHORT_NS, true).unwrap();
    assert_eq!(second.verdict.status, Status::Invalid, "{:?}", second.verdict);
    let (lost, accepted) = (count(&second, Counter::Lost), count(&second, Counter::Accepted));
    assert!(lost > 0 && lost < accepted / 3, "{lost} of {accepted}");
}

#[test]
fn a_run_does_not_begin_before_the_end_of_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let spec: Spec = format!("sqlite:{}/x.db", folder.path().display()).parse().unwrap();
    let mut fast = plan(&spec, SHORT_NS, false);
    // A hundred times real time: half a minute ahead.
    fast.rate = AskedRate::PerSecond(100 * 10 * SERIES as u64);
    run_plan(&fast, &Controls::default(), &tsb_run::open).unwrap();
    let refused = run(&spec, SHORT_NS, true).unwrap_err();
    assert!(refused.to_string().contains("would have the same times"), "{refused}");
    assert!(refused.explanation().hint().unwrap().contains("wait until then"));
    // It has written no sample, and left no mark.
    let place = Place::of(&spec).unwrap().unwrap();
    assert_eq!(place.earlier_run().unwrap(), None);
}
