//! Workloads: simulated fleets, and exactly what they send.
//!
//! A [`Workload`] is built from a [`WorkloadSpec`] and never changes. It is shared by the workers,
//! which generate their operations with a [`Generator`] each (rows: many series, one tick), and by
//! the audit, which regenerates the same samples with a [`Replay`] (columns: one series, many
//! ticks). Every value, timestamp and disturbance is a function of (seed, series, tick), so the
//! two agree to the bit in any order.
//!
//! It sends nothing and has no clock. Due times come from `schedule`; this module only defines
//! ticks and the timestamps of samples.

mod churn;
mod columns;
mod disorder;
mod entropy;
mod error;
pub mod fleet;
mod generator;
mod hash;
mod layout;
mod lives;
mod messages;
mod names;
mod offered;
mod part;
mod replay;
mod rows;
mod spec;
mod trace;
mod value_model;

use std::ops::Range;

pub use error::WorkloadError;
pub use fleet::{FleetFile, FleetSpec, Shape};
pub use generator::Generator;
pub use layout::SeriesGroup;
pub use offered::{Estimator, Offered};
pub use replay::{Checkpoint, Replay, Sent, SentAs, SentTimes};
pub use spec::{
    BatchMode, Churn, ChurnMode, Disorder, FleetPart, IntervalShare, Jitter, KeyForm, MAX_SERIES, Phase, WorkloadSpec,
};

pub use trace::{COPY_LABEL, GridOption, TraceSource, Window};

use crate::schedule::TickTimes;
use crate::series::{Catalog, SeriesId};
use crate::time::{SECOND_NS, Timestamp};
use crate::trace::TraceProblems;
use disorder::DisorderModel;
pub(crate) use hash::mix64;
use hash::{Purpose, Stream};
use layout::{Block, Layout};
use trace::RecordedWorkload;
use value_model::{Keys, ValueModel};

/// A fleet, planned down to each series. Immutable; share it in an `Arc`.
///
/// ```
/// use tsb_core::Timestamp;
/// use tsb_core::workload::{FleetSpec, Workload, WorkloadSpec};
///
/// # fn main() -> Result<(), tsb_core::workload::WorkloadError> {
/// let mut spec = WorkloadSpec::new(FleetSpec::Kstat, 42);
/// spec.series = Some(540);
/// let workload = Workload::new(&spec)?;
/// assert_eq!(workload.catalog().len(), 540);
/// // What the first host sends at its third tick; the same seed sends the same.
/// let base = Timestamp::from_secs(1_700_000_000);
/// let mut generator = workload.generator(0..1, base);
/// let sent: Vec<_> = generator.operation(0, 3).iter().collect();
/// assert_eq!(sent, workload.generator(0..1, base).operation(0, 3).iter().collect::<Vec<_>>());
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Workload {
    spec: WorkloadSpec,
    layout: Layout,
    disorder: DisorderModel,
    /// The phase of each group in timestamps: rounded to the resolution.
    stamp_phases: Vec<i64>,
    /// The recording that provides the values; `None` for a simulated fleet.
    recorded: Option<RecordedWorkload>,
}

impl Workload {
    /// Builds a workload.
    ///
    /// # Errors
    /// Names the invalid field of the spec or of the fleet file.
    pub fn new(spec: &WorkloadSpec) -> Result<Self, WorkloadError> {
        if let FleetSpec::Trace(source) = &spec.fleet {
            spec.check()?;
            return Self::of_trace(spec, &source.open()?);
        }
        spec.check()?;
        let file = spec.fleet.definition()?;
        let whole = layout::plan(spec, &file)?;
        match spec.part {
            Some(part) => Self::of_layout(spec, part::cut(whole, part)?, None),
            None => Self::of_layout(spec, whole, None),
        }
    }

    /// Builds a workload that replays a trace, whatever fleet the spec names.
    ///
    /// # Errors
    /// Names the field of the spec that is invalid with a trace, or what the trace lacks.
    pub fn of_trace(spec: &WorkloadSpec, trace: &crate::trace::Trace) -> Result<Self, WorkloadError> {
        spec.check()?;
        if spec.part.is_some() {
            return Err(WorkloadError::invalid("part", "a recording cannot be divided"));
        }
        let (recorded, layout) = RecordedWorkload::plan(spec, trace)?;
        Self::of_layout(spec, layout, Some(recorded))
    }

