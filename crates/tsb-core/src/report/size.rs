//! What a sample costs: CPU, bytes, and what a week of it would take.

use serde::{Deserialize, Serialize};

/// CPU and bytes a sample.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    /// CPU of generating, encoding and sending, in nanoseconds a sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_cpu_ns_per_sample: Option<f64>,
    /// CPU of receiving and decoding, in nanoseconds a sample; where there is a wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_cpu_ns_per_sample: Option<f64>,
    /// CPU inside the store, in nanoseconds a sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_cpu_ns_per_sample: Option<f64>,
    /// Everything the store occupied at the end, over the samples it held.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_sample: Option<f64>,
    /// Sealed data over the samples in it; absent where nothing was sealed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_bytes_per_sample: Option<f64>,
    /// Files over samples, where the store has files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes_per_sample: Option<f64>,
    /// Bytes on the wire a sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_bytes_per_sample: Option<f64>,
    /// What a day and a week at this rate would occupy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projection: Option<Projection>,
    /// How CPU was divided among the roles.
    pub method: String,
}

/// A longer time at the same rate, measured on a part of the fleet and scaled.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Projection {
    /// Bytes for 86,400 s at the held rate.
    pub day_bytes: f64,
    /// Bytes for seven days at the held rate.
    pub week_bytes: f64,
    /// What was measured to get there.
    pub basis: String,
}

/// What the store occupied at the end, by kind, in bytes.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Size {
    /// Samples that a query could return.
    pub samples: u64,
    /// Sealed data with its index.
    pub sealed_bytes: u64,
    /// Samples in sealed data.
    pub sealed_samples: u64,
    /// Open heads.
    pub head_bytes: u64,
    /// Journal or write-ahead log.
    pub journal_bytes: u64,
    /// Per-series state.
    pub series_bytes: u64,
    /// Free, to be used again.
    pub free_bytes: u64,
}
