//! What is particular to files: locks, generations across openings, Mohawk's range rule.

mod maxima;

use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use tsb_core::{Batch, SeriesId, SeriesKey, Timestamp};

use super::*;
use crate::error::Error;
use crate::store::{Scope, StoreExt, TimeRange};

const SECOND: i64 = 1_000_000_000;

fn keys(count: u32) -> Vec<(SeriesId, SeriesKey)> {
    let key = |id| (SeriesId(id), SeriesKey::with_labels("k", [("id", id.to_string())]));
    (0..count).map(key).collect()
}

fn ticks(folder: &TempDir, options: SqliteOptions) -> TickStore {
    let store = TickStore::open(&folder.path().join("x.db"), options).unwrap();
    store.define(&keys(10)).unwrap();
    store
}

fn tick(store: &dyn Store, number: i64) {
    let values: Vec<f64> = (0..10).map(|id| (number * 10 + id) as f64 / 100.0).collect();
    let _ = store
        .write_all(&Batch::tick(SeriesId(0), Timestamp(number * SECOND), &values))
        .unwrap();
}

fn short() -> SqliteOptions {
    SqliteOptions {
        tail: 20,
        ..SqliteOptions::default()
    }
}

#[test]
fn a_file_is_open_in_one_process_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let store = ticks(&folder, SqliteOptions::default());
    let second = TickStore::open(&folder.path().join("x.db"), SqliteOptions::default());
    let what = std::error::Error::source(&second.unwrap_err()).unwrap().to_string();
    assert!(what.contains("has it open"), "{what}");
    store.close().unwrap();
    ticks(&folder, SqliteOptions::default()).close().unwrap();
    assert!(!folder.path().join("x.db-lock").exists());
}

#[test]
fn a_file_that_another_program_keeps_locked_poisons_after_a_while() {
    let folder = tempfile::tempdir().unwrap();
    let store = ticks(&folder, SqliteOptions::default());
    tick(&store, 0);
    let other = rusqlite::Connection::open(folder.path().join("x.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store
        .write_all(&Batch::tick(SeriesId(0), Timestamp(SECOND), &[1.0]))
        .unwrap_err();
    let what = std::error::Error::source(&error).unwrap().to_string();
    assert!(what.contains("keeps it locked"), "{what}");
    other.execute_batch("COMMIT").unwrap();
    assert!(matches!(
        store.flush(Scope::All, tsb_core::Durability::Synced),
        Err(Error::Poisoned { .. })
    ));
    assert!(store.close().is_err());
    drop(store);
    let store = ticks(&folder, SqliteOptions::default());
    assert_eq!(
        store.samples(SeriesId(0), TimeRange::ALL).unwrap(),
        [(Timestamp(0), 0.0)]
    );
}

#[test]
fn newest_does_not_forget_a_head_that_moves_into_chunks_meanwhile() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions {
        tail: 2,
        synchronous: Synchronous::Normal,
        ..SqliteOptions::default()
    };
    let store = ticks(&folder, options);
    for id in 0..10 {
        let _ = store
            .write_all(&Batch::tick(SeriesId(id), Timestamp(0), &[1.0]))
            .unwrap();
    }
    // One batch per series gives each series a lock of its own. One call asks for 20,000 series, so
    // heads rotate and move while it reads them.
    let asked: Vec<_> = (0..20_000).map(|place| SeriesId(place % 10)).collect();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 1..200 {
                for id in 0..10 {
                    let batch = Batch::tick(SeriesId(id), Timestamp(number * SECOND), &[1.0]);
                    let _ = store.write_all(&batch).unwrap();
                }
            }
            is_done.store(true, Ordering::Release);
        });
        let mut newest = vec![None; asked.len()];
        let mut before = Some(Timestamp(0));
        while !is_done.load(Ordering::Acquire) {
            store.newest(&asked, &mut newest).unwrap();
            let oldest = newest.iter().min().copied().flatten();
            assert!(oldest >= before, "{oldest:?} after {before:?}");
            before = oldest;
        }
    });
}

#[test]
fn a_file_reopened_at_any_moment_continues_from_there() {
    let folder = tempfile::tempdir().unwrap();
    let mut number = 0;
    for opening in 0..60 {
        let store = ticks(&folder, short());
        assert_eq!(store.stats().samples, number as u64 * 10, "opening {opening}");
        for _ in 0..=(opening % 9) {
            tick(&store, number);
            number += 1;
        }
        for id in [0, 7] {
            let expected: Vec<_> = (0..number)
                .map(|tick| (Timestamp(tick * SECOND), (tick * 10 + i64::from(id)) as f64 / 100.0))
                .collect();
            assert_eq!(
                store.samples(SeriesId(id), TimeRange::ALL).unwrap(),
                expected,
                "opening {opening}"
            );
        }
        store.close().unwrap();
    }
    assert!(number > 200, "several generations have passed");
}

