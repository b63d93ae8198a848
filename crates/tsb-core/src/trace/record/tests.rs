//! The recorder on a made-up `/proc`, in virtual time, and once on the real one.

use std::fs;
use std::path::Path;

use super::*;
use crate::time::{ManualClock, Timestamp};
use crate::trace::{Limits, Trace};

fn put(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn process(root: &Path, pid: u32, comm: &str, ticks: u64) {
    let stat = format!("{pid} ({comm}) S 1 1 1 0 -1 0 1 0 1 0 {ticks} 0 0 0 20 0 1 0 {pid} 4096 1 0");
    put(root, &format!("{pid}/stat"), &stat);
    put(root, &format!("{pid}/io"), "rchar: 3\n");
    put(root, &format!("{pid}/status"), "Name: x\nVmSwap: 0 kB\n");
}

fn options(root: &Path) -> RecordOptions {
    RecordOptions {
        duration_ns: Some(3 * SECOND_NS),
        root: root.to_owned(),
        ..RecordOptions::default()
    }
}

fn run(options: &RecordOptions) -> (RecordSummary, Trace) {
    let mut bytes = Vec::new();
    let summary = record(options, &ManualClock::new(), &mut bytes, &AtomicBool::new(false)).unwrap();
    assert_eq!(summary.totals.bytes, bytes.len() as u64);
    (summary, Trace::read(&bytes[..], Limits::default()).unwrap())
}

fn values<'a>(trace: &'a Trace, key: &str) -> Option<&'a [f64]> {
    let index = trace.keys.iter().position(|known| known.to_string() == key)?;
    Some(trace.columns[index].values())
}

#[test]
fn ticks_are_due_at_absolute_times() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "stat", "ctxt 5\n");
    let (summary, trace) = run(&options(root.path()));
    assert_eq!((summary.ticks, summary.missed_ticks, summary.lag_ns_max), (3, 0, 0));
    assert_eq!(values(&trace, "context_switches"), Some(&[5.0; 3][..]));
    assert_eq!(
        trace.columns[0].times(),
        [Timestamp(0), Timestamp::from_secs(1), Timestamp::from_secs(2)]
    );
    assert_eq!(trace.notes["interval_ns"], "1000000000");
}

#[test]
fn unreadable_values_are_counted_and_named() {
    let root = tempfile::tempdir().unwrap();
    put(
        root.path(),
        "stat",
        "ctxt 9007199254740993\nprocesses x\nprocs_running 1\n",
    );
    let (summary, trace) = run(&RecordOptions {
        processes: Processes::Pids(vec![7]),
        ..options(root.path())
    });
    assert_eq!(summary.problems.kinds["an integer beyond 2^53"], 3);
    assert_eq!(summary.problems.kinds["a field that is not a number"], 3);
    assert_eq!(summary.problems.kinds["a file that cannot be read"], 8 * 3);
    assert_eq!(summary.problems.kinds["a process ended before it was read"], 3);
    assert_eq!(
        summary.problems.named[0].to_string(),
        "tick 0: an integer beyond 2^53: context_switches 9007199254740993"
    );
    assert_eq!(trace.samples(), 3);
}

#[test]
fn the_busiest_processes_are_followed_and_names_filtered() {
    let root = tempfile::tempdir().unwrap();
    for (pid, comm, ticks) in [
        (1, "idle", 0),
        (2, "rustc", 900),
        (3, "cargo", 50),
        (4, "private", 9999),
    ] {
        process(root.path(), pid, comm, ticks);
    }
    let (_, trace) = run(&RecordOptions {
        processes: Processes::Top(2),
        names: vec!["rust".to_owned(), "car".to_owned(), "idle".to_owned()],
        ..options(root.path())
    });
    assert!(values(&trace, "process_user_ticks{comm=rustc,pid=2}").is_some());
    assert!(values(&trace, "process_user_ticks{comm=cargo,pid=3}").is_some());
    assert!(!trace.keys.iter().any(|key| key.to_string().contains("idle")));
    assert!(!trace.keys.iter().any(|key| key.to_string().contains("private")));
    assert_eq!(
        values(&trace, "process_swap_kib{comm=rustc,pid=2}"),
        Some(&[0.0; 3][..])
    );
}

#[test]
fn a_process_that_ends_makes_room_and_its_series_just_stop() {
    let root = tempfile::tempdir().unwrap();
    process(root.path(), 2, "first", 10);
    process(root.path(), 3, "second", 5);
    let clock = ManualClock::new();
    let mut bytes = Vec::new();
    let mut recorder = MachineRecorder::new(
        &RecordOptions {
            processes: Processes::Top(1),
            ..options(root.path())
        },
        &mut bytes,
    )
    .unwrap();
    recorder.tick(&clock).unwrap();
    fs::remove_dir_all(root.path().join("2")).unwrap();
    clock.advance(SECOND_NS);
    recorder.tick(&clock).unwrap();
    recorder.finish().unwrap();
    let trace = Trace::read(&bytes[..], Limits::default()).unwrap();
    assert_eq!(
        values(&trace, "process_user_ticks{comm=first,pid=2}"),
        Some(&[10.0][..])
    );
    assert_eq!(
        values(&trace, "process_user_ticks{comm=second,pid=3}"),
        Some(&[5.0][..])
    );
}

