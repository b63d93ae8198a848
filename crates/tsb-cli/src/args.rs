//! The command line as typed. Nothing here is checked against the machine: `plan` does that.
//!
//! A run file (TOML) has the flags of a run as its keys, by the same names.

use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use tsb_run::spec::Typed;

mod options;
mod query;

pub use options::{OutputArgs, RunArgs, RunOptions};
pub use query::{QueryArgs, RowConsolidation};

/// How many metrics per second can this store really take?
#[derive(Debug, Parser)]
#[command(
    name = "tsb",
    version,
    about,
    override_usage = "tsb [OPTIONS OF RUN]\n       tsb <COMMAND> [OPTIONS]",
    after_help = "Without a command it is tsb run, with the same options: tsb run -h",
    long_about = "How many metrics per second can this store really take?\n\n\
        tsb simulates a fleet that reports at a fixed rate, drives it at a store, keeps time without \
        coordinated omission, and afterwards reads every acknowledged sample back. Without a command it \
        sends 54,000 samples/s of a production-like fleet over loopback TCP into memory for ten seconds.",
    after_long_help = crate::exit::help()
)]
pub struct Cli {
    /// What to do; without a command: the ten-second run.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Options of the run that happens without a command.
    #[command(flatten)]
    pub run: RunArgs,
}

/// Options of a run that `tsb emit` refuses, so its help leaves them out.
const NOT_OF_EMIT: [&str; 8] = [
    "store",
    "transport",
    "protocol",
    "gro",
    "receive_buffer",
    "no_verify",
    "store_timeout",
    "no_calibrate",
];

/// The command line as shown in help: the options of a run appear under `tsb run` only, not
/// under `tsb` as well.
pub fn command() -> clap::Command {
    let of_run = |argument: &clap::Arg| !["help", "version"].contains(&argument.get_id().as_str());
    let hide = |argument: clap::Arg| {
        let is_hidden = of_run(&argument);
        argument.hide(is_hidden)
    };
    let without = |command: clap::Command| {
        let names = NOT_OF_EMIT.into_iter();
        names.fold(command, |command, name| {
            command.mut_arg(name, |argument| argument.hide(true))
        })
    };
    Cli::command().mut_args(hide).mut_subcommand("emit", without)
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
    /// Drive a simulated fleet at a store, then read everything back
    #[command(
        after_help = "More options and examples: tsb run --help",
        after_long_help = "Examples:\n  \
            tsb run                                           54,000 series over loopback TCP into memory\n  \
            tsb run --store sqlite:/tmp/m.db -d 1m --html run.html\n  \
            tsb run --store memory: --store sqlite:/tmp/m.db --out both.json\n  \
            tsb run --transport inproc --rate max --fleet-time 2h\n  \
            tsb run --transport udp --protocol graphite --rate 200k\n  \
            tsb run --plan both.json --duration 5m            the same work again, for longer\n  \
            tsb run --plan spike.toml --set load.rate=60k     a scenario, with one phase changed"
    )]
    Run(Box<RunArgs>),
    /// Print the plan of a run as a file, to change it and to keep it
    #[command(
        after_help = "More options and examples: tsb plan --help",
        after_long_help = "Every option is one of tsb run, which reads the file with --plan.\n\nExamples:\n  \
            tsb plan --store sqlite:/tmp/m.db --rate 20k > run.toml\n  \
            tsb plan --plan report.json > again.toml\n  \
            tsb run --plan run.toml --set rate=40k"
    )]
    Plan(Box<RunArgs>),
    /// Listen for real clients, and store what they send
    Ingest(IngestArgs),
    /// Send a simulated fleet to a server, and nothing else
    Emit(Box<EmitArgs>),
    /// Read a store back against the report or the journal of the run that filled it
    Verify(VerifyArgs),
    /// Show reports again: as text, page or tables; several side by side
    Report(ReportArgs),
    /// Print the series or samples that a store holds
    Query(QueryArgs),
    /// Record this machine's own values into a trace file
    Record(RecordArgs),
    /// Repeat a published experiment with its mistakes removed
    Reproduce(ReproduceArgs),
    /// List the stores, their options and their durability
    Stores(StoresArgs),
    /// Examine this machine for what would spoil a measurement
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
    /// For people
    #[default]
    Text,
    /// Complete and versioned, for programs
    Json,
    /// One line per interval, for spreadsheets
    Csv,
}

/// How a result that is no table is written to stdout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum DocumentFormat {
    /// For people
    #[default]
    Text,
    /// Complete and versioned, for programs
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
#[command(after_long_help = "Options of a listener stand in its URL:\n\
    \x20 ?idle=5m              close a connection, or forget a sender of datagrams,\n\
    \x20                       that is silent for this long. Default: 10m for\n\
    \x20                       connections, off for datagrams. While no further\n\
    \x20                       connection has room, silence of 1m is enough.\n\
    \x20 ?receive-buffer=8MiB  of datagrams: room for what comes in one burst\n\
    \x20 ?gro=off              of UDP: take each datagram by itself\n\
    \n\
    Examples:\n  \
    tsb ingest --listen graphite+tcp://127.0.0.1:2003 --store sqlite:/tmp/m.db\n  \
    tsb ingest --listen influx+http://127.0.0.1:8086 --listen graphite+udp://127.0.0.1:2003\n  \
    tsb ingest --listen rrdcached+unix:/run/rrdcached.sock --store write-cache+rrd:/var/rrd")]
