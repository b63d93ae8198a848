//! Own times: every sample of a recording is sent, at its own time, and only then.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::schedule::{Group, Roster};
use crate::series::{SeriesId, SeriesKey};
use crate::time::{SECOND_NS, Timestamp};
use crate::trace::{Limits, Trace, TraceBuilder};
use crate::workload::tests::{BASE, generated, replayed};
use crate::workload::{Disorder, Workload, WorkloadSpec};

/// What a series sends: offsets from the start in seconds, and values.
type Samples = Vec<(i64, f64)>;

fn trace(samples: &[(&str, i64, f64)]) -> Trace {
    let mut builder = TraceBuilder::new(Limits::default());
    for &(key, at, value) in samples {
        let (name, host) = key.split_once('@').unwrap_or((key, ""));
        let labels = [("host", host)].into_iter().filter(|(_, host)| !host.is_empty());
        let id = builder.series(SeriesKey::with_labels(name, labels)).unwrap();
        builder.push(id, Timestamp::from_secs(at), value, 0).unwrap();
    }
    builder.finish()
}

fn spec(fleet: &str, series: Option<usize>) -> WorkloadSpec {
    WorkloadSpec {
        series,
        ..WorkloadSpec::new(fleet.parse().unwrap(), 7)
    }
}

fn own(series: Option<usize>, trace: &Trace) -> Workload {
    let workload = Workload::of_trace(&spec("trace:x", series), trace).unwrap();
    assert!(workload.window().unwrap().own_times);
    workload
}

fn sent(workload: &Workload, ticks: u64) -> BTreeMap<u32, Samples> {
    let all = generated(workload, 1, 0..ticks, 1);
    let seconds = |at: Timestamp| (at - BASE) / SECOND_NS as i64;
    let samples = |samples: Vec<(u64, Timestamp, u64)>| {
        let pairs = samples
            .into_iter()
            .map(|(_, at, bits)| (seconds(at), f64::from_bits(bits)));
        pairs.collect()
    };
    all.into_iter().map(|(id, found)| (id, samples(found))).collect()
}

/// The grid of the median interval would lose the second sample and move three others.
#[test]
fn irregular_samples_are_sent_when_they_were_taken() {
    let trace = trace(&[
        ("a", 100, 1.0),
        ("a", 110, 2.0),
        ("a", 113, 3.0),
        ("a", 123, 4.0),
        ("a", 141, 5.0),
    ]);
    let workload = own(None, &trace);
    assert_eq!(
        sent(&workload, 5)[&0],
        [(0, 1.0), (10, 2.0), (13, 3.0), (23, 4.0), (41, 5.0)]
    );
    let window = workload.window().unwrap();
    assert_eq!((window.present, window.superseded, window.moved), (5, 0, 0));
    assert_eq!(
        (window.start, window.length_ns),
        (Timestamp::from_secs(100), 51 * SECOND_NS)
    );
    // The window comes again one usual interval behind its last sample.
    assert_eq!(sent(&workload, 7)[&0][5..], [(51, 1.0), (61, 2.0)]);
    assert!((workload.samples_per_second() - 5.0 / 51.0).abs() < 1e-12);
    assert_eq!(workload.passes(std::slice::from_ref(&(0..5))), 1.0);
    let grid = Workload::of_trace(&spec("trace:x?grid=10s", None), &trace).unwrap();
    let window = grid.window().unwrap();
    assert_eq!((window.own_times, window.present, window.superseded), (false, 4, 1));
    assert_eq!((window.moved, window.moved_ns_max), (3, 3 * SECOND_NS));
}

#[test]
fn regular_series_keep_their_ticks_and_the_fast_path() {
    let regular = trace(&[("a", 5, 1.0), ("a", 15, 2.0), ("b", 35, 3.0), ("a", 25, 4.0)]);
    let window = |fleet: &str| {
        Workload::of_trace(&spec(fleet, None), &regular)
            .unwrap()
            .window()
            .unwrap()
    };
    assert!(!window("trace:x").own_times);
    assert_eq!((window("trace:x").moved, window("trace:x").ticks), (0, 4));
    assert!(window("trace:x?grid=none").own_times);
    // A recorder is late by a little: its ticks are those that it notes.
    let mut late = trace(&[("a", 100, 1.0), ("a", 111, 2.0), ("a", 119, 3.0)]);
    late.notes.insert("interval_ns".to_owned(), "10000000000".to_owned());
    let window = Workload::of_trace(&spec("trace:x", None), &late)
        .unwrap()
        .window()
        .unwrap();
    assert_eq!(
        (window.own_times, window.moved, window.moved_ns_max),
        (false, 2, SECOND_NS)
    );
    late.columns.clear();
    let one = trace(&[("a", 100, 1.0), ("a", 103, 2.0), ("a", 119, 3.0)]);
    late = Trace {
        notes: late.notes,
        ..one
    };
    assert!(own(None, &late).window().unwrap().moved == 0, "two samples on one tick");
}

#[test]
fn samples_of_one_time_are_all_sent_in_the_order_of_the_file() {
    let trace = trace(&[
        ("a", 0, 1.0),
        ("b", 0, 9.0),
        ("a", 0, 2.0),
        ("a", 7, 3.0),
        ("a", 3, 4.0),
    ]);
    let workload = own(None, &trace);
    assert_eq!(workload.window().unwrap().doubled, 1);
    let mut generator = workload.generator(0..1, BASE);
    let first: Vec<_> = generator
        .operation(0, 0)
        .iter()
        .map(|(id, _, value)| (id.0, value))
        .collect();
    assert_eq!(first, [(0, 1.0), (0, 2.0), (1, 9.0)]);
    assert_eq!(workload.alive(0, 0), 3);
    assert_eq!(sent(&workload, 3)[&0], [(0, 1.0), (0, 2.0), (3, 4.0), (7, 3.0)]);
}

