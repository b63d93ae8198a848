//! The process of a program: started with pipes, watched, and reaped.

use std::fmt;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::unix::pipe::{Receiver, Sender};
use tsb_stores::error::{Error, Result};
use tsb_stores::parts::lock;

use super::options::ExecOptions;

/// Interval between two checks whether a process has ended.
const LOOK: Duration = Duration::from_millis(2);

/// The ends of the pipes of a new process.
pub(super) struct Pipes {
    pub(super) input: Sender,
    pub(super) output: Receiver,
    pub(super) errors: Receiver,
}

/// A process. It is killed and reaped when the value is dropped.
pub(super) struct Process {
    id: u32,
    child: Mutex<Child>,
}

impl Process {
    /// Starts the program. It leads a process group, so that an interrupt typed at the terminal
    /// reaches tsb only, which then ends the conversation.
    pub(super) fn start(options: &ExecOptions) -> Result<(Self, Pipes)> {
        let program = options.command.first().map_or("", String::as_str);
        let failed = |source: Box<dyn std::error::Error + Send + Sync>| Error::Backend {
            action: format!("start the program {program}"),
            source,
        };
        let mut command = Command::new(program);
        command.args(options.command.iter().skip(1)).process_group(0);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        match &options.place {
            Some(place) => command.env("TSB_PLACE", absolute(place).map_err(|error| failed(error.into()))?),
            None => command.env_remove("TSB_PLACE"),
        };
        let mut child = command.spawn().map_err(|error| {
            let hint = "is it executable, and in PATH or named with a slash?";
            failed(format!("{error}; {hint}").into())
        })?;
        let taken = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let process = Self {
            id: child.id(),
            child: Mutex::new(child),
        };
        let (Some(input), Some(output), Some(errors)) = taken else {
            return Err(failed("it has no pipes".into()));
        };
        let pipes = || {
            Ok::<_, std::io::Error>(Pipes {
                input: Sender::from_owned_fd(OwnedFd::from(input))?,
                output: Receiver::from_owned_fd(OwnedFd::from(output))?,
                errors: Receiver::from_owned_fd(OwnedFd::from(errors))?,
            })
        };
        let pipes = pipes().map_err(|error| failed(error.into()))?;
        Ok((process, pipes))
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// Waits until the process has ended; `None` if it has not within `timeout`.
    pub(super) async fn ended(&self, timeout: Duration) -> Option<ExitStatus> {
        let wait = async {
            loop {
                if let Some(status) = self.status() {
                    return status;
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        tokio::time::timeout(timeout, wait).await.ok()
    }

    fn status(&self) -> Option<ExitStatus> {
        lock(&self.child).try_wait().ok().flatten()
    }

    /// Kills the process and what it has started in its group, and reaps it.
    pub(super) fn kill(&self) {
        let mut child = lock(&self.child);
        // Once it is reaped, its id may belong to another process.
        if let Ok(None) = child.try_wait() {
            if let Some(group) = Pid::from_raw(self.id as i32) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Creates a folder, and returns its absolute path.
fn absolute(place: &Path) -> std::io::Result<std::path::PathBuf> {
    std::fs::create_dir_all(place)?;
    std::fs::canonicalize(place)
}

/// How a process ended, as a clause.
pub(super) fn clause(status: Option<ExitStatus>) -> String {
    let Some(status) = status else {
        return "it closed its output".to_owned();
    };
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(signal)) => format!("signal {signal} ended it"),
        (None, None) => "it ended".to_owned(),
    }
}
