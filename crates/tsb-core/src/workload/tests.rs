//! Rows against columns: what the generators send is what the replay says they sent.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

pub(super) const BASE: Timestamp = Timestamp(1_700_000_000 * SECOND_NS as i64);

pub(super) type Series = BTreeMap<u32, Vec<(u64, Timestamp, u64)>>;

/// What the generators of `workers` workers send in `ticks`, by series.
pub(super) fn generated(workload: &Workload, workers: usize, ticks: Range<u64>, step: usize) -> Series {
    let mut sent = Series::new();
    for groups in workload.split(workers) {
        let mut generator = workload.generator(groups.clone(), BASE);
        for tick in ticks.clone().step_by(step) {
            for group in groups.clone() {
                for (id, at, value) in generator.operation(group, tick).iter() {
                    sent.entry(id.0).or_default().push((tick, at, value.to_bits()));
                }
            }
        }
    }
    sent
}

/// What the replay says was sent in `ticks`, by series.
pub(super) fn replayed(workload: &Workload, ticks: Range<u64>) -> Series {
    let mut replay = workload.replay(BASE);
    let mut sent = Series::new();
    for id in 0..workload.catalog().len() as u32 {
        replay.series(SeriesId(id), ticks.clone(), &mut |chunk| {
            let samples = chunk.iter().map(|(tick, at, value, _)| (tick, at, value.to_bits()));
            sent.entry(id).or_default().extend(samples);
        });
    }
    sent
}

fn agree(spec: &WorkloadSpec, ticks: Range<u64>) {
    let workload = Workload::new(spec).unwrap();
    let rows = generated(&workload, 3, ticks.clone(), 1);
    let columns = replayed(&workload, ticks);
    assert_eq!(rows.len(), columns.len(), "series that sent anything");
    for (id, samples) in rows {
        assert_eq!(samples, columns[&id], "series {id} of {}", spec.fleet);
    }
}

fn small(fleet: FleetSpec, series: usize) -> WorkloadSpec {
    WorkloadSpec {
        series: Some(series),
        ..WorkloadSpec::new(fleet, 7)
    }
}

fn fleets() -> Vec<FleetSpec> {
    let named = [
        FleetSpec::Mix,
        FleetSpec::Kstat,
        FleetSpec::Heartbeat,
        FleetSpec::Gauges,
        FleetSpec::Counters,
    ];
    named
        .into_iter()
        .chain(Shape::ALL.map(|(shape, _)| FleetSpec::Shape(shape)))
        .collect()
}

#[test]
fn rows_and_columns_agree_in_every_fleet() {
    for fleet in fleets() {
        agree(&small(fleet, 1100), 0..300);
    }
}

