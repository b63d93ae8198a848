//! `cargo xtask servers table`: every layout of MongoDB at several levels and numbers of
//! workers, each a whole run of `tsb` that reads everything back.
//!
//! All runs once forth and once back, so that what changes on the machine meanwhile does not
//! favour one of them. Each is a closed loop, which finds the rate, and then an open loop at
//! half of that rate, which alone can say what a client waits for and how old the newest
//! sample is. Figures are those of the reports; nothing is computed but means.
//!
//! What the client costs beside the driver alone is `equal`, a command and a page of its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use super::{SERVERS, is_up, store_of, up};
use crate::shell::{capture_any, cargo, run, target_folder};

mod equal;
mod page;

/// The server, and what is added to its spec.
const LEVELS: &[(&str, &str)] = &[("mongod", "w=1"), ("mongod", "w=1&j=1"), ("mongod-set", "")];
/// The layout, and the series of each worker: its batches are one tick of all of them.
/// Mohawk's has no batches, and makes a collection a series.
const LAYOUTS: &[(&str, u32)] = &[
    ("series", 1_000),
    ("rows", 1_000),
    ("bucket", 1_000),
    ("ticks", 1_000),
    ("mohawk", 100),
];
const WORKERS: &[u32] = &[1, 8];

/// Samples that were accepted, a second.
const RATE: &str = "/rate/held_per_second";

/// One row.
#[derive(Debug)]
struct Cell {
    layout: &'static str,
    /// Of each worker.
    series: u32,
    server: &'static str,
    level: &'static str,
    workers: u32,
    /// Of the closed loops.
    full: Vec<Value>,
    /// Of the open loops at half of their rates.
    half: Vec<Value>,
}

impl Cell {
    /// The rate of its closed loops, lower and higher.
    fn rate(&self) -> [f64; 2] {
        lower_and_higher(self.full.iter().map(|report| number(report, RATE)))
    }
}

/// What was asked on the command line.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    seconds: u32,
    /// A `tsb` that is built already; else one is.
    program: Option<PathBuf>,
    /// The server whose rows are wanted, and its level; else all.
    only: Option<String>,
    /// A file for the table as a page of Markdown.
    out: Option<PathBuf>,
}

/// Runs all cells and prints the table.
pub(super) fn print(arguments: &[&str]) -> Result<()> {
    let options = parse(arguments)?;
    let program = match options.program {
        Some(program) => program,
        None => build()?,
    };
    up(&["mongod", "mongod-set"])?;
    let mut cells = cells();
    if let Some(only) = &options.only {
        cells.retain(|cell| format!("{} {}", cell.server, cell.level).trim_end() == only);
        if cells.is_empty() {
            bail!("no row is {only:?}; there are mongod w=1, mongod w=1&j=1, and mongod-set");
        }
    }
    let count = cells.len();
    for index in (0..count).chain((0..count).rev()) {
        let cell = &mut cells[index];
        let full = measure(&program, cell, None, options.seconds)?;
        let rate = number(&full, RATE);
        println!(
            "{} {} {} with {} workers: {rate:.0} samples/s",
            cell.layout, cell.server, cell.level, cell.workers,
        );
        cell.half
            .push(measure(&program, cell, Some(rate / 2.0), 2 * options.seconds)?);
        cell.full.push(full);
    }
    println!("\n{}\n{}", page::table(&cells).render(), page::notes(&cells));
    if let Some(path) = &options.out {
        let only = options.only.as_ref();
        let only = only.map_or_else(String::new, |only| format!(" --only '{only}'"));
        let command = format!(
            "cargo xtask servers table --seconds {}{only} --out {}",
            options.seconds,
            path.display()
        );
        save(path, &page::page(&cells, &command))?;
    }
    Ok(())
}

/// Measures our client beside the driver alone, on a mongod that has the machine for itself.
pub(super) fn print_equal(arguments: &[&str]) -> Result<()> {
    let out = match arguments {
        [] => None,
        ["--out", path] => Some(Path::new(*path)),
        _ => bail!("servers equal: --out FILE is all there is"),
    };
    let mut others = SERVERS.iter().map(|server| server.name());
    if let Some(other) = others.find(|name| *name != "mongod" && is_up(name)) {
        bail!("{other} is up, and would take its share of the cores: cargo xtask servers down {other}");
    }
    up(&["mongod"])?;
    let report = equal::measure(&host_of("mongod")?)?;
    println!("{}\n{}", equal::table(&report).render(), equal::notes(&report));
    if let Some(path) = out {
        let command = format!("cargo xtask servers equal --out {}", path.display());
        save(path, &equal::page(&report, &command))?;
    }
    Ok(())
}

