//! The report: the serialized model that `--format json` prints. [`Report`] is that of runs; the
//! others, such as [`Verification`], [`Comparison`], [`SideComparison`], [`capacity`], [`experiment`]
//! and [`canary`], are what other commands print.
//!
//! The names are a promise to other programs (docs/formats/report.md). A count that cannot exist
//! in a run is absent, not 0; some counts are absent also when they are 0, which `skip_serializing_if`
//! on the field shows. A name contains its unit, or the docs of the field say it. METHODOLOGY.md
//! explains the figures. How a report is displayed is *not* decided here but in the renderer.

mod attempt;
mod breakdown;
pub mod canary;
pub mod capacity;
mod comparison;
pub mod conformance;
mod damage;
pub mod device;
pub mod examination;
mod exceptions;
pub mod experiment;
mod hosts;
pub mod listing;
mod offered;
mod phase;
mod place;
mod queries;
mod rate;
mod recording;
mod sides;
mod size;
mod threshold;
mod verification;
mod written;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::durability::Durability;
use crate::latency::{Cells, Curve, Summary};
use crate::ledger::{Ledger, LedgerFinding};
use crate::resource::{Machine, Noise, Usage};
use crate::staleness::StalenessSummary;
use crate::verdict::Verdict;

pub use attempt::AttemptReport;
pub use breakdown::{
    BreakdownReport, EventDuring, EventKind, KnownParts, PartShares, PartTimes, QuantileShares, SlowOperation,
};
pub use comparison::{ComparedMetric, ComparedStore, Comparison, ComparisonPlan, StoreThreshold};
pub use damage::{Damage, DamageKind};
pub use exceptions::{ExceptedTicks, Exceptions, REJECTED_MAX, RejectedStretch};
pub use hosts::{HostEnd, HostReport};
pub use offered::{EstimatedFrom, Offered};
pub use phase::{ON_TIME_NS, PhaseLatency, PhaseReport};
pub use place::{EarlierSamples, PlaceReport};
pub use queries::{PreloadReport, QueryLatency, WrongAnswer};
pub use rate::{Peak, Rate};
pub use recording::RecordingReport;
pub use sides::{ComparedSide, ComparisonEnd, RoundReport, RoundRun, RoundsPlan, SideComparison, SideRatio};
pub use size::{Cost, CpuBelow, Projection, Size};
pub use threshold::{FailWhen, ThresholdOutcome, ThresholdReport};
pub use verification::{JournalReport, LevelReport, Verification, VerifiedStore};
pub use written::Written;

/// The version of this model. It grows when a name is removed or changes its meaning, and when a type
/// that refuses unknown names gets one: a field of a `deny_unknown_fields` struct, a count of the
/// ledger, a value of an enum. New fields elsewhere do not change it.
pub const SCHEMA_VERSION: u32 = 2;

/// One run, or several of the same work against several stores.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// [`SCHEMA_VERSION`] of the program that wrote it.
    pub schema_version: u32,
    /// The version of that program.
    pub tsb_version: String,
    /// The runs, in the order in which they ran.
    pub runs: Vec<Run>,
}

impl Report {
    /// The report that this program writes of `runs`.
    pub fn new(runs: Vec<Run>) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            tsb_version: env!("CARGO_PKG_VERSION").to_owned(),
            runs,
        }
    }
}

/// One run against one store.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Run {
    /// The user's name for the run, where several are shown together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// When sending began, nanoseconds since the Unix epoch.
    pub started_at_ns: i64,
    /// Duration of sending, from the first due time to the last answer, in nanoseconds.
    pub duration_ns: u64,
    /// Whether the user ended the run early; all figures then cover the time until that.
    pub interrupted: bool,
    /// Everything needed to repeat the run; where other programs sent the samples, what was asked
    /// of the listeners.
    #[serde(default)]
    pub plan: Value,
    /// The seed of the workload.
    #[serde(default)]
    pub seed: u64,
    /// Hash of the samples that the workload describes: equal fingerprints mean equal samples.
    /// Empty where other programs sent them.
    #[serde(default)]
    pub fingerprint: String,
    /// The machine it ran on.
    pub machine: Machine,
    /// The store and how it was reached.
    pub target: Target,
    /// Whether the figures are meaningful, and why.
    pub verdict: Verdict,
    /// How much the machine was disturbed during the run, if that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
    /// The durability of an acknowledgement.
    pub durability: DurabilityReport,
    /// What outlives the process of the run; absent if the store keeps nothing beyond it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<PlaceReport>,
    /// The rate that was asked for, and the rate that was achieved.
    pub rate: Rate,
    /// What happened to every sample.
    pub ledger: LedgerReport,
    /// Response, delivery, service and lag.
    pub latency: Latency,
    /// What was written before the clock started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preload: Option<PreloadReport>,
    /// Queries that were asked meanwhile, by the name of their stream.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query_latency: BTreeMap<String, QueryLatency>,
    /// Age of the newest visible sample, over all series and all sampled moments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staleness: Option<StalenessSummary>,
    /// CPU and bytes per sample.
    pub cost: Cost,
    /// What the store occupied at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// How compressible the offered values were.
    pub offered: Offered,
    /// The run interval by interval.
    pub intervals: Vec<Interval>,
    /// The phases of its plan; empty where the plan has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseReport>,
    /// The watched processes: tsb itself first.
    pub resources: Vec<Usage>,
    /// What the listener counted, where the run had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub listener: Option<ListenerReport>,
    /// The hosts that shared it; empty for a run of one process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostReport>,
    /// Which operations were issued: with the plan, this is exactly what was sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub issued: Vec<Issued>,
    /// Which of these need not be in the store; absent in reports of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exceptions: Option<Exceptions>,
    /// Damage that the store found in its files, from opening to the end of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<Damage>,
    /// Earlier attempts that were noisy, in their order; no other figure is of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<AttemptReport>,
    /// The thresholds that it was held against.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<ThresholdReport>,
    /// Sentences that a reader must know before using a figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

