//! The options of a KairosDB client.

use std::time::Duration;

/// All options except the address.
#[derive(Clone, Debug)]
pub struct KairosDbOptions {
    /// Deadline of a request.
    pub timeout: Duration,
    /// Whether to delete what an earlier run left under the prefix.
    pub drop: bool,
    /// Maximum number of series.
    pub max_series: usize,
}

impl Default for KairosDbOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(10),
            drop: false,
            max_series: 1_000_000,
        }
    }
}
