//! The arguments of `tsb conformance`.

use clap::Args;
use tsb_run::spec::Typed;

use super::DocumentFormat;

/// `tsb conformance`
#[derive(Debug, Args)]
#[command(
    after_long_help = "Each check has the number of its clause and a place of its own beside that of the \
    store, which is removed at the end. Exit code 3: a clause does not hold.\n\n\
    Examples:\n  \
    tsb conformance --store 'exec:python3 my.py?place=/tmp/mine'\n  \
    tsb conformance --store sqlite:/tmp/c.db --format json"
)]
pub struct ConformanceArgs {
    /// Store to check, such as 'exec:PROGRAM ARGUMENTS?place=DIR'
    #[arg(long, value_name = "SPEC")]
    pub store: Typed,
    /// Run only checks whose name contains this text, such as c10_; without it, all
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Also run the checks that write a million samples
    #[arg(long)]
    pub long: bool,
    /// How to print the result on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: DocumentFormat,
}
