//! Rates over time (constant, ramp and steps) as one curve of straight pieces.
//!
//! Operation `n` is due at the first nanosecond at which the area under the curve has reached `n`.
//! The area is kept as an exact fraction. A ramp is first solved in floating point and then
//! corrected by exact integer comparisons, so the result does not depend on the machine's floating
//! point.

use super::ScheduleError;
use super::rate::{Rate, gcd};

/// Maximum number of pieces in a curve.
pub(super) const PIECES_MAX: usize = 1024;
/// Upper bound of the length of a piece, in nanoseconds (2.28 years); exclusive.
const LENGTH_MAX: u64 = 1 << 56;

/// A piece of a rate curve, on which the rate changes linearly from `from` to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The rate at its start.
    pub from: Rate,
    /// The rate at its end.
    pub to: Rate,
    /// Its duration, in nanoseconds. in [1, 2^56)
    pub length_ns: u64,
}

/// A rate over time: pieces, then a constant rate for ever.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Curve {
    segments: Vec<Segment>,
    last: Rate,
    pieces: Vec<PreparedSegment>,
    // The common denominator of all rates. in [1, 2^56)
    per_ns: u64,
}

/// A segment prepared for evaluation. Areas are counted in 1 / (2 * per_ns) operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct PreparedSegment {
    start_ns: u64,
    // u64::MAX: the last piece, which is constant.
    length_ns: u64,
    // Rates at both ends, in events per `per_ns`. in [0, 2^56)
    from: u64,
    to: u64,
    // The area under all pieces before it.
    area: u128,
}

impl Curve {
    /// A constant rate for ever.
    ///
    /// # Errors
    /// [`ScheduleError::NeverDue`] at a rate of 0.
    pub fn constant(rate: Rate) -> Result<Self, ScheduleError> {
        Self::new(Vec::new(), rate)
    }

    /// A linear change from one rate to another, which then continues.
    ///
    /// # Errors
    /// As [`Curve::steps`].
    pub fn ramp(from: Rate, to: Rate, length_ns: u64) -> Result<Self, ScheduleError> {
        Self::new(vec![Segment { from, to, length_ns }], to)
    }

    /// A sequence of rates, each for a time in nanoseconds; the last continues for ever (a last
    /// rate of 0 ends the schedule).
    ///
    /// # Errors
    /// If nothing is ever due, if a piece is empty or too long, if there are too many pieces, or
    /// if their rates have no common denominator below 2^56.
    pub fn steps(steps: &[(Rate, u64)]) -> Result<Self, ScheduleError> {
        let piece = |&(rate, length_ns): &(Rate, u64)| Segment {
            from: rate,
            to: rate,
            length_ns,
        };
        let last = steps.last().map_or(Rate::ZERO, |step| step.0);
        Self::new(steps.iter().map(piece).collect(), last)
    }

    /// Rates that stay or change linearly, one piece after the other; the rate at the end of the
    /// last piece continues for ever.
    ///
    /// # Errors
    /// As [`Curve::steps`].
    pub fn pieces(segments: Vec<Segment>) -> Result<Self, ScheduleError> {
        let last = segments.last().map_or(Rate::ZERO, |segment| segment.to);
        Self::new(segments, last)
    }

    /// A curve of pieces in order, then `last` for ever.
    pub(super) fn new(segments: Vec<Segment>, last: Rate) -> Result<Self, ScheduleError> {
        if segments.len() > PIECES_MAX {
            let (pieces, max) = (segments.len(), PIECES_MAX);
            return Err(ScheduleError::Pieces { pieces, max });
        }
        if last.is_zero() && segments.iter().all(|s| s.from.is_zero() && s.to.is_zero()) {
            return Err(ScheduleError::NeverDue);
        }
        let rates = segments.iter().flat_map(|s| [s.from, s.to]).chain([last]);
        let per_ns = rates.clone().try_fold(1u128, |common, rate| {
            let per = u128::from(rate.per_ns());
            let lcm = common / gcd(common, per) * per;
            let fits = lcm < 1 << 56;
            let error = ScheduleError::RateRange {
                events: rate.events().into(),
                per_ns: lcm,
            };
            if fits { Ok(lcm) } else { Err(error) }
        })? as u64;
        let scale = |rate: Rate| {
            let events = u128::from(rate.events()) * u128::from(per_ns / rate.per_ns());
            let fits = u64::try_from(events).ok().filter(|&events| events < 1 << 56);
            fits.ok_or(ScheduleError::RateRange {
                events,
                per_ns: per_ns.into(),
            })
        };
        let mut pieces = Vec::with_capacity(segments.len() + 1);
        let (mut start_ns, mut area) = (0u64, 0u128);
        for &Segment { from, to, length_ns } in &segments {
            if length_ns == 0 || length_ns >= LENGTH_MAX {
                return Err(ScheduleError::PieceLength { length_ns });
            }
            let (from, to) = (scale(from)?, scale(to)?);
            pieces.push(PreparedSegment {
                start_ns,
                length_ns,
                from,
                to,
                area,
            });
            area += (u128::from(from) + u128::from(to)) * u128::from(length_ns);
            start_ns = start_ns.saturating_add(length_ns);
        }
        let end = scale(last)?;
        pieces.push(PreparedSegment {
            start_ns,
            length_ns: u64::MAX,
            from: end,
            to: end,
            area,
        });
        Ok(Self {
            segments,
            last,
            pieces,
            per_ns,
        })
    }

