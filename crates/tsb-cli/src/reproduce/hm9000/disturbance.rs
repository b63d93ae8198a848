//! Runs the command that disturbs a store.

use std::process::{Command, Stdio};

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_run::Error;

/// How long a command may take, in seconds.
pub(super) const LIMIT_S: u64 = tsb_run::hm9000::DISTURBANCE_MAX_S;
/// Between two looks whether it has ended, in nanoseconds.
const LOOK_NS: u64 = SECOND_NS / 50;

/// Runs a command line by the shell, and returns when it has ended. What it prints on stderr is shown.
pub(super) fn run(command: &str) -> Result<(), Error> {
    let failed = || Error::unreachable(format!("cannot make an outage by {command}"));
    let hint = "a command of --outage returns when the disturbance is over, with exit code 0";
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = shell.spawn().map_err(|error| failed().because(&error))?;
    let clock = MonotonicClock::new();
    loop {
        match child.try_wait().map_err(|error| failed().because(&error))? {
            Some(status) if status.success() => return Ok(()),
            Some(status) => return Err(failed().because_of(format!("it ended with {status}")).hint(hint)),
            None if clock.now() > LIMIT_S * SECOND_NS => {
                // It may have ended meanwhile.
                let _ = child.kill();
                let _ = child.wait();
                return Err(failed()
                    .because_of(format!("it took longer than {LIMIT_S} s"))
                    .hint(hint));
            }
            None => clock.wait_until(clock.now() + LOOK_NS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_fails_is_named_with_its_exit_code() {
        assert!(run("exit 0").is_ok());
        let error = run("exit 3").unwrap_err();
        let said = format!("{error} {}", error.explanation().causes().join(" "));
        for words in ["exit 3", "exit status: 3"] {
            assert!(said.contains(words), "{said}");
        }
    }
}