impl Run {
    /// A run on this machine. The caller sets everything else: until then it has no plan, begins at
    /// the Unix epoch, takes no time, and other programs sent its samples.
    pub fn new(
        target: Target,
        verdict: Verdict,
        durability: DurabilityReport,
        rate: Rate,
        ledger: LedgerReport,
        latency: Latency,
    ) -> Self {
        Self {
            label: None,
            started_at_ns: 0,
            duration_ns: 0,
            interrupted: false,
            plan: Value::Null,
            seed: 0,
            fingerprint: String::new(),
            machine: Machine::examine(),
            target,
            verdict,
            noise: None,
            durability,
            place: None,
            rate,
            ledger,
            latency,
            preload: None,
            query_latency: BTreeMap::new(),
            staleness: None,
            cost: Cost::default(),
            size: None,
            offered: Offered::of_strangers(0),
            intervals: Vec::new(),
            phases: Vec::new(),
            resources: Vec::new(),
            listener: None,
            hosts: Vec::new(),
            issued: Vec::new(),
            exceptions: None,
            damage: Vec::new(),
            attempts: Vec::new(),
            thresholds: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Whether other programs sent the samples, so that their values are not known here.
    pub const fn is_of_strangers(&self) -> bool {
        self.fingerprint.is_empty()
    }
}

/// The store that was driven, and the transport.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Target {
    /// The store's own name.
    pub store: String,
    /// `inproc`, `tcp`, `udp`, `unix`, `unixgram`, `http`.
    pub transport: String,
    /// The wire protocol, if there was a wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// How exactly the store returns the values that were written.
    pub exactness: String,
}

impl Target {
    /// A store that was reached by `transport` without a wire protocol.
    pub fn new(store: impl Into<String>, transport: impl Into<String>, exactness: impl Into<String>) -> Self {
        Self {
            store: store.into(),
            transport: transport.into(),
            protocol: None,
            exactness: exactness.into(),
        }
    }
}

/// The durability of accepted samples: when they were acknowledged, and at the end of the run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DurabilityReport {
    /// The level that every accepted sample had when the run ended.
    pub level: Durability,
    /// The level that the store's acknowledgements promised at once.
    #[serde(default)]
    pub acknowledged: Durability,
    /// Number of servers that hold the data at that level.
    pub copies: u32,
    /// Time from due to that level: the window in which data may be lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<Summary>,
    /// Writes for which this time could not be measured.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub untimed: u64,
}

impl DurabilityReport {
    /// A level that the acknowledgements promised at once, and whose wait was not measured.
    pub const fn new(level: Durability, copies: u32) -> Self {
        Self {
            level,
            acknowledged: level,
            copies,
            wait: None,
            untimed: 0,
        }
    }
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

/// The ledger, whether it balances, and the losses by name.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LedgerReport {
    /// The counts, and `balanced`: whether every equation between them holds.
    #[serde(flatten)]
    pub counts: Ledger,
    /// The equations that do not hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub violated: Vec<String>,
    /// Samples rejected, by reason.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rejected_by_reason: BTreeMap<String, u64>,
    /// Upper bound of the samples that the store lost, if above `lost`: samples that never reached
    /// it cannot be identified, and some may be counted as superseded or expired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_at_most: Option<u64>,
    /// Lost and altered samples by name; only the first where there are very many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub losses: Vec<LedgerFinding>,
}

