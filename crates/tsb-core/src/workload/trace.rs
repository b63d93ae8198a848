//! A recorded fleet: what a [`Trace`] holds, replayed tick after tick, in any number of
//! copies.
//!
//! The trace lies on its grid (see [`Trace::grid`]); tick `t` of a copy is tick
//! `(t + shift) mod T` of the grid, where the shift is 0 for the first copy and drawn
//! from the seed for every other, so that copies do not move in lockstep. From tick `T`
//! on the window repeats (a shifted copy wraps round within it): [`Window`] says so, and
//! reports print it. An absent cell of the grid is absent here too: nothing is sent.

use std::ops::Range;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::error::WorkloadError;
use super::hash::{Purpose, Stream};
use super::layout::{Block, Group, Layout};
use super::spec::{BatchMode, MAX_SERIES, Phase, WorkloadSpec};
use crate::series::{Catalog, SeriesId, SeriesKey};
use crate::trace::{self, GridCounts, Trace};

/// The label that tells the copies of a series apart; the first copy goes without.
pub const COPY_LABEL: &str = "copy";

/// Labels whose value says on which host a series is, the first that a series has.
const HOST_LABELS: [&str; 3] = ["host", "hostname", "instance"];

/// Which recording a fleet is made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceSource {
    /// The file, of any format that [`trace::open`] knows.
    pub path: PathBuf,
    /// [`Trace::checksum`] of what it held when the plan was made; a file that holds
    /// something else is then refused. Absent: whatever it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<u32>,
}

impl TraceSource {
    /// Reads the recording and checks that it is the one that is meant.
    ///
    /// # Errors
    /// The file cannot be read, or holds something else.
    pub fn open(&self) -> Result<Trace, WorkloadError> {
        let trace = trace::open(&self.path).map_err(|error| WorkloadError::Trace {
            what: with_causes(&error),
        })?;
        match self.checksum {
            Some(checksum) if checksum != trace.checksum() => Err(WorkloadError::Trace {
                what: format!(
                    "trace {} holds something else than when the plan was made",
                    self.path.display()
                ),
            }),
            _ => Ok(trace),
        }
    }
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

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

/// A recording, as the generators and the audit take it.
#[derive(Debug)]
pub(crate) struct Recorded {
    window: Window,
    // Tick by tick: the cell of series s at tick t is at t * series + s.
    rows: Vec<f64>,
    // One bit a cell, each tick beginning with a word of its own.
    present: Vec<u64>,
    words: usize,
    // By copy.
    shifts: Vec<u64>,
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
        let recorded_interval_ns = trace.usual_interval_ns().ok_or_else(|| WorkloadError::Trace {
            what: "the trace has no two samples of one series: it has no interval".to_owned(),
        })?;
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
        let (series, ticks) = (order.len(), grid.ticks());
        let words = series.div_ceil(64);
        let mut rows = vec![0.0; series * ticks];
        let mut present = vec![0; words * ticks];
        for (place, &column) in order.iter().enumerate() {
            for tick in 0..ticks {
                if let Some(value) = grid.get(column, tick) {
                    rows[tick * series + place] = value;
                    present[tick * words + place / 64] |= 1 << (place % 64);
                }
            }
        }
        let GridCounts {
            present: held,
            superseded,
            ..
        } = grid.counts();
        Ok(Self {
            window: Window {
                series: series as u32,
                copies: 1,
                ticks: ticks as u64,
                recorded_interval_ns: interval_ns,
                interval_ns,
                present: held,
                absent: (series * ticks) as u64 - held,
                superseded,
                problems: trace.problems.count,
            },
            rows,
            present,
            words,
            shifts: Vec::new(),
        })
    }

    pub(crate) fn window(&self) -> Window {
        self.window
    }

    /// The row of the recording that a copy replays at a tick.
    fn row(&self, copy: u32, tick: u64) -> usize {
        let ticks = self.window.ticks;
        ((tick % ticks + self.shifts[copy as usize]) % ticks) as usize
    }

    /// The value of a series at a tick, if it has one.
    pub(crate) fn value(&self, series: u32, tick: u64) -> Option<f64> {
        let place = (series % self.window.series) as usize;
        let row = self.row(series / self.window.series, tick);
        let word = self.present[row * self.words + place / 64];
        (word >> (place % 64) & 1 == 1).then(|| self.rows[row * self.window.series as usize + place])
    }

    /// How many of a range of series have a value at a tick.
    pub(crate) fn count(&self, ids: Range<u32>, tick: u64) -> u32 {
        let mut count = 0;
        self.pieces(ids, tick, |_, row, places| {
            let bits = self.bits(row, places);
            count += bits.map(|(_, word)| word.count_ones()).sum::<u32>();
        });
        count
    }

    /// The mean of [`Self::count`] over the ticks of the window.
    pub(crate) fn mean_count(&self, ids: &Range<u32>) -> f64 {
        let total: u64 = (0..self.window.ticks)
            .map(|tick| u64::from(self.count(ids.clone(), tick)))
            .sum();
        total as f64 / self.window.ticks as f64
    }

    /// The values of a range of series at a tick, where all of them have one and they lie
    /// side by side.
    pub(crate) fn whole(&self, ids: Range<u32>, tick: u64) -> Option<&[f64]> {
        let series = self.window.series;
        let (copy, end) = (ids.start / series, ids.end.checked_sub(1)? / series);
        if copy != end || self.count(ids.clone(), tick) != ids.end - ids.start {
            return None;
        }
        let start = self.row(copy, tick) * series as usize;
        self.rows
            .get(start + (ids.start % series) as usize..start + ((ids.end - 1) % series) as usize + 1)
    }

    /// Each series of a range that has a value at a tick, in ascending order.
    pub(crate) fn each(&self, ids: Range<u32>, tick: u64, mut visit: impl FnMut(u32, f64)) {
        let series = self.window.series as usize;
        self.pieces(ids, tick, |first, row, places| {
            let start = places.start;
            for (place, mut word) in self.bits(row, places) {
                while word != 0 {
                    let place = place + word.trailing_zeros() as usize;
                    visit(first + (place - start) as u32, self.rows[row * series + place]);
                    word &= word - 1;
                }
            }
        });
    }

    /// Cuts a range of ids at the borders of copies: first id, row, places in the row.
    fn pieces(&self, ids: Range<u32>, tick: u64, mut visit: impl FnMut(u32, usize, Range<usize>)) {
        let series = self.window.series;
        let mut first = ids.start;
        while first < ids.end {
            let place = first % series;
            let length = (series - place).min(ids.end - first);
            visit(
                first,
                self.row(first / series, tick),
                place as usize..(place + length) as usize,
            );
            first += length;
        }
    }

    /// The words of presence of some places of a row, each with its first place; bits of
    /// other places are cleared.
    fn bits(&self, row: usize, places: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
        let words = &self.present[row * self.words..(row + 1) * self.words];
        let range = places.start / 64..places.end.div_ceil(64);
        words[range.clone()].iter().zip(range).map(move |(&word, index)| {
            let base = index * 64;
            let below = places.start.saturating_sub(base);
            let above = (base + 64).saturating_sub(places.end);
            (base, word & (u64::MAX << below) & (u64::MAX >> above))
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
