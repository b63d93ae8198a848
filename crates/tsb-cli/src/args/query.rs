//! The command line of `tsb query`.

use clap::{Args, ValueEnum};
use tsb_run::spec::Typed;

/// `tsb query`
#[derive(Debug, Args)]
#[command(
    after_long_help = "Times are seconds since 1970 (1700000000.5), nanoseconds since 1970 (19 digits), \
    RFC 3339 (2026-11-23T03:00:00Z, 2026-11-23 05:00+02:00, 2026-11-23), or relative to now: now, -1h, now-90s.\n\n\
    Examples:\n  tsb query sqlite:m.db --list\n  tsb query sqlite:m.db --list 'cpu*host=h1*'\n  \
    tsb query sqlite:m.db --series 'cpu.user{host=h1}' --from -1h --rfc3339\n  \
    tsb query rrd:/var/rrd --series load --step 5m --rows average"
)]
pub struct QueryArgs {
    /// Store to read, which must exist, such as sqlite:m.db or rrd:DIR
    #[arg(value_name = "STORE", required_unless_present = "store", conflicts_with = "store")]
    pub place: Option<Typed>,
    /// Store to read, given as an option instead of STORE
    #[arg(long, value_name = "SPEC", hide_short_help = true)]
    pub store: Option<Typed>,
    /// Series to print; may be given more than once
    ///
    /// In the form of reports: name or name{label=value,...}. Values may be quoted.
    #[arg(long, value_name = "KEY", required_unless_present = "list")]
    pub series: Vec<String>,
    /// List all series, or those that match a pattern, instead of samples
    ///
    /// In a pattern, `*` matches any characters and `?` one character; a pattern without either
    /// matches every key that contains it.
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, conflicts_with_all = ["series", "from", "to", "step"])]
    pub list: Option<Option<String>>,
    /// Start of the time range; without it, the oldest sample
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub from: Option<String>,
    /// End of the time range, exclusive; without it, after the newest sample
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub to: Option<String>,
    /// Print one row per step of this length; without it, raw samples
    #[arg(long, value_name = "DURATION")]
    pub step: Option<String>,
    /// How the samples of a step are combined into its row
    #[arg(long, value_enum, value_name = "HOW", default_value_t, requires = "step")]
    pub rows: RowConsolidation,
    /// Print times as RFC 3339, in UTC, instead of seconds since 1970
    #[arg(long)]
    pub rfc3339: bool,
}

impl QueryArgs {
    /// The store, given as argument or with `--store`.
    pub fn spec(&self) -> Typed {
        let spec = self.place.as_ref().or(self.store.as_ref());
        spec.cloned().unwrap_or_else(|| Typed::from(""))
    }
}

/// How the samples of a step become one value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum RowConsolidation {
    /// The smallest
    Min,
    /// The largest
    #[default]
    Max,
    /// The mean
    Average,
    /// The sum
    Sum,
    /// The number of samples
    Count,
    /// The earliest
    First,
    /// The latest
    Last,
}