fn save(path: &Path, page: &str) -> Result<()> {
    std::fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))
}

/// Where a server of one process listens: `host:port`.
fn host_of(server: &str) -> Result<String> {
    let store = store_of(server)?;
    let host = store.split_once("//").and_then(|(_, rest)| rest.split('/').next());
    host.map(str::to_owned)
        .with_context(|| format!("{store} names no host"))
}

fn parse(arguments: &[&str]) -> Result<Options> {
    let mut options = Options {
        seconds: 5,
        program: None,
        only: None,
        out: None,
    };
    let mut rest = arguments.iter();
    while let Some(&argument) = rest.next() {
        match (argument, rest.next()) {
            ("--seconds", Some(seconds)) => {
                options.seconds = seconds.parse().context("--seconds needs a whole number")?;
            }
            ("--program", Some(path)) => options.program = Some(path.into()),
            ("--only", Some(only)) => options.only = Some((*only).to_owned()),
            ("--out", Some(path)) => options.out = Some(path.into()),
            _ => bail!(
                "servers table: --seconds N, --only 'SERVER LEVEL', --program TSB and --out FILE are all there is"
            ),
        }
    }
    Ok(options)
}

fn build() -> Result<PathBuf> {
    run(&mut cargo(&[
        "build",
        "--release",
        "--package",
        "tsb-cli",
        "--features",
        "mongo",
    ]))?;
    Ok(target_folder()?.join("release/tsb"))
}

fn cells() -> Vec<Cell> {
    let mut cells = Vec::new();
    for &(server, level) in LEVELS {
        for &(layout, series) in LAYOUTS {
            for &workers in WORKERS {
                cells.push(Cell {
                    layout,
                    series,
                    server,
                    level,
                    workers,
                    full: Vec::new(),
                    half: Vec::new(),
                });
            }
        }
    }
    cells
}

/// A run at a rate, or as fast as the store answers.
fn measure(program: &Path, cell: &Cell, rate: Option<f64>, seconds: u32) -> Result<Value> {
    let store = store_of(cell.server)?;
    let (address, options) = store.split_once('?').unwrap_or((&store, ""));
    let store = format!("{address}-table?{options}&{}&layout={}&drop=1", cell.level, cell.layout);
    let mut command = Command::new(program);
    command.args([
        "run",
        "--store",
        &store,
        "--transport",
        "inproc",
        "--workload",
        "mix",
        "--batch",
        "tick",
    ]);
    command.args(["--series", &(cell.series * cell.workers).to_string()]);
    command.args(["--workers", &cell.workers.to_string()]);
    let rate = rate.map_or_else(|| "max".to_owned(), |rate| format!("{rate:.0}"));
    command.args(["--rate", &rate, "--duration", &format!("{seconds}s")]);
    command.args(["--no-calibrate", "--quiet", "--format", "json"]);
    let (code, text) = capture_any(&mut command)?;
    let report: Value = serde_json::from_str(&text).with_context(|| format!("{store}: no report, exit {code:?}"))?;
    if report["ledger"]["balanced"] != true || report["ledger"]["verified"] != report["ledger"]["accepted"] {
        bail!("{store}: not everything was verified: {}", report["ledger"]);
    }
    Ok(report)
}

fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN)
}

fn lower_and_higher(figures: impl Iterator<Item = f64>) -> [f64; 2] {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    [figures.first(), figures.last()].map(|figure| figure.copied().unwrap_or(f64::NAN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_checked() {
        let options =
            parse(&["--seconds", "2", "--program", "/bin/tsb", "--only", "mongod w=1"]).expect("all are known");
        assert_eq!((options.seconds, options.program), (2, Some("/bin/tsb".into())));
        assert_eq!(options.only.as_deref(), Some("mongod w=1"));
        assert_eq!(cells().len(), 30);
        assert!(parse(&["--seconds"]).is_err() && parse(&["--seconds", "x"]).is_err() && parse(&["fast"]).is_err());
    }
}
