//! Consolidation: computes one row per step from samples in time order.

use std::ops::{ControlFlow, Range};

use tsb_core::{SeriesId, Timestamp};

use super::extreme::{Extreme, Runs};
use super::{Block, Columns, EvenRows};
use crate::store::{Consolidation, Resample, Visitor};

/// Number of rows passed on at once.
const ROWS: usize = 512;
/// Room for rows at first: an hour of minutes, or two days of hours.
const FIRST_ROWS: usize = 64;

/// Consolidates samples, one series after the other.
#[derive(Debug)]
pub(crate) struct Fold {
    step: i64,
    kind: Consolidation,
    /// The step being computed.
    current: Option<Step>,
    state: Accumulator,
    times: Vec<Timestamp>,
    values: Vec<f64>,
    /// Scratch: the rows of a block at which its steps end.
    ends: Vec<u16>,
}

/// The accumulated state of a step.
#[derive(Clone, Copy, Debug)]
struct Accumulator {
    count: u64,
    numbers: u64,
    sum: f64,
    extreme: f64,
    first: f64,
    last: f64,
}

const NOTHING: Accumulator = Accumulator {
    count: 0,
    numbers: 0,
    sum: 0.0,
    extreme: f64::NAN,
    first: f64::NAN,
    last: f64::NAN,
};

/// A step: its first and its last timestamp, clamped to the range of timestamps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Step {
    start: i64,
    last: i64,
}

impl Step {
    /// The step of a timestamp.
    fn of(at: i64, len: i64) -> Self {
        let offset = at.rem_euclid(len);
        Self {
            start: at.saturating_sub(offset),
            last: at.saturating_add(len - 1 - offset),
        }
    }

    fn holds(self, at: i64) -> bool {
        self.start <= at && at <= self.last
    }

    /// The step of a later timestamp: usually this one or the next.
    fn later(self, at: i64, len: i64) -> Self {
        if at <= self.last {
            return self;
        }
        match self.last.checked_add(len) {
            Some(last) if at <= last => Self {
                start: self.last + 1,
                last,
            },
            _ => Self::of(at, len),
        }
    }
}

/// Tells whether timestamps are in one step; divides only when the step changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Steps {
    len: i64,
    seen: Option<Step>,
}

impl Steps {
    /// The length of a step in nanoseconds.
    #[cfg(feature = "sqlite")]
    pub(crate) fn step_ns(&self) -> i64 {
        self.len
    }

    /// Whether `start` and `end` are in one step. `end` must not be before `start`.
    #[inline]
    pub(crate) fn same(&mut self, start: i64, end: i64) -> bool {
        let known = self.seen.filter(|step| step.holds(start));
        let step = known.unwrap_or_else(|| Step::of(start, self.len));
        self.seen = Some(step);
        end <= step.last
    }
}

impl Fold {
    pub(crate) fn new(resample: Resample) -> Self {
        Self {
            step: resample.step_ns.max(1),
            kind: resample.consolidation,
            current: None,
            state: NOTHING,
            times: Vec::with_capacity(FIRST_ROWS),
            values: Vec::with_capacity(FIRST_ROWS),
            ends: Vec::new(),
        }
    }

    /// The extreme that is asked for, if it is one.
    fn extreme(&self) -> Option<Extreme> {
        match self.kind {
            Consolidation::Min => Some(Extreme::Least),
            Consolidation::Max => Some(Extreme::Most),
            _ => None,
        }
    }

    /// The steps, if only the maximum per step is needed.
    pub(crate) fn maxima(&self) -> Option<Steps> {
        (self.kind == Consolidation::Max).then_some(Steps {
            len: self.step,
            seen: None,
        })
    }

    /// Adds the maximum of samples in the step of `at`.
    pub(crate) fn maximum(
        &mut self,
        series: SeriesId,
        at: i64,
        maximum: f64,
        visit: &mut Visitor<'_>,
    ) -> ControlFlow<()> {
        let step = self.step_of(at);
        self.begin(series, step, visit)?;
        self.state.count += 1;
        self.state.extreme = Extreme::Most.of_two(self.state.extreme, maximum);
        ControlFlow::Continue(())
    }

    /// Adds the samples of a block's column within a range, if only their extremes are asked for
    /// and the rows are evenly spaced: the timestamps are then not decoded. Returns `None`,
    /// without an effect, if the samples must be decoded.
    pub(crate) fn add_even(
        &mut self,
        series: SeriesId,
        (block, column): (&Block, usize),
        range: (i64, i64),
        columns: &mut Columns,
        visit: &mut Visitor<'_>,
    ) -> Option<ControlFlow<()>> {
        let (extreme, even) = self.extreme().zip(block.even(column))?;
        let rows = even.within(range);
        if rows.is_empty() {
            return Some(ControlFlow::Continue(()));
        }
        let mut ends = std::mem::take(&mut self.ends);
        self.split(even, rows.clone(), &mut ends);
        let runs = Runs {
            from: rows.start,
            ends: &ends,
        };
        let mut flow = ControlFlow::Continue(());
        for (run, value) in runs.iter().zip(block.extremes(column, extreme, runs, columns)) {
            let step = self.step_of(even.time(run.start));
            flow = self.begin(series, step, visit);
            if flow.is_break() {
                break;
            }
            self.state.count += run.len() as u64;
            self.state.extreme = extreme.of_two(self.state.extreme, *value);
        }
        self.ends = ends;
        Some(flow)
    }

