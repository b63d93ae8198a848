//! The `tsb` program as a library: what was typed, what it means, and how it is shown.

pub mod doctor;

use std::process::ExitCode;

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
