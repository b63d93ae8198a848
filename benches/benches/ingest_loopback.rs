//! How many samples per second go from an emitter into a store over real sockets?
//!
//! Encoder, socket, listener, decoder and sink in one process on loopback. An iteration sends
//! ten ticks of 54,000 new values and ends when the last one has been applied. Before timing,
//! every sample of some ticks is compared with what was sent; afterwards the counters of both
//! sides are compared. It measures the capacity of the path, not the latency at a given rate:
//! that is `tsb run`. CPU time by thread: `cargo run --release -p tsb-bench --example
//! loopback_table`.

use std::sync::Arc;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use tsb_bench::loopback::{self, Loopback};
use tsb_bench::mix::{self, Mix};
use tsb_core::Timestamp;
use tsb_run::spec;
use tsb_stores::Store;

/// Ticks per iteration.
const TICKS: usize = 10;

/// The sinks; `None` discards the samples.
const SINKS: [Option<&str>; 3] = [None, Some("null:"), Some("memory:")];

#[expect(clippy::expect_used, reason = "the specs are fixed and valid")]
fn ingest_loopback(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("ingest_loopback");
    group.throughput(Throughput::Elements((TICKS * mix::SERIES) as u64));
    group.sample_size(10);
    let mut fleet = Mix::new(7);
    let ticks: Vec<Vec<f64>> = (0..TICKS)
        .map(|_| {
            let mut values = Vec::new();
            fleet.tick(&mut values);
            values
        })
        .collect();
    for (protocol, over) in loopback::wires() {
        for (name, length) in [("host-54", mix::HOST), ("tick-54000", mix::SERIES)] {
            loopback::verify(protocol, over, length);
            for sink in SINKS {
                let store: Option<Arc<dyn Store>> = sink.map(|sink| spec::open(sink).expect("a store").into());
                let sink = sink.map_or("nowhere", |sink| sink.trim_end_matches(':'));
                let id = BenchmarkId::new(format!("{protocol}+{}/{sink}", over.name()), name);
                let mut way = Loopback::open(protocol, over, store, false);
                let mut second = 1_700_000_000;
                group.bench_function(id, |bencher| {
                    bencher.iter(|| {
                        for values in &ticks {
                            way.send(Timestamp::from_secs(second), values, length);
                            second += 1;
                        }
                        way.settle();
                    });
                });
                way.close();
            }
        }
    }
    group.finish();
}

criterion_group!(benches, ingest_loopback);
criterion_main!(benches);
