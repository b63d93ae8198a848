//! What only the experiment of Mohawk's backends measures.

use serde::{Deserialize, Serialize};

use super::Figure;
use crate::latency::Quantiles;

/// Everything that `tsb reproduce mohawk` reports.
pub type Reproduction = super::Reproduction<MohawkPlan, MohawkDetails>;

/// What the experiment of Mohawk can be asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MohawkPlan {
    /// Seed of the values and of the order of the rounds.
    pub seed: u64,
    /// The backends, by name.
    pub backends: Vec<String>,
    /// Rounds, in each of which every backend has a turn.
    pub rounds: u32,
    /// Samples that each run as it was writes, and windows that it reads; the original had 999.
    pub count: u64,
    /// Writes, and reads, of each corrected run in a closed loop.
    pub requests: u64,
    /// Gauges of a write in the runs with batches, with one sample each.
    pub batch: u32,
    /// Connections of the runs with several.
    pub connections: u32,
    /// Requests per second of the open loop, half of them writes.
    pub rate: u64,
    /// Length of the open loop, in seconds.
    pub seconds: u64,
    /// Samples of the feed with one sample per second.
    pub feed: u64,
    /// A turn that would probably end later than this many seconds after the start is left out;
    /// absent where there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_seconds: Option<u64>,
}

/// The measurements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MohawkDetails {
    /// The experiment as it was, in the order in which it ran.
    pub as_it_was: Vec<ClassicRun>,
    /// The corrected runs, in the order in which they ran.
    pub corrected: Vec<LoadRun>,
    /// What each backend keeps of one sample per second.
    pub feeds: Vec<FeedRun>,
    /// The rounds of each backend as it was together.
    pub classic: Vec<ClassicSummary>,
    /// The rounds of each backend and way of the corrected runs together.
    pub ways: Vec<LoadSummary>,
    /// What did not take part, and why, as sentences.
    pub absent: Vec<String>,
    /// Runs that could not be made, as sentences.
    pub failures: Vec<String>,
    /// Whether the user ended it early.
    pub interrupted: bool,
}

impl MohawkDetails {
    /// Whether every answer was what it had to be: the rows of each run as it was, every value,
    /// and every sample that was confirmed.
    pub fn is_right(&self) -> bool {
        self.as_it_was.iter().all(|run| run.wrong.is_empty())
            && self.corrected.iter().all(|run| run.wrong.is_empty())
            && self.feeds.iter().all(|run| run.wrong.is_empty())
    }

    /// The wrong answers of the runs as they were, each behind its backend and round.
    pub fn wrong_as_it_was(&self) -> impl Iterator<Item = String> {
        let runs = self.as_it_was.iter();
        runs.flat_map(|run| wrong_answers(run.backend.name.clone(), run.round, &run.wrong))
    }

    /// The wrong answers of the corrected runs, each behind its way, backend and round.
    pub fn wrong_corrected(&self) -> impl Iterator<Item = String> {
        let of = |run: &LoadRun| format!("{}, {}", run.way, run.backend.name);
        let runs = self.corrected.iter();
        runs.flat_map(move |run| wrong_answers(of(run), run.round, &run.wrong))
    }

    /// What was wrong with the feeds of one sample per second, each behind its backend and round.
    pub fn wrong_feeds(&self) -> impl Iterator<Item = String> {
        let runs = self.feeds.iter();
        runs.flat_map(|run| wrong_answers(run.backend.name.clone(), run.round, &run.wrong))
    }

    /// The summaries of the corrected runs, the backends of a way together.
    pub fn by_way(&self) -> Vec<&LoadSummary> {
        let first_of = |way: &str| self.ways.iter().position(|summary| summary.way == way);
        let mut sorted: Vec<&LoadSummary> = self.ways.iter().collect();
        sorted.sort_by_key(|summary| first_of(&summary.way));
        sorted
    }
}

/// The sentences of one run, with what it was; the round is counted from 0.
fn wrong_answers(of: String, round: u32, wrong: &[String]) -> impl Iterator<Item = String> {
    wrong.iter().map(move |why| format!("{of}, round {}: {why}", round + 1))
}

/// A backend as it stood behind the interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestedBackend {
    /// Its name in the plan.
    pub name: String,
    /// What the server said of itself.
    pub status: String,
    /// The durability of a confirmed write, with the number of copies.
    pub durability: String,
}

/// One run as it was: a status request, one write per sample and one read per window, each on a
/// connection of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassicRun {
    /// The backend.
    pub backend: TestedBackend,
    /// The round, from 0.
    pub round: u32,
    /// Requests, with that for the status.
    pub requests: u64,
    /// Rows that the backend has to return; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_expected: Option<u64>,
    /// Rows that it returned.
    pub rows: u64,
    /// Answers of status 204, which have no rows, that it has to give; absent where it is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_expected: Option<u64>,
    /// Those that it gave.
    pub empty: u64,
    /// Samples that our endpoint accepted by its own count; absent for another's server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<u64>,
    /// From the first request to the last answer, in seconds.
    pub seconds: f64,
    /// The part of it in which was written.
    pub write_seconds: f64,
    /// From connecting to the end of the answer, of each write.
    pub write: Quantiles,
    /// The same of each read.
    pub read: Quantiles,
    /// The processes.
    pub processes: Vec<ProcessLoad>,
    /// What was not as it had to be, as sentences.
    pub wrong: Vec<String>,
}

