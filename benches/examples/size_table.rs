//! How many bytes does a sealed sample take, compared with what is possible?
//!
//! `cargo run --release -p tsb-bench --example size_table`. Two hours of two fleets and the
//! recorded trace of fixtures/, in whole ticks into a memory store. For comparison: the
//! information per value, calculated from the fleet's value models, and pco at level 8 on the
//! values of each series as one column, without timestamps. pco sees a whole column at once and
//! takes about twenty times as long; the store seals at most 256 rows, answers a query without
//! reading more than it needs, and its bytes include timestamps, gaps and index. Every sample is
//! read back and compared before anything is printed.

#![expect(clippy::print_stdout, reason = "an example prints its result")]
#![expect(clippy::expect_used, reason = "an example may stop with a message")]

use std::ops::ControlFlow;
use std::path::PathBuf;

use pco::ChunkConfig;
use pco::standalone::simple_compress;
use tsb_core::workload::{BatchMode, FleetSpec, TraceSource, Workload, WorkloadSpec};
use tsb_core::{SeriesId, Timestamp};
use tsb_stores::memory::{MemoryOptions, MemoryStore};
use tsb_stores::{Query, Refusals, Store, TimeRange};

const SERIES: usize = 5_400;
const TICKS: u64 = 7_200;
const BASE: Timestamp = Timestamp::from_secs(1_700_000_000);
const PCO_LEVEL: usize = 8;
/// One series in this many is compressed with pco.
const PCO_EVERY: usize = 9;

fn main() {
    println!("bytes a sample   series  ticks   sealed  calculated  ratio  pco {PCO_LEVEL}  ratio");
    for fleet in [FleetSpec::Mix, FleetSpec::Kstat] {
        let name = fleet.to_string();
        let spec = WorkloadSpec {
            series: Some(SERIES),
            batch: BatchMode::Tick,
            ..WorkloadSpec::new(fleet, 1)
        };
        row(&name, &Workload::new(&spec).expect("a fleet of the list"), TICKS);
    }
    let path = PathBuf::from("fixtures/traces/busy-build.tsbtrace");
    let source = TraceSource {
        path,
        ..TraceSource::default()
    };
    let spec = WorkloadSpec {
        batch: BatchMode::Tick,
        ..WorkloadSpec::new(FleetSpec::Trace(source), 1)
    };
    let trace = Workload::new(&spec).expect("the trace; run this in the root of the workspace");
    let ticks = trace.window().map_or(0, |window| window.ticks);
    row("busy-build", &trace, ticks);
}

fn row(name: &str, workload: &Workload, ticks: u64) {
    let store = MemoryStore::new(MemoryOptions::default());
    store.define(&workload.catalog().definitions()).expect("fresh series");
    let mut generator = workload.generator(0..workload.groups().len(), BASE);
    let mut refused = Refusals::new();
    for tick in 0..ticks {
        for group in generator.groups() {
            let batch = generator.operation(group, tick);
            let ack = store.write(&batch, &mut refused).expect("a write");
            assert_eq!(ack.rejected, 0);
        }
    }
    let footprint = store.stats().footprint;
    let sealed = footprint.sealed_bytes as f64 / footprint.sealed_samples as f64;
    let pco = read_back(workload, &store, ticks);
    let calculated = workload.entropy_bits_per_sample().map(|bits| bits / 8.0);
    let or_dash = |figure: Option<f64>| figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.3}"));
    let series = workload.catalog().len();
    println!(
        "{name:15} {series:7} {ticks:6} {sealed:8.3} {:>11} {:>6} {pco:6.3} {:6.3}",
        or_dash(calculated),
        or_dash(calculated.map(|bytes| sealed / bytes)),
        sealed / pco,
    );
}

/// Compares what the store holds with what was sent. Returns pco's bytes per sample.
fn read_back(workload: &Workload, store: &MemoryStore, ticks: u64) -> f64 {
    let mut replay = workload.replay(BASE);
    let (mut bytes, mut samples) = (0, 0);
    for id in (0..workload.catalog().len()).map(|index| SeriesId(index as u32)) {
        let mut sent: Vec<f64> = Vec::new();
        replay.series(id, 0..ticks, &mut |chunk| sent.extend_from_slice(chunk.values));
        let mut held: Vec<f64> = Vec::new();
        let query = Query {
            series: &[id],
            range: TimeRange {
                start: BASE,
                end: Timestamp(i64::MAX),
            },
            resample: None,
        };
        let answered = store.query(&query, &mut |_, _, values| {
            held.extend_from_slice(values);
            ControlFlow::Continue(())
        });
        answered.expect("an answer");
        assert!(
            sent.iter()
                .map(|value| value.to_bits())
                .eq(held.iter().map(|value| value.to_bits())),
            "series {id:?} is not as it was sent"
        );
        if id.index().is_multiple_of(PCO_EVERY) {
            let config = ChunkConfig::default().with_compression_level(PCO_LEVEL);
            bytes += simple_compress(&sent, &config).expect("numbers").len();
            samples += sent.len();
        }
    }
    bytes as f64 / samples as f64
}
