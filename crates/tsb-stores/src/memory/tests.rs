//! The store against a naive model: a sorted map a series.

mod model;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use tsb_core::Times;

use super::*;
use crate::store::{Consolidation, Reason, Resample, StoreExt, TimeRange};
use model::{NaiveModel, mixed};

const SECOND: i64 = 1_000_000_000;

fn key(id: u32) -> (SeriesId, SeriesKey) {
    (SeriesId(id), SeriesKey::new(format!("series.{id}")))
}

fn store(options: MemoryOptions, rows: usize, series: u32) -> MemoryStore {
    let store = MemoryStore::with_max_rows(options, rows);
    store.define(&(0..series).map(key).collect::<Vec<_>>()).unwrap();
    store
}

/// What a writer does to some of its series for some ticks.
#[derive(Clone, Debug)]
struct Phase {
    first: u32,
    len: u32,
    ticks: u32,
    shape: Shape,
    step: i64,
    values: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Ticks,
    Shuffled,
    Jittered,
    SomeMissing,
    LateAndDuplicate,
    Backwards,
    Singles,
    SomeTimes,
}

const SERIES: u32 = 40;

fn phase() -> impl Strategy<Value = Phase> {
    let shapes = prop::sample::select(vec![
        Shape::Ticks,
        Shape::Ticks,
        Shape::Shuffled,
        Shape::Jittered,
        Shape::SomeMissing,
        Shape::LateAndDuplicate,
        Shape::Backwards,
        Shape::Singles,
        Shape::SomeTimes,
    ]);
    let step = prop::sample::select(vec![SECOND, SECOND, 10 * SECOND, 1, 7_777, -20 * SECOND, 0, 1 << 40]);
    (0..SERIES, 1..=SERIES, 1u32..40, shapes, step, any::<u8>()).prop_map(|(first, len, ticks, shape, step, values)| {
        Phase {
            first,
            len: len.min(SERIES - first),
            ticks,
            shape,
            step,
            values,
        }
    })
}

/// Values of a kind that a phase picks.
fn value(kind: u8, id: u32, tick: u64) -> f64 {
    let random = mixed(u64::from(id) << 32 | tick);
    match kind % 8 {
        0 => f64::from(id),
        1 => (tick / 7) as f64,
        2 => (random % 1000) as f64 / 100.0,
        3 => f64::from_bits(random),
        4 => [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1.0][(random % 6) as usize],
        5 => 1e9 + (tick * 1000 + random % 100) as f64,
        6 if random.is_multiple_of(20) => -f64::NAN,
        _ => (random % 16) as f64,
    }
}

/// One tick of a phase as columns.
fn columns(phase: &Phase, tick: u32, now: i64) -> (Vec<SeriesId>, Vec<Timestamp>, Vec<f64>) {
    let mut samples: Vec<(u32, i64)> = Vec::new();
    for id in phase.first..phase.first + phase.len {
        let random = mixed(u64::from(id) << 20 | u64::from(tick));
        match phase.shape {
            Shape::Jittered => samples.push((id, now + (random % 1000) as i64 * 1_000_000)),
            Shape::SomeTimes => samples.push((id, now + i64::from(id / 9))),
            Shape::SomeMissing if random.is_multiple_of(5) => {}
            Shape::SomeMissing | Shape::Ticks | Shape::Shuffled | Shape::Backwards | Shape::Singles => {
                samples.push((id, now));
            }
            Shape::LateAndDuplicate => {
                let late = if random.is_multiple_of(10) {
                    now - (random % 50) as i64 * phase.step
                } else {
                    now
                };
                samples.push((id, late));
                if random.is_multiple_of(7) {
                    samples.push((id, late));
                }
            }
        }
    }
    match phase.shape {
        Shape::Shuffled => samples.sort_by_key(|(id, _)| mixed(u64::from(*id) + u64::from(tick))),
        Shape::Backwards => samples.reverse(),
        _ => {}
    }
    let ids = samples.iter().map(|(id, _)| SeriesId(*id)).collect();
    let times = samples.iter().map(|(_, at)| Timestamp(*at)).collect();
    let kinds = samples.iter().enumerate();
    let values = kinds
        .map(|(index, (id, _))| value(phase.values, *id, u64::from(tick) * 64 + index as u64 % 2))
        .collect();
    (ids, times, values)
}

