//! `tsb reproduce`: the experiments and their flags.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::DocumentFormat;

/// `tsb reproduce`
#[derive(Debug, Args)]
#[command(
    disable_help_subcommand = true,
    after_help = "Without an experiment, tsb reproduce lists what each needs and how long it takes."
)]
pub struct ReproduceArgs {
    /// Experiment to repeat
    #[command(subcommand)]
    pub experiment: Option<Experiment>,
}

/// The published experiments that can be repeated.
#[derive(Debug, Subcommand)]
pub enum Experiment {
    /// Which backend of Mohawk is fastest? (Mohawk, 2017)
    Mohawk(MohawkArgs),
    /// What does rrdcached buy? (kazeburo and sonots, 2012)
    Rrdcached(RrdcachedArgs),
    /// How many apps can HM9000 keep fresh in etcd? (Pivotal, 2013)
    Hm9000(Hm9000Args),
    /// How fast does a store of keys take records, by nodes, requests in flight and size? (Pivotal, 2013)
    Records(RecordsArgs),
    /// What does a metric cost in DalmatinerDB, Graphite and KairosDB? (Heinz Gies, 2014)
    Dalmatiner(DalmatinerArgs),
}

/// What every experiment can be asked for.
#[derive(Debug, Args)]
pub struct ExperimentArgs {
    /// Run a smaller version that ends within two minutes
    #[arg(long)]
    pub quick: bool,
    /// How to print the result on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: DocumentFormat,
    /// Also write the result as JSON into this file
    ///
    /// An error is reported before the experiment starts if the file cannot be written. Without it,
    /// the result goes to stdout only.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Also write a page that tells the story into this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Existing folder in which a temporary folder for the files of stores is made
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Print no progress on stderr
    #[arg(long, short)]
    pub quiet: bool,
}

/// `tsb reproduce rrdcached`
#[derive(Debug, Args)]
pub struct RrdcachedArgs {
    /// Numbers of files, such as 1000,10000; without it the published, 5000 with --simulate, and 1000 with --quick
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub files: Vec<usize>,
    /// Rounds, in each of which every engine has a turn; intervals need two
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Predict drains from a model of the disk instead of measuring all of them
    ///
    /// Measures the disk as tsb doctor --device does, and the cost of writes on 1,000 files, which
    /// takes about a minute. Hours of updates are then simulated in seconds.
    #[arg(long)]
    pub simulate: bool,
    /// Also make the real runs of what --simulate predicts, and print the error of each prediction
    #[arg(long, requires = "simulate")]
    pub check: bool,
    /// What every experiment can be asked for.
    #[command(flatten)]
    pub experiment: ExperimentArgs,
}