    fn of_layout(
        spec: &WorkloadSpec,
        layout: Layout,
        recorded: Option<RecordedWorkload>,
    ) -> Result<Self, WorkloadError> {
        let shortest = layout.groups.iter().map(|group| group.interval_ns).min().unwrap_or(1);
        spec.jitter.fits(shortest)?;
        let has_ticks = recorded.as_ref().is_none_or(|recorded| recorded.tick_times().is_none());
        if has_ticks
            && layout
                .groups
                .iter()
                .any(|group| group.interval_ns % spec.resolution_ns != 0)
        {
            return Err(WorkloadError::invalid(
                "resolution_ns",
                "every interval must be a multiple of it",
            ));
        }
        let resolution_ns = spec.resolution_ns;
        let stamp_phase = |group: &SeriesGroup| (group.phase_ns - group.phase_ns % resolution_ns) as i64;
        Ok(Self {
            stamp_phases: layout.groups.iter().map(stamp_phase).collect(),
            disorder: DisorderModel::new(spec, layout.first_series),
            spec: spec.clone(),
            layout,
            recorded,
        })
    }

    /// The spec that it was built from.
    pub fn spec(&self) -> &WorkloadSpec {
        &self.spec
    }

    /// The key of every series, later generations of churn included.
    pub fn catalog(&self) -> &Catalog {
        &self.layout.catalog
    }

    /// The groups of series that report together. Ids are contiguous and ascending by group.
    pub fn groups(&self) -> &[SeriesGroup] {
        &self.layout.groups
    }

    /// The group of a series.
    pub fn group_of(&self, series: SeriesId) -> Option<usize> {
        let groups = &self.layout.groups;
        let index = groups.partition_point(|group| group.first <= series).checked_sub(1)?;
        (series.0 - groups[index].first.0 < groups[index].len).then_some(index)
    }

    /// The ticks of its group at which a series is alive.
    pub fn lifetime(&self, series: SeriesId) -> Option<Range<u64>> {
        self.block_of(series).map(|block| block.ticks.clone())
    }

    /// Number of series of a group that are alive at a tick: the samples due in it, not counting
    /// lateness, losses and duplicates.
    pub fn alive(&self, group: usize, tick: u64) -> u32 {
        if let Some(recorded) = &self.recorded {
            return recorded.count(group, self.ids(group), tick);
        }
        let blocks = &self.layout.blocks[self.layout.groups[group].blocks.clone()];
        blocks
            .iter()
            .filter(|block| block.ticks.contains(&tick))
            .map(|block| block.len)
            .sum()
    }

    /// Samples due per second at natural speed, at the start of the fleet.
    pub fn samples_per_second(&self) -> f64 {
        self.per_second(|group| self.samples_at_start(group))
    }

    fn samples_at_start(&self, group: usize) -> f64 {
        // Hosts that arrive later are not counted.
        if self.layout.groups[group].ticks.start == 0 {
            self.usual_samples(group)
        } else {
            0.0
        }
    }

    /// Samples per operation of a group: at the start for a simulated fleet, the mean for a
    /// recorded one.
    pub fn usual_samples(&self, group: usize) -> f64 {
        match &self.recorded {
            Some(recorded) => recorded.mean_count(group, &self.ids(group)),
            None => f64::from(self.alive(group, self.layout.groups[group].ticks.start)),
        }
    }

    /// The replayed part of a recording and its period; `None` for a simulated fleet, whose values
    /// never repeat.
    pub fn window(&self) -> Option<Window> {
        self.recorded.as_ref().map(RecordedWorkload::window)
    }

    /// The rows of a recording that were left out when it was read.
    pub fn trace_problems(&self) -> Option<&TraceProblems> {
        self.recorded.as_ref().map(RecordedWorkload::problems)
    }

    /// What the reader of a recording decided where the file is ambiguous.
    pub fn trace_decisions(&self) -> &[String] {
        self.recorded.as_ref().map_or(&[], RecordedWorkload::decisions)
    }

    /// The times at which each group reports, if they are not at an interval: the roster is then
    /// built with [`Roster::of_tick_times`](crate::schedule::Roster::of_tick_times).
    pub fn tick_times(&self) -> Option<&[TickTimes]> {
        self.recorded.as_ref().and_then(RecordedWorkload::tick_times)
    }

    /// Number of passes over a recording by the operations of `issued` (a range of ticks per
    /// group); 0 for a simulated fleet. Above 1, values repeat.
    pub fn passes(&self, issued: &[Range<u64>]) -> f64 {
        let Some(window) = self.window() else { return 0.0 };
        let Some(tick_times) = self.tick_times() else {
            return window.passes(issued.iter().map(|ticks| ticks.end).max().unwrap_or(0));
        };
        let ends = tick_times.iter().zip(issued).filter(|(_, ticks)| !ticks.is_empty());
        let last = ends
            .map(|(tick_times, ticks)| tick_times.offset_ns(ticks.end - 1))
            .max();
        last.map_or(0.0, |last| {
            (last as f64 + window.interval_ns as f64) / window.length_ns as f64
        })
    }

