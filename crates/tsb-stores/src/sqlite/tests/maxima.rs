//! Maxima of summaries and chunks against the samples themselves, over many generations.

use std::collections::BTreeMap;

use super::*;
use crate::store::{Consolidation, Resample};

/// The distance of two ticks: an hour has 360, and a generation 20.
const TICK: i64 = 10 * SECOND;
const HOUR: i64 = 3600 * SECOND;
const SERIES: u32 = 10;

/// A generation of twenty ticks, each of which is committed without a sync.
fn options() -> SqliteOptions {
    SqliteOptions {
        commit: Commit::Every(TICK),
        synchronous: Synchronous::Normal,
        ..short()
    }
}

/// A cheap hash: the same numbers in every run.
fn mixed(index: u64) -> u64 {
    let mut x = index.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^ (x >> 31)
}

/// Each series has values of its own kind.
fn value(id: u32, tick: i64) -> f64 {
    let random = mixed(u64::from(id) << 32 | tick as u64);
    match id {
        0 => 7.0,
        1 => (tick * 10) as f64,
        2 => -((tick / 50) as f64),
        3 => (random % 1000) as f64 / 100.0,
        4 => f64::from_bits(random),
        5 => [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 1.0][(random % 6) as usize],
        6 => f64::NAN,
        7 if tick % 900 < 700 => f64::NAN,
        _ => (random % 16) as f64 - 8.0,
    }
}

/// How a tick is written.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Disorder {
    Nothing,
    /// Some samples are missing.
    Gaps,
    /// Each sample has a time of its own.
    Jitter,
    /// Some samples are written again, up to two generations later.
    Late,
}

fn write(store: &TickStore, number: i64, disorder: Disorder) {
    let put = |id: u32, at: i64, value: f64| {
        let batch = [value];
        let _ = store
            .write_all(&Batch::tick(SeriesId(id), Timestamp(at), &batch))
            .unwrap();
    };
    if disorder == Disorder::Nothing {
        let values: Vec<f64> = (0..SERIES).map(|id| value(id, number)).collect();
        let _ = store
            .write_all(&Batch::tick(SeriesId(0), Timestamp(number * TICK), &values))
            .unwrap();
        return;
    }
    for id in 0..SERIES {
        let random = mixed(u64::from(id) << 40 | number as u64);
        match disorder {
            Disorder::Gaps if random.is_multiple_of(3) => {}
            Disorder::Jitter => put(
                id,
                number * TICK + (random % 5_000) as i64 * 1_000_000,
                value(id, number),
            ),
            Disorder::Late if random.is_multiple_of(40) => {
                put(id, number * TICK, value(id, number));
                put(
                    id,
                    (number - (random >> 20) as i64 % 50) * TICK + 1,
                    value(id, number + 1),
                );
                put(id, (number - (random >> 30) as i64 % 50) * TICK, value(id, number + 2));
            }
            _ => put(id, number * TICK, value(id, number)),
        }
    }
}

/// The maxima per step of a series, computed from its samples.
fn naive(store: &TickStore, id: u32, range: TimeRange, step_ns: i64) -> Vec<(i64, f64)> {
    let mut steps: BTreeMap<i64, f64> = BTreeMap::new();
    for (at, value) in store.samples(SeriesId(id), range).unwrap() {
        let most = steps.entry(at.0 - at.0.rem_euclid(step_ns)).or_insert(f64::NAN);
        *most = most.max(value);
    }
    steps.into_iter().collect()
}

fn maxima(store: &TickStore, id: u32, range: TimeRange, step_ns: i64) -> Vec<(i64, f64)> {
    let resample = Resample {
        step_ns,
        consolidation: Consolidation::Max,
    };
    let rows = store.rows(SeriesId(id), range, Some(resample)).unwrap();
    rows.into_iter().map(|(at, value)| (at.0, value)).collect()
}

/// Equal, any NaN being like any other.
fn same(left: &[(i64, f64)], right: &[(i64, f64)]) -> bool {
    let same = |(left, right): (&(i64, f64), &(i64, f64))| {
        left.0 == right.0 && (left.1 == right.1 || (left.1.is_nan() && right.1.is_nan()))
    };
    left.len() == right.len() && left.iter().zip(right).all(same)
}

fn check_all(store: &TickStore, newest: i64, when: &str) {
    let range = |from: i64, to: i64| TimeRange {
        start: Timestamp(from),
        end: Timestamp(to),
    };
    let end = newest * TICK;
    let ranges = [
        TimeRange::ALL,
        range(HOUR, 4 * HOUR),
        range(HOUR / 2 + 1, end - 3 * TICK),
        range(end - HOUR, end + 1),
        range(17 * TICK, 18 * TICK),
    ];
    for id in 0..SERIES {
        for range in ranges {
            for step_ns in [60 * SECOND, 20 * 60 * SECOND, HOUR, HOUR + 1, 24 * HOUR, i64::MAX / 2] {
                let (found, expected) = (maxima(store, id, range, step_ns), naive(store, id, range, step_ns));
                assert!(
                    same(&found, &expected),
                    "series {id}, {range:?}, step {step_ns}, {when}: {found:?} for {expected:?}"
                );
            }
        }
    }
}

