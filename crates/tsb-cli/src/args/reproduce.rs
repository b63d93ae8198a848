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
    /// What does rrdcached buy? (kazeburo and sonots, 2012)
    Rrdcached(RrdcachedArgs),
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
    /// Print no progress on stderr
    #[arg(long, short)]
    pub quiet: bool,
}

/// `tsb reproduce rrdcached`
#[derive(Debug, Args)]
pub struct RrdcachedArgs {
    /// Numbers of files to measure, such as 1000,10000; without it, the published numbers
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub files: Vec<usize>,
    /// Folder in which a temporary folder for the files is made
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// What every experiment can be asked for.
    #[command(flatten)]
    pub experiment: ExperimentArgs,
}
