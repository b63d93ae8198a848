//! How many samples a CPU-second does a store take, sealing included?
//!
//! Through the public trait, one thread, the `mix` fleet of 54,000 series, every value
//! fresh. Batches are made outside the measured region; what is measured is the thread's
//! CPU time, which a busy machine does not spoil as it does wall time. Every case reads
//! some of its series back and compares them with the workload before it is timed.
//!
//! `cargo bench --bench store_write -- table` prints one table and skips criterion.

use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, Throughput};
use tsb_core::time::thread_cpu_ns;
use tsb_core::workload::{BatchMode, FleetSpec, Jitter, Workload, WorkloadSpec};
use tsb_core::{Batch, Ids, SeriesId, Times, Timestamp};
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::{Refusals, Store, StoreExt, TimeRange};

const SERIES: usize = 54_000;
const BASE: Timestamp = Timestamp::from_secs(1_700_000_000);
/// One series in so many is read back.
const VERIFIED: usize = 997;

/// How batches lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    AsSent,
    Shuffled,
}

/// One row of the table.
struct Case {
    name: &'static str,
    spec: WorkloadSpec,
    order: Order,
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
        case("tick-54000", mix(BatchMode::Tick), Order::AsSent, 3600),
        case("host-54", mix(BatchMode::Host), Order::AsSent, 3600),
        case("shuffled-54000", mix(BatchMode::Tick), Order::Shuffled, 1200),
        case("late-duplicate-54000", disordered, Order::AsSent, 1200),
        case("jitter-54000", jittered(BatchMode::Tick), Order::AsSent, 1200),
        case("jitter-host-54", jittered(BatchMode::Host), Order::AsSent, 1200),
        case("kstat-tick-54000", kstat, Order::AsSent, 3600),
    ]
}

/// A batch that owns its columns, in the shape in which the workload made it.
#[derive(Debug, Default)]
struct Owned {
    range: Option<SeriesId>,
    one: Option<Timestamp>,
    ids: Vec<SeriesId>,
    times: Vec<Timestamp>,
    values: Vec<f64>,
}

impl Owned {
    fn copy(&mut self, batch: &Batch<'_>) {
        self.ids.clear();
        self.times.clear();
        self.values.clear();
        self.values.extend_from_slice(batch.values());
        (self.range, self.one) = (None, None);
        match batch.ids() {
            Ids::Range(first) => self.range = Some(first),
            Ids::Each(ids) => self.ids.extend_from_slice(ids),
        }
        match batch.times() {
            Times::One(at) => self.one = Some(at),
            Times::Each(times) => self.times.extend_from_slice(times),
        }
    }

    /// Puts a tick of a range in the order of `ids`.
    fn shuffle(&mut self, ids: &[SeriesId]) {
        let first = self.range.take().expect("a tick of a range").0;
        let dense = std::mem::take(&mut self.values);
        self.values.extend(ids.iter().map(|id| dense[(id.0 - first) as usize]));
        self.ids.extend_from_slice(ids);
    }

    fn batch(&self) -> Batch<'_> {
        let ids = self.range.map_or(Ids::Each(&self.ids), Ids::Range);
        let times = self.one.map_or(Times::Each(&self.times), Times::One);
        Batch::new(ids, times, &self.values)
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
fn mixed(index: u64) -> u64 {
    let mut x = index.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// Some orders of all ids; a tick takes one after the other.
fn orders() -> Vec<Vec<SeriesId>> {
    let order = |seed: u64| {
        let mut ids: Vec<SeriesId> = (0..SERIES as u32).map(SeriesId).collect();
        for index in (1..ids.len()).rev() {
            let other = mixed(seed << 32 | index as u64) % (index as u64 + 1);
            ids.swap(index, other as usize);
        }
        ids
    };
    (0..5).map(order).collect()
}

/// What writing some ticks has cost.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    samples: u64,
    cpu_ns: u64,
    /// The dearest tick (of as many batches as it has).
    worst_ns: u64,
}

/// Writes ticks, timing only the store.
struct Drive<'w> {
    workload: &'w Workload,
    generator: tsb_core::workload::Generator<'w>,
    order: Order,
    orders: Vec<Vec<SeriesId>>,
    batches: Vec<Owned>,
    refused: Refusals,
    tick: u64,
}

impl<'w> Drive<'w> {
    fn new(workload: &'w Workload, order: Order) -> Self {
        let mut batches = Vec::new();
        batches.resize_with(workload.groups().len(), Owned::default);
        Self {
            workload,
            generator: workload.generator(0..workload.groups().len(), BASE),
            order,
            orders: orders(),
            batches,
            refused: Refusals::new(),
            tick: 0,
        }
    }

    fn run(&mut self, store: &dyn Store, ticks: u64) -> Cost {
        let mut cost = Cost::default();
        for _ in 0..ticks {
            for (group, owned) in self.batches.iter_mut().enumerate() {
                owned.copy(&self.generator.operation(group, self.tick));
                if self.order == Order::Shuffled {
                    owned.shuffle(&self.orders[self.tick as usize % self.orders.len()]);
                }
            }
            let start = thread_cpu_ns();
            for owned in &self.batches {
                let ack = store
                    .write(&owned.batch(), &mut self.refused)
                    .expect("a write of defined series");
                cost.samples += ack.accepted as u64;
            }
            let spent = thread_cpu_ns() - start;
            cost.cpu_ns += spent;
            cost.worst_ns = cost.worst_ns.max(spent);
            self.tick += 1;
        }
        assert!(self.refused.is_empty(), "nothing is refused");
        cost
    }

    /// Reads some series back and compares them with what the workload says was sent.
    fn verify(&self, store: &dyn Store) {
        let mut replay = self.workload.replay(BASE);
        for id in (0..SERIES).step_by(VERIFIED) {
            let mut sent = std::collections::BTreeMap::new();
            replay.series(SeriesId(id as u32), 0..self.tick, &mut |chunk| {
                let samples = chunk.iter().filter(|(tick, ..)| *tick < self.tick);
                sent.extend(samples.map(|(_, at, value, _)| (at, value.to_bits())));
            });
            let held = store
                .samples(SeriesId(id as u32), TimeRange::ALL)
                .expect("a defined series");
            let held: Vec<_> = held.into_iter().map(|(at, value)| (at, value.to_bits())).collect();
            assert_eq!(held, sent.into_iter().collect::<Vec<_>>(), "series {id}");
        }
    }
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
        let mut drive = Drive::new(&workload, case.order);
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

/// Ticks that fill the open rows, at fresh memory, before the steady state.
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
        let mut drive = Drive::new(&workload, case.order);
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
    criterion.final_summary();
}
