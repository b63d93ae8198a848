//! How fast does a workload generate its values?
//!
//! Rows are what an emitting worker needs (many series, one tick), columns what the audit needs
//! (one series, many ticks). Before timing, the rows of each fleet are compared with its
//! columns. The table gives CPU time of the thread, which other load on the machine affects less
//! than wall time.

#![expect(clippy::expect_used, reason = "a benchmark that cannot set up has nothing to report")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput};
use tsb_core::time::thread_cpu_ns;
use tsb_core::workload::{BatchMode, FleetSpec, Generator, Jitter, Workload, WorkloadSpec};
use tsb_core::{SeriesId, Timestamp};

const SERIES: usize = 54_000;
const BASE: Timestamp = Timestamp::from_secs(1_700_000_000);

fn fleets() -> Vec<(&'static str, WorkloadSpec)> {
    let plain = |fleet| WorkloadSpec {
        series: Some(SERIES),
        ..WorkloadSpec::new(fleet, 1)
    };
    let tick = |fleet| WorkloadSpec {
        batch: BatchMode::Tick,
        ..plain(fleet)
    };
    let mut disordered = plain(FleetSpec::Mix);
    disordered.disorder.late = 0.01;
    disordered.disorder.duplicate = 0.01;
    let jittered = WorkloadSpec {
        jitter: Jitter {
            max_ns: 100_000_000,
            step_ns: 1_000_000,
        },
        ..plain(FleetSpec::Mix)
    };
    vec![
        ("mix/host", plain(FleetSpec::Mix)),
        ("mix/tick", tick(FleetSpec::Mix)),
        ("kstat/host", plain(FleetSpec::Kstat)),
        ("kstat/tick", tick(FleetSpec::Kstat)),
        ("heartbeat/host", plain(FleetSpec::Heartbeat)),
        ("gauges/host", plain(FleetSpec::Gauges)),
        ("counters/host", plain(FleetSpec::Counters)),
        ("mix/host-jitter", jittered),
        ("mix/host-late-duplicate", disordered),
    ]
}

/// One tick of the whole fleet. Returns a sum so that the compiler keeps the work.
fn tick(generator: &mut Generator<'_>, tick: u64) -> usize {
    let mut samples = 0;
    for group in generator.groups() {
        samples += black_box(generator.operation(group, tick)).len();
    }
    samples
}

/// Some series over an hour.
fn columns(workload: &Workload, series: usize) -> usize {
    let mut replay = workload.replay(BASE);
    let mut samples = 0;
    let stride = SERIES / series;
    for id in (0..SERIES).step_by(stride) {
        replay.series(SeriesId(id as u32), 0..3600, &mut |sent| {
            samples += black_box(sent).len();
        });
    }
    samples
}

/// Checks that rows and columns of one series in a thousand are bit-identical.
fn verify(workload: &Workload) {
    let mut generator = workload.generator(0..workload.groups().len(), BASE);
    let mut sent: Vec<Vec<(Timestamp, u64)>> = vec![Vec::new(); workload.catalog().len()];
    for tick in 0..300 {
        for group in generator.groups() {
            for (id, at, value) in generator.operation(group, tick).iter() {
                if id.0 % 1000 == 7 {
                    sent[id.index()].push((at, value.to_bits()));
                }
            }
        }
    }
    let mut replay = workload.replay(BASE);
    for id in (7..SERIES).step_by(1000) {
        let mut again = Vec::new();
        replay.series(SeriesId(id as u32), 0..300, &mut |chunk| {
            again.extend(chunk.iter().map(|(_, at, value, _)| (at, value.to_bits())));
        });
        assert_eq!(sent[id], again, "series {id}");
    }
}

fn bench(criterion: &mut Criterion) {
    for (name, spec) in fleets() {
        let workload = Workload::new(&spec).expect("a fleet of the list");
        verify(&workload);
        let mut generator = workload.generator(0..workload.groups().len(), BASE);
        let mut group = criterion.benchmark_group("workload_generate");
        group.sample_size(10);
        group.throughput(Throughput::Elements(SERIES as u64));
        let mut next = 0;
        group.bench_function(format!("rows/{name}"), |bencher| {
            bencher.iter_batched(
                || {
                    next += 1;
                    next
                },
                |at| tick(&mut generator, at),
                BatchSize::PerIteration,
            );
        });
        group.throughput(Throughput::Elements(columns(&workload, 54) as u64));
        group.bench_function(format!("columns/{name}"), |bencher| {
            bencher.iter(|| columns(&workload, 54));
        });
        group.finish();
    }
}

/// CPU nanoseconds per sample, the best of some rounds.
#[expect(clippy::print_stdout, reason = "the table is this program's result")]
fn table() {
    println!("{:<28}{:>14}{:>14}", "CPU-ns a sample", "rows", "columns");
    for (name, spec) in fleets() {
        let workload = Workload::new(&spec).expect("a fleet of the list");
        let mut generator = workload.generator(0..workload.groups().len(), BASE);
        let (mut rows, mut across) = (f64::INFINITY, f64::INFINITY);
        let mut next = 0;
        for _ in 0..5 {
            let start = thread_cpu_ns();
            let mut samples = 0;
            for _ in 0..40 {
                samples += tick(&mut generator, next);
                next += 1;
            }
            rows = rows.min((thread_cpu_ns() - start) as f64 / samples as f64);
            let start = thread_cpu_ns();
            let samples = columns(&workload, 540);
            across = across.min((thread_cpu_ns() - start) as f64 / samples as f64);
        }
        println!("{name:<28}{rows:>14.2}{across:>14.2}");
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    // `table`: only the CPU times. `cargo test` runs one round of each and no table.
    if std::env::args().any(|argument| argument == "table") {
        table();
        return;
    }
    bench(&mut criterion);
    criterion.final_summary();
    if std::env::args().any(|argument| argument == "--bench") {
        table();
    }
}
