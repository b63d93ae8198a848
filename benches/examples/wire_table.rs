//! Prints what a codec costs, in samples per CPU-second of the thread.
//!
//! `cargo run --release -p tsb-bench --example wire_table`, optionally followed by the names of
//! some rows. All values are new, and the bits of all decoded values are summed and compared
//! with those encoded. Payload buffers are reused as connections reuse theirs; a whole tick of
//! text is larger than the second-level cache, the others are not. Criterion answers the same
//! question in wall time: `cargo bench -p tsb-bench --bench wire_decode`.
#![expect(clippy::print_stdout, reason = "an example prints its result")]

use tsb_bench::codec::{BatchOrder, Codec, CodecCase};
use tsb_core::time::thread_cpu_ns;

/// Ticks per row of the table.
const TICKS: usize = 100;

/// One protocol in one order: nanoseconds of both directions.
#[derive(Default)]
struct Row {
    samples: usize,
    bytes: usize,
    batches: usize,
    encode_ns: u64,
    decode_ns: u64,
}

impl Row {
    fn measure(case: CodecCase, order: BatchOrder) -> Self {
        let mut run = Codec::new(case, order);
        let mut row = Self::default();
        // The first tick announces every name and is not counted.
        for tick in 0..=TICKS {
            run.next_tick();
            while run.next_part() {
                let start = thread_cpu_ns();
                run.encode();
                let middle = thread_cpu_ns();
                run.decode();
                let end = thread_cpu_ns();
                if tick > 0 {
                    row.encode_ns += middle - start;
                    row.decode_ns += end - middle;
                    row.bytes += run.payload_bytes();
                }
            }
            let (samples, batches) = run.verify();
            if tick > 0 {
                row.samples += samples;
                row.batches += batches;
            }
        }
        row
    }

    fn print(&self, case: CodecCase, order: BatchOrder) {
        let samples = self.samples as f64;
        println!(
            "{:<17} {:<10} {:>9.2} {:>9.1} {:>9.2} {:>9.1} {:>9.2} {:>14.1}",
            case.name(),
            order.name(),
            self.bytes as f64 / samples,
            samples * 1e3 / self.encode_ns as f64,
            self.encode_ns as f64 / samples,
            samples * 1e3 / self.decode_ns as f64,
            self.decode_ns as f64 / samples,
            samples / self.batches as f64,
        );
    }
}

fn main() {
    println!(
        "{:<17} {:<10} {:>9} {:>19} {:>19} {:>14}",
        "", "", "", "encode", "decode", "decoded"
    );
    println!(
        "{:<17} {:<10} {:>9} {:>9} {:>9} {:>9} {:>9} {:>14}",
        "protocol", "order", "B/sample", "M/CPU-s", "ns", "M/CPU-s", "ns", "samples/batch"
    );
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |case: &CodecCase| wanted.is_empty() || wanted.contains(&case.name());
    for case in CodecCase::all().into_iter().filter(is_wanted) {
        for order in BatchOrder::ALL {
            Row::measure(case, order).print(case, order);
        }
    }
}
