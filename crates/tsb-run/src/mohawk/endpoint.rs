//! Our endpoint in a process of its own, `tsb ingest --listen hawkular+http`, so that its CPU time
//! and memory are apart from the client's; or another's server, which is used as it is.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tsb_core::ledger::Counter;
use tsb_core::report::experiment::mohawk::TestedBackend;
use tsb_core::resource::{Listening, Process, listeners};
use tsb_core::time::{Clock, SECOND_NS};
use tsb_core::wire::http::hawkular::Behaviour;

use super::backend::{AnswerRules, Answers, MohawkBackend, described, durability_of};
use super::connection::ClientConnection;
use super::processes::{Participant, Role};
use super::requests::{Keeping, Requests};
use crate::draws::Draws;
use crate::ends::IngestReport;
use crate::error::Error;
use crate::place::RoundPlace;

/// The tenant of the original client.
const TENANT: &str = "python_test";
/// How long our endpoint may take to open its store, and to end.
const PATIENCE: Duration = Duration::from_mins(1);
/// Between two looks whether it has ended, in nanoseconds.
const LOOK_NS: u64 = SECOND_NS / 200;
/// It ends by itself after this, should this process be killed.
const LIFE: &str = "2h";

/// How an endpoint is opened.
#[derive(Debug)]
pub(super) struct EndpointOptions<'a> {
    /// The program `tsb`.
    pub(super) program: &'a Path,
    /// The folder for files of stores.
    pub(super) folder: &'a Path,
    /// The number of the place; no two endpoints of one process share it.
    pub(super) place: u32,
    /// The answers that are asked of it.
    pub(super) answers: Answers,
    /// The clock of the experiment.
    pub(super) clock: &'a dyn Clock,
}

/// An open endpoint.
#[derive(Debug)]
pub(super) struct OpenEndpoint {
    /// `HOST:PORT`.
    pub(super) address: String,
    /// The tenant of the requests.
    pub(super) tenant: String,
    /// The processes, with this one.
    pub(super) participants: Vec<Participant>,
    /// What it says of itself.
    pub(super) tested: TestedBackend,
    /// The rules of its answers, where they are known.
    pub(super) rules: Option<AnswerRules>,
    process: Option<IngestProcess>,
    place: Option<RoundPlace>,
}

/// What is known after the end.
#[derive(Clone, Debug, Default)]
pub(super) struct EndedEndpoint {
    /// The durability of confirmed writes.
    pub(super) durability: String,
    /// Samples that it accepted; `None` for another's server.
    pub(super) accepted: Option<u64>,
    /// Samples and requests that it refused or did not understand.
    pub(super) refused: u64,
}

impl OpenEndpoint {
    /// Opens a backend in a place that holds nothing.
    ///
    /// # Errors
    /// If it cannot be started or does not answer.
    pub(super) fn open(backend: &MohawkBackend, options: &EndpointOptions<'_>) -> Result<Self, Error> {
        let mut participants = vec![Participant::client()];
        let place = backend.store(options.folder)?;
        let place = place.map(|spec| RoundPlace::new(&spec, options.place)).transpose()?;
        let (mut process, mut tenant) = (None, TENANT.to_owned());
        let address = if let MohawkBackend::Started(address) = backend {
            // A tenant of its own takes the part of a fresh place; its name is as long.
            let mut draws = Draws::new(u64::from(std::process::id()) ^ options.clock.wall().0.cast_unsigned());
            tenant = format!("tsb{:08x}", draws.next() >> 32);
            let found = Listening::of_local(address).map_or_else(Vec::new, |place| listeners(&[place]));
            participants.extend(found.into_iter().map(|pid| Participant {
                role: Role::Endpoint,
                pid,
                life: None,
            }));
            address.clone()
        } else {
            let store = place
                .as_ref()
                .map_or_else(String::new, |place| place.spec().to_string());
            let started = IngestProcess::start(backend, &store, options)?;
            participants.push(started.participant(options.clock));
            let address = started.address.clone();
            process = Some(started);
            address
        };
        let databases = backend.database().map_or_else(Vec::new, |place| listeners(&[place]));
        participants.extend(databases.into_iter().map(|pid| Participant {
            role: Role::Database,
            pid,
            life: None,
        }));
        let mut client = ClientConnection::new(&address, Requests::new(&tenant, Keeping::Closed));
        let status = client.status();
        let status = status.map_err(|why| Error::unreachable(format!("cannot ask {backend}")).because_of(why))?;
        Ok(Self {
            tested: tested(backend, options.answers, &status),
            rules: backend.rules(options.answers, &status),
            address,
            tenant,
            participants,
            process,
            place,
        })
    }

    /// A client of it.
    pub(super) fn client(&self, keeping: Keeping) -> ClientConnection {
        ClientConnection::new(&self.address, Requests::new(&self.tenant, keeping))
    }

