//! What a run says that a sample cost: parts that add up, threads that are the run's own,
//! bytes of what was verified.

#![expect(clippy::unwrap_used, reason = "a test that cannot set up has failed")]

use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use tsb_cli::args::RunOptions;
use tsb_cli::plan::{Apply, Plan};
use tsb_core::report::{Cost, Run};
use tsb_core::time::thread_cpu_ns;
use tsb_run::spec;
use tsb_run::{Controls, open, run_plan, run_store};
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::{OwnThreads, Result, Stats, Store};

#[path = "support/faulty_store.rs"]
mod faulty_store;
#[path = "support/program.rs"]
mod program;

use faulty_store::{Fault, FaultyStore};

/// A thread of a store's own that works all the time.
#[derive(Debug)]
struct BusyStore {
    threads: OwnThreads,
    stop: Arc<AtomicBool>,
    burnt_ns: Arc<AtomicU64>,
    thread: std::sync::Mutex<Option<JoinHandle<()>>>,
    /// Whether the store says what its threads used.
    says_so: bool,
}

impl BusyStore {
    fn store(says_so: bool) -> Arc<FaultyStore<Self>> {
        let (threads, stop, burnt_ns) = (OwnThreads::new(), Arc::new(AtomicBool::new(false)), Arc::default());
        let (is_over, burnt) = (Arc::clone(&stop), Arc::clone(&burnt_ns));
        let thread = threads.spawn("burns", move || {
            while !is_over.load(Ordering::Relaxed) {
                (0..1_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n));
                AtomicU64::store(&burnt, thread_cpu_ns(), Ordering::Relaxed);
            }
        });
        let busy = Self {
            threads,
            stop,
            burnt_ns,
            thread: std::sync::Mutex::new(Some(thread.unwrap())),
            says_so,
        };
        FaultyStore::new(MemoryStore::new(MemoryOptions::default()), busy)
    }
}

impl Fault for BusyStore {
    fn stats(&self, inner: &dyn Store) -> Stats {
        let stats = inner.stats();
        if self.says_so {
            stats.with_threads(&self.threads)
        } else {
            stats
        }
    }
    fn close(&self, inner: &dyn Store) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.lock().unwrap().take() {
            thread.join().unwrap();
        }
        inner.close()
    }
}

/// Runs half a second of a small fleet.
fn run(store: &Arc<dyn Store>, transport: &str, rate: &str) -> Run {
    let options = RunOptions {
        workload: Some("mix".to_owned()),
        series: Some("2160".to_owned()),
        rate: Some(rate.to_owned()),
        duration: Some("700ms".to_owned()),
        transport: Some(transport.to_owned()),
        no_calibrate: Some(true),
        ..RunOptions::default()
    };
    let mut plan = Plan::default();
    plan.apply(&options).unwrap();
    let controls = Controls::default();
    run_store(&plan.complete().unwrap(), store, &controls).unwrap().run
}

fn memory() -> Arc<dyn Store> {
    Arc::from(spec::open("memory:").unwrap())
}

/// All parts of a run, in CPU time of the whole run.
fn parts(cost: &Cost) -> f64 {
    let parts = [
        cost.generator_cpu_ns_per_sample,
        cost.pacing_cpu_ns_per_sample,
        cost.wire_cpu_ns_per_sample,
        cost.store_cpu_ns_per_sample,
        cost.store_threads_cpu_ns_per_sample,
        cost.store_flush_cpu_ns_per_sample,
        cost.store_newest_cpu_ns_per_sample,
        cost.watching_cpu_ns_per_sample,
    ];
    parts.iter().flatten().sum()
}

#[test]
fn parts_add_up_to_their_sum_and_stay_within_the_process() {
    for (transport, rate) in [("inproc", "540k"), ("inproc", "max"), ("tcp", "540k"), ("udp", "54k")] {
        let cost = run(&memory(), transport, rate).cost;
        let (sum, process) = (
            cost.parts_cpu_ns_per_sample.unwrap(),
            cost.process_cpu_ns_per_sample.unwrap(),
        );
        let unseen = cost.store_cpu_below.map_or(0.0, |below| below.ns_per_sample);
        assert!(
            (parts(&cost) - sum).abs() <= unseen + sum * 1e-9,
            "{transport} {rate}: {cost:?}"
        );
        // Other tests of this process work beside it; what the run says is its own is not more.
        assert!(sum <= process * 1.03, "{transport} {rate}: {cost:?}");
        assert_eq!(cost.wire_cpu_ns_per_sample.is_some(), transport != "inproc");
    }
}

#[test]
fn waiting_until_samples_are_due_is_not_generating() {
    // Some 700 operations: of a few dozen, the beginning of the thread is most of generating.
    let cost = run(&memory(), "inproc", "54k").cost;
    let (waiting, generating) = (
        cost.pacing_cpu_ns_per_sample.unwrap(),
        cost.generator_cpu_ns_per_sample.unwrap(),
    );
    assert!(waiting > generating, "{cost:?}");
}

