//! Prints what a sample costs on its way over local sockets, by thread.
//!
//! `cargo run --release -p tsb-bench --example loopback_table [STORE]`. Every sample of some
//! ticks is compared with what was sent, then the counters of both sides. CPU time is that of
//! the emitting thread (encode and write, which includes the kernel's delivery) and of the
//! ingest thread (read, decode, apply). On two free cores the slower one limits the rate: "of a
//! core" is the rate at which that thread alone would saturate its core.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::sync::Arc;

use tsb_bench::loopback::{self, Loopback};
use tsb_bench::mix::{self, Mix};
use tsb_core::Timestamp;
use tsb_core::time::thread_cpu_ns;
use tsb_core::wire::Protocol;
use tsb_run::{Transport, spec};
use tsb_stores::Store;

/// Ticks with different values, sent repeatedly.
const TICKS: usize = 20;

/// Samples per row of the table.
const SAMPLES: u64 = 5_000_000;

#[expect(clippy::expect_used, reason = "an example may stop with a message")]
fn main() {
    let sink = std::env::args().nth(1);
    println!("into {}", sink.as_deref().unwrap_or("nowhere"));
    println!("protocol  over      operation    M/s wall   bytes  emit ns  ingest ns   M/s of a core  response p50 us");
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
            let store: Option<Arc<dyn Store>> = sink.as_deref().map(|sink| spec::open(sink).expect("a store").into());
            row(protocol, over, name, length, store, &ticks);
        }
    }
}

fn row(
    protocol: Protocol,
    over: Transport,
    name: &str,
    length: usize,
    store: Option<Arc<dyn Store>>,
    ticks: &[Vec<f64>],
) {
    let mut way = Loopback::open(protocol, over, store, false);
    let mut second = 1_700_000_000;
    // The first tick announces every name and is not counted.
    way.send(Timestamp::from_secs(second), &ticks[0], length);
    way.settle();
    let (wall, emit, ingest) = (way.clock().now(), thread_cpu_ns(), way.ingest_cpu_ns());
    let mut samples = 0;
    for values in ticks.iter().cycle() {
        second += 1;
        way.send(Timestamp::from_secs(second), values, length);
        samples += values.len() as u64;
        if samples >= SAMPLES {
            break;
        }
    }
    way.settle();
    let each = |ns: u64| ns as f64 / samples as f64;
    let (wall, emit, ingest) = (
        each(way.clock().now() - wall),
        each(thread_cpu_ns() - emit),
        each(way.ingest_cpu_ns() - ingest),
    );
    let (sent, received) = way.close();
    println!(
        "{:8}  {:8}  {name:10}  {:9.1}  {:6.1}  {emit:7.2}  {ingest:9.2}  {:14.1}  {:15}",
        protocol.name(),
        over.name(),
        1e3 / wall,
        sent.written_bytes as f64 / sent.samples as f64,
        1e3 / emit.max(ingest),
        received.timing.response.quantile(0.5).unwrap_or_default() / 1000,
    );
}