/// What is written over older generations again and again, at whatever moment the file is
/// closed: what was written last holds, and each timestamp counts once.
#[test]
fn rewritten_samples_win_across_generations_and_openings() {
    let folder = tempfile::tempdir().unwrap();
    let mut expected = vec![std::collections::BTreeMap::new(); 10];
    let mut number = 0;
    for opening in 0..40 {
        let store = ticks(&folder, short());
        for _ in 0..=(opening % 7) {
            tick(&store, number);
            for (id, series) in expected.iter_mut().enumerate() {
                series.insert(number, (number * 10 + id as i64) as f64 / 100.0);
            }
            // Back into the head, the aging generation, and whole ones.
            for (back, first) in [(3, 0), (18, 2), (41, 3), (75, 5)] {
                let Some(at) = number.checked_sub(back).filter(|at| *at >= 0) else {
                    continue;
                };
                let values = [number as f64, -number as f64];
                let again = Batch::tick(SeriesId(first), Timestamp(at * SECOND), &values);
                let _ = store.write_all(&again).unwrap();
                expected[first as usize].insert(at, values[0]);
                expected[first as usize + 1].insert(at, values[1]);
            }
            number += 1;
        }
        let check = |store: &TickStore, when: &str| {
            for (id, series) in expected.iter().enumerate() {
                let samples = store.samples(SeriesId(id as u32), TimeRange::ALL).unwrap();
                let right: Vec<_> = series
                    .iter()
                    .map(|(at, value)| (Timestamp(at * SECOND), *value))
                    .collect();
                assert_eq!(samples, right, "series {id}, {when} opening {opening}");
            }
        };
        check(&store, "in");
        store.close().unwrap();
        let store = ticks(&folder, short());
        check(&store, "after");
        // What lies over an older generation is counted when it has moved there.
        let distinct: u64 = expected.iter().map(|series| series.len() as u64).sum();
        let (held, over) = (store.stats().samples, 8 * 80);
        assert!(
            (distinct..=distinct + over).contains(&held),
            "{held} of {distinct} after {opening}"
        );
        store.close().unwrap();
    }
    assert!(number > 100, "several generations have passed");
}

/// Why a file cannot be opened as a store, having seen that trying leaves it as it was.
fn refusal(path: &Path) -> String {
    let before = std::fs::read(path).unwrap();
    let error = TickStore::open(path, SqliteOptions::default()).unwrap_err();
    assert_eq!(std::fs::read(path).unwrap(), before);
    std::error::Error::source(&error).unwrap().to_string()
}

#[test]
fn a_file_of_another_program_version_or_layout_is_refused_and_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("text"), "no database\n".repeat(999)).unwrap();
    let what = refusal(&path("text"));
    assert!(what.contains("no SQLite database"), "{what}");
    let foreign = rusqlite::Connection::open(path("foreign.db")).unwrap();
    foreign.execute_batch("CREATE TABLE t(a)").unwrap();
    foreign.close().unwrap();
    let what = refusal(&path("foreign.db"));
    assert!(what.contains("another program"), "{what}");
    RowStore::open(&path("rows.db"), SqliteOptions::default())
        .unwrap()
        .close()
        .unwrap();
    let what = refusal(&path("rows.db"));
    assert!(what.contains("layout is rows"), "{what}");
    ticks(&folder, SqliteOptions::default()).close().unwrap();
    let newer = rusqlite::Connection::open(path("x.db")).unwrap();
    newer.execute_batch("PRAGMA user_version=2").unwrap();
    newer.close().unwrap();
    let before = std::fs::read(path("x.db")).unwrap();
    let later = TickStore::open(&path("x.db"), SqliteOptions::default()).unwrap_err();
    assert!(
        matches!(&later, Error::LaterFormat { found, reads, .. } if found == "2" && reads == "1"),
        "{later:?}"
    );
    assert_eq!(std::fs::read(path("x.db")).unwrap(), before);
}

/// Turns a bit in the key of the middle row of each page of chunks; how many there were.
fn damage_keys(path: &Path) -> usize {
    let mut bytes = std::fs::read(path).unwrap();
    let (mut damaged, big) = (0, |bytes: &[u8]| usize::from(u16::from_be_bytes([bytes[0], bytes[1]])));
    for page in bytes.chunks_mut(4096).skip(1) {
        let cells = big(&page[3..]);
        // A leaf of a table, and not that of the tables of a few short rows.
        if page[0] != 13 || !(3..=500).contains(&cells) {
            continue;
        }
        let cell = big(&page[8 + cells / 2 * 2..]);
        let length = page[cell..].iter().position(|byte| *byte < 128).unwrap() + 1;
        let key = &page[cell + length..cell + length + 9];
        // Chunks have keys of five bytes and more.
        if key[..4].iter().all(|byte| *byte > 127) {
            page[cell + length + 1] ^= 32;
            damaged += 1;
        }
    }
    std::fs::write(path, bytes).unwrap();
    damaged
}

