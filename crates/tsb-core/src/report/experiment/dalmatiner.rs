//! What only the experiment of DalmatinerDB's production benchmark measures.

use serde::{Deserialize, Serialize};

use super::Figure;
use crate::latency::Quantiles;
use crate::verdict::Status;

/// Everything that `tsb reproduce dalmatiner` reports.
pub type Reproduction = super::Reproduction<DalmatinerPlan, DalmatinerDetails>;

/// What the experiment of DalmatinerDB can be asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DalmatinerPlan {
    /// Seed of the feed and of the order of the rounds.
    pub seed: u64,
    /// The targets, by name.
    pub targets: Vec<String>,
    /// Numbers of series, each of which sends one sample per second.
    pub series: Vec<u64>,
    /// Rounds, in each of which every target has a turn.
    pub rounds: u32,
    /// Length of each run of the feed, in seconds.
    pub seconds: u64,
    /// Length of the closed loop that looks for the highest rate, in seconds; 0 for none.
    pub peak_seconds: u64,
    /// Series of the day of history that the queries ask for, in stores of ours.
    pub history_series: u64,
    /// The same in a server that somebody started.
    pub history_series_of_servers: u64,
    /// Repetitions of each query.
    pub repeats: u32,
    /// Series of the runs that are killed.
    pub killed_series: u64,
    /// Samples of each of them.
    pub killed_seconds: u64,
    /// Share of the samples that the feed skips, in [0, 1].
    pub skipped: f64,
    /// Share that it sends twice.
    pub repeated: f64,
    /// Share that it sends one second late.
    pub late: f64,
    /// Whether Graphite gets one sample in five, as the original feed sent it.
    pub as_it_was: bool,
    /// A turn that would probably end later than this many seconds after the start is left out;
    /// absent where there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget_seconds: Option<u64>,
}

/// The measurements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DalmatinerDetails {
    /// The runs of the feed, in the order in which they ran.
    pub feeds: Vec<TargetRun>,
    /// The queries.
    pub queries: Vec<QueryRun>,
    /// The sizes of the history.
    pub sizes: Vec<SizeRun>,
    /// The runs that were killed.
    pub kills: Vec<KillRun>,
    /// The rounds of each target and number of series together.
    pub summaries: Vec<TargetSummary>,
    /// What did not take part, and why, as sentences.
    pub absent: Vec<String>,
    /// Runs that could not be made, as sentences.
    pub failures: Vec<String>,
    /// Whether the user ended it early.
    pub interrupted: bool,
}

impl DalmatinerDetails {
    /// Whether every answer was what it had to be, and no run lost or altered a sample that its
    /// target had promised to keep.
    pub fn is_right(&self) -> bool {
        self.queries.iter().all(|run| run.wrong.is_empty())
            && self.feeds.iter().all(|run| run.status != Status::Invalid)
    }

    /// What was wrong, as sentences.
    pub fn wrong(&self) -> impl Iterator<Item = String> {
        let feeds = self
            .feeds
            .iter()
            .filter(|run| run.status == Status::Invalid)
            .map(|run| {
                let why = run.reasons.join("; ");
                format!(
                    "{}, {} series, round {}: {why}",
                    run.target.name,
                    run.series,
                    run.round + 1
                )
            });
        let queries = self.queries.iter().flat_map(|run| {
            let of = format!(
                "{}, {}, {}, round {}",
                run.target.name,
                run.query,
                run.state,
                run.round + 1
            );
            run.wrong.iter().map(move |why| format!("{of}: {why}"))
        });
        feeds.chain(queries)
    }
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestedTarget {
    /// Its name in the plan.
    pub name: String,
    /// How it is reached: `tcp` for a store of ours in a process of its own behind DalmatinerDB's
    /// protocol, `inproc` for one in this process, `server` for one that somebody started.
    pub way: String,
    /// The durability of an acknowledgement.
    pub acknowledged: String,
    /// How exactly values come back.
    pub exactness: String,
}

/// A run of the feed: each series sends one sample per second, and everything is read back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TargetRun {
    /// The target.
    pub target: TestedTarget,
    /// The round, from 0.
    pub round: u32,
    /// Series.
    pub series: u64,
    /// `feed` for one sample per second and series, `peak` for a closed loop as fast as the target
    /// takes it.
    pub load: String,
    /// The verdict.
    pub status: Status,
    /// Why, unless it is valid.
    pub reasons: Vec<String>,
    /// Samples that were due.
    pub due: u64,
    /// Samples that were sent.
    pub sent: u64,
    /// Samples that were read back as they were sent.
    pub verified: u64,
    /// Samples that are missing or unknown: not there when everything was read back.
    pub lost: u64,
    /// Samples with another value.
    pub altered: u64,
    /// Samples that were sent per second.
    pub held_per_second: f64,
    /// CPU time of the target per million samples, in seconds, until everything was sent: of its
    /// processes, or in process of the calls of the store and of its threads; absent where no
    /// process of it was found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds_per_million: Option<f64>,
    /// CPU time after that until what waited was in its files, in seconds: a cache writes each
    /// series once, however little waits of it. Absent for a server, which is not ours to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_write_cpu_seconds: Option<f64>,
    /// CPU time of this process per million samples, in seconds: generating, encoding, sending,
    /// and in process the store too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_cpu_seconds_per_million: Option<f64>,
    /// The most resident memory of the target, in bytes; absent in process, where it cannot be told
    /// from the generator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_bytes: Option<u64>,
    /// Bytes of its files that the page cache holds at the end; absent without files, or where the
    /// kernel does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache_bytes: Option<u64>,
    /// From due until done.
    pub response: Quantiles,
}

