//! Lines on stderr: progress, and failures.
//!
//! Whether anybody reads them is no matter of the program: a closed or full stderr is not an
//! error, and never a panic.

use std::fmt;
use std::io::Write;

/// Writes one line to stderr.
pub fn line(text: impl fmt::Display) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
