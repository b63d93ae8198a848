//! Rows: the values of many series at one tick, tick after tick.
//!
//! The row of a block is also its state: values that do not change cost nothing. Changing values
//! are computed by model, four series per lane, and scattered into the row.
//!
//! A host may have only a few series of each model, so lanes are padded: where a block has fewer
//! than four, the last series is computed repeatedly, into the same cell.

mod lanes;

use std::ops::Range;

pub(crate) use lanes::noise;

use super::hash::Purpose;
use super::value_model::{Fold, Keys, Output, ValueModel};
use lanes::{
    BandLane, ClippedSeries, LANE, LevelDraw, LevelLane, LevelSeries, NoiseLane, PausingLane, SumLane, SumSeries, add,
    append, scatter,
};

/// A series as input of the row kernels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowSeries {
    pub(crate) model: ValueModel,
    pub(crate) keys: Keys,
    /// Running state before the next tick.
    pub(crate) state: f64,
}

/// The rows of some blocks, each at its own tick.
#[derive(Debug, Default)]
pub(crate) struct RowGenerator {
    row: Vec<f64>,
    spans: Vec<BlockRanges>,
    sums: Vec<SumLane>,
    pausing: Vec<PausingLane>,
    resetting: Vec<PausingLane>,
    bands: Vec<BandLane>,
    noises: Vec<NoiseLane>,
    changes: Vec<LevelLane>,
    events: Vec<[LevelDraw; LANE]>,
    /// Where the values of a lane are gathered before they are scattered. It must be in memory:
    /// only values that are stored adjacently are computed as a vector.
    lane: [f64; LANE],
}

/// The ranges of one block in the shared lists.
#[derive(Clone, Debug)]
struct BlockRanges {
    row: Range<usize>,
    sums: Range<usize>,
    pausing: Range<usize>,
    resetting: Range<usize>,
    bands: Range<usize>,
    noises: Range<usize>,
    changes: Range<usize>,
}

impl RowGenerator {
    /// Adds a block; blocks are numbered as they are added.
    pub(crate) fn add(&mut self, members: impl Iterator<Item = RowSeries>) {
        let start = self.row.len();
        let mut sorted = SeriesByKernel::default();
        for (at, member) in (0u32..).zip(members) {
            sorted.place(at, &member);
            self.row.push(member.state);
        }
        self.spans.push(BlockRanges {
            row: start..self.row.len(),
            sums: append(&mut self.sums, &sorted.sums, SumLane::new),
            pausing: append(&mut self.pausing, &sorted.pausing, PausingLane::new),
            resetting: append(&mut self.resetting, &sorted.resetting, PausingLane::new),
            bands: append(&mut self.bands, &sorted.bands, BandLane::new),
            noises: append(&mut self.noises, &sorted.noises, NoiseLane::new),
            changes: append(&mut self.changes, &sorted.changes, LevelLane::new),
        });
        append(&mut self.events, &sorted.changes, |changes| {
            changes.map(|change| change.event)
        });
    }

    /// The current row of a block.
    #[inline]
    pub(crate) fn row(&self, block: usize) -> &[f64] {
        &self.row[self.spans[block].row.clone()]
    }

    /// The rows of adjacent blocks, which are adjacent in memory.
    #[inline]
    pub(crate) fn joined(&self, blocks: Range<usize>) -> &[f64] {
        match self
            .spans
            .get(blocks)
            .and_then(|spans| Some((spans.first()?, spans.last()?)))
        {
            Some((first, last)) => &self.row[first.row.start..last.row.end],
            None => &[],
        }
    }

    /// The current row of a block, to be filled by the caller.
    pub(crate) fn row_mut(&mut self, block: usize) -> &mut [f64] {
        &mut self.row[self.spans[block].row.clone()]
    }

    /// Advances a block to the next tick, `tick`, whose key is `tick_key`.
    #[inline]
    pub(crate) fn advance(&mut self, block: usize, tick: u64, tick_key: u64) {
        let spans = &self.spans[block];
        let row = &mut self.row[spans.row.clone()];
        let values = &mut self.lane;
        for lane in &mut self.sums[spans.sums.clone()] {
            lane.advance(tick_key);
            *values = lane.sums.map(f64::abs);
            scatter(&lane.at, values, row);
        }
        for lane in &self.pausing[spans.pausing.clone()] {
            *values = lane.draws.steps(lane.draws.draws(tick_key));
            add(&lane.at, values, row);
        }
        for lane in &self.resetting[spans.resetting.clone()] {
            let draws = lane.draws.draws(tick_key);
            *values = lane.draws.steps(draws);
            add(&lane.at, values, row);
            if lane.resets(draws) {
                lane.reset(draws, row);
            }
        }
        for lane in &mut self.bands[spans.bands.clone()] {
            lane.sums.advance(tick_key);
            *values = lane.values();
            scatter(&lane.sums.at, values, row);
        }
        for lane in &self.noises[spans.noises.clone()] {
            *values = lane.values(tick as f64, tick_key);
            scatter(&lane.at, values, row);
        }
        for (index, lane) in spans.changes.clone().zip(&self.changes[spans.changes.clone()]) {
            if lane.any(tick_key) {
                lane.happen(&self.events[index], tick_key, row);
            }
        }
    }

    /// Sets the states of a block, in the order of its members.
    pub(crate) fn restore(&mut self, block: usize, states: impl Iterator<Item = f64>) {
        let spans = &self.spans[block];
        let row = &mut self.row[spans.row.clone()];
        for (cell, state) in row.iter_mut().zip(states) {
            *cell = state;
        }
        for lane in &mut self.sums[spans.sums.clone()] {
            lane.sums = lane.at.map(|at| row[at as usize]);
        }
        for lane in &mut self.bands[spans.bands.clone()] {
            lane.sums.sums = lane.sums.at.map(|at| row[at as usize]);
        }
    }
}

/// The members of one block, by kernel.
#[derive(Debug, Default)]
struct SeriesByKernel {
    sums: Vec<SumSeries>,
    pausing: Vec<ClippedSeries>,
    resetting: Vec<ClippedSeries>,
    bands: Vec<(SumSeries, Fold, Output)>,
    noises: Vec<(ClippedSeries, f64, Output)>,
    changes: Vec<LevelSeries>,
}

impl SeriesByKernel {
    fn place(&mut self, at: u32, member: &RowSeries) {
        let key = member.keys.of(Purpose::Step);
        let sum = member.state;
        match member.model {
            ValueModel::Constant { .. } | ValueModel::Recorded => {}
            ValueModel::Repeated { change, levels, output } => {
                let level_key = member.keys.of(Purpose::Level);
                let event = LevelDraw {
                    level_key,
                    levels,
                    output,
                };
                self.changes.push(LevelSeries {
                    at,
                    key,
                    often: change,
                    event,
                });
            }
            ValueModel::Sum {
                steps, fold, output, ..
            } => {
                let sum_series = SumSeries { at, key, steps, sum };
                if fold == Fold::AT_ZERO && output == Output::PLAIN {
                    self.sums.push(sum_series);
                } else {
                    self.bands.push((sum_series, fold, output));
                }
            }
            ValueModel::PausingCounter { steps, reset, .. } => {
                let kind = if reset == 0 {
                    &mut self.pausing
                } else {
                    &mut self.resetting
                };
                kind.push(ClippedSeries { at, key, steps, reset });
            }
            ValueModel::Noise { draws, slope, output } => {
                let series = ClippedSeries {
                    at,
                    key,
                    steps: draws,
                    reset: 0,
                };
                self.noises.push((series, slope, output));
            }
        }
    }
}
