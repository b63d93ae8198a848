//! The place that a run filled, and what was there before.

use serde::{Deserialize, Serialize};

/// The files, database or keys that outlive the process of a run. It has no credentials.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PlaceReport {
    /// `file`, `folder`, `database`, `prefix`, or `files` of a daemon.
    pub kind: String,
    /// The path as the plan has it, or the name and address of a part of a server.
    pub name: String,
    /// What the whole place occupied when the run had closed it, earlier runs included: blocks of
    /// the file system, or as a server counts it; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The shell command that removes the whole place, earlier runs included; absent where there
    /// is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remove: Option<String>,
    /// What it held before this run; absent if it was empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<EarlierSamples>,
}

impl PlaceReport {
    /// An empty place of a kind and a name.
    pub fn new(kind: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            name: name.into(),
            bytes: None,
            remove: None,
            earlier: None,
        }
    }
}

/// What a place held before a run that was told to append to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EarlierSamples {
    /// Samples; absent where a store consolidates and does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<u64>,
    /// Series, where samples are not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<u64>,
    /// Samples with earlier timestamps are of earlier runs, in nanoseconds since the Unix epoch.
    pub before_ns: i64,
}

impl EarlierSamples {
    /// What was there, all of it from before `before_ns`.
    pub const fn new(samples: Option<u64>, series: Option<u64>, before_ns: i64) -> Self {
        Self {
            samples,
            series,
            before_ns,
        }
    }
}
