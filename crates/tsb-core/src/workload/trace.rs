//! A recorded fleet: what a [`Trace`] holds, replayed tick after tick, in any number of
//! copies.
//!
//! The trace lies on its grid (see [`Trace::grid`]); tick `t` of a copy is tick
//! `(t + shift) mod T` of the grid, where the shift is 0 for the first copy and drawn
//! from the seed for every other, so that copies do not move in lockstep. From tick `T`
//! on the window repeats (a shifted copy wraps round within it): [`Window`] says so, and
//! reports print it. An absent cell of the grid is absent here too: nothing is sent.

mod asked;
mod source;

use std::ops::Range;

use serde::Serialize;

use super::error::WorkloadError;
use super::fleet::FleetSpec;
use super::hash::{Purpose, Stream};
use super::layout::{Block, Group, Layout};
use super::spec::{BatchMode, MAX_SERIES, Phase, WorkloadSpec};
use crate::series::{Catalog, SeriesId, SeriesKey};
use crate::trace::{Trace, TraceProblems};

pub use asked::GridAsked;
pub use source::TraceSource;

/// The label that tells the copies of a series apart; the first copy goes without.
pub const COPY_LABEL: &str = "copy";

/// Labels whose value says on which host a series is, the first that a series has.
const HOST_LABELS: [&str; 3] = ["host", "hostname", "instance"];

/// What of a recording a workload replays, and how often.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Window {
    /// Series of the recording.
    pub series: u32,
    /// Copies of it, the last perhaps in part.
    pub copies: u32,
    /// Ticks of the recording: from this tick on, every value comes again.
    pub ticks: u64,
    /// Nanoseconds between two ticks as recorded.
    pub recorded_interval_ns: u64,
    /// Nanoseconds between two ticks as replayed.
    pub interval_ns: u64,
    /// Cells of series by ticks that hold a sample.
    pub present: u64,
    /// Cells without one: never sent.
    pub absent: u64,
    /// Recorded samples that fell on the same tick as a later one: not replayed.
    pub superseded: u64,
    /// Rows and blocks of the file that could not be read: see the trace's problems.
    pub problems: u64,
}

impl Window {
    /// How often the window passes in so many ticks; above 1, values repeat.
    pub fn passes(&self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks as f64
    }
}

/// A recording, as the generators and the audit take it: the cells that hold a sample,
/// once tick by tick and once series by series.
#[derive(Debug)]
pub(crate) struct Recorded {
    window: Window,
    by_tick: Cells<SeriesId>,
    by_series: Cells<u32>,
    // By copy.
    shifts: Vec<u64>,
    problems: TraceProblems,
    checksum: u32,
}

/// Lists of cells, one after the other.
#[derive(Debug, Default)]
struct Cells<T> {
    // Where list n begins; one more at the end.
    starts: Vec<usize>,
    // Ascending within a list.
    keys: Vec<T>,
    values: Vec<f64>,
}

impl<T: Copy + Ord> Cells<T> {
    fn new() -> Self {
        Self {
            starts: vec![0],
            keys: Vec::new(),
            values: Vec::new(),
        }
    }

    fn push(&mut self, key: T, value: f64) {
        self.keys.push(key);
        self.values.push(value);
    }

    fn end_list(&mut self) {
        self.starts.push(self.keys.len());
    }

    fn list(&self, number: usize) -> (&[T], &[f64]) {
        let range = self.starts[number]..self.starts[number + 1];
        (&self.keys[range.clone()], &self.values[range])
    }

    /// The part of a list whose keys are in a range.
    fn part(&self, number: usize, keys: Range<T>) -> (&[T], &[f64]) {
        let (all, values) = self.list(number);
        let range = all.partition_point(|key| *key < keys.start)..all.partition_point(|key| *key < keys.end);
        (&all[range.clone()], &values[range])
    }
}

/// What a copy sends at a tick: places in the recording, in ascending order, and values.
/// The id of a sample is its place and `offset`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    pub(crate) offset: u32,
    pub(crate) places: &'a [SeriesId],
    pub(crate) values: &'a [f64],
}

