//! What does a journal add to the cost of an acknowledgement, by sync policy and batch size?
//!
//! One writer. With `each` and `group` every acknowledgement waits for a sync, so their wall
//! time is that of the medium. Before timing, the benchmark checks once that the journal replays
//! what was written.

#![expect(clippy::expect_used, reason = "a benchmark may stop with a message")]

use criterion::{BenchmarkId, Criterion, Throughput};
use tsb_bench::write_cache::{cache, files, tick, values};
use tsb_core::Durability;
use tsb_stores::write_cache::SyncPolicy;
use tsb_stores::{Scope, Store};

fn verify() {
    let folder = tempfile::tempdir().expect("a folder");
    let journal = folder.path().join("journal");
    let open = || {
        cache(
            files(&folder.path().join("files")),
            50,
            1,
            Some((&journal, SyncPolicy::None)),
        )
    };
    let first = open();
    (0..10).for_each(|at| tick(&first, at, &values(50), 7));
    drop(first);
    assert_eq!(open().account().replayed, 500);
}

fn append(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("journal_append");
    group.sample_size(10);
    let policies = [
        ("none", SyncPolicy::None),
        ("interval", SyncPolicy::Interval(1_000_000_000)),
        ("group", SyncPolicy::Group),
        ("each", SyncPolicy::Each),
    ];
    for (name, sync) in policies {
        for series in [10, 1_000, 10_000] {
            let folder = tempfile::tempdir().expect("a folder");
            let journal = folder.path().join("journal");
            let cache = cache(files(&folder.path().join("files")), series, 1, Some((&journal, sync)));
            let values = values(series);
            let mut now = 0;
            group.throughput(Throughput::Elements(u64::from(series)));
            group.bench_function(BenchmarkId::new(name, series), |bencher| {
                bencher.iter(|| {
                    tick(&cache, now, &values, series as usize);
                    now += 1;
                });
            });
            // Draining to the files is measured elsewhere: the pending values are dropped.
            (0..series).for_each(|id| drop(cache.forget(tsb_core::SeriesId(id))));
            cache.flush(Scope::All, Durability::Buffered).expect("a flush");
        }
    }
    group.finish();
}

fn main() {
    verify();
    let mut criterion = Criterion::default().configure_from_args();
    append(&mut criterion);
    criterion.final_summary();
}
