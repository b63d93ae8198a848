//! What rrdcached promises and breaks, over real stores: each promise by itself.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::time::{ManualClock, MonotonicClock};
use tsb_core::{BatchBuf, Times};

use super::*;
use crate::error::chain;
use crate::memory::{MemoryOptions, MemoryStore};
use crate::rrd::{RrdOptions, RrdStore};
use crate::store::{ArchiveRule, Consolidation, Reason, StoreExt, TimeRange};
use crate::throttle::{Throttle, ThrottleOptions};

const SECOND: u64 = 1_000_000_000;

fn at(second: i64) -> Timestamp {
    Timestamp::from_secs(1_700_000_000 + second)
}

fn define(store: &dyn Store, series: u32) {
    let keys = (0..series).map(|id| (SeriesId(id), SeriesKey::new(format!("s{id}"))));
    store.define(&keys.collect::<Vec<_>>()).unwrap();
}

/// Writes a tick; how many samples were accepted.
fn tick(store: &dyn Store, series: u32, second: i64) -> usize {
    let values: Vec<f64> = (0..series).map(|id| f64::from(id) + second as f64).collect();
    let batch = Batch::tick(SeriesId(0), at(second), &values);
    store.write(&batch, &mut Refusals::new()).unwrap().accepted
}

/// Writes so many ticks.
fn ticks(store: &dyn Store, series: u32, count: i64) {
    for second in 0..count {
        assert_eq!(tick(store, series, second), series as usize);
    }
}

fn memory() -> MemoryStore {
    MemoryStore::new(MemoryOptions::default())
}

fn files(folder: &Path) -> RrdStore {
    let options = RrdOptions {
        step_s: 10,
        heartbeat_s: 60,
        archives: vec![ArchiveRule::new(Consolidation::Average, 1, 100)],
        ..RrdOptions::default()
    };
    RrdStore::open(folder, options).unwrap()
}

/// A cache in virtual time: nothing is due unless the clock is moved.
fn with_manual_clock<S: Store>(inner: S) -> (WriteCache<S>, Arc<ManualClock>) {
    let clock = Arc::new(ManualClock::new());
    let options = WriteCacheOptions::default();
    (WriteCache::new(inner, &options, clock.clone()).unwrap(), clock)
}

/// Waits for the threads.
fn wait_until(what: impl Fn() -> bool) -> bool {
    let clock = MonotonicClock::new();
    while clock.now() < 20 * SECOND && !what() {
        clock.wait_until(clock.now() + 1_000_000);
    }
    what()
}

#[test]
fn samples_wait_for_the_timeout_and_go_together() {
    let (cache, clock) = with_manual_clock(memory());
    define(&cache, 100);
    ticks(&cache, 100, 60);
    assert_eq!((cache.account().pending, cache.inner().stats().samples), (6_000, 0));
    clock.advance(299 * SECOND);
    tick(&cache, 100, 60);
    assert_eq!(cache.account().pending, 6_100);
    clock.advance(SECOND);
    tick(&cache, 100, 61);
    assert!(wait_until(|| cache.account().pending == 0), "{:?}", cache.account());
    let account = cache.account();
    assert_eq!((account.written, cache.inner().stats().samples), (6_200, 6_200));
    assert!(account.balances());
}

#[test]
fn a_series_without_new_samples_is_written_at_the_flush_interval() {
    let (cache, clock) = with_manual_clock(memory());
    define(&cache, 3);
    tick(&cache, 3, 0);
    clock.advance(3_600 * SECOND);
    assert!(wait_until(|| cache.account().written == 3), "{:?}", cache.account());
}

#[test]
fn jitter_spreads_series_that_began_together() {
    let clock = Arc::new(ManualClock::new());
    let options = WriteCacheOptions {
        timeout_ns: 100 * SECOND,
        jitter_ns: 100 * SECOND,
        flush_ns: SECOND,
        ..WriteCacheOptions::default()
    };
    let cache = WriteCache::new(memory(), &options, clock.clone()).unwrap();
    define(&cache, 1_000);
    tick(&cache, 1_000, 0);
    clock.advance(99 * SECOND);
    assert_eq!(cache.account().written, 0);
    clock.advance(51 * SECOND);
    // Half of the jitter reaches about half of them.
    assert!(
        wait_until(|| (300..700).contains(&cache.account().written)),
        "{:?}",
        cache.account()
    );
    clock.advance(50 * SECOND);
    assert!(wait_until(|| cache.account().written == 1_000));
}

