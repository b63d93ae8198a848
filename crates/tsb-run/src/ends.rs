//! Report types for one end of a wire: `tsb emit`, which knows what it sent, and `tsb ingest`,
//! which knows what arrived.
//!
//! Field names are those of [`Run`](tsb_core::report::Run), and a field that this end cannot
//! know is absent, so a program that reads reports of runs can read these as well.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tsb_core::Durability;
use tsb_core::latency::Summary;
use tsb_core::ledger::Ledger;
use tsb_core::net::ListenerStats;
use tsb_core::report::{
    Cost, Curves, Damage, DurabilityReport, Exceptions, Interval, Issued, LedgerReport, Offered, Rate, Size, Target,
    VerifiedStore, Written,
};
use tsb_core::resource::Usage;
use tsb_core::verdict::Verdict;

use crate::plan::Plan;

/// The latencies that one end can measure.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EndLatency {
    /// The event that ends an operation.
    pub done: String,
    /// Due until done, where the server answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<Summary>,
    /// Start until done, where the server answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Summary>,
    /// Due until start; absent for a receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag: Option<Summary>,
    /// Operations whose end was not timed.
    pub untimed: u64,
    /// Operations that were due and have no response time, where the server answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
    /// The distributions in full, where the server answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub curves: Option<Curves>,
}

/// The report of `tsb emit`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
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
    pub plan: Plan,
    /// The seed of all generated values.
    pub seed: u64,
    /// Fingerprint of the plan's samples.
    pub fingerprint: String,
    /// The receiver.
    pub target: Target,
    /// UNVERIFIED if nothing was read back.
    pub verdict: Verdict,
    /// What a program found that read everything back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<VerifiedStore>,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closing: Option<BTreeMap<String, u64>>,
    /// Datagram counts, where datagrams were sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<SentDatagrams>,
    /// Panics and lost connections, as sentences.
    pub failures: Vec<String>,
}

impl EmitReport {
    /// A report of nothing sent yet, unconfirmed as always, with the seed of the plan.
    pub fn new(plan: Plan, target: Target, verdict: Verdict, rate: Rate, offered: Offered) -> Self {
        Self {
            written: Written::here(),
            started_at_ns: 0,
            duration_ns: 0,
            interrupted: false,
            seed: plan.workload.seed,
            plan,
            fingerprint: String::new(),
            target,
            verdict,
            verified: None,
            durability: DurabilityReport::new(Durability::Unconfirmed, 0),
            rate,
            ledger: Ledger::new(),
            latency: EndLatency::default(),
            cost: Cost::default(),
            offered,
            intervals: Vec::new(),
            resources: Vec::new(),
            issued: Vec::new(),
            exceptions: Exceptions::default(),
            notes: Vec::new(),
            closing: None,
            datagrams: None,
            failures: Vec::new(),
        }
    }
}

/// Datagram counts of the sender.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SentDatagrams {
    /// Datagrams that the kernel accepted.
    pub sent: u64,
    /// Datagrams per system call; 1 without segmentation offload.
    pub segments_per_call: u64,
    /// Send buffer of each socket as the kernel granted it, in bytes.
    pub send_buffer_bytes: u64,
}

/// What `tsb ingest` was asked to do, without credentials. It describes no samples, so there is no
/// seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct IngestPlan {
    /// The URL of each listener.
    pub listen: Vec<String>,
    /// The store for what arrives.
    pub store: String,
    /// How long to listen, in nanoseconds; absent: until it is stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ns: Option<u64>,
    /// Whether to stop when the last connection closes.
    pub once: bool,
    /// Series admitted at most; absent where clients name files and not series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_series: Option<u64>,
    /// Bytes of names at most; absent where clients name files and not series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_name_bytes: Option<u64>,
    /// Connections open at a time, at most.
    pub max_connections: u64,
    /// Whether addresses that other machines can reach were allowed.
    pub allow_remote: bool,
    /// Longest call into the store once listening is over, in nanoseconds; absent: the defaults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_timeout_ns: Option<u64>,
}

