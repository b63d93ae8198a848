//! Reports of one end of a wire: of `tsb emit`, which knows what it sent, and of `tsb ingest`,
//! which knows what came.
//!
//! Their names are those of [`Run`](tsb_core::report::Run), and what one end cannot know is
//! absent: whoever reads reports of runs reads them, too.

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

/// What every document says of the program that wrote it.
#[derive(Clone, Debug, Serialize)]
pub struct Written {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// The version of tsb.
    pub tsb_version: &'static str,
    /// The machine it ran on.
    pub machine: Machine,
}

impl Written {
    /// By this program, on this machine.
    pub fn here() -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            tsb_version: env!("CARGO_PKG_VERSION"),
            machine: Machine::examine(),
        }
    }
}

/// The times that one end knows.
#[derive(Clone, Debug, Default, Serialize)]
pub struct EndLatency {
    /// What ends an operation here.
    pub done: &'static str,
    /// Due to done, where the server answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response: Option<Summary>,
    /// Start to done, where the server answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Summary>,
    /// Due to start, where somebody sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag: Option<Summary>,
    /// Operations whose end nobody could time.
    pub untimed: u64,
    /// Operations that were due and have no response time, where the server answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<u64>,
    /// The distributions in full, where the server answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub curves: Option<Curves>,
}

/// What `tsb emit` writes.
#[derive(Clone, Debug, Serialize)]
pub struct EmitReport {
    /// By whom.
    #[serde(flatten)]
    pub written: Written,
    /// The timestamp of the start, in nanoseconds since the Unix epoch.
    pub started_at_ns: i64,
    /// From the first due time to the end, in nanoseconds.
    pub duration_ns: u64,
    /// Stopped by the user.
    pub interrupted: bool,
    /// What was asked.
    pub plan: Value,
    /// What all values follow from.
    pub seed: u64,
    /// Of the samples of the plan.
    pub fingerprint: String,
    /// Whom it was sent to.
    pub target: Target,
    /// Always UNVERIFIED: nothing was read back.
    pub verdict: Verdict,
    /// Always unconfirmed.
    pub durability: DurabilityReport,
    /// Asked, and held: what was confirmed where the server answers, else what the kernel took.
    pub rate: Rate,
    /// Due, shed and sent; confirmed, refused and unknown where the server answers.
    pub ledger: Ledger,
    /// Lag, and the other times where the server answers.
    pub latency: EndLatency,
    /// Of the emitting threads.
    pub cost: Cost,
    /// What the workload offered.
    pub offered: Offered,
    /// Slice by slice.
    pub intervals: Vec<Interval>,
    /// What tsb itself used.
    pub resources: Vec<Usage>,
    /// The ticks of each group that were issued.
    pub issued: Vec<Issued>,
    /// What of these a server does not have to have.
    pub exceptions: Exceptions,
    /// Sentences that a reader must know before using a figure.
    pub notes: Vec<String>,
    /// How the connections ended, and how many did so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub closing: Option<BTreeMap<&'static str, u64>>,
    /// What the kernel took as datagrams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<SentDatagrams>,
    /// Panics and lost connections.
    pub failures: Vec<String>,
}

/// Datagrams as their sender knows them.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SentDatagrams {
    /// Datagrams that the kernel took.
    pub sent: u64,
    /// Datagrams that one system call may send; 1 without segmentation.
    pub segments_per_call: u64,
    /// What the kernel granted each socket to send with, in bytes.
    pub send_buffer_bytes: u64,
}

