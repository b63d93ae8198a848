//! What conformance cannot know: files, foreign writers, damage.

mod damage;

use std::process::Command;

use tsb_core::time::MonotonicClock;
use tsb_core::{Batch, Ids, SeriesId, SeriesKey, Times, Timestamp};

use super::*;
use crate::store::{ArchiveRule, Consolidation, Derivation, Reason, StoreExt};

fn options() -> RrdOptions {
    RrdOptions {
        step_s: 10,
        heartbeat_s: 30,
        archives: vec![
            ArchiveRule::new(Consolidation::Average, 1, 20),
            ArchiveRule::new(Consolidation::Max, 6, 10),
        ],
        ..RrdOptions::default()
    }
}

fn one_series(folder: &Path, options: RrdOptions) -> RrdStore {
    let store = RrdStore::open(folder, options).unwrap();
    store.define(&[(SeriesId(0), SeriesKey::new("a"))]).unwrap();
    store
}

fn put(store: &RrdStore, seconds: i64, value: f64) -> Option<Reason> {
    let mut refused = Refusals::new();
    let batch = Batch::tick(SeriesId(0), Timestamp::from_secs(seconds), std::slice::from_ref(&value));
    let _ = store.write(&batch, &mut refused).unwrap();
    refused.as_slice().first().map(|refusal| refusal.reason)
}

const START: i64 = 1_700_000_000;

#[test]
fn rows_are_stamped_with_their_end_and_resampled_ones_with_their_start() {
    for is_exclusive in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let store = one_series(
            folder.path(),
            RrdOptions {
                is_exclusive,
                ..options()
            },
        );
        for tick in 0..=12 {
            assert_eq!(put(&store, START + tick * 10, tick as f64), None);
        }
        let rows = store.samples(SeriesId(0), TimeRange::ALL).unwrap();
        // The file started in the last second before the first sample: one second of that step is known.
        let expected: Vec<_> = (1..=12)
            .map(|tick| (Timestamp::from_secs(START + tick * 10), tick as f64))
            .collect();
        assert_eq!(rows, expected);
        let mut newest = [None];
        store.newest(&[SeriesId(0)], &mut newest).unwrap();
        assert_eq!(newest, [Some(Timestamp::from_secs(START + 120))]);
        let per_minute = |consolidation| Resample {
            step_ns: 60 * SECOND_NS,
            consolidation,
        };
        let rows = store
            .rows(SeriesId(0), TimeRange::ALL, Some(per_minute(Consolidation::Max)))
            .unwrap();
        let at = Timestamp::from_secs(START / 60 * 60 + 60);
        assert_eq!(rows.last(), Some(&(at, 10.0)), "{rows:?}");
        let within = TimeRange { start: at, end: at + 1 };
        let one = store
            .rows(SeriesId(0), within, Some(per_minute(Consolidation::Max)))
            .unwrap();
        assert_eq!(one, [(at, 10.0)]);
        let none = store.rows(SeriesId(0), TimeRange::ALL, Some(per_minute(Consolidation::Average)));
        assert!(matches!(none, Err(Error::Unsupported { .. })));
    }
}

#[test]
fn a_batch_with_many_samples_of_a_series_is_one_pass_with_the_refused_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let store = one_series(folder.path(), options());
    let seconds = [0, 10, 10, 5, 20, 30];
    let times = seconds.map(|s| Timestamp::from_secs(START + s));
    let values = [1.0, 2.0, 3.0, 4.0, f64::NAN, 6.0];
    let ids = [SeriesId(0); 6];
    let mut refused = Refusals::new();
    let ack = store
        .write(&Batch::new(Ids::Each(&ids), Times::Each(&times), &values), &mut refused)
        .unwrap();
    assert_eq!((ack.accepted, ack.rejected), (3, 3));
    let reasons: Vec<_> = refused.as_slice().iter().map(|r| (r.index, r.reason)).collect();
    assert_eq!(
        reasons,
        [(2, Reason::Duplicate), (3, Reason::Late), (4, Reason::Unrepresentable)]
    );
    assert_eq!(
        store
            .samples(SeriesId(0), TimeRange::ALL)
            .unwrap()
            .last()
            .map(|row| row.1),
        Some(6.0)
    );
}

#[test]
fn a_sample_that_a_foreign_writer_overtook_is_refused_as_late() {
    let folder = tempfile::tempdir().unwrap();
    let store = one_series(folder.path(), options());
    assert_eq!(put(&store, START, 1.0), None);
    let other = RrdStore::open(folder.path(), options()).unwrap();
    other.define(&[(SeriesId(7), SeriesKey::new("a"))]).unwrap();
    let batch = Batch::tick(SeriesId(7), Timestamp::from_secs(START + 50), &[5.0]);
    let _ = other.write_all(&batch).unwrap();
    assert_eq!(put(&store, START + 20, 2.0), Some(Reason::Late));
    assert_eq!(put(&store, START + 60, 6.0), None);
}

#[test]
fn a_file_that_rrdtool_replaced_is_opened_anew() {
    let folder = tempfile::tempdir().unwrap();
    let store = one_series(folder.path(), options());
    assert_eq!(put(&store, START, 1.0), None);
    let path = folder.path().join("a.rrd");
    let copy = folder.path().join("copy");
    std::fs::copy(&path, &copy).unwrap();
    std::fs::rename(&copy, &path).unwrap();
    assert_eq!(put(&store, START + 10, 2.0), None);
    let again = tsb_rrd::RrdFile::open(&path).unwrap();
    let newest = again.newest(&mut tsb_rrd::Session::default()).unwrap();
    assert_eq!(newest.seconds, START + 10);
}

