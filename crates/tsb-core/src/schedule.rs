//! The schedule: when operations are due, as a pure function of their number.
//!
//! Due times are nanoseconds from the start of the run, calculated from the number of
//! the operation in integer arithmetic: nothing is added up, so nothing drifts, however
//! late an operation before was. That is what makes a run *open loop*.
//!
//! - [`Schedule`] says when operation `n` is due (constant, Poisson, ramp, steps, burst,
//!   recorded), or that nothing is ever due ([`Schedule::Unpaced`], the closed loop).
//! - [`Roster`] says which host's tick operation `n` is: hosts have intervals and phases.
//! - [`Timetable`] joins the two, and [`Agenda`] is one worker's share of it.
//!
//! It reads no clock and sleeps never: that is the emitter's.

mod agenda;
mod curve;
mod moments;
mod poisson;
mod progress;
mod rate;
mod reach;
mod roster;
mod text;

use std::sync::Arc;

pub use agenda::{Agenda, Pace, Planned, Speed, Timetable};
pub use curve::{Curve, Segment};
pub use moments::Moments;
pub use poisson::PoissonGaps;
#[cfg(feature = "net")]
pub(crate) use poisson::mix;
pub use progress::Progress;
pub use rate::Rate;
pub use roster::{Frontier, Group, Roster, Slot, Walk};
pub use text::ParseError;
pub(crate) use text::per_duration;

use serde::{Deserialize, Serialize};

/// Why a schedule or a roster cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A rate whose reduced fraction does not fit.
    #[error("cannot keep a rate of {events} in {per_ns} ns exactly: both must be below 2^56 once reduced")]
    RateRange {
        /// Samples or operations.
        events: u128,
        /// In so many nanoseconds.
        per_ns: u128,
    },
    /// A schedule that never has an operation.
    #[error("cannot schedule anything at a rate of 0")]
    NeverDue,
    /// A piece of a curve that is empty or too long.
    #[error("cannot use a piece of {length_ns} ns: it must last at least 1 ns and less than 2 years")]
    PieceLength {
        /// Its length.
        length_ns: u64,
    },
    /// Too many pieces.
    #[error("cannot use {pieces} pieces in one schedule: at most {max}")]
    Pieces {
        /// How many there were.
        pieces: usize,
        /// The bound.
        max: usize,
    },
    /// Recorded due times that go back.
    #[error("recorded due time {index} ({due_ns} ns) lies before the one ahead of it")]
    RecordedOrder {
        /// Which one, from 0.
        index: usize,
        /// Its due time.
        due_ns: u64,
    },
    /// A recorded period shorter than what was recorded.
    #[error("cannot repeat the record every {period_ns} ns: its last operation is due at {last_ns} ns")]
    RecordedPeriod {
        /// The period asked for.
        period_ns: u64,
        /// The last due time.
        last_ns: u64,
    },
    /// A group that cannot be scheduled.
    #[error("group {group}: {what}")]
    Group {
        /// Its index.
        group: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// More different intervals than a roster merges.
    #[error("cannot merge {intervals} different intervals in one fleet: at most {max}")]
    Intervals {
        /// How many different ones there are.
        intervals: usize,
        /// The bound.
        max: usize,
    },
}

/// When operations are due.
///
/// By itself it numbers what it makes due, whatever that is. In a timetable a rate and a burst
/// count samples: see [`Pace::Shape`].
///
/// Serialized as text, the same that [`std::str::FromStr`] reads and `Display` writes:
///
/// ```
/// use tsb_core::schedule::Schedule;
///
/// for text in ["max", "constant:1000", "poisson:1000,seed=7", "ramp:0..54000/1m", "burst:54000/1s"] {
///     let schedule: Schedule = text.parse()?;
///     assert_eq!(schedule.to_string().parse(), Ok(schedule));
/// }
/// # Ok::<(), tsb_core::schedule::ParseError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Schedule {
    /// Closed loop: each operation starts when the one before it is done, so a slow
    /// store is asked less. It measures a ceiling, not a response time; a report says
    /// so. Text: `max`.
    Unpaced,
    /// Constant, ramp and steps. Text: `constant:54000`, `ramp:1000..54000/60s`,
    /// `steps:1000*10s,2000*10s` (the last rate goes on).
    Curve(Curve),
    /// Independent arrivals. Text: `poisson:54000,seed=1`.
    Poisson {
        /// The mean rate.
        rate: Rate,
        /// What the gaps are drawn from.
        seed: u64,
    },
    /// `count` samples at once, then nothing until the period is over. Text:
    /// `burst:54000/1s`.
    Burst {
        /// Samples in a burst. in [1, ..)
        count: u64,
        /// From one burst to the next. in [1, ..)
        period_ns: u64,
    },
    /// Due times of operations as they were recorded. Text: `recorded:0s,1ms,1.5ms`, with `/10s`
    /// behind it to repeat.
    Recorded(Recorded),
}

/// Recorded due times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    // Invariant: not empty, never decreasing.
    due_ns: Arc<[u64]>,
    // Invariant: at least the last due time, and positive.
    period_ns: Option<u64>,
}

impl Recorded {
    /// Due times from the start; with a period they begin again after it, otherwise the
    /// schedule ends with the last.
    ///
    /// # Errors
    /// When there is none, when they go back, or when the period is shorter than they are.
    pub fn new(due_ns: Vec<u64>, period_ns: Option<u64>) -> Result<Self, ScheduleError> {
        let Some(&last_ns) = due_ns.last() else {
            return Err(ScheduleError::NeverDue);
        };
        if let Some(index) = due_ns.windows(2).position(|pair| pair[1] < pair[0]) {
            let (index, due_ns) = (index + 1, due_ns[index + 1]);
            return Err(ScheduleError::RecordedOrder { index, due_ns });
        }
        match period_ns {
            Some(period_ns) if period_ns < last_ns.max(1) => Err(ScheduleError::RecordedPeriod { period_ns, last_ns }),
            _ => Ok(Self {
                due_ns: due_ns.into(),
                period_ns,
            }),
        }
    }

