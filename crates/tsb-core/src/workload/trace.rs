//! A recorded fleet: a [`Trace`] replayed tick by tick, in any number of copies.
//!
//! A recording that lies on a grid (see [`Trace::grid`]), or is forced onto one, is replayed tick
//! by tick: tick `t` of a copy is tick `(t + shift) mod T` of the grid. The shift is 0 for the
//! first copy and drawn from the seed for every other, so that copies are not synchronous. From
//! tick `T` on the window repeats (a shifted copy wraps within it); [`Window`] contains that, and
//! reports print it. An empty cell of the grid stays empty: nothing is sent. Any other recording
//! is replayed at its own times: see `own_times`.

mod grid_option;
mod life;
mod own_times;
mod source;

use std::ops::Range;

use serde::Serialize;

use super::disorder::DisorderModel;
use super::error::WorkloadError;
use super::fleet::FleetSpec;
use super::hash::{Purpose, Stream};
use super::layout::{Block, Layout, SeriesGroup};
use super::messages;
use super::spec::{BatchMode, MAX_SERIES, Phase, WorkloadSpec};
use crate::schedule::TickTimes;
use crate::series::{Catalog, SeriesId, SeriesKey};
use crate::time::Timestamp;
use crate::trace::{Trace, TraceProblems};
use own_times::OwnTimes;

pub use grid_option::GridOption;
pub use source::TraceSource;

/// The label that distinguishes the copies of a series; the first copy has none.
pub const COPY_LABEL: &str = "copy";

/// Labels that name the host of a series; the first one present is used.
const HOST_LABELS: [&str; 3] = ["host", "hostname", "instance"];

/// The replayed part of a recording, and its number of copies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Window {
    /// Series of the recording.
    pub series: u32,
    /// Number of copies; the last may be partial.
    pub copies: u32,
    /// Whether every sample is replayed at its own time, as opposed to on a grid of ticks.
    pub own_times: bool,
    /// Time of the earliest sample. It is replayed at the start of the run, and every other sample
    /// of the first copy as long after it as it was recorded after it (on a grid: at its tick,
    /// plus the phase of its host).
    pub start: Timestamp,
    /// Number of ticks, after which every value repeats. At own times, the largest number of
    /// moments of any host.
    pub ticks: u64,
    /// Nanoseconds of fleet time after which everything repeats.
    pub length_ns: u64,
    /// Nanoseconds between two recorded ticks; at own times, the usual distance.
    pub recorded_interval_ns: u64,
    /// Nanoseconds between two replayed ticks; at own times, the usual distance.
    pub interval_ns: u64,
    /// Samples replayed per window; on a grid, the number of non-empty cells.
    pub present: u64,
    /// Empty cells of the grid, for which nothing is sent.
    pub absent: u64,
    /// Recorded samples that fell on the same tick as a later one, and are not replayed.
    pub superseded: u64,
    /// Samples that the grid moved to another time.
    pub moved: u64,
    /// The largest move, in nanoseconds.
    pub moved_ns_max: u64,
    /// Samples whose series has another sample at the same time: both are sent, in file order.
    pub doubled: u64,
    /// Rows and blocks of the file that could not be read: see the trace's problems.
    pub problems: u64,
}

impl Window {
    /// Number of passes of the window in `ticks` ticks of a grid; above 1, values repeat.
    pub fn passes(&self, ticks: u64) -> f64 {
        ticks as f64 / self.ticks as f64
    }
}

/// A recording in the form that the generators and the audit use.
#[derive(Debug)]
pub(crate) struct RecordedWorkload {
    window: Window,
    samples: RecordedSamples,
    // Shift of each copy, in ticks or in nanoseconds.
    shifts: Vec<u64>,
    problems: TraceProblems,
    decisions: Vec<String>,
    checksum: u32,
}

/// The samples of a recording, on a grid or at their own times.
#[derive(Debug)]
enum RecordedSamples {
    Grid(GridSamples),
    OwnTimes(OwnTimes),
}

/// The non-empty cells, once by tick and once by series.
#[derive(Debug)]
struct GridSamples {
    by_tick: CellLists<SeriesId>,
    by_series: CellLists<u32>,
}