/// The latency figures of a run, and what they measure.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Latency {
    /// The event that ends an operation.
    pub done: String,
    /// Due until done.
    #[serde(default)]
    pub response: Summary,
    /// Start until the receiver had read it: only on a wire without acknowledgements, where
    /// service begins there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Summary>,
    /// Start until done, or from the end of delivery to done if there is one. (Schema 1 had no
    /// delivery: there it is part of the service time.)
    #[serde(default)]
    pub service: Summary,
    /// Due until start.
    #[serde(default)]
    pub lag: Summary,
    /// Operations whose end could not be timed.
    pub untimed: u64,
    /// Operations that were due but have no response time, because they were never sent or never
    /// answered: they count as infinitely late, and are in no quantile.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub missing: u64,
    /// The complete distributions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curves: Option<Curves>,
    /// What response times consist of; absent in reports of earlier versions, and where an emitter
    /// did not come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<BreakdownReport>,
}

impl Latency {
    /// Latencies of no operation; `done` names the event that ends one.
    pub fn new(done: impl Into<String>) -> Self {
        Self {
            done: done.into(),
            response: Summary::default(),
            delivery: None,
            service: Summary::default(),
            lag: Summary::default(),
            untimed: 0,
            missing: 0,
            curves: None,
            breakdown: None,
        }
    }
}

/// Latency by quantile: pairs of a quantile and a value in nanoseconds, up to the last quantile
/// with enough operations beyond it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Curves {
    /// Due until done.
    pub response: Curve,
    /// Start until read, where [`Latency::delivery`] exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Curve>,
    /// Start until done, or read until done.
    pub service: Curve,
    /// Due until start.
    pub lag: Curve,
}

/// One interval of the run. Intervals follow each other without gaps: samples, operations, CPU and
/// bytes of all intervals add up to those of the run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Interval {
    /// End of the interval, in nanoseconds since the run's start.
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
    /// 0.99 quantile of the response time in the interval, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_p99_ns: Option<u64>,
    /// The longest response time in the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_max_ns: Option<u64>,
    /// The largest lag in the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_max_ns: Option<u64>,
    /// Staleness of the stalest series at the end of the interval, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staleness_max_ms: Option<f64>,
    /// CPU time of the process in the interval, in nanoseconds.
    pub cpu_ns: u64,
    /// Resident memory of the process at the end of the interval, in bytes.
    pub rss_bytes: u64,
    /// Bytes that the process caused to be read from storage in the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes that the process caused to be written to storage in the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// Response times of the interval by coarse cell: a column of the heat map.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_cells: Option<Cells>,
    /// The other watched processes, in the order of `resources` after the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watched: Vec<WatchedUsage>,
}

/// What another process used in an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WatchedUsage {
    /// Its id.
    pub pid: u32,
    /// CPU time in the interval, in nanoseconds.
    pub cpu_ns: u64,
    /// Resident memory at the end of the interval, in bytes.
    pub rss_bytes: u64,
    /// Bytes that it caused to be read from storage in the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes: Option<u64>,
    /// Bytes that it caused to be written to storage in the interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
}

/// Ticks of consecutive groups that were issued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Issued {
    /// The first group.
    pub first_group: u32,
    /// Number of consecutive groups.
    pub groups: u32,
    /// The first tick.
    pub first_tick: u64,
    /// The tick after the last.
    pub end_tick: u64,
}

impl Issued {
    /// The ticks of one group.
    pub const fn new(group: u32, ticks: Range<u64>) -> Self {
        Self {
            first_group: group,
            groups: 1,
            first_tick: ticks.start,
            end_tick: ticks.end,
        }
    }
}

/// What the listener counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ListenerReport {
    /// Connections accepted.
    pub connections: u64,
    /// Connections refused at the limit.
    pub refused_connections: u64,
    /// Bytes received.
    pub bytes: u64,
    /// Malformed records by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub malformed_by_kind: BTreeMap<String, u64>,
    /// Receive buffer size that the kernel granted, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive_buffer_bytes: Option<u64>,
    /// Counts that exist only for datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramReport>,
}

/// Datagrams counted on both sides, and the losses by each way of counting.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DatagramReport {
    /// Datagrams that the emitter's kernel accepted.
    pub sent: u64,
    /// Datagrams that the listener received.
    pub received: u64,
    /// Datagrams that the kernel dropped because a receive buffer was full, by its own count:
    /// datagrams that GRO would have merged count as one. Absent where the kernel drops none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel_drops: Option<u64>,
    /// Datagrams that did not arrive, by their waymarks.
    pub lost_by_waymarks: u64,
    /// Missing samples by the protocol's sequence numbers, if it has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_samples_by_number: Option<u64>,
    /// Operations of which a part was lost, and which have no response time.
    pub lost_operations: u64,
    /// Number of sockets that sent anything.
    pub sockets: u64,
    /// Datagrams that one system call may send; 1 without segmentation.
    pub segments_per_call: u64,
    /// Send buffer size that the kernel granted each socket, in bytes.
    pub send_buffer_bytes: u64,
}