/// `tsb reproduce hm9000`
#[derive(Debug, Args)]
pub struct Hm9000Args {
    /// Store of keys: memory:, sqlite:, series+STORE, etcd2:HOSTS, etcd3-single:HOSTS, etcd3:HOSTS
    ///
    /// Give it several times for several stores. Without it: memory:, sqlite: and
    /// series+memory:. Hosts are HOST:PORT with commas between them; etcd2 is version 2 with
    /// one request per key, etcd3-single version 3 with one request per key, and etcd3 version 3
    /// with transactions of up to 128 puts.
    #[arg(long = "store", value_name = "SPEC")]
    pub stores: Vec<String>,
    /// Also measure a cluster of etcd at these addresses, by all three interfaces
    #[arg(long, value_name = "HOSTS")]
    pub etcd: Option<String>,
    /// Numbers of apps, such as 1000,30000; without it, 1,000 to 200,000 and on until it breaks, and
    /// 5,000 with --quick
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub apps: Vec<usize>,
    /// Go on to at most this many apps with a store that keeps all of --apps fresh
    ///
    /// The number of apps is doubled until the store breaks. Without it: 1,600,000, and with
    /// --quick or --apps no more than the largest given.
    #[arg(long, value_name = "N")]
    pub apps_max: Option<usize>,
    /// Rounds of the corrected experiment; without it 5, and with --quick 2, or 1 for more than
    /// three stores
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Length of each corrected run, in seconds; without it 45, and 10 with --quick
    ///
    /// From 10 on every app has sent a heartbeat; beyond 30, the time to live has passed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: Option<u64>,
    /// Length of each run as it was, in seconds; without it 60, and 32 with --quick
    ///
    /// The original calls nothing fresh before 30 s.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds_as_it_was: Option<u64>,
    /// Leave out a defect of the original in the runs as it was
    ///
    /// One of advertise-bump, cache-first, delete-apps, count-per-heartbeat, coordinated-tick and
    /// apps-added. Give it several times to leave out several.
    #[arg(long, value_name = "DEFECT")]
    pub without: Vec<String>,
    /// Also disturb each store by this command line, and measure how long it takes to recover
    ///
    /// The shell runs it again and again while heartbeats are due, for the largest number of apps that the store
    /// kept fresh. It returns when the disturbance is over, within 120 s and with exit code 0: such
    /// as 'cargo xtask servers disturb etcd-three leader-killed', or what restarts a member on
    /// another host.
    #[arg(long, value_name = "COMMAND")]
    pub outage: Option<String>,
    /// Number of outages of each store, 20 to 30 s apart
    #[arg(long, value_name = "N", default_value_t = 20, requires = "outage", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub outages: u32,
    /// Seed of the simulated cluster and of the order of the rounds
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// What every experiment can be asked for.
    #[command(flatten)]
    pub experiment: ExperimentArgs,
}

/// `tsb reproduce records`
#[derive(Debug, Args)]
pub struct RecordsArgs {
    /// Store of keys: memory:, sqlite:, series+STORE, etcd2:HOSTS, etcd3-single:HOSTS, etcd3:HOSTS
    ///
    /// Give it several times for several stores. Without it: memory: and sqlite:. Hosts are
    /// HOST:PORT with commas between them, one for each node; etcd2 is version 2 with one request
    /// per key, etcd3-single version 3 with one request per key, and etcd3 version 3 with
    /// transactions of up to 128 puts. A store in this process gets one call per key, by as many
    /// threads as requests in flight.
    #[arg(long = "store", value_name = "SPEC")]
    pub stores: Vec<String>,
    /// Also measure a cluster of etcd at these addresses, by all three interfaces
    ///
    /// Give it several times for clusters of several numbers of nodes. What a run writes is removed,
    /// and stays in etcd's history until it is compacted.
    #[arg(long, value_name = "HOSTS")]
    pub etcd: Vec<String>,
    /// Requests in flight, such as 1,30, from 1 to 256; without it 1,5,10,15,20,25,30, and 1,10,30
    /// with --quick
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub in_flight: Vec<usize>,
    /// Sizes of a record in bytes, such as 128,4096, from 1 to 65536; without it 128 to 4096 in powers
    /// of two, and 128,1024,4096 with --quick
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub sizes: Vec<usize>,
    /// Records of a batch
    ///
    /// More of them make a batch last longer than a moment of the machine.
    #[arg(long, value_name = "N", default_value_t = 512, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub records: u32,
    /// Numbers of apps of a heartbeat, of two instances each, from 1 to 100000; without it
    /// 30,100,300,1000,3000,10000, and 30,300,1000 with --quick
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub apps: Vec<usize>,
    /// Samples of each cell, one per round; intervals need two
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub samples: u32,
    /// Seed of the records and of the order of the rounds
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// What every experiment can be asked for.
    #[command(flatten)]
    pub experiment: ExperimentArgs,
}

