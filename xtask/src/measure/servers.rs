//! `cargo xtask measure servers`: docs/results/servers.md, one row for each server that `cargo xtask servers`
//! starts and for each store of ours behind a wire, all under the same stream.
//!
//! The figures of a target are a file of docs/results/servers, written as soon as it is measured, and the page
//! is what those files render to: an interrupted command loses one target, and targets may be measured on
//! different days.

mod bounded;
mod cells;
mod defeats;
mod page;
mod page_cache;
mod plan;
mod row;
mod targets;
mod tree;
mod trial;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::folder;
use crate::bench;
use crate::ci;
use crate::proc_files::kib;
use crate::servers;
use crate::shell::{Stopwatch, capture, cargo, remove_folder, root, run, target_folder};
use crate::table::Table;
use plan::Lengths;
use targets::{Kind, TARGETS, Target};
use trial::Trial;

pub(super) const PAGE: &str = "docs/results/servers.md";
const ROWS: &str = "docs/results/servers";
/// The disk that the largest target takes while it is measured: QuestDB and Whisper allocate files ahead.
const DISK_GB: u64 = 20;

/// What was asked for.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    /// Run the shortest form of each step, and leave the page alone.
    is_quick: bool,
    /// Render the page from the rows that there are, and measure nothing.
    is_render: bool,
    /// A `tsb` with every client that is built already; else one is.
    program: Option<PathBuf>,
    /// The names that are wanted; all where none is given.
    only: Vec<String>,
}

impl Options {
    fn parse(arguments: &[&str]) -> Result<Self> {
        let mut options = Self {
            is_quick: false,
            is_render: false,
            program: None,
            only: Vec::new(),
        };
        let mut rest = arguments.iter();
        while let Some(&argument) = rest.next() {
            match argument {
                "--quick" => options.is_quick = true,
                "--render" => options.is_render = true,
                "--program" => options.program = Some(rest.next().context("--program needs a path")?.into()),
                "--only" => {
                    let names = rest.next().context("--only needs names")?;
                    options.only.extend(names.split(',').map(str::to_owned));
                }
                other => {
                    bail!(
                        "measure servers: --quick, --only NAME[,NAME]..., --program TSB and --render are all there is, not {other}"
                    )
                }
            }
        }
        if let Some(unknown) = options
            .only
            .iter()
            .find(|name| TARGETS.iter().all(|target| target.name != *name))
        {
            let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
            bail!("there is no target {unknown}; there are {}", known.join(", "));
        }
        Ok(options)
    }

    fn targets(&self) -> Vec<&'static Target> {
        let is_wanted = |target: &&Target| self.only.is_empty() || self.only.iter().any(|name| name == target.name);
        TARGETS.iter().filter(is_wanted).collect()
    }

    fn lengths(&self) -> Lengths {
        if self.is_quick { Lengths::QUICK } else { Lengths::FULL }
    }
}

/// Measures what is asked for, and writes the page.
pub(super) fn measure(arguments: &[&str]) -> Result<()> {
    let options = Options::parse(arguments)?;
    if options.is_render {
        return render();
    }
    let chosen = options.targets();
    println!("{}", requirements(&chosen, &options.lengths()));
    if let Some(busy) = servers::first_up() {
        bail!("{busy} is up, and would take its share of the cores: cargo xtask servers down {busy}");
    }
    // Asked before the rows change, which would count as a change of the sources.
    let record = bench::record()?;
    let program = match &options.program {
        Some(program) => program.clone(),
        None => build()?,
    };
    let scratch = folder("servers")?;
    let trial = Trial {
        program: &program,
        folder: &scratch,
        lengths: options.lengths(),
    };
    let (mut failed, mut rows) = (Vec::new(), Vec::new());
    for (place, target) in chosen.iter().enumerate() {
        println!("\n=== {} ({} of {}) ===", target.name, place + 1, chosen.len());
        let row = measure_one(&trial, target, &record)?;
        if row["errors"].as_array().is_some_and(|errors| !errors.is_empty()) {
            failed.push(target.name);
        }
        if options.is_quick {
            rows.push(row);
        } else {
            trial::save(&root().join(ROWS), target.name, &row)?;
            render()?;
        }
    }
    remove_folder(&scratch)?;
    if options.is_quick {
        println!("\n{}", page::page(&rows));
    }
    if !failed.is_empty() {
        bail!("steps failed of: {}", failed.join(", "));
    }
    Ok(())
}