    /// Ends it and removes what was stored.
    ///
    /// # Errors
    /// If it does not end in order, or its place cannot be removed.
    pub(super) fn end(self, clock: &dyn Clock) -> Result<EndedEndpoint, Error> {
        let Some(process) = self.process else {
            return Ok(EndedEndpoint {
                durability: self.tested.durability,
                ..EndedEndpoint::default()
            });
        };
        let report = process.end(clock);
        let removed = self.place.map_or(Ok(()), RoundPlace::remove);
        let report = report?;
        removed?;
        let copies = match report.durability.copies {
            0 | 1 => String::new(),
            copies => format!(", {copies} copies"),
        };
        let refused = report.ledger.counts.count(Counter::Malformed) + report.ledger.counts.count(Counter::Rejected);
        Ok(EndedEndpoint {
            durability: format!("{}{copies}", report.durability.acknowledged),
            accepted: report.ledger.counts.get(Counter::Accepted),
            refused,
        })
    }
}

fn tested(backend: &MohawkBackend, answers: Answers, status: &Value) -> TestedBackend {
    // The durability of our endpoint is in its report, when it ends.
    let (status, durability) = match backend {
        MohawkBackend::Started(_) => (described(status), durability_of(status)),
        // Its status names a version of Mohawk, whatever it answers.
        _ if backend.behaviour(answers) == Behaviour::Corrected => ("our endpoint, as Hawkular".to_owned(), ""),
        _ => (format!("our endpoint, as {}", described(status)), ""),
    };
    TestedBackend {
        name: backend.to_string(),
        status,
        durability: durability.to_owned(),
    }
}

/// `tsb ingest` with one listener.
#[derive(Debug)]
struct IngestProcess {
    child: Child,
    address: String,
    /// The whole of its stdout, once it has ended.
    printed: Option<JoinHandle<String>>,
}

impl IngestProcess {
    fn start(backend: &MohawkBackend, store: &str, options: &EndpointOptions<'_>) -> Result<Self, Error> {
        let listen = format!(
            "hawkular+http://127.0.0.1:0?behaviour={}",
            backend.behaviour(options.answers).name()
        );
        let failed =
            |why: String| Error::unreachable(format!("cannot start an endpoint over {backend}")).because_of(why);
        let mut child = Command::new(options.program)
            .args(["ingest", "--quiet", "--format", "json", "--duration", LIFE])
            .args(["--listen", &listen, "--store", store])
            // A signal of the terminal is for the experiment, which ends its endpoint in order.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| failed(format!("{}: {error}", options.program.display())))?;
        let (heard, first) = sync_channel(1);
        if let Some(stderr) = child.stderr.take() {
            std::thread::spawn(move || {
                // Nobody listens after the start.
                let _ = heard.send(listening_at(stderr));
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

    fn participant(&self, clock: &dyn Clock) -> Participant {
        let pid = self.child.id();
        Participant {
            role: Role::Endpoint,
            pid,
            life: Process::watch(pid).map(|process| (process, clock.now())),
        }
    }

    /// Ends it in order, and reads its report.
    fn end(mut self, clock: &dyn Clock) -> Result<IngestReport, Error> {
        let failed = |why: String| Error::unreachable("cannot end the endpoint in order").because_of(why);
        kill_process(Pid::from_child(&self.child), Signal::INT).map_err(|error| failed(error.to_string()))?;
        let until = clock.now() + PATIENCE.as_nanos() as u64;
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status,
                Ok(None) if clock.now() < until => clock.wait_until(clock.now() + LOOK_NS),
                Ok(None) => return Err(failed(format!("it still runs after {} s", PATIENCE.as_secs()))),
                Err(error) => return Err(failed(error.to_string())),
            }
        };
        let text = self.printed.take().and_then(|printed| printed.join().ok());
        let text = text.unwrap_or_default();
        let report = serde_json::from_str(&text);
        match report {
            Ok(report) if status.success() => Ok(report),
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

/// Reads what the endpoint says on stderr until it listens: its address, or all that it said. Goes
/// on reading, so that it never waits for us.
fn listening_at(stderr: impl Read + Send + 'static) -> Result<String, String> {
    let mut lines = BufReader::new(stderr).lines();
    let mut said: Vec<String> = Vec::new();
    for line in lines.by_ref().map_while(Result::ok) {
        let address = line
            .strip_prefix("listening on hawkular+http://")
            .and_then(|rest| rest.split(' ').next());
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
        let said = "warning: x\nlistening on hawkular+http://127.0.0.1:4321 into ring:, receive buffer 1 MiB\nmore\n";
        assert_eq!(listening_at(said.as_bytes()).unwrap(), "127.0.0.1:4321");
        let refusal = listening_at("error: cannot open sqlite:x\n  hint: y\n".as_bytes()).unwrap_err();
        assert!(
            refusal.contains("cannot open sqlite:x") && refusal.contains("hint: y"),
            "{refusal}"
        );
    }

    #[test]
    fn a_program_that_is_none_is_said() {
        let clock = tsb_core::time::MonotonicClock::new();
        let options = EndpointOptions {
            program: Path::new("/nonexistent/tsb"),
            folder: Path::new("/nonexistent"),
            place: 1,
            answers: Answers::AsTheyWere,
            clock: &clock,
        };
        let error = OpenEndpoint::open(&MohawkBackend::Ring, &options).unwrap_err();
        assert!(format!("{error:?}").contains("/nonexistent/tsb"), "{error:?}");
    }
}
