//! Recorded fleets: what is sent is what the trace holds, shifted, copied and wrapped.

use proptest::prelude::*;

use super::*;
use crate::batch::Times;
use crate::time::{SECOND_NS, Timestamp};
use crate::trace::{Limits, TraceBuilder};
use crate::workload::tests::{BASE, generated, replayed};
use crate::workload::{Disorder, FleetSpec, Jitter, Workload};

/// Three series over ten ticks: one whole, one with a gap, one that comes late.
fn small_trace() -> Trace {
    let mut builder = TraceBuilder::new(Limits::default());
    let whole = builder.series(SeriesKey::with_labels("cpu", [("host", "a")])).unwrap();
    let gap = builder.series(SeriesKey::with_labels("cpu", [("host", "b")])).unwrap();
    let late = builder.series(SeriesKey::with_labels("mem", [("host", "a")])).unwrap();
    builder.series(SeriesKey::new("without a sample")).unwrap();
    for tick in 0..10 {
        let at = Timestamp::from_secs(1000 + tick);
        builder.push(whole, at, tick as f64, 0).unwrap();
        if tick != 4 {
            builder.push(gap, at, 100.0 + tick as f64, 0).unwrap();
        }
        if tick >= 6 {
            builder.push(late, at, 200.0 + tick as f64, 0).unwrap();
        }
    }
    builder.finish()
}

fn spec(series: Option<usize>) -> WorkloadSpec {
    let fleet = "trace:anything".parse().unwrap();
    WorkloadSpec {
        series,
        phase: Phase::Aligned,
        ..WorkloadSpec::new(fleet, 7)
    }
}

fn values(workload: &Workload, id: u32, ticks: Range<u64>) -> Vec<(u64, f64)> {
    let sent = generated(workload, 1, ticks, 1);
    let samples = sent.get(&id).into_iter().flatten();
    samples.map(|&(tick, _, bits)| (tick, f64::from_bits(bits))).collect()
}

#[test]
fn a_trace_is_sent_as_it_was_recorded_and_begins_again() {
    let workload = Workload::of_trace(&spec(None), &small_trace()).unwrap();
    let names: Vec<String> = workload.catalog().keys().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["cpu{host=a}", "mem{host=a}", "cpu{host=b}"]);
    let hosts: Vec<u32> = workload.groups().iter().map(|group| group.len).collect();
    assert_eq!(hosts, [2, 1]);
    assert_eq!(
        values(&workload, 1, 0..20),
        [
            (6, 206.0),
            (7, 207.0),
            (8, 208.0),
            (9, 209.0),
            (16, 206.0),
            (17, 207.0),
            (18, 208.0),
            (19, 209.0),
        ]
    );
    let gap: Vec<u64> = values(&workload, 2, 0..10).iter().map(|&(tick, _)| tick).collect();
    assert_eq!(gap, [0, 1, 2, 3, 5, 6, 7, 8, 9]);
    assert_eq!(
        (workload.alive(0, 0), workload.alive(0, 6), workload.alive(1, 4)),
        (1, 2, 0)
    );
    assert_eq!(workload.samples_per_second(), 2.3);
}

#[test]
fn the_window_is_declared() {
    let half_second = WorkloadSpec {
        interval_ns: Some(SECOND_NS / 2),
        ..spec(Some(7))
    };
    let workload = Workload::of_trace(&half_second, &small_trace()).unwrap();
    let window = workload.window().unwrap();
    let expected = Window {
        series: 3,
        copies: 3,
        own_times: false,
        start: Timestamp::from_secs(1000),
        ticks: 10,
        length_ns: 5 * SECOND_NS,
        recorded_interval_ns: SECOND_NS,
        interval_ns: SECOND_NS / 2,
        present: 23,
        absent: 7,
        superseded: 0,
        moved: 0,
        moved_ns_max: 0,
        doubled: 0,
        problems: 0,
    };
    assert_eq!(window, expected);
    assert_eq!(window.passes(25), 2.5);
    assert_eq!(workload.groups()[0].interval_ns, SECOND_NS / 2);
    let mix = Workload::new(&WorkloadSpec::new(FleetSpec::Mix, 1)).unwrap();
    assert_eq!(mix.window(), None);
}

#[test]
fn copies_have_a_label_and_a_place_of_their_own_in_the_window() {
    let workload = Workload::of_trace(&spec(Some(3 * 10 - 1)), &small_trace()).unwrap();
    let keys = workload.catalog().keys();
    assert_eq!(keys.len(), 29);
    assert_eq!(keys[4].to_string(), "mem{copy=1,host=a}");
    assert_eq!(keys[28].to_string(), "mem{copy=9,host=a}");
    let firsts: Vec<f64> = (0..10).map(|copy| values(&workload, copy * 3, 0..1)[0].1).collect();
    let mut sorted = firsts.clone();
    sorted.sort_by(f64::total_cmp);
    assert_eq!(
        sorted,
        (0..10).map(f64::from).collect::<Vec<_>>(),
        "no two copies begin together"
    );
    assert_eq!(firsts[0], 0.0);
    let again = Workload::of_trace(&spec(Some(29)), &small_trace()).unwrap();
    assert_eq!(
        values(&workload, 3, 0..10),
        values(&again, 3, 0..10),
        "the seed decides"
    );
    let other = Workload::of_trace(
        &WorkloadSpec {
            seed: 8,
            ..spec(Some(6))
        },
        &small_trace(),
    )
    .unwrap();
    let third = Workload::of_trace(
        &WorkloadSpec {
            seed: 9,
            ..spec(Some(6))
        },
        &small_trace(),
    )
    .unwrap();
    assert_ne!(values(&other, 3, 0..10), values(&third, 3, 0..10));
}

