//! `cargo xtask peers`: compares text generation by tsb and by a published peer, run in turn on
//! this machine, in CPU time of the whole process.
//!
//! It compares generators, not stores; the notes under the table say how far the work is the
//! same.

mod cpu;
mod load;
mod published;
mod tools;

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::shell::{self, spell};
use crate::table::Table;
use crate::turns;
use cpu::CpuMeter;

/// How often A B B A is run when nothing else is asked for.
const ROUNDS: usize = 3;

/// One program that writes metrics as text to its standard output.
#[derive(Debug)]
struct Contestant {
    name: &'static str,
    /// What it writes, in a few words.
    work: &'static str,
    command: Command,
    /// Values in a line: fields of a row.
    values_per_line: u64,
}

/// What a contestant's output consists of: the same in every run, as its inputs are seeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Output {
    lines: u64,
    bytes: u64,
}

/// Why no peer can be built here, if so.
pub(crate) fn missing() -> Option<String> {
    let has_go = shell::has("go", "version");
    (!has_go).then(|| "there is no go toolchain, which builds tsbs_generate_data".to_owned())
}

/// Builds, runs and prints.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    if let ["load", rest @ ..] = arguments {
        return match missing() {
            None => load::run(rest),
            Some(why) => bail!("no peer was run: {why}"),
        };
    }
    let rounds = turns::rounds("peers", arguments, ROUNDS)?;
    let Some(why) = missing() else {
        let mut contestants = [tools::tsbs()?, tools::tsb()?];
        let outputs = count(&mut contestants)?;
        let costs = race(&mut contestants, rounds)?;
        println!("\n{}", report(&contestants, &outputs, &costs));
        println!("The codecs alone, both ways, on values made beforehand, in CPU time of the thread:\n");
        shell::run(&mut tools::wire_table())?;
        println!();
        println!("{}", published::table());
        return Ok(());
    };
    println!("no peer was run: {why}\n\n{}", published::table());
    Ok(())
}

/// Runs each contestant once into a counter, untimed: this is also its warm-up.
fn count(contestants: &mut [Contestant; 2]) -> Result<[Output; 2]> {
    let mut outputs = [Output { lines: 0, bytes: 0 }; 2];
    for (contestant, output) in contestants.iter_mut().zip(&mut outputs) {
        println!("$ {}", spell(&contestant.command));
        *output = count_output(&mut contestant.command)?;
        if output.lines == 0 {
            bail!("{} wrote nothing", contestant.name);
        }
    }
    Ok(outputs)
}

fn count_output(command: &mut Command) -> Result<Output> {
    let spelled = spell(command);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn();
    let mut child = child.with_context(|| format!("cannot start {spelled}"))?;
    let mut pipe = child.stdout.take().context("the child has no output")?;
    let mut output = Output { lines: 0, bytes: 0 };
    let mut chunk = vec![0; 1 << 16];
    loop {
        let got = std::io::Read::read(&mut pipe, &mut chunk)?;
        if got == 0 {
            break;
        }
        output.bytes += got as u64;
        output.lines += chunk[..got].split(|&byte| byte == b'\n').count() as u64 - 1;
    }
    let status = child.wait()?;
    if !status.success() {
        bail!("{spelled} failed: {status}");
    }
    Ok(output)
}

/// CPU seconds of every run of each contestant, taken in the order A B B A.
fn race(contestants: &mut [Contestant; 2], rounds: usize) -> Result<[Vec<f64>; 2]> {
    let meter = CpuMeter::new()?;
    let mut costs = [Vec::new(), Vec::new()];
    for round in 1..=rounds {
        for index in turns::ROUND {
            let contestant = &mut contestants[index];
            let seconds = meter.seconds_of(&mut contestant.command)?;
            println!("round {round} of {rounds}: {} {seconds:.2} CPU-s", contestant.name);
            costs[index].push(seconds);
        }
    }
    Ok(costs)
}

/// Values of the whole output, in millions, per CPU-second: lowest, median, highest run.
fn rates(values: u64, costs: &[f64]) -> [f64; 3] {
    let rates = costs.iter().map(|seconds| values as f64 / seconds / 1e6);
    turns::spread(rates.collect()).unwrap_or_default()
}

fn report(contestants: &[Contestant; 2], outputs: &[Output; 2], costs: &[Vec<f64>; 2]) -> String {
    let mut table = Table::new(&[
        "measured in this run",
        "writes",
        ">values",
        ">bytes/value",
        ">bytes/line",
        ">M values/CPU-s",
        ">lowest..highest",
        ">MB/CPU-s",
    ]);
    let mut medians = [0.0; 2];
    for (index, contestant) in contestants.iter().enumerate() {
        let output = outputs[index];
        let values = output.lines * contestant.values_per_line;
        let [low, median, high] = rates(values, &costs[index]);
        medians[index] = median;
        let bytes_per_value = output.bytes as f64 / values as f64;
        table.row(&[
            contestant.name,
            contestant.work,
            &values.to_string(),
            &format!("{bytes_per_value:.1}"),
            &format!("{:.1}", output.bytes as f64 / output.lines as f64),
            &format!("{median:.2}"),
            &format!("{low:.2}..{high:.2}"),
            &format!("{:.0}", median * bytes_per_value),
        ]);
    }
    let ratio = medians[1] / medians[0];
    let runs = costs[0].len();
    format!(
        "{}\n\
         {} / {} = {ratio:.1} in values per CPU-second (medians of {runs} runs each, taken in the order A B B A).\n\
         CPU-seconds are user and system time of the whole process, start-up included; output goes to the null device.\n\
         What differs: tsbs writes Influx lines of ten fields, and the name of a host is written once for ten values;\n\
         tsb writes Graphite lines of one value, each with its whole name. Both make every value anew, from a seed.\n",
        table.render(),
        contestants[1].name,
        contestants[0].name,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_values_over_cpu_time() {
        assert_eq!(rates(6_000_000, &[3.0, 1.0, 2.0]), [2.0, 3.0, 6.0]);
        assert_eq!(rates(6_000_000, &[3.0, 1.0]), [2.0, 4.0, 6.0]);
    }

    #[test]
    fn output_is_counted_to_the_byte() {
        let output = count_output(Command::new("printf").arg("a b\\nc\\n")).ok();
        assert_eq!(output, Some(Output { lines: 2, bytes: 6 }));
        assert!(count_output(&mut Command::new("false")).is_err());
    }

    #[test]
    fn the_report_has_both_sides_and_their_ratio() {
        let contestant = |name, values_per_line| Contestant {
            name,
            work: "lines",
            command: Command::new("true"),
            values_per_line,
        };
        let contestants = [contestant("peer", 10), contestant("ours", 1)];
        let outputs = [
            Output {
                lines: 100_000,
                bytes: 20_000_000,
            },
            Output {
                lines: 1_000_000,
                bytes: 40_000_000,
            },
        ];
        let text = report(&contestants, &outputs, &[vec![1.0], vec![0.1]]);
        assert!(text.contains("ours / peer = 10.0"), "{text}");
        assert!(text.contains("20.0") && text.contains("200.0"), "{text}");
    }
}
