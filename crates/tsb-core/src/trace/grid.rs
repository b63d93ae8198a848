//! A trace as a regular grid: ticks by series, for replay at a fixed rate.

use super::Trace;
use super::error::TraceDefect;
use crate::time::Timestamp;

/// Maximum number of cells in a grid: each takes 8 bytes and one bit.
pub const MAX_CELLS: u64 = 1 << 27;

/// The samples of a trace on a grid of ticks. A sample belongs to the nearest tick; of several in
/// a cell the latest is kept (of equal timestamps, the later in the trace). A cell without samples
/// is absent, and never filled.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    start: Timestamp,
    interval_ns: u64,
    ticks: usize,
    // By column: the cell of tick t of series s is at s * ticks + t.
    values: Vec<f64>,
    // One bit per cell, in the order of `values`, 64 per word.
    present: Vec<u64>,
    counts: GridCounts,
}

/// How the samples were mapped to the grid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GridCounts {
    /// Cells that hold a sample.
    pub present: u64,
    /// Cells without one.
    pub absent: u64,
    /// Samples that share a cell with a later one, and are dropped.
    pub superseded: u64,
    /// Samples in the grid whose own time differs from their tick's.
    pub moved: u64,
    /// The largest distance of a sample from its tick, in nanoseconds.
    pub shift_ns_max: u64,
}

impl Trace {
    /// Maps the samples to a grid whose tick 0 is at the earliest timestamp.
    ///
    /// # Errors
    /// An interval of 0, a trace without samples, or a grid of more than [`MAX_CELLS`], which a
    /// single outlying timestamp can cause.
    pub fn grid(&self, interval_ns: u64) -> Result<Grid, TraceDefect> {
        const TOO_LARGE: TraceDefect = TraceDefect::TooMuch {
            offset: 0,
            what: "cells of ticks by series; give a longer interval, or remove the outlying timestamps,",
            limit: MAX_CELLS,
        };
        if interval_ns == 0 {
            return Err(TraceDefect::Invalid {
                what: "the interval of a grid is at least 1 ns",
            });
        }
        let Some((start, end)) = self.span() else {
            return Err(TraceDefect::Empty {
                problems: self.problems.clone(),
            });
        };
        let last = nearest(start, end, interval_ns).0;
        let cells = (u128::from(last) + 1) * self.columns.len() as u128;
        if cells > u128::from(MAX_CELLS) {
            return Err(TOO_LARGE);
        }
        let ticks = last as usize + 1;
        let mut grid = Grid {
            start,
            interval_ns,
            ticks,
            values: vec![0.0; cells as usize],
            present: vec![0; (cells as usize).div_ceil(64)],
            counts: GridCounts::default(),
        };
        let mut newest = vec![Timestamp::MIN; ticks];
        for (index, column) in self.columns.iter().enumerate() {
            newest.fill(Timestamp::MIN);
            for (&at, &value) in column.times().iter().zip(column.values()) {
                grid.place(index, at, value, &mut newest);
            }
        }
        grid.counts.absent = cells as u64 - grid.counts.present;
        Ok(grid)
    }

    /// The interval that a recorder noted.
    pub fn noted_interval_ns(&self) -> Option<u64> {
        let noted = self.notes.get("interval_ns").and_then(|text| text.parse().ok());
        noted.filter(|&interval| interval > 0)
    }

    /// Whether a grid of this interval holds every sample with a move of at most `reach_ns`, and
    /// is within the size limit.
    pub fn is_on_grid(&self, interval_ns: u64, reach_ns: u64) -> bool {
        let Some((start, end)) = self.span() else { return false };
        let last = nearest(start, end, interval_ns).0;
        let mut ticks = Vec::new();
        let fits = (u128::from(last) + 1) * self.columns.len() as u128 <= u128::from(MAX_CELLS);
        fits && self.columns.iter().all(|column| {
            ticks.clear();
            ticks.extend(column.times().iter().map(|&at| nearest(start, at, interval_ns)));
            ticks.sort_unstable();
            ticks.iter().all(|&(_, shift)| shift <= reach_ns) && ticks.windows(2).all(|pair| pair[0].0 < pair[1].0)
        })
    }

    /// The interval at which the samples were taken: the recorder's note, or the median distance
    /// between neighbours, rounded to a multiple of 1 s, 100 ms, 10 ms, 1 ms or 1 us, the first of
    /// these that changes it by less than 1 %. `None` if no series has two samples at different
    /// times.
    pub fn usual_interval_ns(&self) -> Option<u64> {
        if let Some(interval) = self.noted_interval_ns() {
            return Some(interval);
        }
        let distances = self.columns.iter().flat_map(|column| {
            let pairs = column.times().windows(2);
            pairs
                .map(|pair| distance(pair[0], pair[1]))
                .filter(|&distance| distance > 0)
        });
        let mut distances: Vec<u64> = distances.collect();
        if distances.is_empty() {
            return None;
        }
        let middle = distances.len() / 2;
        Some(rounded(*distances.select_nth_unstable(middle).1))
    }
}

fn rounded(interval: u64) -> u64 {
    let units = [1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 1_000];
    let mut multiples = units.iter().map(|unit| interval.saturating_add(unit / 2) / unit * unit);
    let close = multiples.find(|multiple| interval.abs_diff(*multiple) < interval.div_ceil(100));
    close.unwrap_or(interval)
}

/// The distance in nanoseconds, exact over the whole range of timestamps.
fn distance(from: Timestamp, to: Timestamp) -> u64 {
    to.0.abs_diff(from.0)
}

/// The tick nearest to a time at or after the start, and its distance.
fn nearest(start: Timestamp, at: Timestamp, interval_ns: u64) -> (u64, u64) {
    let after = distance(start, at);
    let (tick, rest) = (after / interval_ns, after % interval_ns);
    if rest > interval_ns / 2 {
        (tick + 1, interval_ns - rest)
    } else {
        (tick, rest)
    }
}