#[test]
fn a_damaged_key_hides_a_row_and_checking_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let store = ticks(&folder, short());
    (0..100).for_each(|number| tick(&store, number));
    check(&path).unwrap();
    store.close().unwrap();
    check(&path).unwrap();
    assert!(damage_keys(&path) > 0);
    // Opening reads the log and the tables of series and generations.
    let store = ticks(&folder, short());
    let held = |id| store.samples(SeriesId(id), TimeRange::ALL).unwrap().len();
    let hidden: usize = (0..10).map(|id| 100 - held(id)).sum();
    assert!(hidden > 0);
    let error = check(&path).unwrap_err();
    assert!(
        matches!(&error, Error::Corrupt { what, .. } if what.contains("out of order")),
        "{error:?}"
    );
    store.close().unwrap();
}

#[test]
fn keys_of_many_series_are_written_by_define_and_few_with_the_next_commit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let store = TickStore::open(&path, SqliteOptions::default()).unwrap();
    store.define(&keys(2500)).unwrap();
    let reader = rusqlite::Connection::open(&path).unwrap();
    let count = || -> u32 {
        let counted = reader.query_row("SELECT count(*) FROM series", [], |row| row.get(0));
        counted.unwrap()
    };
    assert_eq!(count(), 2000);
    tick(&store, 0);
    assert_eq!(count(), 2500);
    store.close().unwrap();
}

#[test]
fn the_log_and_the_file_stay_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions {
        checkpoint_bytes: 256 << 10,
        retention_ns: Some(100 * SECOND),
        ..short()
    };
    let store = ticks(&folder, options);
    let mut sizes = Vec::new();
    for number in 0..3000 {
        tick(&store, number);
        if number % 1000 == 999 {
            sizes.push(store.stats().footprint);
        }
    }
    let last = sizes[2];
    assert!(last.total_bytes() < sizes[0].total_bytes() + (64 << 10), "{sizes:?}");
    assert!(last.journal_bytes < 1 << 20, "{sizes:?}");
    assert!(store.stats().expired > 20_000, "{:?}", store.stats());
    assert!(store.samples(SeriesId(0), TimeRange::ALL).unwrap().len() >= 100);
    store.close().unwrap();
}

/// The longest that the write-ahead log's file was while `store` took commits of `series`
/// samples each.
fn longest_log(store: &dyn Store, path: &Path, series: u32, commits: i64) -> u64 {
    store.define(&keys(540)).unwrap();
    let log = path.with_extension("db-wal");
    let mut longest = 0;
    for number in 0..commits {
        let values: Vec<f64> = (0..series).map(|id| f64::from(id) + number as f64 / 3.0).collect();
        let first = SeriesId((number as u32 * series) % 540);
        let _ = store
            .write_all(&Batch::tick(first, Timestamp(number * SECOND / 10), &values))
            .unwrap();
        longest = longest.max(std::fs::metadata(&log).unwrap().len());
    }
    longest
}

#[test]
fn the_write_ahead_log_stays_within_its_bound_however_small_the_commits_are() {
    const BOUND: u64 = 1 << 20;
    let options = SqliteOptions {
        checkpoint_bytes: BOUND,
        tail: 20,
        ..SqliteOptions::default()
    };
    let memory = Path::new("/dev/shm");
    for layout in [Layout::Ticks, Layout::Rows] {
        for (series, commits) in [(1, 1_500), (54, 600)] {
            let folder = tempfile::tempdir_in(if memory.is_dir() { memory } else { Path::new("/tmp") }).unwrap();
            let path = folder.path().join("x.db");
            let store = open(&path, layout, options.clone()).unwrap();
            let longest = longest_log(&*store, &path, series, commits);
            // A page of 4,120 bytes for each sample, and a few for the trees above.
            let one_commit = (u64::from(series) + 12) * 4_120;
            assert!(
                (BOUND / 2..=BOUND + one_commit).contains(&longest),
                "{layout:?}, {series} samples a commit: the log grew to {longest} bytes"
            );
            store.close().unwrap();
        }
    }
}

#[test]
fn sealed_bytes_are_at_least_those_of_the_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let store = ticks(&folder, short());
    for number in 0..1_000 {
        let one = [number as f64 / 7.0];
        let _ = store
            .write_all(&Batch::tick(
                SeriesId(number as u32 % 10),
                Timestamp(number * SECOND),
                &one,
            ))
            .unwrap();
        if number % 20 == 0 {
            let other = rusqlite::Connection::open(folder.path().join("x.db")).unwrap();
            let sum = "SELECT coalesce(sum(length(data)), 0) FROM chunk";
            let bytes: i64 = other.query_row(sum, [], |row| row.get(0)).unwrap();
            let footprint = store.stats().footprint;
            assert!(
                footprint.sealed_bytes >= bytes.unsigned_abs(),
                "{bytes} bytes of chunks after commit {number}, {footprint:?}"
            );
        }
    }
    store.close().unwrap();
}

