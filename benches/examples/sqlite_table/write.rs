//! Measures write rates: every configuration in turn, over one whole generation after an earlier
//! one, so that moving series into chunks and deleting the log are both included.

use std::path::Path;

use tsb_bench::store_driver::{Cost, CpuClock, StoreDriver, TickOrder};
use tsb_core::workload::{BatchMode, FleetSpec, Jitter, Workload, WorkloadSpec};
use tsb_stores::Store;
use tsb_stores::sqlite::{self, Commit, Layout, SqliteOptions};

use crate::{SECOND, every, fresh, workload};

/// Ticks of a generation: the store's default tail.
const GENERATION: u64 = 3600;
/// Turns per configuration.
const PARTS: u64 = 10;

/// One configuration.
struct WriteCase {
    name: &'static str,
    layout: Layout,
    options: SqliteOptions,
    workload: Workload,
    order: TickOrder,
    /// Ticks before the measurement, and ticks per turn.
    before: u64,
    ticks: u64,
}

impl WriteCase {
    /// The whole fleet, for one generation after the first.
    fn whole(name: &'static str, options: &SqliteOptions, workload: Workload) -> Self {
        Self {
            name,
            layout: Layout::Ticks,
            options: options.clone(),
            workload,
            order: TickOrder::AsSent,
            before: GENERATION,
            ticks: GENERATION / PARTS,
        }
    }

    /// A part of the fleet, for configurations in which one second of the whole fleet takes
    /// minutes.
    fn part(name: &'static str, layout: Layout, series: usize, batch: BatchMode) -> Self {
        Self {
            layout,
            before: 2,
            ticks: 2,
            ..Self::whole(name, &every(Commit::Each), workload(FleetSpec::Mix, series, batch))
        }
    }
}

pub(crate) fn table(folder: &Path) {
    let second = every(Commit::Every(SECOND));
    let mix = |batch| workload(FleetSpec::Mix, 54_000, batch);
    measure(
        folder,
        &[
            WriteCase::whole("ticks commit=1s, tick of 54,000", &second, mix(BatchMode::Tick)),
            WriteCase::whole("ticks commit=1s, host of 54", &second, mix(BatchMode::Host)),
            WriteCase::whole(
                "ticks commit=each, tick of 54,000",
                &every(Commit::Each),
                mix(BatchMode::Tick),
            ),
            WriteCase::part("ticks commit=each, host of 54", Layout::Ticks, 5_400, BatchMode::Host),
            WriteCase::part("rows commit=each, tick of 5,400", Layout::Rows, 5_400, BatchMode::Tick),
            WriteCase::part("mohawk, tick of 10", Layout::Mohawk, 10, BatchMode::Tick),
        ],
    );
}

pub(crate) fn shapes(folder: &Path) {
    let mix = |change: fn(&mut WorkloadSpec)| {
        let mut spec = WorkloadSpec {
            series: Some(5_400),
            batch: BatchMode::Tick,
            ..WorkloadSpec::new(FleetSpec::Mix, 1)
        };
        change(&mut spec);
        Workload::new(&spec).expect("a fleet of the list")
    };
    let second = every(Commit::Every(SECOND));
    let way = |name, change| WriteCase::whole(name, &second, mix(change));
    measure(
        folder,
        &[
            way("tick of 5,400", |_| {}),
            WriteCase {
                order: TickOrder::Shuffled,
                ..way("the same, ids in random order", |_| {})
            },
            way("1 % late", |spec| spec.disorder.late = 0.01),
            way("1 % twice", |spec| spec.disorder.duplicate = 0.01),
            way("1 % out of order", |spec| spec.disorder.out_of_order = 0.01),
            way("1 % missing", |spec| spec.disorder.missing = 0.01),
            way("irregular by up to 100 ms", |spec| {
                spec.jitter = Jitter {
                    max_ns: 100_000_000,
                    step_ns: 1_000_000,
                };
            }),
        ],
    );
}

/// One configuration's store, and the cost of its turns.
struct WriteRun<'w> {
    way: &'w WriteCase,
    store: Box<dyn Store>,
    drive: StoreDriver<'w>,
    parts: Vec<Cost>,
}

fn measure(folder: &Path, ways: &[WriteCase]) {
    let numbered = ways.iter().enumerate();
    let mut courses: Vec<WriteRun<'_>> = numbered.map(|(number, way)| begin(folder, number, way)).collect();
    for _ in 0..PARTS {
        for course in &mut courses {
            let cost = course.drive.run(&course.store, course.way.ticks);
            course.parts.push(cost);
        }
    }
    println!(
        "{:<36}{:>10}{:>10}{:>22}{:>12}",
        "sqlite, mix, synced", "CPU-ns", "M/CPU-s", "parts, CPU-ns", "samples"
    );
    for course in &courses {
        print(course);
        course.drive.verify(&course.store);
        course.store.close().expect("a sound file");
    }
}

fn begin<'w>(folder: &Path, number: usize, way: &'w WriteCase) -> WriteRun<'w> {
    let path = fresh(folder, &format!("write-{number}.db"));
    let store = sqlite::open(&path, way.layout, way.options.clone()).expect("a new file");
    store
        .define(&way.workload.catalog().definitions())
        .expect("fresh series");
    let mut drive = StoreDriver::new(&way.workload, way.order, CpuClock::Process);
    drive.run(&store, way.before);
    WriteRun {
        way,
        store,
        drive,
        parts: Vec::new(),
    }
}

fn print(course: &WriteRun<'_>) {
    let each = |cost: &Cost| cost.cpu_ns as f64 / cost.samples as f64;
    let mut parts: Vec<f64> = course.parts.iter().map(each).collect();
    parts.sort_by(f64::total_cmp);
    let all = course.parts.iter().fold(Cost::default(), |all, part| Cost {
        samples: all.samples + part.samples,
        cpu_ns: all.cpu_ns + part.cpu_ns,
        ..all
    });
    let spread = format!("{:.1}..{:.1}", parts[0], parts[parts.len() - 1]);
    println!(
        "{:<36}{:>10.1}{:>10.4}{spread:>22}{:>12}",
        course.way.name,
        each(&all),
        1e3 / each(&all),
        all.samples
    );
}
