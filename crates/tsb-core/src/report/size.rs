//! What a sample costs: CPU, bytes, and what a week of it would take.

use serde::{Deserialize, Serialize};

/// CPU and bytes of a sample. CPU is in nanoseconds for each sample that was accepted, from
/// before the first was sent until all were flushed.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Making samples, keeping the schedule, recording times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_cpu_ns_per_sample: Option<f64>,
    /// Waiting until samples are due, and for sockets: falling asleep, waking up, spinning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing_cpu_ns_per_sample: Option<f64>,
    /// Encoding, sending, receiving and decoding; where there is a wire.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_cpu_ns_per_sample: Option<f64>,
    /// Inside the store's `write`, in the threads that call it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_cpu_ns_per_sample: Option<f64>,
    /// Stands in place of the one before where that is below what can be measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_cpu_below: Option<CpuBelow>,
    /// Threads of the store's own, where it has some and says what they used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_threads_cpu_ns_per_sample: Option<f64>,
    /// Flushing the store behind the last sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_flush_cpu_ns_per_sample: Option<f64>,
    /// The store's `newest`, called for the staleness of every series.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_newest_cpu_ns_per_sample: Option<f64>,
    /// Looking at staleness and resources, reading clocks, starting and ending threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub watching_cpu_ns_per_sample: Option<f64>,
    /// The sum of the parts above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parts_cpu_ns_per_sample: Option<f64>,
    /// The whole process in the same span, by its own clock: it stands beside the sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_cpu_ns_per_sample: Option<f64>,
    /// Reading everything back, later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audit_cpu_ns_per_sample: Option<f64>,
    /// Everything the store occupied at the end, over the samples verified as stored
    /// (accepted, where nothing was read back).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_sample: Option<f64>,
    /// Sealed data over the samples in it; absent where nothing was sealed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed_bytes_per_sample: Option<f64>,
    /// Blocks of the file system over the samples verified as stored, where the store has
    /// files on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes_per_sample: Option<f64>,
    /// Bytes on the wire a sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wire_bytes_per_sample: Option<f64>,
    /// What a day and a week at this rate would occupy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projection: Option<Projection>,
    /// Why there is no projection, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projection_absent: Option<String>,
    /// How CPU was divided among the roles.
    pub method: String,
}

/// A cost that is too small to be measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CpuBelow {
    /// It is less than this, in nanoseconds of CPU.
    pub ns_per_sample: f64,
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
    /// Blocks of the file system that the store's files occupy, where it has some on this
    /// machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
}
