//! Another process holds librrd's lock of a file: what a cache of series has for it is kept,
//! said, and tried again, and what comes meanwhile is not lost.
//!
//! The real daemon loses it and says yes: `rrdcached_hazards.rs`. For a cache of files the same
//! is in `rrdcached_server.rs`.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

#[path = "support/lock.rs"]
mod lock;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use libtest_mimic::{Arguments, Completion, Failed, Trial};
use lock::Holder;
use tsb_core::time::{Clock, ManualClock, MonotonicClock};
use tsb_core::{Batch, Durability, SeriesId, SeriesKey, Timestamp};
use tsb_stores::rrd::{EngineKind, RrdOptions, RrdStore};
use tsb_stores::write_cache::{JournalOptions, SyncPolicy, WriteCache, WriteCacheOptions};
use tsb_stores::{ArchiveRule, Consolidation, Scope, Store, StoreExt, TimeRange};

const SECOND_NS: u64 = 1_000_000_000;
/// How often a test tries to do something in the time for which a write waits for a lock.
const ATTEMPTS: usize = 5;

fn files(folder: &Path, engine: EngineKind) -> RrdStore {
    let options = RrdOptions {
        engine,
        step_s: 10,
        heartbeat_s: 60,
        archives: vec![ArchiveRule::new(Consolidation::Average, 1, 100)],
        ..RrdOptions::default()
    };
    RrdStore::open(&folder.join("files"), options).unwrap()
}

fn define(store: &dyn Store) {
    let keys = (0..2).map(|id| (SeriesId(id), SeriesKey::new(format!("s{id}"))));
    store.define(&keys.collect::<Vec<_>>()).unwrap();
}

/// A value for each of both series, which must be accepted.
fn tick(store: &dyn Store, second: i64) {
    let at = Timestamp::from_secs(1_700_000_000 + second);
    let values = [second as f64, second as f64 + 0.5];
    let ack = store.write_all(&Batch::tick(SeriesId(0), at, &values)).unwrap();
    assert_eq!(ack.accepted, 2);
}

/// A cache whose time stands still: nothing is due by itself.
fn cache(folder: &Path, engine: EngineKind, clock: &Arc<ManualClock>) -> WriteCache<RrdStore> {
    let options = WriteCacheOptions {
        timeout_ns: 1 << 60,
        flush_ns: 60 * SECOND_NS,
        threads: 2,
        journal: Some(JournalOptions::new(folder.join("journal"), SyncPolicy::None)),
        ..WriteCacheOptions::default()
    };
    let cache = WriteCache::new(files(folder, engine), &options, clock.clone()).unwrap();
    define(&cache);
    cache
}

/// Waits for the threads of a cache.
fn until(is: impl Fn() -> bool) -> bool {
    let clock = MonotonicClock::new();
    while !is() && clock.now() < 30 * SECOND_NS {
        clock.wait_until(clock.now() + 1_000_000);
    }
    is()
}

fn flush(cache: &WriteCache<RrdStore>, id: u32) -> tsb_stores::Result<()> {
    cache.flush(Scope::Series(&[SeriesId(id)]), Durability::Buffered)
}

/// Makes the files. Asked for everything, threads would also come, and might take what follows.
fn first_tick(cache: &WriteCache<RrdStore>) {
    tick(cache, 0);
    (0..2).for_each(|id| flush(cache, id).unwrap());
}

/// Both series have the rows that as many direct writes make.
fn compare(store: &dyn Store, engine: EngineKind, seconds: impl Iterator<Item = i64>) {
    let folder = tempfile::tempdir().unwrap();
    let direct = files(folder.path(), engine);
    define(&direct);
    seconds.for_each(|second| tick(&direct, second));
    for id in [SeriesId(0), SeriesId(1)] {
        let [found, expected] = [store, &direct as &dyn Store].map(|store| store.samples(id, TimeRange::ALL).unwrap());
        assert!(!expected.is_empty());
        assert_eq!(found, expected);
    }
}

