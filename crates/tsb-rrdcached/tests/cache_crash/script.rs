//! The writes of a test, each a function of its number, and the files that they must make.

use std::path::Path;
use std::sync::Arc;

use tsb_core::time::MonotonicClock;
use tsb_core::{Batch, SeriesId, SeriesKey, Timestamp};
use tsb_stores::rrd::{RrdOptions, RrdStore};
use tsb_stores::write_cache::{JournalOptions, SyncPolicy, WriteCache, WriteCacheOptions};
use tsb_stores::{ArchiveRule, Consolidation, Result, Store, StoreExt};

pub(crate) const SERIES: u32 = 3;
pub(crate) const POLICIES: [&str; 4] = ["none", "interval", "group", "each"];

pub(crate) fn policy(name: &str) -> SyncPolicy {
    match name {
        "none" => SyncPolicy::None,
        "interval" => SyncPolicy::Interval(3_000_000),
        "group" => SyncPolicy::Group,
        _ => SyncPolicy::Each,
    }
}

pub(crate) fn files(folder: &Path) -> Result<RrdStore> {
    let options = RrdOptions {
        step_s: 10,
        heartbeat_s: 20,
        archives: vec![
            ArchiveRule::new(Consolidation::Average, 1, 700),
            ArchiveRule::new(Consolidation::Max, 6, 100),
        ],
        ..RrdOptions::default()
    };
    RrdStore::open(folder, options)
}

/// Queues that are due, written, and marked in the journal again and again within a test.
pub(crate) fn options(journal: &Path, name: &str) -> WriteCacheOptions {
    WriteCacheOptions {
        timeout_ns: 4_000_000,
        jitter_ns: 2_000_000,
        flush_ns: 10_000_000,
        threads: 2,
        journal: Some(JournalOptions {
            segment_bytes: 3_000,
            ..JournalOptions::new(journal, policy(name))
        }),
        ..WriteCacheOptions::default()
    }
}

pub(crate) fn cache(folder: &Path, name: &str) -> Result<WriteCache<RrdStore>> {
    let clock = Arc::new(MonotonicClock::new());
    let inner = files(&folder.join("files"))?;
    WriteCache::new(inner, &options(&folder.join("journal"), name), clock)
}

pub(crate) fn define(store: &dyn Store) -> Result<()> {
    let keys = (0..SERIES).map(|id| (SeriesId(id), SeriesKey::new(format!("crash.{id}"))));
    store.define(&keys.collect::<Vec<_>>())
}

fn time_of(number: u64) -> Timestamp {
    Timestamp::from_secs(1_700_000_000 + number as i64 * 3)
}

/// Performs a write.
pub(crate) fn perform(store: &dyn Store, number: u64) -> Result<()> {
    let values: Vec<f64> = (0..SERIES)
        .map(|id| (number * 7 + u64::from(id) * 1000) as f64 / 4.0)
        .collect();
    store
        .write_all(&Batch::tick(SeriesId(0), time_of(number), &values))
        .map(drop)
}

/// How many writes a store has of each series, by what it accepted last.
fn held(store: &dyn Store) -> Result<Vec<u64>> {
    let ids: Vec<SeriesId> = (0..SERIES).map(SeriesId).collect();
    let mut newest = vec![None; ids.len()];
    store.newest_accepted(&ids, &mut newest)?;
    let writes = newest
        .into_iter()
        .map(|at| at.map_or(0, |at: Timestamp| ((at - time_of(0)) / 3_000_000_000) as u64 + 1));
    Ok(writes.collect())
}

/// Closes what an accident left, and compares its files with those of as many direct writes:
/// all of the first so many, at least `promised`, at most `begun`.
pub(crate) fn check(store: &dyn Store, files_at: &Path, promised: u64, begun: u64) -> std::result::Result<u64, String> {
    let words = |error: tsb_stores::Error| format!("{error:?}");
    let held = held(store).map_err(words)?;
    store.close().map_err(words)?;
    let whole = held.iter().copied().min().unwrap_or(0);
    if held.iter().any(|&writes| writes != whole) || whole < promised || whole > begun {
        return Err(format!(
            "{held:?} writes are left, {promised} were promised and {begun} begun"
        ));
    }
    let direct = tempfile::tempdir().unwrap();
    let other = files(direct.path()).map_err(words)?;
    define(&other).map_err(words)?;
    for number in 0..whole {
        perform(&other, number).map_err(words)?;
    }
    other.close().map_err(words)?;
    for id in 0..SERIES {
        let name = format!("crash.{id}.rrd");
        let read = |folder: &Path| std::fs::read(folder.join(&name)).ok();
        if read(files_at) != read(direct.path()) {
            return Err(format!("{name} differs from {whole} direct writes"));
        }
    }
    Ok(whole)
}
