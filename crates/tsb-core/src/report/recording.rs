//! How a run replayed a recording: what was read, moved and left out before anything was sent. The
//! ledger does not count these.

use serde::{Deserialize, Serialize};

/// Figures of a replayed recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RecordingReport {
    /// Series in the recording.
    pub series: u64,
    /// Samples that one pass replays.
    pub samples: u64,
    /// `own`: every sample at its own time. `grid`: at the times of ticks.
    pub times: String,
    /// Nanoseconds between two recorded ticks, on a grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid_ns: Option<u64>,
    /// Timestamp of the earliest sample, in nanoseconds. At own times, a sample recorded at `t`
    /// gets the timestamp `started_at_ns + (t - start_ns)` in the first pass.
    pub start_ns: i64,
    /// Nanoseconds of fleet time after which the recording repeats.
    pub length_ns: u64,
    /// Number of passes; above 1, values repeat.
    pub passes: f64,
    /// Number of copies; the last may be partial.
    pub copies: u64,
    /// Samples moved to their tick.
    pub moved: u64,
    /// The largest move, in nanoseconds.
    pub moved_ns_max: u64,
    /// Samples dropped because a later one fell on the same tick.
    pub dropped: u64,
    /// Samples whose series has another sample at the same time; both are sent.
    pub doubled: u64,
    /// Rows and cells that could not be read; they are in none of these counts.
    pub left_out: u64,
    /// What the reader decided where the files are ambiguous.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
}
