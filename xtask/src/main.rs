//! The workspace's own jobs: `cargo xtask ci`, `tidy`, `mutate`, `sanitize`, `floods`,
//! `peers`, `screenshots`, `servers`, `faults`, `view-cost`, `bench`, `measure`, `dist`.
//!
//! It imports nothing of ours and builds in seconds; what a user of `tsb` runs is not
//! here but in `tsb-cli`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "xtask talks to a terminal; no library depends on it"
)]

mod bench;
mod browser;
mod ci;
mod dist;
mod faults;
mod floods;
mod golang;
mod maven;
mod measure;
mod mutate;
mod peers;
mod proc_files;
mod sanitize;
mod screenshots;
mod servers;
mod shell;
mod table;
mod terminal;
mod tidy;
mod turns;
mod view_cost;

use std::process::ExitCode;

const USAGE: &str = "\
cargo xtask JOB

  ci [--full] [--only STEP] [--list]
             every check, from cheap to dear: formatting, tidy, lints, tests, benches in test mode,
             examples, dependencies, documentation, and one real run with its report checked.
             --full adds what takes hours; --only runs one step; --list names them
  tidy       the rules of ARCHITECTURE.md and CONTRIBUTING.md that a program can check
  mutate [WORD]
             breaks the instrument on purpose, one place at a time, in a copy of the workspace, and
             fails if no test notices; only those whose description contains WORD
  sanitize   the tests of every module with unsafe, built with LLVM's address sanitizer into
             target/sanitize: some minutes the first time. It needs no nightly toolchain
  peers [--rounds N]
             builds the peer tools that a registry carries, runs them and tsb in turn on the same
             kind of work (A B B A, N times), and prints both side by side
  peers load [--rounds N]
             tsbs_load_influx and tsb emit in turn over HTTP into one tsb ingest (A B B A, N times), with
             one connection and several, plain and compressed
  servers up|down|status [NAME...]
             real servers on loopback, all of them where none is named (status lists them). up installs and starts them, each in a folder of target/servers that it empties
             first; down stops exactly those; status [--format json] lists specs, pids, ports and memory
  servers table [--seconds N] [--only 'SERVER LEVEL'] [--program TSB] [--out FILE]
             every layout of MongoDB at three levels with one and eight workers, by runs that read all back;
             --out writes it as a page of Markdown, too
  servers equal [--out FILE]
             our client of MongoDB beside its driver alone, in turn, with batches of equal layouts
  faults [STORE...] [--rounds N] [--only FAULT] [--seed N] [--jobs N] [--program TSB] [--out FILE]
             kills, power cuts, damages, errors, disturbance and hostile peers, N trials of each on every
             store with files (or those whose names begin so), with the real program; one table of what
             became of acknowledged samples, which fails on a silent loss, a panic or a hang
  screenshots
             the pictures of docs/screenshots: runs tsb, opens its report in Chromium (wide and narrow,
             light and dark, printed), and drives the live view in tmux at three sizes
  view-cost [--rounds N]
             runs tsb with its live view and without (A B B A, N times) on a terminal of tmux, and prints
             what the view costs and what it does to latencies
  floods [--program TSB] [--only LISTENER] [--out FILE]
             names, bytes, senders and connections without end for the listeners of tsb ingest: the bound of
             its memory that docs/limits.md states beside the measured peak; --out writes it as Markdown, too
  bench save NAME [FILTER] | diff OLD NEW [FILTER]
             criterion baselines, each with a record of its commit and machine
  measure [NAME...|all] [--quick] [--new-machine]
             writes the sections of docs/measurements.md that are named, after saying what they take in
             time, disk and packages; without a name it only says that. --quick tries the commands in a
             debug build and writes nothing; --new-machine begins the page anew on this machine
  measure speed COMMIT [--only TABLE] [--row NAME] [--rounds N] [--out FILE]
             whether anything got slower since that commit: builds it, and runs the tables of memory,
             SQLite, wires, TCP and RRD of both in turn; two rounds take about half an hour
  measure servers [--quick] [--only NAME[,NAME]...] [--program TSB] | --render
             docs/results/servers.md: capacity, latency, staleness, cost, size, queries and what a SIGKILL took of
             each real server and each of our stores behind a wire, five to ten minutes each; a row is a file
             of docs/results/servers and is kept when it is measured. --quick does every step in its
             shortest form, prints the page and writes nothing; --render only makes the page from the rows
  dist [--out FOLDER]
             a release archive and a Debian package into target/dist, each with the program, manual
             pages, completions and licences; dpkg-deb makes the package
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
        ["dist", rest @ ..] => dist::command(rest),
        ["tidy"] => tidy::run(),
        ["mutate"] => mutate::run(""),
        ["sanitize"] => sanitize::run(),
        ["mutate", filter] => mutate::run(filter),
        ["faults", rest @ ..] => faults::command(rest),
        ["servers", rest @ ..] => servers::command(rest),
        ["screenshots"] => screenshots::make(),
        ["view-cost", rest @ ..] => view_cost::measure(rest),
        ["bench", rest @ ..] => bench::command(rest),
        ["measure", rest @ ..] => measure::command(rest),
        ["floods", rest @ ..] => floods::command(rest),
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
