//! Rows: the values of many series at one tick, tick after tick.
//!
//! The row of a block is its state made visible: what stands still costs nothing, and
//! what moves is computed in short vector loops, kind by kind, and scattered into the
//! row. A counter's sum *is* its cell of the row; a walk keeps its sum beside it.

use std::ops::Range;

use super::hash::{self, Purpose};
use super::law::{self, Fold, Keys, Law, Output, Step};

/// Values computed before they are scattered; they stay in the first-level cache.
const CHUNK: usize = 64;
/// Series that are looked at together for a rare change.
const SCAN: usize = 16;
/// 2^52, as [`hash::draw_f64`] adds it.
const TWO_52: f64 = 4_503_599_627_370_496.0;

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
    counters: Counters,
    walks: Walks,
    bands: Bands,
    noises: Noises,
    changes: Changes,
}

/// What belongs to one block.
#[derive(Clone, Debug)]
struct Spans {
    row: Range<usize>,
    counters: Range<usize>,
    walks: Range<usize>,
    bands: Range<usize>,
    noises: Range<usize>,
    changes: Range<usize>,
}

impl Rows {
    /// Adds a block; blocks are numbered as they are added.
    pub(crate) fn add(&mut self, members: impl Iterator<Item = Member>) {
        let start = self.ends();
        for (at, member) in (0u32..).zip(members) {
            self.place(at, &member);
        }
        let end = self.ends();
        self.spans.push(Spans {
            row: start.0..end.0,
            counters: start.1..end.1,
            walks: start.2..end.2,
            bands: start.3..end.3,
            noises: start.4..end.4,
            changes: start.5..end.5,
        });
    }

    fn ends(&self) -> (usize, usize, usize, usize, usize, usize) {
        (
            self.row.len(),
            self.counters.at.len(),
            self.walks.at.len(),
            self.bands.at.len(),
            self.noises.at.len(),
            self.changes.at.len(),
        )
    }

    fn place(&mut self, at: u32, member: &Member) {
        let key = member.keys.of(Purpose::Step);
        match member.law {
            Law::Constant { .. } | Law::Recorded => {}
            Law::Repeated { change, levels, output } => {
                let level_key = member.keys.of(Purpose::Level);
                let event = Event::Level {
                    level_key,
                    levels,
                    output,
                };
                self.changes.push(at, key, change, event);
            }
            Law::Counter { step, reset, .. } => {
                self.counters.at.push(at);
                self.counters.keys.push(key);
                self.counters.steps.push(step);
                if reset > 0 {
                    self.changes
                        .push(at, member.keys.of(Purpose::Reset), reset, Event::Reset);
                }
            }
            Law::Walk { step, fold, output, .. } if fold == Fold::AT_ZERO && output == Output::PLAIN => {
                self.walks.at.push(at);
                self.walks.keys.push(key);
                self.walks.steps.push(step);
                self.walks.sums.push(member.state);
            }
            Law::Walk { step, fold, output, .. } => {
                self.bands.at.push(at);
                self.bands.keys.push(key);
                self.bands.steps.push(step);
                self.bands.sums.push(member.state);
                self.bands.shapes.push((fold, output));
            }
            Law::Noise { step, slope, output } => {
                self.noises.at.push(at);
                self.noises.keys.push(key);
                self.noises.steps.push(step);
                self.noises.shapes.push((slope, output));
            }
        }
        self.row.push(member.state);
    }

    /// The current row of a block.
    #[inline]
    pub(crate) fn row(&self, block: usize) -> &[f64] {
        &self.row[self.spans[block].row.clone()]
    }

    /// The rows of neighbouring blocks, which lie side by side.
    #[inline]
    pub(crate) fn joined(&self, blocks: Range<usize>) -> &[f64] {
        match (self.spans.get(blocks.start), self.spans[..blocks.end].last()) {
            (Some(first), Some(last)) => &self.row[first.row.start..last.row.end],
            _ => &[],
        }
    }

