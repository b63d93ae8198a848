//! The specification of a workload: the part of a plan that says what is sent.
//!
//! All types here serialize and refuse unknown fields; [`WorkloadSpec::check`] validates them
//! before a workload is built.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::error::WorkloadError;
use super::fleet::FleetSpec;
use crate::time::SECOND_NS;

/// Maximum number of series in a workload, later generations of churn included.
pub const MAX_SERIES: usize = 1 << 26;

/// A complete workload: the same spec gives the same bytes on every machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// Which fleet reports.
    pub fleet: FleetSpec,
    /// Series alive at the start; absent: the fleet's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<usize>,
    /// The seed of all random draws.
    #[serde(default)]
    pub seed: u64,
    /// Nanoseconds between two samples of a series; absent: the fleet's default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_ns: Option<u64>,
    /// Several intervals in one fleet, by host; empty: one interval for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<IntervalShare>,
    /// The phases of the hosts within their interval.
    #[serde(default)]
    pub phase: Phase,
    /// The samples that form one operation.
    #[serde(default)]
    pub batch: BatchMode,
    /// In `tick` mode: the number of contiguous parts in which the fleet's tick is sent, one per
    /// worker.
    #[serde(default = "one")]
    pub tick_parts: usize,
    /// The groups of the fleet that are sent, where others send the rest; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<FleetPart>,
    /// The form of series names.
    #[serde(default)]
    pub keys: KeyForm,
    /// Series that come and go; absent: all live for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub churn: Option<Churn>,
    /// Samples that are late, missing, doubled or swapped.
    #[serde(default)]
    pub disorder: Disorder,
    /// Random delay of timestamps.
    #[serde(default)]
    pub jitter: Jitter,
    /// Timestamps are whole multiples of this many nanoseconds from the base (phases and jitter
    /// are rounded down): the resolution of the wire or the store. Due times are not rounded.
    #[serde(default = "one_ns")]
    pub resolution_ns: u64,
}

const fn one() -> usize {
    1
}

const fn one_ns() -> u64 {
    1
}

impl WorkloadSpec {
    /// The fleet's defaults, with a seed and without disorder.
    pub fn new(fleet: FleetSpec, seed: u64) -> Self {
        Self {
            fleet,
            series: None,
            seed,
            interval_ns: None,
            intervals: Vec::new(),
            phase: Phase::default(),
            batch: BatchMode::default(),
            tick_parts: 1,
            part: None,
            keys: KeyForm::default(),
            churn: None,
            disorder: Disorder::default(),
            jitter: Jitter::default(),
            resolution_ns: 1,
        }
    }

    /// Validates the spec.
    ///
    /// # Errors
    /// The first invalid field, with the reason.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let invalid = WorkloadError::invalid;
        if self.series == Some(0) {
            return Err(invalid("series", "must be at least 1"));
        }
        if self.tick_parts == 0 || self.tick_parts > 4096 {
            return Err(invalid("tick_parts", "must be from 1 to 4096"));
        }
        if self.interval_ns.is_some() && !self.intervals.is_empty() {
            return Err(invalid("intervals", "cannot be given together with interval_ns"));
        }
        if self.batch == BatchMode::Series(0) {
            return Err(invalid("batch", "must hold at least one series"));
        }
        if self.resolution_ns == 0 {
            return Err(invalid("resolution_ns", "must be at least 1"));
        }
        let one = self.interval_ns.map(|interval_ns| IntervalShare {
            interval_ns,
            share: 1.0,
        });
        for share in self.intervals.iter().chain(&one) {
            share.check(self)?;
        }
        if let Some(churn) = &self.churn {
            churn.check()?;
        }
        self.jitter.check(self.resolution_ns)?;
        self.disorder.check()
    }
}

/// Consecutive groups of a fleet: what one of several processes sends. The parts of a fleet send
/// together exactly what the whole sends: names, values and times do not depend on the division.
/// Ids and groups count from 0 in each part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetPart {
    /// The first group, by its index in the whole fleet.
    pub first_group: u32,
    /// Number of groups; at least 1.
    pub groups: u32,
}

impl FleetPart {
    /// The indices of its groups in the whole fleet.
    pub const fn range(self) -> Range<usize> {
        self.first_group as usize..self.first_group as usize + self.groups as usize
    }
}

