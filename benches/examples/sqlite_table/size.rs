//! Compares sealed bytes on disk with those of the memory store for the same samples.

use std::path::{Path, PathBuf};

use tsb_bench::store_driver::{CpuClock, StoreDriver, TickOrder};
use tsb_core::workload::{BatchMode, FleetSpec, TraceSource, Workload, WorkloadSpec};
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::sqlite::{Commit, TickStore};
use tsb_stores::{Footprint, Store};

use crate::{SECOND, every, fresh, workload};

/// Ticks between two checks of how much has been sealed.
const STEP: u64 = 300;
/// A generation counts as sealed when this many checks in a row see no progress: many series of
/// a trace are silent most of the time.
const STILL: u32 = 5;

pub(crate) fn table(folder: &Path) {
    println!(
        "{:<16}{:>8}{:>8}{:>12}{:>12}{:>8}{:>10}{:>10}{:>10}{:>10}",
        "bytes a sample", "series", "ticks", "memory", "sqlite", "ratio", "tail", "free", "wal", "file"
    );
    for (name, fleet) in [("mix", FleetSpec::Mix), ("kstat", FleetSpec::Kstat)] {
        row(folder, name, &workload(fleet, 5_400, BatchMode::Tick));
    }
    let source = TraceSource {
        path: PathBuf::from("fixtures/traces/busy-build.tsbtrace"),
        ..TraceSource::default()
    };
    let spec = WorkloadSpec {
        batch: BatchMode::Tick,
        ..WorkloadSpec::new(FleetSpec::Trace(source), 1)
    };
    let trace = Workload::new(&spec).expect("the trace; run this in the root of the workspace");
    row(folder, "busy-build", &trace);
}

fn row(folder: &Path, name: &str, workload: &Workload) {
    let path = fresh(folder, "size.db");
    let store = TickStore::open(&path, every(Commit::Every(SECOND))).expect("a new file");
    let mut drive = begun(&store, workload);
    let mut ticks = 0;
    let (mut moved, mut still) = (0, 0);
    while moved == 0 || still < STILL {
        drive.run(&store, STEP);
        ticks += STEP;
        let now = store.stats().footprint.sealed_samples;
        still = if now == moved { still + 1 } else { 0 };
        moved = now;
    }
    drive.verify(&store);
    let (foot, samples) = (store.stats().footprint, store.stats().samples);
    store.close().expect("a sound file");
    let memory = MemoryStore::new(MemoryOptions::default());
    let mut drive = begun(&memory, workload);
    drive.run(&memory, ticks);
    drive.verify(&memory);
    let (plain, sealed) = (each(&memory.stats().footprint), each(&foot));
    let of_all = |bytes: u64| bytes as f64 / samples as f64;
    println!(
        "{name:<16}{:>8}{ticks:>8}{plain:>12.3}{sealed:>12.3}{:>8.2}{:>10.3}{:>10.3}{:>10.3}{:>10.3}",
        workload.catalog().len(),
        sealed / plain,
        of_all(foot.head_bytes),
        of_all(foot.free_bytes),
        of_all(foot.journal_bytes),
        of_all(foot.total_bytes()),
    );
}

fn each(foot: &Footprint) -> f64 {
    foot.sealed_bytes as f64 / foot.sealed_samples.max(1) as f64
}

fn begun<'w>(store: &dyn Store, workload: &'w Workload) -> StoreDriver<'w> {
    store.define(&workload.catalog().definitions()).expect("fresh series");
    StoreDriver::new(workload, TickOrder::AsSent, CpuClock::Process)
}
