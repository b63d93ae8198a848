//! A cache of files that knows them: nothing is read while that holds, and nothing is damaged
//! when it does not.
//!
//! Each file has a twin, which is updated directly and by nobody else; both must end with the
//! same bytes, whatever happened to the checkpoint and to the file in between.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::borrow::Cow;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use rustix::fs::{Advice, fadvise, syncfs};
use tsb_core::time::{Clock, MonotonicClock};
use tsb_rrd::{Archive, Cf, DataSource, DsKind, Layout, Residency, RrdFile, Session};
use tsb_rrdcached::{FileBounds, FileCache};
use tsb_stores::write_cache::{CheckpointOptions, JournalOptions, SyncPolicy, WriteCacheOptions};

const FILES: usize = 12;
const STEP_S: i64 = 10;
const START_S: i64 = 1_700_000_000;
/// In the environment of a child that is to be killed: where it writes.
const CHILD: &str = "TSB_CHECKPOINT_CHILD";

/// Files with twins, and a place for checkpoint and journal.
struct Fixture {
    folder: PathBuf,
    layout: Layout,
}

impl Fixture {
    fn new(folder: &Path) -> Self {
        let rows = [(1, 1_440), (6, 1_008), (24, 300)];
        let archives = [Cf::Average, Cf::Max].map(|cf| rows.map(|(steps, rows)| Archive::new(cf, 0.5, steps, rows)));
        let sources = ["a", "b"].map(|name| DataSource::new(name, DsKind::Gauge, 600));
        let layout = Layout::new(STEP_S as u64, sources.to_vec(), archives.concat()).unwrap();
        let fixture = Self {
            folder: folder.to_owned(),
            layout,
        };
        for set in ["ours", "twins"] {
            std::fs::create_dir_all(folder.join(set)).unwrap();
            for index in 0..FILES {
                tsb_rrd::create(&fixture.path(set, index), &fixture.layout, START_S, index as u64).unwrap();
            }
        }
        fixture
    }

    fn path(&self, set: &str, index: usize) -> PathBuf {
        self.folder.join(set).join(format!("{index}.rrd"))
    }

    fn checkpoint(&self) -> PathBuf {
        self.folder.join("checkpoint")
    }

    fn open(&self) -> FileCache {
        open(&self.folder)
    }

    /// Somebody else writes to files of a set.
    fn direct(&self, set: &str, indexes: impl Iterator<Item = usize>, ticks: std::ops::RangeInclusive<i64>) {
        let mut session = Session::default();
        for index in indexes {
            for tick in ticks.clone() {
                let file = RrdFile::open(&self.path(set, index)).unwrap();
                let updated = file
                    .update_and_close(&mut session, &[update_text(index, tick)])
                    .unwrap();
                assert!(updated.stopped.is_none(), "{updated:?}");
            }
        }
    }

    /// The twins get what the files have, and all bytes are compared.
    fn compare(&self) {
        let mut session = Session::default();
        let mut newest = |set: &str, index: usize| {
            let file = RrdFile::open(&self.path(set, index)).unwrap();
            (file.newest(&mut session).unwrap().seconds - START_S) / STEP_S
        };
        for index in 0..FILES {
            let (from, to) = (newest("twins", index) + 1, newest("ours", index));
            self.direct("twins", std::iter::once(index), from..=to);
            let bytes = |set: &str| std::fs::read(self.path(set, index)).unwrap();
            assert!(bytes("ours") == bytes("twins"), "file {index} at tick {to}");
        }
    }

    /// Has no file in memory; whether this medium can do that and tell.
    fn drop_page_cache(&self) -> bool {
        let folder = std::fs::File::open(&self.folder).unwrap();
        syncfs(&folder).unwrap();
        let all = (0..FILES).all(|index| {
            let file = std::fs::File::open(self.path("ours", index)).unwrap();
            fadvise(&file, 0, None, Advice::DontNeed).is_ok()
        });
        let is_cold = RrdFile::open(&self.path("twins", 0)).is_ok_and(|twin| {
            // A twin says it, as looking has the page read.
            let file = std::fs::File::open(self.path("twins", 0)).unwrap();
            fadvise(&file, 0, None, Advice::DontNeed).unwrap();
            twin.prefetch_header() == Residency::Cold
        });
        all && is_cold
    }
}