/// One of several intervals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IntervalShare {
    /// Nanoseconds between two samples of a series.
    pub interval_ns: u64,
    /// Share of the hosts with this interval, relative to the other shares.
    pub share: f64,
}

impl IntervalShare {
    fn check(self, spec: &WorkloadSpec) -> Result<(), WorkloadError> {
        let field = if spec.intervals.is_empty() {
            "interval_ns"
        } else {
            "intervals"
        };
        let invalid = |what: &str| Err(WorkloadError::invalid(field, what));
        if self.interval_ns == 0 || self.interval_ns > 366 * 86_400 * SECOND_NS {
            return invalid("an interval must be from 1 ns to a year");
        }
        if !self.interval_ns.is_multiple_of(spec.resolution_ns) {
            return invalid("an interval must be a multiple of resolution_ns");
        }
        spec.jitter.fits(self.interval_ns)?;
        if !(self.share.is_finite() && self.share > 0.0) {
            return invalid("a share must be above 0");
        }
        Ok(())
    }
}

/// The phases of the hosts within their interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// A random phase per host, drawn once.
    #[default]
    Seeded,
    /// All hosts at the same time.
    Aligned,
}

/// The samples that form one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum BatchMode {
    /// One host's tick.
    #[default]
    Host,
    /// One message of a host: its tick, or part of it if the fleet file limits the series per
    /// message (`[host] message`).
    Message,
    /// As [`BatchMode::Message`], with at most this many series. in [1, ..)
    Series(u32),
    /// The tick of the whole fleet (of all hosts with the same interval), at phase 0.
    Tick,
}

/// The form of series names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum KeyForm {
    /// One dotted name with all parts, as in Graphite.
    #[default]
    Name,
    /// A name for the family, and labels for host, zone and so on.
    Labels,
}

/// Series that come and go, as a pure function of the tick.
///
/// Ids are assigned up to the horizon: a series that replaces another has its own id and key.
/// After the horizon nothing changes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Churn {
    /// Which pattern.
    pub mode: ChurnMode,
    /// How far ahead births and deaths are planned, in nanoseconds.
    pub horizon_ns: u64,
    /// Maximum number of series that come and go together.
    #[serde(default = "default_unit")]
    pub unit: u32,
}

const fn default_unit() -> u32 {
    54
}

/// Churn patterns, named as in avalanche.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ChurnMode {
    /// A constant number; each series lives this long and is replaced, with births spread evenly.
    Steady {
        /// Lifetime of a series, in nanoseconds.
        lifetime_ns: u64,
    },
    /// Rises linearly from the fleet's number to `multiple` times it, and falls again.
    Gradual {
        /// The highest number over the fleet's own; above 1.
        multiple: f64,
        /// Nanoseconds from one minimum to the next.
        period_ns: u64,
    },
    /// Twice the number in the second half of every period.
    DoubleHalve {
        /// Nanoseconds from one doubling to the next.
        period_ns: u64,
    },
    /// `multiple` times the number, for a short time at the end of every period.
    Spike {
        /// The peak number divided by the fleet's own; above 1.
        multiple: f64,
        /// Nanoseconds from one spike to the next.
        period_ns: u64,
        /// Nanoseconds a spike lasts; below the period.
        length_ns: u64,
    },
}

impl Churn {
    fn check(&self) -> Result<(), WorkloadError> {
        let invalid = |field: &str, what: &str| Err(WorkloadError::invalid(field, what));
        if self.unit == 0 {
            return invalid("churn.unit", "must be at least 1");
        }
        let (multiple, period_ns, length_ns) = match self.mode {
            ChurnMode::Steady { lifetime_ns } => (2.0, lifetime_ns, 1),
            ChurnMode::Gradual { multiple, period_ns } => (multiple, period_ns, 1),
            ChurnMode::DoubleHalve { period_ns } => (2.0, period_ns, 1),
            ChurnMode::Spike {
                multiple,
                period_ns,
                length_ns,
            } => (multiple, period_ns, length_ns),
        };
        if !(multiple > 1.0 && multiple <= 100.0) {
            return invalid("churn.mode.multiple", "must be above 1 and at most 100");
        }
        if period_ns < 2 || length_ns == 0 || length_ns >= period_ns {
            return invalid("churn.mode", "a period must be longer than what happens in it");
        }
        if self.horizon_ns / period_ns > 100_000 {
            return invalid("churn.horizon_ns", "must be at most 100,000 periods or lifetimes");
        }
        Ok(())
    }
}

