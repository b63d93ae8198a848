//! The report: the serialized model that `--format json` prints.
//!
//! The names here are a promise to other programs (docs/formats/report.md); a count
//! that cannot exist in a run is absent, not 0. Units are the last word of a name.
//! What the figures mean is in METHODOLOGY.md. It is *not* how a report looks: that is the
//! renderer's.

mod damage;
mod exceptions;
mod recording;
mod size;
mod verification;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::durability::Durability;
use crate::latency::{Cells, Curve, Summary};
use crate::ledger::{Finding, Ledger};
use crate::resource::{Machine, Noise, Usage};
use crate::staleness::StalenessSummary;
use crate::verdict::Verdict;

pub use damage::{Damage, DamageKind};
pub use exceptions::{ExceptedTicks, Exceptions, REJECTED_MAX, RejectedStretch};
pub use recording::RecordingReport;
pub use size::{Cost, CpuBelow, Projection, Size};
pub use verification::{JournalReport, LevelReport, Verification, VerifiedStore};

/// The version of this model. It grows when a name is taken away or changes its meaning;
/// new names alone do not change it.
pub const SCHEMA_VERSION: u32 = 2;

/// One run, or several of the same work against several stores.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// [`SCHEMA_VERSION`] of the program that wrote it.
    pub schema_version: u32,
    /// The version of that program.
    pub tsb_version: String,
    /// The runs, in the order in which they ran.
    pub runs: Vec<Run>,
}

/// One run against one store.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// What the user calls it, where it stands beside others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When sending began, nanoseconds since the Unix epoch.
    pub started_at_ns: i64,
    /// How long sending took, from the first due time to the last answer, in nanoseconds.
    pub duration_ns: u64,
    /// The run was cut short by the user; everything else is about what was done by then.
    pub interrupted: bool,
    /// Everything needed to run it again; absent where strangers sent the samples.
    #[serde(default)]
    pub plan: Value,
    /// The seed of the workload.
    #[serde(default)]
    pub seed: u64,
    /// Hash of the samples that the workload describes: same fingerprint, same samples.
    /// Empty where strangers sent them.
    #[serde(default)]
    pub fingerprint: String,
    /// The machine it ran on.
    pub machine: Machine,
    /// What was driven.
    pub target: Target,
    /// Whether the figures mean anything, and why.
    pub verdict: Verdict,
    /// How much the machine was disturbed while it ran, where that was watched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    /// What an acknowledgement was worth.
    pub durability: DurabilityReport,
    /// Asked and held.
    pub rate: Rate,
    /// Where every sample went.
    pub ledger: LedgerReport,
    /// Response, delivery, service and lag.
    pub latency: Latency,
    /// How old the newest visible sample was, over all series at all moments sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staleness: Option<StalenessSummary>,
    /// CPU and bytes a sample.
    pub cost: Cost,
    /// What the store occupied at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// How compressible the offered values were.
    pub offered: Offered,
    /// The run, slice by slice.
    pub intervals: Vec<Interval>,
    /// Processes watched: tsb itself first.
    pub resources: Vec<Usage>,
    /// What the listener saw, where the run had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listener: Option<ListenerReport>,
    /// Which operations were issued: with the plan, exactly what was sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issued: Vec<Issued>,
    /// What of it does not have to be in the store; absent in reports of earlier programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exceptions: Option<Exceptions>,
    /// What the store found damaged in its files, from its opening to the end of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<Damage>,
    /// Sentences that a reader must know before using a figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// What was driven, and over what.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Target {
    /// The store, as it names itself.
    pub store: String,
    /// `inproc`, `tcp`, `udp`, `unix`, `unixgram`.
    pub transport: String,
    /// The wire protocol, where there was a wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// How exactly the store returns what it was given.
    pub exactness: String,
}

/// The level of every acknowledgement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DurabilityReport {
    /// The level that every accepted sample had when the run ended.
    pub level: Durability,
    /// The level that the store's acks promised at once.
    #[serde(default)]
    pub acknowledged: Durability,
    /// On how many servers.
    pub copies: u32,
    /// From due to that level: the loss window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Summary>,
    /// Writes whose wait could not be timed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untimed: u64,
}

