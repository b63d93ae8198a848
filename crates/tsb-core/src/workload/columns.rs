//! Columns: the values of one series over many ticks.
//!
//! The same value models as in [`super::rows`], but along the other axis: draws and outputs are
//! vector loops over ticks, with a running sum between them. The sum is taken over four stretches
//! at once, because each addition waits for the previous one.

use super::hash::{self, Purpose};
use super::rows;
use super::value_model::{self, Fold, Keys, Output, ValueModel};

/// Number of ticks per call.
pub(crate) const CHUNK: usize = 256;
const QUARTER: usize = CHUNK / 4;

/// One series, advanced tick by tick.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColumnGenerator {
    model: ValueModel,
    key: u64,
    level_key: u64,
    /// Running state before the next tick.
    pub(crate) state: f64,
}

impl ColumnGenerator {
    pub(crate) fn new(model: ValueModel, keys: Keys, state: f64) -> Self {
        Self {
            model,
            key: keys.of(Purpose::Step),
            level_key: keys.of(Purpose::Level),
            state,
        }
    }

    /// Fills `values` with the next ticks, starting at `tick`, whose keys are in `tick_keys`. At
    /// most [`CHUNK`] per call.
    pub(crate) fn fill(&mut self, tick: u64, tick_keys: &[u64], values: &mut [f64]) {
        let key = self.key;
        match self.model {
            ValueModel::Constant { .. } | ValueModel::Recorded => values.fill(self.state),
            ValueModel::Repeated { change, levels, output } => {
                for (value, &tick_key) in values.iter_mut().zip(tick_keys) {
                    *value = hash::draw_f64(key, tick_key);
                }
                let change = change as f64;
                for (value, &tick_key) in values.iter_mut().zip(tick_keys) {
                    if *value < change {
                        self.state = output.apply(value_model::level(self.level_key, tick_key, levels));
                    }
                    *value = self.state;
                }
            }
            ValueModel::Sum {
                steps, fold, output, ..
            } => {
                for (value, &tick_key) in values.iter_mut().zip(tick_keys) {
                    *value = steps.at(key, tick_key);
                }
                self.state = if fold == Fold::AT_ZERO && output == Output::PLAIN {
                    sum(values, self.state, f64::abs)
                } else {
                    sum(values, self.state, |x| output.apply(fold.apply(x)))
                };
            }
            ValueModel::PausingCounter { steps, reset, .. } => {
                let mut resets = 0;
                for (value, &tick_key) in values.iter_mut().zip(tick_keys) {
                    let draw = hash::draw_f64(key, tick_key);
                    resets += u64::from(draw < reset as f64);
                    *value = steps.at(draw);
                }
                if resets == 0 {
                    self.state = sum(values, self.state, |x| x);
                } else {
                    self.sum_with_resets(reset, tick_keys, values);
                }
            }
            ValueModel::Noise { draws, slope, output } => {
                for ((value, &tick_key), tick) in values.iter_mut().zip(tick_keys).zip(tick..) {
                    let step = draws.at(hash::draw_f64(key, tick_key));
                    *value = rows::noise(step, slope, output, tick as f64);
                }
            }
        }
    }

    #[cold]
    fn sum_with_resets(&mut self, reset: u64, tick_keys: &[u64], values: &mut [f64]) {
        let mut start = 0;
        for (index, &tick_key) in tick_keys.iter().enumerate() {
            if hash::draw(self.key, tick_key) < reset {
                sum(&mut values[start..index], self.state, |x| x);
                values[index] = 0.0;
                self.state = 0.0;
                start = index + 1;
            }
        }
        self.state = sum(&mut values[start..], self.state, |x| x);
    }
}

/// Replaces steps by the output of their running sum, which starts at `state`; returns the final
/// sum. Sums are exact, so the order of additions does not matter.
#[inline(always)]
fn sum(values: &mut [f64], state: f64, output: impl Fn(f64) -> f64) -> f64 {
    let Ok(whole) = <&mut [f64; CHUNK]>::try_from(&mut *values) else {
        let mut state = state;
        for value in values {
            state += *value;
            *value = output(state);
        }
        return state;
    };
    let (first, rest) = whole.split_at_mut(QUARTER);
    let (second, rest) = rest.split_at_mut(QUARTER);
    let (third, fourth) = rest.split_at_mut(QUARTER);
    let mut sums = [0.0; 4];
    let steps = first
        .iter_mut()
        .zip(second.iter_mut())
        .zip(third.iter_mut().zip(fourth.iter_mut()));
    for ((a, b), (c, d)) in steps {
        sums[0] += *a;
        sums[1] += *b;
        sums[2] += *c;
        sums[3] += *d;
        (*a, *b, *c, *d) = (sums[0], sums[1], sums[2], sums[3]);
    }
    let mut state = state;
    for (stretch, total) in [first, second, third, fourth].into_iter().zip(sums) {
        for value in stretch.iter_mut() {
            *value = output(state + *value);
        }
        state += total;
    }
    state
}
