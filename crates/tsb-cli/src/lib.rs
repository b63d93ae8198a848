//! The `tsb` program as a library: what was typed (`args`), what it means (`plan`), one
//! file per command, and how results are shown (`render`).
//!
//! Printing, exit codes and environment variables live in this crate alone.

#![expect(clippy::print_stderr, reason = "stderr is where progress and failures go")]

pub mod args;
pub mod audit;
pub mod doctor;
pub mod emit;
pub mod endpoint;
pub mod exit;
pub mod failure;
pub mod ingest;
pub mod interrupt;
pub mod live;
pub mod manual;
pub mod output;
pub mod plan;
pub mod query;
pub mod record;
pub mod render;
pub mod report;
pub mod reports;
pub mod reproduce;
pub mod run;
pub mod stores;
pub mod units;
pub mod verify;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command};
use exit::Exit;
use failure::Failure;

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let ended = match dispatch(cli) {
        Ok(exit) => exit,
        Err(failure) => {
            eprintln!("{failure}");
            failure.exit
        }
    };
    ended.into()
}

fn dispatch(cli: Cli) -> Result<Exit, Failure> {
    match cli.command {
        None => run::command(&cli.run),
        Some(Command::Run(args)) => run::command(&args),
        Some(Command::Ingest(args)) => ingest::command(&args),
        Some(Command::Emit(args)) => emit::command(&args),
        Some(Command::Verify(args)) => verify::command(&args),
        Some(Command::Report(args)) => report::command(&args),
        Some(Command::Query(args)) => query::command(&args),
        Some(Command::Record(args)) => record::command(&args),
        Some(Command::Reproduce(args)) => reproduce::command(&args),
        Some(Command::Stores(args)) => stores::command(&args),
        Some(Command::Doctor(args)) => doctor::command(&args),
        Some(Command::Completions { shell }) => manual::completions(shell),
        Some(Command::Man { dir }) => manual::pages(dir.as_deref()),
    }
}
