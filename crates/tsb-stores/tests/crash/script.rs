//! The writes of a test, each a function of its number, and what must be there after so many.

use std::collections::BTreeMap;
use std::path::Path;

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_stores::sqlite::{Commit, SqliteOptions, Synchronous, TickStore};
use tsb_stores::{Error, Store, StoreExt, TimeRange};

pub(crate) const SERIES: u32 = 24;
const SECOND: i64 = 1_000_000_000;

pub(crate) type Contents = BTreeMap<(u32, i64), u64>;

/// Options with which the head is rotated all the time.
pub(crate) fn options(commit: &str, synchronous: &str) -> SqliteOptions {
    SqliteOptions {
        commit: match commit {
            "each" => Commit::Each,
            "100ms" => Commit::Every(100_000_000),
            _ => Commit::Every(SECOND),
        },
        synchronous: if synchronous == "full" {
            Synchronous::Full
        } else {
            Synchronous::Normal
        },
        tail: 13,
        checkpoint_bytes: 64 << 10,
        ..SqliteOptions::default()
    }
}

pub(crate) fn open(path: &Path, options: SqliteOptions) -> Result<TickStore, Error> {
    let store = TickStore::open(path, options)?;
    let keys = (0..SERIES).map(|id| (SeriesId(id), SeriesKey::new(format!("crash.{id}"))));
    store.define(&keys.collect::<Vec<_>>())?;
    Ok(store)
}

fn mixed(number: u64) -> u64 {
    let x = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (x ^ x >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 20
}

/// A write: the first series, when, and the values.
fn write(number: u64) -> (u32, i64, Vec<f64>) {
    let value = |series: u32| match series % 4 {
        0 => 7.0,
        1 => (number * u64::from(series)) as f64,
        2 => (mixed(number + u64::from(series)) % 1000) as f64 / 100.0,
        _ => f64::from_bits(mixed(number ^ u64::from(series) << 40) << 12 >> 2),
    };
    // Four to a second; some are late, and write again what was written before.
    let at = if number % 9 == 8 {
        number / 4 - mixed(number) % (number / 4 + 1) % 40
    } else {
        number / 4
    };
    let first = if number % 9 == 8 {
        mixed(number) as u32 % SERIES
    } else {
        (number % 4) as u32 * (SERIES / 4)
    };
    let count = (SERIES / 4).min(SERIES - first);
    (first, at as i64 * SECOND, (first..first + count).map(value).collect())
}

/// Performs a write, in the store.
pub(crate) fn perform(store: &TickStore, number: u64) -> Result<(), Error> {
    let (first, at, values) = write(number);
    store
        .write_all(&Batch::tick(SeriesId(first), Timestamp(at), &values))
        .map(drop)
}

/// How many writes are durable, of those from `from` to before `to`, which are all that the
/// store has taken since it was opened, and those before them.
pub(crate) fn durable_writes(store: &TickStore, from: u64, to: u64, level: Durability) -> u64 {
    let covered = store.durable(level).0;
    let mut samples = 0;
    for number in from..to {
        samples += write(number).2.len() as u64;
        if samples > covered {
            return number;
        }
    }
    to
}

/// Performs a write, in what must be there.
fn apply(contents: &mut Contents, number: u64) {
    let (first, at, values) = write(number);
    for (series, value) in (first..).zip(values) {
        contents.insert((series, at), value.to_bits());
    }
}

/// Everything that a store holds.
pub(crate) fn read(store: &TickStore) -> Result<Contents, Error> {
    let mut contents = Contents::new();
    for series in 0..SERIES {
        for (at, value) in store.samples(SeriesId(series), TimeRange::ALL)? {
            contents.insert((series, at.0), value.to_bits());
        }
    }
    let samples = store.stats().samples;
    assert_eq!(samples, contents.len() as u64, "the statistics count what is there");
    Ok(contents)
}

/// How many writes a store holds: all of the first so many, and nothing else. At least
/// `synced`, at most `begun`.
pub(crate) fn whole_writes(contents: &Contents, synced: u64, begun: u64) -> Result<u64, String> {
    let mut expected = Contents::new();
    (0..synced).for_each(|number| apply(&mut expected, number));
    for number in synced..=begun {
        if *contents == expected {
            return Ok(number);
        }
        apply(&mut expected, number);
    }
    let mut floor = Contents::new();
    (0..synced).for_each(|number| apply(&mut floor, number));
    let lost = floor.iter().filter(|(place, value)| contents.get(place) != Some(value));
    let lost: Vec<String> = lost
        .map(|((series, at), _)| format!("series {series} at {at}"))
        .take(5)
        .collect();
    Err(format!(
        "it holds {} samples, which are not the first {synced} to {begun} writes; different of the first {synced}: {lost:?}",
        contents.len()
    ))
}