/// What `tsb ingest` writes of listeners that fill a store.
#[derive(Clone, Debug, Serialize)]
pub struct IngestReport {
    /// By whom.
    #[serde(flatten)]
    pub written: Written,
    /// The time of day at its start, in nanoseconds since the Unix epoch.
    pub started_at_ns: i64,
    /// How long it listened, in nanoseconds.
    pub duration_ns: u64,
    /// Stopped while the store did not return.
    pub interrupted: bool,
    /// The store, as it names itself.
    pub store: String,
    /// The same, in the words of other reports.
    pub target: Target,
    /// UNVERIFIED: nothing was read back; INVALID where something failed.
    pub verdict: Verdict,
    /// The level of the store's acks.
    pub durability: DurabilityReport,
    /// Held: what was accepted.
    pub rate: Rate,
    /// Received, malformed, rejected and accepted.
    pub ledger: LedgerReport,
    /// None: a listener does not know when samples were due.
    pub latency: EndLatency,
    /// Series that were named.
    pub series: NamedSeries,
    /// What the store occupies; absent where it was left behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<WholeSize>,
    /// Of the listeners' threads.
    pub cost: Cost,
    /// Series that came; nothing else is known of what strangers send.
    pub offered: Offered,
    /// Slice by slice.
    pub intervals: Vec<Interval>,
    /// What tsb itself used.
    pub resources: Vec<Usage>,
    /// What the store found damaged in its files.
    pub damage: Vec<Damage>,
    /// What each listener counted, in the order of `--listen`.
    pub listeners: Vec<ListenerStats>,
}

/// What `tsb ingest` writes of listeners that fill RRD files by their names, as rrdcached does.
#[derive(Clone, Debug, Serialize)]
pub struct FilesReport {
    /// By whom.
    #[serde(flatten)]
    pub written: Written,
    /// How long it listened, in nanoseconds.
    pub duration_ns: u64,
    /// Stopped while the cache did not return.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<bool>,
    /// Why it was left behind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// What the cache says of itself; absent where it did not return.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub cached: Option<CachedFiles>,
    /// Slice by slice.
    pub intervals: Vec<Interval>,
    /// What each listener counted, in the order of `--listen`.
    pub listeners: Vec<ListenerStats>,
}

/// What a cache of files says of itself.
#[derive(Clone, Debug, Serialize)]
pub struct CachedFiles {
    /// The cache and its folder.
    pub store: String,
    /// The level of its acks.
    pub durability: DurabilityReport,
    /// Held: the values that it accepted.
    pub rate: Rate,
    /// Values received, rejected and accepted.
    pub ledger: CachedLedger,
    /// Commands of clients.
    pub commands: Commands,
    /// What became of the values.
    pub cache: CachedCounts,
    /// What it found damaged in its journal.
    pub damage: Vec<Damage>,
}

/// The ledger of a cache of files.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CachedLedger {
    /// Values that came.
    pub received: u64,
    /// Values that the files do not take.
    pub rejected: u64,
    /// Values that the cache took.
    pub accepted: u64,
    /// Accepted and replayed values are those written, pending, forgotten and failed.
    pub balanced: bool,
}

/// Commands of clients, by kind.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Commands {
    /// That could not be read.
    pub malformed: u64,
    /// UPDATE.
    pub updates: u64,
    /// FLUSH and FLUSHALL.
    pub flushes: u64,
}

/// What became of the values of a cache of files.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct CachedCounts {
    /// Values that came from the journal of an earlier life.
    pub replayed: u64,
    /// Values written to files.
    pub written: u64,
    /// Values that wait.
    pub pending: u64,
    /// Values that a client had forgotten.
    pub forgotten: u64,
    /// Values that could not be written.
    pub failed: u64,
    /// Writes of a file, each of many values.
    pub passes: u64,
    /// Writes that failed.
    pub write_failures: u64,
    /// Files known.
    pub files: u64,
    /// Bytes of the journal.
    pub journal_bytes: u64,
}

/// What a store occupies, by kind and in all.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct WholeSize {
    /// All of it, in bytes.
    pub bytes: u64,
    /// By kind.
    #[serde(flatten)]
    pub parts: Size,
}

/// Names that clients sent.
#[derive(Clone, Debug, Serialize)]
pub struct NamedSeries {
    /// Series admitted.
    pub admitted: u64,
    /// Bytes of their names.
    pub name_bytes: u64,
    /// Names that were refused.
    pub refused_names: u64,
    /// Why the first of them was not defined.
    pub first_error: Option<String>,
}
