//! Measures what replaying a trace costs, in CPU time of the thread: `cargo run --release
//! --example trace_replay -- FILE [SERIES]`.
//!
//! Reads the file, plans the fleet, generates every operation of two passes over the window,
//! then the same samples as the audit does; the two must agree.

use std::error::Error;
use std::hint::black_box;

use tsb_core::time::thread_cpu_ns;
use tsb_core::trace;
use tsb_core::workload::{Workload, WorkloadSpec};
use tsb_core::{SeriesId, Timestamp};

#[expect(clippy::print_stdout, reason = "the table is the result of the example")]
fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: trace_replay FILE [SERIES]")?;
    let mut spec = WorkloadSpec::new(format!("trace:{path}").parse()?, 1);
    spec.series = arguments.next().map(|text| text.parse()).transpose()?;

    let line = |what: &str, samples: u64, since: u64| {
        let spent = thread_cpu_ns() - since;
        let each = spent as f64 / samples as f64;
        println!(
            "{what:<9} {samples:>11} samples {each:>8.2} CPU-ns each {:>8.1} M/s",
            1000.0 / each
        );
    };
    let start = thread_cpu_ns();
    let trace = trace::open(&path)?;
    line("read", trace.samples(), start);
    let start = thread_cpu_ns();
    let workload = Workload::of_trace(&spec, &trace)?;
    line("plan", trace.samples(), start);
    let window = workload.window().ok_or("a trace has a window")?;
    println!("{window:?}");

    let base = Timestamp::from_secs(1_700_000_000);
    let groups = 0..workload.groups().len();
    let ticks = 0..2 * window.ticks;
    let mut generator = workload.generator(groups.clone(), base);
    let (mut made, mut bits) = (0, 0_u64);
    let start = thread_cpu_ns();
    for tick in ticks.clone() {
        for group in groups.clone() {
            let batch = black_box(generator.operation(group, tick));
            made += batch.len() as u64;
        }
    }
    line("generate", made, start);
    for tick in ticks.clone() {
        for group in groups.clone() {
            let values = generator.operation(group, tick).values().iter();
            bits = values.fold(bits, |bits, value| bits.wrapping_add(value.to_bits()));
        }
    }

    let mut replay = workload.replay(base);
    let (mut audited, mut audited_bits) = (0, 0_u64);
    let start = thread_cpu_ns();
    for id in 0..workload.catalog().len() as u32 {
        replay.series(SeriesId(id), ticks.clone(), &mut |sent| {
            audited += sent.len() as u64;
            let values = sent.values.iter();
            audited_bits = values.fold(audited_bits, |bits, value| bits.wrapping_add(value.to_bits()));
        });
    }
    line("audit", audited, start);
    if (made, bits) != (audited, audited_bits) {
        return Err("the audit does not make what the generator sent".into());
    }
    Ok(())
}
