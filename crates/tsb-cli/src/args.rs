//! The command line as typed. Nothing here is checked against the machine: `plan` does that.
//!
//! A run file (TOML) has the flags of a run as its keys, by the same names.

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use tsb_run::spec::Typed;

mod canary;
mod capacity;
mod compare;
mod conformance;
mod hosts;
mod options;
mod query;
mod reproduce;
mod sides;

pub use canary::CanaryArgs;
pub use capacity::{CapacityArgs, FindWhat};
pub use compare::CompareArgs;
pub use conformance::ConformanceArgs;
pub use hosts::{HostsArgs, JoinArgs, SharedRunArgs};
pub use options::{OutputArgs, RunArgs, RunOptions};
pub use query::{QueryArgs, RowConsolidation};
pub use reproduce::{
    DalmatinerArgs, Experiment, ExperimentArgs, Hm9000Args, MohawkArgs, RecordsArgs, ReproduceArgs, RrdcachedArgs,
};
pub use sides::{NOT_OF_COMPARE, SidesArgs};

/// How many metrics per second can this store really take?
#[derive(Debug, Parser)]
#[command(
    name = "tsb",
    version,
    about,
    override_usage = "tsb [OPTIONS OF RUN]\n       tsb <COMMAND> [OPTIONS]",
    after_help = "Without a command, tsb does what `tsb run` does, with the same options: tsb run -h",
    long_about = "How many metrics per second can this store really take?\n\n\
        tsb simulates a fleet that reports at a fixed rate, sends its samples to a store, measures latency \
        without coordinated omission, and afterwards reads every acknowledged sample back. Without a command, \
        it sends 54,000 samples per second of a production-like fleet over loopback TCP into memory for ten \
        seconds.",
    after_long_help = crate::exit::help()
)]
pub struct Cli {
    /// What to do; without a command: the ten-second run.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of the run that is made without a command.
    #[command(flatten)]
    pub run: RunArgs,
}

/// Options of a run that `tsb emit` refuses, so its help leaves them out.
const NOT_OF_EMIT: [&str; 17] = [
    "store",
    "transport",
    "protocol",
    "gro",
    "receive_buffer",
    "preload",
    "queries",
    "query_workers",
    "no_verify",
    "append",
    "store_timeout",
    "no_calibrate",
    "fail_if",
    "fail_unless",
    "retry_noisy",
    "watch_pid",
    "label",
];

/// Options of results that `tsb ingest` refuses, because a listener times no operations; its help
/// leaves them out.
const NOT_OF_INGEST: [&str; 1] = ["hdr_log"];

/// Options of a run that `tsb capacity` refuses, so its help leaves them out.
const NOT_OF_CAPACITY: [&str; 14] = [
    "schedule",
    "fleet_time",
    "append",
    "label",
    "journal",
    "print_plan",
    "progress",
    "expose",
    "expose_remote",
    "hdr_log",
    "no_calibrate",
    "fail_if",
    "fail_unless",
    "retry_noisy",
];

/// The command line as shown in help: the options of a run appear under `tsb run` only, not
/// under `tsb` as well.
pub fn command() -> clap::Command {
    let of_run = |argument: &clap::Arg| !["help", "version"].contains(&argument.get_id().as_str());
    let hide = |argument: clap::Arg| {
        let is_hidden = of_run(&argument);
        argument.hide(is_hidden)
    };
    let without = |names: &'static [&'static str]| {
        move |command: clap::Command| {
            let hidden =
                |command: clap::Command, name: &&'static str| command.mut_arg(*name, |argument| argument.hide(true));
            names.iter().fold(command, hidden)
        }
    };
    Cli::command()
        .mut_args(hide)
        .mut_subcommand("capacity", without(&NOT_OF_CAPACITY))
        .mut_subcommand("emit", without(&NOT_OF_EMIT))
        .mut_subcommand("ingest", without(&NOT_OF_INGEST))
        .mut_subcommand("compare", |compare| {
            options_of_compare(without(&NOT_OF_COMPARE)(compare))
        })
}

/// States the default that `tsb compare` has of its own, and keeps its short help to a screen.
fn options_of_compare(compare: clap::Command) -> clap::Command {
    let brief = ["protocol", "workload", "queries"];
    let short = "How long each run sends [default: 5s]";
    let long =
        format!("{short}\n\nIn real time, such as `500ms`, `90s` or `2h`. With --fleet-time, the default is no limit.");
    let compare = compare.mut_arg("duration", |duration| duration.help(short).long_help(long));
    brief.iter().fold(compare, |compare, name| {
        compare.mut_arg(*name, |argument| argument.hide_short_help(true))
    })
}