#[test]
fn a_query_writes_the_queue_of_its_series_and_no_other() {
    let (cache, _clock) = with_manual_clock(memory());
    define(&cache, 50);
    tick(&cache, 50, 0);
    tick(&cache, 50, 1);
    assert_eq!(cache.samples(SeriesId(7), TimeRange::ALL).unwrap().len(), 2);
    assert_eq!((cache.account().written, cache.account().pending), (2, 98));
    let mut newest = [None; 2];
    cache.newest(&[SeriesId(7), SeriesId(8)], &mut newest).unwrap();
    assert_eq!(newest, [Some(at(1)); 2]);
    assert_eq!(cache.account().pending, 98);
}

#[test]
fn three_hundred_values_of_one_write_survive() {
    let (cache, _clock) = with_manual_clock(memory());
    define(&cache, 1);
    let mut batch = BatchBuf::new();
    (0..300).for_each(|second| batch.push(SeriesId(0), at(second), second as f64));
    assert!(matches!(batch.as_batch().times(), Times::Each(_)));
    assert_eq!(cache.write_all(&batch.as_batch()).unwrap().accepted, 300);
    cache.close().unwrap();
    assert_eq!(cache.inner().stats().samples, 300);
}

#[test]
fn a_late_sample_is_refused_when_it_arrives_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, _clock) = with_manual_clock(files(folder.path()));
    define(&cache, 1);
    for second in [0, 10, 15] {
        assert_eq!(tick(&cache, 1, second), 1);
    }
    cache.close().unwrap();
    let (cache, _clock) = with_manual_clock(files(folder.path()));
    define(&cache, 1);
    // The newest row ends at 10; the newest sample is at 15.
    let mut refused = Refusals::new();
    for second in [12, 15, 16] {
        let _ = cache
            .write(&Batch::tick(SeriesId(0), at(second), &[1.0]), &mut refused)
            .unwrap();
    }
    let reasons: Vec<Reason> = refused.as_slice().iter().map(|refusal| refusal.reason).collect();
    assert_eq!(reasons, [Reason::Late, Reason::Duplicate]);
    cache.close().unwrap();
    assert_eq!((cache.account().failed, cache.account().written), (0, 1));
}

/// Issue 14: a question for the newest row had every row that had ended written first. A run
/// asks ten times per second, so a cache in front of files cached nothing.
#[test]
fn the_newest_row_is_known_without_writing_and_is_the_files() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let (cache, _clock) = with_manual_clock(files(folders[0].path()));
    let plain = files(folders[1].path());
    let stores: [&dyn Store; 2] = [&cache, &plain];
    for store in stores {
        define(store, 3);
    }
    let agree = |second| {
        let rows = stores.map(|store| {
            assert_eq!(tick(store, 3, second), 3);
            let mut rows = [None; 3];
            store
                .newest(&[SeriesId(0), SeriesId(1), SeriesId(2)], &mut rows)
                .unwrap();
            rows
        });
        assert_eq!(rows[0], rows[1], "after {second} s");
    };
    // Off the grid of the rows, and denser than it.
    (0..40).for_each(|number| agree(3 + number * 7));
    let written = cache.account().written;
    assert!(written <= 9, "{written} of 120 samples were written for an answer");
    // At the heartbeat all is known; beyond it only the files know from when on.
    (0..20).for_each(|number| agree(336 + number * 60));
    assert_eq!(cache.account().written, written, "nothing more");
    (0..20).for_each(|number| agree(1_600 + number * 61));
    (0..20).for_each(|number| agree(2_900 + number * 13));
    // After what was forgotten, and after reopening, the files have a gap.
    assert!(cache.forget(SeriesId(1)).unwrap() > 0);
    cache.close().unwrap();
}