/// Time and disk, as somebody has to know before it starts.
fn requirements(chosen: &[&Target], lengths: &Lengths) -> String {
    let mut table = Table::new(&["target", ">minutes", "what"]);
    for target in chosen {
        let minutes = format!("{:.1}", lengths.of(target) as f64 / 60.0);
        let what = if target.is_server() { "a server" } else { target.spec };
        table.row(&[target.name, &minutes, what]);
    }
    let minutes = chosen.iter().map(|target| lengths.of(target)).sum::<u64>().div_ceil(60);
    format!(
        "{}\nIn all about {minutes} minutes (estimated, on two cores), and up to {DISK_GB} GB of disk at a time, after a \
         release build of ten minutes and the installation of servers, which take some minutes the first time.\n\
         Nothing else may run on the machine: figures beside a build mean nothing.",
        table.render()
    )
}

/// Builds `tsb` with every client.
fn build() -> Result<PathBuf> {
    run(cargo(&["build", "--release", "--package", "tsb-cli"]).args(ci::every_feature()?))?;
    Ok(target_folder()?.join("release/tsb"))
}

/// Measures one target; a step that fails is an error of its row.
fn measure_one(trial: &Trial<'_>, target: &Target, record: &str) -> Result<Value> {
    let watch = Stopwatch::start();
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let date = capture(Command::new("date").args(["-u", "+%F"]))?;
    let (steps, errors) = trial.measure(target);
    let fact = |key: &str| {
        record
            .lines()
            .find_map(|line| line.strip_prefix(key))
            .unwrap_or("unknown")
    };
    let lengths = &trial.lengths;
    let row = json!({
        "name": target.name,
        "is_server": target.is_server(),
        "version": version(target),
        "no_queries": target.no_queries,
        "unread_probes": target.unread_probes,
        "date": date.trim(),
        "commit": fact("commit: "),
        "machine": { "processor": fact("processor: "), "kernel": fact("kernel: "), "memory_gib": memory_gib() },
        "load_before": load.split(' ').next(),
        "seconds": {
            "fixed": lengths.fixed_s, "queries": lengths.queries_s, "probe": lengths.probe_s,
            "capacity": lengths.capacity_s, "took": watch.elapsed().as_secs(),
        },
        "fleets": lengths.fleets,
        "steps": steps,
        "errors": errors,
    });
    // Reasons and errors may name files of this machine.
    let text = row
        .to_string()
        .replace(&target_folder()?.display().to_string(), "TARGET");
    serde_json::from_str(&text).context("a row is JSON")
}

/// The version of a server's program; of a store of ours, that of the workspace is the commit.
fn version(target: &Target) -> Value {
    let Kind::Server { package } = target.kind else {
        return Value::Null;
    };
    if let Some(pinned) = servers::pinned_version(target.name) {
        return pinned.into();
    }
    let asked = capture(Command::new("dpkg-query").args(["-W", "-f", "${Version}", package]));
    asked.map_or(Value::Null, |version| version.trim().into())
}

fn memory_gib() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    Some(kib(&text, "MemTotal:")?.div_ceil(1 << 20))
}

/// Writes the page from the rows that there are.
fn render() -> Result<()> {
    let rows = rows(&root().join(ROWS))?;
    fs::write(root().join(PAGE), page::page(&rows)).with_context(|| format!("cannot write {PAGE}"))
}

/// The rows of a folder, in the order of the targets; none where there is no folder.
fn rows(folder: &Path) -> Result<Vec<Value>> {
    let mut rows = Vec::new();
    for target in TARGETS {
        let path = folder.join(format!("{}.json", target.name));
        if path.is_file() {
            let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
            rows.push(serde_json::from_slice(&text).with_context(|| format!("{} is not JSON", path.display()))?);
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_understood_or_refused() {
        let options = Options::parse(&["--quick", "--only", "memory,etcd"]).expect("all are known");
        let names: Vec<&str> = options.targets().iter().map(|target| target.name).collect();
        assert_eq!((options.is_quick, names), (true, vec!["memory", "etcd"]));
        assert_eq!(Options::parse(&[]).expect("all").targets().len(), TARGETS.len());
        for bad in [&["--only", "oracle"][..], &["--only"], &["memory"]] {
            assert!(Options::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_plan_names_time_and_disk() {
        let plan = requirements(&TARGETS.iter().collect::<Vec<_>>(), &Lengths::FULL);
        assert!(plan.contains("victoriametrics") && plan.contains("20 GB"), "{plan}");
    }

    #[test]
    fn the_page_is_what_the_rows_render_to() {
        let rows = rows(&root().join(ROWS)).expect("rows that can be read");
        let committed = fs::read_to_string(root().join(PAGE)).expect("the page");
        assert!(committed == page::page(&rows), "cargo xtask measure servers --render");
    }
}
