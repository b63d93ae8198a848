//! What the program prints in a run to its end.

use std::process::Output;

use crate::program::tsb;

/// `tsb` with these arguments, once it has ended.
pub(crate) fn output_of(arguments: &[&str]) -> Output {
    tsb(arguments).output().unwrap()
}

/// What it said.
pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
