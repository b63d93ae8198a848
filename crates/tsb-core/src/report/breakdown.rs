//! Response times taken apart: the composition of each quantile, and the slowest operations with
//! what else happened during each.

use serde::{Deserialize, Serialize};

use crate::breakdown::{Breakdown, EventLog, Parts, WorstOperation};
use crate::latency::Histogram;

/// Where the time from start until done can be divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KnownParts {
    /// A store in this process: all of it is the store's.
    Store,
    /// A wire into a listener of ours: encoding, transport, and decoder and store.
    Wire,
    /// Somewhere else, from where an answer comes: nothing is known of it but its length.
    Answer,
}

/// What response times consist of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BreakdownReport {
    /// The composition of each quantile that enough operations support, and of the maximum.
    pub quantiles: Vec<QuantileShares>,
    /// The slowest operations, slowest first: a hundred, or all if there were fewer.
    pub worst: Vec<SlowOperation>,
    /// Events that were not kept because there were too many: an operation may have overlapped one
    /// that it does not name.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub dropped_events: u64,
}

/// The composition of one quantile of response time: the mean over the operations in a band around
/// it, which is 1/8 to 1/16 of it wide.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QuantileShares {
    /// The quantile; 1 is the slowest operation alone. in [0, 1]
    pub quantile: f64,
    /// Its response time, in nanoseconds.
    pub response_ns: u64,
    /// The shortest response time in the band, in nanoseconds.
    pub from_ns: u64,
    /// The longest.
    pub to_ns: u64,
    /// Number of operations in the band.
    pub operations: u64,
    /// Their parts, as shares of the sum of their response times; they add up to 1.
    pub shares: PartShares,
}

/// Shares of response times, in [0, 1]. A part that this path does not have, or that cannot be told
/// apart on it, is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PartShares {
    /// Time spent waiting behind earlier operations, in the emitter or at the receiver.
    pub waiting: f64,
    /// Time by which the emitter itself was late.
    pub late: f64,
    /// Encoding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<f64>,
    /// From encoded until read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<f64>,
    /// In the store; on a wire, in decoder and store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<f64>,
    /// From start until the answer, where this cannot be told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown: Option<f64>,
}

/// Parts of one response time in nanoseconds; they add up to it. Absent as in [`PartShares`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PartTimes {
    /// Behind earlier operations, in the emitter or at the receiver.
    pub waiting_ns: u64,
    /// In which the generator itself was late.
    pub late_ns: u64,
    /// Encoding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding_ns: Option<u64>,
    /// From encoded until read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport_ns: Option<u64>,
    /// In the store; on a wire, in decoder and store.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store_ns: Option<u64>,
    /// From start until the answer, where this cannot be told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unknown_ns: Option<u64>,
}

/// One of the slowest operations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SlowOperation {
    /// Its group of series.
    pub group: u32,
    /// Tick of the group.
    pub tick: u64,
    /// When it was due, in nanoseconds since the start of the run.
    pub due_ns: u64,
    /// Its response time, in nanoseconds.
    pub response_ns: u64,
    /// What that consists of.
    pub parts: PartTimes,
    /// What else happened between due and done. It is not said that this was the cause.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub during: Vec<EventDuring>,
}

/// Events of one kind that overlapped an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct EventDuring {
    /// What happened.
    pub kind: EventKind,
    /// Number of such events.
    pub events: u64,
    /// How much of the response time they overlapped, in nanoseconds: an upper bound, since when an
    /// event began and ended is known only to the watching thread's interval.
    pub overlap_ns: u64,
}

/// What can happen to an operation that is not in its own parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// The watching thread woke up late without having waited for a CPU: this process stood still.
    Paused,
    /// The watching thread had to wait for a CPU.
    CpuWait,
    /// The hypervisor gave CPU time to other machines.
    CpuStolen,
    /// Page faults of this process with I/O.
    PageFaults,
    /// Tasks of this machine waited for storage.
    DiskStall,
    /// The store committed, or synced its journal.
    Commit,
    /// The store moved what it had committed to where it stays, or removed parts of its journal.
    Checkpoint,
    /// The store wrote out what it had buffered.
    Flush,
    /// A throttle in front of the store held a write back.
    HeldBack,
}

