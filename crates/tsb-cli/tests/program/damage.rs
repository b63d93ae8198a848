//! Damage of a journal, as users of `tsb query` and `tsb verify` meet it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use serde_json::Value;
use tempfile::TempDir;
use tsb_core::time::{Clock, ManualClock, MonotonicClock};
use tsb_core::{Batch, SeriesId, SeriesKey, Timestamp};
use tsb_rrd::{Archive, Cf, DataSource, DsKind, Layout, Session};
use tsb_rrdcached::{FileBounds, FileCache};
use tsb_run::spec::Spec;
use tsb_stores::write_cache::{CheckpointOptions, JournalOptions, SyncPolicy, WriteCache, WriteCacheOptions};
use tsb_stores::{Store, StoreExt};

use crate::output::{output_of, stderr};
use crate::program;

/// A run of one host.
const SMALL: [&str; 9] = [
    "run",
    "--quiet",
    "--no-calibrate",
    "--transport",
    "inproc",
    "--workload",
    "mix",
    "--series",
    "54",
];

const RRD: &str = "step=1s&heartbeat=10s&archives=average:1:600";

/// RRD files behind a write cache with a journal.
struct CachedFiles {
    folder: TempDir,
}

impl CachedFiles {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn files(&self) -> String {
        format!("rrd:{}?{RRD}", self.folder.path().join("files").display())
    }

    fn store(&self) -> String {
        let journal = self.journal();
        format!("write-cache+{}&write-cache.journal={}", self.files(), journal.display())
    }

    fn journal(&self) -> PathBuf {
        self.folder.path().join("journal")
    }

    /// The newest segment; `None` before there is one.
    fn newest_segment(&self) -> Option<PathBuf> {
        let entries = std::fs::read_dir(self.journal()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let segments = paths.filter(|path| path.to_string_lossy().contains("tsb.journal.0"));
        segments.max()
    }

    /// A small run that ends; its report.
    fn run(&self) -> Value {
        let store = self.store();
        let more = [
            "--format",
            "json",
            "--rate",
            "max",
            "--fleet-time",
            "30s",
            "--store",
            &store,
        ];
        let output = output_of(&[&SMALL[..], &more].concat());
        assert!(matches!(output.status.code(), Some(0 | 3)), "{}", stderr(&output));
        std::fs::write(self.folder.path().join("report.json"), &output.stdout).unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Samples of a series of its own, acknowledged as synced and not written to the files.
    fn leave_samples(&self) {
        let inner = self.files().parse::<Spec>().unwrap().open().unwrap();
        let options = WriteCacheOptions {
            journal: Some(JournalOptions::new(self.journal(), SyncPolicy::Group)),
            ..WriteCacheOptions::default()
        };
        let cache = WriteCache::new(inner, &options, Arc::new(ManualClock::new())).unwrap();
        cache.define(&[(SeriesId(0), SeriesKey::new("left"))]).unwrap();
        for second in 0..50 {
            let at = Timestamp::from_secs(1_700_000_000 + second);
            let ack = cache.write_all(&Batch::tick(SeriesId(0), at, &[second as f64]));
            assert_eq!(ack.unwrap().accepted, 1);
        }
    }
}

/// CRC-32 (IEEE), bit by bit.
fn crc32(bytes: &[u8]) -> u32 {
    let step = |sum: u32, _| (sum >> 1) ^ (0xedb8_8320 & (sum & 1).wrapping_neg());
    !bytes
        .iter()
        .fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), step))
}

fn flip(path: &Path, at: usize) -> Vec<u8> {
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at] ^= 8;
    std::fs::write(path, &bytes).unwrap();
    bytes
}

#[test]
fn a_query_says_what_a_flipped_bit_has_cost_and_changes_nothing_of_it() {
    let place = CachedFiles::new();
    place.leave_samples();
    let segment = place.newest_segment().unwrap();
    let length = std::fs::metadata(&segment).unwrap().len() as usize;
    let damaged = flip(&segment, length / 2);
    let query = || output_of(&["query", &place.store(), "--series", "left"]);
    let output = query();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let named = format!("{} is damaged", segment.display());
    assert!(
        said.contains(&named) && said.contains("at most 1 sample is lost"),
        "{said}"
    );
    let rows = String::from_utf8(output.stdout).unwrap();
    assert!(
        rows.lines().count() > 40,
        "what stands behind the damage is there: {rows}"
    );
    // What it held is in the files now, so it is no part of the journal; it is kept as it was.
    let kept = PathBuf::from(format!("{}.damaged", segment.display()));
    assert_eq!(std::fs::read(&kept).unwrap(), damaged);
    let again = query();
    assert!(
        stderr(&again).contains("was kept aside as damaged"),
        "{}",
        stderr(&again)
    );
    assert_eq!((again.status.code(), again.stdout), (Some(0), rows.into_bytes()));
}

