//! The exit codes: an interface that scripts rely on. The process ends in one place,
//! `main`, with one of these.

use std::process::ExitCode;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Done; a run was valid, or limited by the store, or could not be verified.
    Done = 0,
    /// A bug in tsb.
    Bug = 1,
    /// Bad usage: a flag, a file, a plan that cannot be run.
    Usage = 2,
    /// The run finished, but its figures mean nothing: data lost, or the generator was the limit.
    Invalid = 3,
    /// The target could not be reached.
    Unreachable = 4,
    /// A threshold that the user gave was crossed.
    Threshold = 5,
    /// Interrupted; a partial report was written.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
