//! Lanes: the arithmetic of four series at one tick, written so that the compiler vectorizes it:
//! arrays of four, one operation after the other, no branches.

use std::ops::Range;

use crate::workload::hash;
use crate::workload::value_model::{self, Clipped, Fold, Output, Uniform};

/// Series per lane: two vector registers of the baseline instruction set.
pub(super) const LANE: usize = 4;

/// A series whose state is a sum.
#[derive(Clone, Copy, Debug)]
pub(super) struct SumSeries {
    pub(super) at: u32,
    pub(super) key: u64,
    pub(super) steps: Uniform,
    pub(super) sum: f64,
}

/// A series with clipped draws.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClippedSeries {
    pub(super) at: u32,
    pub(super) key: u64,
    pub(super) steps: Clipped,
    pub(super) reset: u64,
}

/// A series that rarely changes.
#[derive(Clone, Copy, Debug)]
pub(super) struct LevelSeries {
    pub(super) at: u32,
    pub(super) key: u64,
    pub(super) often: u64,
    pub(super) event: LevelDraw,
}

/// Appends series as full lanes; returns their range.
pub(super) fn append<T: Copy, L>(lanes: &mut Vec<L>, series: &[T], lane: impl Fn(&[T; LANE]) -> L) -> Range<usize> {
    let start = lanes.len();
    for four in series.chunks(LANE) {
        let last = four.len() - 1;
        lanes.push(lane(&std::array::from_fn(|index| four[index.min(last)])));
    }
    start..lanes.len()
}

/// Keys and clipped draws of four series.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draws {
    pub(super) keys: [u64; LANE],
    pub(super) scales: [f64; LANE],
    pub(super) offsets: [f64; LANE],
}

impl Draws {
    pub(super) fn new(series: &[ClippedSeries; LANE]) -> Self {
        Self {
            keys: series.map(|one| one.key),
            scales: series.map(|one| one.steps.parts().0),
            offsets: series.map(|one| one.steps.parts().1),
        }
    }

    #[inline(always)]
    pub(super) fn draws(&self, tick_key: u64) -> [f64; LANE] {
        std::array::from_fn(|index| hash::draw_f64(self.keys[index], tick_key))
    }

    #[inline(always)]
    pub(super) fn steps(&self, draws: [f64; LANE]) -> [f64; LANE] {
        std::array::from_fn(|index| Clipped::from_parts(self.scales[index], self.offsets[index]).at(draws[index]))
    }
}

/// Keys, steps and sums of four series.
#[derive(Clone, Copy, Debug)]
pub(super) struct SumLane {
    pub(super) keys: [u64; LANE],
    pub(super) counts: [u32; LANE],
    pub(super) at: [u32; LANE],
    pub(super) biases: [f64; LANE],
    pub(super) sums: [f64; LANE],
}

impl SumLane {
    pub(super) fn new(series: &[SumSeries; LANE]) -> Self {
        Self {
            keys: series.map(|one| one.key),
            counts: series.map(|one| one.steps.count),
            at: series.map(|one| one.at),
            biases: series.map(|one| one.steps.bias),
            sums: series.map(|one| one.sum),
        }
    }

