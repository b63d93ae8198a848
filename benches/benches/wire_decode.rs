//! What does it cost to decode payload into batches?
//!
//! Wall time; for CPU time see `cargo run --release -p tsb-bench --example wire_table`. A part
//! of a tick is encoded again before each measurement, outside the timed region.

use std::time::Duration;

use criterion::{Criterion, Throughput};
use tsb_bench::codec::{BatchOrder, Codec, CodecCase};
use tsb_core::time::{Clock, MonotonicClock};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("wire_decode");
    let clock = MonotonicClock::new();
    for case in CodecCase::all() {
        for order in BatchOrder::ALL {
            let mut run = Codec::new(case, order);
            // Two whole ticks, verified: the first announces the names.
            for _ in 0..2 {
                run.next_tick();
                while run.next_part() {
                    run.encode();
                    run.decode();
                }
                run.verify();
            }
            run.next_tick();
            run.next_part();
            group.throughput(Throughput::Elements(run.samples() as u64));
            group.bench_function(format!("{}/{}", case.name(), order.name()), |bencher| {
                bencher.iter_custom(|rounds| {
                    let mut spent = 0;
                    for _ in 0..rounds {
                        run.clear();
                        // Sequence numbers must increase, so each round is encoded again.
                        run.encode();
                        let start = clock.now();
                        run.decode();
                        spent += clock.now() - start;
                    }
                    run.forget();
                    Duration::from_nanos(spent)
                });
            });
        }
    }
    group.finish();
    criterion.final_summary();
}
