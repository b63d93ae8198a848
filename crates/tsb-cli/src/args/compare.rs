//! `tsb compare`

use std::path::PathBuf;

use clap::Args;
use tsb_run::spec::Typed;

use super::DocumentFormat;

/// `tsb compare`
#[derive(Debug, Args)]
#[command(
    after_long_help = "Runs of the two reports are matched by store; several runs of one store are rounds, of which \
        the median counts. A condition with a sign, such as >+10%, is a change from the earlier report, and \
        one without a sign is about the later report. docs/thresholds.md lists the figures, and examples/ci \
        has a script and a workflow to copy.\n\n\
        Examples:\n  \
        tsb compare old.json new.json\n  \
        tsb compare old.json new.json --fail-if 'response.p99>+10%' --fail-if 'cost.store>+5%'\n  \
        tsb compare old.json new.json --fail-if 'held<-3%' --fail-unless valid --format json"
)]
pub struct CompareArgs {
    /// Two reports that --out or --format json wrote, the earlier one first
    #[arg(value_name = "REPORT", required = true, num_args = 2)]
    pub sides: Vec<Typed>,
    /// Fail with exit code 5 if this is true, such as 'response.p99>+10%'
    ///
    /// A figure compared with a limit by `<`, `<=`, `>`, `>=`, `=` or `!=`, or a verdict such as `noisy`.
    /// It may be given more than once. A figure that a report does not have fails too. Without it, the
    /// comparison is only shown.
    #[arg(long, value_name = "CONDITION")]
    pub fail_if: Vec<String>,
    /// Fail with exit code 5 unless this is true, such as valid or 'lost=0'
    ///
    /// As --fail-if, for what must hold. Without it, nothing has to.
    #[arg(long, value_name = "CONDITION")]
    pub fail_unless: Vec<String>,
    /// How to print the result on stdout
    #[arg(long, value_enum, default_value_t)]
    pub format: DocumentFormat,
    /// Also write the result as JSON into this file
    ///
    /// Without it, the result goes to stdout only.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}