impl IngestPlan {
    /// To listen until it is stopped, for this machine alone.
    pub fn new(listen: Vec<String>, store: impl Into<String>, max_connections: u64) -> Self {
        Self {
            listen,
            store: store.into(),
            duration_ns: None,
            once: false,
            max_series: None,
            max_name_bytes: None,
            max_connections,
            allow_remote: false,
            store_timeout_ns: None,
        }
    }
}

/// The report of `tsb ingest` with listeners that write into a store.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
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
    /// What was asked for.
    pub plan: IngestPlan,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
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

impl IngestReport {
    /// A report of nothing received yet; the store is that of the target.
    pub fn new(plan: IngestPlan, target: Target, verdict: Verdict, durability: DurabilityReport, rate: Rate) -> Self {
        Self {
            written: Written::here(),
            started_at_ns: 0,
            duration_ns: 0,
            interrupted: false,
            plan,
            store: target.store.clone(),
            target,
            verdict,
            durability,
            rate,
            ledger: LedgerReport::default(),
            latency: EndLatency::default(),
            series: NamedSeries::default(),
            size: None,
            cost: Cost::default(),
            offered: Offered::of_strangers(0),
            intervals: Vec::new(),
            resources: Vec::new(),
            damage: Vec::new(),
            listeners: Vec::new(),
        }
    }
}

/// The report of `tsb ingest` with listeners that write RRD files by name, as rrdcached does.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FilesReport {
    /// The program and the machine.
    #[serde(flatten)]
    pub written: Written,
    /// How long it listened, in nanoseconds.
    pub duration_ns: u64,
    /// What was asked for.
    pub plan: IngestPlan,
    /// Stopped while a call into the cache had not returned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<bool>,
    /// Set if the cache was abandoned; the reasons say why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The cache's own counters; absent if a call into it did not return.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub cached: Option<CachedFiles>,
    /// The reporting intervals.
    pub intervals: Vec<Interval>,
    /// Counters of each listener, in the order of `--listen`.
    pub listeners: Vec<ListenerStats>,
}

impl FilesReport {
    /// A report of listeners without the part of the cache.
    pub fn new(plan: IngestPlan, duration_ns: u64, listeners: Vec<ListenerStats>) -> Self {
        Self {
            written: Written::here(),
            duration_ns,
            plan,
            interrupted: None,
            verdict: None,
            cached: None,
            intervals: Vec::new(),
            listeners,
        }
    }
}

/// The state and counters of a write cache over RRD files.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
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

impl CachedFiles {
    /// A cache with all counts 0 except those of the ledger.
    pub fn new(store: impl Into<String>, durability: DurabilityReport, rate: Rate, ledger: CachedLedger) -> Self {
        Self {
            store: store.into(),
            durability,
            rate,
            ledger,
            commands: Commands::default(),
            cache: CachedCounts::default(),
            damage: Vec::new(),
        }
    }
}

/// The ledger of a write cache over RRD files.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[non_exhaustive]
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

impl CachedLedger {
    /// A ledger in which every value that came was rejected or accepted.
    pub const fn new(rejected: u64, accepted: u64, balanced: bool) -> Self {
        Self {
            received: accepted + rejected,
            rejected,
            accepted,
            balanced,
        }
    }
}

/// Client commands by kind.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Commands {
    /// Commands that could not be parsed.
    pub malformed: u64,
    /// UPDATE commands.
    pub updates: u64,
    /// FLUSH and FLUSHALL commands.
    pub flushes: u64,
}

/// The outcome of the values of a write cache over RRD files.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
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
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WholeSize {
    /// Total, in bytes.
    pub bytes: u64,
    /// Sizes by kind.
    #[serde(flatten)]
    pub parts: Size,
}

impl WholeSize {
    /// The size of a store of `bytes` in total.
    pub const fn new(bytes: u64, parts: Size) -> Self {
        Self { bytes, parts }
    }
}

/// Series names that clients sent.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NamedSeries {
    /// Series admitted.
    pub admitted: u64,
    /// Bytes of their names.
    pub name_bytes: u64,
    /// Names refused.
    pub refused_names: u64,
    /// Why the first refused name was not defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_error: Option<String>,
}