/// `tsb reproduce mohawk`
#[derive(Debug, Args)]
pub struct MohawkArgs {
    /// Backend behind our endpoint: ring, sqlite or hawkular; without it, all three
    ///
    /// Give it several times for several. ring is Mohawk's memory, sqlite its SQLite, and hawkular
    /// answers as Hawkular does, over a store in memory.
    #[arg(long = "backend", value_name = "NAME")]
    pub backends: Vec<String>,
    /// Also put our endpoint in front of the MongoDB at this address, in Mohawk's layout
    ///
    /// Each run has a database of its own, which is removed. Credentials are read from
    /// TSB_CREDENTIALS_MONGO.
    #[arg(long, value_name = "HOST:PORT")]
    pub mongo: Option<String>,
    /// Also measure the Mohawk, or Hawkular, that runs at this address
    ///
    /// Each run writes into a tenant of its own, which stays there. The rows that it has to return
    /// are known for Mohawk 0.15 and 0.33, and for Hawkular.
    #[arg(long, value_name = "HOST:PORT")]
    pub mohawk: Option<String>,
    /// Rounds, in each of which every backend has a turn; without it 5, and 2 with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Samples and windows of each run as it was; the original has 999
    ///
    /// With any other number, times have no ratio to the published ones.
    #[arg(long, value_name = "N", default_value_t = 999, value_parser = clap::value_parser!(u64).range(2..=10_000))]
    pub count: u64,
    /// Writes of each corrected run in a closed loop, and as many reads; without it 1000, and 150
    /// with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub requests: Option<u64>,
    /// Gauges of a write with several samples; without it 100, and 50 with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub batch: Option<u32>,
    /// Connections of the runs with several
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub connections: u32,
    /// Requests per second of the open loop, half of them writes; without it 200, and 100 with
    /// --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub rate: Option<u64>,
    /// Length of the open loop, in seconds; without it 20, and 5 with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    pub seconds: Option<u64>,
    /// Seed of the values and of the order of the rounds
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// What every experiment can be asked for.
    #[command(flatten)]
    pub experiment: ExperimentArgs,
}

/// `tsb reproduce dalmatiner`
#[derive(Debug, Args)]
pub struct DalmatinerArgs {
    /// Store of ours, by name; without it, those named below
    ///
    /// Give it several times for several. "mstore, round 1" and "mstore, round 2" are DalmatinerDB's
    /// files behind its caches of July and September 2014, "write-cache+mstore" the same files
    /// behind a write cache with a journal; sqlite and memory are ours. Each runs in a process of its
    /// own behind DalmatinerDB's protocol, or with " in process" behind the name in this one. Without
    /// it: both rounds, sqlite and memory, and sqlite and memory in process.
    #[arg(long = "target", value_name = "NAME")]
    pub targets: Vec<String>,
    /// Also measure a server: graphite://HOST:PORT/PREFIX
    ///
    /// Give it several times for several. Each run has a place of its own there, which is removed.
    #[arg(long = "store", value_name = "SPEC")]
    pub stores: Vec<String>,
    /// Numbers of series, one sample per second each; without it 15000,54000, and 15000 with --quick
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = clap::value_parser!(u64).range(8..=10_000_000))]
    pub series: Vec<u64>,
    /// Rounds of all targets; without it 5, and 1 with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub rounds: Option<u32>,
    /// Seconds of each run; without it 30, and 2 with --quick
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub seconds: Option<u64>,
    /// Length of the loop that looks for the highest rate, in seconds; without it 10, and 2 with
    /// --quick; 0 leaves it out
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=3_600))]
    pub peak_seconds: Option<u64>,
    /// Series of the day of history that is asked for; without it 140, and 21 with --quick
    ///
    /// A server that is given holds 14 of them.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(8..=100_000))]
    pub history_series: Option<u64>,
    /// Share of the samples that the feed skips, from 0 to 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub skip: f64,
    /// Share of the samples that the feed sends twice
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub repeat: f64,
    /// Share of the samples that the feed sends one second late
    #[arg(long, value_name = "SHARE", default_value_t = 0.0)]
    pub late: f64,
    /// Send Graphite one sample in five, as the original feed did
    #[arg(long)]
    pub as_it_was: bool,
    /// Seed of the feed and of the order of the rounds
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// What every experiment can be asked for.
    #[command(flatten)]
    pub experiment: ExperimentArgs,
}
