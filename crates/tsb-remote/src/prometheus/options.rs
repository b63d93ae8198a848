//! The options of a Prometheus client.

use std::time::Duration;

use crate::TlsOptions;

/// All options except the address.
#[derive(Clone, Debug)]
pub struct PrometheusOptions {
    /// Whom to trust; absent: the connection is in the clear.
    pub tls: Option<TlsOptions>,
    /// Deadline of a request.
    pub timeout: Duration,
    /// Whether to remove what an earlier run left in the place.
    pub drop: bool,
    /// Maximum number of series.
    pub max_series: usize,
}

impl Default for PrometheusOptions {
    fn default() -> Self {
        Self {
            tls: None,
            timeout: Duration::from_secs(10),
            drop: false,
            max_series: 1_000_000,
        }
    }
}