/// Writes one tick in the shape that its phase asks for, to the store and the model.
fn write_tick(store: &MemoryStore, model: &mut NaiveModel, phase: &Phase, tick: u32, now: i64) {
    let (ids, times, values) = columns(phase, tick, now);
    let mut refused = Refusals::new();
    let mut write = |batch: &Batch<'_>| {
        refused.clear();
        let ack = store.write(batch, &mut refused).unwrap();
        assert_eq!(ack.accepted + ack.rejected, batch.len());
        assert_eq!(ack.rejected, refused.len());
        model.write(batch, &refused);
    };
    match phase.shape {
        Shape::Ticks => write(&Batch::tick(SeriesId(phase.first), Timestamp(now), &values)),
        Shape::Shuffled | Shape::Backwards | Shape::SomeMissing => {
            write(&Batch::new(Ids::Each(&ids), Times::One(Timestamp(now)), &values));
        }
        Shape::Singles => {
            for (index, id) in ids.iter().enumerate() {
                write(&Batch::tick(*id, times[index], &values[index..=index]));
            }
        }
        Shape::SomeTimes => write(&Batch::new(
            Ids::Range(SeriesId(phase.first)),
            Times::Each(&times),
            &values,
        )),
        Shape::Jittered | Shape::LateAndDuplicate => {
            write(&Batch::new(Ids::Each(&ids), Times::Each(&times), &values));
        }
    }
}

fn play(store: &MemoryStore, model: &mut NaiveModel, phases: &[Phase]) {
    let mut now = 1_700_000_000 * SECOND;
    for phase in phases {
        for tick in 0..phase.ticks {
            write_tick(store, model, phase, tick, now);
            now += phase.step;
        }
    }
}

/// Every series, raw and by every consolidation, whole and in part, and the counts.
fn check(store: &MemoryStore, model: &NaiveModel) {
    model.check_raw(store, TimeRange::ALL);
    model.check_newest(store);
    let (low, high) = model.span();
    let part = TimeRange {
        start: Timestamp(low + (high - low) / 3),
        end: Timestamp(low + (high - low) / 3 * 2 + 1),
    };
    model.check_raw(store, part);
    for step_ns in [SECOND * 60, SECOND * 1000, SECOND * 3600, 1 << 40, SECOND * 86_400] {
        for consolidation in model::CONSOLIDATIONS {
            let resample = Resample { step_ns, consolidation };
            if (high - low) / step_ns < 100_000 {
                model.check_resampled(store, TimeRange::ALL, resample);
                model.check_resampled(store, part, resample);
            }
        }
    }
    model.check_stats(&store.stats());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn written_samples_are_read_back(phases in prop::collection::vec(phase(), 1..10), rows in prop::sample::select(vec![4usize, 16, 64])) {
        let store = store(MemoryOptions::default(), rows, SERIES);
        let mut model = NaiveModel::new(SERIES, None);
        play(&store, &mut model, &phases);
        check(&store, &model);
    }

    #[test]
    fn retention_expires_exactly_what_is_too_old(phases in prop::collection::vec(phase(), 1..8), retention in prop::sample::select(vec![0i64, 30 * SECOND, 300 * SECOND])) {
        let options = MemoryOptions { retention_ns: Some(retention), ..MemoryOptions::default() };
        let store = store(options, 16, SERIES);
        let mut model = NaiveModel::new(SERIES, Some(retention));
        play(&store, &mut model, &phases);
        check(&store, &model);
    }

    #[test]
    fn a_full_store_refuses_and_keeps_the_rest(phases in prop::collection::vec(phase(), 1..8), max in 60_000u64..400_000) {
        let options = MemoryOptions { max_bytes: Some(max), ..MemoryOptions::default() };
        let store = store(options, 16, SERIES);
        let mut model = NaiveModel::new(SERIES, None);
        play(&store, &mut model, &phases);
        check(&store, &model);
        let footprint = store.stats().footprint;
        prop_assert!(footprint.sealed_bytes + footprint.head_bytes <= max, "{footprint:?} within {max}");
    }
}

#[test]
fn a_tick_of_a_fleet_is_sealed_and_read_back() {
    let store = store(MemoryOptions::default(), 256, 1000);
    let mut model = NaiveModel::new(1000, None);
    let phase = Phase {
        first: 0,
        len: 1000,
        ticks: 700,
        shape: Shape::Ticks,
        step: SECOND,
        values: 5,
    };
    play(&store, &mut model, &[phase]);
    check(&store, &model);
    let stats = store.stats();
    assert!(stats.footprint.sealed_samples > 400_000, "{stats:?}");
    assert!(stats.footprint.sealed_bytes < stats.footprint.sealed_samples * 2);
}