impl Grid {
    fn place(&mut self, series: usize, at: Timestamp, value: f64, newest: &mut [Timestamp]) {
        let (tick, shift) = nearest(self.start, at, self.interval_ns);
        let tick = tick as usize;
        let cell = series * self.ticks + tick;
        let (word, bit) = (cell / 64, 1 << (cell % 64));
        if self.present[word] & bit == 0 {
            self.present[word] |= bit;
            self.counts.present += 1;
        } else {
            self.counts.superseded += 1;
            if at < newest[tick] {
                return;
            }
            // The replaced sample is no longer in the grid, so it no longer counts as moved.
            self.counts.moved -= u64::from(nearest(self.start, newest[tick], self.interval_ns).1 > 0);
        }
        newest[tick] = at;
        self.values[cell] = value;
        self.counts.moved += u64::from(shift > 0);
        self.counts.shift_ns_max = self.counts.shift_ns_max.max(shift);
    }

    /// The time of tick 0.
    pub fn start(&self) -> Timestamp {
        self.start
    }

    /// Nanoseconds from one tick to the next.
    pub fn interval_ns(&self) -> u64 {
        self.interval_ns
    }

    /// Number of ticks.
    pub fn ticks(&self) -> usize {
        self.ticks
    }

    /// Number of series.
    pub fn series(&self) -> usize {
        self.values.len() / self.ticks
    }

    /// How the samples were mapped to the grid.
    pub fn counts(&self) -> GridCounts {
        self.counts
    }

    /// The value of a series at a tick; `None` if the trace has no sample there, or if the series
    /// or tick does not exist.
    #[inline]
    pub fn get(&self, series: usize, tick: usize) -> Option<f64> {
        if tick >= self.ticks {
            return None;
        }
        let cell = series.checked_mul(self.ticks)?.checked_add(tick)?;
        let is_present = self.present.get(cell / 64)? >> (cell % 64) & 1 == 1;
        is_present.then(|| self.values[cell])
    }

    /// All values of a series, one per tick. The value at an absent tick is meaningless.
    pub fn column(&self, series: usize) -> &[f64] {
        self.values
            .get(series * self.ticks..(series + 1) * self.ticks)
            .unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::series::SeriesKey;
    use crate::trace::{Limits, TraceBuilder};

    fn trace(samples: &[(&str, i64, f64)]) -> Trace {
        let mut builder = TraceBuilder::new(Limits::default());
        for &(name, at, value) in samples {
            let id = builder.series(SeriesKey::new(name)).unwrap();
            builder.push(id, Timestamp(at), value, 0).unwrap();
        }
        builder.finish()
    }

    #[test]
    fn samples_go_to_the_nearest_tick_and_gaps_stay_absent() {
        let trace = trace(&[
            ("a", 1000, 1.0),
            ("a", 1098, 2.0),
            ("a", 1310, 4.0),
            ("b", 1205, f64::NAN),
        ]);
        let grid = trace.grid(100).unwrap();
        assert_eq!((grid.ticks(), grid.series(), grid.start()), (4, 2, Timestamp(1000)));
        let row = |series| (0..4).map(|tick| grid.get(series, tick)).collect::<Vec<_>>();
        assert_eq!(row(0), [Some(1.0), Some(2.0), None, Some(4.0)]);
        assert!(grid.get(1, 2).unwrap().is_nan());
        assert_eq!((grid.get(1, 0), grid.get(1, 4), grid.get(2, 0)), (None, None, None));
        let expected = GridCounts {
            present: 4,
            absent: 4,
            superseded: 0,
            moved: 3,
            shift_ns_max: 10,
        };
        assert_eq!(grid.counts(), expected);
        assert_eq!(grid.column(0)[3], 4.0);
    }

    #[test]
    fn the_latest_of_a_cell_holds_and_the_others_are_counted() {
        let trace = trace(&[
            ("a", 0, 1.0),
            ("a", 30, 3.0),
            ("a", 20, 2.0),
            ("a", 30, 4.0),
            ("a", 10, 0.0),
        ]);
        let grid = trace.grid(100).unwrap();
        assert_eq!(grid.get(0, 0), Some(4.0));
        assert_eq!(grid.counts().superseded, 4);
    }

    #[test]
    fn the_whole_range_of_time_is_an_error_not_a_panic() {
        let trace = trace(&[("a", i64::MIN, 1.0), ("a", i64::MAX, 2.0)]);
        let error = trace.grid(1).unwrap_err().to_string();
        assert!(error.contains("more than 134217728 cells"), "{error}");
        assert_eq!(trace.grid(u64::MAX).unwrap().ticks(), 2);
        assert!(trace.grid(0).is_err());
        assert!(Trace::default().grid(1).is_err());
    }

    #[test]
    fn the_usual_interval_is_the_median_distance() {
        let trace = trace(&[
            ("a", 0, 1.0),
            ("a", 10, 1.0),
            ("a", 20, 1.0),
            ("a", 500, 1.0),
            ("b", 3, 1.0),
        ]);
        assert_eq!(trace.usual_interval_ns(), Some(10));
        for (found, expected) in [
            (1_000_412_345, 1_000_000_000),
            (999_991_345, 1_000_000_000),
            (248_000_000, 250_000_000),
            (1_499_999_990, 1_500_000_000),
            (15_003, 15_000),
            (u64::MAX / 2, 9_223_372_037_000_000_000),
            (u64::MAX, 18_446_744_073_000_000_000),
        ] {
            assert_eq!(rounded(found), expected, "{found}");
        }
        assert_eq!(Trace::default().usual_interval_ns(), None);
    }
}