/// Parses the arguments of the process.
///
/// # Errors
/// If they are not valid, or if help or the version was requested.
pub fn parse() -> Result<Cli, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Send the samples of a simulated fleet to a store, then read everything back
    #[command(
        after_help = "More options and examples: tsb run --help",
        after_long_help = "Examples:\n  \
            tsb run                                           54,000 series over loopback TCP into memory\n  \
            tsb run --store sqlite:/tmp/m.db -d 1m --html run.html\n  \
            tsb run --store memory: --store sqlite:/tmp/m.db --out both.json\n  \
            tsb run --transport inproc --rate max --fleet-time 2h\n  \
            tsb run --transport udp --protocol graphite --rate 200k\n  \
            tsb run --plan both.json --duration 5m            repeat a run for longer\n  \
            tsb run --plan spike.toml --set load.rate=60k     a scenario, with one phase changed\n  \
            tsb run --hosts-local 2 --transport inproc        by two processes that share the fleet"
    )]
    Run(Box<SharedRunArgs>),
    /// Take part in a run that several hosts share
    Join(JoinArgs),
    /// Find the highest load at which a store meets an objective
    Capacity(Box<CapacityArgs>),
    /// Print the plan of a run as a run file
    #[command(
        after_help = "More options and examples: tsb plan --help",
        after_long_help = "Every option is one of tsb run, which reads the file with --plan.\n\nExamples:\n  \
            tsb plan --store sqlite:/tmp/m.db --rate 20k > run.toml\n  \
            tsb plan --plan report.json > again.toml\n  \
            tsb run --plan run.toml --set rate=40k"
    )]
    Plan(Box<RunArgs>),
    /// Receive samples from real clients, and store them
    Ingest(IngestArgs),
    /// Send the samples of a simulated fleet to a server of another program
    Emit(Box<EmitArgs>),
    /// Read a store back, and check it against the report or journal of the run that filled it
    Verify(VerifyArgs),
    /// Show reports as text, page or tables, or compare several
    Report(ReportArgs),
    /// Compare stores in interleaved rounds, or two reports, and fail if one is worse than allowed
    Compare(Box<CompareArgs>),
    /// Print the series or samples that a store holds
    Query(QueryArgs),
    /// Record metrics of this machine into a trace file
    Record(RecordArgs),
    /// Repeat a published experiment with its mistakes removed
    Reproduce(ReproduceArgs),
    /// Keep a small known stream in a live store, and check it
    Canary(CanaryArgs),
    /// Check every clause of the store contract on a store
    Conformance(ConformanceArgs),
    /// List the stores, their options and their durability
    Stores(StoresArgs),
    /// Find what on this machine would disturb a measurement
    Doctor(DoctorArgs),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page
    Man {
        /// Write one page per command into this directory: `tsb.1`, `tsb-run.1`, ...
        ///
        /// Without it, the page of `tsb` goes to stdout.
        #[arg(long, value_name = "DIR")]
        dir: Option<PathBuf>,
    },
}

/// How results are written to stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text to read
    #[default]
    Text,
    /// Complete and versioned JSON, for programs
    Json,
    /// A table for spreadsheets: one line per interval; of `tsb stores`, one per store
    Csv,
}

/// How verify, doctor, compare, canary, conformance and reproduce print their results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DocumentFormat {
    /// Text to read
    #[default]
    Text,
    /// Complete and versioned JSON, for programs
    Json,
}

/// What is shown of a run on its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "kebab-case")]
pub enum Progress {
    /// The live view on a terminal; lines elsewhere, with NO_COLOR, TERM=dumb or CI
    #[default]
    Auto,
    /// The live view
    Live,
    /// A line per second on stderr
    Lines,
}

/// The default of `tsb ingest --max-series`.
pub const MAX_SERIES: &str = "1M";
/// The default of `tsb ingest --max-name-bytes`.
pub const MAX_NAME_BYTES: &str = "256MiB";
/// The default of `tsb record --processes`.
pub const PROCESSES: usize = 64;