const fn unknown() -> f64 {
    f64::NAN
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
const fn is_unknown(figure: &f64) -> bool {
    figure.is_nan()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Samples per second.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Rate {
    /// What the schedule asked: what was due, over the time in which it was due; absent in a
    /// closed loop, which asks nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_per_second: Option<f64>,
    /// What was accepted, over the time from the first due to the last acceptance.
    pub held_per_second: f64,
    /// The same until all of it had the report's durability, where that took a flush at the
    /// end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable_per_second: Option<f64>,
    /// The interval in which the most was asked, where a schedule asks different rates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<Peak>,
    /// What the generator reached against a store that forgets, over the same path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ceiling_per_second: Option<f64>,
    /// A closed loop waits for the store: its latencies leave out how long others would wait.
    pub closed_loop: bool,
    /// Seconds of fleet time that pass in one second.
    pub speed: f64,
}

impl Rate {
    /// Of those who ask nothing, and only take what comes.
    pub const fn held(held_per_second: f64) -> Self {
        Self {
            asked_per_second: None,
            held_per_second,
            durable_per_second: None,
            peak: None,
            ceiling_per_second: None,
            closed_loop: false,
            speed: 1.0,
        }
    }
}

/// The interval of a run in which the most was asked.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// Where it begins, in nanoseconds since the run's start.
    pub from_ns: u64,
    /// Where it ends.
    pub end_ns: u64,
    /// Samples that fell due in it, per second.
    pub asked_per_second: f64,
    /// Samples that were accepted in it, per second.
    pub accepted_per_second: f64,
    /// Of the samples due until it ended, the share that was accepted by the end of the next
    /// interval. in [0, 1]
    pub kept_share: f64,
}

/// The ledger with its balance and the losses by name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct LedgerReport {
    /// The counts, and `balanced`: whether every equation between them holds.
    #[serde(flatten)]
    pub counts: Ledger,
    /// The equations that do not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violated: Vec<String>,
    /// Samples rejected, by reason.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub rejected_by_reason: std::collections::BTreeMap<String, u64>,
    /// What the store may have lost at the most, where more than `lost`: of the samples that
    /// never reached it nobody can say which they are, and some may count as superseded or
    /// expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_at_most: Option<u64>,
    /// Losses and alterations by name; the first ones where there are very many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<Finding>,
}

/// The histograms, and what they measure.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Latency {
    /// What ends an operation here.
    pub done: String,
    /// Due to done.
    #[serde(default)]
    pub response: Summary,
    /// Start until the receiver had read it: only on a wire without acknowledgements, where
    /// service begins there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Summary>,
    /// Start to done, or from the end of the delivery where there is one. (Schema 1 knew no
    /// delivery: there it is part of the service.)
    #[serde(default)]
    pub service: Summary,
    /// Due to start.
    #[serde(default)]
    pub lag: Summary,
    /// Operations whose end nobody could time.
    pub untimed: u64,
    /// Operations that were due and have no response time, because they were never sent or
    /// never answered: they are infinitely late, and in none of the quantiles.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u64,
    /// The distributions in full.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curves: Option<Curves>,
}

/// Latency by quantile: pairs of a quantile and a value in nanoseconds, which end where too
/// few operations lie beyond.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Curves {
    /// Due to done.
    pub response: Curve,
    /// Start until read, where [`Latency::delivery`] is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Curve>,
    /// Start to done, or read to done.
    pub service: Curve,
    /// Due to start.
    pub lag: Curve,
}

/// What the workload offered.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Offered {
    /// Series in the catalog.
    pub series: u64,
    /// Share of values equal to the one before in their series. in [0, 1]; NaN, and absent in
    /// JSON, where strangers sent them.
    #[serde(default = "unknown", skip_serializing_if = "is_unknown")]
    pub repeat_rate: f64,
    /// Estimated information in a value, in bits; the estimator is in docs/workloads.md.
    #[serde(default = "unknown", skip_serializing_if = "is_unknown")]
    pub entropy_bits: f64,
    /// Share of the values of whose series only an upper bound is known: above 0,
    /// `entropy_bits` is an upper bound, else an estimate. in [0, 1]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bounded_share: Option<f64>,
    /// Series and values that the estimate rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_from: Option<EstimatedFrom>,
    /// Calculated information in a value, in bits, where the fleet's models allow it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calculated_bits: Option<f64>,
    /// The recorded window that was repeated, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<String>,
    /// What was replayed of a recording.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<RecordingReport>,
}

