//! What a store uses besides the calls that are made to it: threads of its own, and blocks
//! of its files.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_run::spec;
use tsb_stores::{Scope, Stats, Store, StoreExt};

const SERIES: u32 = 64;
const TICKS: i64 = 600;

/// What a store says after ten minutes of some series, and the blocks of what is in `folders`.
fn filled(spec: &str, folders: &[&Path]) -> (Stats, u64) {
    let store = spec::open(spec).unwrap();
    let keys = (0..SERIES).map(|id| (SeriesId(id), SeriesKey::new(format!("series{id}"))));
    store.define(&keys.collect::<Vec<_>>()).unwrap();
    for tick in 0..TICKS {
        let values: Vec<f64> = (0..SERIES).map(|id| f64::from(id) * 1.5 + tick as f64).collect();
        let batch = Batch::tick(SeriesId(0), Timestamp::from_secs(1_700_000_000 + tick), &values);
        let ack = store.write_all(&batch).unwrap();
        assert_eq!(ack.rejected, 0);
    }
    store.flush(Scope::All, store.capabilities().reaches).unwrap();
    let stats = store.stats();
    let blocks = folders.iter().map(|folder| blocks_below(folder)).sum();
    store.close().unwrap();
    (stats, blocks)
}

fn blocks_below(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    files.map(|file| file.metadata().unwrap().blocks() * 512).sum()
}

#[test]
fn a_store_in_memory_has_neither_files_nor_threads() {
    let (stats, _) = filled("memory:", &[]);
    assert_eq!((stats.disk_bytes, stats.own_cpu_ns), (None, None));
}

#[test]
fn files_are_stated_in_blocks_and_not_in_lengths() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("rrd");
    let (stats, blocks) = filled(&format!("rrd:{}", place.display()), &[&place]);
    assert_eq!(stats.disk_bytes, Some(blocks));
    assert!(stats.disk_bytes > Some(stats.footprint.sealed_bytes / 2), "{stats:?}");
    assert_eq!(stats.own_cpu_ns, None);
}

#[test]
fn threads_that_write_behind_a_cache_are_charged_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let (place, journal) = (folder.path().join("rrd"), folder.path().join("journal"));
    let spec = format!(
        "write-cache+rrd:{}?write-cache.timeout=1s&write-cache.journal={}&write-cache.sync=none",
        place.display(),
        journal.display()
    );
    let (stats, blocks) = filled(&spec, &[&place, &journal]);
    assert!(stats.own_cpu_ns > Some(0), "{stats:?}");
    assert_eq!(stats.disk_bytes, Some(blocks));
}

#[cfg(feature = "sqlite")]
#[test]
fn a_database_is_stated_with_what_lies_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    for layout in ["ticks&commit=1s", "rows&commit=1s", "mohawk"] {
        let place = tempfile::tempdir_in(folder.path()).unwrap();
        let spec = format!("sqlite:{}?layout={layout}", place.path().join("x.db").display());
        let store = spec::open(&spec).unwrap();
        store.define(&[(SeriesId(0), SeriesKey::new("a"))]).unwrap();
        let ack = store.write_all(&Batch::tick(SeriesId(0), Timestamp::from_secs(1), &[1.0]));
        assert_eq!(ack.unwrap().accepted, 1);
        store.flush(Scope::All, Durability::Synced).unwrap();
        let stats = store.stats();
        // The file that locks it among them, which counts commits.
        assert_eq!(stats.disk_bytes, Some(blocks_below(place.path())), "{layout}");
        assert_eq!(stats.own_cpu_ns.is_some(), layout.contains("commit=1s"), "{layout}");
        store.close().unwrap();
    }
}