#[test]
fn an_idle_process_gives_its_place_to_a_busy_one_after_a_while() {
    let root = tempfile::tempdir().unwrap();
    process(root.path(), 2, "idle", 10);
    let clock = ManualClock::new();
    let mut bytes = Vec::new();
    let one = RecordOptions {
        processes: Processes::Top(1),
        ..options(root.path())
    };
    let mut recorder = MachineRecorder::new(&one, &mut bytes).unwrap();
    for tick in 0..40 {
        process(root.path(), 3, "busy", 5 * tick);
        recorder.tick(&clock).unwrap();
        clock.advance(SECOND_NS);
    }
    recorder.finish().unwrap();
    let trace = Trace::read(&bytes[..], Limits::default()).unwrap();
    assert_eq!(
        values(&trace, "process_user_ticks{comm=idle,pid=2}").map(<[f64]>::len),
        Some(30)
    );
    assert_eq!(
        values(&trace, "process_user_ticks{comm=busy,pid=3}").map(<[f64]>::len),
        Some(10)
    );
}

#[test]
fn a_process_is_taken_up_at_its_second_tick() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "stat", "ctxt 5\n");
    let clock = ManualClock::new();
    let mut bytes = Vec::new();
    let mut recorder = MachineRecorder::new(&options(root.path()), &mut bytes).unwrap();
    recorder.tick(&clock).unwrap();
    process(root.path(), 2, "short", 10);
    process(root.path(), 3, "long", 1);
    recorder.tick(&clock).unwrap();
    fs::remove_dir_all(root.path().join("2")).unwrap();
    recorder.tick(&clock).unwrap();
    recorder.finish().unwrap();
    let trace = Trace::read(&bytes[..], Limits::default()).unwrap();
    assert_eq!(values(&trace, "process_user_ticks{comm=short,pid=2}"), None);
    assert_eq!(values(&trace, "process_user_ticks{comm=long,pid=3}"), Some(&[1.0][..]));
}

#[test]
fn series_beyond_the_limit_are_left_out_and_counted() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "vmstat", "a 1\nb 2\nc 3\n");
    let (summary, trace) = run(&RecordOptions {
        max_series: 2,
        ..options(root.path())
    });
    assert_eq!(trace.keys.len(), 2);
    assert_eq!(
        summary.problems.kinds["a sample of a series beyond the limit of series"],
        3
    );
}

#[test]
fn a_recording_that_is_told_to_stop_ends_whole() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "stat", "ctxt 5\n");
    let mut bytes = Vec::new();
    let stop = AtomicBool::new(true);
    let forever = RecordOptions {
        duration_ns: None,
        ..options(root.path())
    };
    let summary = record(&forever, &ManualClock::new(), &mut bytes, &stop).unwrap();
    assert_eq!(summary.ticks, 0);
    assert!(Trace::read(&bytes[..], Limits::default()).unwrap().problems.is_empty());
}

#[test]
fn an_interval_that_would_measure_itself_is_refused() {
    let short = RecordOptions {
        interval_ns: 1_000_000,
        ..RecordOptions::default()
    };
    let error = MachineRecorder::new(&short, Vec::new()).unwrap_err();
    assert!(error.to_string().contains("at least 10 ms"), "{error}");
}

/// A clock that lets each look at the time take longer than the interval.
#[derive(Debug)]
struct SlowClock(ManualClock);

impl Clock for SlowClock {
    fn now(&self) -> u64 {
        self.0.now()
    }

    fn wall(&self) -> Timestamp {
        self.0.advance(SECOND_NS * 5 / 2);
        self.0.wall()
    }

    fn wait_until(&self, due: u64) {
        self.0.wait_until(due);
    }
}

#[test]
fn a_slow_tick_does_not_shift_the_next_and_the_missed_are_counted() {
    let root = tempfile::tempdir().unwrap();
    put(root.path(), "stat", "ctxt 5\n");
    let ten = RecordOptions {
        duration_ns: Some(10 * SECOND_NS),
        ..options(root.path())
    };
    let mut bytes = Vec::new();
    let clock = SlowClock(ManualClock::new());
    let summary = record(&ten, &clock, &mut bytes, &AtomicBool::new(false)).unwrap();
    assert_eq!(summary.ticks + summary.missed_ticks, 10);
    assert!(summary.missed_ticks >= 5, "{summary:?}");
    assert!(summary.lag_ns_max < SECOND_NS);
}

#[test]
#[cfg(target_os = "linux")]
fn this_machine_can_be_recorded() {
    let own = RecordOptions {
        processes: Processes::Pids(vec![std::process::id()]),
        root: PathBuf::from("/proc"),
        ..options(Path::new(""))
    };
    let (summary, trace) = run(&own);
    assert_eq!(summary.ticks, 3);
    assert!(trace.keys.iter().any(|key| key.name() == "process_user_ticks"));
    assert!(trace.keys.iter().any(|key| key.name() == "context_switches"));
    assert!(trace.samples() > 150);
}
