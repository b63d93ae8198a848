//! What does it cost to encode batches into payload?
//!
//! Wall time; for CPU time see `cargo run --release -p tsb-bench --example wire_table`.

use criterion::{Criterion, Throughput};
use tsb_bench::codec::{BatchOrder, Codec, CodecCase};

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("wire_encode");
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
                bencher.iter(|| {
                    run.clear();
                    run.encode();
                    run.payload_bytes()
                });
            });
        }
    }
    group.finish();
    criterion.final_summary();
}
