//! Compares our MongoDB client with the driver alone, with the batches of a trial of the driver
//! that was made before the client was written.
//!
//! `cargo run --release -p tsb-bench --features mongo --example mongo_table -- HOST:PORT
//! [DOCUMENTS [BLOCKS [LAYOUT]]]`: a mongod on this machine, the number of documents per run,
//! and the number of blocks of four runs (ours, the driver's, the driver's, ours) per case. It
//! prints JSON, from which `cargo xtask servers equal` makes a page.
//!
//! Our side is `Store::write` of columns, so making documents is part of its time. The driver's
//! side is `insert_many` of the same documents made in advance, except that the driver adds a
//! key to documents without one, into the same collections with the same indexes. Both are
//! closed loops, and the results of both are counted and checked afterwards.
//!
//! All batches are made before timing starts. The documents are those of the layouts `rows` (one
//! per sample), `series` (one per sample, in a time-series collection) and `ticks` (groups of
//! sixty).

#![expect(clippy::expect_used, reason = "a table that cannot be made has nothing to say")]
#![expect(clippy::print_stdout, reason = "the table is this program's result")]
#![expect(clippy::print_stderr, reason = "and progress is not")]

mod bare;
mod cells;
mod ours;
mod timing;

use serde_json::json;
use tsb_core::stats::{Ratio, median};

use cells::{Cell, Load};
use timing::Measured;

/// The server.
struct Server {
    /// `HOST:PORT`.
    address: String,
    pid: u32,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let word = |index: usize| arguments.get(index).map(String::as_str);
    let address = word(0).expect("HOST:PORT of a mongod").to_owned();
    let documents: u32 = word(1).map_or(400_000, |text| text.parse().expect("a number of documents"));
    let blocks: usize = word(2).map_or(3, |text| text.parse().expect("a number of blocks"));
    let server = Server {
        pid: timing::listener(&address),
        address,
    };
    let cells = cells::all().filter(|cell| word(3).is_none_or(|layout| layout == cell.layout));
    let rows: Vec<_> = cells.map(|cell| row(&server, cell, documents, blocks)).collect();
    let page = json!({ "machine": tsb_core::resource::Machine::examine(), "documents": documents, "blocks": blocks, "rows": rows });
    println!("{page:#}");
}

/// Runs a case in the order A B B A, block after block.
fn row(server: &Server, cell: Cell, documents: u32, blocks: usize) -> serde_json::Value {
    let load = Load::new(cell, documents);
    let documents = bare::documents(&load);
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..blocks.max(1) {
        ours.push(ours::run(server, &load));
        bare.push(bare::run(server, &load, &documents));
        bare.push(bare::run(server, &load, &documents));
        ours.push(ours::run(server, &load));
    }
    let rates = |runs: &[Measured]| -> Vec<f64> { runs.iter().map(Measured::rate).collect() };
    let (our_rates, bare_rates) = (rates(&ours), rates(&bare));
    let pairs = bare_rates.chunks(2).zip(our_rates.chunks(2));
    let turns: Vec<[f64; 4]> = pairs.map(|(bare, ours)| [bare[0], ours[0], ours[1], bare[1]]).collect();
    eprintln!("{cell:?}: {our_rates:.0?} samples/s, the driver alone {bare_rates:.0?}");
    json!({
        "layout": cell.layout,
        "workers": cell.workers,
        "documents": cell.documents,
        "samples_per_document": cell.samples_per_document(),
        "samples_per_series": cell.per_series,
        "samples": load.samples(),
        "trial_rate": cell.trial_rate,
        "ours": side(&ours, &our_rates),
        "driver": side(&bare, &bare_rates),
        "ratio": Ratio::from_blocks(&turns),
    })
}

fn side(runs: &[Measured], rates: &[f64]) -> serde_json::Value {
    let middle = |figure: &dyn Fn(&Measured) -> f64| median(&runs.iter().map(figure).collect::<Vec<_>>());
    json!({
        "rates": rates,
        "rate": median(rates),
        "client_cpu_us_per_sample": middle(&|run| run.client_cpu_ns as f64 / 1e3 / run.samples as f64),
        "server_cpu_us_per_sample": middle(&|run| run.server_cpu_ns as f64 / 1e3 / run.samples as f64),
        "cores_busy": middle(&|run| (run.client_cpu_ns + run.server_cpu_ns) as f64 / run.elapsed_ns as f64),
        "bytes_per_sample": middle(&|run| run.bytes as f64 / run.samples as f64),
    })
}