    /// Finds the rows at which steps end. `rows` must not be empty.
    fn split(&self, even: EvenRows, rows: Range<usize>, ends: &mut Vec<u16>) {
        ends.clear();
        let mut step = self.step_of(even.time(rows.start));
        let whole = even.rows_of(self.step);
        let mut row = rows.start;
        while row < rows.end {
            let more = match whole {
                // Steps begin with their first row, but for the first one.
                Some(whole) if row > rows.start => whole,
                _ => {
                    let at = even.time(row);
                    step = step.later(at, self.step);
                    even.more(at, step.last).saturating_add(1)
                }
            };
            row = rows.end.min(row.saturating_add(more));
            ends.push(row as u16);
        }
    }

    /// Adds samples in time order.
    pub(crate) fn add(
        &mut self,
        series: SeriesId,
        times: &[i64],
        values: &[f64],
        visit: &mut Visitor<'_>,
    ) -> ControlFlow<()> {
        let mut from = 0;
        while from < times.len() {
            let step = self.step_of(times[from]);
            let len = up_to(&times[from..], step.last);
            self.begin(series, step, visit)?;
            self.state.fold(self.kind, &values[from..from + len]);
            from += len;
        }
        ControlFlow::Continue(())
    }

    fn step_of(&self, at: i64) -> Step {
        let current = self.current.map(|current| current.later(at, self.step));
        current.unwrap_or_else(|| Step::of(at, self.step))
    }

    /// Begins a step, after closing the previous one.
    fn begin(&mut self, series: SeriesId, step: Step, visit: &mut Visitor<'_>) -> ControlFlow<()> {
        if self.current == Some(step) {
            return ControlFlow::Continue(());
        }
        self.close();
        self.current = Some(step);
        if self.times.len() >= ROWS {
            self.hand_over(series, visit)?;
        }
        ControlFlow::Continue(())
    }

    fn close(&mut self) {
        if let Some(step) = self.current.take() {
            self.times.push(Timestamp(step.start));
            self.values.push(self.state.value(self.kind));
            self.state = NOTHING;
        }
    }

    fn hand_over(&mut self, series: SeriesId, visit: &mut Visitor<'_>) -> ControlFlow<()> {
        if self.times.is_empty() {
            return ControlFlow::Continue(());
        }
        let flow = visit(series, &self.times, &self.values);
        self.times.clear();
        self.values.clear();
        flow
    }

    /// Ends a series.
    pub(crate) fn finish(&mut self, series: SeriesId, visit: &mut Visitor<'_>) -> ControlFlow<()> {
        self.close();
        self.hand_over(series, visit)
    }
}

/// Number of timestamps that are not after `last`; they must be ascending.
fn up_to(times: &[i64], last: i64) -> usize {
    match times.last() {
        Some(newest) if *newest <= last => times.len(),
        _ => times.partition_point(|at| *at <= last),
    }
}

impl Accumulator {
    #[inline]
    fn fold(&mut self, kind: Consolidation, values: &[f64]) {
        if self.count == 0 {
            self.first = values[0];
        }
        self.count += values.len() as u64;
        self.last = values[values.len() - 1];
        match kind {
            Consolidation::Max => self.add_extreme(Extreme::Most, values),
            Consolidation::Min => self.add_extreme(Extreme::Least, values),
            Consolidation::Average | Consolidation::Sum => {
                for value in values.iter().filter(|value| !value.is_nan()) {
                    self.numbers += 1;
                    self.sum += value;
                }
            }
            Consolidation::Count | Consolidation::First | Consolidation::Last => {}
        }
    }

    fn add_extreme(&mut self, extreme: Extreme, values: &[f64]) {
        self.extreme = extreme.of_two(self.extreme, extreme.of_values(values));
    }

    fn value(&self, kind: Consolidation) -> f64 {
        match kind {
            Consolidation::Min | Consolidation::Max => self.extreme,
            Consolidation::Average if self.numbers == 0 => f64::NAN,
            Consolidation::Average => self.sum / self.numbers as f64,
            Consolidation::Sum => self.sum,
            Consolidation::Count => self.count as f64,
            Consolidation::First => self.first,
            Consolidation::Last => self.last,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_aligned_to_the_epoch_up_to_the_ends_of_time() {
        assert_eq!(Step::of(125, 60), Step { start: 120, last: 179 });
        assert_eq!(Step::of(-1, 60), Step { start: -60, last: -1 });
        assert_eq!(Step::of(i64::MIN, 60).start, i64::MIN);
        assert_eq!(Step::of(i64::MAX, 60).last, i64::MAX);
        for at in [120, 179, 180, 239, 240, 1000, i64::MAX] {
            assert_eq!(Step::of(125, 60).later(at, 60), Step::of(at, 60), "{at}");
        }
        let mut steps = Steps { len: 60, seen: None };
        assert!(steps.same(0, 59) && steps.same(30, 31) && !steps.same(30, 60) && steps.same(60, 60));
    }
}