    /// The current row of a block, for what is filled from outside.
    pub(crate) fn row_mut(&mut self, block: usize) -> &mut [f64] {
        &mut self.row[self.spans[block].row.clone()]
    }

    /// Moves a block to the next tick, whose key this is.
    pub(crate) fn advance(&mut self, block: usize, tick: u64, tick_key: u64) {
        let spans = self.spans[block].clone();
        let row = &mut self.row[spans.row];
        self.counters.advance(spans.counters, tick_key, row);
        self.walks.advance(spans.walks, tick_key, row);
        self.bands.advance(spans.bands, tick_key, row);
        self.noises.advance(spans.noises, tick, tick_key, row);
        self.changes.advance(spans.changes, tick_key, row);
    }

    /// Puts a block to other states, in the order of its members.
    pub(crate) fn restore(&mut self, block: usize, states: impl Iterator<Item = f64>) {
        let spans = self.spans[block].clone();
        let row = &mut self.row[spans.row];
        for (cell, state) in row.iter_mut().zip(states) {
            *cell = state;
        }
        for index in spans.walks {
            self.walks.sums[index] = row[self.walks.at[index] as usize];
        }
        for index in spans.bands {
            self.bands.sums[index] = row[self.bands.at[index] as usize];
        }
    }
}

/// Writes computed values to their cells.
#[inline(always)]
fn scatter(at: &[u32], values: &[f64], row: &mut [f64]) {
    for (&at, &value) in at.iter().zip(values) {
        row[at as usize] = value;
    }
}

/// Sums that are their own values.
#[derive(Debug, Default)]
struct Counters {
    at: Vec<u32>,
    keys: Vec<u64>,
    steps: Vec<Step>,
}

impl Counters {
    #[inline]
    fn advance(&self, span: Range<usize>, tick_key: u64, row: &mut [f64]) {
        let all = self.at[span.clone()].chunks(CHUNK);
        let parts = self.keys[span.clone()]
            .chunks(CHUNK)
            .zip(self.steps[span].chunks(CHUNK));
        let mut values = [0.0; CHUNK];
        for (at, (keys, steps)) in all.zip(parts) {
            let values = &mut values[..at.len()];
            for ((value, &key), &step) in values.iter_mut().zip(keys).zip(steps) {
                *value = step.clipped(hash::draw_f64(key, tick_key));
            }
            for (&at, &value) in at.iter().zip(&*values) {
                row[at as usize] += value;
            }
        }
    }
}

/// Integers reflected at zero.
#[derive(Debug, Default)]
struct Walks {
    at: Vec<u32>,
    keys: Vec<u64>,
    steps: Vec<Step>,
    sums: Vec<f64>,
}

impl Walks {
    #[inline]
    fn advance(&mut self, span: Range<usize>, tick_key: u64, row: &mut [f64]) {
        let all = self.at[span.clone()]
            .chunks(CHUNK)
            .zip(self.sums[span.clone()].chunks_mut(CHUNK));
        let parts = self.keys[span.clone()]
            .chunks(CHUNK)
            .zip(self.steps[span].chunks(CHUNK));
        let mut values = [0.0; CHUNK];
        for ((at, sums), (keys, steps)) in all.zip(parts) {
            let values = &mut values[..at.len()];
            for (((value, sum), &key), &step) in values.iter_mut().zip(sums).zip(keys).zip(steps) {
                *sum += step.at(hash::draw_f64(key, tick_key));
                *value = sum.abs();
            }
            scatter(at, values, row);
        }
    }
}

/// Walks of any other kind: two bounds, multiples, decimals.
#[derive(Debug, Default)]
struct Bands {
    at: Vec<u32>,
    keys: Vec<u64>,
    steps: Vec<Step>,
    sums: Vec<f64>,
    shapes: Vec<(Fold, Output)>,
}

