//! `tsb compare`: two sides, and whether the second is worse than allowed.

mod files;
mod matched;

use std::path::Path;

use crate::args::CompareArgs;
use crate::exit::Exit;
use crate::failure::Failure;

/// Runs the command.
pub fn command(args: &CompareArgs) -> Result<Exit, Failure> {
    let [a, b] = args.sides.as_slice() else {
        return Err(Failure::usage("cannot compare").because_of("two reports are compared with each other"));
    };
    files::compare(Path::new(a.expose()), Path::new(b.expose()), args)
}
