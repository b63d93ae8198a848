//! Hosts that are processes of this machine: they share a folder, which goes with them.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use tsb_core::time::{Clock, MonotonicClock, SECOND_NS};
use tsb_run::experiment::Folder;

use crate::exit::Exit;
use crate::failure::Failure;

/// How long a process may take to end by itself once the run has ended, in nanoseconds.
const PATIENCE_NS: u64 = 15 * SECOND_NS;

/// Processes that have joined a run. Those that have not ended are killed when it is dropped.
#[derive(Debug)]
pub(super) struct LocalHosts {
    folder: Folder,
    children: Vec<Child>,
}

impl LocalHosts {
    /// Makes a folder, and starts `hosts` processes that join there, for one run or for several. Silent ones leave
    /// the terminal alone; why one fails, the leader hears all the same.
    ///
    /// # Errors
    /// If the folder cannot be made, or a process not be started.
    pub(super) fn start(hosts: usize, has_several_runs: bool, is_silent: bool) -> Result<Self, Failure> {
        let folder = Folder::make(&std::env::temp_dir(), "hosts")?;
        let program = std::env::current_exe()
            .map_err(|error| Failure::new(Exit::Bug, "cannot find this program").because(&error))?;
        let mut local = Self {
            folder,
            children: Vec::new(),
        };
        for number in 1..=hosts {
            let child = local.spawn(&program, number, has_several_runs, is_silent);
            let child = child.map_err(|error| Failure::new(Exit::Bug, "cannot start a process").because(&error))?;
            local.children.push(child);
        }
        Ok(local)
    }

    fn spawn(&self, program: &Path, number: usize, has_several_runs: bool, is_silent: bool) -> std::io::Result<Child> {
        let mut command = Command::new(program);
        if is_silent {
            command.stderr(Stdio::null());
        }
        let again: &[&str] = if has_several_runs { &["--again"] } else { &[] };
        command
            .arg("join")
            .arg(self.address())
            .args(again)
            .args(["--name", &format!("host-{number}"), "--quiet", "--journal"])
            .arg(self.folder.path().join(format!("host-{number}.journal")))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
    }

    /// Waits until they have ended by themselves, after a run.
    pub(super) fn wait(&mut self) {
        let clock = MonotonicClock::new();
        while clock.now() < PATIENCE_NS
            && self
                .children
                .iter_mut()
                .any(|child| matches!(child.try_wait(), Ok(None)))
        {
            clock.wait_until(clock.now() + SECOND_NS / 50);
        }
    }

    /// Where they coordinate.
    pub(super) fn address(&self) -> String {
        format!("folder:{}", self.folder.path().join("run").display())
    }
}

impl Drop for LocalHosts {
    fn drop(&mut self) {
        for child in &mut self.children {
            // One that has ended by itself cannot be killed any more.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
