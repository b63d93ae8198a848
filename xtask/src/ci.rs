//! `cargo xtask ci`: runs the checks in turn, from cheap to expensive, with times and a summary;
//! the long ones only with `--full`. One that mostly waits runs beside others.
//!
//! A failing step does not stop the others: one run shows everything that is wrong.

mod ahead;
mod beside;
mod clients;
mod cpu_share;
mod dependencies;
mod features;
mod memory_disk;
mod packages;
mod page;
mod published;
mod rrdtool_tests;
mod servers;
mod soak;
mod steps;
mod tests_run;
mod toolchain;
mod tutorial;
mod whole_run;

pub(crate) use features::every as every_feature;
pub(crate) use packages::{has_librrd, require};
pub(crate) use tests_run::counted;

use std::time::Duration;

use anyhow::{Result, bail};

use self::ahead::BuildAhead;
use self::beside::{Beside, WAITING};
use self::cpu_share::CpuTimes;
use crate::shell::Stopwatch;
use crate::table::Table;

/// How a step ended, if it did not fail.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It ran and found nothing wrong; a note for the table, perhaps empty.
    Passed(String),
    /// It could not run, and why.
    NotRun(String),
}

impl Outcome {
    /// It ran, and there is nothing to add.
    const PASSED: Self = Self::Passed(String::new());
}

/// One check.
struct Step {
    name: &'static str,
    /// Whether only `--full` runs it.
    is_long: bool,
    run: fn() -> Result<Outcome>,
}

/// A step that has ended.
struct Row {
    name: &'static str,
    took: Duration,
    /// Of the machine's CPU time, in use by anything.
    cpu_percent: Option<f64>,
    result: Result<Outcome>,
}

/// The parsed command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Options {
    full: bool,
    list: bool,
    only: Vec<String>,
}

/// Runs the checks that `arguments` ask for.
pub(crate) fn run(arguments: &[&str]) -> Result<()> {
    let options = parse(arguments)?;
    if options.list {
        for step in steps::STEPS {
            println!("{}{}", step.name, if step.is_long { " (--full)" } else { "" });
        }
        return Ok(());
    }
    let chosen = choose(steps::STEPS, &options)?;
    let mut rows = Vec::new();
    let (mut ahead, mut beside) = (None, None);
    for (place, step) in chosen.iter().enumerate() {
        let follows = |name: &str| chosen[place..].iter().any(|later| later.name == name);
        if step.name == "tests" && follows("benches") {
            ahead = Some(BuildAhead::start()?);
        }
        if step.name == WAITING.1 && follows(WAITING.0) {
            beside = Some(Beside::start(WAITING.0)?);
        }
        println!("\n=== {} ===", step.name);
        let (watch, before) = (Stopwatch::start(), CpuTimes::now());
        let result = match beside.take_if(|_| step.name == WAITING.0) {
            Some(begun) => begun.finish(),
            None => (step.run)(),
        };
        if let Err(error) = &result {
            eprintln!("{} failed: {error:#}", step.name);
        }
        rows.push(Row {
            name: step.name,
            took: watch.elapsed(),
            cpu_percent: CpuTimes::now().percent_since(before),
            result,
        });
    }
    drop(ahead);
    // What failed comes last, and whole: a log is often kept by its end.
    println!("\n{}", summary(&rows));
    let mut failed = Vec::new();
    for row in &rows {
        if let Err(error) = &row.result {
            println!("{}: {error:#}\n", row.name);
            failed.push(row.name);
        }
    }
    if !failed.is_empty() {
        bail!(
            "ci: {} of {} steps failed: {}",
            failed.len(),
            rows.len(),
            failed.join(", ")
        );
    }
    Ok(())
}