impl Bands {
    #[inline]
    fn advance(&mut self, span: Range<usize>, tick_key: u64, row: &mut [f64]) {
        let all = self.at[span.clone()]
            .chunks(CHUNK)
            .zip(self.sums[span.clone()].chunks_mut(CHUNK));
        let parts = self.keys[span.clone()]
            .chunks(CHUNK)
            .zip(self.steps[span.clone()].chunks(CHUNK));
        let shapes = self.shapes[span].chunks(CHUNK);
        let mut values = [0.0; CHUNK];
        for (((at, sums), (keys, steps)), shapes) in all.zip(parts).zip(shapes) {
            let values = &mut values[..at.len()];
            let drawn = keys.iter().zip(steps).zip(shapes);
            for ((value, sum), ((&key, &step), &(fold, output))) in values.iter_mut().zip(sums).zip(drawn) {
                *sum += step.at(hash::draw_f64(key, tick_key));
                *value = output.apply(fold.apply(*sum));
            }
            scatter(at, values, row);
        }
    }
}

/// Values without memory.
#[derive(Debug, Default)]
struct Noises {
    at: Vec<u32>,
    keys: Vec<u64>,
    steps: Vec<Step>,
    shapes: Vec<(f64, Output)>,
}

impl Noises {
    #[inline]
    fn advance(&self, span: Range<usize>, tick: u64, tick_key: u64, row: &mut [f64]) {
        let all = self.at[span.clone()]
            .chunks(CHUNK)
            .zip(self.keys[span.clone()].chunks(CHUNK));
        let parts = self.steps[span.clone()]
            .chunks(CHUNK)
            .zip(self.shapes[span].chunks(CHUNK));
        let tick = tick as f64;
        let mut values = [0.0; CHUNK];
        for ((at, keys), (steps, shapes)) in all.zip(parts) {
            let values = &mut values[..at.len()];
            let drawn = keys.iter().zip(steps).zip(shapes);
            for (value, ((&key, &step), &(slope, output))) in values.iter_mut().zip(drawn) {
                *value = noise(step, slope, output, tick, hash::draw_f64(key, tick_key));
            }
            scatter(at, values, row);
        }
    }
}

/// The value of a series without memory.
#[inline(always)]
pub(crate) fn noise(step: Step, slope: f64, output: Output, tick: f64, draw: f64) -> f64 {
    (step.clipped(draw) * output.multiple + (output.base + slope * tick)) / output.divisor
}

/// What happens to few series at any tick.
#[derive(Debug, Default)]
struct Changes {
    at: Vec<u32>,
    keys: Vec<u64>,
    /// Thresholds, plus 2^52: so they compare with draws before these are made numbers.
    thresholds: Vec<f64>,
    events: Vec<Event>,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Level {
        level_key: u64,
        levels: u64,
        output: Output,
    },
    Reset,
}

impl Changes {
    fn push(&mut self, at: u32, key: u64, threshold: u64, event: Event) {
        self.at.push(at);
        self.keys.push(key);
        self.thresholds.push(TWO_52 + threshold as f64);
        self.events.push(event);
    }

    #[inline]
    fn advance(&self, span: Range<usize>, tick_key: u64, row: &mut [f64]) {
        let keys = self.keys[span.clone()].chunks(SCAN);
        let parts = keys.zip(self.thresholds[span.clone()].chunks(SCAN));
        for (start, (keys, thresholds)) in span.step_by(SCAN).zip(parts) {
            let mut hits = 0u64;
            for (&key, &threshold) in keys.iter().zip(thresholds) {
                hits += u64::from(hash::draw_f64(key, tick_key) + TWO_52 < threshold);
            }
            if hits > 0 {
                self.happen(start, keys, thresholds, tick_key, row);
            }
        }
    }

    #[cold]
    fn happen(&self, start: usize, keys: &[u64], thresholds: &[f64], tick_key: u64, row: &mut [f64]) {
        for (index, (&key, &threshold)) in (start..).zip(keys.iter().zip(thresholds)) {
            if hash::draw_f64(key, tick_key) + TWO_52 < threshold {
                row[self.at[index] as usize] = match self.events[index] {
                    Event::Level {
                        level_key,
                        levels,
                        output,
                    } => output.apply(law::level(level_key, tick_key, levels)),
                    Event::Reset => 0.0,
                };
            }
        }
    }
}
