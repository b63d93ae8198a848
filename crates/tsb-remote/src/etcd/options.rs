//! What a user may choose.

use std::path::PathBuf;
use std::time::Duration;

/// Everything but where the members are.
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// How long samples are kept at least after they were written; `None`: for ever.
    pub ttl_ns: Option<i64>,
    /// Samples of a transaction, at the most; a server takes 128 unless it was started with
    /// another `--max-txn-ops`. in [1, ..)
    pub operations: usize,
    /// Transactions of one write that are under way at once. in [1, ..)
    pub parallel: usize,
    /// How long a request may take, with all members that are tried for it.
    pub timeout: Duration,
    /// Whether to speak TLS.
    pub tls: bool,
    /// File with the certificates to trust; `None`: those of the web.
    pub tls_ca: Option<PathBuf>,
    /// Remove what an earlier run has left below the prefix.
    pub drop: bool,
    /// Series that can be defined, at the most.
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
