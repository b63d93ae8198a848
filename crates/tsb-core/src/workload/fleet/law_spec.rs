//! The laws as a fleet file writes them, and how a series draws its parameters.

use serde::{Deserialize, Serialize};

use crate::workload::error::WorkloadError;
use crate::workload::hash::{self, Stream};
use crate::workload::law::{Fold, Law, Output, Step};

/// A number of a law, drawn once for each series.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a number, a list of numbers to choose from, or { from = A, to = B }"
)]
pub enum Pick {
    /// The same for all.
    One(f64),
    /// One of these, each as often.
    OneOf(Vec<f64>),
    /// An integer between the two, both included.
    Between(Between),
}

/// Two bounds, both included.
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

    /// Lowest and highest, when every number is an integer of reasonable size.
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

/// How the values of a series come about. All numbers are integers in units of the last
/// decimal that is sent: with `decimals = 2`, a step of 100 is 1.00.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum LawSpec {
    /// Always the same value.
    Constant {
        /// The value.
        value: Pick,
    },
    /// Keeps its value; about every `every` ticks it draws another.
    Repeated {
        /// Mean number of ticks between two draws; at least 1.
        every: f64,
        /// The lowest level.
        base: Pick,
        /// How many levels there are, `multiple` apart.
        levels: Pick,
        /// The distance of two levels.
        #[serde(default = "unit")]
        multiple: f64,
        /// Decimals of the value.
        #[serde(default)]
        decimals: u8,
    },
    /// Only grows.
    Counter {
        /// Where it begins.
        start: Pick,
        /// Increments are uniform below this.
        below: Pick,
        /// How often it stands still; the other increments are then at least 1.
        #[serde(default)]
        still: f64,
        /// Mean number of ticks between two resets to 0; 0: never.
        #[serde(default)]
        resets_every: f64,
    },
    /// Up and down by a uniform step, reflected at its bounds.
    Walk {
        /// Where it begins.
        start: Pick,
        /// The largest step either way.
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
    /// A draw of its own at every tick, without memory.
    Noise {
        /// The lowest value at tick 0.
        base: Pick,
        /// Draws are uniform below this.
        below: Pick,
        /// How often the draw is 0.
        #[serde(default)]
        still: f64,
        /// What the base grows by in each tick.
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

impl LawSpec {
    /// Draws the parameters of one series.
    pub(crate) fn draw(&self, stream: &mut Stream) -> Law {
        match self {
            Self::Constant { value } => Law::Constant {
                value: value.draw(stream),
            },
            Self::Repeated {
                every,
                base,
                levels,
                multiple,
                decimals,
            } => Law::Repeated {
                change: hash::threshold(1.0 / every),
                output: output(*multiple, base.draw(stream), *decimals),
                levels: levels.draw(stream) as u64,
            },
            Self::Counter {
                start,
                below,
                still,
                resets_every,
            } => Law::Counter {
                start: start.draw(stream),
                step: clipped(below.draw(stream), *still),
                reset: if *resets_every > 0.0 {
                    hash::threshold(1.0 / resets_every)
                } else {
                    0
                },
            },
            Self::Walk {
                start,
                step,
                low,
                high,
                multiple,
                decimals,
            } => {
                let step = step.draw(stream);
                Law::Walk {
                    start: ((start.draw(stream) - low) / multiple).round(),
                    step: Step::uniform(-step, 2.0 * step + 1.0),
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
            } => Law::Noise {
                output: output(*multiple, base.draw(stream), *decimals),
                step: clipped(below.draw(stream), *still),
                slope: *slope,
            },
        }
    }

    /// Whether its numbers make sense.
    pub(crate) fn check(&self, family: &str) -> Result<(), WorkloadError> {
        let invalid = |field: &str, what: &str| Err(WorkloadError::invalid(&format!("{family}: law.{field}"), what));
        let integers = |field: &str, pick: &Pick, low: f64, high: f64| match pick.range() {
            Some((from, to)) if from >= low && to <= high => Ok(()),
            _ => invalid(field, &format!("must be integers from {low} to {high}, in order")),
        };
        let within = |field: &str, value: f64, low: f64, high: f64| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                invalid(field, &format!("must be from {low} to {high}"))
            }
        };
        let multiple_of = |multiple: &f64, decimals: &u8| {
            integers("multiple", &Pick::One(*multiple), 1.0, 1e9)?;
            within("decimals", f64::from(*decimals), 0.0, 9.0)
        };
        match self {
            Self::Constant { value } => integers("value", value, -1e15, 1e15),
            Self::Repeated {
                every,
                base,
                levels,
                multiple,
                decimals,
            } => {
                within("every", *every, 1.0, 1e9)?;
                integers("base", base, -1e15, 1e15)?;
                integers("levels", levels, 1.0, MAX_STEP)?;
                multiple_of(multiple, decimals)
            }
            Self::Counter {
                start,
                below,
                still,
                resets_every,
            } => {
                integers("start", start, 0.0, 1e15)?;
                integers("below", below, if *still > 0.0 { 2.0 } else { 1.0 }, MAX_STEP)?;
                within("still", *still, 0.0, 0.999_999)?;
                if *resets_every != 0.0 {
                    within("resets_every", *resets_every, 1.0, 1e9)?;
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
                integers("start", start, *low, high.unwrap_or(1e15))?;
                integers("step", step, 0.0, MAX_STEP)?;
                integers("low", &Pick::One(*low), -1e15, 1e15)?;
                multiple_of(multiple, decimals)?;
                if let Some(high) = high {
                    integers("high", &Pick::One(*high), low + multiple, 1e15)?;
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
                integers("base", base, -1e15, 1e15)?;
                integers("below", below, if *still > 0.0 { 2.0 } else { 1.0 }, MAX_STEP)?;
                within("still", *still, 0.0, 0.999_999)?;
                integers("slope", &Pick::One(*slope), -1e6, 1e6)?;
                multiple_of(multiple, decimals)
            }
        }
    }
}

fn output(multiple: f64, base: f64, decimals: u8) -> Output {
    Output {
        multiple,
        base,
        divisor: 10f64.powi(i32::from(decimals)),
    }
}

fn clipped(below: f64, still: f64) -> Step {
    if still > 0.0 {
        Step::still(still, below - 1.0)
    } else {
        Step::uniform(0.0, below)
    }
}
