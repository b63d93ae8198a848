//! The options of a VictoriaMetrics client.

use std::time::Duration;

use crate::TlsOptions;

/// All options except the address.
#[derive(Clone, Debug)]
pub struct VictoriaOptions {
    /// Maximum number of samples per request, at least 1.
    pub lines: usize,
    /// `HOST[:PORT]` of the listener for OpenTSDB's lines, which answers nothing: samples go there, and
    /// are read back over HTTP. Without a port: 4242.
    pub put: Option<String>,
    /// Whom to trust; absent: the connection is in the clear.
    pub tls: Option<TlsOptions>,
    /// Deadline of a request.
    pub timeout: Duration,
    /// Whether to delete what an earlier run left under the label.
    pub drop: bool,
    /// Maximum number of series.
    pub max_series: usize,
}

impl Default for VictoriaOptions {
    fn default() -> Self {
        Self {
            lines: 10_000,
            put: None,
            tls: None,
            timeout: Duration::from_secs(10),
            drop: false,
            max_series: 1_000_000,
        }
    }
}
