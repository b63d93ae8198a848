//! What `tsb verify` prints: stores, read back on another day.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Damage, LedgerReport};
use crate::durability::Durability;
use crate::resource::Machine;
use crate::verdict::Verdict;

/// One store, or several of one report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verification {
    /// [`super::SCHEMA_VERSION`] of the program that wrote it.
    pub schema_version: u32,
    /// The version of that program.
    pub tsb_version: String,
    /// The machine that it was read back on.
    #[serde(default)]
    pub machine: Machine,
    /// The stores, in the order of the report's runs.
    pub stores: Vec<VerifiedStore>,
}

/// One store, read back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VerifiedStore {
    /// The store, as it names itself; as the report names it where it cannot be opened.
    pub store: String,
    /// What was asked of the run that filled it; absent where the store cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Value>,
    /// What all values of that run follow from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether everything is there that must be, and why not. UNVERIFIED where the store
    /// cannot be read.
    pub verdict: Verdict,
    /// The ledger of the run with what is there now; absent where the store cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerReport>,
    /// What the journal of a run that was cut short says of it; absent for a report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalReport>,
    /// What the store found damaged in its files when it was opened and read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<Damage>,
}

/// A run that was cut short, by its journal.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalReport {
    /// When the last record was written, in nanoseconds since the start of the run.
    pub last_record_ns: u64,
    /// Samples that had been sent by then.
    pub sent: u64,
    /// Whole records of the file.
    pub records: u64,
    /// Bytes behind the last whole record.
    pub torn_bytes: u64,
    /// Records before it that are damaged or gone.
    pub damaged_records: u64,
    /// The run ended, and its report was written.
    pub is_over: bool,
    /// What had reached each level by the last record, the lowest first.
    pub levels: Vec<LevelReport>,
    /// Samples that are there and were acknowledged after the last record, if at all.
    pub undecided_found: u64,
}

/// What had reached one level of durability, and what of it is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelReport {
    /// The level.
    pub level: Durability,
    /// Whether what ended the run may take none of it.
    pub must_be_there: bool,
    /// Samples that had been acknowledged and reached it.
    pub acknowledged: u64,
    /// Of these, samples that are there, or superseded or expired by the store's rules.
    pub found: u64,
    /// Of these, samples that are not there.
    pub lost: u64,
    /// The same at the most, where which samples were acknowledged is not known to the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_at_most: Option<u64>,
}
