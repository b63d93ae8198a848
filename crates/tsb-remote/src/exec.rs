//! A program in any language as a store: requests go to its standard input, answers come from its
//! standard output. `docs/formats/exec.md` is the protocol.
//!
//! The client checks ids and keys, refuses values that the program cannot keep, and resamples: a
//! program has to store samples and return them, in order. A program that has ended is *not*
//! started again: what was asked is then an error with the exit code and its last words.

mod binary;
mod client;
mod connection;
mod cursor;
mod greeting;
mod key;
mod message;
mod options;
mod process;
mod said;
#[cfg(test)]
mod tests;
mod text;

pub use client::ExecClient;
pub use cursor::ExecCursor;
pub use options::ExecOptions;

use crate::Bridge;
use tsb_stores::error::Result;

/// Starts a program, and returns its client behind a blocking [`Bridge`].
///
/// # Errors
/// [`Error::Backend`](tsb_stores::Error::Backend) if it cannot be started, and
/// [`Error::Unanswered`](tsb_stores::Error::Unanswered) if it does not greet in time.
pub fn open(options: &ExecOptions) -> Result<Bridge<ExecClient>> {
    Bridge::connect(|| ExecClient::start(options))
}
