//! The options of an etcd client.

use std::path::PathBuf;
use std::time::Duration;

/// All options except the address.
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// Minimum time that samples are kept after they were written, in nanoseconds; `None`: for
    /// ever.
    pub ttl_ns: Option<i64>,
    /// Maximum number of samples per transaction, at least 1. A server accepts 128 unless it was
    /// started with another `--max-txn-ops`.
    pub operations: usize,
    /// Maximum number of transactions of one write in flight, at least 1.
    pub parallel: usize,
    /// Deadline of a request, over all members that are tried.
    pub timeout: Duration,
    /// Whether to use TLS.
    pub tls: bool,
    /// File with the trusted certificates; `None`: the usual web roots.
    pub tls_ca: Option<PathBuf>,
    /// Whether to remove what an earlier run left below the prefix.
    pub drop: bool,
    /// Maximum number of series.
    pub max_series: usize,
}

impl Default for EtcdOptions {
    fn default() -> Self {
        Self {
            ttl_ns: None,
            operations: 128,
            parallel: 16,
            timeout: Duration::from_secs(10),
            tls: false,
            tls_ca: None,
            drop: false,
            max_series: 1_000_000,
        }
    }
}
