//! What does it cost to compute when the next operation is due?
//!
//! Due times of each kind of schedule, and the agenda of a worker: which host's tick comes next
//! in a fleet of 1,000 hosts, and when. The table gives CPU time of the thread.

#![expect(clippy::expect_used, reason = "the inputs are fixed and valid")]

use std::hint::black_box;

use criterion::{Criterion, Throughput};
use tsb_core::schedule::{Agenda, Group, Pace, Roster, Schedule, Speed, Timetable};
use tsb_core::time::{SECOND_NS, thread_cpu_ns};

const OPERATIONS: usize = 1 << 16;
const HOSTS: u64 = 1_000;

const SCHEDULES: [(&str, &str); 5] = [
    ("constant", "constant:54000"),
    ("poisson", "poisson:54000,seed=1"),
    ("ramp", "ramp:1000..108000/1m"),
    ("steps", "steps:1000*1s,54000*10s,108000*1m"),
    ("burst", "burst:54000/1s"),
];

fn schedule(text: &str) -> Schedule {
    text.parse().expect("it is a schedule")
}

fn timetable(pace: Pace) -> Timetable {
    let interval = |host: u64| {
        if host.is_multiple_of(10) {
            10 * SECOND_NS
        } else {
            SECOND_NS
        }
    };
    let group = |host| Group::new(interval(host), host * 7_919 * 104_729 % interval(host), 54);
    Timetable {
        roster: Roster::new((0..HOSTS).map(group).collect()).expect("a valid roster"),
        pace,
        end_ns: None,
        fleet_end_ns: None,
    }
}

fn agendas() -> Vec<(String, Agenda)> {
    let paces = [
        ("natural", Pace::Fleet(Speed::NATURAL)),
        ("faster", Pace::Fleet(Speed::new(54_001, 7).expect("not 0"))),
        ("constant", Pace::Shape(schedule("54000"))),
        ("poisson", Pace::Shape(schedule("poisson:54000,seed=1"))),
        ("max", Pace::Shape(Schedule::Unpaced)),
    ];
    let mut agendas = Vec::new();
    for (name, pace) in paces {
        let timetable = timetable(pace);
        agendas.push((format!("{name}/all"), timetable.agenda(0..HOSTS as u32)));
        agendas.push((format!("{name}/half"), timetable.agenda(0..HOSTS as u32 / 2)));
    }
    agendas
}

/// Checks that due times never decrease, and keep their rate to the nanosecond.
fn verify() {
    for (name, text) in SCHEDULES {
        let due: Vec<u64> = schedule(text).cursor().take(OPERATIONS).collect();
        assert!(due.len() == OPERATIONS && due.is_sorted(), "{name}");
    }
    assert_eq!(schedule("54000").due(54_000 << 20), Some(SECOND_NS << 20));
    for (name, agenda) in agendas() {
        let slots: Vec<u64> = agenda.take(OPERATIONS).map(|planned| planned.slot.offset_ns).collect();
        assert!(slots.len() == OPERATIONS && slots.is_sorted(), "{name}");
    }
}

fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("schedule");
    group.throughput(Throughput::Elements(OPERATIONS as u64));
    for (name, text) in SCHEDULES {
        let mut cursor = schedule(text).cursor();
        group.bench_function(format!("due/{name}"), |b| {
            b.iter(|| black_box(cursor.by_ref().take(OPERATIONS).last()));
        });
    }
    for (name, mut agenda) in agendas() {
        group.bench_function(format!("agenda/{name}"), |b| {
            b.iter(|| black_box(agenda.by_ref().take(OPERATIONS).last()));
        });
    }
    group.finish();
}

/// CPU nanoseconds per operation.
fn cpu_ns(operations: impl Iterator<Item = u64>) -> f64 {
    let count = 20 * OPERATIONS;
    let before = thread_cpu_ns();
    black_box(operations.take(count).last());
    (thread_cpu_ns() - before) as f64 / count as f64
}

#[expect(clippy::print_stdout, reason = "the table is the result")]
fn table() {
    println!("\nCPU-ns an operation");
    for (name, text) in SCHEDULES {
        println!("due/{name:<18} {:>6.1}", cpu_ns(schedule(text).cursor()));
    }
    for (name, agenda) in agendas() {
        println!(
            "agenda/{name:<15} {:>6.1}",
            cpu_ns(agenda.map(|planned| planned.slot.offset_ns))
        );
    }
}

fn main() {
    verify();
    let mut criterion = Criterion::default().configure_from_args();
    benches(&mut criterion);
    criterion.final_summary();
    table();
}