#[test]
fn a_series_that_has_ended_is_not_there() {
    let workload = own(
        None,
        &trace(&[
            ("a", 0, 1.0),
            ("a", 11, 2.0),
            ("a", 20, 3.0),
            ("a", 30, 4.0),
            ("b", 11, 5.0),
            ("b", 20, 6.0),
        ]),
    );
    assert_eq!(seconds_of_life(&workload, 0), (0..60).collect::<Vec<_>>());
    // From its first sample until a usual interval (10 s) behind its last, in each window of 40 s.
    assert_eq!(
        seconds_of_life(&workload, 1),
        (11..30).chain(51..60).collect::<Vec<_>>()
    );
    let regular = trace(&[("a", 0, 1.0), ("a", 10, 2.0), ("a", 20, 3.0), ("b", 10, 4.0)]);
    let aligned = WorkloadSpec {
        phase: crate::workload::Phase::Aligned,
        ..spec("trace:x", None)
    };
    let grid = Workload::of_trace(&aligned, &regular).unwrap();
    assert_eq!(seconds_of_life(&grid, 0), (0..60).collect::<Vec<_>>());
    assert_eq!(seconds_of_life(&grid, 1), (10..20).chain(40..50).collect::<Vec<_>>());
}

/// The seconds of the first minute at which a series lives.
fn seconds_of_life(workload: &Workload, id: u32) -> Vec<u64> {
    let group = workload.group_of(SeriesId(id)).unwrap();
    let lives = |second: u64| {
        let mut lives = false;
        workload.living(group, second * SECOND_NS, |ids, _| lives |= ids.contains(&id));
        lives
    };
    (0..60).filter(|&second| lives(second)).collect()
}

#[test]
fn options_that_need_ticks_are_refused_with_a_hint() {
    let trace = trace(&[("a", 0, 1.0), ("a", 10, 2.0), ("a", 13, 3.0)]);
    let check = |spec: WorkloadSpec, expected: &str| {
        let error = Workload::of_trace(&spec, &trace).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("grid=DURATION"), "{error}");
    };
    let mut asked = spec("trace:x", None);
    asked.interval_ns = Some(SECOND_NS);
    check(asked, "invalid interval_ns");
    let mut asked = spec("trace:x", None);
    asked.batch = crate::workload::BatchMode::Tick;
    check(asked, "invalid batch");
    let mut asked = spec("trace:x", None);
    asked.disorder = Disorder {
        late: 0.5,
        ..Disorder::default()
    };
    check(asked, "invalid disorder");
    let mut asked = spec("trace:x", None);
    asked.resolution_ns = 2 * SECOND_NS;
    check(asked, "which are 2 s apart");
    let mut asked = spec("trace:x", None);
    asked.resolution_ns = SECOND_NS;
    assert!(Workload::of_trace(&asked, &trace).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]
    #[test]
    fn the_first_copy_is_the_file_and_the_audit_makes_what_was_sent(
        samples in proptest::collection::vec((0u8..6, 0i64..60, any::<f64>()), 1..50),
        copies in 1usize..5, part in 0usize..6, ticks in 1u64..40,
    ) {
        let keys = ["a@x", "b@x", "c@y", "d@y", "e@y", "f"];
        let samples: Vec<_> = samples.iter().map(|&(key, at, value)| (keys[key as usize], at, value)).collect();
        let trace = trace(&samples);
        let series = trace.keys.len();
        let asked = (copies * series - part.min(series - 1)).max(1);
        let workload = Workload::of_trace(&spec("trace:x?grid=none", Some(asked)), &trace).unwrap();
        prop_assert_eq!(workload.catalog().len(), asked);
        let mut audited = replayed(&workload, 0..ticks);
        audited.retain(|_, samples| !samples.is_empty());
        prop_assert_eq!(&generated(&workload, 2, 0..ticks, 1), &audited);
        let late = replayed(&workload, 3..ticks.max(3));
        for (id, samples) in replayed(&workload, 0..ticks.max(3)) {
            let after: Vec<_> = samples.into_iter().filter(|(tick, ..)| *tick >= 3).collect();
            prop_assert_eq!(&late.get(&id).cloned().unwrap_or_default(), &after);
        }
        // The first copy holds the file, time for time.
        let start = trace.span().unwrap().0;
        let window = workload.window().unwrap();
        let whole = replayed(&workload, 0..window.ticks);
        for (key, column) in trace.keys.iter().zip(&trace.columns) {
            let id = workload.catalog().id(key);
            let Some(id) = id.filter(|id| id.index() < series.min(asked)) else { continue };
            let mut expected: Vec<_> = column.times().iter().zip(column.values())
                .map(|(&at, value)| (at - start, value.to_bits())).collect();
            expected.sort_by_key(|&(at, _)| at);
            let found = whole[&id.0].iter().map(|&(_, at, bits)| (at - BASE, bits));
            let found: Vec<_> = found.filter(|&(at, _)| at < window.length_ns as i64).collect();
            prop_assert_eq!(found, expected, "{}", key);
        }
        // The emitter's order is that of the timestamps.
        let groups = workload.groups().iter().map(|group| Group::new(group.interval_ns, 0, 1)).collect();
        let roster = Roster::of_tick_times(groups, workload.tick_times().unwrap().to_vec()).unwrap();
        for slot in roster.walk().take(100) {
            let at = workload.timestamp(slot.group as usize, slot.tick, BASE);
            prop_assert_eq!(at - BASE, slot.offset_ns as i64);
        }
    }
}