/// `tsb ingest`
#[derive(Debug, Args)]
#[command(after_long_help = "Options of a listener are part of its URL:\n\
    \x20 ?idle=5m              close a connection, or forget a sender of datagrams,\n\
    \x20                       that sends nothing for this long. Default: 10m for\n\
    \x20                       connections, off for datagrams. 1m if the limit of\n\
    \x20                       connections is reached.\n\
    \x20 ?receive-buffer=8MiB  datagrams: size of the kernel's receive buffer\n\
    \x20 ?gro=off              UDP: receive one datagram per system call\n\
    \x20 ?behaviour=head       hawkular: answer as Mohawk 0.15.4 (the default), as\n\
    \x20                       its last version (head), or as Hawkular's own\n\
    \x20                       interface says (corrected)\n\
    \x20 ?backend=sqlite3      hawkular: with the ranges and statistics of Mohawk's\n\
    \x20                       backend memory, sqlite3 or mongo. Default: the one\n\
    \x20                       that is like the store\n\
    \n\
    Examples:\n  \
    tsb ingest --listen graphite+tcp://127.0.0.1:2003 --store sqlite:/tmp/m.db\n  \
    tsb ingest --listen influx+http://127.0.0.1:8086 --listen graphite+udp://127.0.0.1:2003\n  \
    tsb ingest --listen hawkular+http://127.0.0.1:8080 --store ring:\n  \
    tsb ingest --listen rrdcached+unix:/run/rrdcached.sock --store write-cache+rrd:/var/rrd")]
pub struct IngestArgs {
    /// Where to listen, such as graphite+tcp://127.0.0.1:2003
    ///
    /// PROTOCOL+TRANSPORT://ADDRESS; may be given more than once. Also `graphite+udp://127.0.0.1:2003`,
    /// `influx+http://127.0.0.1:8086`, `tsb+unix:///run/tsb.sock` and `tsb+unixgram:///run/tsb.sock`.
    /// `rrdcached+unix:/run/rrdcached.sock` serves rrdcached's clients, with `--store write-cache+rrd:DIR`.
    /// `hawkular+http://127.0.0.1:8080` answers Hawkular's clients as Mohawk does, reads included.
    #[arg(long, value_name = "URL", required = true)]
    pub listen: Vec<Typed>,
    /// Store for the received samples, such as memory:?max_bytes=4GiB
    #[arg(long, value_name = "SPEC", default_value = "memory:")]
    pub store: Typed,
    /// Stop after this long; without it, at Ctrl-C
    #[arg(long, value_name = "DURATION")]
    pub duration: Option<String>,
    /// Stop when the last connection closes, once there was one
    #[arg(long)]
    pub once: bool,
    /// Refuse new series beyond this number, and count them
    ///
    /// Together with --max-name-bytes, this limits the memory that a flood of new names can use.
    #[arg(long, value_name = "N", default_value = MAX_SERIES)]
    pub max_series: String,
    /// Refuse new series once the names use this much memory, and count them
    ///
    /// Names, labels and their tables count. The names that decoders remember are limited separately,
    /// to the same size per listener.
    #[arg(long, value_name = "SIZE", default_value = MAX_NAME_BYTES)]
    pub max_name_bytes: String,
    /// Refuse connections beyond this number, and count them
    ///
    /// Also the number of datagram senders that are remembered: beyond it, the sender that recently
    /// sent the fewest datagrams is forgotten, and counted.
    #[arg(long, value_name = "N", default_value = "1024")]
    pub max_connections: String,
    /// Longest time that a call into the store may take once listening has ended
    ///
    /// Such as `5s`. When it has passed, the result contains what is known without the store. Without
    /// it, 30s after a stop (Ctrl-C, SIGTERM), and 10m after the end of --duration or --once. A second
    /// Ctrl-C does not wait.
    #[arg(long, value_name = "DURATION")]
    pub store_timeout: Option<String>,
    /// Allow addresses that other machines can reach
    ///
    /// There is no authentication: every client that reaches the address can write, and over hawkular
    /// read.
    #[arg(long)]
    pub allow_remote: bool,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// `tsb emit`
#[derive(Debug, Args)]
#[command(
    after_help = "More options and examples: tsb emit --help",
    after_long_help = "Examples:\n  \
        tsb emit --to graphite+tcp://127.0.0.1:2003 --series 10k\n  \
        tsb emit --to 'influx+http://127.0.0.1:8086?db=tsb' --rate 100k -d 1m\n  \
        tsb emit --to 'tsb+udp://127.0.0.1:4270?sockets=30' --format json"
)]
pub struct EmitArgs {
    /// Server to send to, such as graphite+tcp://127.0.0.1:2003
    ///
    /// PROTOCOL+TRANSPORT://ADDRESS. Also `tsb+udp://127.0.0.1:4270?sockets=30&gso=off`,
    /// `influx+http://127.0.0.1:8086?db=tsb` and `graphite+unix:///run/carbon.sock`.
    /// `?timeout=10s` limits the wait for an answer, for a server that reads nothing, and for the end
    /// of a connection; without it, 60s, and 30s for the end.
    #[arg(long, value_name = "URL")]
    pub to: Typed,
    /// Read everything back with this program and its arguments, and check it
    ///
    /// Such as 'python3 read.py'. It speaks the protocol of the store `exec:`, and has to read only
    /// (docs/formats/exec.md). Without it, nothing is read back.
    #[arg(long, value_name = "PROGRAM")]
    pub verify_with: Option<String>,
    /// The options of a run; those of a store are refused.
    #[command(flatten)]
    pub run: RunArgs,
}

