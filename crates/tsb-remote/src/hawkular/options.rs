//! The options of a Hawkular client.

use std::time::Duration;

use super::kept::KeptSamples;
use crate::TlsOptions;

/// All options except the address.
#[derive(Clone, Debug)]
pub struct HawkularOptions {
    /// The paths that are used.
    pub api: HawkularApi,
    /// What the server keeps of samples; `None`: what its status says.
    pub kept: Option<KeptSamples>,
    /// Length of a slot, where it keeps one sample per slot. At least 1 ms, in whole milliseconds.
    pub slot: Duration,
    /// How long it keeps samples; `None`: what its documents say. At least two slots where it has slots.
    pub retention: Option<Duration>,
    /// Maximum number of samples per request. At least 1.
    pub samples: usize,
    /// Whom to trust; absent: the connection is in the clear.
    pub tls: Option<TlsOptions>,
    /// Deadline of a request.
    pub timeout: Duration,
    /// Whether to delete what an earlier run left in the tenant.
    pub drop: bool,
    /// Maximum number of series.
    pub max_series: usize,
}

impl Default for HawkularOptions {
    fn default() -> Self {
        Self {
            api: HawkularApi::Raw,
            kept: None,
            slot: Duration::from_secs(30),
            retention: None,
            samples: 10_000,
            tls: None,
            timeout: Duration::from_secs(10),
            drop: false,
            max_series: 1_000_000,
        }
    }
}

/// Which paths of the interface are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HawkularApi {
    /// `gauges/raw` and `gauges/raw/query`, which reads many gauges per request.
    Raw,
    /// `gauges/data` and `gauges/ID/data`: those of older servers, which read one gauge per request.
    Data,
}

impl HawkularApi {
    /// The last word of its paths.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::Data => "data",
        }
    }
}