/// All files get the ticks, each flushed.
fn write(cache: &FileCache, ticks: std::ops::RangeInclusive<i64>) {
    let mut session = Session::default();
    for tick in ticks {
        for index in 0..FILES {
            let name = format!("{index}.rrd");
            let taken = cache.update(
                &name,
                std::iter::once(Cow::Owned(update_text(index, tick))),
                &mut session,
            );
            assert_eq!(taken.unwrap().values, 1);
            assert!(cache.flush(&name, &mut session).unwrap());
        }
    }
}

fn open(folder: &Path) -> FileCache {
    let options = WriteCacheOptions {
        timeout_ns: 3_600_000_000_000,
        flush_ns: 100_000_000,
        threads: 1,
        journal: Some(JournalOptions::new(folder.join("journal"), SyncPolicy::None)),
        checkpoint: Some(CheckpointOptions::new(folder.join("checkpoint"))),
        ..WriteCacheOptions::default()
    };
    let clock: Arc<dyn Clock> = Arc::new(MonotonicClock::new());
    FileCache::open(&folder.join("ours"), FileBounds::of_files(1_000), &options, clock).unwrap()
}

fn update_text(index: usize, tick: i64) -> String {
    format!(
        "{}:{}.25:{}",
        START_S + tick * STEP_S,
        tick * 7 % 101,
        (tick + index as i64) % 97
    )
}

/// Bytes that this thread had the medium read.
fn read_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/io").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or_default()
}

#[test]
fn neither_accept_nor_replay_nor_restart_nor_drain_reads_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Fixture::new(folder.path());
    let cache = fixture.open();
    // Long enough that each archive has had a row: its page is known.
    write(&cache, 1..=49);
    cache.close().unwrap();
    assert!(fixture.checkpoint().exists());
    let is_cold = fixture.drop_page_cache();
    let cache = fixture.open();
    let before = read_bytes();
    write(&cache, 50..=73);
    // Rows reach a page that nobody knows: one of 256 does, of each archive.
    let is_little = |before: u64| !is_cold || read_bytes() <= before + 6 * 4_096;
    assert!(is_little(before), "{} bytes after a restart", read_bytes() - before);
    cache.close().unwrap();
    // What waits when it ends goes to the journal, and is replayed by the next life.
    let cache = fixture.open();
    let mut session = Session::default();
    for index in 0..FILES {
        let update = std::iter::once(Cow::Owned(update_text(index, 74)));
        let taken = cache.update(&format!("{index}.rrd"), update, &mut session).unwrap();
        cache.confirm(taken.record.unwrap()).unwrap();
    }
    drop(cache);
    fixture.drop_page_cache();
    let before = read_bytes();
    let cache = fixture.open();
    for index in 0..FILES {
        cache.flush(&format!("{index}.rrd"), &mut session).unwrap();
    }
    assert!(is_little(before), "{} bytes with a replay", read_bytes() - before);
    let account = cache.stats().account;
    assert_eq!((account.replayed, account.pending), (FILES as u64, 0));
    cache.close().unwrap();
    fixture.compare();
}

#[test]
fn a_drain_of_cold_files_without_a_checkpoint_reads_ahead_and_writes_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Fixture::new(folder.path());
    let options = WriteCacheOptions {
        timeout_ns: 3_600_000_000_000,
        threads: 2,
        ..WriteCacheOptions::default()
    };
    let clock = Arc::new(MonotonicClock::new());
    let cache = FileCache::open(
        &folder.path().join("ours"),
        FileBounds::of_files(1_000),
        &options,
        Arc::clone(&clock) as Arc<dyn Clock>,
    );
    let cache = cache.unwrap();
    let mut session = Session::default();
    for tick in (1..=40).step_by(4) {
        for index in 0..FILES {
            let updates = (tick..tick + 4).map(|tick| Cow::Owned(update_text(index, tick)));
            cache.update(&format!("{index}.rrd"), updates, &mut session).unwrap();
        }
        fixture.drop_page_cache();
        cache.start_drain();
        // Who flushes takes what a thread has opened ahead.
        assert!(cache.flush("7.rrd", &mut session).unwrap());
        while cache.stats().account.pending > 0 {
            assert!(clock.now() < 60_000_000_000, "{:?}", cache.stats());
            clock.wait_until(clock.now() + 1_000_000);
        }
    }
    cache.close().unwrap();
    fixture.compare();
}