/// Samples that are late, missing, doubled or swapped; at most one of these per sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Disorder {
    /// Probability that a sample is sent some ticks later, after all other samples.
    pub late: f64,
    /// A late sample is 1 to this many ticks late, uniformly distributed.
    pub late_ticks: u32,
    /// Probability that a sample is never sent.
    pub missing: f64,
    /// Probability that a sample is sent twice, directly one after the other.
    pub duplicate: f64,
    /// Probability that a sample is swapped with the next of its series.
    pub out_of_order: f64,
}

impl Default for Disorder {
    fn default() -> Self {
        Self {
            late: 0.0,
            late_ticks: 10,
            missing: 0.0,
            duplicate: 0.0,
            out_of_order: 0.0,
        }
    }
}

impl Disorder {
    /// Whether every sample is sent once and in order.
    pub fn is_none(&self) -> bool {
        self.late + self.missing + self.duplicate + self.out_of_order == 0.0
    }

    fn check(&self) -> Result<(), WorkloadError> {
        let named = [
            ("disorder.late", self.late),
            ("disorder.missing", self.missing),
            ("disorder.duplicate", self.duplicate),
            ("disorder.out_of_order", self.out_of_order),
        ];
        for (field, probability) in named {
            if !(0.0..=1.0).contains(&probability) {
                return Err(WorkloadError::invalid(field, "must be a probability from 0 to 1"));
            }
        }
        if named.iter().map(|(_, probability)| probability).sum::<f64>() > 1.0 {
            return Err(WorkloadError::invalid(
                "disorder",
                "the probabilities add up to more than 1",
            ));
        }
        if self.late_ticks == 0 || self.late_ticks > 10_000 {
            return Err(WorkloadError::invalid("disorder.late_ticks", "must be from 1 to 10000"));
        }
        Ok(())
    }
}

/// Random delay of timestamps: never negative, bounded, drawn per sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Jitter {
    /// Maximum delay, in nanoseconds; 0: none. Must be below the shortest interval, so that the
    /// samples of a series stay in order.
    pub max_ns: u64,
    /// Delays are whole multiples of this many nanoseconds (and of the resolution).
    pub step_ns: u64,
}

impl Jitter {
    /// Jitter up to `max_ns`, with the finest power of ten as step that this allows.
    pub fn up_to(max_ns: u64) -> Self {
        let mut step_ns = 1;
        while max_ns / step_ns >= u64::from(u32::MAX) {
            step_ns *= 10;
        }
        Self { max_ns, step_ns }
    }

    /// Refuses jitter that could move a sample past the next of its series.
    pub(super) fn fits(self, shortest_ns: u64) -> Result<(), WorkloadError> {
        if self.max_ns < shortest_ns {
            return Ok(());
        }
        let seconds = |ns: u64| ns as f64 / SECOND_NS as f64;
        Err(WorkloadError::invalid(
            "jitter.max_ns",
            &format!(
                "must be shorter than the shortest interval: a timestamp {} s late would pass the next, after {} s",
                seconds(self.max_ns),
                seconds(shortest_ns)
            ),
        ))
    }

    fn check(self, resolution_ns: u64) -> Result<(), WorkloadError> {
        let limit = u64::from(u32::MAX);
        let step_ns = self.step_ns.max(1).checked_next_multiple_of(resolution_ns);
        match step_ns {
            _ if self.max_ns == 0 => Ok(()),
            Some(step_ns) if step_ns <= limit && self.max_ns / step_ns < limit => Ok(()),
            _ => Err(WorkloadError::invalid(
                "jitter.step_ns",
                &format!(
                    "must be from {} to {limit}, where max_ns is {}: up to {limit} steps are drawn from",
                    self.max_ns / limit + 1,
                    self.max_ns
                ),
            )),
        }
    }
}

impl Default for Jitter {
    fn default() -> Self {
        Self { max_ns: 0, step_ns: 1 }
    }
}
