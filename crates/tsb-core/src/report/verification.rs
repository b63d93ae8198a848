//! What `tsb verify` prints: stores, read back on another day.

use serde::{Deserialize, Serialize};

use super::LedgerReport;
use crate::verdict::Verdict;

/// One store, or several of one report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verification {
    /// [`super::SCHEMA_VERSION`] of the program that wrote it.
    pub schema_version: u32,
    /// The version of that program.
    pub tsb_version: String,
    /// The stores, in the order of the report's runs.
    pub stores: Vec<VerifiedStore>,
}

/// One store, read back.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct VerifiedStore {
    /// The store, as it names itself; as the report names it where it cannot be opened.
    pub store: String,
    /// Whether everything is there that must be, and why not. UNVERIFIED where the store
    /// cannot be read.
    pub verdict: Verdict,
    /// The ledger of the run with what is there now; absent where the store cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<LedgerReport>,
}
