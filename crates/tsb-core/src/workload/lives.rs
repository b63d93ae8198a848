//! Which series are alive at a tick, and since when: the basis of staleness and of completeness.

use std::ops::Range;

use super::Workload;
use super::disorder::SampleOutcome;
use super::layout::Block;
use crate::series::SeriesId;

impl Workload {
    /// The newest tick of a group at a fleet time since the start; `None` before its first.
    pub fn tick_at(&self, group: usize, fleet_ns: u64) -> Option<u64> {
        if let Some(tick_times) = self.tick_times() {
            return tick_times[group]
                .ticks_before(fleet_ns.saturating_add(1))
                .checked_sub(1);
        }
        let group = &self.layout.groups[group];
        Some(fleet_ns.checked_sub(group.phase_ns)? / group.interval_ns)
    }

    /// Calls `visit` for the series of a group that are alive at a fleet time: ranges of ids, each
    /// with the tick of the first sample of that life. A series that the plan has ended or not
    /// begun is left out; one that is between two samples is included.
    pub fn living(&self, group: usize, fleet_ns: u64, mut visit: impl FnMut(Range<u32>, u64)) {
        let Some(tick) = self.tick_at(group, fleet_ns) else {
            return;
        };
        if let Some(recorded) = &self.recorded {
            for series in self.ids(group) {
                if let Some(since) = recorded.alive_since(group, series, tick, fleet_ns) {
                    visit(series..series + 1, since);
                }
            }
            return;
        }
        for block in self.blocks(group).iter().filter(|block| block.ticks.contains(&tick)) {
            visit(block.first..block.first + block.len, block.ticks.start);
        }
    }

    /// Calls `visit` for the series of a group of which a sample should have been sent by `tick`,
    /// alive or not: ranges of ids, each with the tick of its first sample.
    pub fn begun(&self, group: usize, tick: u64, mut visit: impl FnMut(Range<u32>, u64)) {
        if let Some(recorded) = &self.recorded {
            for series in self.ids(group) {
                if let Some(first) = recorded.first_tick(group, series).filter(|first| *first <= tick) {
                    visit(series..series + 1, first);
                }
            }
            return;
        }
        for block in self.blocks(group).iter().filter(|block| block.ticks.start <= tick) {
            visit(block.first..block.first + block.len, block.ticks.start);
        }
    }

    /// The first of these ticks whose sample of the series is sent: `disorder.missing` drops some.
    pub fn first_sent(&self, series: SeriesId, mut ticks: Range<u64>) -> Option<u64> {
        if self.spec.disorder.missing == 0.0 {
            return ticks.next();
        }
        let death = self.lifetime(series).map_or(u64::MAX, |life| life.end);
        let key = self.disorder.outcome_key(series.0);
        ticks.find(|&tick| {
            self.disorder
                .of(key, tick, super::value_model::tick_key(self.spec.seed, tick), death)
                != SampleOutcome::Missing
        })
    }

    /// Number of samples of a group that are due in some ticks, not counting lateness, losses and
    /// duplicates. For very many ticks of a recording, it is estimated by the mean.
    pub fn samples_due(&self, group: usize, ticks: Range<u64>) -> u64 {
        const COUNTED: u64 = 10_000;
        let count = ticks.end.saturating_sub(ticks.start);
        if self.recorded.is_some() {
            return if count > COUNTED {
                (self.usual_samples(group) * count as f64) as u64
            } else {
                ticks.map(|tick| u64::from(self.alive(group, tick))).sum()
            };
        }
        let within = |life: &Range<u64>| life.end.min(ticks.end).saturating_sub(life.start.max(ticks.start));
        let blocks = self.blocks(group).iter();
        blocks.map(|block| u64::from(block.len) * within(&block.ticks)).sum()
    }

    /// Mean number of samples sent per sample due: some are missing, some are sent twice.
    pub fn sent_share(&self) -> f64 {
        1.0 - self.spec.disorder.missing + self.spec.disorder.duplicate
    }

    fn blocks(&self, group: usize) -> &[Block] {
        &self.layout.blocks[self.layout.groups[group].blocks.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BatchMode, Churn, ChurnMode, FleetSpec, WorkloadSpec};
    use super::*;
    use crate::time::SECOND_NS;

    fn workload(change: impl FnOnce(&mut WorkloadSpec)) -> Workload {
        let mut spec = WorkloadSpec::new(FleetSpec::Mix, 3);
        spec.series = Some(540);
        change(&mut spec);
        Workload::new(&spec).unwrap()
    }

    fn all(workload: &Workload, tick: u64) -> Vec<(u32, u64)> {
        let mut all = Vec::new();
        for group in 0..workload.groups().len() {
            // Every group has had its tick.
            workload.living(group, (tick + 1) * SECOND_NS - 1, |ids, since| {
                all.extend(ids.map(|id| (id, since)));
            });
        }
        all
    }

    #[test]
    fn live_series_are_those_whose_lifetime_contains_the_moment() {
        let workload = workload(|spec| {
            spec.churn = Some(Churn {
                mode: ChurnMode::Steady {
                    lifetime_ns: 10 * SECOND_NS,
                },
                horizon_ns: 60 * SECOND_NS,
                unit: 7,
            });
        });
        let catalog = workload.catalog().len() as u32;
        assert!(catalog > 540);
        for tick in [0, 1, 9, 30, 59] {
            let expected: Vec<(u32, u64)> = (0..catalog)
                .filter_map(|id| Some((id, workload.lifetime(SeriesId(id))?)))
                .filter(|(_, life)| life.contains(&tick))
                .map(|(id, life)| (id, life.start))
                .collect();
            let living = all(&workload, tick);
            assert_eq!((living.len(), living), (540, expected), "tick {tick}");
            let mut begun = 0;
            (0..workload.groups().len()).for_each(|group| workload.begun(group, tick, |ids, _| begun += ids.len()));
            let due: u64 = (0..workload.groups().len())
                .map(|group| workload.samples_due(group, 0..tick))
                .sum();
            assert_eq!(due, 540 * tick);
            let born = (0..catalog).filter(|&id| workload.lifetime(SeriesId(id)).unwrap().start <= tick);
            assert_eq!(begun, born.count(), "tick {tick}");
        }
    }

    #[test]
    fn a_sample_that_is_never_sent_is_not_owed() {
        let some = workload(|spec| {
            spec.disorder.missing = 0.5;
            spec.batch = BatchMode::Tick;
        });
        let mut generator = some.generator(0..1, crate::Timestamp(0));
        let sent: Vec<Vec<u32>> = (0..8)
            .map(|tick| {
                generator
                    .operation(0, tick)
                    .iter()
                    .map(|(series, ..)| series.0)
                    .collect()
            })
            .collect();
        for id in 0..540u32 {
            let first = sent.iter().position(|ids| ids.contains(&id)).map(|tick| tick as u64);
            assert_eq!(some.first_sent(SeriesId(id), 0..8), first, "series {id}");
        }
        assert_eq!(some.sent_share(), 0.5);
        let none = workload(|spec| spec.disorder.missing = 1.0);
        assert_eq!(none.first_sent(SeriesId(0), 0..1_000), None);
        assert_eq!(workload(|_| ()).first_sent(SeriesId(0), 5..6), Some(5));
    }
}
