//! The options of a run: workload, rate, store, and where results go.
//!
//! The first paragraph of each doc comment is the text of `-h`; `--help` adds the others. Rarely
//! needed options are hidden in `-h`. If the default of an option comes from the plan, its text
//! states it; a test compares the two.

use std::path::PathBuf;

use clap::Args;
use tsb_run::spec::Typed;

use super::{Format, Progress};

/// Everything about a run, and where its results go.
#[derive(Debug, Default, Clone, Args)]
pub struct RunArgs {
    /// The options that become part of the plan.
    #[command(flatten)]
    pub options: RunOptions,
    /// Where results go.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Name of the run in reports; once per --store
    ///
    /// In the order of the stores. Without it, a run is named after its store; several runs also
    /// show the option in which they differ.
    #[arg(long, value_name = "NAME")]
    pub label: Vec<String>,
    /// Start from the plan in a report (JSON) or a run file (TOML)
    ///
    /// The keys of a run file are the names of the flags: `duration = "10s"`. It may divide the run
    /// into phases, each with a rate and with faults of the store; `tsb plan` writes one. Flags on
    /// the command line override the file. Without it, the plan is the default run.
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Set a key of a run file, as in seed=7 or load.rate=60k
    ///
    /// It may be given more than once. `NAME.KEY=VALUE` changes the phase NAME of the plan, and
    /// `NAME.faults.KEY=VALUE` its faults. It overrides --plan, and flags override it.
    #[arg(long, value_name = "KEY=VALUE", hide_short_help = true)]
    pub set: Vec<Typed>,
    /// Keep the journal of the run in this file [default: that of --out, with .journal added]
    ///
    /// The journal records several times per second which samples were acknowledged, and at which
    /// durability. After a kill or a power cut, `tsb verify FILE` reports which of them are missing.
    /// The journal beside --out is removed once the report is written; a file named here is kept.
    /// Without --out and --journal, a run has no journal.
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = "Output")]
    pub journal: Option<PathBuf>,
    /// Longest time that a call into the store may take after a stop or after the end of the run
    ///
    /// Such as `5s`. When it has passed, the report contains what is known without the store, and
    /// its verdict is UNVERIFIED. Without it, 30s after a stop (Ctrl-C, SIGTERM), and 10m after the
    /// end of the run. A second Ctrl-C does not wait.
    #[arg(long, value_name = "DURATION", hide_short_help = true, help_heading = "Result")]
    pub store_timeout: Option<String>,
    /// Fail with exit code 5 if this is true of a run, such as 'response.p99>50ms'
    ///
    /// A figure of the report compared with a limit by `<`, `<=`, `>`, `>=`, `=` or `!=`, or a verdict
    /// such as `noisy`. It may be given more than once. A run that does not have the figure fails too.
    /// docs/thresholds.md lists the figures. Without it, only the verdict decides the exit code.
    #[arg(long, value_name = "CONDITION", help_heading = "Result")]
    pub fail_if: Vec<String>,
    /// Fail with exit code 5 unless this is true of a run, such as valid or 'lost=0'
    ///
    /// As --fail-if, for what must hold. Without it, nothing has to.
    #[arg(long, value_name = "CONDITION", hide_short_help = true, help_heading = "Result")]
    pub fail_unless: Vec<String>,
    /// Repeat a run that is NOISY at most this many times
    ///
    /// From 1 to 20. Before each repetition, what the run stored is removed. The last attempt counts,
    /// and the report names the others. Without it, a run is made once.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=20),
        hide_short_help = true,
        help_heading = "Result"
    )]
    pub retry_noisy: Option<u32>,
    /// Print the plan as JSON, as --plan reads it, and run nothing
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub print_plan: bool,
    /// What to show on stderr during the run
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        default_value_t,
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub progress: Progress,
    /// Serve metrics during the run, in the OpenMetrics format
    ///
    /// For Prometheus and other scrapers, at http://ADDRESS/metrics, such as `127.0.0.1:9465`.
    /// Without it, nothing is served.
    #[arg(long, value_name = "ADDRESS", hide_short_help = true, help_heading = "Output")]
    pub expose: Option<std::net::SocketAddr>,
    /// Let --expose serve an address that other machines can reach
    ///
    /// There is no authentication: every client that reaches the address can read the metrics.
    #[arg(long, requires = "expose", hide_short_help = true, help_heading = "Output")]
    pub expose_remote: bool,
}

