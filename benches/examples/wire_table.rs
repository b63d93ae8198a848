//! What a codec costs, in samples a CPU-second of the thread.
//!
//! `cargo run --release -p tsb-bench --example wire_table`. Every value is fresh, every
//! decoded batch is summed up and checked against what was encoded. Criterion answers the
//! same question in wall time: `cargo bench -p tsb-bench --bench wire_decode`.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::sync::Arc;

use tsb_bench::mix::{self, Mix, Random};
use tsb_core::time::{ManualClock, thread_cpu_ns};
use tsb_core::wire::{Decoder, Encoder, Malformed, Protocol, Sink};
use tsb_core::{Batch, Catalog, Ids, SeriesId, SeriesKey, Times, Timestamp};

/// Whole ticks a row of the table is measured over.
const TICKS: usize = 100;

/// How a tick is cut into batches and in which order its series come.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    WholeTick,
    OneHost,
    Shuffled,
}

/// Counts and sums what arrives.
struct Sum {
    catalog: Catalog,
    samples: usize,
    batches: usize,
    values: f64,
    ids: u64,
}

impl Sink for Sum {
    fn series(&mut self, key: &SeriesKey) -> Option<SeriesId> {
        Some(self.catalog.intern(key.clone()))
    }

    fn batch(&mut self, batch: &Batch<'_>) {
        self.samples += batch.len();
        self.batches += 1;
        self.values += batch.values().iter().sum::<f64>();
        if let Ids::Each(ids) = batch.ids() {
            self.ids += ids.iter().map(|id| u64::from(id.0)).sum::<u64>();
        }
    }

    fn refused(&mut self, samples: usize) {
        panic!("{samples} samples were refused");
    }

    fn malformed(&mut self, problem: &Malformed<'_>) {
        panic!("{}", problem.what);
    }
}

/// One protocol, one order: nanoseconds of both directions.
#[derive(Default)]
struct Row {
    samples: usize,
    bytes: usize,
    batches: usize,
    encode_ns: u64,
    decode_ns: u64,
}

impl Row {
    fn measure(protocol: Protocol, order: Order) -> Self {
        let catalog = mix::catalog();
        let mut encoder = protocol.encoder(&catalog).expect("the fleet has plain names");
        let mut decoder = protocol.decoder(Arc::new(ManualClock::new()));
        let mut sink = Sum {
            catalog: catalog.clone(),
            samples: 0,
            batches: 0,
            values: 0.0,
            ids: 0,
        };
        let mut fleet = Mix::new(7);
        let mut random = Random(9);
        let mut row = Self::default();
        let (mut values, mut payloads) = (Vec::new(), vec![Vec::new(); mix::SERIES / mix::HOST]);
        let mut ids: Vec<SeriesId> = (0..mix::SERIES as u32).map(SeriesId).collect();
        // The first tick announces every name and is not counted.
        for tick in 0..=TICKS {
            fleet.tick(&mut values);
            if order == Order::Shuffled && tick > 0 {
                (1..ids.len())
                    .rev()
                    .for_each(|index| ids.swap(index, random.below(index as u64 + 1) as usize));
                values = ids.iter().map(|id| values[id.index()]).collect();
            }
            let at = Timestamp::from_secs(1_700_000_000 + tick as i64);
            let used = batches(order, tick == 0, &ids, at, &values);
            payloads.iter_mut().for_each(Vec::clear);
            let encode_ns = encode(&mut *encoder, &used, &mut payloads);
            let before = (sink.samples, sink.batches, sink.values);
            let decode_ns = decode(&mut *decoder, &payloads[..used.len()], &mut sink);
            assert_eq!(sink.samples - before.0, values.len());
            assert!(
                (sink.values - before.2 - values.iter().sum::<f64>()).abs() < 1.0,
                "values differ"
            );
            if tick > 0 {
                row.samples += values.len();
                row.bytes += payloads[..used.len()].iter().map(Vec::len).sum::<usize>();
                row.batches += sink.batches - before.1;
                row.encode_ns += encode_ns;
                row.decode_ns += decode_ns;
            }
        }
        row
    }
}

fn batches<'a>(order: Order, first: bool, ids: &'a [SeriesId], at: Timestamp, values: &'a [f64]) -> Vec<Batch<'a>> {
    match order {
        Order::OneHost => {
            let hosts = values.chunks(mix::HOST).zip(ids.iter().step_by(mix::HOST));
            hosts.map(|(values, first)| Batch::tick(*first, at, values)).collect()
        }
        Order::Shuffled if !first => vec![Batch::new(Ids::Each(ids), Times::One(at), values)],
        _ => vec![Batch::tick(SeriesId(0), at, values)],
    }
}

fn encode(encoder: &mut dyn Encoder, batches: &[Batch<'_>], payloads: &mut [Vec<u8>]) -> u64 {
    let start = thread_cpu_ns();
    for (batch, payload) in batches.iter().zip(payloads) {
        encoder.encode(batch, payload);
    }
    thread_cpu_ns() - start
}

fn decode(decoder: &mut dyn Decoder, payloads: &[Vec<u8>], sink: &mut Sum) -> u64 {
    let start = thread_cpu_ns();
    for payload in payloads {
        let consumed = decoder.decode(payload, sink).expect("nothing is wrong with it");
        assert_eq!(consumed, payload.len());
    }
    thread_cpu_ns() - start
}

fn main() {
    println!(
        "{:<10} {:<11} {:>9} {:>16} {:>16} {:>12} {:>14}",
        "protocol", "order", "B/sample", "encode M/CPU-s", "decode M/CPU-s", "ns/sample", "samples/batch"
    );
    for protocol in Protocol::ALL {
        for order in [Order::WholeTick, Order::OneHost, Order::Shuffled] {
            let row = Row::measure(protocol, order);
            let samples = row.samples as f64;
            println!(
                "{:<10} {:<11} {:>9.2} {:>16.1} {:>16.1} {:>5.2} {:>6.2} {:>14.1}",
                protocol.to_string(),
                format!("{order:?}"),
                row.bytes as f64 / samples,
                samples * 1e3 / row.encode_ns as f64,
                samples * 1e3 / row.decode_ns as f64,
                row.encode_ns as f64 / samples,
                row.decode_ns as f64 / samples,
                samples / row.batches as f64,
            );
        }
    }
}
