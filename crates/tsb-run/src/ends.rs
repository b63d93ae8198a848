//! Report types for one end of a wire: `tsb emit`, which knows what it sent, and `tsb ingest`,
//! which knows what arrived.
//!
//! Field names are those of [`Run`](tsb_core::report::Run), and a field that this end cannot
//! know is absent, so a program that reads reports of runs can read these as well.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use tsb_core::latency::Summary;
use tsb_core::ledger::Ledger;
use tsb_core::net::ListenerStats;
use tsb_core::report::{
    Cost, Curves, Damage, DurabilityReport, Exceptions, Interval, Issued, LedgerReport, Offered, Rate, SCHEMA_VERSION,
    Size, Target,
};
use tsb_core::resource::{Machine, Usage};
use tsb_core::verdict::Verdict;

/// The program version and machine, which every report starts with.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Written {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The version of tsb.
    pub tsb_version: &'static str,
    /// The machine it ran on.
    pub machine: Machine,
}

impl Written {
    /// Describes this program and this machine.
    pub fn here() -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            tsb_version: env!("CARGO_PKG_VERSION"),
            machine: Machine::examine(),
        }
    }
}

/// The latencies that one end can measure.
#[derive(Clone, Debug, Default, Serialize)]
pub struct EndLatency {
    /// The event that ends an operation.
    pub done: &'static str,
    /// Due to done, where the server answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Summary>,
    /// Start to done, where the server answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Summary>,
    /// Due to start; absent for a receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<Summary>,
    /// Operations whose end was not timed.
    pub untimed: u64,
    /// Operations that were due and have no response time, where the server answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
    /// The distributions in full, where the server answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curves: Option<Curves>,
}

/// The report of `tsb emit`.
#[derive(Clone, Debug, Serialize)]
pub struct EmitReport {
    /// The program and the machine.
    #[serde(flatten)]
    pub written: Written,
    /// The timestamp of the start, in nanoseconds since the Unix epoch.
    pub started_at_ns: i64,
    /// From the first due time to the end, in nanoseconds.
    pub duration_ns: u64,
    /// Whether the user stopped it.
    pub interrupted: bool,
    /// The plan.
    pub plan: Value,
    /// The seed of all generated values.
    pub seed: u64,
    /// Fingerprint of the plan's samples.
    pub fingerprint: String,
    /// The receiver.
    pub target: Target,
    /// Always UNVERIFIED: nothing was read back.
    pub verdict: Verdict,
    /// Always unconfirmed.
    pub durability: DurabilityReport,
    /// Rates asked and held. Held counts confirmed samples where the server answers, else
    /// samples that the kernel accepted.
    pub rate: Rate,
    /// Samples due, shed and sent; also confirmed, refused and unknown where the server answers.
    pub ledger: Ledger,
    /// Lag, and the other latencies where the server answers.
    pub latency: EndLatency,
    /// CPU cost of the emitting threads.
    pub cost: Cost,
    /// Properties of the samples that the workload generated.
    pub offered: Offered,
    /// The reporting intervals.
    pub intervals: Vec<Interval>,
    /// Resources that tsb itself used.
    pub resources: Vec<Usage>,
    /// The ticks that were issued, by group.
    pub issued: Vec<Issued>,
    /// The issued operations that the server need not hold: not sent, or not answered.
    pub exceptions: Exceptions,
    /// Caveats for the reader of the figures.
    pub notes: Vec<String>,
    /// Number of connections by the way they ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closing: Option<BTreeMap<&'static str, u64>>,
    /// Datagram counts, where datagrams were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<SentDatagrams>,
    /// Panics and lost connections, as sentences.
    pub failures: Vec<String>,
}

/// Datagram counts of the sender.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SentDatagrams {
    /// Datagrams that the kernel accepted.
    pub sent: u64,
    /// Datagrams per system call; 1 without segmentation offload.
    pub segments_per_call: u64,
    /// Send buffer of each socket as the kernel granted it, in bytes.
    pub send_buffer_bytes: u64,
}