/// A query, and how long its answers took. Every answer is compared with what was written.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QueryRun {
    /// The target.
    pub target: TestedTarget,
    /// The round, from 0.
    pub round: u32,
    /// `q1`: the maximum of each minute of the last hour, of one series. `q2`: the maximum of each
    /// hour of the last day, of seven.
    pub query: String,
    /// `first`: the first of its series after the history was written. `repeated`: the same again.
    /// `beside`: while the feed is written. `cold`: the first after the target was opened again and
    /// its files left the page cache.
    pub state: String,
    /// Samples that an answer is computed from.
    pub samples: u64,
    /// Rows of an answer.
    pub rows: u64,
    /// Whether the target computes the maxima; if not, it sends the samples and this process
    /// computes them within the time of the query.
    pub by_target: bool,
    /// Asked to answered.
    pub times: Quantiles,
    /// The mean of these, in milliseconds.
    pub mean_ms: f64,
    /// Answers that were wrong, as sentences.
    pub wrong: Vec<String>,
}

/// What a day of history occupies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SizeRun {
    /// The target.
    pub target: TestedTarget,
    /// The round, from 0.
    pub round: u32,
    /// Samples that were written, each of which a query can return.
    pub samples: u64,
    /// Bits of a point by the format, whatever it holds; absent where the format has no such size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nominal_bits: Option<f64>,
    /// Lengths of its files without holes, per sample, in bits.
    pub apparent_bits: f64,
    /// Blocks of the file system, per sample, in bits.
    pub disk_bits: f64,
    /// Its files by Snappy in records of 128 KiB, the record size of ZFS, per sample, in bits.
    pub compressed_bits: f64,
}

/// A target that was killed with points in its memory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KillRun {
    /// The target.
    pub target: TestedTarget,
    /// The round, from 0.
    pub round: u32,
    /// Samples that it had taken when it was killed.
    pub taken: u64,
    /// Of these, those that are not there after it was opened again.
    pub lost: u64,
    /// The longest time that a series lost at its end, in seconds of the feed.
    pub longest_loss_seconds: u64,
}

/// The rounds of one target with one number of series.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TargetSummary {
    /// The target.
    pub target: TestedTarget,
    /// Series.
    pub series: u64,
    /// Rounds of the feed.
    pub rounds: usize,
    /// Rounds of the feed that were valid.
    pub rounds_valid: usize,
    /// CPU time of the target per million samples until everything was sent, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds_per_million: Option<Figure>,
    /// CPU time after that until what waited was in its files, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_write_cpu_seconds: Option<Figure>,
    /// The most resident memory of the target, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_bytes: Option<Figure>,
    /// Bytes of its files in the page cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache_bytes: Option<Figure>,
    /// Samples verified, of all rounds.
    pub verified: u64,
    /// Samples sent, of all rounds.
    pub sent: u64,
    /// The highest rate of a closed loop, in samples per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_per_second: Option<Figure>,
}

impl TargetSummary {
    /// CPU cores that the feed keeps busy, without the last write.
    pub fn cores(&self) -> Option<Figure> {
        let by = self.series as f64 / 1e6;
        self.cpu_seconds_per_million.map(|figure| figure.scaled(by))
    }
}
