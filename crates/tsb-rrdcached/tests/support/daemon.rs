//! The real rrdcached, in a folder of its own, for as long as this value lives.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tsb_core::time::{Clock, MonotonicClock};

/// How long it may take to answer.
const TIMEOUT_NS: u64 = 10_000_000_000;

/// A daemon that listens.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    folder: tempfile::TempDir,
}

impl Daemon {
    /// Starts one with further arguments; `None` where there is no such program.
    pub(crate) fn start(arguments: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().ok()?;
        std::fs::create_dir(folder.path().join("base")).ok()?;
        let child = spawn(folder.path(), arguments)?;
        let daemon = Self { child, folder };
        daemon.answers().then_some(daemon)
    }

    /// Where it listens.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Kills it, and starts it again on the same files; whether it answers.
    pub(crate) fn kill_and_restart(&mut self, arguments: &[&str]) -> bool {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(self.socket());
        let _ = std::fs::remove_file(self.folder.path().join("pid"));
        match spawn(self.folder.path(), arguments) {
            None => false,
            Some(child) => {
                self.child = child;
                self.answers()
            }
        }
    }

    fn answers(&self) -> bool {
        let clock = MonotonicClock::new();
        while clock.now() < TIMEOUT_NS {
            if UnixStream::connect(self.socket()).is_ok() {
                return true;
            }
            clock.wait_until(clock.now() + 10_000_000);
        }
        false
    }
}

fn spawn(folder: &Path, arguments: &[&str]) -> Option<Child> {
    let path = |name: &str| folder.join(name).display().to_string();
    let command = Command::new("rrdcached")
        .args(["-g", "-w", "1800", "-f", "3600", "-t", "2", "-B"])
        .args(["-b", &path("base"), "-p", &path("pid")])
        .args(["-l", &format!("unix:{}", path("socket"))])
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    command.ok()
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