#[test]
fn at_the_bound_samples_are_refused_and_all_is_written() {
    let clock = Arc::new(ManualClock::new());
    let options = WriteCacheOptions {
        max_bytes: 10_000,
        ..WriteCacheOptions::default()
    };
    let cache = WriteCache::new(memory(), &options, clock).unwrap();
    define(&cache, 1_000);
    let mut refused = Refusals::new();
    let values = vec![1.0; 1_000];
    let ack = cache
        .write(&Batch::tick(SeriesId(0), at(0), &values), &mut refused)
        .unwrap();
    assert!(ack.rejected > 900 && refused.as_slice().iter().all(|one| one.reason == Reason::Full));
    assert!(wait_until(|| cache.account().pending == 0));
    assert_eq!(cache.account().written, ack.accepted as u64);
    assert!(cache.stats().footprint.head_bytes < 20_000 + cache.inner().stats().footprint.head_bytes);
    // There is room again, and what was refused may come again.
    assert!(tick(&cache, 10, 0) + ack.accepted >= 10);
}

#[test]
fn a_file_that_cannot_be_written_is_kept_and_reported_and_written_later() {
    let folder = tempfile::tempdir().unwrap();
    let (cache, clock) = with_manual_clock(files(folder.path()));
    define(&cache, 3);
    // Something else has the name of a file that is not there yet.
    let taken = folder.path().join("s1.rrd");
    std::fs::create_dir(&taken).unwrap();
    tick(&cache, 3, 0);
    tick(&cache, 3, 10);
    let error = cache.flush(Scope::All, Durability::Buffered).unwrap_err();
    assert!(matches!(error, Error::Backend { .. }), "{error:?}");
    assert!(
        cache.last_failure().unwrap().contains("s1.rrd"),
        "{:?}",
        cache.last_failure()
    );
    let account = cache.account();
    assert_eq!((account.written, account.pending, account.failed), (4, 2, 0));
    assert!(
        cache
            .flush(Scope::Series(&[SeriesId(1)]), Durability::Buffered)
            .is_err()
    );
    cache
        .flush(Scope::Series(&[SeriesId(0)]), Durability::Buffered)
        .unwrap();
    std::fs::remove_dir(&taken).unwrap();
    clock.advance(2 * SECOND);
    assert!(wait_until(|| cache.account().pending == 0), "{:?}", cache.account());
    cache.flush(Scope::All, Durability::Synced).unwrap();
    let account = cache.account();
    assert_eq!((account.written, account.failed), (6, 0));
    let rows = |id| cache.samples(SeriesId(id), TimeRange::ALL).unwrap().len();
    assert_eq!(rows(1), rows(0));
}

#[test]
fn a_refusal_in_the_background_is_reported_by_the_next_flush_of_the_series() {
    let options = ThrottleOptions {
        error_one_in: Some(1),
        ..ThrottleOptions::default()
    };
    let inner = Throttle::new(memory(), options, Arc::new(ManualClock::new())).unwrap();
    let (cache, _clock) = with_manual_clock(inner);
    define(&cache, 3);
    ticks(&cache, 2, 5);
    cache.start_drain().unwrap();
    assert!(wait_until(|| cache.account().failed == 10), "{:?}", cache.account());
    let flush = |id| cache.flush(Scope::Series(&[SeriesId(id)]), Durability::Volatile);
    flush(2).unwrap();
    let said = chain(&flush(1).unwrap_err());
    assert!(said.contains("series 1"), "{said}");
    flush(1).unwrap();
    let said = chain(&cache.flush(Scope::All, Durability::Volatile).unwrap_err());
    assert!(said.contains("series 0"), "{said}");
    cache.flush(Scope::All, Durability::Volatile).unwrap();
}

#[test]
fn samples_that_the_store_refuses_are_counted_and_reported_once() {
    let options = ThrottleOptions {
        error_one_in: Some(4),
        ..ThrottleOptions::default()
    };
    let inner = Throttle::new(memory(), options, Arc::new(ManualClock::new())).unwrap();
    let (cache, _clock) = with_manual_clock(inner);
    define(&cache, 10);
    ticks(&cache, 10, 20);
    assert!(cache.flush(Scope::All, Durability::Volatile).is_err());
    let account = cache.account();
    assert!(account.failed > 10 && account.balances(), "{account:?}");
    assert_eq!(account.written, cache.inner().inner().stats().samples);
    cache.flush(Scope::All, Durability::Volatile).unwrap();
}