fn count(folder: &TempDir, sql: &str) -> i64 {
    let reader = rusqlite::Connection::open(folder.path().join("x.db")).unwrap();
    reader.query_row(sql, [], |row| row.get(0)).unwrap()
}

fn change(folder: &TempDir, sql: &str) {
    let writer = rusqlite::Connection::open(folder.path().join("x.db")).unwrap();
    writer.execute_batch(sql).unwrap();
    writer.close().unwrap();
}

#[test]
fn maxima_are_those_of_the_samples_whatever_the_order_and_the_openings() {
    for disorder in [Disorder::Nothing, Disorder::Gaps, Disorder::Jitter, Disorder::Late] {
        let folder = tempfile::tempdir().unwrap();
        let mut number = 100;
        for opening in 0..3 {
            let store = ticks(&folder, options());
            for _ in 0..333 + 7 * opening {
                write(&store, number, disorder);
                number += 1;
            }
            check_all(&store, number, &format!("{disorder:?}, opening {opening}"));
            store.close().unwrap();
        }
        let summaries = count(&folder, "SELECT count(*) FROM summary");
        let chunks = count(&folder, "SELECT count(*) FROM chunk");
        // What lies over an older generation has none.
        let expected = if disorder == Disorder::Late { 0 } else { 30 };
        assert!(
            summaries >= expected,
            "{disorder:?}: {summaries} summaries of {chunks} chunks"
        );
    }
}

#[test]
fn a_summary_stands_for_its_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let store = ticks(&folder, options());
    (0..500).for_each(|number| write(&store, number, Disorder::Nothing));
    let hours = |store: &TickStore, id| maxima(store, id, TimeRange::ALL, HOUR);
    let expected: Vec<_> = [0, 1, 2, 3].map(|id| hours(&store, id)).into();
    store.close().unwrap();
    // Without these chunks only summaries can tell; they are for generations 8 to 15.
    change(&folder, "DELETE FROM chunk WHERE key >> 32 BETWEEN 9 AND 14");
    let store = ticks(&folder, options());
    for (id, expected) in (0..).zip(&expected) {
        assert_eq!(&hours(&store, id), expected, "series {id}");
        assert!(maxima(&store, id, TimeRange::ALL, 60 * SECOND).len() < 500 / 6 - 10);
    }
    store.close().unwrap();
    change(
        &folder,
        "UPDATE summary SET data = (SELECT data FROM summary WHERE key = 15 << 32) WHERE key >> 32 = 15",
    );
    let store = ticks(&folder, options());
    assert_eq!(hours(&store, 0), expected[0]);
    let resample = Resample {
        step_ns: HOUR,
        consolidation: Consolidation::Max,
    };
    let error = store.rows(SeriesId(1), TimeRange::ALL, Some(resample)).unwrap_err();
    assert!(
        matches!(&error, Error::Corrupt { what, .. } if what.contains("checksum of a summary")),
        "{error:?}"
    );
    store.close().unwrap();
}

#[test]
fn a_file_without_summaries_is_read_and_gets_them() {
    let folder = tempfile::tempdir().unwrap();
    let store = ticks(&folder, options());
    (0..400).for_each(|number| write(&store, number, Disorder::Nothing));
    store.close().unwrap();
    // As an earlier version would have left it.
    change(&folder, "DROP TABLE summary");
    let store = ticks(&folder, options());
    check_all(&store, 400, "without summaries");
    (400..800).for_each(|number| write(&store, number, Disorder::Nothing));
    check_all(&store, 800, "with some");
    store.close().unwrap();
    assert!(count(&folder, "SELECT count(*) FROM summary") > 0);
}

#[test]
fn summaries_are_dropped_with_their_last_generation() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions {
        retention_ns: Some(60 * TICK),
        ..options()
    };
    let store = ticks(&folder, options);
    for number in 0..1500 {
        write(&store, number, Disorder::Nothing);
        if number % 50 == 49 {
            check_all(&store, number, "with a retention");
        }
    }
    store.close().unwrap();
    let oldest = count(&folder, "SELECT min(number) FROM generation");
    assert!(oldest > 40, "{oldest}");
    assert_eq!(
        count(
            &folder,
            &format!("SELECT count(*) FROM summary WHERE key < {oldest} << 32")
        ),
        0
    );
}
