//! `tsb ingest` in a process of its own, with one listener, so that its CPU time and memory are
//! apart from those of the client.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use tsb_core::resource::{Process, Usage};
use tsb_core::time::{Clock, SECOND_NS};

use crate::ends::IngestReport;
use crate::error::Error;

/// How long it may take to open its store, and to end.
const PATIENCE: Duration = Duration::from_mins(1);
/// Between two looks whether it has ended, in nanoseconds.
const LOOK_NS: u64 = SECOND_NS / 200;
/// It ends by itself after this, should this process be killed.
const LIFE: &str = "2h";

/// What to start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct IngestOptions<'a> {
    /// The program `tsb`.
    pub(crate) program: &'a Path,
    /// The address to listen on, such as `hawkular+http://127.0.0.1:0`.
    pub(crate) listen: &'a str,
    /// The store behind it.
    pub(crate) store: &'a str,
    /// What it is, in errors.
    pub(crate) about: &'a str,
}

/// An endpoint that has ended in order.
#[derive(Debug)]
pub(crate) struct EndedIngest {
    /// What it says.
    pub(crate) report: IngestReport,
    /// What it used from its start to its end.
    pub(crate) usage: Option<Usage>,
}

/// A running `tsb ingest`. It is killed when the value is dropped.
#[derive(Debug)]
pub(crate) struct IngestProcess {
    child: Child,
    address: String,
    /// The process since its start.
    life: Option<Process>,
    /// The whole of its stdout, once it has ended.
    printed: Option<JoinHandle<String>>,
}

impl IngestProcess {
    /// Starts it, and waits until it listens.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if it cannot be started, or does not listen.
    pub(crate) fn start(options: &IngestOptions<'_>) -> Result<Self, Error> {
        let failed = |why: String| {
            Error::unreachable(format!("cannot start an endpoint over {}", options.about)).because_of(why)
        };
        let mut child = Command::new(options.program)
            .args(["ingest", "--quiet", "--format", "json", "--duration", LIFE])
            .args(["--listen", options.listen, "--store", options.store])
            // A signal of the terminal is for the experiment, which ends its endpoint in order.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("{}: {error}", options.program.display())))?;
        let scheme = options.listen.split("://").next().unwrap_or_default();
        let prefix = format!("listening on {scheme}://");
        let (heard, first) = sync_channel(1);
        if let Some(stderr) = child.stderr.take() {
            std::thread::spawn(move || {
                // Nobody listens after the start.
                let _ = heard.send(listening_at(stderr, &prefix));
            });
        }
        let printed = child.stdout.take().map(|mut stdout| {
            std::thread::spawn(move || {
                let mut text = String::new();
                // What cannot be read is no report, and is said so.
                let _ = stdout.read_to_string(&mut text);
                text
            })
        });
        let mut process = Self {
            life: Process::watch(child.id()),
            child,
            address: String::new(),
            printed,
        };
        let heard = first.recv_timeout(PATIENCE);
        process.address = heard
            .unwrap_or_else(|_| Err(format!("it does not listen after {} s", PATIENCE.as_secs())))
            .map_err(failed)?;
        Ok(process)
    }

    /// `HOST:PORT`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The id of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it has used since its start.
    pub(crate) fn usage(&self) -> Option<Usage> {
        self.life.as_ref().and_then(Process::usage)
    }

    /// Kills it at once, as a crash would.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if it cannot be killed.
    pub(crate) fn kill(mut self) -> Result<(), Error> {
        let killed = self.child.kill().and_then(|()| self.child.wait());
        killed
            .map(drop)
            .map_err(|error| Error::unreachable("cannot kill the endpoint").because(&error))
    }

    /// Ends it in order, and reads its report.
    ///
    /// # Errors
    /// [`Error::Unreachable`] if it does not end, or leaves no report.
    pub(crate) fn end(mut self, clock: &dyn Clock) -> Result<EndedIngest, Error> {
        let failed = |why: String| Error::unreachable("cannot end the endpoint in order").because_of(why);
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::INT).map_err(|error| failed(error.to_string()))?;
        let until = clock.now() + PATIENCE.as_nanos() as u64;
        // It stays to be read until it is waited for.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        while waitid(WaitId::Pid(pid), options)
            .map_err(|error| failed(error.to_string()))?
            .is_none()
        {
            if clock.now() >= until {
                return Err(failed(format!("it still runs after {} s", PATIENCE.as_secs())));
            }
            clock.wait_until(clock.now() + LOOK_NS);
        }
        let usage = self.life.as_ref().and_then(Process::usage);
        let status = self.child.wait().map_err(|error| failed(error.to_string()))?;
        let text = self.printed.take().and_then(|printed| printed.join().ok());
        match serde_json::from_str(&text.unwrap_or_default()) {
            Ok(report) if status.success() => Ok(EndedIngest { report, usage }),
            Ok(_) => Err(failed(format!("it ended with {status}"))),
            Err(error) => Err(failed(format!(
                "it ended with {status}, and its report cannot be read: {error}"
            ))),
        }
    }
}

impl Drop for IngestProcess {
    fn drop(&mut self) {
        // One that ended in order is gone already, and has been waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads what it says on stderr until it listens: the address behind `prefix`, or all that it said.
/// Goes on reading, so that it never waits for us.
fn listening_at(stderr: impl Read + Send + 'static, prefix: &str) -> Result<String, String> {
    let mut lines = BufReader::new(stderr).lines();
    let mut said: Vec<String> = Vec::new();
    for line in lines.by_ref().map_while(Result::ok) {
        let address = line.strip_prefix(prefix).and_then(|rest| rest.split(' ').next());
        if let Some(address) = address {
            let address = address.to_owned();
            std::thread::spawn(move || lines.for_each(drop));
            return Ok(address);
        }
        said.push(line);
    }
    Err(format!("it said: {}", said.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_read_behind_other_lines_and_a_refusal_is_repeated() {
        let prefix = "listening on hawkular+http://";
        let said = "warning: x\nlistening on hawkular+http://127.0.0.1:4321 into ring:, receive buffer 1 MiB\nmore\n";
        assert_eq!(listening_at(said.as_bytes(), prefix).unwrap(), "127.0.0.1:4321");
        let refusal = listening_at("error: cannot open sqlite:x\n  hint: y\n".as_bytes(), prefix).unwrap_err();
        assert!(
            refusal.contains("cannot open sqlite:x") && refusal.contains("hint: y"),
            "{refusal}"
        );
    }
}