impl Recorded {
    /// Lays a trace out as a fleet.
    pub(super) fn plan(spec: &WorkloadSpec, trace: &Trace) -> Result<(Self, Layout), WorkloadError> {
        if spec.churn.is_some() {
            return Err(WorkloadError::invalid("churn", "a trace brings its own"));
        }
        if !spec.intervals.is_empty() {
            return Err(WorkloadError::invalid("intervals", "a trace has one interval"));
        }
        let asked = match &spec.fleet {
            FleetSpec::Trace(source) => source.grid,
            _ => None,
        };
        let recorded_interval_ns = match asked {
            Some(GridAsked::Every(interval_ns)) => interval_ns,
            None => trace.usual_interval_ns().ok_or_else(|| WorkloadError::Trace {
                what: "the trace has no two samples of one series: it has no interval; give grid=DURATION".to_owned(),
            })?,
        };
        let hosts = hosts(trace);
        let order: Vec<usize> = hosts.iter().flat_map(|(_, members)| members.iter().copied()).collect();
        let series = order.len();
        let asked = spec.series.unwrap_or(series);
        if asked > MAX_SERIES {
            return Err(WorkloadError::TooManySeries {
                asked: asked as u64,
                limit: MAX_SERIES as u64,
            });
        }
        let copies = asked.div_ceil(series);
        let mut recorded = Self::lay(trace, &order, recorded_interval_ns)?;
        recorded.window.copies = copies as u32;
        recorded.window.interval_ns = spec.interval_ns.unwrap_or(recorded_interval_ns);
        recorded.shifts = shifts(spec.seed, copies as u64, recorded.window.ticks);
        let layout = Layout {
            catalog: catalog(trace, &order, asked)?,
            laws: Vec::new(),
            law_of: Vec::new(),
            blocks: Vec::new(),
            groups: Vec::new(),
        };
        let sizes: Vec<u32> = hosts.iter().map(|(_, members)| members.len() as u32).collect();
        let layout = grouped(spec, layout, &sizes, asked as u32, recorded.window.interval_ns);
        Ok((recorded, layout))
    }

    fn lay(trace: &Trace, order: &[usize], interval_ns: u64) -> Result<Self, WorkloadError> {
        let grid = trace.grid(interval_ns).map_err(|defect| WorkloadError::Trace {
            what: format!("cannot lay the trace out in ticks of {interval_ns} ns: {defect}"),
        })?;
        let (mut by_tick, mut by_series) = (Cells::new(), Cells::new());
        for tick in 0..grid.ticks() {
            for (place, &column) in (0..).zip(order) {
                if let Some(value) = grid.get(column, tick) {
                    by_tick.push(SeriesId(place), value);
                }
            }
            by_tick.end_list();
        }
        for &column in order {
            for tick in 0..grid.ticks() {
                if let Some(value) = grid.get(column, tick) {
                    by_series.push(tick as u32, value);
                }
            }
            by_series.end_list();
        }
        let counts = grid.counts();
        Ok(Self {
            window: Window {
                series: order.len() as u32,
                copies: 1,
                ticks: grid.ticks() as u64,
                recorded_interval_ns: interval_ns,
                interval_ns,
                present: counts.present,
                absent: (order.len() * grid.ticks()) as u64 - counts.present,
                superseded: counts.superseded,
                problems: trace.problems.count,
            },
            by_tick,
            by_series,
            shifts: Vec::new(),
            problems: trace.problems.clone(),
            checksum: trace.checksum(),
        })
    }

    pub(crate) fn window(&self) -> Window {
        self.window
    }

    pub(crate) fn problems(&self) -> &TraceProblems {
        &self.problems
    }

    pub(crate) fn checksum(&self) -> u32 {
        self.checksum
    }

    /// The row of the recording that a copy replays at a tick.
    fn row(&self, copy: u32, tick: u64) -> u64 {
        let ticks = self.window.ticks;
        (tick % ticks + self.shifts[copy as usize]) % ticks
    }

    /// The value of a series at a tick, if it has one.
    pub(crate) fn value(&self, series: u32, tick: u64) -> Option<f64> {
        let (copy, place) = (series / self.window.series, series % self.window.series);
        let (rows, values) = self.by_series.list(place as usize);
        let index = rows.binary_search(&(self.row(copy, tick) as u32)).ok()?;
        Some(values[index])
    }

    /// Every value of a series at some ticks, in ascending order.
    pub(crate) fn samples(&self, series: u32, ticks: Range<u64>) -> impl Iterator<Item = (u64, f64)> {
        let (copy, place) = (series / self.window.series, series % self.window.series);
        let (rows, values) = self.by_series.list(place as usize);
        let first = self.row(copy, ticks.start);
        let start = rows.partition_point(|&row| u64::from(row) < first);
        // The tick at which row 0 was replayed last; before tick 0 if that is negative.
        let zero = i128::from(ticks.start) - i128::from(first);
        let window = i128::from(self.window.ticks);
        let passes = (0..).take(if rows.is_empty() { 0 } else { usize::MAX });
        let samples = passes.flat_map(move |pass: i128| {
            let from = if pass == 0 { start } else { 0 };
            let cells = rows[from..].iter().zip(&values[from..]);
            cells.map(move |(&row, &value)| ((zero + pass * window + i128::from(row)) as u64, value))
        });
        samples.take_while(move |&(tick, _)| tick < ticks.end)
    }

    /// How many of a range of series have a value at a tick.
    pub(crate) fn count(&self, ids: Range<u32>, tick: u64) -> u32 {
        self.pieces(ids, tick).map(|piece| piece.values.len() as u32).sum()
    }