/// The report of `tsb ingest` with listeners that write into a store.
#[derive(Clone, Debug, Serialize)]
pub struct IngestReport {
    /// The program and the machine.
    #[serde(flatten)]
    pub written: Written,
    /// Start, in nanoseconds since the Unix epoch.
    pub started_at_ns: i64,
    /// How long it listened, in nanoseconds.
    pub duration_ns: u64,
    /// Stopped while a call into the store had not returned.
    pub interrupted: bool,
    /// The store's name for itself.
    pub store: String,
    /// The store and the transport, in the form that other reports use.
    pub target: Target,
    /// UNVERIFIED because nothing was read back; INVALID if something failed.
    pub verdict: Verdict,
    /// Durability level of the store's acknowledgements.
    pub durability: DurabilityReport,
    /// Rate held: accepted samples per second.
    pub rate: Rate,
    /// Samples received, malformed, rejected and accepted.
    pub ledger: LedgerReport,
    /// No latencies: a listener does not know when samples were due.
    pub latency: EndLatency,
    /// Series named by the clients.
    pub series: NamedSeries,
    /// Size of the store; absent if the store was abandoned in a call that did not return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<WholeSize>,
    /// CPU cost of the listeners' threads.
    pub cost: Cost,
    /// Number of series that arrived; a listener knows nothing else about the workload.
    pub offered: Offered,
    /// The reporting intervals.
    pub intervals: Vec<Interval>,
    /// Resources that tsb itself used.
    pub resources: Vec<Usage>,
    /// What the store found damaged in its files.
    pub damage: Vec<Damage>,
    /// Counters of each listener, in the order of `--listen`.
    pub listeners: Vec<ListenerStats>,
}

/// The report of `tsb ingest` with listeners that write RRD files by name, as rrdcached does.
#[derive(Clone, Debug, Serialize)]
pub struct FilesReport {
    /// The program and the machine.
    #[serde(flatten)]
    pub written: Written,
    /// How long it listened, in nanoseconds.
    pub duration_ns: u64,
    /// Stopped while a call into the cache had not returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<bool>,
    /// Set if the cache was abandoned; the reasons say why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The cache's own counters; absent if a call into it did not return.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub cached: Option<CachedFiles>,
    /// The reporting intervals.
    pub intervals: Vec<Interval>,
    /// Counters of each listener, in the order of `--listen`.
    pub listeners: Vec<ListenerStats>,
}

/// The state and counters of a write cache over RRD files.
#[derive(Clone, Debug, Serialize)]
pub struct CachedFiles {
    /// The cache and its folder.
    pub store: String,
    /// Durability level of its acknowledgements.
    pub durability: DurabilityReport,
    /// Rate held: accepted values per second.
    pub rate: Rate,
    /// Values received, rejected and accepted.
    pub ledger: CachedLedger,
    /// Commands of clients.
    pub commands: Commands,
    /// The outcome of the values.
    pub cache: CachedCounts,
    /// Damage found in its journal.
    pub damage: Vec<Damage>,
}

/// The ledger of a write cache over RRD files.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CachedLedger {
    /// Values that came.
    pub received: u64,
    /// Values rejected.
    pub rejected: u64,
    /// Values accepted.
    pub accepted: u64,
    /// Whether accepted plus replayed values equal those written, pending, forgotten and failed.
    pub balanced: bool,
}

/// Client commands by kind.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Commands {
    /// Commands that could not be parsed.
    pub malformed: u64,
    /// UPDATE commands.
    pub updates: u64,
    /// FLUSH and FLUSHALL commands.
    pub flushes: u64,
}

/// The outcome of the values of a write cache over RRD files.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CachedCounts {
    /// Values replayed from the journal of an earlier process.
    pub replayed: u64,
    /// Values written to files.
    pub written: u64,
    /// Values not written yet.
    pub pending: u64,
    /// Values dropped by a client's FORGET.
    pub forgotten: u64,
    /// Values whose write failed.
    pub failed: u64,
    /// Writes to a file, each of one or more values.
    pub passes: u64,
    /// Writes that failed.
    pub write_failures: u64,
    /// Number of files.
    pub files: u64,
    /// Size of the journal, in bytes.
    pub journal_bytes: u64,
}

/// Size of a store, by kind and in total.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WholeSize {
    /// Total, in bytes.
    pub bytes: u64,
    /// Sizes by kind.
    #[serde(flatten)]
    pub parts: Size,
}

/// Series names that clients sent.
#[derive(Clone, Debug, Serialize)]
pub struct NamedSeries {
    /// Series admitted.
    pub admitted: u64,
    /// Bytes of their names.
    pub name_bytes: u64,
    /// Names refused.
    pub refused_names: u64,
    /// Why the first refused name was not defined.
    pub first_error: Option<String>,
}
