//! What only the experiment of HM9000 measures.

use serde::{Deserialize, Serialize};

use super::Figure;
use crate::latency::Quantiles;
use crate::resource::Usage;

/// Everything that `tsb reproduce hm9000` reports.
pub type Reproduction = super::Reproduction<Hm9000Plan, Hm9000Details>;

/// What the experiment of HM9000 can be asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hm9000Plan {
    /// Seed of the simulated cluster and of the order of the rounds.
    pub seed: u64,
    /// The stores of keys.
    pub stores: Vec<String>,
    /// Numbers of apps, in ascending order.
    pub apps: Vec<usize>,
    /// Largest number of apps that is tried where a store keeps up with all of `apps`.
    pub apps_max: usize,
    /// Rounds of the corrected experiment, per store and number of apps.
    pub rounds: u32,
    /// Length of each corrected run, in seconds.
    pub seconds: u64,
    /// Length of each run as it was, in seconds.
    pub seconds_as_it_was: u64,
    /// The defects of the original that are left out of the runs as it was.
    pub without: Vec<String>,
    /// The command that disturbs a store, if one was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<OutagePlan>,
}

/// Outages that are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutagePlan {
    /// The command line that makes one, for the shell.
    pub command: String,
    /// Number of outages of each store.
    pub count: u32,
}

/// The measurements.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hm9000Details {
    /// The experiment as it was, on real stores and in virtual time.
    pub as_it_was: Vec<AsItWas>,
    /// Each run of the corrected experiment, in the order in which they ran.
    pub runs: Vec<CorrectedRun>,
    /// The runs of each store and number of apps together.
    pub curve: Vec<CurvePoint>,
    /// Where each store breaks.
    pub breaks: Vec<Break>,
    /// Stores that were disturbed while they were written, if that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outage_runs: Vec<OutageRun>,
    /// Runs that could not be made, as sentences.
    pub failures: Vec<String>,
    /// Whether the user ended it early.
    pub interrupted: bool,
}

/// One run as it was: a timer that asks for two keys, beside what was really there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AsItWas {
    /// The store; in virtual time a model that takes a fixed time per key.
    pub store: String,
    /// Whether time was virtual; then every run gives the same bits.
    pub is_virtual: bool,
    /// Keys per second that the model of virtual time takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys_per_second: Option<f64>,
    /// Number of apps at the start.
    pub apps: usize,
    /// The time of the first poll that said fresh, in seconds; absent where none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh_at_seconds: Option<f64>,
    /// Number of polls that said fresh.
    pub polls_fresh: usize,
    /// Those of them for which the store was read.
    pub polls_checked: usize,
    /// Those of these at which instances were missing or wrong.
    pub polls_falsely_fresh: usize,
    /// Largest number of instances that were missing or wrong at such a poll.
    pub missing_max: u64,
    /// Failed syncs.
    pub syncs_failed: u64,
    /// Syncs that succeeded and took a second or longer, so that they did not count.
    pub syncs_slow: u64,
    /// The polls, one per second.
    pub polls: Vec<Poll>,
    /// What the original program would have printed.
    pub lines: Vec<String>,
}

/// What the original asked once per second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Poll {
    /// Time since the ticker started, in seconds.
    pub at_seconds: f64,
    /// Whether the document's criterion calls the store fresh.
    pub is_fresh: bool,
    /// Instances that had been reported at least two seconds before, if the store was read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
    /// How many of them were missing or had a wrong value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
}

/// A run of the corrected experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CorrectedRun {
    /// The store.
    pub store: String,
    /// The level that every acknowledged key has.
    pub durability: String,
    /// Number of machines on which it has that level.
    pub copies: u32,
    /// Number of apps, fixed.
    pub apps: usize,
    /// The round, from 0.
    pub round: u32,
    /// Length of the schedule, in seconds.
    pub seconds: f64,
    /// Keys that the schedule made due.
    pub keys_due: u64,
    /// Keys that were acknowledged.
    pub keys_acknowledged: u64,
    /// Keys whose put failed or was refused.
    pub keys_failed: u64,
    /// Acknowledged keys per second, from the first due put to the last answer.
    pub keys_per_second: f64,
    /// Keys acknowledged more than a heartbeat interval after they were due, when their next
    /// heartbeat was due already.
    pub keys_late: u64,
    /// Time from due to acknowledged of each put (one DEA group's heartbeats).
    pub response: Quantiles,
    /// Median time from due to acknowledged of the puts that were due in the last ten seconds, in
    /// seconds.
    pub behind_seconds: f64,
    /// The begin of the first complete scan that found every instance, in seconds; absent where
    /// none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh_at_seconds: Option<f64>,
    /// Complete scans, each held against the simulator.
    pub scans: Vec<Scan>,
    /// Acknowledged instances that a later scan did not find, or found with an older value.
    pub lost: u64,
    /// Whether every instance was fresh from the first fresh scan to the end, and the store kept
    /// up.
    pub is_kept: bool,
    /// Why not.
    pub broke: Vec<String>,
    /// What this process used, with the store where it is embedded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own: Option<Usage>,
    /// What the processes of the server used, where they run on this machine.
    pub servers: Vec<Usage>,
}

