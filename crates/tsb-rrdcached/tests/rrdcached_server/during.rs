//! What comes while a file is written, and what waits for long: here neither is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tsb_core::time::ManualClock;
use tsb_rrd::{RrdFile, Session};
use tsb_rrdcached::FileCache;
use tsb_stores::write_cache::{JournalOptions, SyncPolicy, WriteCacheOptions};

use crate::lock::Holder;
use crate::{OurServer, journaled, options, wait_until};

const FROM_S: i64 = 1_700_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Values of one write that is to take a while; more, where it was over too soon.
const VALUES: i64 = 20_000;
/// How often a write is made twice as long before the test gives up.
const ATTEMPTS: u32 = 8;

/// With several, what the oldest of them hold would soon be written.
const ONE_SEGMENT: u64 = 1 << 30;

/// Accepts one value for a file, and has it acknowledged.
fn update(cache: &FileCache, file: &str, second: i64) {
    let update = format!("{}:1", FROM_S + second);
    let taken = cache.update(file, std::iter::once(update.into()), &mut Session::default());
    let record = taken.unwrap().record;
    record.map_or(Ok(()), |record| cache.confirm(record)).unwrap();
}

fn newest_of(cache: &FileCache, file: &str) -> i64 {
    let file = RrdFile::open(&cache.folder().join(file)).unwrap();
    file.newest(&mut Session::default()).unwrap().seconds - FROM_S
}

/// Marks in the journal every minute what was written; nothing is due by itself.
fn sweeping(folder: &std::path::Path, segment_bytes: u64) -> WriteCacheOptions {
    WriteCacheOptions {
        timeout_ns: 1 << 60,
        flush_ns: 60 * SECOND_NS,
        journal: Some(JournalOptions {
            segment_bytes,
            ..JournalOptions::new(folder.join("journal"), SyncPolicy::None)
        }),
        ..options()
    }
}

/// Lets a minute pass, until the journal has marks of what was written.
fn sweep(cache: &FileCache, clock: &ManualClock) {
    let before = cache.stats().journal_bytes;
    clock.advance(60 * SECOND_NS);
    assert!(wait_until(|| cache.stats().journal_bytes > before));
}

pub(crate) fn an_update_that_arrives_during_a_write_survives_replay() {
    for attempt in 0..ATTEMPTS {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::new());
        let mut ours = OurServer::with_clock(folder.path(), &sweeping(folder.path(), ONE_SEGMENT), clock.clone());
        ours.create("a.rrd");
        let (cache, mut second) = (&*ours.cache, VALUES << attempt);
        for second in 0..second {
            update(cache, "a.rrd", second);
        }
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert!(cache.flush("a.rrd", &mut Session::default()).unwrap());
                is_over.store(true, Ordering::Release);
            });
            while !is_over.load(Ordering::Acquire) {
                update(cache, "a.rrd", second);
                second += 1;
            }
        });
        let late = cache.stats().account.pending;
        if late == 0 {
            continue;
        }
        assert_eq!(newest_of(cache, "a.rrd"), second - late as i64 - 1);
        sweep(cache, &clock);
        ours.kill();
        let ours = OurServer::open(folder.path(), &sweeping(folder.path(), ONE_SEGMENT));
        let account = ours.cache.stats().account;
        // It is due at once, and may be written by now.
        assert_eq!((account.replayed, account.pending + account.written), (late, late));
        ours.cache.close().unwrap();
        assert_eq!(newest_of(&ours.cache, "a.rrd"), second - 1);
        return;
    }
    panic!("every write was over before an update came");
}

/// Whoever asks last is not told yes before what another is writing is written.
pub(crate) fn a_flush_during_a_write_waits_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut ours = OurServer::open(folder.path(), &options());
    ours.create("a.rrd");
    let cache = &*ours.cache;
    for round in 0..20_i64 {
        let end = (round + 1) * 2_000;
        for second in end - 2_000..end {
            update(cache, "a.rrd", second);
        }
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    assert!(cache.flush("a.rrd", &mut Session::default()).unwrap());
                    assert_eq!(newest_of(cache, "a.rrd"), end - 1);
                });
            }
        });
    }
}

/// A suspended file, over many sweeps and segments.
pub(crate) fn a_journal_keeps_queued_updates() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new());
    let mut ours = OurServer::with_clock(folder.path(), &sweeping(folder.path(), 4_096), clock.clone());
    ours.create("a.rrd");
    ours.create("b.rrd");
    update(&ours.cache, "a.rrd", 0);
    ours.first("SUSPEND a.rrd");
    for round in 0..5 {
        for second in round * 200..round * 200 + 200 {
            update(&ours.cache, "b.rrd", second);
        }
        assert!(ours.first("FLUSH b.rrd").starts_with("0 "));
        sweep(&ours.cache, &clock);
    }
    assert_eq!(ours.cache.stats().account.pending, 1);
    ours.kill();
    let ours = OurServer::open(folder.path(), &sweeping(folder.path(), 4_096));
    assert_eq!(ours.cache.stats().account.replayed, 1);
    ours.cache.close().unwrap();
    assert_eq!(
        (newest_of(&ours.cache, "a.rrd"), newest_of(&ours.cache, "b.rrd")),
        (0, 999)
    );
}

/// The threads write what a lock kept them from, and nobody has to ask.
pub(crate) fn a_locked_file_is_written_later_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new());
    let mut ours = OurServer::with_clock(
        folder.path(),
        &journaled(folder.path(), SyncPolicy::None),
        clock.clone(),
    );
    ours.create("a.rrd");
    ours.create("b.rrd");
    for second in 0..5 {
        update(&ours.cache, "a.rrd", second);
        update(&ours.cache, "b.rrd", second);
    }
    let holder = Holder::of(&ours.cache.folder().join("a.rrd"));
    ours.first("FLUSHALL");
    assert!(wait_until(|| ours.cache.stats().write_failures == 1));
    // While it is held, too, it is tried again and again.
    for tries in 2..4 {
        clock.advance(2 * SECOND_NS);
        assert!(wait_until(|| ours.cache.stats().write_failures >= tries));
    }
    assert!(wait_until(|| ours.cache.stats().account.written == 5));
    let account = ours.cache.stats().account;
    assert_eq!((account.pending, account.failed), (5, 0));
    holder.release();
    clock.advance(2 * SECOND_NS);
    assert!(wait_until(|| ours.cache.stats().account.written == 10));
    // What had to wait is in the file now: there is nothing to say.
    assert!(ours.first("FLUSH a.rrd").starts_with("0 Successfully flushed"));
    assert_eq!(
        (newest_of(&ours.cache, "a.rrd"), ours.cache.stats().account.failed),
        (4, 0)
    );
}

/// A command as long as any that the daemon resets.
pub(crate) fn a_long_line_is_understood() {
    let folder = tempfile::tempdir().unwrap();
    let mut ours = OurServer::open(folder.path(), &options());
    ours.create("a.rrd");
    let values: Vec<String> = (0..4_000).map(|second| format!(" {}:1", FROM_S + second)).collect();
    let reply = ours.first(&format!("UPDATE a.rrd{}", values.concat()));
    assert_eq!(
        (reply.as_str(), ours.is_over),
        ("0 errors, enqueued 4000 value(s).", false)
    );
}
