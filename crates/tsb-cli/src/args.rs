//! What was typed. Nothing here is checked against the machine: that is `plan`.
//!
//! The options of a run are one struct that the command line and a run file (TOML)
//! share, so that a file says the same as flags, by the same names.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
    /// Show reports again: as text, as a page with plots, as tables; several side by side
    Report(ReportArgs),
    /// Print samples that a store holds, raw or a row a step
    Query(QueryArgs),
    /// Record this machine's own values into a trace file
    Record(RecordArgs),
    /// Repeat a published experiment, as it was and without its mistakes
    Reproduce(ReproduceArgs),
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// Complete and versioned, for programs
    Json,
    /// One line an interval, for spreadsheets
    Csv,
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
    /// A line a second on stderr
    Lines,
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
    /// What to show of a run on its way
    #[arg(long, value_enum, default_value_t, help_heading = "Output")]
    pub progress: Progress,
    /// Serve metrics of the run as it goes on, in the OpenMetrics format, such as
    /// `127.0.0.1:9465`, for Prometheus and others to scrape
    #[arg(long, value_name = "ADDRESS", help_heading = "Output")]
    pub expose: Option<std::net::SocketAddr>,
    /// Serve them on an address that other machines can reach
    #[arg(long, requires = "expose", help_heading = "Output")]
    pub expose_remote: bool,
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
    /// Write an HdrHistogram V2 interval log (response, delivery, service and lag, tagged)
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub hdr_log: Option<PathBuf>,
    /// Write one self-contained page with plots, for a browser; opened before the run starts
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// No progress on stderr
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
}

/// The options of a run: flags, and keys of a run file, by the same names.
#[derive(Debug, Default, Clone, PartialEq, Args)]
pub struct RunOptions {
    /// The store, such as `memory:` or `memory:?retention=7d`; see `tsb stores`. Give it
    /// several times to run one after the other on the same work
    #[arg(long, value_name = "SPEC", help_heading = "Target")]
    pub store: Vec<String>,
    /// How samples reach the store. Without it `tcp`, but `inproc` where a store is a client of
    /// a server. `inproc` measures the store alone, the others add real
    /// sockets on this machine with encoder and decoder; over `udp` samples can be lost, and
    /// the report says which; over `http` each operation is a request, and its answer counts
    #[arg(long, value_name = "inproc|tcp|udp|unix|unixgram|http", help_heading = "Target")]
    pub transport: Option<String>,
    /// Datagram sockets over all emitting threads; DalmatinerDB's document has 30
    #[arg(long, value_name = "N", help_heading = "Target")]
    pub sockets: Option<u64>,
    /// The most bytes of a datagram; it is filled with whole records
    #[arg(long, value_name = "BYTES", help_heading = "Target")]
    pub datagram: Option<u64>,
    /// Whether the kernel cuts one call's bytes into datagrams (UDP_SEGMENT), where it can;
    /// loopback flatters it, because there the datagrams stay together
    #[arg(long, value_name = "on|off", help_heading = "Target")]
    pub gso: Option<String>,
    /// Whether the listener takes several datagrams at once (UDP_GRO), where the kernel can
    #[arg(long, value_name = "on|off", help_heading = "Target")]
    pub gro: Option<String>,
    /// The receive buffer of datagrams; without it, room for a tick of the whole fleet. What
    /// the kernel granted is in the report
    #[arg(long, value_name = "BYTES", help_heading = "Target")]
    pub receive_buffer: Option<String>,
    /// The wire protocol of a transport with a wire: `tsb` is the least a wire can cost,
    /// `graphite` is plaintext as carbon reads it; also `influx`, `opentsdb`, `kairosdb`,
    /// `pickle`, `dalmatiner-stream`, `dalmatiner-batch` and, whole numbers only,
    /// `dalmatiner-august`; over http `influx` and `kairosdb-json`
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
    pub watch_pid: Vec<u32>,
}

