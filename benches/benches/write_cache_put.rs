//! What does it cost to put a sample into a write cache?
//!
//! Ticks of many series in batches of one host, no journal, and nothing is written during the
//! measurement; the drain is measured by `write_cache_drain`. Before timing, the samples that
//! arrive in the store are counted once.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use tsb_bench::write_cache::{cache, tick, values};
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::{Store, null::NullStore};

/// Ticks that are pending before the write.
const TICKS: i64 = 60;

fn verify() {
    let cache = cache(MemoryStore::new(MemoryOptions::default()), 1_000, 1, None);
    let values = values(1_000);
    (0..TICKS).for_each(|at| tick(&cache, at, &values, 54));
    assert_eq!(cache.account().pending, 60_000);
    assert!(cache.close().is_ok());
    assert_eq!(cache.inner().stats().samples, 60_000);
}

fn put(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("write_cache_put");
    group.sample_size(10);
    for series in [1_000, 10_000] {
        let values = values(series);
        group.throughput(Throughput::Elements(u64::from(series) * TICKS as u64));
        for batch in [1, 54, 1_000] {
            let id = BenchmarkId::new(format!("{series}x{TICKS}"), batch);
            group.bench_function(id, |bencher| {
                bencher.iter_batched_ref(
                    || cache(NullStore::new(), series, 1, None),
                    |cache| (0..TICKS).for_each(|at| tick(cache, at, &values, batch)),
                    BatchSize::PerIteration,
                );
            });
        }
    }
    group.finish();
}

fn main() {
    verify();
    let mut criterion = Criterion::default().configure_from_args();
    put(&mut criterion);
    criterion.final_summary();
}