    #[inline(always)]
    pub(super) fn advance(&mut self, tick_key: u64) {
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
pub(super) fn scatter(at: &[u32; LANE], values: &[f64; LANE], row: &mut [f64]) {
    for (&at, &value) in at.iter().zip(values) {
        row[at as usize] = value;
    }
}

/// Adds steps to cells.
#[inline(always)]
pub(super) fn add(at: &[u32; LANE], steps: &[f64; LANE], row: &mut [f64]) {
    // All cells are read before any is written: a cell may occur twice.
    let sums: [f64; LANE] = std::array::from_fn(|index| row[at[index] as usize] + steps[index]);
    scatter(at, &sums, row);
}

/// Counters that sometimes do not change, or are reset to 0. Their cells hold their sums.
#[derive(Debug)]
pub(super) struct PausingLane {
    pub(super) draws: Draws,
    pub(super) thresholds: [f64; LANE],
    pub(super) at: [u32; LANE],
}

impl PausingLane {
    pub(super) fn new(series: &[ClippedSeries; LANE]) -> Self {
        Self {
            draws: Draws::new(series),
            thresholds: series.map(|one| one.reset as f64),
            at: series.map(|one| one.at),
        }
    }

    #[inline(always)]
    pub(super) fn resets(&self, draws: [f64; LANE]) -> bool {
        any_below_zero(std::array::from_fn(|index| draws[index] - self.thresholds[index]))
    }

    #[cold]
    pub(super) fn reset(&self, draws: [f64; LANE], row: &mut [f64]) {
        for ((draw, threshold), &at) in draws.iter().zip(self.thresholds).zip(&self.at) {
            if *draw < threshold {
                row[at as usize] = 0.0;
            }
        }
    }
}

/// Parameters that convert the sums of four series to values.
#[derive(Debug)]
pub(super) struct Outputs {
    pub(super) multiples: [f64; LANE],
    pub(super) bases: [f64; LANE],
    pub(super) divisors: [f64; LANE],
}

impl Outputs {
    pub(super) fn new(outputs: &[Output; LANE]) -> Self {
        Self {
            multiples: outputs.map(|output| output.multiple),
            bases: outputs.map(|output| output.base),
            divisors: outputs.map(|output| output.divisor),
        }
    }

    #[inline(always)]
    pub(super) fn of(&self, index: usize) -> Output {
        Output {
            multiple: self.multiples[index],
            base: self.bases[index],
            divisor: self.divisors[index],
        }
    }
}

/// All other walks: two bounds, multiples, decimals.
#[derive(Debug)]
pub(super) struct BandLane {
    pub(super) sums: SumLane,
    pub(super) periods: [f64; LANE],
    pub(super) inverses: [f64; LANE],
    pub(super) outputs: Outputs,
}

impl BandLane {
    pub(super) fn new(series: &[(SumSeries, Fold, Output); LANE]) -> Self {
        Self {
            sums: SumLane::new(&series.map(|(one, ..)| one)),
            periods: series.map(|(_, fold, _)| fold.period),
            inverses: series.map(|(_, fold, _)| fold.inverse),
            outputs: Outputs::new(&series.map(|(.., output)| output)),
        }
    }

    #[inline(always)]
    pub(super) fn values(&self) -> [f64; LANE] {
        std::array::from_fn(|index| {
            let fold = Fold {
                period: self.periods[index],
                inverse: self.inverses[index],
            };
            self.outputs.of(index).apply(fold.apply(self.sums.sums[index]))
        })
    }
}

/// Values without state.
#[derive(Debug)]
pub(super) struct NoiseLane {
    pub(super) draws: Draws,
    pub(super) slopes: [f64; LANE],
    pub(super) outputs: Outputs,
    pub(super) at: [u32; LANE],
}

impl NoiseLane {
    pub(super) fn new(series: &[(ClippedSeries, f64, Output); LANE]) -> Self {
        Self {
            draws: Draws::new(&series.map(|(one, ..)| one)),
            slopes: series.map(|(_, slope, _)| slope),
            outputs: Outputs::new(&series.map(|(.., output)| output)),
            at: series.map(|(one, ..)| one.at),
        }
    }

    #[inline(always)]
    pub(super) fn values(&self, tick: f64, tick_key: u64) -> [f64; LANE] {
        let steps = self.draws.steps(self.draws.draws(tick_key));
        std::array::from_fn(|index| noise(steps[index], self.slopes[index], self.outputs.of(index), tick))
    }
}

/// The value of a stateless series, from its clipped step.
#[inline(always)]
pub(crate) fn noise(step: f64, slope: f64, output: Output, tick: f64) -> f64 {
    (step * output.multiple + (output.base + slope * tick)) / output.divisor
}

/// A new level of a repeated series.
#[derive(Clone, Copy, Debug)]
pub(super) struct LevelDraw {
    pub(super) level_key: u64,
    pub(super) levels: u64,
    pub(super) output: Output,
}

/// Two minima and one sign test, because these vectorize and four comparisons do not.
#[inline(always)]
pub(super) fn any_below_zero(margins: [f64; LANE]) -> bool {
    let low = |a: f64, b: f64| if a < b { a } else { b };
    low(low(margins[0], margins[2]), low(margins[1], margins[3])) < 0.0
}

/// Tests whether any of four series changes; the changes themselves are stored apart.
#[derive(Debug)]
pub(super) struct LevelLane {
    pub(super) keys: [u64; LANE],
    /// Thresholds plus 2^52, the form in which draws are compared.
    pub(super) thresholds: [f64; LANE],
    pub(super) at: [u32; LANE],
}

impl LevelLane {
    pub(super) fn new(series: &[LevelSeries; LANE]) -> Self {
        Self {
            keys: series.map(|change| change.key),
            thresholds: series.map(|change| hash::TWO_52 + change.often as f64),
            at: series.map(|change| change.at),
        }
    }

    /// The distance of each draw to its threshold: negative if the series changes.
    #[inline(always)]
    pub(super) fn margins(&self, tick_key: u64) -> [f64; LANE] {
        std::array::from_fn(|index| hash::draw_on_two_52(self.keys[index], tick_key) - self.thresholds[index])
    }

    #[inline(always)]
    pub(super) fn any(&self, tick_key: u64) -> bool {
        any_below_zero(self.margins(tick_key))
    }

    #[cold]
    pub(super) fn happen(&self, events: &[LevelDraw; LANE], tick_key: u64, row: &mut [f64]) {
        for ((margin, event), &at) in self.margins(tick_key).iter().zip(events).zip(&self.at) {
            if *margin < 0.0 {
                let level = value_model::level(event.level_key, tick_key, event.levels);
                row[at as usize] = event.output.apply(level);
            }
        }
    }
}
