//! Our endpoint in a process of its own, `tsb ingest --listen hawkular+http`, so that its CPU time
//! and memory are apart from the client's; or another's server, which is used as it is.

use std::path::Path;

use serde_json::Value;
use tsb_core::ledger::Counter;
use tsb_core::report::experiment::mohawk::TestedBackend;
use tsb_core::resource::{Listening, listeners};
use tsb_core::time::Clock;
use tsb_core::wire::http::hawkular::Behaviour;

use super::backend::{AnswerRules, Answers, MohawkBackend, described, durability_of};
use super::connection::ClientConnection;
use super::processes::{Participant, Role};
use super::requests::{Keeping, Requests};
use crate::draws::Draws;
use crate::error::Error;
use crate::experiment::{IngestOptions, IngestProcess};
use crate::place::RoundPlace;

/// The tenant of the original client.
const TENANT: &str = "python_test";

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
            let listen = format!(
                "hawkular+http://127.0.0.1:0?behaviour={}",
                backend.behaviour(options.answers).name()
            );
            let started = IngestProcess::start(&IngestOptions {
                program: options.program,
                listen: &listen,
                store: &store,
                about: &backend.to_string(),
            })?;
            participants.push(Participant::started(Role::Endpoint, started.pid(), options.clock));
            let address = started.address().to_owned();
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
        let report = report?.report;
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

#[cfg(test)]
mod tests {
    use super::*;

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
