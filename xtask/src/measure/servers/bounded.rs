//! Runs a program to its end, or until it has had enough time: then it is asked to stop, as by Ctrl-C, and says
//! what it knows by then.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::shell::Stopwatch;
use crate::terminal::pause;

/// Between two looks whether it has ended.
const LOOK_S: &str = "0.2";
/// How long it may take to report after it was asked to stop; then it is killed. It waits for the store as long as
/// `--store-timeout` says, two minutes.
const GRACE_S: u64 = 180;

/// A program that runs, and the files that it prints into.
#[derive(Debug)]
pub(super) struct Running {
    child: Child,
    output: std::path::PathBuf,
    errors: std::path::PathBuf,
}

/// What a program left.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) code: Option<i32>,
    pub(super) output: String,
    pub(super) errors: String,
    /// Whether it was asked to stop.
    pub(super) is_stopped: bool,
}

impl Running {
    /// Starts a program that prints into files of a folder.
    pub(super) fn start(command: &mut Command, folder: &Path) -> Result<Self> {
        let (output, errors) = (folder.join("output"), folder.join("errors"));
        command
            .stdin(Stdio::null())
            .stdout(File::create(&output)?)
            .stderr(File::create(&errors)?);
        let child = command.spawn().context("cannot start tsb")?;
        Ok(Self { child, output, errors })
    }

    /// Waits for its end for `limit_s` seconds, and then asks it to stop.
    pub(super) fn wait(mut self, limit_s: u64) -> Result<Ended> {
        let (watch, mut is_stopped) = (Stopwatch::start(), false);
        let code = loop {
            if let Some(status) = self.child.try_wait()? {
                break status.code();
            }
            let seconds = watch.elapsed().as_secs();
            if seconds > limit_s + GRACE_S {
                self.child.kill()?;
                self.child.wait()?;
                bail!("it does not stop within {GRACE_S} s");
            }
            if seconds > limit_s && !is_stopped {
                // It has not been waited for: the number is its own.
                kill_process(Pid::from_child(&self.child), Signal::TERM)?;
                is_stopped = true;
            }
            pause(LOOK_S)?;
        };
        Ok(Ended {
            code,
            output: fs::read_to_string(&self.output)?,
            errors: fs::read_to_string(&self.errors)?,
            is_stopped,
        })
    }

    /// Ends it at once: SIGKILL.
    pub(super) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(script: &str, limit_s: u64) -> Ended {
        let folder = tempfile::tempdir().expect("a folder");
        let mut command = Command::new("sh");
        let running = Running::start(command.args(["-c", script]), folder.path()).expect("a shell is everywhere");
        running.wait(limit_s).expect("it ends")
    }

    #[test]
    fn a_program_that_takes_too_long_is_asked_to_stop_and_heard() {
        let expected = |code, output: &str, errors: &str, is_stopped| Ended {
            code: Some(code),
            output: output.to_owned(),
            errors: errors.to_owned(),
            is_stopped,
        };
        assert_eq!(ended("echo a; echo b >&2; exit 3", 9), expected(3, "a\n", "b\n", false));
        let script = "trap 'echo stopped; exit 0' TERM; while :; do sleep 0.1; done";
        assert_eq!(ended(script, 0), expected(0, "stopped\n", "", true));
    }
}
