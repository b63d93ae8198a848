//! What only the experiment of rrdcached measures.

mod passes;

use serde::{Deserialize, Serialize};

use crate::report::device::DeviceProfile;
pub use passes::{Pass, passes};

/// Everything that `tsb reproduce rrdcached` reports.
pub type Reproduction = super::Reproduction<RrdcachedPlan, RrdcachedDetails>;

/// What the experiment of rrdcached can be asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RrdcachedPlan {
    /// Numbers of files, in ascending order.
    pub files: Vec<usize>,
    /// Rounds, in each of which every engine has a turn; also those from which costs are taken.
    #[serde(default)]
    pub rounds: u32,
    /// The folder in which it made its files.
    pub dir: String,
}

/// The measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RrdcachedDetails {
    /// Which rrdcached took part, or why none did.
    pub daemon: String,
    /// Number of files that did not hold their last update, over all checks.
    pub files_wrong: u64,
    /// The passes over all files.
    pub rounds: Vec<Round>,
    /// What the publication did not measure.
    pub beyond: Vec<Beyond>,
    /// What a model of the disk predicts; absent unless it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub simulated: Option<Simulated>,
}

/// Predictions of drains, from a model of the disk and the costs of small drains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Simulated {
    /// The disk, as measured before.
    pub device: DeviceProfile,
    /// Cores of the machine.
    pub cores: usize,
    /// Number of files of the drains from which the costs were taken.
    pub cost_files: usize,
    /// The costs of each engine.
    pub costs: Vec<EngineCosts>,
    /// What is predicted, beside what was measured if it was.
    pub points: Vec<Prediction>,
    /// Hours that were simulated only.
    pub hours: Vec<SimulatedHours>,
    /// CPU time of all these simulations.
    pub cpu_seconds: f64,
}

/// The costs of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineCosts {
    /// The engine.
    pub way: String,
    /// Its costs.
    #[serde(flatten)]
    pub costs: DrainCosts,
    /// Time of an update that is sent alone, until its answer, in nanoseconds.
    pub answer_ns: u64,
}

/// What a server's work costs on one machine, as measured on few files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainCosts {
    /// Time from an accepted update to the next, in batches of 1,000, in nanoseconds.
    pub accept_ns: u64,
    /// Time on a core of a write of one file, in nanoseconds.
    pub write_ns: u64,
    /// The same of each value in it, in nanoseconds.
    pub value_ns: u64,
    /// Time on a core of each page that has to be read, in nanoseconds.
    pub read_ns: u64,
    /// Files that a thread takes at once, and whose pages it requests together; 1 for a server that
    /// does not read ahead.
    pub files_at_once: usize,
    /// Whether its timeouts count in whole seconds, as rrdcached's do.
    pub is_in_seconds: bool,
}

/// A predicted figure, and the measured one if there is one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prediction {
    /// What is predicted.
    pub what: String,
    /// The engine.
    pub way: String,
    /// The unit of the figures.
    pub unit: String,
    /// The prediction.
    pub predicted: f64,
    /// The mean over real runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<f64>,
    /// The lower end of its 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The upper end of that interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// `predicted / measured - 1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<f64>,
}

/// Hours of updates in simulated time: every file is updated once per minute.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SimulatedHours {
    /// The engine.
    pub way: String,
    /// Number of files.
    pub files: usize,
    /// Duration of the updates.
    pub hours: u64,
    /// Write timeout.
    pub timeout_seconds: u64,
    /// Upper bound of the random delay beyond it.
    pub jitter_seconds: u64,
    /// Values in one write of a file.
    pub coalescing: f64,
    /// Longest time that an update waited for its write to begin.
    pub wait_max_seconds: f64,
    /// Largest number of queued files.
    pub queued_most: u64,
    /// Share of one core that the threads used.
    pub core_share: f64,
    /// Share of the time in which the disk was busy.
    pub device_share: f64,
    /// Time of the last drain.
    pub drain_seconds: f64,
    /// Then until all was synced.
    pub sync_seconds: f64,
    /// A hash of all events: the same for the same device, costs and program.
    pub fingerprint: String,
}