/// What an estimate rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EstimatedFrom {
    /// Series, drawn at random where these are not all.
    pub series: u64,
    /// Values of these.
    pub values: u64,
}

impl Offered {
    /// Of what strangers send nothing is known but how many series it has.
    pub const fn of_strangers(series: u64) -> Self {
        Self {
            series,
            repeat_rate: unknown(),
            entropy_bits: unknown(),
            bounded_share: None,
            estimated_from: None,
            calculated_bits: None,
            repeats: None,
            recording: None,
        }
    }

    /// What `entropy_bits` is, in words.
    pub fn kind(&self) -> &'static str {
        match self.bounded_share {
            Some(share) if share > 0.0 => "upper bound",
            _ => "estimate",
        }
    }
}

/// One slice of the run. Slices follow each other without a gap: samples, operations, CPU and
/// bytes of all slices add up to those of the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Interval {
    /// Where it ends, in nanoseconds since the run's start.
    pub end_ns: u64,
    /// Samples that fell due in it; absent in a closed loop, and in reports of schema 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<u64>,
    /// Samples sent in it.
    pub sent: u64,
    /// Samples accepted in it.
    pub accepted: u64,
    /// Median response time, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_p50_ns: Option<u64>,
    /// 0.99 of the slice's operations answered within this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_p99_ns: Option<u64>,
    /// The slowest of the slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_max_ns: Option<u64>,
    /// The largest lag of the slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_max_ns: Option<u64>,
    /// The stalest series when the slice ended, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staleness_max_ms: Option<f64>,
    /// CPU time of the process in the slice, in nanoseconds.
    pub cpu_ns: u64,
    /// Resident memory of the process when it ended, in bytes.
    pub rss_bytes: u64,
    /// Bytes that the process caused to be read from a medium in the slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes that the process caused to be written to a medium in the slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Response times of the slice by coarse cell: a column of the heat map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_cells: Option<Cells>,
    /// The other processes watched, in the order of `resources` behind the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<WatchedSlice>,
}

/// What another process did in a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedSlice {
    /// Its id.
    pub pid: u32,
    /// CPU time in the slice, in nanoseconds.
    pub cpu_ns: u64,
    /// Resident memory when it ended, in bytes.
    pub rss_bytes: u64,
    /// Bytes that it caused to be read from a medium in the slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes that it caused to be written to a medium in the slice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
}

/// Ticks of some groups that were issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Issued {
    /// The first of the groups.
    pub first_group: u32,
    /// How many groups in a row.
    pub groups: u32,
    /// Their first tick.
    pub first_tick: u64,
    /// The tick behind their last.
    pub end_tick: u64,
}

/// What the receiving side saw.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ListenerReport {
    /// Connections accepted.
    pub connections: u64,
    /// Connections refused at the limit.
    pub refused_connections: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Malformed records by kind.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub malformed_by_kind: std::collections::BTreeMap<String, u64>,
    /// What the kernel granted as receive buffer, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u64>,
    /// What is only known of datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramReport>,
}

/// Datagrams from both sides, and what each way of counting says of the losses.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct DatagramReport {
    /// Datagrams that the emitter's kernel took.
    pub sent: u64,
    /// Datagrams that the listener received.
    pub received: u64,
    /// Datagrams that the kernel dropped because a receive buffer was full, by its own
    /// count, in which those that would have been handed over in one (GRO) are one; absent
    /// where it drops none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_drops: Option<u64>,
    /// Datagrams whose waymark was passed without them.
    pub lost_by_waymarks: u64,
    /// Samples that are missing by the numbers that the protocol gives them, where it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_samples_by_number: Option<u64>,
    /// Operations that did not arrive whole, and have no response time.
    pub lost_operations: u64,
    /// Sockets that were heard of.
    pub sockets: u64,
    /// Datagrams that one system call may send; 1 without segmentation.
    pub segments_per_call: u64,
    /// What the kernel granted each socket to send with, in bytes.
    pub send_buffer_bytes: u64,
}
