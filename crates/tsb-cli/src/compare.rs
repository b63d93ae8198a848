//! `tsb compare`: sides that do the same work, and by how much they differ.

mod live;

use crate::args::CompareArgs;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Target;

/// Runs the command.
pub fn command(args: &CompareArgs) -> Result<Exit, Failure> {
    let results = live::Results {
        format: args.format,
        out: args.out.as_deref().map(Target::prepare).transpose()?,
        page: args.stores.html.as_deref().map(Target::prepare).transpose()?,
    };
    let (comparison, exit) = live::run(&args.sides, &args.stores, &results)?;
    live::write(&comparison, &results)?;
    Ok(exit)
}
