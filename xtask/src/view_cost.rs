//! What the live view costs: runs with it and without, in turn, on the same terminal.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::shell::{cargo, run, target_folder};
use crate::table::Table;
use crate::terminal::{self, Session};
use crate::turns;

/// How often A B B A is run when nothing else is asked for.
const ROUNDS: usize = 3;

/// Seconds of each run.
const SECONDS: usize = 15;

/// What is compared: a name, and what the program is given.
const CONTESTANTS: [(&str, &str); 2] = [("without a view", "--quiet"), ("with the live view", "--progress live")];

/// A figure of a report: its heading, its place, and what divides it.
const FIGURES: [(&str, &str, f64); 5] = [
    (">response p50 us", "/latency/response/p50_ns", 1e3),
    (">p90 us", "/latency/response/p90_ns", 1e3),
    (">p99 us", "/latency/response/p99_ns", 1e3),
    (">lag p50 us", "/latency/lag/p50_ns", 1e3),
    (">lag p99 us", "/latency/lag/p99_ns", 1e3),
];

/// Measures and prints a table: the median of all runs, with the lowest and the highest.
pub(crate) fn measure(arguments: &[&str]) -> Result<()> {
    let rounds = turns::rounds("view-cost", arguments, ROUNDS)?;
    if let Some(why) = terminal::missing() {
        bail!("{why}");
    }
    run(&mut cargo(&["build", "--release", "--package", "tsb-cli"]))?;
    let target = target_folder()?;
    let (program, out) = (target.join("release/tsb"), target.join("view-cost.json"));
    let mut seen = [Vec::new(), Vec::new()];
    for round in 1..=rounds {
        for index in turns::ROUND {
            println!("round {round} of {rounds}: {}", CONTESTANTS[index].0);
            seen[index].push(figures(&report(&program, CONTESTANTS[index].1, &out)?)?);
        }
    }
    print!("{}", table(&seen).render());
    println!("median (lowest to highest) of {} runs of {SECONDS} s each", 2 * rounds);
    Ok(())
}

/// The report of one run on a terminal of its own.
fn report(program: &Path, progress: &str, out: &PathBuf) -> Result<Value> {
    if out.exists() {
        std::fs::remove_file(out)?;
    }
    let command = format!(
        "{} run --workload mix --no-calibrate --duration {SECONDS}s {progress} --out {}",
        program.display(),
        out.display(),
    );
    // The shell stays, so that the terminal still shows the result when it is looked at.
    let session = Session::start(120, 36, &format!("sh -c '{command}; echo ended; sleep 60'"))?;
    session.wait_for("ended")?;
    let text = std::fs::read_to_string(out).with_context(|| format!("{command} wrote no report"))?;
    Ok(serde_json::from_str(&text)?)
}

/// Percent of a core that the process used, then every figure.
fn figures(report: &Value) -> Result<Vec<f64>> {
    let number = |at: &str| {
        let value = report.pointer(at).and_then(Value::as_f64);
        value.with_context(|| format!("the report has no number at {at}"))
    };
    let cpu = number("/resources/0/user_cpu_ns")? + number("/resources/0/system_cpu_ns")?;
    let mut figures = vec![100.0 * cpu / number("/duration_ns")?];
    for (_, at, unit) in FIGURES {
        figures.push(number(at)? / unit);
    }
    Ok(figures)
}

fn table(seen: &[Vec<Vec<f64>>; 2]) -> Table {
    let headings = FIGURES.map(|(heading, ..)| heading);
    let mut table = Table::new(&[&["", ">CPU % of a core"], headings.as_slice()].concat());
    for ((name, _), runs) in CONTESTANTS.iter().zip(seen) {
        let mut cells = vec![(*name).to_owned()];
        for figure in 0..=FIGURES.len() {
            cells.push(spread(runs.iter().map(|run| run[figure]).collect()));
        }
        table.row(&cells.iter().map(String::as_str).collect::<Vec<_>>());
    }
    table
}

/// The median, with the lowest and the highest.
fn spread(figures: Vec<f64>) -> String {
    let text = |[lowest, median, highest]: [f64; 3]| format!("{median:.1} ({lowest:.1} to {highest:.1})");
    turns::spread(figures).map_or_else(String::new, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_a_median_between_extremes() {
        assert_eq!(spread(vec![3.0, 1.0, 2.0]), "2.0 (1.0 to 3.0)");
        assert_eq!(spread(vec![4.0, 1.0, 2.0, 3.0]), "2.5 (1.0 to 4.0)");
        assert_eq!(spread(Vec::new()), "");
    }

    #[test]
    fn figures_are_taken_from_their_places_or_missed_by_name() {
        let quantiles = serde_json::json!({"p50_ns": 1000, "p90_ns": 2000, "p99_ns": 3000});
        let mut report = serde_json::json!({
            "duration_ns": 2_000, "latency": {"response": quantiles, "lag": quantiles},
            "resources": [{"user_cpu_ns": 30, "system_cpu_ns": 10}],
        });
        assert_eq!(figures(&report).ok(), Some(vec![2.0, 1.0, 2.0, 3.0, 1.0, 3.0]));
        report["latency"]["lag"]["p99_ns"] = Value::Null;
        let error = figures(&report).map_err(|error| error.to_string());
        assert_eq!(error, Err("the report has no number at /latency/lag/p99_ns".to_owned()));
    }
}