    /// The checksum that a plan stores to identify its recording.
    pub fn trace_checksum(&self) -> Option<u32> {
        self.recorded.as_ref().map(RecordedWorkload::checksum)
    }

    /// The ids of a group.
    fn ids(&self, group: usize) -> Range<u32> {
        let group = &self.layout.groups[group];
        group.first.0..group.first.0 + group.len
    }

    /// Operations per second at natural speed, at the start of the fleet.
    pub fn operations_per_second(&self) -> f64 {
        self.per_second(|group| f64::from(u8::from(self.samples_at_start(group) > 0.0)))
    }

    fn per_second(&self, count: impl Fn(usize) -> f64) -> f64 {
        if let Some(tick_times) = self.tick_times() {
            let rate = |(index, tick_times): (usize, &TickTimes)| {
                count(index) * tick_times.per_window() as f64 * SECOND_NS as f64 / tick_times.window_ns() as f64
            };
            return tick_times.iter().enumerate().map(rate).sum();
        }
        let groups = self.layout.groups.iter().enumerate();
        groups
            .map(|(index, group)| count(index) * SECOND_NS as f64 / group.interval_ns as f64)
            .sum()
    }

    /// Contiguous ranges of groups for `workers` workers, as equal in samples per second as
    /// possible. There are fewer ranges than workers if there are fewer groups.
    pub fn split(&self, workers: usize) -> Vec<Range<usize>> {
        self.split_by(&vec![1.0; workers.max(1)])
    }

    /// Contiguous ranges of groups whose samples per second are as close as possible to these
    /// weights, each above 0. There are fewer ranges than weights if there are fewer groups.
    pub fn split_by(&self, weights: &[f64]) -> Vec<Range<usize>> {
        let groups = &self.layout.groups;
        let weights = &weights[..weights.len().min(groups.len())];
        let rate = |group: &SeriesGroup| f64::from(group.len) / group.interval_ns as f64;
        let scale = groups.iter().map(rate).sum::<f64>() / weights.iter().sum::<f64>();
        let mut ranges = Vec::with_capacity(weights.len());
        let (mut start, mut so_far, mut wanted) = (0, 0.0, 0.0);
        for (index, group) in groups.iter().enumerate() {
            so_far += rate(group);
            let left = weights.len() - ranges.len();
            let full = so_far >= wanted + weights.get(ranges.len()).copied().unwrap_or(0.0) * scale;
            // Every range gets at least one group, even if the weights are uneven.
            if index + 1 == groups.len() || (left > 1 && (full || groups.len() - index == left)) {
                wanted += weights[ranges.len()] * scale;
                ranges.push(start..index + 1);
                start = index + 1;
            }
        }
        ranges
    }

    /// The timestamp of a tick's samples, before jitter.
    pub fn timestamp(&self, group: usize, tick: u64, base: Timestamp) -> Timestamp {
        if let Some(tick_times) = self.tick_times() {
            return base + i64::try_from(tick_times[group].offset_ns(tick)).unwrap_or(i64::MAX);
        }
        let interval_ns = self.layout.groups[group].interval_ns as i64;
        base + self.stamp_phases[group].saturating_add((tick as i64).saturating_mul(interval_ns))
    }

    /// Most ticks by which a sample is sent after its own tick: 0 without disorder.
    pub fn late_ticks_max(&self) -> u64 {
        self.disorder.reach()
    }

    /// A generator for some groups: one per worker. `base` is the timestamp of tick 0 at phase 0;
    /// use a multiple of the resolution.
    pub fn generator(&self, groups: Range<usize>, base: Timestamp) -> Generator<'_> {
        Generator::new(self, groups, base)
    }

    /// A replay of everything that was sent, series by series. One per auditor.
    pub fn replay(&self, base: Timestamp) -> Replay<'_> {
        Replay::new(self, base)
    }

    fn block_of(&self, series: SeriesId) -> Option<&Block> {
        let blocks = &self.layout.blocks;
        let index = blocks.partition_point(|block| block.first <= series.0).checked_sub(1)?;
        (series.0 - blocks[index].first < blocks[index].len).then(|| &blocks[index])
    }

    fn keys(&self, series: u32) -> Keys {
        Keys::new(self.spec.seed, self.layout.first_series + series)
    }

    /// The value model of a series, with its parameters drawn again.
    fn model(&self, series: u32) -> ValueModel {
        if self.recorded.is_some() {
            return ValueModel::Recorded;
        }
        let spec = &self.layout.models[usize::from(self.layout.model_of[series as usize])];
        let drawn_by = self.layout.first_series + series;
        spec.draw(&mut Stream::new(
            self.spec.seed,
            Purpose::ValueModel,
            u64::from(drawn_by),
        ))
    }
}

#[cfg(test)]
mod tests;
