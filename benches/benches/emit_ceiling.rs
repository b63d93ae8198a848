//! How many operations per second can the emitter itself issue?
//!
//! One worker drives a closure that accepts everything, and the null store: in a closed loop,
//! and in an open loop whose rate is far too high, which is the emitter's most expensive path
//! because it is always behind. The remaining cost is the emitter's own: the agenda, two clock
//! readings, histograms, counters. The table gives CPU time of the worker's thread.

#![expect(clippy::expect_used, reason = "the inputs are fixed and valid")]

use std::sync::atomic::AtomicBool;

use criterion::{Criterion, Throughput};
use tsb_core::emit::{Live, Operation, Outcome, Report, Run, Settings, Source, Target, Worker, Writes, run};
use tsb_core::schedule::{Group, Pace, Roster, Schedule, Slot, Speed, Timetable};
use tsb_core::time::{MonotonicClock, SECOND_NS};
use tsb_core::{Batch, SeriesId, SeriesKey, Timestamp};
use tsb_stores::null::NullStore;
use tsb_stores::store::{Refusals, Store};

const HOSTS: u32 = 1_000;
const SAMPLES: u32 = 54;
const OPERATIONS: u64 = 200_000;

/// A host's row with constant values: the cost of a workload is measured elsewhere.
struct Rows {
    values: Vec<f64>,
}

impl Source for Rows {
    type Kind = Writes;

    fn prepare(&mut self, slot: &Slot) -> Batch<'_> {
        Batch::tick(
            SeriesId(slot.group * SAMPLES),
            Timestamp(slot.offset_ns as i64),
            &self.values,
        )
    }
}

fn accept(operation: &Operation<'_>) -> Outcome {
    Outcome::Done {
        accepted: operation.payload.len() as u32,
        rejected: 0,
    }
}

fn null_store() -> impl Target + Send {
    let store = NullStore::new();
    let key = |series: u32| (SeriesId(series), SeriesKey::new(format!("s{series}")));
    let keys: Vec<_> = (0..HOSTS * SAMPLES).map(key).collect();
    store.define(&keys).expect("the null store takes any key");
    let mut refused = Refusals::new();
    move |operation: &Operation<'_>| match store.write(&operation.payload, &mut refused) {
        Ok(ack) => Outcome::Done {
            accepted: ack.accepted as u32,
            rejected: ack.rejected as u32,
        },
        Err(_) => Outcome::Fatal,
    }
}

/// `OPERATIONS` operations, divided evenly among the hosts.
fn timetable(pace: Pace) -> Timetable {
    let group = |host| Group::new(SECOND_NS, u64::from(host) * SECOND_NS / u64::from(HOSTS), SAMPLES);
    Timetable {
        roster: Roster::new((0..HOSTS).map(group).collect()).expect("a valid roster"),
        pace,
        end_ns: None,
        fleet_end_ns: Some(OPERATIONS / u64::from(HOSTS) * SECOND_NS),
    }
}

fn paces() -> [(&'static str, Pace); 2] {
    [
        ("closed", Pace::Shape(Schedule::Unpaced)),
        ("behind", Pace::Fleet(Speed::new(1_000_000_000, 1).expect("not 0"))),
    ]
}

fn drive<T: Target + Send>(timetable: &Timetable, target: T) -> Report<Rows, T> {
    let worker = Worker {
        groups: 0..HOSTS,
        source: Rows {
            values: vec![1.0; SAMPLES as usize],
        },
        target,
    };
    let run_of = Run {
        clock: &MonotonicClock::new(),
        timetable,
        stop: &AtomicBool::new(false),
        live: &Live::new(1),
        settings: Settings::default(),
    };
    let report = run(&run_of, vec![worker]).expect("a thread starts");
    assert_eq!(report.counts.accepted, OPERATIONS * u64::from(SAMPLES));
    assert_eq!(report.latency.response.total.count(), OPERATIONS);
    report
}

fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("emit_ceiling");
    group.throughput(Throughput::Elements(OPERATIONS)).sample_size(10);
    for (name, pace) in paces() {
        let timetable = timetable(pace);
        group.bench_function(format!("closure/{name}"), |b| b.iter(|| drive(&timetable, accept)));
        group.bench_function(format!("null_store/{name}"), |b| {
            b.iter(|| drive(&timetable, null_store()));
        });
    }
    group.finish();
}

#[expect(clippy::print_stdout, reason = "the table is the result")]
fn table() {
    println!("\nCPU of the worker      ns/operation   M operations/s   M samples/s of {SAMPLES} a batch");
    let print = |name: String, cpu_ns: u64| {
        let each = cpu_ns as f64 / OPERATIONS as f64;
        println!(
            "{name:<22} {each:>12.1} {:>16.2} {:>13.0}",
            1e3 / each,
            1e3 / each * f64::from(SAMPLES)
        );
    };
    for (name, pace) in paces() {
        let timetable = timetable(pace);
        let best = |mut one: Box<dyn FnMut() -> u64>| (0..5).map(|_| one()).min().unwrap_or(0);
        let shared = timetable.clone();
        let closure = best(Box::new(move || drive(&shared, accept).cpu().total_ns));
        let store = best(Box::new(move || drive(&timetable, null_store()).cpu().total_ns));
        print(format!("closure/{name}"), closure);
        print(format!("null_store/{name}"), store);
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    benches(&mut criterion);
    criterion.final_summary();
    table();
}