/// A complete scan of a store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scan {
    /// When it began, in seconds from the start of the schedule.
    pub at_seconds: f64,
    /// How long it took, in seconds.
    pub took_seconds: f64,
    /// Instances whose first heartbeat was due.
    pub expected: u64,
    /// Those that were not there.
    pub missing: u64,
    /// Those whose value is not what any heartbeat of theirs says.
    pub wrong: u64,
    /// Those whose heartbeat is older than its time to live.
    pub stale: u64,
    /// Acknowledged heartbeats that it did not find, or found replaced by an older one.
    pub lost: u64,
    /// Keys that no heartbeat put there.
    pub foreign: u64,
    /// Age of the oldest heartbeat that it found, in seconds.
    pub oldest_seconds: f64,
}

impl Scan {
    /// Whether every expected instance was there, with the right value, and not too old.
    pub const fn is_fresh(&self) -> bool {
        self.not_fresh() + self.lost == 0
    }

    /// Instances that were missing, wrong or too old.
    pub const fn not_fresh(&self) -> u64 {
        self.missing + self.wrong + self.stale
    }
}

/// A run of the corrected experiment with a store that is disturbed again and again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutageRun {
    /// The run; it ends with the last outage, and its `round` is 0.
    pub run: CorrectedRun,
    /// The outages, in order.
    pub outages: Vec<Outage>,
    /// Why the outages ended early, if the last one could not be made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// One outage: from its begin to that of the next one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outage {
    /// When the disturbance began, in seconds from the start of the schedule.
    pub at_seconds: f64,
    /// How long the disturbance took, in seconds.
    pub took_seconds: f64,
    /// Keys due within it whose put failed, was refused or was never sent.
    pub keys_failed: u64,
    /// The longest time without an acknowledgement, in seconds. Heartbeats are due at whole
    /// seconds, so it is about one second where nothing is disturbed.
    pub silence_seconds: f64,
    /// From its begin until the newest heartbeat of every app that had been due for a second was
    /// acknowledged, in seconds: 0 where none was overdue, absent where one still was when the
    /// next outage began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recovered_after_seconds: Option<f64>,
    /// Complete scans that began within it.
    pub scans: usize,
    /// Instances that were missing, wrong or older than their time to live, in the worst of them.
    pub not_fresh: u64,
    /// Acknowledged instances that the worst of them did not find, or found with an older value.
    pub lost: u64,
}

/// The runs of one store and number of apps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The store.
    pub store: String,
    /// Number of apps.
    pub apps: usize,
    /// When the document's criterion first called it fresh, in seconds; absent where it never
    /// did, or where the run as it was is not part of this experiment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_fresh_at: Option<f64>,
    /// When every instance was there, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fresh_at: Option<Figure>,
    /// Acknowledged keys per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys_per_second: Option<Figure>,
    /// Response time, p90, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_p90_ms: Option<Figure>,
    /// Response time, p99, in milliseconds; absent where too few puts were made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_p99_ms: Option<Figure>,
    /// CPU seconds per million keys, of this process and of the servers on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_seconds_per_million: Option<Figure>,
    /// Rounds in which the store kept all instances fresh.
    pub rounds_kept: usize,
    /// Rounds that were run.
    pub rounds: usize,
}

/// Where a store breaks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Break {
    /// The store.
    pub store: String,
    /// Largest number of apps that it kept fresh in every round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<usize>,
    /// Smallest number above it that it did not keep fresh in every round; absent where it kept
    /// all that were tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broke: Option<usize>,
    /// What broke first.
    pub why: String,
}