/// Where results go.
#[derive(Debug, Default, Clone, Args)]
pub struct OutputArgs {
    /// How to print the result on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Also write the result as JSON into this file
    ///
    /// `tsb report`, `tsb verify` and `--plan` read it. An error is reported before the run starts if
    /// the file cannot be written. Without it, the result goes to stdout only.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Also write one self-contained page with plots, for a browser
    ///
    /// `tsb report` can write the same page later. An error is reported before the run starts if the
    /// file cannot be written. Without it, no page is written.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Also write an HdrHistogram V2 interval log
    ///
    /// For tools that read such logs; each kind of latency has its own tag. Without it, no log is
    /// written.
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = "Output")]
    pub hdr_log: Option<PathBuf>,
    /// Print no progress on stderr
    #[arg(long, short)]
    pub quiet: bool,
}

/// The options of a run that become part of its plan.
#[derive(Debug, Default, Clone, PartialEq, Args)]
pub struct RunOptions {
    /// Store to measure, such as sqlite:/tmp/m.db [default: memory:]
    ///
    /// `tsb stores` lists the stores and their options. If given several times, the stores run one
    /// after another with the same workload, and the result compares them.
    #[arg(long, value_name = "SPEC")]
    pub store: Vec<Typed>,
    /// How samples reach the store [default: tcp]
    ///
    /// One of inproc, tcp, udp, unix, unixgram and http; without it, inproc if the store is a client
    /// of a server. `inproc` calls the store in this process and measures only the store. The others
    /// add an encoder, real sockets on this machine and a decoder. Over `udp` samples may be lost;
    /// the report states how many, and where. Over `http` each operation is a request, which ends
    /// with its answer.
    #[arg(long, value_name = "TRANSPORT")]
    pub transport: Option<String>,
    /// Wire protocol of every transport but inproc [default: tsb]
    ///
    /// `tsb` is binary and costs the least; `graphite` is carbon's plaintext. Others: influx,
    /// opentsdb, kairosdb, pickle, dalmatiner-stream, dalmatiner-batch and, for whole numbers only,
    /// dalmatiner-july and dalmatiner-august. Over http: influx, kairosdb-json,
    /// remote-write (Prometheus) and otlp.
    #[arg(long, value_name = "NAME")]
    pub protocol: Option<String>,

    /// Fleet to simulate [default: kstat]
    ///
    /// `kstat` is modelled on a production fleet. Others: mix, heartbeat, gauges, counters, and
    /// `trace:FILE`, which replays recorded values. See docs/workloads.md.
    #[arg(long, value_name = "FLEET")]
    pub workload: Option<String>,
    /// Number of series [default: 54000]
    ///
    /// At least 1. With another --workload, the default is that fleet's own number.
    #[arg(long, value_name = "N")]
    pub series: Option<String>,
    /// Samples per second, or max [default: the fleet's own]
    ///
    /// The fleet's own rate is its number of series divided by their interval. At another rate, fleet
    /// time passes faster or slower than real time. `max` is a closed loop: it sends as fast as the
    /// store answers, which finds the highest throughput and hides how long other clients would
    /// have waited.
    #[arg(long, value_name = "N|max")]
    pub rate: Option<String>,
    /// How long to send [default: 10s]
    ///
    /// In real time, such as `500ms`, `90s` or `2h`. With --fleet-time, the default is no limit.
    #[arg(long, short, value_name = "DURATION")]
    pub duration: Option<String>,

