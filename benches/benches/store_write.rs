//! How many samples per CPU-second does a store accept, including sealing?
//!
//! Through the public trait, one thread, the `mix` fleet of 54,000 series, new values in every
//! tick. Batches are made outside the timed region. The figure is the CPU time of the thread,
//! which other load on the machine affects less than wall time. Every case reads some series
//! back and compares them with the workload before it is timed.
//!
//! `cargo bench --bench store_write -- table` prints one table and skips criterion.

#![expect(clippy::expect_used, reason = "a benchmark that cannot set up has nothing to report")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput};
use tsb_bench::store_driver::{CpuClock, StoreDriver, TickOrder};
use tsb_core::workload::{BatchMode, FleetSpec, Jitter, Workload, WorkloadSpec};
use tsb_run::spec;
use tsb_stores::Store;
use tsb_stores::memory::{MemoryOptions, MemoryStore};

const SERIES: usize = 54_000;

/// One row of the table.
struct Case {
    name: &'static str,
    spec: WorkloadSpec,
    order: TickOrder,
    ticks: u64,
}

fn cases() -> Vec<Case> {
    let mix = |batch| WorkloadSpec {
        series: Some(SERIES),
        batch,
        ..WorkloadSpec::new(FleetSpec::Mix, 1)
    };
    let mut disordered = mix(BatchMode::Tick);
    disordered.disorder.late = 0.01;
    disordered.disorder.duplicate = 0.01;
    let jittered = |batch| WorkloadSpec {
        jitter: Jitter {
            max_ns: 100_000_000,
            step_ns: 1_000_000,
        },
        ..mix(batch)
    };
    let kstat = WorkloadSpec {
        fleet: FleetSpec::Kstat,
        ..mix(BatchMode::Tick)
    };
    let case = |name, spec, order, ticks| Case {
        name,
        spec,
        order,
        ticks,
    };
    vec![
        case("tick-54000", mix(BatchMode::Tick), TickOrder::AsSent, 3600),
        case("host-54", mix(BatchMode::Host), TickOrder::AsSent, 3600),
        case("shuffled-54000", mix(BatchMode::Tick), TickOrder::Shuffled, 1200),
        case("late-duplicate-54000", disordered, TickOrder::AsSent, 1200),
        case("jitter-54000", jittered(BatchMode::Tick), TickOrder::AsSent, 1200),
        case("jitter-host-54", jittered(BatchMode::Host), TickOrder::AsSent, 1200),
        case("kstat-tick-54000", kstat, TickOrder::AsSent, 3600),
    ]
}

fn open(workload: &Workload) -> MemoryStore {
    let store = MemoryStore::new(MemoryOptions::default());
    store.define(&workload.catalog().definitions()).expect("fresh series");
    store
}

fn bench(criterion: &mut Criterion) {
    for case in cases() {
        let workload = Workload::new(&case.spec).expect("a fleet of the list");
        let store = open(&workload);
        let mut drive = StoreDriver::new(&workload, case.order, CpuClock::Thread);
        drive.run(&store, 300);
        drive.verify(&store);
        let mut group = criterion.benchmark_group("store_write/memory");
        group.sample_size(10).warm_up_time(Duration::from_millis(200));
        group.throughput(Throughput::Elements(SERIES as u64));
        group.bench_function(case.name, |bencher| {
            bencher.iter_custom(|ticks| Duration::from_nanos(black_box(drive.run(&store, ticks)).cpu_ns));
        });
        group.finish();
    }
}