#[test]
fn a_change_by_another_process_is_noticed_with_and_without_an_entry() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Fixture::new(folder.path());
    let cache = fixture.open();
    write(&cache, 1..=20);
    // While the cache runs, with what it knows in memory.
    fixture.direct("ours", 0..FILES / 2, 21..=23);
    write(&cache, 24..=30);
    cache.close().unwrap();
    // While it does not.
    fixture.direct("ours", 3..FILES, 31..=31);
    std::fs::copy(fixture.path("ours", 5), folder.path().join("copy")).unwrap();
    std::fs::rename(folder.path().join("copy"), fixture.path("ours", 5)).unwrap();
    let cache = fixture.open();
    write(&cache, 32..=40);
    cache.close().unwrap();
    // The twins get what the files got, and in the same order.
    fixture.direct("twins", 0..FILES, 1..=20);
    fixture.direct("twins", 0..FILES / 2, 21..=23);
    fixture.direct("twins", 0..FILES, 24..=30);
    fixture.direct("twins", 3..FILES, 31..=31);
    fixture.direct("twins", 0..FILES, 32..=40);
    fixture.compare();
}

#[test]
fn an_outdated_truncated_or_damaged_checkpoint_does_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Fixture::new(folder.path());
    let cache = fixture.open();
    write(&cache, 1..=10);
    cache.close().unwrap();
    let yesterday = std::fs::read(fixture.checkpoint()).unwrap();
    let mut tick = 10;
    let mut seed = 7_u64;
    for round in 0..30_usize {
        let mut bytes = match round % 3 {
            0 => yesterday.clone(),
            _ => std::fs::read(fixture.checkpoint()).unwrap(),
        };
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let place = (seed >> 33) as usize % bytes.len();
        match round % 3 {
            0 => {}
            1 => bytes.truncate(place),
            _ => bytes[place.max(8)] ^= 0x41,
        }
        std::fs::write(fixture.checkpoint(), bytes).unwrap();
        let cache = fixture.open();
        write(&cache, tick + 1..=tick + 3);
        tick += 3;
        cache.close().unwrap();
        fixture.compare();
    }
    std::fs::write(fixture.checkpoint(), b"somebody's letters").unwrap();
    let options = WriteCacheOptions {
        checkpoint: Some(CheckpointOptions::new(fixture.checkpoint())),
        ..WriteCacheOptions::default()
    };
    let refused = FileCache::open(
        &folder.path().join("ours"),
        FileBounds::of_files(9),
        &options,
        Arc::new(MonotonicClock::new()),
    );
    assert!(refused.is_err(), "it would be overwritten");
}

#[test]
fn after_a_kill_the_checkpoint_matches_the_files_or_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Fixture::new(folder.path());
    let clock = MonotonicClock::new();
    for round in 0..12_u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_child_that_writes", "--nocapture", "--test-threads=1"])
            .env(CHILD, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // Ticks that were acknowledged and flushed; a checkpoint is written every 0.1 s.
        let mut acked = None;
        let until = clock.now() + 40_000_000 + round * 37_000_000;
        while clock.now() < until || acked.is_none() {
            let line = lines.next().unwrap().unwrap();
            // The harness of the child says things, too.
            acked = line
                .strip_prefix("acked ")
                .and_then(|tick| tick.parse::<i64>().ok())
                .or(acked);
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let cache = fixture.open();
        let mut session = Session::default();
        for index in 0..FILES {
            let name = format!("{index}.rrd");
            cache.flush(&name, &mut session).unwrap();
            let newest = cache.last(&name, &mut session).unwrap();
            assert!((newest - START_S) / STEP_S >= acked.unwrap(), "{acked:?}");
        }
        cache.close().unwrap();
        fixture.compare();
    }
}

/// Not a test by itself: writes until it is killed.
#[test]
fn a_child_that_writes() {
    let Some(folder) = std::env::var_os(CHILD) else { return };
    let folder = PathBuf::from(folder);
    let cache = open(&folder);
    let mut session = Session::default();
    let newest = (0..FILES).map(|index| {
        let newest = cache.last(&format!("{index}.rrd"), &mut Session::default());
        (newest.unwrap() - START_S) / STEP_S
    });
    let mut ticks: Vec<i64> = newest.collect();
    let mut output = std::io::stdout();
    loop {
        for (index, tick) in ticks.iter_mut().enumerate() {
            *tick += 1;
            let name = format!("{index}.rrd");
            let update = std::iter::once(Cow::Owned(update_text(index, *tick)));
            let taken = cache.update(&name, update, &mut session).unwrap();
            assert_eq!(taken.values, 1);
            // What is in the file was on record before, with and without a confirmation.
            if *tick % 3 == 0 {
                cache.confirm(taken.record.unwrap()).unwrap();
            } else {
                cache.flush(&name, &mut session).unwrap();
            }
        }
        let least = ticks.iter().min().unwrap();
        writeln!(output, "acked {least}").unwrap();
    }
}
