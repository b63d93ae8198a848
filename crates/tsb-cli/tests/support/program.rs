//! The program, as a user starts it.

use std::process::{Command, Stdio};

/// `tsb` with these arguments, without a terminal, and 80 columns wide.
pub(crate) fn tsb(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tsb"));
    command.args(arguments).stdin(Stdio::null()).env("COLUMNS", "80");
    command
}