/// Lists of cells, stored one after the other.
#[derive(Debug, Default)]
struct CellLists<T> {
    // Start of each list, plus the end of the last one.
    starts: Vec<usize>,
    // Ascending within a list.
    keys: Vec<T>,
    values: Vec<f64>,
}

impl<T: Copy + Ord> CellLists<T> {
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

    fn len(&self) -> usize {
        self.keys.len()
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

/// What a copy sends at a tick: positions in the recording, ascending, and values. The id of a
/// sample is its position plus `offset`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TickSamples<'a> {
    pub(crate) offset: u32,
    pub(crate) places: &'a [SeriesId],
    pub(crate) values: &'a [f64],
}

impl RecordedWorkload {
    /// Lays out a trace as a fleet.
    pub(super) fn plan(spec: &WorkloadSpec, trace: &Trace) -> Result<(Self, Layout), WorkloadError> {
        if spec.churn.is_some() {
            return Err(WorkloadError::invalid("churn", "a trace brings its own"));
        }
        if !spec.intervals.is_empty() {
            return Err(WorkloadError::invalid("intervals", "a trace has one interval"));
        }
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
        let sizes: Vec<u32> = hosts.iter().map(|(_, members)| members.len() as u32).collect();
        let mut recorded = match grid_of(spec, trace)? {
            Some(interval_ns) => Self::on_grid(trace, &order, interval_ns)?,
            None => Self::at_own_times(spec, trace, &order, &sizes)?,
        };
        let copies = asked.div_ceil(series);
        recorded.window.copies = copies as u32;
        if let (false, Some(interval_ns)) = (recorded.window.own_times, spec.interval_ns) {
            recorded.window.interval_ns = interval_ns;
            recorded.window.length_ns = recorded.window.ticks.saturating_mul(interval_ns);
        }
        let layout = Layout {
            first_series: 0,
            catalog: catalog(trace, &order, asked)?,
            models: Vec::new(),
            model_of: Vec::new(),
            blocks: Vec::new(),
            groups: Vec::new(),
        };
        let mut layout = grouped(spec, layout, &sizes, asked as u32, recorded.window.interval_ns);
        recorded.shift(spec, &mut layout, copies as u64);
        Ok((recorded, layout))
    }

    fn of(trace: &Trace, samples: RecordedSamples, window: Window) -> Self {
        Self {
            window: Window {
                start: trace.span().map_or(Timestamp(0), |(start, _)| start),
                problems: trace.problems.count,
                ..window
            },
            samples,
            shifts: Vec::new(),
            problems: trace.problems.clone(),
            decisions: trace.decisions.clone(),
            checksum: trace.checksum(),
        }
    }

    fn on_grid(trace: &Trace, order: &[usize], interval_ns: u64) -> Result<Self, WorkloadError> {
        let grid = trace.grid(interval_ns).map_err(|defect| WorkloadError::Trace {
            what: format!("cannot lay the trace out in ticks of {interval_ns} ns: {defect}"),
        })?;
        let (mut by_tick, mut by_series) = (CellLists::new(), CellLists::new());
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
        let window = Window {
            series: order.len() as u32,
            ticks: grid.ticks() as u64,
            length_ns: (grid.ticks() as u64).saturating_mul(interval_ns),
            recorded_interval_ns: interval_ns,
            interval_ns,
            present: counts.present,
            absent: (order.len() * grid.ticks()) as u64 - counts.present,
            superseded: counts.superseded,
            moved: counts.moved,
            moved_ns_max: counts.shift_ns_max,
            ..Window::default()
        };
        Ok(Self::of(
            trace,
            RecordedSamples::Grid(GridSamples { by_tick, by_series }),
            window,
        ))
    }

