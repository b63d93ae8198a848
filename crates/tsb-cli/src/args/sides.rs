//! The options of `tsb compare` for stores: what is run, and for how long.

use std::path::PathBuf;

use clap::Args;
use tsb_run::spec::Typed;

use super::RunOptions;

/// Options of a run that `tsb compare` refuses, so its help leaves them out.
pub const NOT_OF_COMPARE: [&str; 2] = ["store", "append"];

/// What is done on every side, and in how many rounds.
#[derive(Debug, Default, Clone, PartialEq, Args)]
pub struct SidesArgs {
    /// Most rounds in which stores are compared [default: 30]
    ///
    /// From 2 to 1000. A round runs every side twice, in a seeded order and then in the reverse one.
    /// From the sixth round on, the comparison ends once the answer is clear.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000), help_heading = "Comparison of stores")]
    pub rounds: Option<u32>,
    /// Run one side this many times, and state the mean of each figure with its interval
    ///
    /// From 2 to 1000. Without it, at least two sides are needed.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1000), conflicts_with = "rounds", help_heading = "Comparison of stores")]
    pub repeat: Option<u32>,
    /// Time after which no round begins [default: 5m]
    ///
    /// A round that would probably end later is not begun; two rounds are made in any case, because
    /// one has no interval.
    #[arg(long, value_name = "DURATION", help_heading = "Comparison of stores")]
    pub budget: Option<String>,
    /// Difference that the comparison should be able to see [default: 2%]
    ///
    /// A comparison whose answer is not clear before goes on until it would see a difference of this
    /// in the held rate, response and staleness p99, and the CPU time of the store. A smaller value
    /// takes more rounds.
    #[arg(
        long,
        value_name = "SHARE",
        hide_short_help = true,
        help_heading = "Comparison of stores"
    )]
    pub enough: Option<String>,
    /// Rank sides although they are not equal
    ///
    /// Sides that did other work, acknowledge at another durability, keep values less exactly or
    /// lost samples are compared, but not ranked. Without it, what differs is said first.
    #[arg(long, hide_short_help = true, help_heading = "Comparison of stores")]
    pub rank_unequal: bool,
    /// Start every side from the plan in a report (JSON) or a run file (TOML)
    ///
    /// Without it, the plan is that of `tsb run`, for 5 s.
    #[arg(
        long,
        value_name = "FILE",
        hide_short_help = true,
        help_heading = "Comparison of stores"
    )]
    pub plan: Option<PathBuf>,
    /// Set a key of a run file, for one side as in b:workers=2, or for all
    ///
    /// It may be given more than once. The letter is that of the side, in the order of the arguments.
    /// What is set for one side overrides everything else.
    #[arg(long, value_name = "[SIDE:]KEY=VALUE", help_heading = "Comparison of stores")]
    pub set: Vec<Typed>,
    /// Also write a self-contained page with plots into this file
    ///
    /// Without it, there is no page.
    #[arg(long, value_name = "FILE", help_heading = "Comparison of stores")]
    pub html: Option<PathBuf>,
    /// Print no progress on stderr, only warnings
    #[arg(long, short, hide_short_help = true, help_heading = "Comparison of stores")]
    pub quiet: bool,
    /// Everything about each run.
    #[command(flatten)]
    pub options: RunOptions,
}