    /// The pieces before the last rate.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The rate after the last piece.
    pub const fn last(&self) -> Rate {
        self.last
    }

    /// The curve with every rate multiplied by `num / den`.
    ///
    /// # Errors
    /// As [`Curve::steps`].
    pub fn scaled(&self, num: u64, den: u64) -> Result<Self, ScheduleError> {
        let mut segments = self.segments.clone();
        for segment in &mut segments {
            segment.from = segment.from.scaled(num, den)?;
            segment.to = segment.to.scaled(num, den)?;
        }
        Self::new(segments, self.last.scaled(num, den)?)
    }

    /// Due time of operation `n`; `None` if the curve ends before.
    pub fn due(&self, n: u64) -> Option<u64> {
        let area = 2 * u128::from(self.per_ns) * u128::from(n);
        // The last piece that starts below the area. At the very end of a piece the due time
        // belongs to that piece, so that a pause after it does not delay the operation.
        let after = self.pieces.partition_point(|piece| piece.area < area);
        let piece = &self.pieces[after.saturating_sub(1)];
        let into = piece.time_to(area - piece.area.min(area))?;
        Some(piece.start_ns.saturating_add(into))
    }
}

impl PreparedSegment {
    /// Nanoseconds into the piece until its area reaches `area`.
    #[inline]
    fn time_to(&self, area: u128) -> Option<u64> {
        if area == 0 {
            return Some(0);
        }
        if self.from == self.to {
            let height = 2 * u128::from(self.from);
            return (height > 0).then(|| u64::try_from(area.div_ceil(height)).unwrap_or(u64::MAX));
        }
        let mut guess = self.estimate(area).min(self.length_ns);
        // Double the step until the time reaches the area, then bisect to the first such time.
        let mut step = 1;
        while !self.reaches(guess, area) {
            guess = guess.saturating_add(step).min(self.length_ns);
            step *= 2;
        }
        step = 1;
        let mut low = guess;
        while low > 0 && self.reaches(low, area) {
            guess = low;
            low = low.saturating_sub(step);
            step *= 2;
        }
        while guess - low > 1 {
            let middle = low + (guess - low) / 2;
            if self.reaches(middle, area) {
                guess = middle;
            } else {
                low = middle;
            }
        }
        Some(guess)
    }

    /// Whether the area of the first `time` nanoseconds is at least `area`, which is at most the
    /// piece's total: `time * (2 from length + (to - from) time) >= length * area`.
    fn reaches(&self, time: u64, area: u128) -> bool {
        let base = 2 * u128::from(self.from) * u128::from(self.length_ns);
        let inner = if self.to >= self.from {
            base + u128::from(self.to - self.from) * u128::from(time)
        } else {
            base - u128::from(self.from - self.to) * u128::from(time)
        };
        wide(inner, time) >= wide(area, self.length_ns)
    }

    fn estimate(&self, area: u128) -> u64 {
        let (from, to) = (self.from as f64, self.to as f64);
        let slope = (to - from) / self.length_ns as f64;
        let root = (from * from + slope * area as f64).max(0.0).sqrt();
        (area as f64 / (from + root)) as u64
    }
}

/// The 192-bit product as (high, low), which compares like a number.
fn wide(a: u128, b: u64) -> (u128, u64) {
    let low = u128::from(a as u64) * u128::from(b);
    let high = (a >> 64) * u128::from(b) + (low >> 64);
    (high, low as u64)
}
