//! Value models as a fleet file defines them, and how a series draws its parameters.

use serde::{Deserialize, Serialize};

use crate::workload::error::WorkloadError;
use crate::workload::hash::{self, Stream};
use crate::workload::value_model::{Clipped, Fold, Output, Uniform, ValueModel};

/// A parameter of a value model, drawn once per series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number, a list of numbers to choose from, or { from = A, to = B }"
)]
#[non_exhaustive]
pub enum Pick {
    /// The same value for all series.
    One(f64),
    /// One of these values, with equal probability.
    OneOf(Vec<f64>),
    /// An integer between two bounds, inclusive.
    Between(Between),
}

/// Two bounds, inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Between {
    /// The lowest.
    pub from: f64,
    /// The highest.
    pub to: f64,
}

impl Pick {
    fn draw(&self, stream: &mut Stream) -> f64 {
        match self {
            Self::One(value) => *value,
            Self::OneOf(list) => list[stream.below(list.len() as u64) as usize],
            Self::Between(span) => span.from + stream.below((span.to - span.from) as u64 + 1) as f64,
        }
    }

    /// The lowest and the highest value, if every value is an integer of acceptable size.
    fn range(&self) -> Option<(f64, f64)> {
        let (low, high) = match self {
            Self::One(value) => (*value, *value),
            Self::OneOf(list) => {
                if list.is_empty() || list.iter().any(|x| x.fract() != 0.0) {
                    return None;
                }
                let fold = |pick: fn(f64, f64) -> f64, start| list.iter().copied().fold(start, pick);
                (fold(f64::min, f64::INFINITY), fold(f64::max, f64::NEG_INFINITY))
            }
            Self::Between(span) => (span.from, span.to),
        };
        let whole = low.fract() == 0.0 && high.fract() == 0.0;
        (whole && low <= high && low.abs() <= 1e15 && high.abs() <= 1e15).then_some((low, high))
    }
}

/// The model that generates the values of a series; in a fleet file it is the key `law`. Values,
/// bounds, steps and levels are integers in units of the last decimal sent: with `decimals = 2`, a step
/// of 100 is 1.00. `every`, `still` and `resets_every` may be fractions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[non_exhaustive]
pub enum ValueModelSpec {
    /// Always the same value.
    Constant {
        /// The value.
        value: Pick,
    },
    /// Keeps its value, and draws a new one about every `every` ticks.
    Repeated {
        /// Mean number of ticks between two draws; at least 1.
        every: f64,
        /// The lowest level.
        base: Pick,
        /// Number of levels, which are `multiple` apart.
        levels: Pick,
        /// The distance between levels.
        #[serde(default = "unit")]
        multiple: f64,
        /// Decimals of the value.
        #[serde(default)]
        decimals: u8,
    },
    /// A counter that only grows.
    Counter {
        /// Initial value.
        start: Pick,
        /// Increments are uniform below this.
        below: Pick,
        /// Probability that it does not change; the other increments are then at least 1.
        #[serde(default)]
        still: f64,
        /// Mean number of ticks between two resets to 0; 0 means never.
        #[serde(default)]
        resets_every: f64,
    },
    /// A random walk with uniform steps, reflected at its bounds.
    Walk {
        /// Initial value.
        start: Pick,
        /// The largest step in either direction.
        step: Pick,
        /// The lower bound.
        #[serde(default)]
        low: f64,
        /// The upper bound, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        high: Option<f64>,
        /// Steps and distances from `low` are multiples of this.
        #[serde(default = "unit")]
        multiple: f64,
        /// Decimals of the value.
        #[serde(default)]
        decimals: u8,
    },
    /// An independent draw at every tick.
    Noise {
        /// The lowest value at tick 0.
        base: Pick,
        /// Draws are uniform below this.
        below: Pick,
        /// Probability that the draw is 0.
        #[serde(default)]
        still: f64,
        /// Growth of the base per tick.
        #[serde(default)]
        slope: f64,
        /// Draws are multiples of this.
        #[serde(default = "unit")]
        multiple: f64,
        /// Decimals of the value.
        #[serde(default)]
        decimals: u8,
    },
}

const fn unit() -> f64 {
    1.0
}

/// The largest increment or step: sums stay exact for more than ten million ticks.
const MAX_STEP: f64 = 1_073_741_824.0;

