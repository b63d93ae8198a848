//! Shared by the benchmarks of the write cache: caches, files and ticks.

use std::path::Path;
use std::sync::Arc;

use tsb_core::time::ManualClock;
use tsb_core::{Batch, SeriesId, SeriesKey, Timestamp};
use tsb_stores::rrd::{RrdOptions, RrdStore};
use tsb_stores::write_cache::{JournalOptions, SyncPolicy, WriteCache, WriteCacheOptions};
use tsb_stores::{Store, StoreExt};

/// Seconds between two ticks: each sample ends a step of the published layout.
pub const STEP_S: i64 = 300;
/// Time of tick 0, in seconds since the epoch.
const START_S: i64 = 1_699_920_000;

/// A cache whose values never become due by time, with or without a journal.
#[expect(clippy::expect_used, reason = "a benchmark may stop with a message")]
pub fn cache<S: Store>(inner: S, series: u32, threads: usize, journal: Option<(&Path, SyncPolicy)>) -> WriteCache<S> {
    let options = WriteCacheOptions {
        threads,
        max_bytes: 8 << 30,
        journal: journal.map(|(folder, sync)| JournalOptions::new(folder, sync)),
        ..WriteCacheOptions::default()
    };
    let cache = WriteCache::new(inner, &options, Arc::new(ManualClock::new())).expect("a cache");
    define(&cache, series);
    cache
}

/// RRD files in the published layout, with one source.
#[expect(clippy::expect_used, reason = "a benchmark may stop with a message")]
pub fn files(folder: &Path) -> RrdStore {
    RrdStore::open(folder, RrdOptions::default()).expect("a folder of files")
}

/// Defines `series` series.
#[expect(clippy::expect_used, reason = "a benchmark may stop with a message")]
pub fn define(store: &dyn Store, series: u32) {
    let keys = (0..series).map(|id| (SeriesId(id), SeriesKey::new(format!("{}", id + 1))));
    store.define(&keys.collect::<Vec<_>>()).expect("new series");
}

/// The values of one tick.
pub fn values(series: u32) -> Vec<f64> {
    (0..series).map(|id| f64::from(id % 977) * 1.25).collect()
}

/// Writes tick `tick` in batches of `batch` series.
#[expect(clippy::expect_used, reason = "a benchmark may stop with a message")]
pub fn tick(store: &dyn Store, tick: i64, values: &[f64], batch: usize) {
    let at = Timestamp::from_secs(START_S + tick * STEP_S);
    for (values, first) in values.chunks(batch).zip((0..).step_by(batch)) {
        let ack = store
            .write_all(&Batch::tick(SeriesId(first), at, values))
            .expect("a write");
        assert_eq!(ack.accepted, values.len());
    }
}