    fn at_own_times(spec: &WorkloadSpec, trace: &Trace, order: &[usize], sizes: &[u32]) -> Result<Self, WorkloadError> {
        const NO_TICKS: &str = "needs ticks, and this recording is replayed at its own times; give grid=DURATION behind \
                                the file to have it laid on a grid";
        let disorder = DisorderModel::new(spec, 0);
        for (field, is_asked) in [
            ("interval_ns", spec.interval_ns.is_some()),
            ("batch", matches!(spec.batch, BatchMode::Tick | BatchMode::Series(_))),
            ("jitter", disorder.jitters()),
            ("disorder", disorder.any()),
        ] {
            if is_asked {
                return Err(WorkloadError::invalid(field, NO_TICKS));
            }
        }
        let own = OwnTimes::new(trace, order, sizes, spec.resolution_ns)?;
        let window = Window {
            series: order.len() as u32,
            own_times: true,
            ticks: own.ticks(),
            length_ns: own.window_ns(),
            recorded_interval_ns: own.interval_ns(),
            interval_ns: own.interval_ns(),
            present: own.samples(),
            doubled: own.doubled(),
            ..Window::default()
        };
        Ok(Self::of(trace, RecordedSamples::OwnTimes(own), window))
    }

    /// Draws the position in the recording at which each copy starts.
    fn shift(&mut self, spec: &WorkloadSpec, layout: &mut Layout, copies: u64) {
        match &mut self.samples {
            RecordedSamples::Grid(_) => self.shifts = shifts(spec.seed, copies, self.window.ticks),
            RecordedSamples::OwnTimes(own) => {
                self.shifts = shifts(spec.seed, copies, self.window.length_ns);
                for shift in &mut self.shifts {
                    *shift -= *shift % spec.resolution_ns;
                }
                let sizes: Vec<u32> = layout.groups.iter().map(|group| group.len).collect();
                own.form(&sizes, &self.shifts);
                // Hosts report at their recorded times, not at a random phase.
                for group in &mut layout.groups {
                    group.phase_ns = 0;
                }
            }
        }
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

    pub(crate) fn decisions(&self) -> &[String] {
        &self.decisions
    }

    /// The tick times of each group, if samples have their own times.
    pub(crate) fn tick_times(&self) -> Option<&[TickTimes]> {
        match &self.samples {
            RecordedSamples::Grid(_) => None,
            RecordedSamples::OwnTimes(own) => Some(own.tick_times()),
        }
    }

    /// The row of the grid that a copy replays at a tick.
    fn row(&self, copy: u32, tick: u64) -> u64 {
        let ticks = self.window.ticks;
        (tick % ticks + self.shifts[copy as usize]) % ticks
    }

    /// The value of a series at a tick of the grid, if it has one.
    pub(crate) fn value(&self, series: u32, tick: u64) -> Option<f64> {
        let RecordedSamples::Grid(grid) = &self.samples else {
            return None;
        };
        let (copy, place) = (series / self.window.series, series % self.window.series);
        let (rows, values) = grid.by_series.list(place as usize);
        let index = rows.binary_search(&(self.row(copy, tick) as u32)).ok()?;
        Some(values[index])
    }

    /// The values of a series of a group at some ticks, in ascending order.
    pub(crate) fn samples(
        &self,
        group: usize,
        series: u32,
        ticks: Range<u64>,
    ) -> impl Iterator<Item = (u64, f64)> + use<'_> {
        let (copy, place) = (series / self.window.series, series % self.window.series);
        let (on_grid, own) = match &self.samples {
            RecordedSamples::Grid(grid) => (Some(self.grid_samples(grid, copy, place, ticks)), None),
            RecordedSamples::OwnTimes(own) => (None, Some(own.samples_of(group, place, ticks))),
        };
        on_grid.into_iter().flatten().chain(own.into_iter().flatten())
    }

    fn grid_samples<'a>(
        &self,
        grid: &'a GridSamples,
        copy: u32,
        place: u32,
        ticks: Range<u64>,
    ) -> impl Iterator<Item = (u64, f64)> + use<'a> {
        let (rows, values) = grid.by_series.list(place as usize);
        let first = self.row(copy, ticks.start);
        let start = rows.partition_point(|&row| u64::from(row) < first);
        // The tick at which row 0 was replayed last; negative if that was before tick 0.
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

    /// Number of samples of a group that are due at a tick.
    pub(crate) fn count(&self, group: usize, ids: Range<u32>, tick: u64) -> u32 {
        let pieces = self.pieces(group, ids, tick);
        pieces.map(|piece| piece.values.len() as u32).sum()
    }

