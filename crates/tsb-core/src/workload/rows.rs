//! Rows: the values of many series at one tick, tick after tick.
//!
//! The row of a block is its state made visible: what stands still costs nothing, and
//! what moves is computed kind by kind, four series to a lane, and scattered into the
//! row.
//!
//! A host may have only a handful of each kind, so a lane is always full: where a block
//! has no fourth series of a kind, the last one is computed again, to the same cell.

use std::ops::Range;

use super::hash::{self, Purpose};
use super::law::{self, Clipped, Fold, Keys, Law, Output, Uniform};

/// Series in a lane: two vector registers of the baseline instruction set.
const LANE: usize = 4;

/// A series as the row kernels take it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) law: Law,
    pub(crate) keys: Keys,
    /// Running state before the next tick.
    pub(crate) state: f64,
}

/// The rows of some blocks, each at a tick of its own.
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
    /// Where the values of a lane are put together before they are scattered. It has to
    /// be memory: only values that are stored side by side are computed side by side.
    lane: [f64; LANE],
}

/// What belongs to one block.
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

    /// The rows of neighbouring blocks, which lie side by side.
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

    /// The current row of a block, for what is filled from outside.
    pub(crate) fn row_mut(&mut self, block: usize) -> &mut [f64] {
        &mut self.row[self.spans[block].row.clone()]
    }

    /// Moves a block to the next tick, whose key this is.
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

    /// Puts a block to other states, in the order of its members.
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

/// A series that keeps a sum.
#[derive(Clone, Copy, Debug)]
struct Summed {
    at: u32,
    key: u64,
    steps: Uniform,
    sum: f64,
}

/// A series with clipped draws.
#[derive(Clone, Copy, Debug)]
struct Fitful {
    at: u32,
    key: u64,
    steps: Clipped,
    reset: u64,
}

/// A series that seldom changes.
#[derive(Clone, Copy, Debug)]
struct Change {
    at: u32,
    key: u64,
    often: u64,
    event: Event,
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

/// Appends series as full lanes; returns where they are.
fn append<T: Copy, L>(lanes: &mut Vec<L>, series: &[T], lane: impl Fn([T; LANE]) -> L) -> Range<usize> {
    let start = lanes.len();
    for four in series.chunks(LANE) {
        let last = four.len() - 1;
        lanes.push(lane(std::array::from_fn(|index| four[index.min(last)])));
    }
    start..lanes.len()
}

/// Keys and clipped draws of four series.
#[derive(Clone, Copy, Debug)]
struct Draws {
    keys: [u64; LANE],
    scales: [f64; LANE],
    offsets: [f64; LANE],
}

impl Draws {
    fn new(series: [Fitful; LANE]) -> Self {
        Self {
            keys: series.map(|fitful| fitful.key),
            scales: series.map(|fitful| fitful.steps.parts().0),
            offsets: series.map(|fitful| fitful.steps.parts().1),
        }
    }

    #[inline(always)]
    fn draws(&self, tick_key: u64) -> [f64; LANE] {
        std::array::from_fn(|index| hash::draw_f64(self.keys[index], tick_key))
    }

    #[inline(always)]
    fn steps(&self, draws: [f64; LANE]) -> [f64; LANE] {
        std::array::from_fn(|index| Clipped::from_parts(self.scales[index], self.offsets[index]).at(draws[index]))
    }
}

/// Keys, steps and sums of four series.
#[derive(Clone, Copy, Debug)]
struct SumLane {
    keys: [u64; LANE],
    counts: [u32; LANE],
    at: [u32; LANE],
    biases: [f64; LANE],
    sums: [f64; LANE],
}

impl SumLane {
    fn new(series: [Summed; LANE]) -> Self {
        Self {
            keys: series.map(|summed| summed.key),
            counts: series.map(|summed| summed.steps.count),
            at: series.map(|summed| summed.at),
            biases: series.map(|summed| summed.steps.bias),
            sums: series.map(|summed| summed.sum),
        }
    }

    #[inline(always)]
    fn advance(&mut self, tick_key: u64) {
        for index in 0..LANE {
            let steps = Uniform {
                count: self.counts[index],
                bias: self.biases[index],
            };
            self.sums[index] += steps.at(self.keys[index], tick_key);
        }
    }
}

/// Writes computed values to their cells.
#[inline(always)]
fn scatter(at: &[u32; LANE], values: &[f64; LANE], row: &mut [f64]) {
    for (&at, &value) in at.iter().zip(values) {
        row[at as usize] = value;
    }
}

/// Adds steps to cells.
#[inline(always)]
fn add(at: &[u32; LANE], steps: &[f64; LANE], row: &mut [f64]) {
    // All cells are read before any is written: a cell may come twice.
    let sums: [f64; LANE] = std::array::from_fn(|index| row[at[index] as usize] + steps[index]);
    scatter(at, &sums, row);
}

/// Counters that stand still at times, or fall back to 0. Their sums are their cells.
#[derive(Debug)]
struct FitfulLane {
    draws: Draws,
    thresholds: [f64; LANE],
    at: [u32; LANE],
}

impl FitfulLane {
    fn new(series: [Fitful; LANE]) -> Self {
        Self {
            draws: Draws::new(series),
            thresholds: series.map(|fitful| fitful.reset as f64),
            at: series.map(|fitful| fitful.at),
        }
    }

