//! Consolidation: samples in time order become one row a step.

use std::ops::ControlFlow;

use tsb_core::{SeriesId, Timestamp};

use crate::store::{Consolidation, Resample, Visitor};

/// Rows that are handed over at once.
const ROWS: usize = 512;

/// Folds one series.
#[derive(Debug)]
pub(super) struct Fold {
    step: i64,
    kind: Consolidation,
    /// The step that is being folded.
    current: Option<i64>,
    state: State,
    times: Vec<Timestamp>,
    values: Vec<f64>,
}

/// What is known of the samples of a step.
#[derive(Clone, Copy, Debug)]
struct State {
    count: u64,
    numbers: u64,
    sum: f64,
    extreme: f64,
    first: f64,
    last: f64,
}

const NOTHING: State = State {
    count: 0,
    numbers: 0,
    sum: 0.0,
    extreme: f64::NAN,
    first: f64::NAN,
    last: f64::NAN,
};

/// The start of the step that a timestamp lies in.
pub(super) fn step_start(at: i64, step: i64) -> i64 {
    at.saturating_sub(at.rem_euclid(step))
}

impl Fold {
    pub(super) fn new(resample: Resample) -> Self {
        Self {
            step: resample.step_ns.max(1),
            kind: resample.consolidation,
            current: None,
            state: NOTHING,
            times: Vec::with_capacity(ROWS),
            values: Vec::with_capacity(ROWS),
        }
    }

    /// Whether the maximum of `start..=end` is all that is needed of it.
    pub(super) fn wants_maximum(&self, start: i64, end: i64) -> bool {
        self.kind == Consolidation::Max && step_start(start, self.step) == step_start(end, self.step)
    }

    /// Adds the maximum of samples that lie in the step of `at`.
    pub(super) fn maximum(
        &mut self,
        series: SeriesId,
        at: i64,
        maximum: f64,
        visit: &mut Visitor<'_>,
    ) -> ControlFlow<()> {
        self.begin(series, step_start(at, self.step), visit)?;
        self.state.count += 1;
        self.state.extreme = larger_number(self.state.extreme, maximum);
        ControlFlow::Continue(())
    }

    /// Adds samples in time order.
    pub(super) fn add(
        &mut self,
        series: SeriesId,
        times: &[i64],
        values: &[f64],
        visit: &mut Visitor<'_>,
    ) -> ControlFlow<()> {
        let mut from = 0;
        while from < times.len() {
            let start = step_start(times[from], self.step);
            let end = start.checked_add(self.step);
            let rest = &times[from..];
            let len = end.map_or(rest.len(), |end| before(rest, end));
            self.begin(series, start, visit)?;
            self.state.fold(self.kind, &values[from..from + len]);
            from += len;
        }
        ControlFlow::Continue(())
    }

    /// Opens a step, and closes the one before.
    fn begin(&mut self, series: SeriesId, start: i64, visit: &mut Visitor<'_>) -> ControlFlow<()> {
        if self.current == Some(start) {
            return ControlFlow::Continue(());
        }
        self.close();
        self.current = Some(start);
        if self.times.len() >= ROWS {
            self.hand_over(series, visit)?;
        }
        ControlFlow::Continue(())
    }

    fn close(&mut self) {
        if let Some(start) = self.current.take() {
            self.times.push(Timestamp(start));
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
    pub(super) fn finish(&mut self, series: SeriesId, visit: &mut Visitor<'_>) -> ControlFlow<()> {
        self.close();
        self.hand_over(series, visit)
    }
}

/// How many of ascending timestamps are before `end`.
fn before(times: &[i64], end: i64) -> usize {
    match times.last() {
        Some(last) if *last < end => times.len(),
        _ => times.partition_point(|at| *at < end),
    }
}

/// The larger of what was seen and a maximum that may say "no number".
fn larger_number(most: f64, maximum: f64) -> f64 {
    if maximum > most || most.is_nan() { maximum } else { most }
}

/// The smaller of what was seen and a minimum that may say "no number".
fn smaller_number(least: f64, minimum: f64) -> f64 {
    if minimum < least || least.is_nan() {
        minimum
    } else {
        least
    }
}

impl State {
    #[inline]
    fn fold(&mut self, kind: Consolidation, values: &[f64]) {
        if self.count == 0 {
            self.first = values[0];
        }
        self.count += values.len() as u64;
        self.last = values[values.len() - 1];
        match kind {
            Consolidation::Max => self.extreme = larger_number(self.extreme, most(values)),
            Consolidation::Min => self.extreme = smaller_number(self.extreme, least(values)),
            Consolidation::Average | Consolidation::Sum => {
                for value in values.iter().filter(|value| !value.is_nan()) {
                    self.numbers += 1;
                    self.sum += value;
                }
            }
            Consolidation::Count | Consolidation::First | Consolidation::Last => {}
        }
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

/// Lanes of a reduction: as many as two vector registers hold.
const LANES: usize = 8;

/// The largest number, NaN when there is none.
fn most(values: &[f64]) -> f64 {
    let (rows, rest) = values.as_chunks::<LANES>();
    let mut lanes = [f64::NEG_INFINITY; LANES];
    for row in rows {
        for lane in 0..LANES {
            lanes[lane] = if row[lane] > lanes[lane] {
                row[lane]
            } else {
                lanes[lane]
            };
        }
    }
    let all = lanes.iter().chain(rest).fold(
        f64::NEG_INFINITY,
        |most, &value| if value > most { value } else { most },
    );
    if all == f64::NEG_INFINITY && values.iter().all(|value| value.is_nan()) {
        f64::NAN
    } else {
        all
    }
}

/// The smallest number, NaN when there is none.
fn least(values: &[f64]) -> f64 {
    let (rows, rest) = values.as_chunks::<LANES>();
    let mut lanes = [f64::INFINITY; LANES];
    for row in rows {
        for lane in 0..LANES {
            lanes[lane] = if row[lane] < lanes[lane] {
                row[lane]
            } else {
                lanes[lane]
            };
        }
    }
    let all = lanes
        .iter()
        .chain(rest)
        .fold(f64::INFINITY, |least, &value| if value < least { value } else { least });
    if all == f64::INFINITY && values.iter().all(|value| value.is_nan()) {
        f64::NAN
    } else {
        all
    }
}