pub struct IngestArgs {
    /// Where to listen, such as graphite+tcp://127.0.0.1:2003
    ///
    /// PROTOCOL+TRANSPORT://ADDRESS; may be given more than once. Also `graphite+udp://127.0.0.1:2003`,
    /// `influx+http://127.0.0.1:8086`, `tsb+unix:///run/tsb.sock` and `tsb+unixgram:///run/tsb.sock`.
    /// `rrdcached+unix:/run/rrdcached.sock` serves rrdcached's clients, with `--store write-cache+rrd:DIR`.
    #[arg(long, value_name = "URL", required = true)]
    pub listen: Vec<Typed>,
    /// Store for what arrives, such as memory:?max_bytes=4GiB
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
    /// With --max-name-bytes it bounds the memory that a flood of new names can take.
    #[arg(long, value_name = "N", default_value = MAX_SERIES)]
    pub max_series: String,
    /// Refuse new series when the names take this much memory, and count them
    ///
    /// Names, labels and their tables count. What decoders remember of names is bounded by the
    /// same size once more for each listener.
    #[arg(long, value_name = "SIZE", default_value = MAX_NAME_BYTES)]
    pub max_name_bytes: String,
    /// Refuse connections beyond this number, and count them
    ///
    /// Of senders of datagrams this many are remembered: for a further one, the sender that sent
    /// the least of late is forgotten and counted.
    #[arg(long, value_name = "N", default_value = "1024")]
    pub max_connections: String,
    /// Give up a call into the store that takes longer, once listening is over
    ///
    /// Such as `5s`. The result then says what is known without the store. Without it, 30s after a
    /// stop (Ctrl-C, SIGTERM), and 10m at the end of --duration and --once. A second Ctrl-C waits
    /// for nothing.
    #[arg(long, value_name = "DURATION")]
    pub store_timeout: Option<String>,
    /// Allow addresses that other machines can reach
    ///
    /// There is no authentication: every client that reaches the address can write.
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
    /// `?timeout=10s` bounds the wait for an answer, for a server that takes nothing, and for the
    /// end of a connection; without it, a minute, and half a minute for the end.
    #[arg(long, value_name = "URL")]
    pub to: Typed,
    /// Connections, one per emitting thread; without it, as --workers says
    #[arg(long, value_name = "N")]
    pub connections: Option<u64>,
    /// The options of a run; those of a store are refused.
    #[command(flatten)]
    pub run: RunArgs,
}

/// `tsb verify`
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// JSON report of the run, as --out wrote it, or the journal that a killed run left
    ///
    /// The journal is beside the report, with .journal added to its name, or where --journal
    /// put it.
    pub report: PathBuf,
    /// Store to read; without it, the one that the report names
    #[arg(long, value_name = "SPEC")]
    pub store: Option<Typed>,
    /// What ended the run of a journal: kill or power-cut
    ///
    /// After a kill, everything that was acknowledged as buffered must be there; after a power
    /// cut, what was acknowledged as synced. Without it, the machine's own word decides: whether
    /// it has started again since.
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
    after_long_help = "With two runs or more, verdicts and what makes the runs unequal come first; then every figure of \
        each run stands beside that of the first one, with the ratio.\n\n\
        Examples:\n  tsb report run.json --html run.html\n  \
        tsb report old.json new.json --label before --label after\n  \
        tsb report run.json --csv tables"
)]
pub struct ReportArgs {
    /// JSON reports, as `--out` or `--format json` of `tsb run` wrote them
    #[arg(value_name = "REPORT", required = true)]
    pub reports: Vec<PathBuf>,
    /// Name of a run, once per run, in their order
    ///
    /// Without it, a run has the label that it was given when it ran, else the name of its store and what
    /// tells it from the others, such as the name of its file.
    #[arg(long, value_name = "NAME")]
    pub label: Vec<String>,
    /// Also write one self-contained page with plots; without it, none
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Also write CSV tables into this directory; without it, none
    ///
    /// intervals.csv, processes.csv, latency-cells.csv and latency-quantiles.csv.
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
    /// Most processes to record at a time, the busiest first
    #[arg(long, value_name = "N", default_value_t = PROCESSES)]
    pub processes: usize,
    /// Record only this process; may be given more than once; without it, the busiest
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

/// `tsb reproduce`
#[derive(Debug, Args)]
pub struct ReproduceArgs {
    /// Experiment to repeat
    #[arg(value_enum)]
    pub experiment: Experiment,
    /// Run a smaller version that ends within two minutes
    #[arg(long)]
    pub quick: bool,
    /// Numbers of files, such as 1000,10000; without it, the published ones
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub files: Vec<usize>,
    /// Folder for its files, in one of their own that is removed at the end
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// How to print the result on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: DocumentFormat,
    /// Also write the result as JSON into this file
    ///
    /// That it can be written is checked before the experiment starts. Without it, the result goes
    /// to stdout only.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print no progress on stderr
    #[arg(long, short)]
    pub quiet: bool,
}

/// The published experiments that can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Experiment {
    /// What does rrdcached buy? (kazeburo and sonots, 2012)
    Rrdcached,
}

/// `tsb doctor`
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// Folder whose disk is examined: where a store would keep its files
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// How to print the findings on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: DocumentFormat,
}

#[cfg(test)]
mod tests;
