//! The `tsb` program as a library: what was typed (`args`), what it means (`plan`), one file per
//! command, and how results are shown (`render`). Runs themselves are made by `tsb_run`.
//!
//! Printing, exit codes and environment variables are used in this crate only.

pub mod args;
pub mod canary;
pub mod capacity;
pub mod compare;
pub mod conformance;
pub mod credentials;
pub mod doctor;
pub mod emit;
pub mod endpoint;
pub mod exit;
pub mod failure;
pub mod hosts;
pub mod ingest;
pub mod interrupt;
pub mod live;
pub mod manual;
pub mod metrics;
pub mod output;
pub mod plan;
pub mod query;
pub mod record;
pub mod render;
pub mod report;
pub mod reports;
pub mod reproduce;
pub mod run;
pub mod say;
pub mod stores;
pub mod thresholds;
pub mod verify;

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use tsb_run::spec::{or_nearest, redact_text};

use args::{Cli, Command};
use exit::Exit;
use failure::Failure;

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    let ended = match args::parse() {
        Ok(cli) => dispatch(cli),
        Err(error) => not_parsed(&error),
    };
    let exit = ended.unwrap_or_else(|failure| {
        say::failure(&failure);
        failure.exit
    });
    exit.into()
}

/// Prints clap's message: help and version to stdout, errors to stderr.
fn not_parsed(error: &clap::Error) -> Result<Exit, Failure> {
    if !error.use_stderr() {
        output::ignore_broken_pipe(error.print())?;
        return Ok(Exit::Done);
    }
    if let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand) {
        let command = args::command();
        let names = command.get_subcommands().map(clap::Command::get_name);
        return Err(Failure::usage(format!(
            "unknown command {typed:?}{}",
            or_nearest(typed, names, "")
        )));
    }
    // It quotes arguments as they were given.
    let said = error.to_string();
    let clean = redact_text(&said);
    if tsb_run::foreign::lines(&clean) == said {
        let _ = error.print();
    } else {
        say::failure(clean.trim_end());
    }
    Ok(Exit::Usage)
}

fn dispatch(cli: Cli) -> Result<Exit, Failure> {
    match cli.command {
        None => run::command(&cli.run),
        Some(Command::Run(args)) if args.hosts.is_shared() => hosts::lead(&args),
        Some(Command::Run(args)) => run::command(&args.run),
        Some(Command::Join(args)) => hosts::join(&args),
        Some(Command::Capacity(args)) => capacity::command(&args),
        Some(Command::Plan(args)) => plan::command(&args),
        Some(Command::Ingest(args)) => ingest::command(&args),
        Some(Command::Emit(args)) => emit::command(&args),
        Some(Command::Verify(args)) => verify::command(&args),
        Some(Command::Report(args)) => report::command(&args),
        Some(Command::Compare(args)) => compare::command(&args),
        Some(Command::Query(args)) => query::command(&args),
        Some(Command::Record(args)) => record::command(&args),
        Some(Command::Reproduce(args)) => reproduce::command(&args),
        Some(Command::Canary(args)) => canary::command(&args),
        Some(Command::Conformance(args)) => conformance::command(&args),
        Some(Command::Stores(args)) => stores::command(&args),
        Some(Command::Doctor(args)) => doctor::command(&args),
        Some(Command::Completions { shell }) => manual::completions(shell),
        Some(Command::Man { dir }) => manual::pages(dir.as_deref()),
    }
}