/// One pass, which updates every file once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Number of files.
    pub files: usize,
    /// The engine: `direct`, `librrd`, `write-cache+rrd` or `rrdcached`.
    pub way: String,
    /// The round, from 0.
    #[serde(default)]
    pub round: u32,
    /// Which of the passes of its turn, from 0.
    #[serde(default)]
    pub nth: usize,
    /// `cold, across` is the publication's first pass, `warm, within` its second and third.
    pub pass: String,
    /// Updates that ended a step, each of which writes a row of two archives.
    pub crossing: usize,
    /// The page cache before the pass began; absent where `fincore` is not installed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resident: Option<Resident>,
    /// Time until the last update was answered, or, for direct updates, was in its file.
    pub accept_seconds: f64,
    /// Then until the counters say that everything is in the files.
    pub drain_seconds: f64,
    /// Then until everything is synced.
    pub sync_seconds: f64,
    /// CPU time of an update, of the process that writes the files.
    pub cpu_us_per_update: f64,
    /// Bytes that this process read from storage; absent where the kernel does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_bytes_per_update: Option<f64>,
    /// Bytes that this process wrote to storage; absent where the kernel does not say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes_per_update: Option<f64>,
}

impl Round {
    /// Time from the first update until everything is synced.
    pub fn total_seconds(&self) -> f64 {
        self.accept_seconds + self.drain_seconds + self.sync_seconds
    }
}

/// Bytes of the files in the page cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resident {
    /// Bytes in the page cache.
    pub bytes: u64,
    /// Size of the files.
    pub of_bytes: u64,
}

/// A measurement that the publication lacks. `what` names its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "what")]
pub enum Beyond {
    /// A drain, by the number of values that wait for each file.
    #[serde(rename = "values that wait for each file before a drain, in batches of 1000 commands, warm")]
    Depth(Drain),
    /// A drain, by the number of write threads.
    #[serde(rename = "drain of 10 values for each file, by threads that write, warm")]
    Threads {
        /// Number of write threads.
        threads: usize,
        /// The drain.
        #[serde(flatten)]
        drain: Drain,
    },
    /// Acceptance, by the size of a batch.
    #[serde(rename = "commands of a batch")]
    Batch {
        /// The engine.
        way: String,
        /// Number of files, each updated once.
        files: usize,
        /// Commands per batch.
        batch: usize,
        /// Updates accepted per second.
        accepted_per_second: f64,
    },
    /// The time of a flush of one file behind a queue of all others.
    #[serde(rename = "FLUSH of one file while all files are drained")]
    Flush {
        /// The engine.
        way: String,
        /// Number of files.
        files: usize,
        /// Number of flushes that were timed.
        flushes: usize,
        /// Their quantiles.
        #[serde(flatten)]
        times: TimeQuantiles,
    },
    /// The time of an acknowledgement, by the journal's policy.
    #[serde(rename = "acknowledgement of one update, by policy of the journal; each opens its file for the first time")]
    Ack {
        /// The engine.
        way: String,
        /// When the journal syncs.
        policy: String,
        /// Number of acknowledgements that were timed.
        acks: usize,
        /// Their quantiles.
        #[serde(flatten)]
        times: TimeQuantiles,
    },
    /// Continuous updates, by timeout and jitter of the cache.
    #[serde(rename = "updates of every file every 250 ms, by timeout and jitter")]
    Feed {
        /// The engine.
        way: String,
        /// Number of files.
        files: usize,
        /// Duration of the updates.
        seconds: u64,
        /// Age at which a file's values are written.
        timeout_seconds: u64,
        /// Random delay beyond that, at most.
        jitter_seconds: u64,
        /// Values written per write of a file.
        coalescing: f64,
        /// Largest number of files in the queue.
        queued_most: u64,
        /// Largest number of values written in 250 ms.
        values_written_in_a_tick_most: u64,
        /// Values that had not been written when the updates ended.
        values_left: u64,
        /// Time until these were written.
        drain_seconds: f64,
    },
}

/// A drain of all files, from the first accepted value until everything is synced.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drain {
    /// The engine.
    pub way: String,
    /// Number of files.
    pub files: usize,
    /// Values pending per file before the drain.
    pub values_per_file: usize,
    /// Values written per write of a file.
    pub coalescing: f64,
    /// Time until all values were accepted.
    pub accept_seconds: f64,
    /// Then until all were in the files.
    pub drain_seconds: f64,
    /// Then until all were synced.
    pub sync_seconds: f64,
    /// Values per second over all of this.
    pub values_per_second: f64,
    /// CPU time of a value, of the process that writes the files.
    pub cpu_us_per_value: f64,
}

/// Quantiles in microseconds; one that was not taken, or that too few values support, is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimeQuantiles {
    /// The median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_us: Option<f64>,
    /// The 0.9 quantile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90_us: Option<f64>,
    /// The 0.99 quantile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_us: Option<f64>,
    /// The 0.999 quantile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_us: Option<f64>,
}
