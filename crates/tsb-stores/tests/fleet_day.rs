//! A day of a fleet that reports every 10 s, through a write cache into RRD files, in the
//! time that it takes: memory stays within its bound, and the files are those of direct
//! updates, byte for byte.
//!
//! A few series are enough to see a mistake; `TSB_FLEET_SERIES=10000` is the whole fleet.
//! With the feature `librrd` it is librrd that updates directly.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::path::Path;
use std::sync::Arc;

use tsb_core::resource::Process;
use tsb_core::time::ManualClock;
use tsb_core::{Batch, Durability, Ids, SeriesId, SeriesKey, Times, Timestamp};
use tsb_stores::rrd::{EngineKind, RrdOptions, RrdStore};
use tsb_stores::write_cache::{WriteCache, WriteCacheOptions};
use tsb_stores::{ArchiveRule, Consolidation, Refusals, Scope, Store, StoreExt};

/// When it begins, in seconds since the epoch; the end of a row of every archive.
const START_S: i64 = 1_700_000_400;
const INTERVAL_S: i64 = 10;
const TICKS: i64 = 86_400 / INTERVAL_S;
/// Bytes of a chunk of samples, as long as one a series cannot be enough for them.
const CHUNK_BYTES: u64 = 256;
/// Ticks that the direct store is given at once: librrd's call costs more than its work.
const AT_ONCE: i64 = 60;

fn series() -> u32 {
    std::env::var("TSB_FLEET_SERIES").map_or(40, |series| series.parse().unwrap())
}

fn files(folder: &Path, engine: EngineKind) -> RrdStore {
    let options = RrdOptions {
        engine,
        step_s: INTERVAL_S as u64,
        heartbeat_s: 2 * INTERVAL_S as u64,
        archives: vec![
            ArchiveRule::new(Consolidation::Average, 1, 360),
            ArchiveRule::new(Consolidation::Average, 6, 1_440),
            ArchiveRule::new(Consolidation::Max, 360, 24),
        ],
        ..RrdOptions::default()
    };
    RrdStore::open(folder, options).unwrap()
}

fn define(store: &dyn Store) {
    let keys = (0..series()).map(|id| (SeriesId(id), SeriesKey::new(format!("host{}.load", id + 1))));
    store.define(&keys.collect::<Vec<_>>()).unwrap();
}

fn at(tick: i64) -> Timestamp {
    Timestamp::from_secs(START_S + tick * INTERVAL_S)
}

fn value(id: u32, tick: i64) -> f64 {
    ((i64::from(id) * 31 + tick * 7) % 4_001) as f64 / 16.0
}

/// Writes a tick; what the cache has no room for is written when it has.
fn write(cache: &WriteCache<RrdStore>, tick: i64) {
    let values: Vec<f64> = (0..series()).map(|id| value(id, tick)).collect();
    let mut refused = Refusals::default();
    let batch = Batch::tick(SeriesId(0), at(tick), &values);
    let ack = cache.write(&batch, &mut refused).unwrap();
    if ack.rejected == 0 {
        return;
    }
    cache.flush(Scope::All, Durability::Buffered).unwrap();
    let ids: Vec<SeriesId> = refused.as_slice().iter().map(|one| SeriesId(one.index)).collect();
    let values: Vec<f64> = ids.iter().map(|id| value(id.0, tick)).collect();
    let again = Batch::new(Ids::Each(&ids), Times::One(at(tick)), &values);
    assert_eq!(cache.write_all(&again).unwrap().accepted, ids.len());
}

/// All ticks after the first by the system's librrd where it is linked.
fn write_directly(folder: &Path) {
    let engine = if cfg!(feature = "librrd") {
        EngineKind::Librrd
    } else {
        EngineKind::Native
    };
    // Which rows are first is random in files that librrd creates.
    let first = files(folder, EngineKind::Native);
    define(&first);
    let values: Vec<f64> = (0..series()).map(|id| value(id, 0)).collect();
    let ack = first.write_all(&Batch::tick(SeriesId(0), at(0), &values));
    assert_eq!(ack.unwrap().accepted, values.len());
    first.close().unwrap();
    let store = files(folder, engine);
    define(&store);
    for from in (1..TICKS).step_by(AT_ONCE as usize) {
        let ticks = from..TICKS.min(from + AT_ONCE);
        let times: Vec<Timestamp> = ticks.clone().map(at).collect();
        for id in 0..series() {
            let ids = vec![SeriesId(id); times.len()];
            let values: Vec<f64> = ticks.clone().map(|tick| value(id, tick)).collect();
            let batch = Batch::new(Ids::Each(&ids), Times::Each(&times), &values);
            assert_eq!(store.write_all(&batch).unwrap().accepted, times.len());
        }
    }
    store.close().unwrap();
}

#[test]
fn a_day_of_a_fleet_stays_within_its_memory_and_changes_no_byte() {
    let folder = tempfile::tempdir().unwrap();
    let (through, direct) = (folder.path().join("through"), folder.path().join("direct"));
    let clock = Arc::new(ManualClock::new());
    let options = WriteCacheOptions {
        threads: 2,
        jitter_ns: 60_000_000_000,
        // Three chunks a series: the timeout of 300 s needs two or three.
        max_bytes: u64::from(series()) * 3 * CHUNK_BYTES,
        ..WriteCacheOptions::default()
    };
    let cache = WriteCache::new(files(&through, EngineKind::Native), &options, clock.clone()).unwrap();
    define(&cache);
    let (mut widest, mut rss) = (0, None);
    for tick in 0..TICKS {
        clock.advance(INTERVAL_S as u64 * 1_000_000_000);
        write(&cache, tick);
        assert!(cache.account().balances(), "tick {tick}: {:?}", cache.account());
        let waiting = cache.stats().footprint.head_bytes;
        assert!(waiting <= options.max_bytes, "tick {tick}: {waiting} bytes wait");
        widest = widest.max(waiting);
        if tick == TICKS / 10 {
            rss = Process::own().and_then(|own| own.rss_bytes());
        }
    }
    let rss_now = Process::own().and_then(|own| own.rss_bytes());
    cache.close().unwrap();
    let account = cache.account();
    assert_eq!(account.written, u64::from(series()) * TICKS as u64);
    assert!(widest > 0);
    // After a tenth of the day nothing grows any more, but for what the allocator keeps.
    let grown = rss_now.unwrap().saturating_sub(rss.unwrap());
    assert!(
        grown < (16 << 20) + options.max_bytes / 4,
        "{grown} bytes more at the end of the day"
    );
    write_directly(&direct);
    for id in 0..series() {
        let name = format!("host{}.load.rrd", id + 1);
        let [found, other] = [&through, &direct].map(|folder| std::fs::read(folder.join(&name)).unwrap());
        assert!(found == other, "{name} differs from direct updates");
    }
    println!(
        "{} series: {widest} bytes waited at the most, {grown} bytes more at the end",
        series()
    );
}