/// Nobody has to ask again once the lock is free.
fn samples_for_a_locked_file_are_kept_reported_and_written_later(engine: EngineKind) {
    let (folder, clock) = (tempfile::tempdir().unwrap(), Arc::new(ManualClock::new()));
    let cache = cache(folder.path(), engine, &clock);
    first_tick(&cache);
    tick(&cache, 10);
    tick(&cache, 20);
    let holder = Holder::of(&folder.path().join("files/s0.rrd"));
    let said = format!("{:?}", flush(&cache, 0).unwrap_err());
    assert!(said.contains("s0.rrd"), "{said}");
    assert!(
        cache.last_failure().unwrap().contains("lock"),
        "{:?}",
        cache.last_failure()
    );
    // The other file is nobody's.
    flush(&cache, 1).unwrap();
    let account = cache.account();
    assert_eq!((account.written, account.pending, account.failed), (4, 2, 0));
    // It is as sure the second time.
    assert!(cache.flush(Scope::All, Durability::Buffered).is_err());
    tick(&cache, 30);
    holder.release();
    clock.advance(2 * SECOND_NS);
    assert!(until(|| cache.account().written >= 6), "{:?}", cache.account());
    cache.flush(Scope::All, Durability::Synced).unwrap();
    let account = cache.account();
    assert_eq!((account.written, account.pending, account.failed), (8, 0, 0));
    compare(&cache, engine, (0..=30).step_by(10));
}

/// A write waits for the lock, and meanwhile there is more for the same file.
fn a_write_during_the_lock_survives_replay(engine: EngineKind) {
    for _ in 0..ATTEMPTS {
        let (folder, clock) = (tempfile::tempdir().unwrap(), Arc::new(ManualClock::new()));
        let store = cache(folder.path(), engine, &clock);
        first_tick(&store);
        tick(&store, 1);
        let Some(end) = ticks_during_a_flush(&store, Holder::of(&folder.path().join("files/s0.rrd"))) else {
            continue;
        };
        // All of the other series, and of this one what its file was not given.
        let pending = store.account().pending;
        assert!(pending > end as u64 - 1, "{pending} of {end} seconds");
        let before = store.journaled_bytes();
        clock.advance(60 * SECOND_NS);
        assert!(
            until(|| store.journaled_bytes() > before),
            "no mark of what was written"
        );
        drop(store);
        let store = cache(folder.path(), engine, &clock);
        assert_eq!(store.account().replayed, pending);
        store.flush(Scope::All, Durability::Synced).unwrap();
        let account = store.account();
        assert_eq!((account.written, account.pending, account.failed), (pending, 0, 0));
        compare(&store, engine, 0..end);
        return;
    }
    panic!("every lock was held for longer than a write waits");
}

/// Writes a tick each second from 2 on for as long as a flush waits for a lock, and gives the
/// lock back meanwhile; the end of them, or `None` where the flush did not wait so long.
fn ticks_during_a_flush(store: &WriteCache<RrdStore>, holder: Holder) -> Option<i64> {
    let (is_over, real) = (AtomicBool::new(false), MonotonicClock::new());
    std::thread::scope(|scope| {
        let flushing = scope.spawn(|| {
            let flushed = flush(store, 0);
            is_over.store(true, Ordering::Release);
            flushed.is_ok()
        });
        let (mut second, mut holder) = (2, Some(holder));
        while !is_over.load(Ordering::Acquire) {
            if second < 500 {
                tick(store, second);
                second += 1;
            }
            real.wait_until(real.now() + 500_000);
            if real.now() > SECOND_NS / 5
                && let Some(holder) = holder.take()
            {
                holder.release();
            }
        }
        flushing.join().unwrap().then_some(second)
    })
}

/// What holds with the lock of either engine.
type Check = fn(EngineKind);

fn main() -> ExitCode {
    if lock::was_holder() {
        return ExitCode::SUCCESS;
    }
    let kinds: [(&str, Check); 2] = [
        (
            "samples_for_a_locked_file_are_kept_reported_and_written_later",
            samples_for_a_locked_file_are_kept_reported_and_written_later,
        ),
        (
            "a_write_during_the_lock_survives_replay",
            a_write_during_the_lock_survives_replay,
        ),
    ];
    let engines = [("native", EngineKind::Native), ("librrd", EngineKind::Librrd)];
    let trials = engines.into_iter().flat_map(|(engine_name, engine)| {
        let trial = move |(name, run): (&str, Check)| {
            Trial::ignorable_test(format!("{engine_name}::{name}"), move || {
                if engine == EngineKind::Librrd && !cfg!(feature = "librrd") {
                    return Ok(Completion::ignored_with("the feature librrd is not built"));
                }
                run(engine);
                Ok::<_, Failed>(Completion::Completed)
            })
        };
        kinds.map(trial)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}