#[test]
fn a_row_without_holes_is_handed_out_as_it_is() {
    let workload = Workload::of_trace(&spec(None), &small_trace()).unwrap();
    let mut generator = workload.generator(0..2, BASE);
    let batch = generator.operation(0, 7);
    assert!(matches!(batch.times(), Times::One(_)));
    assert_eq!(batch.values(), [7.0, 207.0]);
    assert_eq!(generator.operation(0, 3).values(), [3.0]);
    assert!(generator.operation(1, 4).is_empty());
}

#[test]
fn options_without_meaning_for_a_trace_are_refused() {
    let check = |spec: WorkloadSpec, trace: &Trace, expected: &str| {
        let error = Workload::of_trace(&spec, trace).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let mut churn = spec(None);
    churn.churn = Some(crate::workload::Churn {
        mode: crate::workload::ChurnMode::Steady {
            lifetime_ns: 5 * SECOND_NS,
        },
        horizon_ns: 60 * SECOND_NS,
        unit: 54,
    });
    check(churn, &small_trace(), "a trace brings its own");
    check(spec(None), &Trace::default(), "holds no sample");
    let mut builder = TraceBuilder::new(Limits::default());
    let id = builder.series(SeriesKey::with_labels("a", [("copy", "1")])).unwrap();
    builder.push(id, Timestamp(0), 1.0, 0).unwrap();
    builder.push(id, Timestamp(1000), 1.0, 0).unwrap();
    check(spec(Some(2)), &builder.finish(), "has a label \"copy\" already");
    let error = Workload::new(&spec(None)).unwrap_err().to_string();
    assert!(error.contains("cannot read trace anything: cannot open: "), "{error}");
}

#[test]
fn a_plan_knows_its_trace_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.tsbtrace");
    let trace = small_trace();
    trace.write(std::fs::File::create(&path).unwrap()).unwrap();
    let mut source = TraceSource {
        path,
        checksum: Some(trace.checksum()),
        ..TraceSource::default()
    };
    let fleet = FleetSpec::Trace(source.clone());
    let plan = serde_json::to_string(&fleet).unwrap();
    assert_eq!(serde_json::from_str::<FleetSpec>(&plan).unwrap(), fleet);
    assert_eq!(
        fleet.to_string().parse::<FleetSpec>().unwrap().to_string(),
        fleet.to_string()
    );
    assert_eq!(Workload::new(&WorkloadSpec::new(fleet, 1)).unwrap().catalog().len(), 3);
    source.checksum = Some(trace.checksum() ^ 1);
    let error = source.open().unwrap_err().to_string();
    assert!(error.contains("something else than when the plan was made"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn the_audit_makes_what_the_generators_sent(
        cells in proptest::collection::vec(proptest::option::weighted(0.7, any::<u64>()), 30..120),
        series in 1_usize..9, asked in 1_usize..40, start in 0_u64..30, ticks in 1_u64..25,
        disorder in any::<bool>(), jitter in any::<bool>(), whole_tick in any::<bool>(),
    ) {
        let mut builder = TraceBuilder::new(Limits::default());
        for series in 0..series {
            let host = (series % 3).to_string();
            builder.series(SeriesKey::with_labels(format!("s{series}"), [("host", host)])).unwrap();
        }
        // The first series always has an interval.
        builder.push(SeriesId(0), Timestamp(0), 1.0, 0).unwrap();
        builder.push(SeriesId(0), Timestamp::from_secs(1), 1.0, 0).unwrap();
        for (index, cell) in cells.iter().enumerate() {
            if let Some(bits) = cell {
                let at = Timestamp::from_secs((index / series) as i64);
                builder.push(SeriesId((index % series) as u32), at, f64::from_bits(*bits), 0).unwrap();
            }
        }
        let mut spec = spec(Some(asked));
        spec.fleet = "trace:anything?grid=1s".parse().unwrap();
        spec.batch = if whole_tick { BatchMode::Tick } else { BatchMode::Host };
        spec.tick_parts = 2;
        if disorder {
            spec.disorder = Disorder { late: 0.2, late_ticks: 3, missing: 0.1, duplicate: 0.1, out_of_order: 0.2 };
        }
        if jitter {
            spec.jitter = Jitter { max_ns: 5_000_000, step_ns: 1_000_000 };
        }
        let workload = Workload::of_trace(&spec, &builder.finish()).unwrap();
        prop_assert_eq!(workload.catalog().len(), asked);
        let ticks = start..start + ticks;
        let sent = generated(&workload, 3, ticks.clone(), 1);
        let mut expected = replayed(&workload, ticks.clone());
        expected.retain(|_, samples| !samples.is_empty());
        prop_assert_eq!(&sent, &expected);
        if !disorder {
            let alive: u32 = ticks.flat_map(|tick| (0..workload.groups().len()).map(move |group| (group, tick)))
                .map(|(group, tick)| workload.alive(group, tick)).sum();
            prop_assert_eq!(sent.values().map(Vec::len).sum::<usize>(), alive as usize);
        }
    }
}
