//! The options of a ClickHouse client.

use std::time::Duration;

use crate::TlsOptions;

/// All options except the address.
#[derive(Clone, Debug)]
pub struct ClickHouseOptions {
    /// Whom to trust; absent: the connection is in the clear.
    pub tls: Option<TlsOptions>,
    /// Deadline of a request.
    pub timeout: Duration,
    /// Whether to remove what an earlier run left in the database.
    pub drop: bool,
    /// Maximum number of series.
    pub max_series: usize,
}

impl Default for ClickHouseOptions {
    fn default() -> Self {
        Self {
            tls: None,
            timeout: Duration::from_secs(10),
            drop: false,
            max_series: 1_000_000,
        }
    }
}
