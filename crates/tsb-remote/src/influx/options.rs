//! The options of an InfluxDB client.

use std::time::Duration;

use crate::TlsOptions;

/// All options except the address.
#[derive(Clone, Debug)]
pub struct InfluxOptions {
    /// Maximum number of samples per request, at least 1. InfluxData recommends 5,000 to 10,000.
    pub lines: usize,
    /// The measurement of all series, whose names are then the tag `name`; absent if the name of a series
    /// is its measurement. InfluxDB 1.6 makes about 1,600 measurements per second.
    pub measurement: Option<String>,
    /// Whom to trust; absent: the connection is in the clear.
    pub tls: Option<TlsOptions>,
    /// Deadline of a request.
    pub timeout: Duration,
    /// Whether to remove what an earlier run left in the database.
    pub drop: bool,
    /// Maximum number of series.
    pub max_series: usize,
}

impl Default for InfluxOptions {
    fn default() -> Self {
        Self {
            lines: 10_000,
            measurement: None,
            tls: None,
            timeout: Duration::from_secs(10),
            drop: false,
            max_series: 1_000_000,
        }
    }
}