/// What one process of a run used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessLoad {
    /// Its part: `client`, `endpoint` or `database`.
    pub role: String,
    /// Its name.
    pub name: String,
    /// CPU time during the run, user and system, in seconds, in steps of a clock tick.
    pub cpu_seconds: f64,
    /// Resident memory at the end, in bytes.
    pub rss_bytes: u64,
    /// What was seen every half second, and at the end.
    pub moments: Vec<ProcessMoment>,
}

/// A process at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessMoment {
    /// Time since the start of the run, in seconds.
    pub at_seconds: f64,
    /// CPU time since the moment before, as a percentage of one CPU.
    pub cpu_percent: f64,
    /// What `ps -o pcpu` prints, as the document did: CPU time over the whole life of the
    /// process, as a percentage; absent for a process that was not started by the experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lifetime_percent: Option<f64>,
    /// Resident memory, in bytes.
    pub rss_bytes: u64,
}

/// A corrected run: connections are kept, each read has one right answer, and everything that was
/// confirmed is read back.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadRun {
    /// The backend.
    pub backend: TestedBackend,
    /// How it was loaded: `kept`, `batches`, `concurrent` or `open`.
    pub way: String,
    /// The round, from 0.
    pub round: u32,
    /// Connections.
    pub connections: u32,
    /// Gauges, with one sample each, of a write.
    pub batch: u32,
    /// Requests per second that were due; absent in a closed loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_per_second: Option<f64>,
    /// Requests that were due.
    pub due: u64,
    /// Requests that were sent.
    pub sent: u64,
    /// Requests that failed or were refused.
    pub failed: u64,
    /// From the first request to the last answer, in seconds.
    pub seconds: f64,
    /// Requests answered per second.
    pub requests_per_second: f64,
    /// Samples confirmed per second while was written: in a closed loop of the phase of writes.
    pub samples_per_second: f64,
    /// Of each write, from when it was due, or in a closed loop was sent, until it was confirmed.
    pub write: Quantiles,
    /// The same of each read.
    pub read: Quantiles,
    /// From sent to answered, of every request of an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Quantiles>,
    /// Samples that were confirmed; in the open loop with those that were written before it, to be
    /// read.
    pub confirmed: u64,
    /// Those of them that were read back with the value that was written.
    pub verified: u64,
    /// Those that were not there.
    pub lost: u64,
    /// Those with another value.
    pub altered: u64,
    /// The processes.
    pub processes: Vec<ProcessLoad>,
    /// What was not as it had to be, as sentences.
    pub wrong: Vec<String>,
}

/// What a backend keeps of one sample per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FeedRun {
    /// The backend.
    pub backend: TestedBackend,
    /// The round, from 0.
    pub round: u32,
    /// Samples that were confirmed.
    pub confirmed: u64,
    /// Samples that a read of the whole range returned.
    pub kept: u64,
    /// Samples that it has to return; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_expected: Option<u64>,
    /// What was not as it had to be, as sentences.
    pub wrong: Vec<String>,
}

/// The rounds of one backend as it was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClassicSummary {
    /// The backend.
    pub backend: TestedBackend,
    /// From the first request to the last answer, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<Figure>,
    /// CPU time of the client, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpu: Option<Figure>,
    /// CPU time of the server that the client speaks to, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_cpu: Option<Figure>,
    /// CPU time of a database behind it, in seconds; absent where it is the same process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_cpu: Option<Figure>,
    /// The most resident memory of the server that was seen, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_rss: Option<Figure>,
    /// The same of a database behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_rss: Option<Figure>,
    /// Time of a write, in milliseconds: the phase of writes over their number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_ms: Option<Figure>,
    /// Rows returned, if all rounds agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Answers of status 204, if all rounds agree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty: Option<u64>,
    /// Rounds in which every answer was what it had to be.
    pub rounds_right: usize,
    /// Rounds that were run.
    pub rounds: usize,
}

/// The rounds of one backend and way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadSummary {
    /// The backend.
    pub backend: TestedBackend,
    /// How it was loaded.
    pub way: String,
    /// Requests answered per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_second: Option<Figure>,
    /// Samples confirmed per second while was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples_per_second: Option<Figure>,
    /// The writes of all rounds.
    pub write: Quantiles,
    /// The reads of all rounds.
    pub read: Quantiles,
    /// CPU time of the client per request, in microseconds; absent for a run with less than ten
    /// ticks of the clock by which it is counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_us: Option<Figure>,
    /// CPU time of the server per request, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint_us: Option<Figure>,
    /// CPU time of a database behind it per request, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database_us: Option<Figure>,
    /// Samples confirmed, of all rounds.
    pub confirmed: u64,
    /// Samples read back as written, of all rounds.
    pub verified: u64,
    /// Requests that were due and not answered with success, of all rounds.
    pub unanswered: u64,
    /// Rounds that were run.
    pub rounds: usize,
}
