//! What does an update of an RRD file cost, within a step and across a step boundary?
//!
//! Files in the layout of the published rrdcached benchmark, warm, one update per call; the
//! written values are read back once before timing. `--features librrd` adds librrd. For 10,000
//! files, interleaved and including the sync, see the example `rrd_table`.

#![expect(clippy::expect_used, reason = "a benchmark may stop with a message")]

use criterion::{BenchmarkId, Criterion, Throughput};
use tsb_bench::rrd::{self, Files, START_S, STEP_S, UpdateMethod};
use tsb_rrd::{RrdFile, Session};

const FILES: usize = 100;

/// Checks that an update can be read back.
fn verify(folder: &std::path::Path, files: &mut Files) {
    let mut texts = Vec::new();
    rrd::readings(START_S + STEP_S, 1, STEP_S, &mut texts);
    files.update(0, &texts);
    let file = RrdFile::open(&folder.join("1.rrd")).expect("the file");
    let found = tsb_rrd::rows(&file, &mut Session::default(), 0, START_S, i64::MAX).expect("rows");
    let expected = ((START_S + STEP_S) % 9_973) as f64;
    assert_eq!(found.last().map(|row| row.values[0]), Some(expected));
}

fn updates(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rrd_update");
    group.throughput(Throughput::Elements(1));
    for &way in UpdateMethod::ALL {
        let folder = tempfile::tempdir().expect("a folder");
        rrd::create(folder.path(), FILES);
        let mut files = Files::open(folder.path(), FILES, way);
        verify(folder.path(), &mut files);
        let (mut now_s, mut turn) = (START_S + STEP_S, 0);
        let mut texts = Vec::new();
        for (name, apart) in [("within", 1), ("across", STEP_S)] {
            group.bench_function(BenchmarkId::new(way.name(), name), |bencher| {
                bencher.iter(|| {
                    if turn == 0 {
                        now_s += apart;
                        rrd::readings(now_s, 1, apart, &mut texts);
                    }
                    files.update(turn, &texts);
                    turn = (turn + 1) % FILES;
                });
            });
        }
    }
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    updates(&mut criterion);
    criterion.final_summary();
}