    /// Time between two samples of a series [default: the fleet's own]
    ///
    /// 1s for most fleets, 10s for heartbeat; of a trace, the interval at which it was recorded.
    #[arg(long, value_name = "DURATION", hide_short_help = true, help_heading = "Workload")]
    pub interval: Option<String>,
    /// Mix intervals of 1, 10 and 60 s in one fleet, by host [default: false]
    #[arg(
        long,
        value_name = "true|false",
        hide_short_help = true,
        hide_possible_values = true,
        help_heading = "Workload",
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub mixed_intervals: Option<bool>,
    /// Seed: the same seed gives the same samples [default: 1]
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = "Workload")]
    pub seed: Option<u64>,
    /// When the hosts report: seeded or aligned [default: seeded]
    ///
    /// `seeded`: each host at its own time within the interval, derived from the seed. `aligned`: all
    /// hosts at the same time, which is the largest burst.
    #[arg(long, value_name = "PHASE", hide_short_help = true, help_heading = "Workload")]
    pub phase: Option<String>,
    /// What one operation sends: message, host, tick or a number of series [default: message]
    ///
    /// `message`: the samples that a host sends in one message; for `kstat`, those of 50 series.
    /// `host`: all samples of one host at one time. `tick`: all samples of the fleet at one time. A
    /// number: the samples of one host, in messages of at most this many series.
    #[arg(long, value_name = "UNIT", hide_short_help = true, help_heading = "Workload")]
    pub batch: Option<String>,
    /// Series that come and go [default: none]
    ///
    /// `steady:LIFETIME`, `gradual:MULTIPLEx/PERIOD`, `double-halve:PERIOD` or
    /// `spike:MULTIPLEx/PERIOD/LENGTH`, such as `steady:10m`, `gradual:2x/10m` or `spike:10x/10m/30s`.
    #[arg(long, value_name = "MODE", hide_short_help = true, help_heading = "Workload")]
    pub churn: Option<String>,
    /// File that describes the fleet, instead of --workload
    ///
    /// docs/workloads.md describes the format. Without it, --workload alone decides.
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = "Workload")]
    pub fleet_file: Option<PathBuf>,

    /// Move each timestamp by up to this much [default: 0s]
    #[arg(long, value_name = "DURATION", hide_short_help = true, help_heading = "Disorder")]
    pub jitter: Option<String>,
    /// Share of samples that arrive some ticks late, such as 1% [default: 0]
    ///
    /// From 0 to 1, or from 0% to 100%; the sum of the shares of late, missing, duplicate and
    /// out-of-order samples is at most 1.
    #[arg(long, value_name = "SHARE", hide_short_help = true, help_heading = "Disorder")]
    pub late: Option<String>,
    /// Share of samples that are never sent [default: 0]
    #[arg(long, value_name = "SHARE", hide_short_help = true, help_heading = "Disorder")]
    pub missing: Option<String>,
    /// Share of samples that are sent twice [default: 0]
    #[arg(long, value_name = "SHARE", hide_short_help = true, help_heading = "Disorder")]
    pub duplicate: Option<String>,
    /// Share of samples that are sent after the next sample of their series [default: 0]
    #[arg(long, value_name = "SHARE", hide_short_help = true, help_heading = "Disorder")]
    pub out_of_order: Option<String>,

    /// Shape of the rate over time, in samples per second
    ///
    /// `poisson:54000`, `ramp:5000..500000/60s`, `steps:10000*10s,10000..20000*10s`,
    /// `burst:54000/1s`, or the due times of operations, `recorded:0s,1ms,1.5ms`. Cannot be combined
    /// with --rate. Without it, the rate is constant.
    #[arg(long, value_name = "SHAPE", hide_short_help = true, help_heading = "Schedule")]
    pub schedule: Option<String>,
    /// Send this much fleet time, however long that takes
    ///
    /// For closed loops: `--rate max --fleet-time 2h`. Without it, --duration decides.
    #[arg(long, value_name = "DURATION", hide_short_help = true, help_heading = "Schedule")]
    pub fleet_time: Option<String>,
    /// Emitting threads, each with its own range of hosts [default: 1]
    ///
    /// From 1 to 1024. Use more than one if a single thread cannot reach the rate.
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = "Schedule")]
    pub workers: Option<u64>,
    /// Largest number of writes in flight to a server [default: 64]
    ///
    /// For clients of servers and exec: called in process, and over http. The limit is for all
    /// workers together, and at least one per worker; from 1 to 1048576. An operation that is due
    /// while the limit is reached waits, which shows as lag. At 1,000 operations per second, 64 are
    /// enough while answers take up to 64 ms. --rate max always keeps this many in flight. Over http,
    /// without it and --connections, each worker has one request in flight.
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = "Schedule")]
    pub in_flight: Option<u64>,
    /// Connections that the writes in flight share over http [default: 64]
    ///
    /// From 1 to 1024, over all workers; never more than --in-flight. Each has one request at a time,
    /// and a write waits for a free one. In `tsb emit` without --in-flight: the number of emitting
    /// threads, each with a connection of its own, instead of --workers.
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = "Schedule")]
    pub connections: Option<u64>,

    /// Write this much history before the clock starts, such as 1d [default: none]
    ///
    /// Whole seconds of fleet time, up to the first timestamp of the run, written in this process as
    /// fast as the store accepts them. The ledger counts them and they are read back, but rates,
    /// times and CPU leave them out. Queries that ask for an hour or a day need them.
    #[arg(long, value_name = "DURATION", hide_short_help = true, help_heading = "Queries")]
    pub preload: Option<String>,
    /// Query the store while it is written, such as 'q1@10/s,q2@1/s,last@100/s'
    ///
    /// Streams KIND@RATE, separated by commas. Each stream has its own schedule, and every answer is
    /// checked. `last`: the newest sample of a series. `q1`: the maximum of each minute of an hour of
    /// one series. `q2`: the maximum of each hour of a day of seven series. `range`: the raw samples
    /// of five minutes of one series. `downsample`: the average of each minute of an hour of one
    /// series. `single-groupby`: q1 of eight series. `double-groupby`: the average of each hour of 12
    /// hours of ten series. `lastpoint`: the newest samples of ten series. `high-cpu`: the samples of
    /// 12 hours of one series above 90. `outside`: those of an hour below 10 or above 90. `stats`:
    /// count, minimum, maximum, mean and standard deviation of an hour of one series. `difference`:
    /// downsample of two series, subtracted. Parameters change these values, as in
    /// `q1(series=3,span=2h,step=30s,by=min)` or `outside(below=5,above=inf)`; NAME=KIND@RATE names a
    /// stream. A rate is `10/s`, `30/m`, `2/h`, or `max` for a closed loop. `none` is no stream.
    /// Without it, the store is not queried during the run.
    #[arg(long, value_name = "STREAMS", help_heading = "Queries")]
    pub queries: Option<String>,
    /// Threads of each stream of --queries [default: 1]
    ///
    /// From 1 to 64. Use more if one query takes longer than the time between two queries.
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = "Queries")]
    pub query_workers: Option<u64>,

    /// Datagram sockets over all emitting threads [default: 1]
    ///
    /// From 1 to 1024. For udp and unixgram; DalmatinerDB's published benchmark used 30.
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = "Wire")]
    pub sockets: Option<u64>,
    /// Largest datagram, in bytes [default: 1400]
    ///
    /// From 64 to 65507; it is filled with whole records.
    #[arg(long, value_name = "BYTES", hide_short_help = true, help_heading = "Wire")]
    pub datagram: Option<u64>,
    /// Let the kernel split the bytes of one call into datagrams (UDP_SEGMENT) [default: on]
    ///
    /// Has no effect if the kernel does not support it. `off` sends one datagram per system call, as
    /// most clients do. On loopback the datagrams stay together, so `on` looks better there than on a
    /// network.
    #[arg(long, value_name = "on|off", hide_short_help = true, help_heading = "Wire")]
    pub gso: Option<String>,
    /// Let the listener receive several datagrams per system call (UDP_GRO) [default: on]
    ///
    /// Has no effect if the kernel does not support it.
    #[arg(long, value_name = "on|off", hide_short_help = true, help_heading = "Wire")]
    pub gro: Option<String>,
    /// Receive buffer for datagrams to request from the kernel, such as 8MiB
    ///
    /// Without it, the size of one tick of the fleet, from 4 MiB to 256 MiB. The report states what
    /// the kernel granted.
    #[arg(long, value_name = "BYTES", hide_short_help = true, help_heading = "Wire")]
    pub receive_buffer: Option<String>,
    /// Refuse new series beyond this number, and count them [default: 10M]
    ///
    /// This limits the memory that a flood of new names can use.
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = "Wire")]
    pub max_series: Option<String>,

    /// Do not read the samples back [default: false]
    ///
    /// The verdict is then UNVERIFIED: nothing shows that the store has what it acknowledged.
    #[arg(
        long,
        value_name = "true|false",
        hide_short_help = true,
        hide_possible_values = true,
        help_heading = "Result",
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub no_verify: Option<bool>,
    /// Append to a store that holds samples of earlier runs [default: false]
    ///
    /// Without it, a store that is not empty is refused. The report covers this run's samples only:
    /// those from before its start are not read back, and sizes, which include them, are left out.
    #[arg(
        long,
        value_name = "true|false",
        hide_short_help = true,
        hide_possible_values = true,
        help_heading = "Result",
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub append: Option<bool>,
    /// Do not measure the generator's own ceiling first [default: false]
    ///
    /// Saves a few seconds, but the report cannot tell whether the generator was the limit.
    #[arg(
        long,
        value_name = "true|false",
        hide_short_help = true,
        hide_possible_values = true,
        help_heading = "Result",
        num_args = 0..=1,
        default_missing_value = "true"
    )]
    pub no_calibrate: Option<bool>,
    /// Length of a reporting interval, at least 1ms [default: 1s]
    ///
    /// The report has rate, latency and CPU time per interval; plots have one column per interval.
    #[arg(long, value_name = "DURATION", hide_short_help = true, help_heading = "Result")]
    pub report_interval: Option<String>,
    /// Also record the CPU time and memory of this process
    ///
    /// May be given more than once. Without it, only local servers to which a store is connected are
    /// recorded.
    #[arg(long, value_name = "PID", hide_short_help = true, help_heading = "Result")]
    pub watch_pid: Vec<u32>,
}
