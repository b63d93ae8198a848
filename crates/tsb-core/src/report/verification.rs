//! The result of `tsb verify`: stores read back after their run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Damage, LedgerReport, Written};
use crate::durability::Durability;
use crate::verdict::Verdict;

/// One store, or all stores of one report.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Verification {
    /// The program, and the machine on which it was read back.
    #[serde(flatten)]
    pub written: Written,
    /// The stores, in the order of the report's runs.
    pub stores: Vec<VerifiedStore>,
}

impl Verification {
    /// Stores that this program read back on this machine.
    pub fn new(stores: Vec<VerifiedStore>) -> Self {
        Self {
            written: Written::here(),
            stores,
        }
    }
}

/// One store, read back.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct VerifiedStore {
    /// The store's own name; the report's name for it if it cannot be opened.
    pub store: String,
    /// The plan of the run that filled it; absent if the store cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Value>,
    /// The seed of that run's values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether everything required is in the store, and why not. UNVERIFIED if the store cannot be
    /// read.
    pub verdict: Verdict,
    /// The ledger of the run with what was read back; absent if the store cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerReport>,
    /// The state of a cut-off run by its journal; absent for a finished report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub journal: Option<JournalReport>,
    /// Damage that the store found in its files when it was opened and read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<Damage>,
}

impl VerifiedStore {
    /// A store that could not be read.
    pub fn new(store: impl Into<String>, verdict: Verdict) -> Self {
        Self {
            store: store.into(),
            plan: None,
            seed: None,
            verdict,
            ledger: None,
            journal: None,
            damage: Vec::new(),
        }
    }
}

/// A run that was cut off, as its journal describes it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct JournalReport {
    /// Time of the last record, in nanoseconds since the start of the run.
    pub last_record_ns: u64,
    /// Samples that had been sent by then.
    pub sent: u64,
    /// Number of complete records in the file.
    pub records: u64,
    /// Bytes after the last complete record.
    pub torn_bytes: u64,
    /// Records before it that are damaged or missing.
    pub damaged_records: u64,
    /// Whether the run ended and its report was written.
    pub is_over: bool,
    /// What had reached each durability level by the last record, the lowest first.
    pub levels: Vec<LevelReport>,
    /// Samples found that were acknowledged after the last record, if at all.
    pub undecided_found: u64,
}

/// The samples that had reached one durability level, and how many of them were found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LevelReport {
    /// The level.
    pub level: Durability,
    /// Whether samples at this level must have survived what ended the run.
    pub must_be_there: bool,
    /// Samples that had been acknowledged at this level.
    pub acknowledged: u64,
    /// Of these, samples found, or superseded or expired by the store's rules.
    pub found: u64,
    /// Of these, samples not found.
    pub lost: u64,
    /// Upper bound of `lost`, where it is not known exactly which samples were acknowledged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_at_most: Option<u64>,
}

impl LevelReport {
    /// A level that no sample had reached.
    pub const fn new(level: Durability) -> Self {
        Self {
            level,
            must_be_there: false,
            acknowledged: 0,
            found: 0,
            lost: 0,
            lost_at_most: None,
        }
    }
}