/// Disorder, jitter, churn and intervals of every kind, some of each absent.
fn messy() -> impl Strategy<Value = WorkloadSpec> {
    let probability = prop_oneof![Just(0.0), 0.0..0.2f64];
    let disorder = (
        probability.clone(),
        probability.clone(),
        probability.clone(),
        probability,
        1..6u32,
    );
    let disorder = disorder.prop_map(|(late, missing, duplicate, out_of_order, late_ticks)| Disorder {
        late,
        late_ticks,
        missing,
        duplicate,
        out_of_order,
    });
    let period_ns = (4..60u64).prop_map(|ticks| ticks * SECOND_NS);
    let churn = (0..5u8, period_ns, 1..30u32).prop_map(|(mode, period_ns, unit)| {
        let mode = match mode {
            0 => ChurnMode::Steady { lifetime_ns: period_ns },
            1 => ChurnMode::Gradual {
                multiple: 2.5,
                period_ns,
            },
            2 => ChurnMode::DoubleHalve { period_ns },
            3 => ChurnMode::Spike {
                multiple: 3.0,
                period_ns,
                length_ns: period_ns / 3,
            },
            _ => return None,
        };
        Some(Churn {
            mode,
            horizon_ns: 200 * SECOND_NS,
            unit,
        })
    });
    let jitter = prop_oneof![Just(0), Just(999_000_000), Just(40)];
    let fleet = prop_oneof![Just(FleetSpec::Mix), Just(FleetSpec::Kstat), Just(FleetSpec::Gauges)];
    let shape = (any::<bool>(), any::<bool>(), any::<bool>(), 1..4usize);
    (fleet, any::<u64>(), disorder, churn, jitter, shape).prop_map(
        |(fleet, seed, disorder, churn, jitter, (tick, aligned, mixed, tick_parts))| {
            let intervals = [1, 2, 10].map(|seconds| IntervalShare {
                interval_ns: seconds * SECOND_NS,
                share: 1.0,
            });
            WorkloadSpec {
                series: Some(150),
                batch: if tick { BatchMode::Tick } else { BatchMode::Host },
                phase: if aligned { Phase::Aligned } else { Phase::Seeded },
                intervals: if mixed { intervals.to_vec() } else { Vec::new() },
                jitter: Jitter {
                    max_ns: jitter,
                    step_ns: if jitter > 40 { 1_000_000 } else { 1 },
                },
                disorder,
                churn,
                tick_parts,
                ..WorkloadSpec::new(fleet, seed)
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rows_and_columns_agree_in_every_mess(spec in messy(), start in 0..40u64) {
        agree(&spec, 0..90);
        agree(&spec, start..90);
    }

    #[test]
    fn a_generator_may_leave_ticks_out_and_go_back(spec in messy()) {
        let workload = Workload::new(&spec).unwrap();
        let groups = workload.groups().len();
        let operation = |generator: &mut Generator<'_>, group, tick| -> Vec<(SeriesId, Timestamp, u64)> {
            generator.operation(group, tick).iter().map(|(id, at, value)| (id, at, value.to_bits())).collect()
        };
        let mut steady = workload.generator(0..groups, BASE);
        let expected: Vec<_> = (0..70).map(|tick| operation(&mut steady, groups / 2, tick)).collect();
        let mut jumping = workload.generator(0..groups, BASE);
        for tick in [0, 1, 5, 69, 30, 31, 31, 2] {
            prop_assert_eq!(&operation(&mut jumping, groups / 2, tick), &expected[tick as usize], "tick {}", tick);
        }
    }
}

#[test]
fn far_ahead_is_the_same_as_tick_by_tick() {
    let spec = small(FleetSpec::Counters, 108);
    let workload = Workload::new(&spec).unwrap();
    let mut near = workload.generator(0..2, BASE);
    let mut far = workload.generator(0..2, BASE);
    for tick in 0..4999 {
        near.operation(1, tick);
    }
    let expected: Vec<f64> = near.operation(1, 5000).values().to_vec();
    assert_eq!(far.operation(1, 5000).values(), expected);
}

#[test]
fn a_checkpoint_saves_the_way_and_changes_nothing() {
    let mut spec = small(FleetSpec::Counters, 108);
    spec.disorder.late = 0.1;
    spec.churn = Some(Churn {
        mode: ChurnMode::Steady {
            lifetime_ns: 900 * SECOND_NS,
        },
        horizon_ns: 3000 * SECOND_NS,
        unit: 20,
    });
    let workload = Workload::new(&spec).unwrap();
    let expected = replayed(&workload, 2000..2100);
    let early = workload.checkpoint(700, None);
    let late = std::sync::Arc::new(workload.checkpoint(1990, Some(&early)));
    assert_eq!(*late, workload.checkpoint(1990, None));
    let mut replay = workload.replay(BASE);
    replay.start_from(Some(late.clone()));
    for id in 0..workload.catalog().len() as u32 {
        let mut samples = Vec::new();
        replay.series(SeriesId(id), 2000..2100, &mut |sent| {
            samples.extend(sent.iter().map(|(tick, at, value, _)| (tick, at, value.to_bits())));
        });
        assert_eq!(&samples, expected.get(&id).unwrap_or(&Vec::new()), "series {id}");
    }
    let mut generator = workload.generator(0..2, BASE);
    generator.start_from(Some(late));
    let mut plain = workload.generator(0..2, BASE);
    for tick in 2000..2003 {
        let (a, b) = (generator.operation(1, tick), plain.operation(1, tick));
        assert_eq!(a, b);
    }
}

#[test]
fn one_seed_is_one_workload_and_another_is_another() {
    for fleet in fleets() {
        let of_seed = |seed| {
            let workload = Workload::new(&WorkloadSpec {
                seed,
                ..small(fleet.clone(), 300)
            })
            .unwrap();
            (replayed(&workload, 0..50), workload.catalog().keys().to_vec())
        };
        assert!(of_seed(7) == of_seed(7), "{fleet}");
        assert!(of_seed(7) != of_seed(8), "{fleet}");
    }
}

#[test]
fn samples_are_late_missing_doubled_and_swapped_as_often_as_asked() {
    let mut spec = small(FleetSpec::Mix, 540);
    spec.disorder = Disorder {
        late: 0.02,
        late_ticks: 7,
        missing: 0.03,
        duplicate: 0.05,
        out_of_order: 0.04,
    };
    let workload = Workload::new(&spec).unwrap();
    let mut replay = workload.replay(BASE);
    let (mut all, mut late, mut doubled, mut swapped) = (0.0, 0.0, 0.0, 0.0);
    for id in 0..540 {
        replay.series(SeriesId(id), 0..1000, &mut |sent| {
            for (tick, at, _, how) in sent.iter() {
                let group = workload.group_of(SeriesId(id)).unwrap();
                let behind = workload.timestamp(group, tick, BASE) - at;
                let behind = behind / SECOND_NS as i64;
                match how {
                    SentAs::OnTime => assert_eq!(behind, 0),
                    SentAs::Duplicate => doubled += 1.0,
                    SentAs::OutOfOrder => {
                        assert_eq!(behind, 1);
                        swapped += 1.0;
                    }
                    SentAs::Late => {
                        assert!((1..=7).contains(&behind));
                        late += 1.0;
                    }
                }
                all += 1.0;
            }
        });
    }
    let due = 540_000.0;
    let near = |count: f64, share: f64| (count / due - share).abs() < 0.001;
    assert!(
        near(late, 0.02) && near(doubled, 0.05) && near(swapped, 0.04),
        "{late} {doubled} {swapped}"
    );
    assert!(near(all, 1.0 - 0.03 + 0.05), "{all}");
}

#[test]
fn jitter_is_bounded_and_keeps_the_order() {
    let mut spec = small(FleetSpec::Mix, 54);
    spec.jitter = Jitter {
        max_ns: 250_000_000,
        step_ns: 1_000_000,
    };
    spec.resolution_ns = 1_000_000;
    let workload = Workload::new(&spec).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    workload.replay(BASE).series(SeriesId(5), 0..2000, &mut |sent| {
        for (tick, at, ..) in sent.iter() {
            let off = at - workload.timestamp(0, tick, BASE);
            assert!((0..=250_000_000).contains(&off) && off % 1_000_000 == 0, "{off}");
            assert_eq!(at.0 % 1_000_000, 0);
            seen.insert(off);
        }
    });
    assert!(seen.len() > 240, "all steps of the jitter occur: {}", seen.len());
}

#[test]
fn churn_changes_the_number_as_its_name_says() {
    let alive = |mode, ticks: &[u64]| -> Vec<f64> {
        let churn = Churn {
            mode,
            horizon_ns: 400 * SECOND_NS,
            unit: 54,
        };
        let spec = WorkloadSpec {
            churn: Some(churn),
            ..small(FleetSpec::Mix, 5400)
        };
        let workload = Workload::new(&spec).unwrap();
        let count = |tick| {
            (0..workload.groups().len())
                .map(|group| workload.alive(group, tick))
                .sum::<u32>()
        };
        ticks.iter().map(|&tick| f64::from(count(tick)) / 5400.0).collect()
    };
    let period_ns = 100 * SECOND_NS;
    assert_eq!(
        alive(ChurnMode::Steady { lifetime_ns: period_ns }, &[0, 17, 150, 1000]),
        [1.0; 4]
    );
    assert_eq!(
        alive(ChurnMode::DoubleHalve { period_ns }, &[0, 49, 50, 99, 100, 450]),
        [1.0, 1.0, 2.0, 2.0, 1.0, 1.0]
    );
    let spike = ChurnMode::Spike {
        multiple: 4.0,
        period_ns,
        length_ns: 10 * SECOND_NS,
    };
    assert_eq!(alive(spike, &[0, 89, 90, 99, 100, 195]), [1.0, 1.0, 4.0, 4.0, 1.0, 4.0]);
    let gradual = alive(
        ChurnMode::Gradual {
            multiple: 3.0,
            period_ns,
        },
        &[0, 25, 50, 75, 100],
    );
    let expected = [1.0, 2.0, 3.0, 2.0, 1.0];
    let close = gradual.iter().zip(expected).all(|(a, b)| (a - b).abs() < 0.05);
    assert!(close, "{gradual:?}");
}

#[test]
fn a_replaced_series_has_an_id_and_a_key_of_its_own() {
    let churn = Churn {
        mode: ChurnMode::Steady {
            lifetime_ns: 30 * SECOND_NS,
        },
        horizon_ns: 100 * SECOND_NS,
        unit: 10,
    };
    for keys in [KeyForm::Name, KeyForm::Labels] {
        let spec = WorkloadSpec {
            churn: Some(churn),
            keys,
            ..small(FleetSpec::Kstat, 500)
        };
        let workload = Workload::new(&spec).unwrap();
        let born: Vec<u64> = (0..workload.catalog().len() as u32)
            .map(|id| workload.lifetime(SeriesId(id)).unwrap().start)
            .collect();
        // 50 units, each replaced three times or four within 100 s.
        assert!(born.len() > 500 * 4 && born.len() < 500 * 6, "{}", born.len());
        assert_eq!(born.iter().filter(|birth| **birth == 0).count(), 500);
        assert_eq!(workload.lifetime(SeriesId(born.len() as u32)), None);
    }
}

#[test]
fn mixed_intervals_are_shared_out_by_host() {
    let spec = WorkloadSpec {
        intervals: vec![
            IntervalShare {
                interval_ns: SECOND_NS,
                share: 2.0,
            },
            IntervalShare {
                interval_ns: 60 * SECOND_NS,
                share: 1.0,
            },
        ],
        ..small(FleetSpec::Mix, 54 * 300)
    };
    let workload = Workload::new(&spec).unwrap();
    let slow = workload
        .groups()
        .iter()
        .filter(|group| group.interval_ns == 60 * SECOND_NS)
        .count();
    assert!((70..130).contains(&slow), "{slow} of 300 hosts");
    let expected = (300 - slow) as f64 * 54.0 + slow as f64 * 54.0 / 60.0;
    assert!((workload.samples_per_second() - expected).abs() < 1e-6);
    let tick = Workload::new(&WorkloadSpec {
        batch: BatchMode::Tick,
        tick_parts: 2,
        ..spec
    })
    .unwrap();
    assert_eq!(tick.groups().len(), 4);
    assert_eq!(tick.catalog().keys(), workload.catalog().keys());
}

#[test]
fn groups_are_split_evenly_and_completely() {
    let workload = Workload::new(&small(FleetSpec::Mix, 5400)).unwrap();
    for workers in [1, 2, 3, 7, 100, 1000] {
        let ranges = workload.split(workers);
        assert_eq!(ranges.len(), workers.min(100));
        assert_eq!((ranges[0].start, ranges[ranges.len() - 1].end), (0, 100));
        assert!(ranges.windows(2).all(|pair| pair[0].end == pair[1].start));
        let longest = ranges.iter().map(ExactSizeIterator::len).max().unwrap();
        assert!(
            longest <= 100usize.div_ceil(workers.min(100)) + 1,
            "{longest} for {workers}"
        );
    }
}

#[test]
fn names_are_what_the_fleets_promise() {
    let mix = Workload::new(&small(FleetSpec::Mix, 600)).unwrap();
    assert!(
        mix.catalog()
            .keys()
            .iter()
            .all(|key| key.name().len() == 27 && key.labels().is_empty())
    );
    let kstat = Workload::new(&small(FleetSpec::Kstat, 54_000)).unwrap();
    let zone = kstat
        .catalog()
        .keys()
        .iter()
        .find(|key| key.name().starts_with("cloud.zones.cpu.nwait."))
        .unwrap();
    assert_eq!(
        zone.name().len(),
        "cloud.zones.cpu.nwait.e2be6f6c-2005-4f2d-aff9-f427b9".len()
    );
    assert_eq!(kstat.groups().len(), 25);
    let labelled = WorkloadSpec {
        keys: KeyForm::Labels,
        ..small(FleetSpec::Kstat, 15_000)
    };
    let labelled = Workload::new(&labelled).unwrap();
    let zone = labelled
        .catalog()
        .keys()
        .iter()
        .find(|key| key.name() == "cloud.zones.cpu.nwait")
        .unwrap();
    assert_eq!(zone.label("zone").map(str::len), Some(30));
    assert_eq!(zone.label("host").map(str::len), Some(9));
    let heartbeat = Workload::new(&small(FleetSpec::Heartbeat, 1500)).unwrap();
    assert_eq!(heartbeat.groups().len(), 15);
    assert!(heartbeat.groups().iter().all(|group| group.phase_ns % SECOND_NS == 0));
    assert_eq!(
        Workload::new(&small(FleetSpec::Heartbeat, 400)).unwrap().groups().len(),
        10
    );
}

#[test]
fn the_mix_has_its_shares() {
    let workload = Workload::new(&small(FleetSpec::Mix, 54_000)).unwrap();
    let mut count = [0.0f64; 5];
    for &model in &workload.layout.model_of {
        count[usize::from(model)] += 1.0 / 540.0;
    }
    let close = count
        .iter()
        .zip([35.0, 20.0, 25.0, 15.0, 5.0])
        .all(|(a, b)| (a - b).abs() < 0.6);
    assert!(close, "{count:?}");
}

#[test]
fn a_plan_of_a_workload_survives_serialization() {
    let mut spec = small(
        FleetSpec::from_toml(FleetSpec::builtin_toml("mix").unwrap()).unwrap(),
        54,
    );
    spec.churn = Some(Churn {
        mode: ChurnMode::DoubleHalve {
            period_ns: 5 * SECOND_NS,
        },
        horizon_ns: 60 * SECOND_NS,
        unit: 9,
    });
    let json = serde_json::to_string(&spec).unwrap();
    assert_eq!(serde_json::from_str::<WorkloadSpec>(&json).unwrap(), spec);
    let sparse: WorkloadSpec = serde_json::from_str(r#"{"fleet": {"shape": "gauge_walk"}}"#).unwrap();
    assert_eq!(sparse, WorkloadSpec::new(FleetSpec::Shape(Shape::GaugeWalk), 0));
    let unknown = serde_json::from_str::<WorkloadSpec>(r#"{"fleet": "mix", "sereis": 5}"#).unwrap_err();
    assert!(unknown.to_string().contains("sereis"));
}

#[test]
fn errors_name_the_field() {
    let says = |spec: &WorkloadSpec, words: &str| {
        let error = Workload::new(spec).unwrap_err().to_string();
        assert!(error.contains(words), "{error:?} does not say {words:?}");
    };
    let good = small(FleetSpec::Mix, 54);
    says(
        &WorkloadSpec {
            series: Some(0),
            ..good.clone()
        },
        "series",
    );
    says(
        &WorkloadSpec {
            series: Some(1 << 40),
            ..good.clone()
        },
        "1099511627776 series",
    );
    says(
        &WorkloadSpec {
            interval_ns: Some(0),
            ..good.clone()
        },
        "interval_ns",
    );
    says(
        &WorkloadSpec {
            resolution_ns: 7,
            ..good.clone()
        },
        "resolution_ns",
    );
    let late = Disorder {
        late: 1.5,
        ..Disorder::default()
    };
    says(
        &WorkloadSpec {
            disorder: late,
            ..good.clone()
        },
        "disorder.late",
    );
    let jitter = Jitter {
        max_ns: SECOND_NS,
        step_ns: 1,
    };
    says(&WorkloadSpec { jitter, ..good.clone() }, "jitter.max_ns");
    let churn = Churn {
        mode: ChurnMode::Steady { lifetime_ns: 2 },
        horizon_ns: u64::MAX,
        unit: 1,
    };
    says(
        &WorkloadSpec {
            churn: Some(churn),
            ..good.clone()
        },
        "churn.horizon_ns",
    );
}

#[test]
fn errors_in_a_fleet_file_name_the_field() {
    let bad = |from: &str, to: &str, words: &str| {
        let text = FleetSpec::builtin_toml("mix").unwrap().replacen(from, to, 1);
        let error = FleetSpec::from_toml(&text).unwrap_err().to_string();
        assert!(error.contains(words), "{error:?} does not say {words:?}");
    };
    bad("share = 35", "shear = 35", "shear");
    bad("share = 35", "share = -1", "share");
    bad("every = 60", "every = 0", "law.every");
    bad("step = 100, high", "step = 0.5, high", "law.step");
    bad(
        "levels = 100",
        "levels = \"many\"",
        "expected a number, a list of numbers",
    );
    bad("{ from = 0, to = 999999 }", "{ from = 9, to = 1 }", "law.value");
    let twice = FleetSpec::builtin_toml("mix").unwrap().replace("{item}", "");
    let twice = small(FleetSpec::from_toml(&twice).unwrap(), 54);
    let error = Workload::new(&twice).unwrap_err().to_string();
    assert!(
        error.contains("two series are called \"host00000.system.value\""),
        "{error}"
    );
    assert!("mixx".parse::<FleetSpec>().unwrap_err().to_string().contains("kstat"));
    assert_eq!(
        "shape:near_constant".parse::<FleetSpec>().unwrap(),
        FleetSpec::Shape(Shape::NearConstant)
    );
}