    #[inline(always)]
    fn resets(&self, draws: [f64; LANE]) -> bool {
        any_below_zero(std::array::from_fn(|index| draws[index] - self.thresholds[index]))
    }

    #[cold]
    fn reset(&self, draws: [f64; LANE], row: &mut [f64]) {
        for ((draw, threshold), &at) in draws.iter().zip(self.thresholds).zip(&self.at) {
            if *draw < threshold {
                row[at as usize] = 0.0;
            }
        }
    }
}

/// What turns sums into values, of four series.
#[derive(Debug)]
struct Outputs {
    multiples: [f64; LANE],
    bases: [f64; LANE],
    divisors: [f64; LANE],
}

impl Outputs {
    fn new(outputs: [Output; LANE]) -> Self {
        Self {
            multiples: outputs.map(|output| output.multiple),
            bases: outputs.map(|output| output.base),
            divisors: outputs.map(|output| output.divisor),
        }
    }

    #[inline(always)]
    fn of(&self, index: usize) -> Output {
        Output {
            multiple: self.multiples[index],
            base: self.bases[index],
            divisor: self.divisors[index],
        }
    }
}

/// Walks of any other kind: two bounds, multiples, decimals.
#[derive(Debug)]
struct BandLane {
    sums: SumLane,
    periods: [f64; LANE],
    inverses: [f64; LANE],
    outputs: Outputs,
}

impl BandLane {
    fn new(series: [(Summed, Fold, Output); LANE]) -> Self {
        Self {
            sums: SumLane::new(series.map(|(summed, ..)| summed)),
            periods: series.map(|(_, fold, _)| fold.period),
            inverses: series.map(|(_, fold, _)| fold.inverse),
            outputs: Outputs::new(series.map(|(.., output)| output)),
        }
    }

    #[inline(always)]
    fn values(&self) -> [f64; LANE] {
        std::array::from_fn(|index| {
            let fold = Fold {
                period: self.periods[index],
                inverse: self.inverses[index],
            };
            self.outputs.of(index).apply(fold.apply(self.sums.sums[index]))
        })
    }
}

/// Values without memory.
#[derive(Debug)]
struct NoiseLane {
    draws: Draws,
    slopes: [f64; LANE],
    outputs: Outputs,
    at: [u32; LANE],
}

impl NoiseLane {
    fn new(series: [(Fitful, f64, Output); LANE]) -> Self {
        Self {
            draws: Draws::new(series.map(|(fitful, ..)| fitful)),
            slopes: series.map(|(_, slope, _)| slope),
            outputs: Outputs::new(series.map(|(.., output)| output)),
            at: series.map(|(fitful, ..)| fitful.at),
        }
    }

    #[inline(always)]
    fn values(&self, tick: f64, tick_key: u64) -> [f64; LANE] {
        let steps = self.draws.steps(self.draws.draws(tick_key));
        std::array::from_fn(|index| noise(steps[index], self.slopes[index], self.outputs.of(index), tick))
    }
}

/// The value of a series without memory, from its clipped step.
#[inline(always)]
pub(crate) fn noise(step: f64, slope: f64, output: Output, tick: f64) -> f64 {
    (step * output.multiple + (output.base + slope * tick)) / output.divisor
}

/// A new level of a repeated series.
#[derive(Clone, Copy, Debug)]
struct Event {
    level_key: u64,
    levels: u64,
    output: Output,
}

/// Two minima and one sign, since that is vector code and four comparisons are not.
#[inline(always)]
fn any_below_zero(margins: [f64; LANE]) -> bool {
    let low = |a: f64, b: f64| if a < b { a } else { b };
    low(low(margins[0], margins[2]), low(margins[1], margins[3])) < 0.0
}

/// Whether a change happens to any of four series; the events themselves lie apart.
#[derive(Debug)]
struct ChangeLane {
    keys: [u64; LANE],
    /// Thresholds plus 2^52, as draws are compared.
    thresholds: [f64; LANE],
    at: [u32; LANE],
}

impl ChangeLane {
    fn new(series: [Change; LANE]) -> Self {
        Self {
            keys: series.map(|change| change.key),
            thresholds: series.map(|change| hash::TWO_52 + change.often as f64),
            at: series.map(|change| change.at),
        }
    }

    /// How far each draw is above its threshold: negative where something happens.
    #[inline(always)]
    fn margins(&self, tick_key: u64) -> [f64; LANE] {
        std::array::from_fn(|index| hash::draw_on_two_52(self.keys[index], tick_key) - self.thresholds[index])
    }

    #[inline(always)]
    fn any(&self, tick_key: u64) -> bool {
        any_below_zero(self.margins(tick_key))
    }

    #[cold]
    fn happen(&self, events: &[Event; LANE], tick_key: u64, row: &mut [f64]) {
        for ((margin, event), &at) in self.margins(tick_key).iter().zip(events).zip(&self.at) {
            if *margin < 0.0 {
                let level = law::level(event.level_key, tick_key, event.levels);
                row[at as usize] = event.output.apply(level);
            }
        }
    }
}
