//! Writes hours of a fleet: the steady rate, the size of the file, the worst commit, and
//! reopening.

use std::path::Path;

use tsb_bench::store_driver::{CpuClock, StoreDriver, TickOrder};
use tsb_core::time::{Clock, MonotonicClock, process_cpu_ns};
use tsb_core::workload::{BatchMode, FleetSpec};
use tsb_stores::Store;
use tsb_stores::sqlite::{Commit, TickStore};

use crate::{SECOND, every, fresh, workload};

/// Ten seconds less than three hours, so that nearly an hour is in the tail.
const TICKS: u64 = 3 * 3600 - 10;

pub(crate) fn table(folder: &Path) {
    hours(folder, &FleetSpec::Mix, TICKS);
}

/// Writes `ticks` ticks and prints the steady rate, the size of the file, the worst commit, and
/// reopening.
pub(crate) fn hours(folder: &Path, fleet: &FleetSpec, ticks: u64) {
    let work = workload(fleet.clone(), 54_000, BatchMode::Tick);
    let path = fresh(folder, "hours.db");
    let options = every(Commit::Every(SECOND));
    let store = TickStore::open(&path, options.clone()).expect("a new file");
    store.define(&work.catalog().definitions()).expect("fresh series");
    let mut drive = StoreDriver::new(&work, TickOrder::AsSent, CpuClock::Process);
    let mut steady = (0, 0);
    println!(
        "{fleet}: {:>6} {:>10} {:>10} {:>10}",
        "tick", "CPU-ns", "M/CPU-s", "worst ms"
    );
    let part = 600;
    for tick in (0..ticks).step_by(part as usize) {
        let cost = drive.run(&store, part.min(ticks - tick));
        let each = cost.cpu_ns as f64 / cost.samples as f64;
        println!(
            "{:>12} {each:>10.2} {:>10.1} {:>10.1}",
            tick + part,
            1e3 / each,
            cost.worst_ns as f64 / 1e6
        );
        if tick >= 3600 {
            steady = (steady.0 + cost.cpu_ns, steady.1 + cost.samples);
        }
    }
    if steady.1 > 0 {
        let each = steady.0 as f64 / steady.1 as f64;
        println!(
            "from the first turn on: {each:.2} CPU-ns a sample, {:.1} M a CPU-second",
            1e3 / each
        );
    }
    print_commits(&store);
    let stats = store.stats();
    let foot = stats.footprint;
    println!(
        "sealed {:.3} B a sample on disk ({} samples, {:.1} MB); tail {:.1} MB, free {:.1} MB, write-ahead log {:.1} MB, keys {:.1} MB; all {:.3} B a sample",
        foot.sealed_bytes as f64 / foot.sealed_samples.max(1) as f64,
        foot.sealed_samples,
        foot.sealed_bytes as f64 / 1e6,
        foot.head_bytes as f64 / 1e6,
        foot.free_bytes as f64 / 1e6,
        foot.journal_bytes as f64 / 1e6,
        foot.series_bytes as f64 / 1e6,
        foot.total_bytes() as f64 / stats.samples as f64
    );
    drive.verify(&store);
    store.close().expect("a sound file");
    let clock = MonotonicClock::new();
    let (wall, cpu) = (clock.now(), process_cpu_ns());
    let store = TickStore::open(&path, options).expect("the same file");
    let replayed = stats.samples - foot.sealed_samples;
    println!(
        "reopened with {:.1} M samples of tail in {:.2} s, {:.2} s of CPU ({:.1} ns a sample)",
        replayed as f64 / 1e6,
        (clock.now() - wall) as f64 / 1e9,
        (process_cpu_ns() - cpu) as f64 / 1e9,
        (process_cpu_ns() - cpu) as f64 / replayed as f64
    );
    store.define(&work.catalog().definitions()).expect("the same series");
    assert_eq!(store.stats().samples, stats.samples, "all is there again");
    drive.verify(&store);
    store.close().expect("a sound file");
}

fn print_commits(store: &TickStore) {
    let commits = store.commits();
    println!(
        "{} commits, mean {:.2} ms of wall time; {} checkpoints, the longest {:.1} ms; write-ahead log at most about {:.1} MB",
        commits.count,
        commits.total_ns as f64 / commits.count.max(1) as f64 / 1e6,
        commits.checkpoints,
        commits.worst_checkpoint_ns as f64 / 1e6,
        commits.journal_bytes as f64 / 1e6
    );
    let worst = commits.worst;
    println!(
        "worst commit {:.1} ms: rows {:.1}, sync {:.1}, turn {:.1}, checkpoint {:.1}",
        worst.total_ns as f64 / 1e6,
        worst.rows_ns as f64 / 1e6,
        worst.sync_ns as f64 / 1e6,
        worst.rotation_ns as f64 / 1e6,
        worst.checkpoint_ns as f64 / 1e6
    );
}