impl ValueModelSpec {
    /// Draws the parameters of one series.
    pub(crate) fn draw(&self, stream: &mut Stream) -> ValueModel {
        match self {
            Self::Constant { value } => ValueModel::Constant {
                value: value.draw(stream),
            },
            Self::Repeated {
                every,
                base,
                levels,
                multiple,
                decimals,
            } => ValueModel::Repeated {
                change: hash::threshold(1.0 / every),
                output: output(*multiple, base.draw(stream), *decimals),
                levels: levels.draw(stream) as u64,
            },
            Self::Counter {
                start,
                below,
                still,
                resets_every,
            } => {
                let (start, below) = (start.draw(stream), below.draw(stream));
                if *still == 0.0 && *resets_every == 0.0 {
                    return ValueModel::Sum {
                        start,
                        steps: Uniform::new(0.0, below as u32),
                        fold: Fold::AT_ZERO,
                        output: Output::PLAIN,
                    };
                }
                ValueModel::PausingCounter {
                    start,
                    steps: clipped(below, *still),
                    reset: if *resets_every > 0.0 {
                        hash::threshold(1.0 / resets_every)
                    } else {
                        0
                    },
                }
            }
            Self::Walk {
                start,
                step,
                low,
                high,
                multiple,
                decimals,
            } => {
                let step = step.draw(stream);
                ValueModel::Sum {
                    start: ((start.draw(stream) - low) / multiple).round(),
                    steps: Uniform::new(-step, 2 * step as u32 + 1),
                    fold: high.map_or(Fold::AT_ZERO, |high| Fold::band(((high - low) / multiple).floor())),
                    output: output(*multiple, *low, *decimals),
                }
            }
            Self::Noise {
                base,
                below,
                still,
                slope,
                multiple,
                decimals,
            } => ValueModel::Noise {
                output: output(*multiple, base.draw(stream), *decimals),
                draws: clipped(below.draw(stream), *still),
                slope: *slope,
            },
        }
    }

    /// Checks that its parameters are valid.
    pub(crate) fn check(&self, family: &str) -> Result<(), WorkloadError> {
        let checker = Checker { family };
        match self {
            Self::Constant { value } => checker.integers("value", value, -1e15, 1e15),
            Self::Repeated {
                every,
                base,
                levels,
                multiple,
                decimals,
            } => {
                checker.within("every", *every, 1.0, 1e9)?;
                checker.integers("base", base, -1e15, 1e15)?;
                checker.integers("levels", levels, 1.0, MAX_STEP)?;
                checker.output(*multiple, *decimals)
            }
            Self::Counter {
                start,
                below,
                still,
                resets_every,
            } => {
                checker.integers("start", start, 0.0, 1e15)?;
                checker.integers("below", below, if *still > 0.0 { 2.0 } else { 1.0 }, MAX_STEP)?;
                checker.within("still", *still, 0.0, 0.999_999)?;
                if *resets_every != 0.0 {
                    checker.within("resets_every", *resets_every, 1.0, 1e9)?;
                }
                Ok(())
            }
            Self::Walk {
                start,
                step,
                low,
                high,
                multiple,
                decimals,
            } => {
                checker.integers("start", start, *low, high.unwrap_or(1e15))?;
                checker.integers("step", step, 0.0, MAX_STEP)?;
                checker.integers("low", &Pick::One(*low), -1e15, 1e15)?;
                checker.output(*multiple, *decimals)?;
                if let Some(high) = high {
                    checker.integers("high", &Pick::One(*high), low + multiple, 1e15)?;
                }
                Ok(())
            }
            Self::Noise {
                base,
                below,
                still,
                slope,
                multiple,
                decimals,
            } => {
                checker.integers("base", base, -1e15, 1e15)?;
                checker.integers("below", below, if *still > 0.0 { 2.0 } else { 1.0 }, MAX_STEP)?;
                checker.within("still", *still, 0.0, 0.999_999)?;
                checker.integers("slope", &Pick::One(*slope), -1e6, 1e6)?;
                checker.output(*multiple, *decimals)
            }
        }
    }
}

/// Reports the model and the field of an invalid parameter.
#[derive(Clone, Copy, Debug)]
struct Checker<'a> {
    family: &'a str,
}

impl Checker<'_> {
    fn invalid(self, field: &str, what: &str) -> Result<(), WorkloadError> {
        let family = self.family;
        Err(WorkloadError::invalid(&format!("{family}: law.{field}"), what))
    }

    fn integers(self, field: &str, pick: &Pick, low: f64, high: f64) -> Result<(), WorkloadError> {
        match pick.range() {
            Some((from, to)) if from >= low && to <= high => Ok(()),
            _ => self.invalid(field, &format!("must be integers from {low} to {high}, in order")),
        }
    }

    fn within(self, field: &str, value: f64, low: f64, high: f64) -> Result<(), WorkloadError> {
        if (low..=high).contains(&value) {
            Ok(())
        } else {
            self.invalid(field, &format!("must be from {low} to {high}"))
        }
    }

    fn output(self, multiple: f64, decimals: u8) -> Result<(), WorkloadError> {
        self.integers("multiple", &Pick::One(multiple), 1.0, 1e9)?;
        self.within("decimals", f64::from(decimals), 0.0, 9.0)
    }
}

fn output(multiple: f64, base: f64, decimals: u8) -> Output {
    Output {
        multiple,
        base,
        divisor: 10f64.powi(i32::from(decimals)),
    }
}

fn clipped(below: f64, still: f64) -> Clipped {
    if still > 0.0 {
        Clipped::new(still, below - 1.0)
    } else if below > 1.0 {
        // Uniform from 0 on, with 0 as likely as any other value.
        Clipped::new(1.0 / below, below - 1.0)
    } else {
        Clipped::from_parts(0.0, 0.0)
    }
}