/// The default of `tsb ingest --max-series`.
pub const MAX_SERIES: &str = "1M";
/// The default of `tsb record --processes`.
pub const PROCESSES: usize = 64;

/// `tsb ingest`
#[derive(Debug, Args)]
pub struct IngestArgs {
    /// Where to listen: `graphite+tcp://127.0.0.1:2003`, `graphite+udp://127.0.0.1:2003`,
    /// `influx+http://127.0.0.1:8086`, `tsb+unix:///run/tsb.sock`, `tsb+unixgram:///run/tsb.sock`;
    /// may be given several times.
    /// `rrdcached+unix:/run/rrdcached.sock` serves rrdcached's clients, with `--store write-cache+rrd:DIR`.
    /// Options of datagrams: `?receive-buffer=8MiB&gro=off&idle=10s`
    #[arg(long, value_name = "URL", required = true)]
    pub listen: Vec<String>,
    /// The store, such as `memory:?max_bytes=4GiB`
    #[arg(long, value_name = "SPEC", default_value = "memory:")]
    pub store: String,
    /// Refuse series beyond this many (a flood of new names), counted
    #[arg(long, value_name = "N", default_value = MAX_SERIES)]
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
    /// The server: `graphite+tcp://127.0.0.1:2003`, `tsb+udp://127.0.0.1:4270?sockets=30&gso=off`,
    /// `influx+http://127.0.0.1:8086?db=tsb`, `graphite+unix:///run/carbon.sock`
    #[arg(long, value_name = "URL")]
    pub to: String,
    /// Connections, one an emitting thread
    #[arg(long, value_name = "N")]
    pub connections: Option<u64>,
    /// The options of a run; those of a store are refused.
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

/// `tsb report`
#[derive(Debug, Args)]
#[command(
    after_long_help = "With two runs or more, what differs in the work or in durability is said first, then every \
        figure of each run stands beside that of the first, with the ratio.\n\n\
        Examples:\n  tsb report run.json --html run.html\n  tsb report before.json after.json\n  \
        tsb report run.json --csv tables"
)]
pub struct ReportArgs {
    /// JSON reports, as `--out` or `--format json` of `tsb run` wrote them
    #[arg(value_name = "REPORT", required = true)]
    pub reports: Vec<PathBuf>,
    /// Write one self-contained page with plots, for a browser
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write every series as CSV into this directory: intervals, processes, latency-cells,
    /// latency-quantiles
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
    /// How the result is written to stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
}

/// `tsb query`
#[derive(Debug, Args)]
pub struct QueryArgs {
    /// The store, which must be there already
    #[arg(long, value_name = "SPEC")]
    pub store: String,
    /// A series, as reports print it: name or name{label=value,...}; may be given more than once
    #[arg(long, value_name = "KEY", required = true)]
    pub series: Vec<String>,
    /// The first time, in seconds since 1970
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// The time behind the last, in seconds since 1970
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// One row for each step of this length, instead of samples
    #[arg(long, value_name = "DURATION")]
    pub step: Option<String>,
    /// How the samples of a step become a row
    #[arg(long, value_enum, default_value_t, requires = "step")]
    pub rows: Rows,
}

/// How the samples of a step become one value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Rows {
    /// The smallest
    Min,
    /// The largest
    #[default]
    Max,
    /// The mean
    Average,
    /// The sum
    Sum,
    /// How many there are
    Count,
    /// The earliest
    First,
    /// The latest
    Last,
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
    #[arg(long, value_name = "N", default_value_t = PROCESSES)]
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

/// `tsb reproduce`
#[derive(Debug, Args)]
pub struct ReproduceArgs {
    /// Which experiment
    #[arg(value_enum)]
    pub experiment: Experiment,
    /// Fewer and smaller, within two minutes
    #[arg(long)]
    pub quick: bool,
    /// Numbers of files, instead of the published ones
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub files: Vec<usize>,
    /// Where its files go; in a folder of their own, which is removed at the end
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
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
}