    fn due(&self, n: u64) -> Option<u64> {
        let len = self.due_ns.len() as u64;
        let (round, index) = (n / len, n % len);
        let base = match self.period_ns {
            Some(period) => round.saturating_mul(period),
            None if round == 0 => 0,
            None => return None,
        };
        Some(base.saturating_add(self.due_ns[index as usize]))
    }
}

impl Schedule {
    /// One after another at `rate`, evenly spaced.
    ///
    /// # Errors
    /// [`ScheduleError::NeverDue`] at a rate of 0.
    pub fn constant(rate: Rate) -> Result<Self, ScheduleError> {
        Curve::constant(rate).map(Self::Curve)
    }

    /// Whether operations are due at times of their own (everything but `Unpaced`).
    pub const fn is_open_loop(&self) -> bool {
        !matches!(self, Self::Unpaced)
    }

    /// The same shape at `num / den` times the rate: from samples per second to
    /// operations per second, for example. Recorded times are left as they are, with
    /// `None`, since they have no rate.
    ///
    /// # Errors
    /// When a scaled rate has no exact fraction below 2^56.
    pub fn scaled(&self, num: u64, den: u64) -> Result<Option<Self>, ScheduleError> {
        Ok(match self {
            Self::Unpaced => Some(Self::Unpaced),
            Self::Curve(curve) => Some(Self::Curve(curve.scaled(num, den)?)),
            Self::Poisson { rate, seed } => Some(Self::Poisson {
                rate: rate.scaled(num, den)?,
                seed: *seed,
            }),
            Self::Burst { count, period_ns } => {
                let scaled = u128::from(*count) * u128::from(num) / u128::from(den.max(1));
                Some(Self::Burst {
                    count: u64::try_from(scaled).unwrap_or(u64::MAX).max(1),
                    period_ns: *period_ns,
                })
            }
            Self::Recorded(_) => None,
        })
    }

    /// The schedule of the operations of a roster, where this one is of its samples: arrivals
    /// at random are those of operations, so their rate is divided by the samples that an
    /// operation has. Everything else stays as it is.
    ///
    /// # Errors
    /// When the rate of operations has no exact fraction below 2^56.
    pub fn of_operations(&self, roster: &Roster) -> Result<Self, ScheduleError> {
        let Self::Poisson { rate, seed } = self else {
            return Ok(self.clone());
        };
        let share = roster.operations_at(0)?.over(roster.rate_at(0)?)?;
        let (num, den) = share.ok_or(ScheduleError::NeverDue)?;
        Ok(Self::Poisson {
            rate: rate.scaled(num, den)?,
            seed: *seed,
        })
    }

    /// Whether it counts samples, and not operations: a rate or bursts.
    pub const fn counts_samples(&self) -> bool {
        matches!(self, Self::Curve(_) | Self::Burst { .. } | Self::Poisson { .. })
    }

    /// Due times in order, from operation 0.
    pub fn cursor(&self) -> Cursor {
        let gaps = match self {
            Self::Poisson { rate, seed } => Some(PoissonGaps::new(*rate, *seed)),
            _ => None,
        };
        Cursor {
            schedule: self.clone(),
            gaps,
            n: 0,
        }
    }

    /// When operation `n` is due, in nanoseconds from the start; `None` when it never is
    /// (a closed loop, or a record that has ended).
    ///
    /// A pure function of `n`. For Poisson it costs a step for each operation before:
    /// use [`Schedule::cursor`] to go forward.
    pub fn due(&self, n: u64) -> Option<u64> {
        match self {
            Self::Unpaced => None,
            Self::Curve(curve) => curve.due(n),
            Self::Poisson { rate, seed } => {
                let mut gaps = PoissonGaps::new(*rate, *seed);
                for _ in 0..n {
                    gaps.advance();
                }
                gaps.due()
            }
            Self::Burst { count, period_ns } => Some((n / count).saturating_mul(*period_ns)),
            Self::Recorded(recorded) => recorded.due(n),
        }
    }
}

/// Goes through the due times of a schedule.
#[derive(Clone, Debug)]
pub struct Cursor {
    schedule: Schedule,
    // Some: Poisson, standing at operation n.
    gaps: Option<PoissonGaps>,
    n: u64,
}

impl Cursor {
    /// When the operation that the cursor stands at is due.
    #[inline]
    pub fn due(&self) -> Option<u64> {
        match &self.gaps {
            Some(gaps) => gaps.due(),
            None => self.schedule.due(self.n),
        }
    }

    /// Goes to the next.
    #[inline]
    pub fn advance(&mut self) {
        self.advance_by(1);
    }

    /// Goes past an operation of `samples` samples: a rate and a burst count them, arrivals and
    /// recorded times are one for each operation.
    #[inline]
    pub fn advance_by(&mut self, samples: u64) {
        match (&mut self.gaps, &self.schedule) {
            (Some(gaps), _) => gaps.advance(),
            (None, Schedule::Recorded(_)) => self.n += 1,
            (None, _) => self.n += samples,
        }
    }
}

impl Iterator for Cursor {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let due = self.due()?;
        self.advance();
        Some(due)
    }
}

#[cfg(test)]
mod tests;
