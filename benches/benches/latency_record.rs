//! What does it cost to record a latency?
//!
//! One value into one histogram, tsb's and the bare crate's beneath it (the difference is the
//! exact smallest and largest value), for values spread over six decades and for values close
//! together; the end of an interval; and merging two workers' histograms. The table gives CPU time
//! of the thread.

#![expect(clippy::expect_used, reason = "the inputs are fixed and valid")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput};
use tsb_core::latency::{Histogram, Recorder};
use tsb_core::time::thread_cpu_ns;

const VALUES: usize = 1 << 16;

/// SplitMix64, so that every run records the same values.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut x = *state;
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn inputs() -> [(&'static str, Vec<u64>); 2] {
    let mut state = 12345;
    let spread = |state: &mut u64| {
        let bits = 3 + random(state) % 20;
        random(state) & ((1 << bits) - 1) | 1 << (bits - 1)
    };
    let spread = (0..VALUES).map(|_| spread(&mut state)).collect();
    let tight = (0..VALUES).map(|_| 800 + random(&mut state) % 400).collect();
    [("spread", spread), ("tight", tight)]
}

fn bare() -> hdrhistogram::Histogram<u64> {
    hdrhistogram::Histogram::new_with_bounds(1, u64::MAX, 2).expect("bounds are valid")
}

fn filled(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    for &value in values {
        histogram.record(value);
    }
    histogram
}

fn benches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("latency_record");
    group.throughput(Throughput::Elements(VALUES as u64));
    for (name, values) in inputs() {
        let mut ours = Histogram::new();
        group.bench_function(format!("record/tsb/{name}"), |b| {
            b.iter(|| values.iter().for_each(|&value| ours.record(value)));
        });
        let mut alone = bare();
        group.bench_function(format!("record/hdrhistogram/{name}"), |b| {
            b.iter(|| values.iter().for_each(|&value| alone.saturating_record(value)));
        });
    }
    group.finish();
    let mut group = criterion.benchmark_group("latency_interval");
    let [(_, spread), _] = inputs();
    let full = filled(&spread);
    group.bench_function("cut", |b| {
        let fresh = || {
            let mut recorder = Recorder::new(0, 1_000, 10_000);
            for &value in &spread {
                recorder.record(value);
            }
            recorder
        };
        let cut = |mut recorder: Recorder| {
            recorder.cut(1_000);
            recorder
        };
        b.iter_batched(fresh, cut, BatchSize::LargeInput);
    });
    group.bench_function("merge", |b| {
        let mut sum = Histogram::new();
        b.iter(|| sum.merge(black_box(&full)));
    });
    group.finish();
}

/// CPU nanoseconds per step, the best of five rounds.
fn cpu_ns(values: &[u64], mut step: impl FnMut(u64)) -> f64 {
    let rounds = 100;
    let mut best = u64::MAX;
    for _ in 0..5 {
        let before = thread_cpu_ns();
        for _ in 0..rounds {
            for &value in values {
                step(value);
            }
        }
        best = best.min(thread_cpu_ns() - before);
    }
    best as f64 / (rounds * values.len()) as f64
}

#[expect(clippy::print_stdout, reason = "the table is the result")]
fn table() {
    println!("\nCPU-ns a record        tsb   hdrhistogram");
    for (name, values) in inputs() {
        let (mut ours, mut alone) = (Histogram::new(), bare());
        let own = cpu_ns(&values, |value| ours.record(value));
        let other = cpu_ns(&values, |value| alone.saturating_record(value));
        assert_eq!(ours.count(), alone.len());
        println!("{name:<20} {own:>5.2}   {other:>12.2}");
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    benches(&mut criterion);
    criterion.final_summary();
    table();
}