#[test]
fn a_verification_says_damage_of_what_it_does_not_read_and_leaves_it() {
    let place = CachedFiles::new();
    place.run();
    place.leave_samples();
    let segment = place.newest_segment().unwrap();
    let length = std::fs::metadata(&segment).unwrap().len() as usize;
    let damaged = flip(&segment, length / 2);
    let report = place.folder.path().join("report.json");
    let output = output_of(&["verify", report.to_str().unwrap(), "--format", "json"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let named = format!("{} is damaged", segment.display());
    assert!(said.contains(&named), "{said}");
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let damage = &result["stores"][0]["damage"][0];
    assert_eq!(
        (&damage["kind"], &damage["samples_at_most"]),
        (&Value::from("unreadable"), &Value::from(1))
    );
    assert!(
        result["stores"][0]["verdict"]["reasons"].to_string().contains(&named),
        "{result}"
    );
    // Nobody asked for that series, so its samples still wait.
    assert_eq!(std::fs::read(&segment).unwrap(), damaged);
}

/// Issue 15: 2,400 samples that were acknowledged as synced, gone without a word.
#[test]
fn a_killed_run_whose_journal_lost_its_head_gives_its_samples_back() {
    let place = CachedFiles::new();
    let store = place.store();
    let more = ["--duration", "10m", "--store", &store];
    let mut child = program::tsb(&SMALL)
        .args(more)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let clock = MonotonicClock::new();
    let holds = |bytes: u64| {
        let is_there = place.journal().join("tsb.journal.marker").exists();
        let segment = if is_there { place.newest_segment() } else { None };
        segment.is_some_and(|path| std::fs::metadata(path).is_ok_and(|segment| segment.len() > bytes))
    };
    while !holds(6_000) && child.try_wait().unwrap().is_none() {
        clock.wait_until(clock.now() + 5_000_000);
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert!(holds(6_000), "{said}");
    let segment = place.newest_segment().unwrap();
    flip(&segment, 3);
    let listed = output_of(&["query", &place.files(), "--list"]);
    let series = String::from_utf8(listed.stdout).unwrap();
    let first = series.lines().next().unwrap();
    let output = output_of(&["query", &place.store(), "--series", first]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "no sample is lost: {said}");
    assert!(
        said.contains("does not begin as a segment does") && said.contains("no sample is lost"),
        "{said}"
    );
}

#[test]
fn a_journal_of_a_later_version_is_bad_usage_and_no_file_is_touched() {
    let place = CachedFiles::new();
    place.leave_samples();
    let segment = place.newest_segment().unwrap();
    let mut bytes = std::fs::read(&segment).unwrap();
    bytes[7] = b'9';
    let sum = crc32(&bytes[..12]);
    bytes[12..16].copy_from_slice(&sum.to_le_bytes());
    std::fs::write(&segment, &bytes).unwrap();
    let names = || std::fs::read_dir(place.journal()).unwrap().count();
    let before = names();
    let output = output_of(&["query", &place.store(), "--series", "left"]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("is of format 9") && said.contains("hint:"), "{said}");
    assert_eq!((std::fs::read(&segment).unwrap(), names()), (bytes, before));
}

/// The journal of a listener of rrdcached's protocol is the same, and its checkpoint is heard
/// of too.
#[test]
fn a_listener_of_files_says_damage_of_its_journal_and_its_checkpoint() {
    let place = CachedFiles::new();
    let folder = place.folder.path().join("files");
    let checkpoint = place.folder.path().join("checkpoint");
    std::fs::create_dir_all(&folder).unwrap();
    let source = DataSource::new("a", DsKind::Gauge, 20);
    let layout = Layout::new(10, vec![source], vec![Archive::new(Cf::Average, 0.5, 1, 10)]).unwrap();
    tsb_rrd::create(&folder.join("a.rrd"), &layout, 1_699_999_999, 1).unwrap();
    let options = WriteCacheOptions {
        journal: Some(JournalOptions::new(place.journal(), SyncPolicy::Group)),
        checkpoint: Some(CheckpointOptions::new(&checkpoint)),
        ..WriteCacheOptions::default()
    };
    let open = || FileCache::open(&folder, FileBounds::of_files(9), &options, Arc::new(ManualClock::new())).unwrap();
    let mut session = Session::default();
    let mut update = |cache: &FileCache, seconds: std::ops::Range<i64>| {
        for second in seconds {
            let reading = std::iter::once(format!("{}:1.5", 1_700_000_000 + second).into());
            let taken = cache.update("a.rrd", reading, &mut session).unwrap();
            cache.confirm(taken.record.unwrap()).unwrap();
        }
    };
    let cache = open();
    update(&cache, 0..5);
    cache.close().unwrap();
    drop(cache);
    let cache = open();
    update(&cache, 5..50);
    drop(cache);
    let segment = place.newest_segment().unwrap();
    let length = std::fs::metadata(&segment).unwrap().len() as usize;
    flip(&segment, length / 2);
    flip(&checkpoint, 100);
    let output = output_of(&[
        "ingest",
        "--listen",
        &format!("rrdcached+unix:{}", place.folder.path().join("s").display()),
        "--store",
        &format!(
            "write-cache+rrd:{}?write-cache.journal={}&write-cache.checkpoint={}",
            folder.display(),
            place.journal().display(),
            checkpoint.display()
        ),
        "--duration",
        "10ms",
        "--format",
        "json",
    ]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    for path in [&segment, &checkpoint] {
        assert!(said.contains(&format!("{} is damaged", path.display())), "{said}");
    }
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    let replayed = result["cache"]["replayed"].as_u64().unwrap();
    assert_eq!(
        (replayed, &result["damage"][0]["samples_at_most"]),
        (44, &Value::from(1)),
        "{result}"
    );
}
