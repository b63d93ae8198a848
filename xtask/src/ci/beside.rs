//! A step that mostly waits, run by a process of its own while the steps before it run.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, bail};

use super::Outcome;
use crate::shell::{root, target_folder};

/// The step, and the step with which it starts: between the two, most of the machine is idle.
pub(super) const WAITING: (&str, &str) = ("tutorial", "faults");

/// Lines of its output in the error, if it fails.
const LAST_LINES: usize = 20;

/// The process that runs the step. Dropped before it has ended, it is killed.
#[derive(Debug)]
pub(super) struct Beside {
    process: Child,
    output: PathBuf,
}

impl Beside {
    /// Starts `cargo xtask ci --only NAME`, whose output goes to a file.
    pub(super) fn start(name: &str) -> Result<Self> {
        let output = target_folder()?.join(format!("xtask-{name}.log"));
        let file = File::create(&output).with_context(|| format!("cannot write {}", output.display()))?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let mut command = Command::new(program);
        command.args(["ci", "--only", name]).current_dir(root());
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        let process = command.spawn().with_context(|| format!("cannot run {name} beside"))?;
        Ok(Self { process, output })
    }

    /// Waits for its end, prints what it printed, and says how it ended.
    pub(super) fn finish(mut self) -> Result<Outcome> {
        let status = self.process.wait()?;
        let said = fs::read(&self.output).with_context(|| format!("cannot read {}", self.output.display()))?;
        let said = String::from_utf8_lossy(&said);
        print!("{said}");
        if !status.success() {
            bail!("its process said:\n{}", last_lines(&said));
        }
        Ok(Outcome::Passed(format!("began with {}", WAITING.1)))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _status = self.process.wait();
    }
}

/// Why it failed: a process prints that last.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::super::steps::STEPS;
    use super::*;

    #[test]
    fn the_step_comes_after_the_one_with_which_it_starts() {
        let place = |name| STEPS.iter().position(|step| step.name == name);
        let (step, with) = WAITING;
        assert!(place(with).is_some() && place(with) < place(step));
    }

    #[test]
    fn a_failure_is_told_by_its_end() {
        let lines: Vec<String> = (0..100).map(|line| line.to_string()).collect();
        let told = last_lines(&lines.join("\n"));
        assert!(told.starts_with("80\n") && told.ends_with("\n99"), "{told}");
        assert_eq!(last_lines("a"), "a");
    }
}