    /// The mean of [`Self::count`] over the ticks of the window.
    pub(crate) fn mean_count(&self, group: usize, ids: &Range<u32>) -> f64 {
        let grid = match &self.samples {
            RecordedSamples::Grid(grid) => grid,
            RecordedSamples::OwnTimes(own) => {
                let tick_times = &own.tick_times()[group];
                return tick_times.samples() as f64 / tick_times.per_window() as f64;
            }
        };
        let series = self.window.series;
        let below = |id: u32| {
            let whole = u64::from(id / series) * self.window.present;
            whole + grid.by_series.starts[(id % series) as usize] as u64
        };
        (below(ids.end) - below(ids.start)) as f64 / self.window.ticks as f64
    }

    /// What a group sends at a tick, copy by copy.
    pub(crate) fn pieces(&self, group: usize, ids: Range<u32>, tick: u64) -> impl Iterator<Item = TickSamples<'_>> {
        let own = match &self.samples {
            RecordedSamples::Grid(_) => None,
            RecordedSamples::OwnTimes(own) => Some(own.piece(group, ids.clone(), tick, self.window.series)),
        };
        own.into_iter().chain(self.grid_pieces(ids, tick))
    }

    /// What a range of series sends at a tick of the grid, copy by copy.
    pub(crate) fn grid_pieces(&self, ids: Range<u32>, tick: u64) -> impl Iterator<Item = TickSamples<'_>> {
        let series = self.window.series;
        let grid = match &self.samples {
            RecordedSamples::Grid(grid) => Some(grid),
            RecordedSamples::OwnTimes(_) => None,
        };
        let copies = ids.start / series..ids.end.div_ceil(series);
        grid.into_iter().flat_map(move |grid| {
            let ids = ids.clone();
            copies.clone().map(move |copy| {
                let offset = copy * series;
                let first = ids.start.saturating_sub(offset);
                let end = (ids.end - offset).min(series);
                let (places, values) = grid
                    .by_tick
                    .part(self.row(copy, tick) as usize, SeriesId(first)..SeriesId(end));
                TickSamples { offset, places, values }
            })
        })
    }
}

/// The interval of the grid for a recording: the requested one, or else the one on which it lies.
/// `None`: it is replayed at its own times.
fn grid_of(spec: &WorkloadSpec, trace: &Trace) -> Result<Option<u64>, WorkloadError> {
    let asked = match &spec.fleet {
        FleetSpec::Trace(source) => source.grid,
        _ => None,
    };
    match asked {
        Some(GridOption::Every(interval_ns)) => Ok(Some(interval_ns)),
        Some(GridOption::None) => Ok(None),
        None if trace.columns.iter().all(crate::trace::Column::is_empty) => Err(WorkloadError::Trace {
            what: "the trace holds no sample".to_owned(),
        }),
        // The recorder notes its sampling interval: its own delays are not part of the data.
        None => Ok(trace
            .noted_interval_ns()
            .filter(|&interval_ns| trace.is_on_grid(interval_ns, interval_ns / 2))
            .or_else(|| {
                trace
                    .usual_interval_ns()
                    .filter(|&interval_ns| trace.is_on_grid(interval_ns, 0))
            })),
    }
}

/// The start position of each copy: spread over the window, and distinct as long as there are
/// fewer copies than ticks.
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

/// The series of each host that have samples, in the order of the trace.
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

/// Builds the groups: one per host and copy (one per message if `batch` is a number), or the whole
/// tick in `tick_parts` parts. `asked` is the number of series.
fn grouped(spec: &WorkloadSpec, mut layout: Layout, hosts: &[u32], asked: u32, interval_ns: u64) -> Layout {
    let mut sizes = Vec::new();
    let mut left = asked;
    for &host in hosts.iter().cycle() {
        let limit = match spec.batch {
            BatchMode::Series(limit) => Some(limit),
            _ => None,
        };
        sizes.extend(messages::cut(host.min(left), limit).map(|message| message.slots.len() as u32));
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
        layout.groups.push(SeriesGroup {
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
