//! `tsb reproduce`: repeats a published experiment, with its mistakes removed.
//!
//! Another one also needs an arm in `again::show`, an entry in `tsb_run::experiment::EXPERIMENTS`, and
//! a page in `render::html::experiments`.

mod again;
mod dalmatiner;
mod hm9000;
mod keyed_layouts;
mod mohawk;
mod records;
mod rrdcached;

use std::fmt::Write as _;

use tsb_core::report::experiment::Row;
use tsb_run::experiment::EXPERIMENTS;

use crate::args::{Experiment, ExperimentArgs, ReproduceArgs};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::render::experiment_figures::number_of;

pub use again::show;

/// Runs the command.
pub fn command(args: &ReproduceArgs) -> Result<Exit, Failure> {
    match &args.experiment {
        Some(Experiment::Mohawk(args)) => mohawk::command(args),
        Some(Experiment::Rrdcached(args)) => rrdcached::command(args),
        Some(Experiment::Hm9000(args)) => hm9000::command(args),
        Some(Experiment::Records(args)) => records::command(args),
        Some(Experiment::Dalmatiner(args)) => dalmatiner::command(args),
        None => list(),
    }
}

/// Prints what can be repeated.
fn list() -> Result<Exit, Failure> {
    let mut out = String::new();
    for experiment in EXPERIMENTS {
        let _ = writeln!(out, "tsb reproduce {}", experiment.name);
        for (what, text) in [
            ("asks", experiment.question),
            ("needs", experiment.needs),
            ("takes", experiment.takes),
        ] {
            let _ = writeln!(out, "  {what:5}  {text}");
        }
    }
    crate::output::print(out.as_bytes())?;
    Ok(Exit::Done)
}

/// Writes sentences below a heading; nothing if there is none.
fn sentences(out: &mut String, heading: &str, all: &[String]) {
    if all.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{heading}");
    for sentence in all {
        let _ = writeln!(out, "  - {sentence}");
    }
}

/// Writes the published figures beside the measured ones. `machine` is the one of the publication.
fn published(out: &mut String, machine: &str, rows: &[Row]) {
    let _ = writeln!(out, "\nPublished ({machine}) beside measured here");
    for row in rows {
        let number = |value: f64| number_of(row, value);
        let published = row.published.map_or_else(
            || "not published".to_owned(),
            |value| format!("published {} {}", number(value), row.unit),
        );
        let measured = row.measured.map_or_else(
            || "not measured".to_owned(),
            |value| format!("measured {} {}", number(value), row.unit),
        );
        let ratio = row
            .ratio
            .map_or_else(String::new, |ratio| format!(", ratio {ratio:.2}"));
        let _ = writeln!(
            out,
            "  {}\n    {published}, {measured}{ratio}\n    {}",
            row.what, row.why
        );
    }
}

/// Prints progress, unless it is not wanted.
fn say(args: &ExperimentArgs, what: &str) {
    if !args.quiet {
        crate::say::line(what);
    }
}