/// Some hours of samples: their maxima come from spans, from blocks and from samples.
#[test]
fn maxima_of_hours_are_those_of_the_samples() {
    for (shape, step) in [
        (Shape::Ticks, 10 * SECOND),
        (Shape::SomeMissing, 10 * SECOND),
        (Shape::Jittered, 10 * SECOND),
        (Shape::LateAndDuplicate, 10 * SECOND),
        (Shape::Ticks, 120 * SECOND),
    ] {
        for retention_ns in [None, Some(5_000 * SECOND)] {
            let options = MemoryOptions {
                retention_ns,
                ..MemoryOptions::default()
            };
            let store = store(options, 16, SERIES);
            let mut model = NaiveModel::new(SERIES, retention_ns);
            let phases = (0..8).map(|values| Phase {
                first: 0,
                len: SERIES,
                ticks: 150,
                shape,
                step,
                values,
            });
            play(&store, &mut model, &phases.collect::<Vec<_>>());
            check(&store, &model);
        }
    }
}

#[test]
fn an_undefined_id_leaves_nothing_applied() {
    let store = store(MemoryOptions::default(), 16, 4);
    let values = [1.0; 5];
    let ids = [0, 1, 9].map(SeriesId);
    let mut refused = Refusals::new();
    for batch in [
        Batch::tick(SeriesId(0), Timestamp(1), &values),
        Batch::new(Ids::Each(&ids), Times::One(Timestamp(1)), &values[..3]),
        Batch::tick(SeriesId(u32::MAX), Timestamp(1), &values),
    ] {
        assert!(
            matches!(store.write(&batch, &mut refused), Err(Error::UnknownSeries { .. })),
            "{batch:?}"
        );
    }
    assert_eq!(store.stats().samples, 0);
    assert_eq!(store.samples(SeriesId(0), TimeRange::ALL).unwrap(), []);
    assert!(matches!(
        store.samples(SeriesId(9), TimeRange::ALL),
        Err(Error::UnknownSeries { .. })
    ));
}

#[test]
fn the_ends_of_time_are_timestamps_like_any_other() {
    let store = store(MemoryOptions::default(), 4, 1);
    let mut model = NaiveModel::new(1, None);
    let times = [
        i64::MIN,
        i64::MIN + 1,
        -1,
        0,
        1,
        i64::MAX - 1,
        i64::MAX,
        5,
        i64::MIN,
        i64::MAX - 2,
        -7,
        12,
        13,
    ];
    for (index, at) in times.iter().enumerate() {
        let values = [index as f64];
        let batch = Batch::tick(SeriesId(0), Timestamp(*at), &values);
        let _ = store.write_all(&batch).unwrap();
        model.write(&batch, &Refusals::new());
    }
    model.check_raw(&store, TimeRange::ALL);
    model.check_newest(&store);
    assert_eq!(store.stats().superseded, 1);
}

#[test]
fn a_store_states_its_capabilities_and_refuses_calls_once_closed() {
    let options = MemoryOptions {
        retention_ns: Some(5),
        max_bytes: Some(1 << 20),
        max_series: Some(2),
    };
    let store = MemoryStore::new(options);
    assert_eq!(
        store.to_string(),
        "memory(retention=5ns, max_bytes=1048576, max_series=2)"
    );
    assert_eq!(MemoryStore::new(MemoryOptions::default()).to_string(), "memory");
    assert!(matches!(
        store.define(&[key(0), key(1), key(2)]),
        Err(Error::TooManySeries { limit: 2 })
    ));
    assert_eq!(store.stats().series, 0);
    store.define(&[key(0)]).unwrap();
    assert!(matches!(
        store.flush(Scope::All, Durability::Buffered),
        Err(Error::Unsupported { .. })
    ));
    store.flush(Scope::All, Durability::Volatile).unwrap();
    store.close().unwrap();
    store.close().unwrap();
    assert!(matches!(store.define(&[key(1)]), Err(Error::Closed)));
    assert!(matches!(
        store.write_all(&Batch::tick(SeriesId(0), Timestamp(1), &[1.0])),
        Err(Error::Closed)
    ));
    assert!(matches!(store.samples(SeriesId(0), TimeRange::ALL), Err(Error::Closed)));
    assert!(matches!(store.newest(&[SeriesId(0)], &mut [None]), Err(Error::Closed)));
    assert!(matches!(
        store.flush(Scope::All, Durability::Volatile),
        Err(Error::Closed)
    ));
}

