//! Files that an earlier version wrote are read by this one: a file of SQLite in each
//! layout, and the folder of a journal that nobody had time to empty.
//!
//! `fixtures/formats` has them under the number of their format. A format that changes gets
//! a number, and files, of its own; the old ones stay. Run with `TSB_BLESS=1` to write those
//! that are missing.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tsb_core::time::ManualClock;
use tsb_core::{Batch, Durability, Ids, SeriesId, SeriesKey, Times, Timestamp};
use tsb_run::spec::open;
use tsb_stores::write_cache::{JournalOptions, SyncPolicy, WriteCache, WriteCacheOptions};
use tsb_stores::{Scope, Store, StoreExt, TimeRange};

const SERIES: u32 = 3;
const TICKS: i64 = 100;
const START_S: i64 = 1_700_000_000;

/// A count, a price with two decimals, and what has neither pattern nor end.
fn value(id: u32, tick: i64) -> f64 {
    match id {
        0 => (tick * tick) as f64,
        1 => (5_000 + (tick * 37) % 211) as f64 / 100.0,
        _ => (tick as f64 + 1.5).sqrt(),
    }
}

fn at(tick: i64) -> Timestamp {
    Timestamp::from_secs(START_S + tick)
}

fn define(store: &dyn Store) {
    let keys = (0..SERIES).map(|id| (SeriesId(id), SeriesKey::new(format!("format.{id}"))));
    store.define(&keys.collect::<Vec<_>>()).unwrap();
}

/// Whole ticks, the second series with a gap of ten, and one sample by itself before them.
fn fill(store: &dyn Store) {
    define(store);
    let write = |ids: &[SeriesId], tick: i64| {
        let values: Vec<f64> = ids.iter().map(|id| value(id.0, tick)).collect();
        let batch = Batch::new(Ids::Each(ids), Times::One(at(tick)), &values);
        assert_eq!(store.write_all(&batch).unwrap().accepted, ids.len());
    };
    write(&[SeriesId(2)], -1);
    for tick in 0..TICKS {
        let ids: Vec<SeriesId> = (0..SERIES).filter(|&id| has(id, tick)).map(SeriesId).collect();
        write(&ids, tick);
    }
}

fn has(id: u32, tick: i64) -> bool {
    if tick < 0 {
        id == 2
    } else {
        id != 1 || !(40..50).contains(&tick)
    }
}

fn assert_whole(store: &dyn Store, label: &str) {
    define(store);
    for id in 0..SERIES {
        let ticks = (-1..TICKS).filter(|&tick| has(id, tick));
        let expected: Vec<(Timestamp, f64)> = ticks.map(|tick| (at(tick), value(id, tick))).collect();
        let found = store.samples(SeriesId(id), TimeRange::ALL).unwrap();
        assert_eq!(found.len(), expected.len(), "{label}: series {id}");
        for (found, (time, value)) in found.iter().zip(expected) {
            let kept = if label.contains("mohawk") {
                (value * 1e6).round() / 1e6
            } else {
                value
            };
            assert_eq!(found, &(time, kept), "{label}: series {id}");
        }
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures/formats")
        .join(name)
}

fn is_wanted(name: &str) -> bool {
    std::env::var_os("TSB_BLESS").is_some() && !fixture(name).exists()
}

/// Small parts, so that a file of a hundred ticks has all that a long one has.
const LAYOUTS: [(&str, &str); 3] = [
    ("sqlite-1-ticks.db", "layout=ticks&tail=16"),
    ("sqlite-1-rows.db", "layout=rows"),
    ("sqlite-1-mohawk.db", "layout=mohawk"),
];

#[test]
fn a_file_of_sqlite_is_read() {
    for (name, options) in LAYOUTS {
        if is_wanted(name) {
            let store = open(&format!("sqlite:{}?{options}", fixture(name).display())).unwrap();
            fill(&*store);
            store.close().unwrap();
        }
        let folder = tempfile::tempdir().unwrap();
        let copy = folder.path().join(name);
        fs::copy(fixture(name), &copy).unwrap();
        let spec = format!("sqlite:{}?{options}", copy.display());
        let store = open(&spec).unwrap();
        assert_whole(&*store, name);
        // It is no museum: it takes more, and gives all of it back.
        let more = [value(0, TICKS)];
        let ack = store.write_all(&Batch::tick(SeriesId(0), at(TICKS), &more));
        assert_eq!(ack.unwrap().accepted, 1, "{name}");
        store.close().unwrap();
        let again = open(&spec).unwrap();
        define(&*again);
        let range = TimeRange {
            start: at(TICKS),
            end: Timestamp::MAX,
        };
        assert_eq!(
            again.samples(SeriesId(0), range).unwrap(),
            [(at(TICKS), value(0, TICKS))],
            "{name}"
        );
    }
}

fn cache(journal: &Path, store: &Path) -> WriteCache<Box<dyn Store>> {
    let options = WriteCacheOptions {
        journal: Some(JournalOptions {
            segment_bytes: 4_096,
            ..JournalOptions::new(journal, SyncPolicy::None)
        }),
        ..WriteCacheOptions::default()
    };
    let inner = open(&format!("sqlite:{}", store.display())).unwrap();
    WriteCache::new(inner, &options, Arc::new(ManualClock::new())).unwrap()
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// The journal that is written, and those of earlier versions.
const JOURNALS: [&str; 2] = ["journal-1", "journal-2"];

#[test]
fn a_journal_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let newest = JOURNALS[JOURNALS.len() - 1];
    if is_wanted(newest) {
        let written = folder.path().join("written");
        let cache = cache(&written, &folder.path().join("first.db"));
        fill(&cache);
        // As a kill would leave it: closing would settle all of it.
        copy_folder(&written, &fixture(newest));
    }
    for name in JOURNALS {
        let copy = folder.path().join(name);
        copy_folder(&fixture(name), &copy);
        assert!(fs::read_dir(&copy).unwrap().count() > 1, "more than one segment");
        let cache = cache(&copy, &folder.path().join(format!("{name}.db")));
        define(&cache);
        cache.flush(Scope::All, Durability::Volatile).unwrap();
        assert_eq!((cache.torn_bytes(), cache.stats().damage), (0, Vec::new()));
        assert_whole(&cache, name);
    }
}
