//! What was typed. Nothing here is checked against the machine: that is `plan`.
//!
//! The options of a run are one struct that the command line and a run file (TOML)
//! share, so that a file says the same as flags, by the same names.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Deserialize;

/// How many metrics per second can this store really take?
#[derive(Debug, Parser)]
#[command(
    name = "tsb",
    version,
    about,
    long_about = "How many metrics per second can this store really take?\n\n\
        tsb simulates a fleet that reports at a fixed rate, drives it at a store, keeps time without \
        coordinated omission, and afterwards reads every acknowledged sample back. Without a command it \
        sends 54,000 samples/s of a production-like fleet over loopback TCP into memory for ten seconds.",
    after_long_help = "Exit codes: 0 done, 1 a bug in tsb, 2 bad usage, 3 the run finished but is invalid or was \
        limited by the generator, 4 target unreachable, 5 a threshold was crossed, 130 interrupted.\n\
        Results go to stdout, progress to stderr."
)]
pub struct Cli {
    /// What to do; without a command: the ten-second run.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of the run that happens without a command.
    #[command(flatten)]
    pub run: RunArgs,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Drive a simulated fleet at a store, then read everything back
    Run(Box<RunArgs>),
    /// Listen for real clients and store what they send
    Ingest(IngestArgs),
    /// Send a simulated fleet to a server, and nothing else
    Emit(Box<EmitArgs>),
    /// Read a store back against the report of the run that filled it
    Verify(VerifyArgs),
    /// Record this machine's own values into a trace file
    Record(RecordArgs),
    /// List the stores, their options and what an acknowledgement of each is worth
    Stores(StoresArgs),
    /// Examine this machine: what here would spoil a measurement, and what to do about it
    Doctor(DoctorArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page (or write one page a command into a directory)
    Man {
        /// Write `tsb.1`, `tsb-run.1`, ... into this directory instead
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// How results are written to stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// Complete and versioned, for programs
    Json,
    /// One line an interval, for spreadsheets
    Csv,
}

/// Everything about a run, and where its results go.
#[derive(Debug, Default, Clone, Args)]
pub struct RunArgs {
    /// The options that a run file may also hold.
    #[command(flatten)]
    pub options: RunOptions,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Take the plan of a report (JSON), or a run file (TOML) that says the same as flags;
    /// flags given beside it win
    #[arg(long, value_name = "FILE", help_heading = "Plan")]
    pub plan: Option<PathBuf>,
    /// Print the plan (JSON, as `--plan` reads it) and do nothing
    #[arg(long, help_heading = "Plan")]
    pub print_plan: bool,
}

/// Where results go.
#[derive(Debug, Default, Clone, Args)]
pub struct OutputArgs {
    /// How the result is written to stdout
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub format: Format,
    /// Write the JSON report to this file as well; opened before the run starts
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub out: Option<PathBuf>,
    /// Write an HdrHistogram V2 interval log (response, service and lag, tagged)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub hdr_log: Option<PathBuf>,
    /// No progress lines on stderr
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

/// The options of a run: flags, and keys of a run file, by the same names.
#[derive(Debug, Default, Clone, PartialEq, Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RunOptions {
    /// The store, such as `memory:` or `memory:?retention=7d`; see `tsb stores`. Give it
    /// several times to run one after the other on the same work
    #[arg(long, value_name = "SPEC", help_heading = "Target")]
    #[serde(default)]
    pub store: Vec<String>,
    /// How samples reach the store: `inproc` measures the store alone, `tcp` adds a real
    /// loopback connection with encoder and decoder
    #[arg(long, value_name = "inproc|tcp", help_heading = "Target")]
    pub transport: Option<String>,
    /// The wire protocol of `--transport tcp`: `tsb` is the least a wire can cost,
    /// `graphite` is plaintext as carbon reads it
    #[arg(long, value_name = "NAME", help_heading = "Target")]
    pub protocol: Option<String>,
    /// Refuse series beyond this many (a flood of new names), counted
    #[arg(long, value_name = "N", help_heading = "Target")]
    pub max_series: Option<String>,

    /// The fleet: kstat (production-like, the default), mix, heartbeat, gauges, counters, or
    /// `trace:FILE` to replay recorded values
    #[arg(long, value_name = "FLEET", help_heading = "Workload")]
    pub workload: Option<String>,
    /// A file that describes the families of the kstat fleet (see docs/workloads.md)
    #[arg(long, value_name = "FILE", help_heading = "Workload")]
    pub fleet_file: Option<PathBuf>,
    /// How many series report
    #[arg(long, value_name = "N", help_heading = "Workload")]
    pub series: Option<String>,
    /// How often each series reports
    #[arg(long, value_name = "DURATION", help_heading = "Workload")]
    pub interval: Option<String>,
    /// Mix intervals of 1, 10 and 60 s in one fleet, by host
    #[arg(long, help_heading = "Workload", num_args = 0..=1, default_missing_value = "true")]
    pub mixed_intervals: Option<bool>,
    /// The seed: same seed, same bytes
    #[arg(long, value_name = "N", help_heading = "Workload")]
    pub seed: Option<u64>,
    /// `seeded`: each host reports at its own moment; `aligned`: all at once, the worst burst
    #[arg(long, value_name = "seeded|aligned", help_heading = "Workload")]
    pub phase: Option<String>,
    /// `host`: a batch is one host's tick; `tick`: the whole fleet's tick at once
    #[arg(long, value_name = "host|tick", help_heading = "Workload")]
    pub batch: Option<String>,
    /// Timestamps waver by up to this much
    #[arg(long, value_name = "DURATION", help_heading = "Workload")]
    pub jitter: Option<String>,
    /// Share of samples that arrive ticks later (0.01 or 1%)
    #[arg(long, value_name = "P", help_heading = "Workload")]
    pub late: Option<String>,
    /// Share of samples that are never sent
    #[arg(long, value_name = "P", help_heading = "Workload")]
    pub missing: Option<String>,
    /// Share of samples that are sent twice
    #[arg(long, value_name = "P", help_heading = "Workload")]
    pub duplicate: Option<String>,
    /// Share of samples that change places with the next of their series
    #[arg(long, value_name = "P", help_heading = "Workload")]
    pub out_of_order: Option<String>,
    /// Series that come and go: `steady:10m` (lifetime), `gradual:2x/10m`, `double-halve:10m`,
    /// `spike:10x/10m/30s`
    #[arg(long, value_name = "MODE", help_heading = "Workload")]
    pub churn: Option<String>,

    /// Samples per second; the fleet then runs faster or slower than real time. `max` is a
    /// closed loop: as fast as the store answers, which hides how long others would wait
    #[arg(long, value_name = "N|max", help_heading = "Schedule")]
    pub rate: Option<String>,
    /// The shape of the rate over time instead of a constant one, in operations per second:
    /// `poisson:1000`, `ramp:100..5000/60s`, `steps:1000*10s,2000*10s`, `burst:54000/1s`, `recorded:0s,1ms,1.5ms`
    #[arg(long, value_name = "SHAPE", help_heading = "Schedule")]
    pub schedule: Option<String>,
    /// How long to send
    #[arg(long, short, value_name = "DURATION", help_heading = "Schedule")]
    pub duration: Option<String>,
    /// Stop after this much time of the fleet, however long it takes: `--rate max --fleet-time 2h`
    #[arg(long, value_name = "DURATION", help_heading = "Schedule")]
    pub fleet_time: Option<String>,
    /// Emitting threads, each with its own range of hosts
    #[arg(long, value_name = "N", help_heading = "Schedule")]
    pub workers: Option<u64>,

    /// Do not read the samples back: the run is then UNVERIFIED
    #[arg(long, help_heading = "Result", num_args = 0..=1, default_missing_value = "true")]
    pub no_verify: Option<bool>,
    /// Do not measure the generator's own ceiling first
    #[arg(long, help_heading = "Result", num_args = 0..=1, default_missing_value = "true")]
    pub no_calibrate: Option<bool>,
    /// Length of a reporting interval
    #[arg(long, value_name = "DURATION", help_heading = "Result")]
    pub report_interval: Option<String>,
    /// Also sample the CPU and memory of this process (the store's server)
    #[arg(long, value_name = "PID", help_heading = "Result")]
    #[serde(default)]
    pub watch_pid: Vec<u32>,
}

/// `tsb ingest`
#[derive(Debug, Args)]
pub struct IngestArgs {
    /// Where to listen: `graphite+tcp://127.0.0.1:2003` or `tsb+tcp://127.0.0.1:4270`; may be given
    /// several times
    #[arg(long, value_name = "URL", required = true)]
    pub listen: Vec<String>,
    /// The store, such as `memory:?max_bytes=4GiB`
    #[arg(long, value_name = "SPEC", default_value = "memory:")]
    pub store: String,
    /// Refuse series beyond this many (a flood of new names), counted
    #[arg(long, value_name = "N", default_value = "1M")]
    pub max_series: String,
    /// Refuse connections beyond this many, counted
    #[arg(long, value_name = "N", default_value = "1024")]
    pub max_connections: String,
    /// Stop after this long; otherwise at Ctrl-C
    #[arg(long, value_name = "DURATION")]
    pub duration: Option<String>,
    /// Stop once a first connection has come and all are closed again
    #[arg(long)]
    pub once: bool,
    /// Listen on an address that other machines can reach
    #[arg(long)]
    pub allow_remote: bool,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `tsb emit`
#[derive(Debug, Args)]
pub struct EmitArgs {
    /// The server: `graphite+tcp://127.0.0.1:2003` or `tsb+tcp://127.0.0.1:4270`
    #[arg(long, value_name = "URL")]
    pub to: String,
    /// Connections, one an emitting thread
    #[arg(long, value_name = "N")]
    pub connections: Option<u64>,
    /// The options of a run; `--store`, `--transport` and `--protocol` do not apply.
    #[command(flatten)]
    pub run: RunArgs,
}

/// `tsb verify`
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// The JSON report of the run
    pub report: PathBuf,
    /// Read this store instead of the one that the report names
    #[arg(long, value_name = "SPEC")]
    pub store: Option<String>,
    /// How the result is written to stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `tsb record`
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// What to record
    #[arg(long, value_name = "proc", default_value = "proc")]
    pub from: String,
    /// The trace file to write; must not exist
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// How long to record; otherwise until Ctrl-C
    #[arg(long, value_name = "DURATION")]
    pub duration: Option<String>,
    /// How often every value is taken
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub every: String,
    /// At most this many processes at a time, the busiest first
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub processes: usize,
    /// Only these processes
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// No progress lines on stderr
    #[arg(long, short)]
    pub quiet: bool,
}

/// `tsb stores`
#[derive(Debug, Args)]
pub struct StoresArgs {
    /// How the list is written to stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `tsb doctor`
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Where a store would keep its files: the sync time of this disk is measured
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// How the findings are written to stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        let cli = Cli::try_parse_from(["tsb", "run", "--store", "memory:", "--rate", "54k"]);
        let Ok(Cli {
            command: Some(Command::Run(run)),
            ..
        }) = cli
        else {
            panic!("{cli:?}")
        };
        assert_eq!(run.options.store, ["memory:"]);
    }

    #[test]
    fn a_run_file_has_the_names_of_the_flags_and_no_others() {
        let text = "store = [\"memory:\"]\nrate = \"54k\"\nout-of-order = \"1%\"\n";
        let options: RunOptions = toml::from_str(text).unwrap();
        assert_eq!(options.out_of_order.as_deref(), Some("1%"));
        let error = toml::from_str::<RunOptions>("rat = \"54k\"").unwrap_err().to_string();
        assert!(error.contains("unknown field `rat`"), "{error}");
    }
}
