//! The lifetime of a recorded series: from its first sample of a pass until one interval after its
//! last.

use super::{RecordedSamples, RecordedWorkload};

impl RecordedWorkload {
    /// The tick of the first sample in the series' life at a fleet time, whose newest tick is
    /// `tick`; `None` if it has not begun in this pass, or has ended.
    pub(crate) fn alive_since(&self, group: usize, series: u32, tick: u64, fleet_ns: u64) -> Option<u64> {
        let (copy, place) = (series / self.window.series, series % self.window.series);
        match &self.samples {
            RecordedSamples::Grid(grid) => {
                let (rows, _) = grid.by_series.list(place as usize);
                let (first, last) = (u64::from(*rows.first()?), u64::from(*rows.last()?));
                let row = self.row(copy, tick);
                if !(first..=last).contains(&row) {
                    return None;
                }
                // A shifted copy may start in the middle of a life.
                tick.checked_sub(row - first)
                    .or_else(|| self.first_tick(group, series).filter(|first| *first <= tick))
            }
            RecordedSamples::OwnTimes(own) => {
                if !own.lives_at(group, place, fleet_ns) {
                    return None;
                }
                let tick_times = own.tick_times().get(group)?;
                let pass_ns = fleet_ns.saturating_sub(tick_times.within_window(fleet_ns));
                let from = tick_times.ticks_before(pass_ns);
                self.samples(group, series, from..tick + 1).next().map(|(tick, _)| tick)
            }
        }
    }

    /// The tick of the first sample of a series.
    pub(crate) fn first_tick(&self, group: usize, series: u32) -> Option<u64> {
        self.samples(group, series, 0..u64::MAX).next().map(|(tick, _)| tick)
    }
}
