//! `tsb reproduce`: repeats a published experiment, with its mistakes removed.

mod rrdcached;

use crate::args::{Experiment, ReproduceArgs};
use crate::exit::Exit;
use crate::failure::Failure;

/// Runs the command.
pub fn command(args: &ReproduceArgs) -> Result<Exit, Failure> {
    match args.experiment {
        Experiment::Rrdcached => rrdcached::command(args),
    }
}
