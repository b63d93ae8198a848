//! The options of `tsb capacity`.

use clap::{Args, ValueEnum};

use super::{HostsArgs, RunArgs};

/// `tsb capacity`
#[derive(Debug, Args)]
#[command(
    after_help = "More options and examples: tsb capacity --help",
    after_long_help = "Each probe is a run of --duration at one load, in a fresh place that is removed after it. The \
        options of tsb run say what every probe sends; --rate is the first load of --find rate, and --series that of \
        --find series.\n\n\
        Exit code 0: a capacity was found. 3: none was found, because something else than the store was the limit, or \
        no load held.\n\n\
        Examples:\n  \
        tsb capacity --store sqlite:/tmp/m.db --slo 'staleness.p99<2s,response.p99<50ms,lost=0'\n  \
        tsb capacity --store memory: --find series --max-time 20m --html capacity.html\n  \
        tsb capacity --store sqlite:/tmp/m.db --scale workers=1,2,4,8 --html scaling.html\n  \
        tsb capacity --store 'throttle+memory:?throttle.rate=20k' --transport inproc -d 5s"
)]
pub struct CapacityArgs {
    /// Conditions that must hold, separated by commas
    ///
    /// FIGURE<LIMIT, FIGURE>LIMIT or FIGURE=VALUE, such as `response.p99<50ms`, `staleness.p99<2s`,
    /// `lost=0` and `rss<2GiB`. Besides them, a probe holds only if its state is steady and its
    /// verdict is neither INVALID nor STORE-LIMITED.
    #[arg(
        long,
        value_name = "CONDITIONS",
        default_value = "staleness.p99<2s,response.p99<50ms,lost=0"
    )]
    pub slo: String,
    /// What to search: the highest rate, or the largest number of series
    #[arg(long, value_enum, value_name = "WHAT", default_value_t)]
    pub find: FindWhat,
    /// Longest time for a search
    ///
    /// It ends before a probe that would exceed it, and reports the interval that it has by then.
    #[arg(long, value_name = "DURATION", default_value = "15m")]
    pub max_time: String,
    /// Width of the interval at which the search ends, such as 5%
    ///
    /// The interval covers the capacity with a probability of 95 %. Above 0, up to 100%.
    #[arg(long, value_name = "SHARE", default_value = "5%")]
    pub tolerance: String,
    /// Highest load to probe, in samples per second or series
    #[arg(long, value_name = "N", default_value = "1G", hide_short_help = true)]
    pub highest: String,
    /// Largest number of probes, from 1 to 10000
    #[arg(long, value_name = "N", default_value_t = 100, hide_short_help = true)]
    pub max_probes: u32,
    /// Rest after a probe that did not hold
    ///
    /// It doubles with each further failure, to at most eight times this.
    #[arg(long, value_name = "DURATION", default_value = "1s", hide_short_help = true)]
    pub rest: String,
    /// Leave out the upward and the downward pass around the capacity
    ///
    /// They show whether the store recovers from an overload only at a lower load. They take ten
    /// probes.
    #[arg(long, hide_short_help = true)]
    pub no_passes: bool,
    /// Find the capacity at several counts, such as workers=1,2,4,8 or in-flight=1,8,64; without it: at one
    ///
    /// Each count has a search of its own, of --max-time at most. From four capacities on, the
    /// universal scalability law is fitted to them: how much of the work one at a time does
    /// (contention), what each pair costs to keep in agreement (coherency), where throughput is
    /// highest, and what the law predicts for ten times the highest count. At most 32 counts, each
    /// above the one before; workers are those of each host if hosts share the run.
    #[arg(long, value_name = "OF=COUNTS", hide_short_help = true)]
    pub scale: Option<String>,
    /// The options of a run.
    #[command(flatten)]
    pub run: RunArgs,
    /// How hosts share each run.
    #[command(flatten)]
    pub hosts: HostsArgs,
}

/// What a search varies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FindWhat {
    /// The rate of the fleet
    #[default]
    Rate,
    /// The number of series, with one sample per second each
    Series,
}