#[test]
fn forgotten_samples_are_counted() {
    let (cache, _clock) = with_manual_clock(memory());
    define(&cache, 2);
    ticks(&cache, 2, 20);
    assert_eq!(cache.forget(SeriesId(1)).unwrap(), 20);
    assert_eq!(cache.forget(SeriesId(1)).unwrap(), 0);
    cache.close().unwrap();
    let account = cache.account();
    assert_eq!((account.forgotten, account.written, account.pending), (20, 20, 0));
    assert!(account.balances());
}

#[test]
fn the_account_balances_during_concurrent_calls() {
    let options = WriteCacheOptions {
        timeout_ns: 1,
        threads: 3,
        ..WriteCacheOptions::default()
    };
    let cache = WriteCache::new(memory(), &options, Arc::new(MonotonicClock::new())).unwrap();
    define(&cache, 200);
    let done = AtomicBool::new(false);
    let looks = std::thread::scope(|scope| {
        let looker = scope.spawn(|| {
            let mut looks = 0;
            while !done.load(Ordering::Acquire) || looks == 0 {
                let account = cache.account();
                assert!(account.balances(), "{account:?}");
                looks += 1;
            }
            looks
        });
        for second in 0..500 {
            tick(&cache, 200, second);
            cache.forget(SeriesId(second as u32 % 200)).unwrap();
        }
        done.store(true, Ordering::Release);
        looker.join().unwrap()
    });
    cache.close().unwrap();
    let account = cache.account();
    assert!(looks > 0 && account.balances() && account.pending == 0);
    assert_eq!(account.written + account.forgotten, 100_000);
}

#[test]
fn a_journal_replays_the_queues_of_a_dropped_cache() {
    let folder = tempfile::tempdir().unwrap();
    let options = WriteCacheOptions {
        journal: Some(JournalOptions::new(folder.path().join("journal"), SyncPolicy::None)),
        ..WriteCacheOptions::default()
    };
    let open = || {
        let inner = files(&folder.path().join("files"));
        WriteCache::new(inner, &options, Arc::new(ManualClock::new())).unwrap()
    };
    let cache = open();
    define(&cache, 3);
    ticks(&cache, 3, 30);
    cache.forget(SeriesId(2)).unwrap();
    assert!(WriteCache::new(files(folder.path()), &options, Arc::new(ManualClock::new())).is_err());
    drop(cache);
    let cache = open();
    // Under other ids, and one of them later.
    cache.define(&[(SeriesId(0), SeriesKey::new("s1"))]).unwrap();
    assert_eq!(cache.account().replayed, 30);
    drop(cache);
    let cache = open();
    cache
        .define(&[(SeriesId(0), SeriesKey::new("s2")), (SeriesId(1), SeriesKey::new("s0"))])
        .unwrap();
    assert_eq!(cache.account().replayed, 30);
    cache.define(&[(SeriesId(2), SeriesKey::new("s1"))]).unwrap();
    assert_eq!(cache.account().replayed, 60);
    cache.close().unwrap();
    let account = cache.account();
    assert!((account.written, account.pending) == (60, 0) && account.balances());
    let cache = open();
    define(&cache, 3);
    assert_eq!(cache.account().replayed, 0);
}

#[test]
fn a_journal_before_a_store_that_keeps_nothing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let options = WriteCacheOptions {
        journal: Some(JournalOptions::new(folder.path(), SyncPolicy::Group)),
        ..WriteCacheOptions::default()
    };
    let error = WriteCache::new(memory(), &options, Arc::new(ManualClock::new())).unwrap_err();
    assert!(matches!(error, Error::Spec { .. }), "{error:?}");
    for options in [
        WriteCacheOptions {
            threads: 0,
            ..WriteCacheOptions::default()
        },
        WriteCacheOptions {
            jitter_ns: u64::MAX,
            ..WriteCacheOptions::default()
        },
        WriteCacheOptions {
            flush_ns: 0,
            ..WriteCacheOptions::default()
        },
    ] {
        assert!(WriteCache::new(memory(), &options, Arc::new(ManualClock::new())).is_err());
    }
}

mod damage;
