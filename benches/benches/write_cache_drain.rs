//! What does draining a write cache into RRD files cost, by the number of pending values per
//! file?
//!
//! Files of the published layout; every sample ends a step. The drain ends when everything is in
//! the files (a flush), without a sync. The rows of a file are counted once before timing. For
//! librrd and the sync, see the example `cache_table`.

#![expect(clippy::expect_used, reason = "a benchmark may stop with a message")]

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use tsb_bench::write_cache::{cache, files, tick, values};
use tsb_core::{Durability, SeriesId};
use tsb_stores::{Scope, Store, StoreExt, TimeRange};

const FILES: u32 = 200;

fn verify() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = cache(files(folder.path()), 3, 1, None);
    (0..60).for_each(|at| tick(&cache, at, &values(3), 3));
    cache.flush(Scope::All, Durability::Buffered).expect("a flush");
    assert_eq!((cache.account().written, cache.account().pending), (180, 0));
    // The first sample starts its file and ends no whole step.
    let rows = cache.samples(SeriesId(2), TimeRange::ALL).expect("rows");
    assert_eq!(rows.len(), 59);
}

fn drain(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("write_cache_drain");
    group.sample_size(10);
    let values = values(FILES);
    for (threads, readings) in [(1, 1), (1, 10), (1, 60), (2, 60)] {
        let folder = tempfile::tempdir().expect("a folder");
        let cache = cache(files(folder.path()), FILES, threads, None);
        let mut now = 0;
        group.throughput(Throughput::Elements(u64::from(FILES) * readings));
        let id = BenchmarkId::new(format!("{FILES} files, {threads} threads"), readings);
        group.bench_function(id, |bencher| {
            bencher.iter_batched(
                || {
                    for _ in 0..readings {
                        tick(&cache, now, &values, 54);
                        now += 1;
                    }
                },
                |()| cache.flush(Scope::All, Durability::Buffered).expect("a flush"),
                BatchSize::PerIteration,
            );
        });
    }
    group.finish();
}

fn main() {
    verify();
    let mut criterion = Criterion::default().configure_from_args();
    drain(&mut criterion);
    criterion.final_summary();
}
