//! What does a dashboard query cost in a store that holds a day?
//!
//! 5,400 series of the `mix` fleet for 86,400 s, in memory and in an SQLite file. Q1: the
//! maximum per minute over an hour of one series. Q2: the maximum per hour over the day of seven
//! series, or over 23 hours that begin and end at half past. Series and hours are random, so the
//! data is rarely in the CPU cache. Maxima are answered from those of blocks and hours where the
//! store has them; minima are not, and so show the cost of decoding. Every answer is compared
//! with one computed from the workload before timing. Figures are CPU time of the thread.
//!
//! `cargo bench --bench store_query -- table` prints one table and skips criterion.

#![expect(clippy::expect_used, reason = "a benchmark that cannot set up has nothing to report")]

use std::hint::black_box;
use std::ops::ControlFlow;
use std::time::Duration;

use criterion::Criterion;
use tsb_core::time::thread_cpu_ns;
use tsb_core::workload::{BatchMode, FleetSpec, Workload, WorkloadSpec};
use tsb_core::{SeriesId, Timestamp};
use tsb_run::spec;
use tsb_stores::{Consolidation, Query, Refusals, Resample, Store, TimeRange};

const SERIES: u64 = 5_400;
const SECOND: i64 = 1_000_000_000;
const HOUR: i64 = 3_600 * SECOND;
const DAY: u64 = 86_400;
/// Midnight.
const BASE: Timestamp = Timestamp::from_secs(1_699_920_000);

/// One kind of query: `series` series, `hours` hours that begin `past_s` seconds past a whole one,
/// one row per step.
#[derive(Clone, Copy, Debug)]
struct QueryCase {
    name: &'static str,
    series: u64,
    hours: i64,
    past_s: u64,
    resample: Resample,
}

fn questions() -> [QueryCase; 5] {
    let question = |name, series, hours, step_ns, consolidation| QueryCase {
        name,
        series,
        hours,
        past_s: 0,
        resample: Resample { step_ns, consolidation },
    };
    let minute = 60 * SECOND;
    [
        question("q1-max-minute-hour", 1, 1, minute, Consolidation::Max),
        question("q1-min-minute-hour", 1, 1, minute, Consolidation::Min),
        question("q2-max-hour-day", 7, 24, HOUR, Consolidation::Max),
        QueryCase {
            past_s: 1800,
            ..question("q2-max-hour-from-half-past", 7, 23, HOUR, Consolidation::Max)
        },
        question("q2-min-hour-day-decoded", 7, 24, HOUR, Consolidation::Min),
    ]
}

