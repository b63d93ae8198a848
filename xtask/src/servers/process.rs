//! Processes that outlive this program, identified by process id and start time, because the id
//! alone may have been reused.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use serde_json::{Value, json};

use crate::proc_files::{kib, stat_field, stat_number};
use crate::shell::spell;

/// How long a process may take to end when it is asked to.
const GRACE: Timespec = seconds(5);
/// How long the kernel may take to end it when it is not asked.
const KILL: Timespec = seconds(10);
/// Lines of a log that an error shows.
const LAST_LINES: usize = 12;
/// Characters of such a line.
const LINE_MAX: usize = 240;

const fn seconds(seconds: i64) -> Timespec {
    Timespec {
        tv_sec: seconds,
        tv_nsec: 0,
    }
}

/// A process that was started here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Process {
    /// What it is called among those of its server.
    pub(super) name: String,
    pid: u32,
    /// When it began, in clock ticks after the machine did.
    began: u64,
    /// Where it listens.
    pub(super) ports: Vec<u16>,
    /// What it prints.
    pub(super) log: PathBuf,
    /// How it was started, so that it can be started again on the same files.
    start: Start,
}

/// A command, as far as it can be recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Start {
    program: String,
    arguments: Vec<String>,
    /// What is set, in addition to the environment of this program.
    environment: Vec<(String, String)>,
    /// Where it runs, if not where this program does.
    folder: Option<PathBuf>,
}

impl Start {
    fn of(command: &Command) -> Self {
        let text = |word: &OsStr| word.to_string_lossy().into_owned();
        let set = command
            .get_envs()
            .filter_map(|(name, value)| Some((text(name), text(value?))));
        Self {
            program: text(command.get_program()),
            arguments: command.get_args().map(text).collect(),
            environment: set.collect(),
            folder: command.get_current_dir().map(Path::to_owned),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).envs(self.environment.iter().cloned());
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        command
    }

    fn to_json(&self) -> Value {
        json!({
            "program": self.program, "arguments": self.arguments,
            "environment": self.environment, "folder": self.folder,
        })
    }

    /// From the record; of one that an earlier build wrote, nothing.
    fn from_json(value: &Value) -> Self {
        let words = |value: &Value| -> Vec<String> {
            let words = value.as_array().into_iter().flatten();
            words.filter_map(|word| word.as_str().map(str::to_owned)).collect()
        };
        let pairs = value["environment"].as_array().into_iter().flatten();
        Self {
            program: value["program"].as_str().unwrap_or_default().to_owned(),
            arguments: words(&value["arguments"]),
            environment: pairs
                .filter_map(|pair| words(pair).try_into().ok())
                .map(|[name, value]: [String; 2]| (name, value))
                .collect(),
            folder: value["folder"].as_str().map(PathBuf::from),
        }
    }
}

impl Process {
    /// Starts a process that does not end with this one; what it prints goes to `log`.
    pub(super) fn spawn(name: &str, command: &mut Command, ports: &[u16], log: &Path) -> Result<Self> {
        // What it said in an earlier life stays.
        let file = File::options().append(true).create(true).open(log);
        let file = file.with_context(|| format!("cannot write {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file);
        // A group of its own: an interrupt at the terminal is not for it.
        let child = command.process_group(0).spawn();
        let mut child = child.with_context(|| format!("cannot start {}", spell(command)))?;
        let pid = child.id();
        // It cannot have been reaped yet: the number is its own.
        let began = Stat::read(pid).map(|stat| stat.began);
        let began = began.with_context(|| format!("{} has no /proc entry", spell(command)))?;
        // Reaped here while this program lives, and by the system after that.
        std::thread::spawn(move || child.wait());
        Ok(Self {
            name: name.to_owned(),
            pid,
            began,
            ports: ports.to_vec(),
            log: log.to_owned(),
            start: Start::of(command),
        })
    }

    /// Starts it again as it was started before: with the same arguments, ports and files.
    pub(super) fn spawn_again(&self) -> Result<Self> {
        if self.start.program.is_empty() {
            bail!("it is not recorded how {} was started", self.name);
        }
        Self::spawn(&self.name, &mut self.start.command(), &self.ports, &self.log)
    }

    /// Whether it still runs.
    pub(super) fn is_alive(&self) -> bool {
        Stat::read(self.pid).is_some_and(|stat| stat.began == self.began && !stat.has_ended)
    }

    /// Whether it, or a child of it, listens on a port of this machine.
    pub(super) fn listens_on(&self, port: u16) -> bool {
        self.is_alive() && super::owner::listens(self.pid, port)
    }

    /// Asks it to end, and ends it if it does not; whether it was there.
    pub(super) fn stop(&self) -> Result<bool> {
        let Some(handle) = self.handle() else { return Ok(false) };
        for (signal, patience) in [(Signal::TERM, GRACE), (Signal::KILL, KILL)] {
            // An error means that it has ended meanwhile.
            let _ = pidfd_send_signal(&handle, signal);
            // A handle can be read when its process has ended.
            let ended = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&patience));
            if ended.context("cannot wait for a process")? > 0 {
                return Ok(true);
            }
        }
        bail!("process {} ({}) cannot be ended", self.pid, self.name);
    }

