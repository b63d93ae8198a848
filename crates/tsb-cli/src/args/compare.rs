//! `tsb compare`

use std::path::PathBuf;

use clap::Args;
use tsb_run::spec::Typed;

use super::{DocumentFormat, SidesArgs};

/// `tsb compare`
#[derive(Debug, Args)]
#[command(
    after_help = "More options and examples: tsb compare --help",
    after_long_help = "Examples:\n  \
        tsb compare memory: sqlite:/tmp/m.db --html stores.html\n  \
        tsb compare sqlite:/tmp/a.db sqlite:/tmp/b.db --set b:workers=2\n  \
        tsb compare sqlite:/tmp/a.db --repeat 10"
)]
pub struct CompareArgs {
    /// Stores that do the same work in interleaved rounds, such as memory: sqlite:/tmp/m.db
    ///
    /// At most six. The first is A, the second B and so on. Every run begins in a fresh place beside
    /// the one that is named, which is removed afterwards.
    #[arg(value_name = "SIDE", required = true, num_args = 1..)]
    pub sides: Vec<Typed>,
    /// How to print the result on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: DocumentFormat,
    /// Also write the result as JSON into this file
    ///
    /// Without it, the result goes to stdout only.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Stores: how they are compared, and what is run.
    #[command(flatten)]
    pub stores: SidesArgs,
}
