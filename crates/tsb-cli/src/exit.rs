//! The exit codes, an interface that scripts rely on. The process ends in `main` with one of
//! these, or after repeated signals in `interrupt`.

use std::process::ExitCode;

/// How the program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Done: no run is INVALID or GENERATOR-LIMITED. UNVERIFIED, TRANSPORT-LIMITED, STORE-LIMITED and
    /// NOISY runs count as done.
    Done = 0,
    /// A bug in tsb.
    Bug = 1,
    /// Bad usage: a flag, a file, a plan that cannot be run.
    Usage = 2,
    /// The run finished, but its figures mean nothing: data was lost, or the generator was the
    /// limit. Also if the files of any store are damaged: it cannot be opened, or what was read
    /// is less than what was written.
    Invalid = 3,
    /// The target could not be reached.
    Unreachable = 4,
    /// A threshold of `--fail-if` or `--fail-unless` was crossed, or its figure is not there.
    Crossed = 5,
    /// A result could not be written: stdout is closed, or a disk is full. The run itself was
    /// made.
    Unwritten = 6,
    /// Interrupted. What was measured by then is reported, unless nothing was, or the process was told
    /// three times to end.
    Interrupted = 130,
}

impl Exit {
    /// All exit codes with their texts, as the help and the documents show them.
    pub const TABLE: [(Self, &'static str); 8] = [
        (Self::Done, "done"),
        (Self::Bug, "a bug in tsb"),
        (Self::Usage, "bad usage: a flag, a file or a plan that cannot be run"),
        (
            Self::Invalid,
            "invalid, or limited by the generator; or a store's files are damaged",
        ),
        (Self::Unreachable, "a target cannot be reached, or a port is in use"),
        (Self::Crossed, "a threshold was crossed, or its figure is not there"),
        (Self::Unwritten, "a result could not be written"),
        (Self::Interrupted, "interrupted; what was done by then is reported"),
    ];
}

/// The table at the end of the help text.
pub fn help() -> String {
    let rows = Exit::TABLE.map(|(exit, what)| format!("  {:>3}  {what}\n", exit as u8));
    format!(
        "Exit codes:\n{}\nResults go to stdout, progress to stderr.",
        rows.concat()
    )
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_has_every_exit_code_in_the_words_of_the_help() {
        for (_, what) in Exit::TABLE {
            assert!(help().contains(what));
        }
        // The page is the repository's: a package that was unpacked elsewhere does not hold it.
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        if !root.join("xtask").is_dir() {
            return;
        }
        let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
        for (exit, what) in Exit::TABLE {
            let row = format!("| {} | {what} |", exit as u8);
            assert!(readme.contains(&row), "no {row}");
        }
    }
}