/// Stores with files, at each durability level and in each layout, in CPU time of the process, each
/// in a folder of its own (`{}`). The layouts `rows` and `mohawk` get a part of the fleet: they are
/// a thousand times slower.
const FILES: &[(&str, &str, usize)] = &[
    ("sqlite@synced-1s/tick-54000", "sqlite:{}/b.db?commit=1s", SERIES),
    ("sqlite@synced-each/tick-54000", "sqlite:{}/b.db?commit=each", SERIES),
    (
        "sqlite@buffered-each/tick-54000",
        "sqlite:{}/b.db?commit=each&synchronous=normal",
        SERIES,
    ),
    ("sqlite-rows@synced-each/tick-2000", "sqlite:{}/b.db?layout=rows", 2000),
    ("sqlite-mohawk@synced-each/tick-10", "sqlite:{}/b.db?layout=mohawk", 10),
    ("mstore@volatile/tick-54000", "mstore:{}/m", SERIES),
    (
        "mstore-round1@volatile/tick-54000",
        "mstore:{}/m?cache=round1&cache_points=100",
        SERIES,
    ),
    ("mstore-off@buffered/tick-2000", "mstore:{}/m?cache=off", 2000),
];

fn bench_files(criterion: &mut Criterion) {
    for (name, spec, series) in FILES {
        let work = WorkloadSpec {
            series: Some(*series),
            batch: BatchMode::Tick,
            ..WorkloadSpec::new(FleetSpec::Mix, 1)
        };
        let workload = Workload::new(&work).expect("a fleet of the list");
        let folder = tempfile::tempdir().expect("a folder");
        let spec = spec.replace("{}", &folder.path().to_string_lossy());
        let store = spec::open(&spec).expect("a new place");
        store.define(&workload.catalog().definitions()).expect("fresh series");
        let mut drive = StoreDriver::new(&workload, TickOrder::AsSent, CpuClock::Process);
        drive.run(&store, 3);
        drive.verify(&store);
        let mut group = criterion.benchmark_group("store_write");
        group.sample_size(10).warm_up_time(Duration::from_millis(200));
        group.throughput(Throughput::Elements(*series as u64));
        group.bench_function(*name, |bencher| {
            bencher.iter_custom(|ticks| Duration::from_nanos(black_box(drive.run(&store, ticks)).cpu_ns));
        });
        group.finish();
        store.close().expect("a sound file");
    }
}

/// Ticks that fill the open rows, in freshly allocated memory, before the steady state.
const WARM_UP: u64 = 300;

/// The figures that `docs` quotes.
#[expect(clippy::print_stdout, reason = "the table is this program's result")]
fn table(only: Option<&str>) {
    println!(
        "{:<22}{:>9}{:>9}{:>8}{:>10}{:>10}{:>10}{:>10}{:>9}",
        "memory, 54,000 series", "ticks", "CPU-ns", "M/s", "first ns", "worst us", "B sealed", "B/sample", "heads MB"
    );
    for case in cases()
        .into_iter()
        .filter(|case| only.is_none_or(|name| case.name.contains(name)))
    {
        let workload = Workload::new(&case.spec).expect("a fleet of the list");
        let store = open(&workload);
        let mut drive = StoreDriver::new(&workload, case.order, CpuClock::Thread);
        let first = drive.run(&store, WARM_UP);
        let cost = drive.run(&store, case.ticks - WARM_UP);
        drive.verify(&store);
        let footprint = store.stats().footprint;
        let each = cost.cpu_ns as f64 / cost.samples as f64;
        println!(
            "{:<22}{:>9}{each:>9.2}{:>8.1}{:>10.2}{:>10}{:>10}{:>10.3}{:>9.1}",
            case.name,
            case.ticks,
            1e3 / each,
            first.cpu_ns as f64 / first.samples as f64,
            cost.worst_ns / 1000,
            footprint.sealed_bytes,
            footprint.sealed_bytes as f64 / footprint.sealed_samples as f64,
            footprint.head_bytes as f64 / 1e6,
        );
    }
}

fn main() {
    let mut arguments = std::env::args().skip_while(|argument| argument != "table");
    if arguments.next().is_some() {
        table(arguments.next().as_deref().filter(|name| !name.starts_with('-')));
        return;
    }
    let mut criterion = Criterion::default().configure_from_args();
    bench(&mut criterion);
    bench_files(&mut criterion);
    criterion.final_summary();
}
