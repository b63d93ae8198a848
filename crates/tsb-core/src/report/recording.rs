//! What a run replayed of a recording: what was read, moved and left out before anything
//! was sent, which the ledger cannot know.

use serde::{Deserialize, Serialize};

/// A recording, as it was replayed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordingReport {
    /// Series that were recorded.
    pub series: u64,
    /// Samples of the recording that one pass replays.
    pub samples: u64,
    /// `own`: every sample at its own time. `grid`: on ticks.
    pub times: String,
    /// Nanoseconds from one tick to the next as recorded, on a grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid_ns: Option<u64>,
    /// The timestamp of its earliest sample, in nanoseconds: at own times, a sample taken at
    /// `t` bears the timestamp `started_at_ns + (t - start_ns)` in the first pass.
    pub start_ns: i64,
    /// Nanoseconds of fleet time after which it comes again.
    pub length_ns: u64,
    /// How often it was passed; above 1, values came again.
    pub passes: f64,
    /// Copies of it, the last perhaps in part.
    pub copies: u64,
    /// Samples that were moved to their tick.
    pub moved: u64,
    /// The furthest that one was moved, in nanoseconds.
    pub moved_ns_max: u64,
    /// Samples that were dropped, since a later one fell on the same tick.
    pub dropped: u64,
    /// Samples at a time at which their series has another; both are sent.
    pub doubled: u64,
    /// Rows and cells that could not be read, and are in none of these counts.
    pub left_out: u64,
    /// What the reader decided where the files leave it open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
}
