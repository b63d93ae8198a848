//! Records values of this machine into a trace file: `cargo run --release --example record_proc
//! -- OUT SECONDS [COMMAND-PREFIX ...]`.

use std::error::Error;
use std::fs::File;
use std::io::BufWriter;
use std::sync::atomic::AtomicBool;

use tsb_core::time::{MonotonicClock, SECOND_NS};
use tsb_core::trace::{RecordOptions, record};

#[expect(clippy::print_stdout, reason = "the summary is the result of the example")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: record_proc OUT SECONDS [COMMAND-PREFIX ...]";
    let path = arguments.next().ok_or(usage)?;
    let seconds: u64 = arguments.next().ok_or(usage)?.parse()?;
    let options = RecordOptions {
        duration_ns: Some(seconds * SECOND_NS),
        names: arguments.collect(),
        ..RecordOptions::default()
    };
    let out = BufWriter::new(File::create(path)?);
    let summary = record(&options, &MonotonicClock::new(), out, &AtomicBool::new(false))?;
    println!(
        "{} series, {} samples, {} bytes",
        summary.totals.series, summary.totals.samples, summary.totals.bytes
    );
    println!(
        "{} ticks, {} missed, lag at most {} us",
        summary.ticks,
        summary.missed_ticks,
        summary.lag_ns_max / 1000
    );
    println!("{} problems\n{}", summary.problems.count, summary.problems);
    Ok(())
}
