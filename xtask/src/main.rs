//! The workspace's own jobs: `cargo xtask ci`, `tidy`, `peers`, `bench`.
//!
//! It imports nothing of ours and builds in seconds; what a user of `tsb` runs is not
//! here but in `tsb-cli`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "xtask talks to a terminal; no library depends on it"
)]

mod bench;
mod ci;
mod peers;
mod shell;
mod table;
mod tidy;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask JOB

  ci [--full] [--only STEP] [--list]
             every check, from cheap to dear: formatting, tidy, lints, tests, benches in test mode,
             examples, dependencies, documentation, and one real run with its report checked.
             --full adds what takes hours; --only runs one step; --list names them
  tidy       the rules of ARCHITECTURE.md and CONTRIBUTING.md that a program can check
  peers [--rounds N]
             builds the peer tools that a registry carries, runs them and tsb in turn on the same
             kind of work (A B B A, N times), and prints both side by side
  bench save NAME [FILTER] | diff OLD NEW [FILTER]
             criterion baselines, each with a record of its commit and machine
  help       this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        [] | ["help" | "--help" | "-h"] => {
            print!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        ["ci", rest @ ..] => ci::run(rest),
        ["tidy"] => tidy::run(),
        ["bench", rest @ ..] => bench::command(rest),
        ["peers", rest @ ..] => peers::run(rest),
        _ => {
            eprint!("xtask: no such job: {}\n\n{USAGE}", words.join(" "));
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
