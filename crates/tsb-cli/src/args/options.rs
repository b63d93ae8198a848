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
    /// In the order of the stores. Without it, a run is called by its store, and by what
    /// tells it from the others where there are several.
    #[arg(long, value_name = "NAME")]
    pub label: Vec<String>,
    /// Start from the plan in a report (JSON) or a run file (TOML)
    ///
    /// A run file has the names of the flags as keys: `duration = "10s"`; it may divide the run into
    /// phases, each with a rate and with faults of the store, and `tsb plan` writes one. Flags that
    /// are given beside it win. Without it, the plan is the default run.
    #[arg(long, value_name = "FILE")]
    pub plan: Option<PathBuf>,
    /// Set a key of a run file, as in seed=7 or load.rate=60k
    ///
    /// It may be given more than once. `NAME.KEY=VALUE` changes the phase NAME of the plan, and
    /// `NAME.faults.KEY=VALUE` its faults. It wins over --plan, and flags win over it.
    #[arg(long, value_name = "KEY=VALUE", hide_short_help = true)]
    pub set: Vec<Typed>,
    /// Keep the journal of the run in this file [default: that of --out, with .journal added]
    ///
    /// It says several times a second which samples have been acknowledged, and at which
    /// durability: after a kill or a power cut, `tsb verify FILE` tells which of them are not
    /// there. The journal beside --out is removed when the report is whole; one that is named
    /// stays. Without --out and without this, there is none.
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = "Output")]
    pub journal: Option<PathBuf>,
    /// Give up a call into the store that takes longer, once a stop was asked for or the run is over
    ///
    /// Such as `5s`. The report then says what is known without the store, and is UNVERIFIED.
    /// Without it, 30s after a stop (Ctrl-C, SIGTERM), and 10m at the end of a run. A second Ctrl-C
    /// waits for nothing.
    #[arg(long, value_name = "DURATION", hide_short_help = true, help_heading = "Result")]
    pub store_timeout: Option<String>,
    /// Print the plan as JSON, as --plan reads it, and run nothing
    #[arg(long, hide_short_help = true, help_heading = "Output")]
    pub print_plan: bool,
    /// What to show on stderr while the run goes on
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        default_value_t,
        hide_short_help = true,
        help_heading = "Output"
    )]
    pub progress: Progress,
    /// Serve metrics of the run while it goes on, in the OpenMetrics format
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
    /// `tsb report`, `tsb verify` and `--plan` read it. That it can be written is checked before
    /// the run starts. Without it, the result goes to stdout only.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Also write one self-contained page with plots, for a browser
    ///
    /// That it can be written is checked before the run starts. `tsb report` makes the same page
    /// later. Without it, there is no page.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Also write an HdrHistogram V2 interval log
    ///
    /// With a tag for each kind of latency, for tools that read such logs. Without it, there is
    /// no log.
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
    /// `tsb stores` lists the stores and their options. Give it several times to run one store
    /// after the other on the same work, and to see them side by side.
    #[arg(long, value_name = "SPEC")]
    pub store: Vec<Typed>,
    /// How samples reach the store [default: tcp]
    ///
    /// One of inproc, tcp, udp, unix, unixgram and http; without it, inproc where the store is a
    /// client of a server. `inproc` calls the store in this process
    /// and measures it alone. The others add an encoder, real sockets on this machine and a
    /// decoder. Over `udp` samples may be lost; the report says how many, and where. Over `http`
    /// each operation is a request, and its answer counts.
    #[arg(long, value_name = "TRANSPORT")]
    pub transport: Option<String>,
    /// Wire protocol of every transport but inproc [default: tsb]
    ///
    /// `tsb` is binary and costs the least. `graphite` is carbon's plaintext; also influx,
    /// opentsdb, kairosdb, pickle, dalmatiner-stream, dalmatiner-batch and, whole numbers only,
    /// dalmatiner-july and dalmatiner-august. Over http: influx and kairosdb-json.
    #[arg(long, value_name = "NAME")]
    pub protocol: Option<String>,

    /// Fleet to simulate [default: kstat]
    ///
    /// kstat is made after a production fleet; also mix, heartbeat, gauges and counters, and
    /// `trace:FILE` to replay recorded values. See docs/workloads.md.
    #[arg(long, value_name = "FLEET")]
    pub workload: Option<String>,
    /// Number of series [default: 54000]
    ///
    /// At least 1. With another --workload, the default is that fleet's own number.
    #[arg(long, value_name = "N")]
    pub series: Option<String>,
    /// Samples/s, or max [default: the fleet's own]
    ///
    /// At another rate than the fleet's own (series divided by interval), fleet time passes faster
    /// or slower than real time. `max` is a closed loop: it sends as fast as the store answers,
    /// which finds the highest throughput and hides how long other clients would have waited.
    #[arg(long, value_name = "N|max")]
    pub rate: Option<String>,
    /// How long to send [default: 10s]
    ///
    /// Of real time, such as `500ms`, `90s` or `2h`. With --fleet-time, without an end of its own.
    #[arg(long, short, value_name = "DURATION")]
    pub duration: Option<String>,

    /// Time between two samples of a series [default: 1s]
    ///
    /// With a trace, the default is the interval at which it was recorded.
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
    /// `seeded`: each host at a moment of its own within the interval. `aligned`: all at once, which
    /// is the worst burst.
    #[arg(long, value_name = "PHASE", hide_short_help = true, help_heading = "Workload")]
    pub phase: Option<String>,
    /// What one operation sends: message, host, tick or a number of series [default: message]
    ///
    /// `message`: what a host of the fleet sends at once; of `kstat`, 50 of its series. `host`: the
    /// samples of one host at one moment. `tick`: those of the whole fleet. A number: the samples of
    /// a host, in messages of at most this many series.
    #[arg(long, value_name = "UNIT", hide_short_help = true, help_heading = "Workload")]
    pub batch: Option<String>,
    /// Series that come and go [default: none]
    ///
    /// `steady:LIFETIME`, `gradual:MULTIPLEx/PERIOD`, `double-halve:PERIOD` or
    /// `spike:MULTIPLEx/PERIOD/LENGTH`, such as `steady:10m`, `gradual:2x/10m` or `spike:10x/10m/30s`.
    #[arg(long, value_name = "MODE", hide_short_help = true, help_heading = "Workload")]
    pub churn: Option<String>,
    /// File that describes the families of the kstat fleet
    ///
    /// In the form of docs/workloads.md. Without it, the fleet is as --workload says.
    #[arg(long, value_name = "FILE", hide_short_help = true, help_heading = "Workload")]
    pub fleet_file: Option<PathBuf>,

    /// Move each timestamp by up to this much [default: 0s]
    #[arg(long, value_name = "DURATION", hide_short_help = true, help_heading = "Disorder")]
    pub jitter: Option<String>,
    /// Share of samples that arrive some ticks late, such as 1% [default: 0]
    ///
    /// From 0 to 1, or from 0% to 100%; the shares of late, missing, duplicate and out-of-order
    /// samples add up to 1 at the most.
    #[arg(long, value_name = "SHARE", hide_short_help = true, help_heading = "Disorder")]
    pub late: Option<String>,
    /// Share of samples that are never sent [default: 0]
    #[arg(long, value_name = "SHARE", hide_short_help = true, help_heading = "Disorder")]
    pub missing: Option<String>,
    /// Share of samples that are sent twice [default: 0]
    #[arg(long, value_name = "SHARE", hide_short_help = true, help_heading = "Disorder")]
    pub duplicate: Option<String>,
    /// Share of samples that change places with the next of their series [default: 0]
    #[arg(long, value_name = "SHARE", hide_short_help = true, help_heading = "Disorder")]
    pub out_of_order: Option<String>,

    /// Shape of the rate over time, in samples per second
    ///
    /// `poisson:54000`, `ramp:5000..500000/60s`, `steps:10000*10s,10000..20000*10s`,
    /// `burst:54000/1s`, or the due times of operations, `recorded:0s,1ms,1.5ms`. Not together with
    /// --rate. Without it, the rate is constant.
    #[arg(long, value_name = "SHAPE", hide_short_help = true, help_heading = "Schedule")]
    pub schedule: Option<String>,
    /// Send this much of the fleet's time, however long that takes
    ///
    /// For closed loops: `--rate max --fleet-time 2h`. Without it, --duration decides.
    #[arg(long, value_name = "DURATION", hide_short_help = true, help_heading = "Schedule")]
    pub fleet_time: Option<String>,
    /// Emitting threads, each with its own range of hosts [default: 1]
    ///
    /// From 1 to 1024. More than one where a single thread cannot reach the rate.
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = "Schedule")]
    pub workers: Option<u64>,

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
    /// Have the kernel cut one call's bytes into datagrams (UDP_SEGMENT) [default: on]
    ///
    /// Where it can. `off` sends one datagram per system call, as most clients do. On loopback the
    /// datagrams stay together, so `on` looks better there than on a network.
    #[arg(long, value_name = "on|off", hide_short_help = true, help_heading = "Wire")]
    pub gso: Option<String>,
    /// Have the listener take several datagrams per system call (UDP_GRO) [default: on]
    ///
    /// Where the kernel can.
    #[arg(long, value_name = "on|off", hide_short_help = true, help_heading = "Wire")]
    pub gro: Option<String>,
    /// Receive buffer of datagrams to ask the kernel for, such as 8MiB
    ///
    /// Without it, room for a tick of the whole fleet, from 4 MiB to 256 MiB. What the kernel granted
    /// is in the report.
    #[arg(long, value_name = "BYTES", hide_short_help = true, help_heading = "Wire")]
    pub receive_buffer: Option<String>,
    /// Refuse new series beyond this number, and count them [default: 10M]
    ///
    /// It bounds the memory that a flood of new names can take.
    #[arg(long, value_name = "N", hide_short_help = true, help_heading = "Wire")]
    pub max_series: Option<String>,

    /// Do not read the samples back [default: false]
    ///
    /// The run is then UNVERIFIED: nothing shows that what was acknowledged is there.
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
    /// Do not measure the generator's own ceiling first [default: false]
    ///
    /// It saves a few seconds. Then the report cannot tell whether the generator was the limit.
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
    /// The report has rate, latency and CPU of each; plots have a column for each.
    #[arg(long, value_name = "DURATION", hide_short_help = true, help_heading = "Result")]
    pub report_interval: Option<String>,
    /// Also record the CPU time and memory of this process
    ///
    /// May be given more than once. Servers on this machine that a store talks to are found without
    /// it.
    #[arg(long, value_name = "PID", hide_short_help = true, help_heading = "Result")]
    pub watch_pid: Vec<u32>,
}
