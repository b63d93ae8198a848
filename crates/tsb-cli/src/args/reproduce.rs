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
    /// Numbers of files, such as 1000,10000; without it the published, or 5000 with --simulate
    #[arg(long, value_name = "N", value_delimiter = ',')]
    pub files: Vec<usize>,
    /// Rounds, in each of which every engine has a turn; intervals need two
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub rounds: u32,
    /// Folder in which a temporary folder for the files is made
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub dir: PathBuf,
    /// Predict drains from a model of the disk instead of measuring all of them
    ///
    /// Measures the disk as tsb doctor --device does, and the cost of writes on 1,000 files, which
    /// takes about a minute. Hours of updates are then simulated in seconds.
    #[arg(long)]
    pub simulate: bool,
    /// Also make the real runs of what --simulate predicts, and print the error of each prediction
    #[arg(long, requires = "simulate")]
    pub check: bool,
    /// Also write a page that tells the story into this file
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// What every experiment can be asked for.
    #[command(flatten)]
    pub experiment: ExperimentArgs,
}
