//! The options of a KairosDB client.

use std::time::Duration;

use crate::TlsOptions;

/// All options except the address.
#[derive(Clone, Debug)]
pub struct KairosDbOptions {
    /// `HOST[:PORT]` of the telnet listener, which answers nothing: samples go there, and are read back
    /// over HTTP. Without a port: 4242.
    pub put: Option<String>,
    /// Whom to trust; absent: the connection is in the clear.
    pub tls: Option<TlsOptions>,
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
            put: None,
            tls: None,
            timeout: Duration::from_secs(10),
            drop: false,
            max_series: 1_000_000,
        }
    }
}