fn parse(arguments: &[&str]) -> Result<Options> {
    let mut options = Options::default();
    let mut rest = arguments.iter();
    while let Some(&argument) = rest.next() {
        match argument {
            "--full" => options.full = true,
            "--list" => options.list = true,
            "--only" => match rest.next() {
                Some(name) => options.only.push((*name).to_owned()),
                None => bail!("--only needs the name of a step; --list names them"),
            },
            other => bail!("ci: no such argument: {other}"),
        }
    }
    Ok(options)
}

/// The steps to run; one that is named runs even if it is long.
fn choose<'a>(steps: &'a [Step], options: &Options) -> Result<Vec<&'a Step>> {
    if options.only.is_empty() {
        return Ok(steps.iter().filter(|step| options.full || !step.is_long).collect());
    }
    let mut chosen = Vec::new();
    for name in &options.only {
        match steps.iter().find(|step| step.name == name) {
            Some(step) => chosen.push(step),
            None => bail!("ci: no such step: {name}; --list names them"),
        }
    }
    Ok(chosen)
}

/// The table at the end, with the total time and what was not run.
fn summary(rows: &[Row]) -> String {
    let mut table = Table::new(&["step", "result", ">seconds", ">CPU %", "note"]);
    for row in rows {
        let error = row.result.as_ref().err().map(|error| first_line(&format!("{error:#}")));
        let (word, note) = match &row.result {
            Ok(Outcome::Passed(note)) => ("passed", note.as_str()),
            Ok(Outcome::NotRun(why)) => ("NOT RUN", why.as_str()),
            Err(_) => ("FAILED", error.as_deref().unwrap_or_default()),
        };
        let cpu = row
            .cpu_percent
            .map_or_else(|| "-".to_owned(), |percent| format!("{percent:.0}"));
        table.row(&[row.name, word, &seconds(row.took), &cpu, note]);
    }
    let total = rows.iter().map(|row| row.took).sum();
    table.row(&["total", "", &seconds(total), "", ""]);
    table.render()
}

fn seconds(took: Duration) -> String {
    format!("{:.1}", took.as_secs_f64())
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: &[Step] = &[
        Step {
            name: "quick",
            is_long: false,
            run: || Ok(Outcome::PASSED),
        },
        Step {
            name: "slow",
            is_long: true,
            run: || Ok(Outcome::PASSED),
        },
    ];

    fn names(arguments: &[&str]) -> Result<Vec<&'static str>> {
        let chosen = choose(STEPS, &parse(arguments)?)?;
        Ok(chosen.iter().map(|step| step.name).collect())
    }

    #[test]
    fn long_steps_run_only_when_asked_for() {
        assert_eq!(names(&[]).ok(), Some(vec!["quick"]));
        assert_eq!(names(&["--full"]).ok(), Some(vec!["quick", "slow"]));
        assert_eq!(names(&["--only", "slow"]).ok(), Some(vec!["slow"]));
        assert!(names(&["--only", "none"]).is_err());
        assert!(names(&["--only"]).is_err());
        assert!(names(&["--fast"]).is_err());
    }

    #[test]
    fn step_names_are_unique() {
        let mut names: Vec<&str> = steps::STEPS.iter().map(|step| step.name).collect();
        names.sort_unstable();
        let before = names.len();
        names.dedup();
        assert_eq!(names.len(), before);
    }

    #[test]
    fn the_summary_says_what_did_not_run_and_why() {
        let row = |name, result| Row {
            name,
            took: Duration::from_millis(1500),
            cpu_percent: Some(42.4),
            result,
        };
        let rows = [
            row("fmt", Ok(Outcome::PASSED)),
            row("fuzz", Ok(Outcome::NotRun("no nightly toolchain".to_owned()))),
            row("tests", Err(anyhow::anyhow!("cargo test failed\nlong story"))),
        ];
        let expected = "\
step   result   seconds  CPU %  note
-----  -------  -------  -----  --------------------
fmt    passed       1.5     42
fuzz   NOT RUN      1.5     42  no nightly toolchain
tests  FAILED       1.5     42  cargo test failed
total               4.5
";
        assert_eq!(summary(&rows), expected);
    }
}