    /// The mean of [`Self::count`] over the ticks of the window.
    pub(crate) fn mean_count(&self, ids: &Range<u32>) -> f64 {
        let series = self.window.series;
        let below = |id: u32| {
            let whole = u64::from(id / series) * self.window.present;
            whole + self.by_series.starts[(id % series) as usize] as u64
        };
        (below(ids.end) - below(ids.start)) as f64 / self.window.ticks as f64
    }

    /// What a range of series sends at a tick, copy by copy.
    pub(crate) fn pieces(&self, ids: Range<u32>, tick: u64) -> impl Iterator<Item = Piece<'_>> {
        let series = self.window.series;
        let copies = ids.start / series..ids.end.div_ceil(series);
        copies.map(move |copy| {
            let offset = copy * series;
            let first = ids.start.saturating_sub(offset);
            let end = (ids.end - offset).min(series);
            let (places, values) = self
                .by_tick
                .part(self.row(copy, tick) as usize, SeriesId(first)..SeriesId(end));
            Piece { offset, places, values }
        })
    }
}

/// Where in the recording each copy begins: spread over the window, so that no two begin
/// at one place while there are fewer copies than ticks.
fn shifts(seed: u64, copies: u64, ticks: u64) -> Vec<u64> {
    let shift = |copy: u64| {
        let low = (u128::from(copy) * u128::from(ticks) / u128::from(copies)) as u64;
        let high = (u128::from(copy + 1) * u128::from(ticks) / u128::from(copies)) as u64;
        (low + Stream::new(seed, Purpose::Shift, copy).below(high - low)) % ticks
    };
    (0..copies)
        .map(|copy| if copy == 0 { 0 } else { shift(copy) })
        .collect()
}

/// The series of each host that have a sample, in the order of the trace.
fn hosts(trace: &Trace) -> Vec<(String, Vec<usize>)> {
    let mut hosts: std::collections::BTreeMap<String, Vec<usize>> = std::collections::BTreeMap::new();
    for (index, (key, column)) in trace.keys.iter().zip(&trace.columns).enumerate() {
        if column.is_empty() {
            continue;
        }
        let host = HOST_LABELS
            .iter()
            .find_map(|label| key.label(label))
            .unwrap_or_default();
        hosts.entry(host.to_owned()).or_default().push(index);
    }
    hosts.into_iter().collect()
}

fn catalog(trace: &Trace, order: &[usize], asked: usize) -> Result<Catalog, WorkloadError> {
    let mut catalog = Catalog::new();
    for number in 0..asked {
        let key = &trace.keys[order[number % order.len()]];
        let copy = number / order.len();
        if copy > 0 && key.label(COPY_LABEL).is_some() {
            return Err(WorkloadError::Trace {
                what: format!("cannot copy series {key}: it has a label {COPY_LABEL:?} already"),
            });
        }
        let key = if copy == 0 { key.clone() } else { copy_of(key, copy) };
        if catalog.intern(key).index() != number {
            return Err(WorkloadError::Trace {
                what: "a series of the trace has the key of another's copy".to_owned(),
            });
        }
    }
    Ok(catalog)
}

fn copy_of(key: &SeriesKey, copy: usize) -> SeriesKey {
    let number = copy.to_string();
    let labels = key
        .labels()
        .iter()
        .map(|(label, value)| (label.as_str(), value.as_str()));
    SeriesKey::with_labels(key.name(), labels.chain([(COPY_LABEL, number.as_str())]))
}

/// Forms the groups: each host of each copy, or the whole tick in so many parts.
fn grouped(spec: &WorkloadSpec, mut layout: Layout, hosts: &[u32], asked: u32, interval_ns: u64) -> Layout {
    let mut sizes = Vec::new();
    let mut left = asked;
    for &host in hosts.iter().cycle() {
        sizes.push(host.min(left));
        left -= host.min(left);
        if left == 0 {
            break;
        }
    }
    if spec.batch == BatchMode::Tick {
        let parts = spec.tick_parts.min(sizes.len());
        let cut = |part: usize| sizes.len() * part / parts;
        sizes = (0..parts)
            .map(|part| sizes[cut(part)..cut(part + 1)].iter().sum())
            .collect();
    }
    let mut first = 0;
    for (number, &len) in sizes.iter().enumerate() {
        let aligned = spec.phase == Phase::Aligned || spec.batch == BatchMode::Tick;
        let phase = Stream::new(spec.seed, Purpose::Phase, number as u64).below(interval_ns);
        layout.blocks.push(Block {
            first,
            len,
            ticks: 0..u64::MAX,
        });
        layout.groups.push(Group {
            first: SeriesId(first),
            len,
            interval_ns,
            phase_ns: if aligned { 0 } else { phase },
            ticks: 0..u64::MAX,
            blocks: number..number + 1,
        });
        first += len;
    }
    layout
}

#[cfg(test)]
mod tests;