#[test]
fn a_full_store_names_each_refused_sample_and_takes_again_when_retention_makes_room() {
    let options = MemoryOptions {
        max_bytes: Some(200_000),
        retention_ns: Some(100 * SECOND),
        ..MemoryOptions::default()
    };
    let store = store(options, 16, 16);
    let mut refused = Refusals::new();
    let mut late = 0;
    for tick in 0..2000 {
        let values: Vec<f64> = (0..16).map(|id| f64::from_bits(mixed(tick * 16 + id))).collect();
        let batch = Batch::tick(SeriesId(0), Timestamp(tick as i64 * SECOND), &values);
        let before = refused.len();
        let ack = store.write(&batch, &mut refused).unwrap();
        assert_eq!(ack.rejected, refused.len() - before);
        if tick > 1000 {
            late += ack.accepted;
        }
    }
    let reasons: HashSet<Reason> = refused.as_slice().iter().map(|refusal| refusal.reason).collect();
    assert!(reasons.iter().all(|reason| *reason == Reason::Full), "{reasons:?}");
    assert!(late > 0, "retention made room");
    let stats = store.stats();
    assert_eq!(stats.accepted + refused.len() as u64, 2000 * 16);
    assert_eq!(stats.samples + stats.superseded + stats.expired, stats.accepted);
    assert!(
        stats.footprint.sealed_bytes + stats.footprint.head_bytes <= 200_000,
        "{stats:?}"
    );
}

#[test]
fn an_idle_tile_frees_its_memory() {
    let options = MemoryOptions {
        retention_ns: Some(10 * SECOND),
        ..MemoryOptions::default()
    };
    let store = store(options, 256, 64);
    let values = [1.5; 32];
    for tick in 0..100 {
        let _ = store
            .write_all(&Batch::tick(SeriesId(0), Timestamp(tick * SECOND), &values))
            .unwrap();
    }
    for tick in 100..300 {
        let _ = store
            .write_all(&Batch::tick(SeriesId(32), Timestamp(tick * SECOND), &values))
            .unwrap();
    }
    let silent = store.shared.directory.extent_of(0).unwrap().lock().unwrap()[0].occupied();
    assert_eq!((silent.head_bytes, silent.sealed_samples), (0, 0));
    let stats = store.stats();
    assert_eq!(stats.samples, 11 * 32);
    assert_eq!(stats.expired, 289 * 32);
    let _ = store
        .write_all(&Batch::tick(SeriesId(0), Timestamp(300 * SECOND), &values))
        .unwrap();
    assert_eq!(
        store.samples(SeriesId(5), TimeRange::ALL).unwrap(),
        [(Timestamp(300 * SECOND), 1.5)]
    );
}

#[test]
fn heads_stay_bounded_for_a_million_series() {
    for (series, rows) in [
        (1, 256),
        (54_000, 256),
        (131_072, 256),
        (200_000, 128),
        (400_000, 64),
        (1_000_000, 32),
    ] {
        assert_eq!(rows_for(series), rows, "{series} series");
        assert!(rows_for(series) * series * size_of::<f64>() <= HEAD_BYTES);
    }
}

#[test]
fn writers_and_readers_at_once_lose_nothing() {
    const WRITERS: u32 = 3;
    const EACH: u32 = 50;
    const TICKS: i64 = 600;
    let store = store(MemoryOptions::default(), 32, WRITERS * EACH);
    let running = AtomicBool::new(true);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut seen = 0;
            while running.load(Ordering::Acquire) {
                for id in 0..WRITERS * EACH {
                    let samples = store.samples(SeriesId(id), TimeRange::ALL).unwrap();
                    for (index, (at, value)) in samples.iter().enumerate() {
                        assert_eq!(at.0, index as i64 * SECOND, "no gap, whatever is being sealed");
                        assert_eq!(*value, f64::from(id) + index as f64);
                    }
                    seen += samples.len();
                }
            }
            seen
        });
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let store = &store;
                scope.spawn(move || {
                    for tick in 0..TICKS {
                        let values: Vec<f64> = (0..EACH)
                            .map(|id| f64::from(writer * EACH + id) + tick as f64)
                            .collect();
                        let batch = Batch::tick(SeriesId(writer * EACH), Timestamp(tick * SECOND), &values);
                        let _ = store.write_all(&batch).unwrap();
                    }
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
        running.store(false, Ordering::Release);
        reader.join().unwrap();
    });
    let stats = store.stats();
    assert_eq!(stats.samples, u64::from(WRITERS * EACH) * TICKS as u64);
    for id in 0..WRITERS * EACH {
        let resample = Resample {
            step_ns: 60 * SECOND,
            consolidation: Consolidation::Count,
        };
        let rows = store.rows(SeriesId(id), TimeRange::ALL, Some(resample)).unwrap();
        assert_eq!(rows.iter().map(|(_, count)| count).sum::<f64>(), TICKS as f64);
    }
}
