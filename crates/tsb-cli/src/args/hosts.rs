//! The options of a run that many hosts share: those of its leader, and `tsb join`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use tsb_run::spec::Typed;

use super::RunArgs;

/// `tsb run`
#[derive(Debug, Args)]
pub struct SharedRunArgs {
    /// The options of a run.
    #[command(flatten)]
    pub run: RunArgs,
    /// How hosts share it. Last: its heading would also be that of what follows.
    #[command(flatten)]
    pub hosts: HostsArgs,
}

/// How hosts share a run, or each run of a comparison or a search.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Many hosts")]
pub struct HostsArgs {
    /// Share the run among hosts that join at this address of etcd
    ///
    /// `etcd://HOST[:PORT][,HOST...]/PREFIX`, with the options of the store etcd: (`tls=1`,
    /// `credentials=FILE`; also TSB_CREDENTIALS_ETCD). All keys below the prefix are the run's. Each
    /// host runs `tsb join` with the same address, and with --again if there are several runs. The store must be a server that all hosts reach.
    /// Without it or --hosts-local, this process runs the whole fleet.
    #[arg(
        long,
        value_name = "ADDRESS",
        requires = "hosts",
        group = "sharing",
        hide_short_help = true
    )]
    pub coordinator: Option<Typed>,
    /// Number of hosts; the run starts when that many have joined
    ///
    /// --coordinator needs it; --hosts-local is given instead of both.
    #[arg(long, value_name = "N", requires = "coordinator", hide_short_help = true)]
    pub hosts: Option<usize>,
    /// Share the run among this many processes on this machine, without etcd
    ///
    /// For trying it, for machines with several NUMA nodes, and for servers that limit the
    /// connections of a process. Without it or --coordinator, this process runs the whole fleet.
    #[arg(long, value_name = "N", group = "sharing", hide_short_help = true)]
    pub hosts_local: Option<usize>,
    /// Address at which the hosts compare their clocks with this one [default: 127.0.0.1:0]
    ///
    /// By UDP. Hosts of other machines need an address that they can reach, such as
    /// `10.0.0.5:4280`. A host is refused if the offset of its clock is uncertain by more than a
    /// hundredth of the interval.
    #[arg(long, value_name = "ADDRESS", requires = "coordinator", hide_short_help = true)]
    pub clock_listen: Option<SocketAddr>,
    /// Longest wait until all hosts have joined
    #[arg(
        long,
        value_name = "DURATION",
        default_value = "5m",
        requires = "sharing",
        hide_short_help = true
    )]
    pub hosts_wait: String,
}

impl HostsArgs {
    /// Whether several processes share the run.
    pub const fn is_shared(&self) -> bool {
        self.coordinator.is_some() || self.hosts_local.is_some()
    }
}

/// `tsb join`
#[derive(Debug, Args)]
#[command(after_long_help = "The leader is started with the same address:\n  \
    tsb run --coordinator etcd://10.0.0.5/runs --hosts 3 --clock-listen 10.0.0.5:4280 --store victoriametrics://10.0.0.9/fleet\n\
    \n\
    Then on each of three hosts, with --again for tsb compare and tsb capacity:\n  \
    tsb join etcd://10.0.0.5/runs\n\
    \n\
    Credentials of the store come from the environment of each host, such as TSB_CREDENTIALS_INFLUX: the plan \
    that the hosts share holds none.")]
pub struct JoinArgs {
    /// Where the leader coordinates the run, such as etcd://10.0.0.5/runs
    pub coordinator: Typed,
    /// Name of this host in the report [default: the host's name and the process id]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
    /// Longest wait for a leader
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    pub wait: String,
    /// Take part in the next run, too, until none begins within --wait
    ///
    /// For comparisons and searches, which make one run after the other. Without it, this host ends
    /// with its first run.
    #[arg(long)]
    pub again: bool,
    /// Keep the journal of this host's part in this file [default: a temporary file]
    #[arg(long, value_name = "FILE")]
    pub journal: Option<PathBuf>,
    /// Longest time that a call into the store may take after a stop or after the end of the run
    ///
    /// As in `tsb run`: without it, 30s after a stop (Ctrl-C, SIGTERM), and 10m after the end.
    #[arg(long, value_name = "DURATION")]
    pub store_timeout: Option<String>,
    /// Print no progress on stderr
    #[arg(long, short)]
    pub quiet: bool,
}
