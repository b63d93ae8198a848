//! The cost of a sample: CPU, bytes, and the projected size of a day and a week.

use serde::{Deserialize, Serialize};

/// CPU and bytes per sample. CPU is in nanoseconds per accepted sample, from before the first
/// sample was sent until all were flushed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cost {
    /// Generating samples, following the schedule, recording times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_cpu_ns_per_sample: Option<f64>,
    /// Waiting for due times and sockets: going to sleep, waking up, spinning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_cpu_ns_per_sample: Option<f64>,
    /// Encoding, sending, receiving and decoding; only with a wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_cpu_ns_per_sample: Option<f64>,
    /// Inside the store's `write`, on the calling threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_cpu_ns_per_sample: Option<f64>,
    /// Replaces `store_cpu_ns_per_sample` when that is too small to measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_cpu_below: Option<CpuBelow>,
    /// The store's own threads, if it has some and reports their CPU time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_threads_cpu_ns_per_sample: Option<f64>,
    /// Flushing the store after the last sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_flush_cpu_ns_per_sample: Option<f64>,
    /// The store's `newest`, called to measure the staleness of every series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_newest_cpu_ns_per_sample: Option<f64>,
    /// Threads that asked queries: choosing, waiting, the store's answers, and checking them; only
    /// with queries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queries_cpu_ns_per_sample: Option<f64>,
    /// Sampling staleness and resources, reading clocks, starting and ending threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watching_cpu_ns_per_sample: Option<f64>,
    /// The sum of the parts above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts_cpu_ns_per_sample: Option<f64>,
    /// The whole process in the same time, by the process CPU clock: a check on the sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_cpu_ns_per_sample: Option<f64>,
    /// Reading everything back after the run, per sample of the run and of its history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_cpu_ns_per_sample: Option<f64>,
    /// Everything the store occupied at the end, per sample verified as stored (per accepted
    /// sample if nothing was read back).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_sample: Option<f64>,
    /// Sealed data per sample in it; absent when nothing is sealed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_bytes_per_sample: Option<f64>,
    /// File system blocks per sample verified as stored, if the store has files on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes_per_sample: Option<f64>,
    /// Bytes on the wire per sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_bytes_per_sample: Option<f64>,
    /// Projected size of a day and a week at this rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projection: Option<Projection>,
    /// Why there is no projection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projection_absent: Option<String>,
    /// How CPU time was divided among the parts.
    pub method: String,
}

/// A cost that is too small to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CpuBelow {
    /// Upper bound, in nanoseconds of CPU.
    pub ns_per_sample: f64,
}

impl CpuBelow {
    /// A cost below `ns_per_sample`.
    pub const fn new(ns_per_sample: f64) -> Self {
        Self { ns_per_sample }
    }
}

/// The size after a longer time at the same rate, measured on a part of the fleet and scaled.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Projection {
    /// Bytes after 86,400 s at the held rate.
    pub day_bytes: f64,
    /// Bytes after seven days at the held rate.
    pub week_bytes: f64,
    /// What was measured for the projection.
    pub basis: String,
}

impl Projection {
    /// The size at a rate that stays the same, from the bytes of one day and what was measured.
    pub fn new(day_bytes: f64, basis: impl Into<String>) -> Self {
        Self {
            day_bytes,
            week_bytes: 7.0 * day_bytes,
            basis: basis.into(),
        }
    }
}

/// What the store occupied at the end, by kind, in bytes.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[non_exhaustive]
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
    /// Free space that the store can reuse.
    pub free_bytes: u64,
    /// File system blocks of the store's files, if it has some on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
}
