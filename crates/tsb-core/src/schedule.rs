//! The schedule: when operations are due, as a pure function of their number.
//!
//! Due times are nanoseconds from the start of the run, calculated from the number of the
//! operation in integer arithmetic. Nothing is accumulated, so nothing drifts, however late an
//! earlier operation was. This makes a run *open loop*.
//!
//! - [`Schedule`] says when operation `n` is due (constant, Poisson, ramp, steps, burst,
//!   recorded), or that nothing is ever due ([`Schedule::Unpaced`], the closed loop).
//! - [`Roster`] says which host's tick operation `n` is: hosts have intervals and phases.
//! - [`Timetable`] joins the two, and [`Agenda`] is one worker's share of it.
//!
//! It reads no clock and never sleeps; the emitter does.

mod agenda;
mod curve;
mod poisson;
mod progress;
mod rate;
mod reach;
mod roster;
mod text;
mod tick_times;

use std::sync::Arc;

pub use agenda::{Agenda, Pace, Planned, Speed, Timetable};
pub use curve::{Curve, Segment};
pub use poisson::PoissonGaps;
#[cfg(feature = "net")]
pub(crate) use poisson::mix;
pub use progress::Progress;
pub use rate::Rate;
pub use roster::{Frontier, Group, Roster, Slot, Walk};
pub use text::ParseError;
pub(crate) use text::per_duration;
pub use tick_times::TickTimes;

use serde::{Deserialize, Serialize};

/// Why a schedule or a roster cannot be built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScheduleError {
    /// A rate whose reduced fraction does not fit.
    #[error("cannot keep a rate of {events} in {per_ns} ns exactly: both must be below 2^56 once reduced")]
    RateRange {
        /// Number of samples or operations.
        events: u128,
        /// Nanoseconds in which they are due.
        per_ns: u128,
    },
    /// A schedule in which no operation is ever due.
    #[error("cannot schedule anything at a rate of 0")]
    NeverDue,
    /// A piece of a curve that is empty or too long.
    #[error("cannot use a piece of {length_ns} ns: it must last at least 1 ns and less than 2^56 ns (2.28 years)")]
    PieceLength {
        /// Its length.
        length_ns: u64,
    },
    /// Too many pieces in a curve.
    #[error("cannot use {pieces} pieces in one schedule: at most {max}")]
    Pieces {
        /// Number of pieces.
        pieces: usize,
        /// The limit.
        max: usize,
    },
    /// Recorded due times that decrease.
    #[error("recorded due time {index} ({due_ns} ns) is earlier than the one before it")]
    RecordedOrder {
        /// Index of the offending time, from 0.
        index: usize,
        /// Its due time.
        due_ns: u64,
    },
    /// A period shorter than the recorded due times.
    #[error("cannot repeat the record every {period_ns} ns: its last operation is due at {last_ns} ns")]
    RecordedPeriod {
        /// The requested period.
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
    /// More different intervals than a roster can merge.
    #[error("cannot merge {intervals} different intervals in one fleet: at most {max}")]
    Intervals {
        /// Number of different intervals.
        intervals: usize,
        /// The limit.
        max: usize,
    },
}

/// When operations are due.
///
/// A schedule numbers the events that it makes due. In a timetable, the events of a rate or a
/// burst are samples: see [`Pace::Shape`].
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
#[non_exhaustive]
pub enum Schedule {
    /// Closed loop: each operation starts when the one before is done, so a slow store receives
    /// less load. It measures a ceiling and not a response time, which the report states. Text:
    /// `max`.
    Unpaced,
    /// Constant, ramp and steps: the only kind whose highest rate is judged by itself. Text: `constant:54000`, `ramp:1000..54000/60s`,
    /// `steps:1000*10s,2000*10s` (the last rate goes on).
    Curve(Curve),
    /// Independent arrivals. Text: `poisson:54000,seed=1`.
    Poisson {
        /// The mean rate.
        rate: Rate,
        /// Seed of the random gaps.
        seed: u64,
    },
    /// `count` samples at once, then none until the period ends. Text: `burst:54000/1s`.
    Burst {
        /// Samples in a burst. in [1, ..)
        count: u64,
        /// Nanoseconds from one burst to the next. in [1, ..)
        period_ns: u64,
    },
    /// Recorded due times of operations. Text: `recorded:0s,1ms,1.5ms`, with `/10s` appended to
    /// repeat.
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
    /// Due times from the start. With a period they repeat, otherwise the schedule ends with the
    /// last.
    ///
    /// # Errors
    /// If there are none, if they decrease, or if the period is shorter than the last.
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
    /// Evenly spaced operations at `rate`.
    ///
    /// # Errors
    /// [`ScheduleError::NeverDue`] at a rate of 0.
    pub fn constant(rate: Rate) -> Result<Self, ScheduleError> {
        Curve::constant(rate).map(Self::Curve)
    }

    /// Whether operations have due times (every schedule but `Unpaced`).
    pub const fn is_open_loop(&self) -> bool {
        !matches!(self, Self::Unpaced)
    }

    /// The same shape at `num / den` times the rate, for example to convert samples per second to
    /// operations per second. `None` for recorded times, which have no rate.
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

    /// The schedule of the operations of a roster, if this one counts samples. The rate of Poisson
    /// arrivals, which are operations, is divided by the samples per operation of the whole fleet; any other
    /// schedule stays the same.
    ///
    /// # Errors
    /// When the rate of operations has no exact fraction below 2^56.
    pub fn of_operations(&self, roster: &Roster) -> Result<Self, ScheduleError> {
        let Self::Poisson { rate, seed } = self else {
            return Ok(self.clone());
        };
        let (whole, _) = roster.scheduled();
        let share = whole.operations_at(0)?.over(whole.rate_at(0)?)?;
        let (num, den) = share.ok_or(ScheduleError::NeverDue)?;
        Ok(Self::Poisson {
            rate: rate.scaled(num, den)?,
            seed: *seed,
        })
    }

    /// Whether its events are samples and not operations: true for rates, bursts and Poisson arrivals.
    /// Ask before [`Schedule::of_operations`]: afterwards the events are operations, and Poisson arrivals
    /// still say true.
    pub const fn counts_samples(&self) -> bool {
        matches!(self, Self::Curve(_) | Self::Burst { .. } | Self::Poisson { .. })
    }

    /// A cursor over the due times, at operation 0.
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

    /// Due time of operation `n`, in nanoseconds from the start; `None` if it is never due (a
    /// closed loop, or a record that has ended).
    ///
    /// A pure function of `n`. For Poisson it takes `n` steps: use [`Schedule::cursor`] to go
    /// forward.
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

/// Iterates over the due times of a schedule.
#[derive(Clone, Debug)]
pub struct Cursor {
    schedule: Schedule,
    // `Some` for Poisson, positioned at operation n.
    gaps: Option<PoissonGaps>,
    n: u64,
}

impl Cursor {
    /// Due time of the current operation.
    #[inline]
    pub fn due(&self) -> Option<u64> {
        match &self.gaps {
            Some(gaps) => gaps.due(),
            None => self.schedule.due(self.n),
        }
    }

    /// Moves to the next operation.
    #[inline]
    pub fn advance(&mut self) {
        self.advance_by(1);
    }

    /// Moves past an operation of `samples` samples: by `samples` for a rate or a burst, by one
    /// for Poisson arrivals and recorded times.
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
