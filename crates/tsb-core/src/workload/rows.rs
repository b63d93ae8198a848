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
use super::law::{Fold, Keys, Law, Output};
use lanes::{
    BandLane, Change, ChangeLane, Event, Fitful, FitfulLane, LANE, NoiseLane, SumLane, Summed, add, append, scatter,
};

/// A series as input of the row kernels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) law: Law,
    pub(crate) keys: Keys,
    /// Running state before the next tick.
    pub(crate) state: f64,
}

/// The rows of some blocks, each at its own tick.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    row: Vec<f64>,
    spans: Vec<Spans>,
    sums: Vec<SumLane>,
    fitful: Vec<FitfulLane>,
    resetting: Vec<FitfulLane>,
    bands: Vec<BandLane>,
    noises: Vec<NoiseLane>,
    changes: Vec<ChangeLane>,
    events: Vec<[Event; LANE]>,
    /// Where the values of a lane are gathered before they are scattered. It must be in memory:
    /// only values that are stored adjacently are computed as a vector.
    lane: [f64; LANE],
}

/// The ranges of one block in the shared lists.
#[derive(Clone, Debug)]
struct Spans {
    row: Range<usize>,
    sums: Range<usize>,
    fitful: Range<usize>,
    resetting: Range<usize>,
    bands: Range<usize>,
    noises: Range<usize>,
    changes: Range<usize>,
}

impl Rows {
    /// Adds a block; blocks are numbered as they are added.
    pub(crate) fn add(&mut self, members: impl Iterator<Item = Member>) {
        let start = self.row.len();
        let mut sorted = Sorted::default();
        for (at, member) in (0u32..).zip(members) {
            sorted.place(at, &member);
            self.row.push(member.state);
        }
        self.spans.push(Spans {
            row: start..self.row.len(),
            sums: append(&mut self.sums, &sorted.sums, SumLane::new),
            fitful: append(&mut self.fitful, &sorted.fitful, FitfulLane::new),
            resetting: append(&mut self.resetting, &sorted.resetting, FitfulLane::new),
            bands: append(&mut self.bands, &sorted.bands, BandLane::new),
            noises: append(&mut self.noises, &sorted.noises, NoiseLane::new),
            changes: append(&mut self.changes, &sorted.changes, ChangeLane::new),
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
        for lane in &self.fitful[spans.fitful.clone()] {
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
struct Sorted {
    sums: Vec<Summed>,
    fitful: Vec<Fitful>,
    resetting: Vec<Fitful>,
    bands: Vec<(Summed, Fold, Output)>,
    noises: Vec<(Fitful, f64, Output)>,
    changes: Vec<Change>,
}

impl Sorted {
    fn place(&mut self, at: u32, member: &Member) {
        let key = member.keys.of(Purpose::Step);
        let sum = member.state;
        match member.law {
            Law::Constant { .. } | Law::Recorded => {}
            Law::Repeated { change, levels, output } => {
                let level_key = member.keys.of(Purpose::Level);
                let event = Event {
                    level_key,
                    levels,
                    output,
                };
                self.changes.push(Change {
                    at,
                    key,
                    often: change,
                    event,
                });
            }
            Law::Sum {
                steps, fold, output, ..
            } => {
                let summed = Summed { at, key, steps, sum };
                if fold == Fold::AT_ZERO && output == Output::PLAIN {
                    self.sums.push(summed);
                } else {
                    self.bands.push((summed, fold, output));
                }
            }
            Law::Fitful { steps, reset, .. } => {
                let kind = if reset == 0 {
                    &mut self.fitful
                } else {
                    &mut self.resetting
                };
                kind.push(Fitful { at, key, steps, reset });
            }
            Law::Noise { draws, slope, output } => {
                let fitful = Fitful {
                    at,
                    key,
                    steps: draws,
                    reset: 0,
                };
                self.noises.push((fitful, slope, output));
            }
        }
    }
}