#[test]
fn a_log_that_a_reader_held_open_starts_over_once_the_reader_is_gone() {
    const BOUND: u64 = 256 << 10;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.db");
    let options = SqliteOptions {
        checkpoint_bytes: BOUND,
        synchronous: Synchronous::Normal,
        ..short()
    };
    let store = ticks(&folder, options);
    tick(&store, 0);
    let reader = rusqlite::Connection::open(&path).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM tick;").unwrap();
    (1..300).for_each(|number| tick(&store, number));
    let held = std::fs::metadata(path.with_extension("db-wal")).unwrap().len();
    assert!(held > 2 * BOUND, "{held} bytes while a reader needs the log");
    reader.execute_batch("COMMIT").unwrap();
    (300..500).for_each(|number| tick(&store, number));
    let free = std::fs::metadata(path.with_extension("db-wal")).unwrap().len();
    assert!(free <= BOUND + (64 << 10), "{free} bytes after it has ended");
    store.close().unwrap();
}

#[test]
fn pending_samples_are_committed_by_the_timer() {
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions {
        commit: Commit::Every(20_000_000),
        ..SqliteOptions::default()
    };
    let store = ticks(&folder, options);
    tick(&store, 0);
    let clock = tsb_core::time::MonotonicClock::new();
    let position = store.durable(tsb_core::Durability::Volatile);
    for _ in 0..500 {
        if store.durable(tsb_core::Durability::Synced) == position {
            break;
        }
        tsb_core::time::Clock::wait_until(&clock, tsb_core::time::Clock::now(&clock) + 10_000_000);
    }
    assert_eq!(store.durable(tsb_core::Durability::Synced), position);
    store.close().unwrap();
}

#[test]
fn mohawks_own_range_excludes_its_start_and_includes_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let store = MohawkStore::open(&folder.path().join("x.db"), SqliteOptions::default()).unwrap();
    store.define(&[(SeriesId(0), SeriesKey::new("example.doc.1"))]).unwrap();
    // The published benchmark: 999 writes, a minute apart, the newest first.
    let t0 = 1_498_595_805_000;
    for number in 1..1000 {
        let at = Timestamp::from_millis(t0 - number * 60_000);
        let _ = store
            .write_all(&Batch::tick(SeriesId(0), at, &[number as f64 / 7.0]))
            .unwrap();
    }
    let mut read = 0;
    for number in 1..1000 {
        let end = t0 - number * 60_000;
        let rows = store.raw(SeriesId(0), end - 90_000, end).unwrap();
        assert_eq!(rows.last().unwrap(), &(end, (number as f64 / 7.0 * 1e6).round() / 1e6));
        read += rows.len();
    }
    assert_eq!(read, 1997);
    let contract = TimeRange {
        start: Timestamp::from_millis(t0 - 120_000),
        end: Timestamp::from_millis(t0 - 60_000),
    };
    assert_eq!(store.samples(SeriesId(0), contract).unwrap().len(), 1);
    store.close().unwrap();
}

#[test]
fn any_sqlite_program_reads_a_file_that_is_being_written() {
    let folder = tempfile::tempdir().unwrap();
    let store = ticks(&folder, short());
    (0..100).for_each(|number| tick(&store, number));
    let other = rusqlite::Connection::open(folder.path().join("x.db")).unwrap();
    let sql = "SELECT count(*), count(DISTINCT labels), min(oldest), sum(bytes) FROM contents WHERE name = 'k'";
    let row = other.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)));
    let (chunks, series, oldest, bytes): (u32, u32, String, u32) = row.unwrap();
    assert!(chunks >= 20 && bytes > chunks * 8, "{chunks} chunks of {bytes} bytes");
    assert_eq!((series, oldest.as_str()), (10, "1970-01-01 00:00:00"));
    store.close().unwrap();
    let rows = RowStore::open(&folder.path().join("rows.db"), SqliteOptions::default()).unwrap();
    rows.define(&keys(10)).unwrap();
    tick(&rows, 3);
    let other = rusqlite::Connection::open(folder.path().join("rows.db")).unwrap();
    let sql = "SELECT value FROM sample JOIN series ON series.number = sample.series \
        WHERE labels ->> 'id' = '4' AND at = 3000000000";
    let value: f64 = other.query_row(sql, [], |row| row.get(0)).unwrap();
    assert!((value - 0.34).abs() < 1e-12, "{value}");
    rows.close().unwrap();
}