impl EventKind {
    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::Paused,
        Self::CpuWait,
        Self::CpuStolen,
        Self::PageFaults,
        Self::DiskStall,
        Self::Commit,
        Self::Checkpoint,
        Self::Flush,
        Self::HeldBack,
    ];

    /// What happened, as a sentence without its end.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Paused => "this process stood still",
            Self::CpuWait => "no CPU was free",
            Self::CpuStolen => "CPU time was stolen",
            Self::PageFaults => "page faults with I/O",
            Self::DiskStall => "tasks waited for the disk",
            Self::Commit => "the store committed",
            Self::Checkpoint => "the store made a checkpoint",
            Self::Flush => "the store wrote out its buffers",
            Self::HeldBack => "the throttle held writes back",
        }
    }
}

impl EventDuring {
    /// One event, which overlapped by `overlap_ns`.
    pub const fn new(kind: EventKind, overlap_ns: u64) -> Self {
        Self {
            kind,
            events: 1,
            overlap_ns,
        }
    }

    /// Adds another event of this kind.
    pub const fn add(&mut self, overlap_ns: u64) {
        self.events += 1;
        self.overlap_ns += overlap_ns;
    }
}

impl PartShares {
    fn new(known: KnownParts, parts: &Parts) -> Self {
        let sum = parts.response_ns().max(1) as f64;
        let times = PartTimes::new(known, parts);
        let share = |ns: u64| ns as f64 / sum;
        Self {
            waiting: share(times.waiting_ns),
            late: share(times.late_ns),
            encoding: times.encoding_ns.map(share),
            transport: times.transport_ns.map(share),
            store: times.store_ns.map(share),
            unknown: times.unknown_ns.map(share),
        }
    }
}

impl PartTimes {
    /// The parts that are known.
    pub fn new(known: KnownParts, parts: &Parts) -> Self {
        let is_wire = known == KnownParts::Wire;
        let is_known = known != KnownParts::Answer;
        Self {
            waiting_ns: parts.waiting_ns,
            late_ns: parts.late_ns,
            encoding_ns: is_wire.then_some(parts.encoding_ns),
            transport_ns: is_wire.then_some(parts.transport_ns),
            store_ns: is_known.then_some(parts.store_ns),
            unknown_ns: (!is_known).then_some(parts.store_ns),
        }
    }
}

impl SlowOperation {
    fn new(known: KnownParts, start_ns: u64, operation: &WorstOperation) -> Self {
        Self {
            group: operation.group,
            tick: operation.tick,
            due_ns: operation.due_ns.saturating_sub(start_ns),
            response_ns: operation.response_ns,
            parts: PartTimes::new(known, &operation.parts),
            during: Vec::new(),
        }
    }
}

impl BreakdownReport {
    /// Names the events during each of the slowest operations. The run began at `start_ns` of the
    /// clock of `events`.
    pub fn name_events(&mut self, events: &EventLog, start_ns: u64) {
        self.dropped_events = events.dropped();
        for operation in &mut self.worst {
            let due_ns = start_ns.saturating_add(operation.due_ns);
            operation.during = events.during(due_ns, due_ns.saturating_add(operation.response_ns));
        }
    }

    /// The composition of the quantiles of `response`, and the slowest operations of a run that
    /// began at `start_ns` of its clock. `None` where no operation was taken apart.
    pub fn new(known: KnownParts, breakdown: &Breakdown, response: &Histogram, start_ns: u64) -> Option<Self> {
        let worst = breakdown.worst();
        let slowest = worst.first()?;
        let quantiles = [0.5, 0.9, 0.99, 0.999].into_iter().filter_map(|quantile| {
            let response_ns = response.supported_quantile(quantile)?;
            let band = breakdown.around(response_ns)?;
            Some(QuantileShares {
                quantile,
                response_ns,
                from_ns: band.from_ns,
                to_ns: band.to_ns,
                operations: band.operations,
                shares: PartShares::new(known, &band.parts),
            })
        });
        let max = QuantileShares {
            quantile: 1.0,
            response_ns: slowest.response_ns,
            from_ns: slowest.response_ns,
            to_ns: slowest.response_ns,
            operations: 1,
            shares: PartShares::new(known, &slowest.parts),
        };
        Some(Self {
            quantiles: quantiles.chain([max]).collect(),
            worst: worst
                .iter()
                .map(|operation| SlowOperation::new(known, start_ns, operation))
                .collect(),
            dropped_events: 0,
        })
    }
}