#[test]
fn a_store_is_charged_for_its_own_threads() {
    let busy = BusyStore::store(true);
    let before_ns = busy.fault.burnt_ns.load(Ordering::Relaxed);
    let store: Arc<dyn Store> = Arc::clone(&busy) as Arc<dyn Store>;
    let finished = run(&store, "inproc", "216k");
    let burnt_ns = (busy.fault.burnt_ns.load(Ordering::Relaxed) - before_ns) as f64;
    let accepted = finished.ledger.counts.count(tsb_core::ledger::Counter::Accepted);
    let charged_ns = finished.cost.store_threads_cpu_ns_per_sample.unwrap() * accepted as f64;
    store.close().unwrap();
    // The run sees the middle of what it burnt; starting and reading back are outside.
    assert!(
        charged_ns > 10e6 && charged_ns <= burnt_ns * 1.05,
        "{charged_ns} of {burnt_ns}"
    );
    assert!(finished.cost.parts_cpu_ns_per_sample > finished.cost.store_threads_cpu_ns_per_sample);
}

#[test]
fn a_note_says_that_unreported_store_threads_are_in_no_part() {
    let busy = BusyStore::store(false);
    let store: Arc<dyn Store> = Arc::clone(&busy) as Arc<dyn Store>;
    let run = run(&store, "inproc", "216k");
    store.close().unwrap();
    assert_eq!(run.cost.store_threads_cpu_ns_per_sample, None);
    let said = |note: &&String| note.contains("in none of the parts") && note.contains("own_cpu_ns");
    assert!(run.notes.iter().any(|note| said(&note)), "{:?}", run.notes);
}

#[test]
fn the_text_says_that_the_null_store_keeps_nothing() {
    let report = |store: &str| {
        let arguments = "run --quiet --no-calibrate --transport inproc --series 540 --interval 1s --rate max";
        let arguments: Vec<&str> = arguments.split(' ').collect();
        let mut command = program::tsb(&arguments);
        let output = command
            .args(["--fleet-time", "100s", "--store", store])
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let text = report("null:");
    let bytes = text
        .lines()
        .find(|line| line.trim_start().starts_with("bytes"))
        .unwrap();
    assert!(bytes.contains("the store keeps nothing"), "{text}");
    // A hundred ticks are in open heads, all of them.
    let text = report("memory:");
    assert!(!text.contains("sealed so far (0 %"), "{text}");
}

#[test]
fn two_runs_in_one_process_do_not_see_each_others_threads() {
    let (one, other) = std::thread::scope(|threads| {
        let busy = threads.spawn(|| {
            let store: Arc<dyn Store> = BusyStore::store(true);
            let run = run(&store, "tcp", "216k");
            store.close().unwrap();
            run
        });
        let plain = threads.spawn(|| run(&memory(), "tcp", "216k"));
        (busy.join().unwrap(), plain.join().unwrap())
    });
    assert!(one.cost.store_threads_cpu_ns_per_sample > Some(10.0), "{:?}", one.cost);
    assert_eq!(other.cost.store_threads_cpu_ns_per_sample, None);
    // The one that burns is within the process of the other, and in none of its parts.
    let (sum, process) = (
        other.cost.parts_cpu_ns_per_sample.unwrap(),
        other.cost.process_cpu_ns_per_sample.unwrap(),
    );
    assert!(
        sum + one.cost.store_threads_cpu_ns_per_sample.unwrap() * 0.5 < process,
        "{:?}",
        other.cost
    );
}

#[test]
fn bytes_are_of_what_was_verified_and_blocks_are_of_the_file_system() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("x.db");
    let store: Arc<dyn Store> = Arc::from(spec::open(&format!("sqlite:{}", place.display())).unwrap());
    let finished = run(&store, "inproc", "216k");
    let files = std::fs::read_dir(folder.path()).unwrap();
    let blocks: u64 = files.map(|file| file.unwrap().metadata().unwrap().blocks()).sum();
    store.close().unwrap();
    let verified = finished.ledger.counts.count(tsb_core::ledger::Counter::Verified) as f64;
    let size = finished.size.unwrap();
    let each = finished.cost.disk_bytes_per_sample.unwrap();
    assert!((each * verified - size.disk_bytes.unwrap() as f64).abs() < 1.0);
    assert_eq!(size.disk_bytes, Some(blocks * 512));
}

/// Runs a small fleet at its own rate into the store of a spec, by name.
fn run_into(spec: &str) -> Run {
    let options = RunOptions {
        store: vec![spec.into()],
        workload: Some("mix".to_owned()),
        series: Some("2160".to_owned()),
        duration: Some("500ms".to_owned()),
        transport: Some("inproc".to_owned()),
        no_calibrate: Some(true),
        ..RunOptions::default()
    };
    let mut plan = Plan::default();
    plan.apply(&options).unwrap();
    let controls = Controls::default();
    run_plan(&plan.complete().unwrap(), &controls, &open).unwrap().run
}

#[test]
fn a_projection_goes_around_what_slows_the_store_down() {
    // At this rate the hours of fleet time that are projected from would take a quarter of
    // an hour.
    let cost = run_into("throttle+memory:?throttle.rate=20k").cost;
    let why = cost.projection_absent.clone();
    let projection = cost.projection.unwrap_or_else(|| panic!("{why:?}"));
    assert!(projection.week_bytes == 7.0 * projection.day_bytes && projection.day_bytes > 0.0);
    assert!(projection.basis.contains("of the series"), "{projection:?}");
    assert_eq!(cost.projection_absent, None);
}

#[test]
fn where_too_little_was_sealed_nothing_is_projected_and_the_report_says_why() {
    let cost = run_into("memory:?max_bytes=1MiB").cost;
    assert!(cost.projection.is_none());
    let why = cost.projection_absent.unwrap();
    assert!(why.contains("too few to project from"), "{why}");
}
