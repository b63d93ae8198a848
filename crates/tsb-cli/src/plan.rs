//! Builds the [`Plan`] that a command line means, from flags, run files, plans and reports; and
//! `tsb plan`, which writes the run file of a command line.

mod apply;
mod churn;
pub mod file;
mod load;
pub mod no_effect;
mod phases;
mod queries;
mod write;

pub use apply::Apply;
pub use load::{load, load_side, with_file};
pub use phases::{FAULT_KEYS, PHASE_KEYS};
pub use tsb_run::plan::{AskedRate, PLAN_VERSION, Plan, Transport, WirePlan};

use crate::args::RunArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::print;

/// Runs `tsb plan`: prints the run file of a command line.
pub fn command(args: &RunArgs) -> Result<Exit, Failure> {
    if args.print_plan {
        return Err(Failure::usage("cannot use --print-plan here")
            .because_of("tsb plan prints the plan as a run file")
            .hint("tsb run --print-plan prints it as JSON"));
    }
    let args = with_file(args)?;
    let plan = load(&args)?;
    print(write::run_file(&plan, &args)?.as_bytes())?;
    Ok(Exit::Done)
}
