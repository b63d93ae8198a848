//! The arguments of `tsb canary`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;
use tsb_run::spec::Typed;

use super::DocumentFormat;

/// `tsb canary`
#[derive(Debug, Args)]
#[command(
    after_help = "More options and examples: tsb canary --help",
    after_long_help = "A sample is late if an answer that had to have it did not, lost if it was missing for \
    longer than --lost-after, altered if two answers had another value, and invented if it was never written. \
    Each counts once, by the level that it had reached and by its age. The samples stay in the store: a canary \
    of the same name takes them for its own.\n\n\
    Exit code 3: something was lost, altered, invented or duplicated, or an answer was wrong.\n\n\
    Examples:\n  \
    tsb canary --store influx://127.0.0.1:8086/canary --expose 127.0.0.1:9464\n  \
    tsb canary --store sqlite:/var/lib/canary.db --interval 1s --keep 1d\n  \
    tsb canary --store victoriametrics://127.0.0.1:8428/canary --duration 1h --format json"
)]
pub struct CanaryArgs {
    /// Store to watch, such as influx://127.0.0.1:8086/canary
    #[arg(long, value_name = "SPEC")]
    pub store: Typed,
    /// Stop after this long; without it, at Ctrl-C
    #[arg(short, long, value_name = "DURATION")]
    pub duration: Option<String>,
    /// Name of the canary, a label of its series; two in one store need two names
    #[arg(long, value_name = "NAME", default_value = "canary")]
    pub name: String,
    /// Number of series, at most 10,000
    #[arg(long, value_name = "N", default_value = "10")]
    pub series: String,
    /// Time from one sample of a series to the next, at least 1s
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    pub interval: String,
    /// How far back to ask; no further than the store keeps samples
    #[arg(long, value_name = "DURATION", default_value = "7d")]
    pub keep: String,
    /// How long a sample may be missing before it counts as lost
    ///
    /// Beyond the delay that the store states until samples are visible.
    #[arg(long, value_name = "DURATION", default_value = "1m")]
    pub lost_after: String,
    /// Serve the counts as OpenMetrics on this address
    ///
    /// For Prometheus and other scrapers, at http://ADDRESS/metrics, such as `127.0.0.1:9464`.
    /// examples/canary has alerts for them. Without it, nothing is served.
    #[arg(long, value_name = "ADDRESS")]
    pub expose: Option<SocketAddr>,
    /// Let --expose serve an address that other machines can reach
    ///
    /// There is no authentication: every client that reaches the address can read the metrics.
    #[arg(long, requires = "expose", hide_short_help = true)]
    pub expose_remote: bool,
    /// How to print the result on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: DocumentFormat,
    /// Also write the result as JSON into this file, at the end; without it, none
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}
