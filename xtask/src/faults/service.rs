//! Runs `tsb ingest` as a process: starts it, sends it signals, and reports how it ended.

use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::client::Client;
use super::stores::StoreUnderTest;

/// How long a process may take to end when it is asked to; then it hangs.
pub(super) const PATIENCE: Timespec = Timespec { tv_sec: 20, tv_nsec: 0 };

/// What a process said before it ended, and how it did.
#[derive(Debug)]
pub(super) struct ProcessEnd {
    /// `None` where it did not end, and was killed for it.
    pub(super) status: Option<ExitStatus>,
    pub(super) said: String,
}

impl ProcessEnd {
    /// Whether it panicked, or was ended by a fault of its own.
    pub(super) fn has_panicked(&self) -> bool {
        let by_fault = |signal| matches!(signal, 4 | 6 | 7 | 8 | 11);
        self.said.contains("panicked at")
            || self
                .status
                .is_some_and(|status| status.signal().is_some_and(by_fault) || matches!(status.code(), Some(1 | 101)))
    }

    pub(super) fn is_success(&self) -> bool {
        self.status.is_some_and(|status| status.success())
    }

    /// What it said of errors and damage, in one line.
    pub(super) fn complaint(&self) -> String {
        self.complaints().join("; ")
    }

    /// The lines with what it said of errors and damage; progress is left out.
    pub(super) fn complaints(&self) -> Vec<&str> {
        let progress = ["listening on ", "received ", "tsb: stopping"];
        let is_progress = |line: &&str| progress.iter().any(|start| line.starts_with(start));
        let lines = self.said.lines().filter(|line| !is_progress(line));
        lines.map(str::trim).filter(|line| !line.is_empty()).collect()
    }
}

/// A process by a handle: its number may be another's by the time of a signal.
#[derive(Debug)]
pub(super) struct ProcessHandle(OwnedFd);

impl ProcessHandle {
    /// Of a child that was not reaped yet, or of its child.
    pub(super) fn of(pid: u32) -> Result<Self> {
        let pid = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .context("no process number")?;
        Ok(Self(pidfd_open(pid, PidfdFlags::empty())?))
    }

    /// Waits until the process ends, for `most` at most. Returns whether it has.
    pub(super) fn wait(&self, most: Timespec) -> bool {
        poll(&mut [PollFd::new(&self.0, PollFlags::IN)], Some(&most)).is_ok_and(|ready| ready > 0)
    }

    /// Sends a signal; one that has ended does not hear it.
    pub(super) fn signal(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.0, signal);
    }
}

/// Microseconds as a time to wait.
pub(super) const fn micros(micros: u64) -> Timespec {
    Timespec {
        tv_sec: (micros / 1_000_000) as i64,
        tv_nsec: (micros % 1_000_000 * 1000) as i64,
    }
}

/// A process that has not said yet that it listens.
#[derive(Debug)]
pub(super) struct StartingProcess {
    child: Child,
    said: BufReader<ChildStderr>,
    /// The process itself, also where it runs below another program.
    pub(super) handle: ProcessHandle,
    pid: u32,
}

/// A process that listens.
#[derive(Debug)]
pub(super) struct Service {
    child: Child,
    rest: JoinHandle<String>,
    first: String,
    pub(super) pid: u32,
    pub(super) handle: ProcessHandle,
    pub(super) address: String,
}

impl StartingProcess {
    /// Starts `tsb ingest` on the place at `root`, below `around` where that is not empty.
    pub(super) fn spawn(program: &Path, around: &[String], subject: &StoreUnderTest, root: &Path) -> Result<Self> {
        let mut command = match around {
            [] => Command::new(program),
            [outer, rest @ ..] => {
                let mut command = Command::new(outer);
                command.args(rest).arg(program);
                command
            }
        };
        command.args([
            "ingest",
            "--quiet",
            "--listen",
            subject.listen(),
            "--store",
            &subject.spec(root),
        ]);
        Self::command(command, (!around.is_empty()).then_some(program))
    }

    /// Starts a listener; where it is the `inner` program of another, signals are for it and
    /// not for that.
    pub(super) fn command(mut command: Command, inner: Option<&Path>) -> Result<Self> {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start tsb ingest")?;
        let said = child.stderr.take().context("no stderr")?;
        let pid = match inner {
            Some(inner) => child_of(&child, inner)?,
            None => child.id(),
        };
        Ok(Self {
            pid,
            handle: ProcessHandle::of(pid)?,
            said: BufReader::new(said),
            child,
        })
    }

    /// Waits until it listens; or how it ended before that.
    pub(super) fn listening(mut self) -> Result<std::result::Result<Service, ProcessEnd>> {
        let mut first = String::new();
        loop {
            let start = first.len();
            let read = self.said.read_line(&mut first);
            if !read.is_ok_and(|bytes| bytes > 0) {
                let ended = end(&mut self.child, &self.handle);
                return Ok(Err(ProcessEnd {
                    status: ended,
                    said: first,
                }));
            }
            if let Some(line) = first[start..].strip_prefix("listening on ") {
                let address = line.split_whitespace().next().unwrap_or_default().to_owned();
                let mut said = self.said;
                let rest = std::thread::spawn(move || {
                    let mut bytes = Vec::new();
                    let _ = said.read_to_end(&mut bytes);
                    String::from_utf8_lossy(&bytes).into_owned()
                });
                return Ok(Ok(Service {
                    child: self.child,
                    rest,
                    first,
                    pid: self.pid,
                    handle: self.handle,
                    address,
                }));
            }
        }
    }
}

impl Service {
    /// A client of it.
    pub(super) fn client(&self, subject: &StoreUnderTest) -> Result<Client> {
        Client::connect(subject, &self.address)
    }

    /// Asks it to end in order, or kills it, and waits.
    pub(super) fn stop(mut self, signal: Signal) -> ProcessEnd {
        self.handle.signal(signal);
        let status = end(&mut self.child, &self.handle);
        let rest = self.rest.join().unwrap_or_default();
        ProcessEnd {
            status,
            said: self.first + &rest,
        }
    }
}

/// Waits for a process; one that does not end is killed, and has no status.
fn end(child: &mut Child, handle: &ProcessHandle) -> Option<ExitStatus> {
    let has_ended = handle.wait(PATIENCE);
    if !has_ended {
        handle.signal(Signal::CONT);
        handle.signal(Signal::KILL);
    }
    let status = child.wait().ok();
    if has_ended { status } else { None }
}

/// The child of a program that runs `inner`; waits until there is one. strace has others first.
fn child_of(parent: &Child, inner: &Path) -> Result<u32> {
    let pid = parent.id();
    let path = format!("/proc/{pid}/task/{pid}/children");
    let handle = ProcessHandle::of(pid)?;
    let is_inner = |child: &u32| {
        let runs = std::fs::read_link(format!("/proc/{child}/exe"));
        runs.is_ok_and(|runs| runs.file_name() == inner.file_name())
    };
    for _ in 0..20_000 {
        let children = std::fs::read_to_string(&path).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|child| child.parse().ok());
        if let Some(child) = children.into_iter().find(is_inner) {
            return Ok(child);
        }
        if handle.wait(micros(500)) {
            break;
        }
    }
    bail!("the program around tsb started nothing")
}

/// Runs a command to its end: what it printed, and how it ended.
pub(super) fn finish(command: &mut Command) -> Result<(String, ProcessEnd)> {
    let output = command.stdin(Stdio::null()).output().context("cannot start tsb")?;
    let ended = ProcessEnd {
        status: Some(output.status),
        said: String::from_utf8_lossy(&output.stderr).into_owned(),
    };
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), ended))
}