/// SplitMix64 (Steele, Lea, Flood 2014).
fn mixed(index: u64) -> u64 {
    let mut x = index.wrapping_add(0x9E37_79B9_7F4A_7C15);
    x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The series, and the first hour, of the `round`-th query of a kind.
fn target(question: &QueryCase, round: u64) -> (Vec<SeriesId>, i64) {
    let series = (0..question.series).map(|place| SeriesId((mixed(round * 8 + place) % SERIES) as u32));
    let first_hours = 25 - question.hours as u64 - question.past_s.div_ceil(3600);
    (series.collect(), (mixed(!round) % first_hours) as i64)
}

/// Runs a query and calls `row` for every row.
fn ask(store: &dyn Store, question: &QueryCase, round: u64, row: &mut dyn FnMut(SeriesId, Timestamp, f64)) {
    let (series, hour) = target(question, round);
    let start = BASE + hour * HOUR + question.past_s as i64 * SECOND;
    let query = Query {
        series: &series,
        range: TimeRange {
            start,
            end: start + question.hours * HOUR,
        },
        resample: Some(question.resample),
    };
    let answered = store.query(&query, &mut |series, times, values| {
        for (at, value) in times.iter().zip(values) {
            row(series, *at, *value);
        }
        ControlFlow::Continue(())
    });
    answered.expect("an answer");
}

/// Writes a day of the fleet.
fn fill(store: &dyn Store, workload: &Workload) {
    store.define(&workload.catalog().definitions()).expect("fresh series");
    let mut generator = workload.generator(0..workload.groups().len(), BASE);
    let mut refused = Refusals::new();
    for tick in 0..DAY {
        for group in generator.groups() {
            let ack = store
                .write(&generator.operation(group, tick), &mut refused)
                .expect("a write");
            assert_eq!(ack.rejected, 0);
        }
    }
}

/// Compares some answers with ones computed from the workload.
fn verify(store: &dyn Store, workload: &Workload, question: &QueryCase) {
    for round in 0..12 {
        let mut rows = Vec::new();
        ask(store, question, round, &mut |series, at, value| {
            rows.push((series, at, value));
        });
        let (series, hour) = target(question, round);
        let mut expected = Vec::new();
        let first_tick = hour as u64 * 3600 + question.past_s;
        let ticks = first_tick..first_tick + question.hours as u64 * 3600;
        for id in series {
            let mut steps = std::collections::BTreeMap::new();
            workload.replay(BASE).series(id, ticks.clone(), &mut |chunk| {
                for (_, at, value, _) in chunk.iter() {
                    let step = at.0 - at.0.rem_euclid(question.resample.step_ns);
                    let row = steps.entry(step).or_insert(value);
                    *row = match question.resample.consolidation {
                        Consolidation::Min => row.min(value),
                        _ => row.max(value),
                    };
                }
            });
            expected.extend(steps.into_iter().map(|(at, value)| (id, Timestamp(at), value)));
        }
        assert_eq!(rows, expected, "{question:?}");
    }
}

/// CPU nanoseconds of `count` queries, starting with the `round`-th.
fn cost(store: &dyn Store, question: &QueryCase, round: u64, count: u64) -> u64 {
    let mut sum = 0.0;
    let start = thread_cpu_ns();
    for round in round..round + count {
        ask(store, question, round, &mut |_, _, value| sum += value);
    }
    let spent = thread_cpu_ns() - start;
    black_box(sum);
    spent
}

#[expect(clippy::print_stdout, reason = "the table is this program's result")]
fn table(name: &str, store: &dyn Store) {
    println!(
        "{:<28}{:>14}{:>14}",
        format!("{name}, a day of 5,400"),
        "CPU-us, best",
        "CPU-us, mean"
    );
    for question in questions() {
        let count = if question.series == 1 { 2000 } else { 100 };
        let rounds = (1..8).map(|round| cost(store, &question, round * 10_000, count) as f64 / count as f64 / 1e3);
        let rounds: Vec<f64> = rounds.collect();
        let best = rounds.iter().copied().fold(f64::INFINITY, f64::min);
        let mean = rounds.iter().sum::<f64>() / rounds.len() as f64;
        println!("{:<28}{best:>14.2}{mean:>14.2}", question.name);
    }
    let stats = store.stats();
    let each = stats.footprint.sealed_bytes as f64 / stats.footprint.sealed_samples as f64;
    println!("{} samples, {each:.3} bytes a sealed sample", stats.samples);
}

fn main() {
    let workload = Workload::new(&WorkloadSpec {
        series: Some(SERIES as usize),
        batch: BatchMode::Tick,
        ..WorkloadSpec::new(FleetSpec::Mix, 1)
    })
    .expect("a fleet of the list");
    let table_only = std::env::args().any(|argument| argument == "table");
    let mut criterion = Criterion::default().configure_from_args();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("day.db");
    // One commit per minute: only reads are timed here.
    let stores = [
        ("memory", "memory:".to_owned()),
        ("sqlite", format!("sqlite:{}?commit=1m", file.display())),
    ];
    for (name, description) in stores {
        let store = spec::open(&description).expect("an empty store");
        fill(&store, &workload);
        for question in questions() {
            verify(&store, &workload, &question);
        }
        if table_only {
            table(name, &store);
        } else {
            bench(&mut criterion, name, &store);
        }
        store.close().expect("a sound store");
    }
    criterion.final_summary();
}

fn bench(criterion: &mut Criterion, name: &str, store: &dyn Store) {
    let mut group = criterion.benchmark_group(format!("store_query/{name}"));
    group.sample_size(20);
    for question in questions() {
        let mut round = 0;
        group.bench_function(question.name, |bencher| {
            bencher.iter_custom(|count| {
                round += count;
                Duration::from_nanos(cost(store, &question, round, count))
            });
        });
    }
    group.finish();
}