#[test]
fn a_file_locked_by_another_process_is_waited_for_and_then_an_error() {
    if Command::new("python3").arg("--version").output().is_err() {
        // Locks of one process never exclude each other: this takes a second one.
        assert!(lock_timeout(&MonotonicClock::new())());
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = one_series(folder.path(), options());
    assert_eq!(put(&store, START, 1.0), None);
    let script = "import fcntl,sys\nf=open(sys.argv[1],'r+b')\nfcntl.lockf(f,fcntl.LOCK_EX)\nprint('held',flush=True)\nsys.stdin.read()";
    let mut child = Command::new("python3")
        .args(["-c", script])
        .arg(folder.path().join("a.rrd"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut held = [0; 5];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut held).unwrap();
    let batch = Batch::tick(SeriesId(0), Timestamp::from_secs(START + 10), &[2.0]);
    let error = store.write(&batch, &mut Refusals::new()).unwrap_err();
    assert!(error.to_string().starts_with("cannot lock "), "{error}");
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(put(&store, START + 10, 2.0), None);
    assert_eq!(store.stats().accepted, 2);
}

#[test]
fn a_file_of_another_layout_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let store = one_series(folder.path(), options());
    assert_eq!(put(&store, START, 1.0), None);
    store.close().unwrap();
    let other = RrdStore::open(
        folder.path(),
        RrdOptions {
            step_s: 20,
            ..options()
        },
    )
    .unwrap();
    let error = other.define(&[(SeriesId(0), SeriesKey::new("a"))]).unwrap_err();
    assert!(error.to_string().contains("cannot read "), "{error}");
}

#[test]
fn whole_numbers_only_where_a_counter_needs_them() {
    let folder = tempfile::tempdir().unwrap();
    let store = one_series(
        folder.path(),
        RrdOptions {
            derivation: Derivation::Counter,
            ..options()
        },
    );
    assert_eq!(put(&store, START, 4_294_967_290.0), None);
    assert_eq!(put(&store, START + 10, 4.5), Some(Reason::Unrepresentable));
    // Wrapped at 32 bits: 10 later.
    assert_eq!(put(&store, START + 10, 5.0), None);
    let rows = store.samples(SeriesId(0), TimeRange::ALL).unwrap();
    assert_eq!(rows, [(Timestamp::from_secs(START + 10), 1.0)]);
}

#[test]
fn no_more_files_stay_open_than_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let limited = RrdOptions {
        max_open: 3,
        ..options()
    };
    let store = RrdStore::open(folder.path(), limited).unwrap();
    let series: Vec<_> = (0..10)
        .map(|id| (SeriesId(id), SeriesKey::new(format!("s{id}"))))
        .collect();
    store.define(&series).unwrap();
    for tick in 0..5 {
        let at = Timestamp::from_secs(START + tick * 10);
        let _ = store
            .write_all(&Batch::tick(SeriesId(0), at, &[tick as f64; 10]))
            .unwrap();
    }
    let inside = folder.path().canonicalize().unwrap();
    let links = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let targets = links.filter_map(|link| std::fs::read_link(link.path()).ok());
    let open = targets.filter(|target| target.starts_with(&inside) && target.extension().is_some());
    assert_eq!(open.count(), 3);
    assert_eq!(store.samples(SeriesId(9), TimeRange::ALL).unwrap().len(), 4);
}

/// Has no file of a folder in memory, where the medium can do that.
fn evict(folder: &Path) {
    rustix::fs::syncfs(File::open(folder).unwrap()).unwrap();
    for entry in std::fs::read_dir(folder).unwrap() {
        let file = File::open(entry.unwrap().path()).unwrap();
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).unwrap();
    }
}

#[test]
fn cold_files_of_a_batch_are_read_ahead_and_get_the_same_bytes() {
    let (cold, warm) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // Some descriptors stay open, others are opened ahead.
    let of = |folder: &Path| {
        let options = RrdOptions {
            max_open: 40,
            ..options()
        };
        let store = RrdStore::open(folder, options).unwrap();
        let keys = (0..300).map(|id| (SeriesId(id), SeriesKey::new(format!("s{id}"))));
        store.define(&keys.collect::<Vec<_>>()).unwrap();
        store
    };
    let (chilled, control) = (of(cold.path()), of(warm.path()));
    for tick in 0..8 {
        let values: Vec<f64> = (0..300).map(|id| f64::from(id * 7 + tick)).collect();
        let at = Timestamp::from_secs(START + i64::from(tick) * 10);
        evict(cold.path());
        for store in [&chilled, &control] {
            let ack = store.write_all(&Batch::tick(SeriesId(0), at, &values)).unwrap();
            assert_eq!(ack.accepted, 300);
        }
    }
    for id in 0..300 {
        let read = |folder: &Path| std::fs::read(folder.join(format!("s{id}.rrd"))).unwrap();
        assert!(read(cold.path()) == read(warm.path()), "file {id}");
    }
    // One that cannot be written costs its own sample, and what was opened for it is closed.
    let before = open_files(cold.path());
    std::fs::write(cold.path().join("s150.rrd"), "no RRD file").unwrap();
    evict(cold.path());
    let values = vec![1.0; 300];
    let at = Timestamp::from_secs(START + 100);
    let mut refused = Refusals::new();
    let ack = chilled
        .write(&Batch::tick(SeriesId(0), at, &values), &mut refused)
        .unwrap();
    assert_eq!((ack.accepted, ack.rejected), (299, 1));
    assert!(open_files(cold.path()) <= before);
}

/// Descriptors of this process that lead into a folder.
fn open_files(folder: &Path) -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let open = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    open.filter(|path| path.starts_with(folder)).count()
}