/// `tsb verify`
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// JSON report that --out wrote, or the journal that a killed run left
    ///
    /// The journal has the name of the report with .journal added, or the name given with --journal.
    pub report: PathBuf,
    /// Store to read; without it, the store named in the report
    #[arg(long, value_name = "SPEC")]
    pub store: Option<Typed>,
    /// What ended the run of a journal: kill or power-cut
    ///
    /// After a kill, all samples acknowledged as buffered must be in the store; after a power cut,
    /// those acknowledged as synced. Without it, tsb checks whether the machine has been restarted
    /// since.
    #[arg(long, value_name = "WHAT", value_enum)]
    pub after: Option<RunEnd>,
    /// How to print the result on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: DocumentFormat,
}

/// What ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RunEnd {
    /// The process was killed; the machine went on.
    Kill,
    /// The machine went down.
    PowerCut,
}

/// `tsb report`
#[derive(Debug, Args)]
#[command(
    after_long_help = "Two or more runs are compared: first their verdicts and what makes them unequal, then every figure \
        next to that of the first run, with the ratio.\n\n\
        Examples:\n  tsb report run.json --html run.html\n  \
        tsb report old.json new.json --label before --label after\n  \
        tsb report run.json --csv tables\n  \
        tsb report hm9000.json --html hm9000.html"
)]
pub struct ReportArgs {
    /// JSON reports that `--out` or `--format json` wrote, or one result of `tsb reproduce`
    #[arg(value_name = "REPORT", required = true)]
    pub reports: Vec<PathBuf>,
    /// Name of a run, once per run, in their order
    ///
    /// Without it, a run has the label that it was given when it ran, or else the name of its store and
    /// the option in which it differs from the others, such as the file.
    #[arg(long, value_name = "NAME")]
    pub label: Vec<String>,
    /// Also write one self-contained page with plots; without it, none
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Also write CSV tables into this directory; without it, none
    ///
    /// intervals.csv, processes.csv, latency-cells.csv, latency-quantiles.csv and queries.csv.
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
    /// How to print the result on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `tsb record`
#[derive(Debug, Args)]
pub struct RecordArgs {
    /// What to record; `proc` is the only source
    #[arg(long, value_name = "SOURCE", default_value = "proc")]
    pub from: String,
    /// Trace file to write, which must not exist
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// How long to record; without it, until Ctrl-C
    #[arg(long, value_name = "DURATION")]
    pub duration: Option<String>,
    /// Time between two samples of each value
    #[arg(long, value_name = "DURATION", default_value = "1s")]
    pub every: String,
    /// Largest number of processes to record at a time, the busiest first
    #[arg(long, value_name = "N", default_value_t = PROCESSES)]
    pub processes: usize,
    /// Record only this process; may be given more than once; without it, the busiest ones
    #[arg(long, value_name = "PID")]
    pub pid: Vec<u32>,
    /// Print no progress on stderr
    #[arg(long, short)]
    pub quiet: bool,
}

/// `tsb stores`
#[derive(Debug, Args)]
pub struct StoresArgs {
    /// How to print the list on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `tsb doctor`
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Folder where a store would keep its files; its disk is examined
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Also measure the disk: times of reads, writes and syncs, and rates with 16 in flight
    ///
    /// Takes about four seconds and a file of 64 MiB in the folder, which is removed again. The JSON
    /// has the result as `device`: the parameters of the model behind `tsb reproduce rrdcached --simulate`.
    #[arg(long)]
    pub device: bool,
    /// How to print the findings on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: DocumentFormat,
}

#[cfg(test)]
mod tests;
