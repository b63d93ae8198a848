//! Prints a summary of a trace: `cargo run --release --example trace_summary -- FILE`.

use std::collections::BTreeMap;
use std::error::Error;

use tsb_core::trace;

#[expect(clippy::print_stdout, reason = "the summary is the result of the example")]
fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: trace_summary FILE")?;
    let bytes = std::fs::metadata(&path)?.len();
    let trace = trace::open(&path)?;
    let (start, end) = trace.span().ok_or("no sample")?;
    let samples = trace.samples();
    let interval = trace.usual_interval_ns().ok_or("no interval")?;
    println!(
        "{} series, {samples} samples, {bytes} bytes ({:.3} a sample), checksum {:08x}",
        trace.keys.len(),
        bytes as f64 / samples as f64,
        trace.checksum()
    );
    println!(
        "from {start} to {end} at {interval} ns: {:.0} s",
        (end - start) as f64 / 1e9
    );
    let grid = trace.grid(interval)?;
    println!("{} ticks, {:?}", grid.ticks(), grid.counts());
    println!("{} problems\n{}", trace.problems.count, trace.problems);
    let mut lengths: Vec<usize> = trace.columns.iter().map(trace::Column::len).collect();
    lengths.sort_unstable();
    let whole = lengths.iter().filter(|&&length| length == grid.ticks()).count();
    let constant = trace.columns.iter().filter(|column| {
        let values = column.values();
        values.iter().all(|value| value.to_bits() == values[0].to_bits())
    });
    println!(
        "samples in a series: {} at least, {} at the median, {} at most; {whole} series in every tick, {} constant",
        lengths[0],
        lengths[lengths.len() / 2],
        lengths[lengths.len() - 1],
        constant.count()
    );
    let mut cpu = (0.0, 0.0);
    for (key, column) in trace.keys.iter().zip(&trace.columns) {
        if key.label("cpu") == Some("all")
            && let [first, .., last] = column.values()
        {
            let is_idle = key.name() == "cpu_idle_ticks" || key.name() == "cpu_iowait_ticks";
            cpu.0 += if is_idle { 0.0 } else { last - first };
            cpu.1 += last - first;
        }
    }
    println!("CPU in use: {:.0} % of the time", 100.0 * cpu.0 / cpu.1);
    let mut commands: BTreeMap<&str, u64> = BTreeMap::new();
    for key in trace.keys.iter().filter(|key| key.name() == "process_threads") {
        *commands.entry(key.label("comm").unwrap_or_default()).or_default() += 1;
    }
    println!("processes by command: {commands:?}");
    Ok(())
}
