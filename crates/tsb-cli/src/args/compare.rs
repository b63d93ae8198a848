//! `tsb compare`

use std::path::PathBuf;

use clap::Args;
use tsb_run::spec::Typed;

use super::{DocumentFormat, HostsArgs, SidesArgs};

/// `tsb compare`
#[derive(Debug, Args)]
#[command(
    after_help = "More options and examples: tsb compare --help",
    after_long_help = "Stores do the same work in interleaved rounds. Runs of two reports are matched by store; several \
        runs of one store are rounds, of which the median counts. A condition with a sign, such as >+10%, is a change \
        from the first side, and one without a sign is about the others. docs/thresholds.md lists the figures, and \
        examples/ci has a script and a workflow to copy.\n\n\
        Examples:\n  \
        tsb compare memory: sqlite:/tmp/m.db --html stores.html\n  \
        tsb compare sqlite:/tmp/a.db sqlite:/tmp/b.db --set b:workers=2\n  \
        tsb compare sqlite:/tmp/a.db --repeat 10\n  \
        tsb compare old.json new.json\n  \
        tsb compare old.json new.json --fail-if 'response.p99>+10%' --fail-if 'cost.store>+5%'\n  \
        tsb compare old.json new.json --fail-if 'held<-3%' --fail-unless valid --format json"
)]
pub struct CompareArgs {
    /// Stores that do the same work, such as memory: sqlite:/tmp/m.db; or two reports, the earlier one first
    ///
    /// At most six stores: the first is A, the second B and so on. Every run begins in a fresh place
    /// beside the one that is named, which is removed afterwards. A report is a file that --out or
    /// --format json wrote.
    #[arg(value_name = "SIDE", required = true, num_args = 1..)]
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
    #[arg(long, value_name = "CONDITION", hide_short_help = true)]
    pub fail_unless: Vec<String>,
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
    /// How hosts share each run.
    #[command(flatten)]
    pub hosts: HostsArgs,
}