    /// Sends SIGKILL, and does not wait.
    pub(super) fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Sends a signal.
    pub(super) fn signal(&self, signal: Signal) {
        if let Some(handle) = self.handle() {
            // An error means that it has ended meanwhile.
            let _ = pidfd_send_signal(&handle, signal);
        }
    }

    /// Its number.
    pub(super) const fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits until it has ended.
    pub(super) fn await_end(&self) -> Result<()> {
        let Some(handle) = self.handle() else { return Ok(()) };
        let ended = poll(&mut [PollFd::new(&handle, PollFlags::IN)], Some(&KILL));
        if ended.context("cannot wait for a process")? == 0 {
            bail!("process {} ({}) does not end", self.pid, self.name);
        }
        Ok(())
    }

    /// A handle of this very process: what happens to the number later does not matter.
    fn handle(&self) -> Option<OwnedFd> {
        let pid = Pid::from_raw(i32::try_from(self.pid).ok()?)?;
        let handle = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // IMPORTANT: looked at after the handle is open, so that both are of one process.
        self.is_alive().then_some(handle)
    }

    /// Resident memory in bytes, while it runs.
    fn rss_bytes(&self) -> Option<u64> {
        if !self.is_alive() {
            return None;
        }
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).ok()?;
        Some(kib(&status, "VmRSS:")? * 1024)
    }

    /// The last lines that it printed.
    pub(super) fn last_words(&self) -> String {
        let text = fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let text = text.unwrap_or_default();
        let lines: Vec<String> = text.lines().map(|line| line.chars().take(LINE_MAX).collect()).collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }

    /// As it is recorded and shown.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "name": self.name, "pid": self.pid, "began": self.began, "ports": self.ports,
            "log": self.log, "alive": self.is_alive(), "rss_bytes": self.rss_bytes(),
            "start": self.start.to_json(),
        })
    }

    /// From the record.
    pub(super) fn from_json(value: &Value) -> Option<Self> {
        let ports = value["ports"].as_array()?.iter();
        Some(Self {
            name: value["name"].as_str()?.to_owned(),
            pid: u32::try_from(value["pid"].as_u64()?).ok()?,
            began: value["began"].as_u64()?,
            ports: ports
                .map(|port| port.as_u64().and_then(|port| u16::try_from(port).ok()))
                .collect::<Option<_>>()?,
            log: value["log"].as_str()?.into(),
            start: Start::from_json(&value["start"]),
        })
    }
}

/// What the kernel says of a process: proc_pid_stat(5).
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    has_ended: bool,
    began: u64,
}

impl Stat {
    fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        Some(Self {
            has_ended: matches!(stat_field(text, 3)?, "Z" | "X"),
            began: stat_number(text, 22)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(folder: &Path) -> Process {
        let log = folder.join("log");
        Process::spawn("sleeper", Command::new("sleep").arg("600"), &[7, 9], &log).expect("sleep is everywhere")
    }

    #[test]
    fn the_name_of_a_program_does_not_confuse() {
        let text = "42 (a) b) S 1 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 1 1";
        let expected = Stat {
            has_ended: false,
            began: 123_456,
        };
        assert_eq!(Stat::parse(text), Some(expected));
        assert_eq!(Stat::parse("42 (a"), None);
    }

    #[test]
    fn a_process_is_stopped_once_and_its_record_comes_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let process = sleeper(folder.path());
        assert_eq!(Process::from_json(&process.to_json()), Some(process.clone()));
        assert!(process.is_alive() && process.rss_bytes().is_some());
        assert!(process.stop().expect("it ends"));
        assert!(!process.is_alive());
        assert!(!process.stop().expect("nothing to do"));
        assert!(process.rss_bytes().is_none());
    }

    #[test]
    fn a_process_is_killed_and_started_again_as_it_was() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let mut command = Command::new("sh");
        command
            .args(["-c", "echo \"$PLACE $PWD\"; exec sleep 600"])
            .env("PLACE", "here");
        let first = Process::spawn("sh", command.current_dir("/"), &[], &log).expect("a shell is everywhere");
        let said = |lines: &str| {
            while fs::read_to_string(&log).is_ok_and(|text| text != lines) {
                std::thread::yield_now();
            }
        };
        said("here /\n");
        first.kill();
        first.await_end().expect("it ends");
        assert!(!first.is_alive());
        let recorded = Process::from_json(&first.to_json()).expect("a record");
        let second = recorded.spawn_again().expect("it starts");
        assert!(second.is_alive() && second != first);
        said("here /\nhere /\n");
        assert!(second.stop().expect("it ends"));
    }

    #[test]
    fn a_process_that_began_at_another_moment_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let process = sleeper(folder.path());
        let earlier = Process {
            began: process.began - 1,
            ..process.clone()
        };
        assert!(!earlier.is_alive());
        assert!(!earlier.stop().expect("nothing to do"), "another process was stopped");
        assert!(process.is_alive());
        assert!(process.stop().expect("it ends"));
    }
}
