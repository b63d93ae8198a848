//! Computes an answer for one series from its parts: sealed blocks and copies of open samples.
//!
//! Parts are sorted by start. Overlapping parts are merged; of equal timestamps, the part with
//! the highest rank wins. The caller collects the parts.

use std::ops::ControlFlow;

use tsb_core::{SeriesId, Timestamp};

use super::fold::Steps;
use super::{Block, Columns, Fold};
use crate::store::Visitor;

/// A part of one series: consecutive samples in time order.
#[derive(Debug)]
pub(crate) struct Part {
    /// The earliest timestamp.
    pub(crate) start: i64,
    /// The latest timestamp.
    pub(crate) end: i64,
    /// Of two parts with the same timestamp, the one with the higher rank was written later.
    pub(crate) rank: u64,
    /// The largest number of the part; NaN if unknown.
    pub(crate) maximum: f64,
    /// The samples.
    pub(crate) data: PartData,
}

impl Part {
    /// A column of a block.
    pub(crate) fn of_block(block: Block, column: usize) -> Self {
        Self {
            start: block.start,
            end: block.end,
            rank: 0,
            maximum: f64::NAN,
            data: PartData::Sealed(block, column),
        }
    }

    /// The maximum of everything from `start` to `end`.
    pub(crate) fn of_maximum(start: i64, end: i64, maximum: f64) -> Self {
        Self {
            start,
            end,
            rank: 0,
            maximum: f64::NAN,
            data: PartData::Maximum(maximum),
        }
    }
}

/// What is wanted of the parts of a series.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wanted {
    /// Their samples.
    Samples,
    /// Their samples, and the maximum of each block.
    #[cfg_attr(
        not(feature = "sqlite"),
        expect(dead_code, reason = "only the SQLite store copies blocks")
    )]
    Blocks,
    /// Only the maximum per step.
    Maxima(Steps),
}

impl Wanted {
    /// What a consolidation, if there is one, needs.
    pub(crate) fn of(fold: Option<&Fold>) -> Self {
        fold.and_then(Fold::maxima).map_or(Self::Samples, Self::Maxima)
    }

    /// The steps, if only the maximum of each is wanted.
    pub(crate) fn maxima(self) -> Option<Steps> {
        match self {
            Self::Maxima(steps) => Some(steps),
            Self::Samples | Self::Blocks => None,
        }
    }
}

/// The samples of a part.
#[derive(Debug)]
pub(crate) enum PartData {
    /// A column of a sealed block.
    Sealed(Block, usize),
    /// The maximum of a sealed block, if no more is needed.
    Maximum(f64),
    /// Copies of open samples.
    Open(Vec<i64>, Vec<f64>),
}

/// The buffers of an answer, reused for every series.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    columns: Columns,
    stamps: Vec<Timestamp>,
}

impl Answer {
    /// Visits the samples of one series in `range`, or the rows that `fold` computes from them.
    /// `parts` must be sorted by start.
    pub(crate) fn visit(
        &mut self,
        series: SeriesId,
        parts: &[Part],
        range: (i64, i64),
        mut fold: Option<&mut Fold>,
        visit: &mut Visitor<'_>,
    ) -> ControlFlow<()> {
        let mut sink = Sink {
            series,
            range,
            maxima: fold.as_ref().and_then(|fold| fold.maxima()),
            fold: fold.as_deref_mut(),
            stamps: &mut self.stamps,
            visit,
        };
        merge_overlaps(parts, &mut self.columns, &mut sink)?;
        fold.map_or(ControlFlow::Continue(()), |fold| fold.finish(series, visit))
    }
}

/// Reads the columns that will be decoded, to bring them into the cache with overlapping misses.
pub(crate) fn touch(parts: &[Part]) {
    let mut touched = 0;
    for part in parts {
        if let PartData::Sealed(block, column) = &part.data {
            touched |= block.touch_column(*column);
        }
    }
    std::hint::black_box(touched);
}

/// The target of the samples: the visitor, or a fold.
struct Sink<'a, 'v> {
    series: SeriesId,
    range: (i64, i64),
    fold: Option<&'a mut Fold>,
    maxima: Option<Steps>,
    stamps: &'a mut Vec<Timestamp>,
    visit: &'a mut Visitor<'v>,
}

impl Sink<'_, '_> {
    /// Passes on samples in time order, without those outside the range.
    fn samples(&mut self, times: &[i64], values: &[f64]) -> ControlFlow<()> {
        let inside = |first: &i64, last: &i64| *first >= self.range.0 && *last < self.range.1;
        let (mut from, mut to) = (0, times.len());
        if !times
            .first()
            .zip(times.last())
            .is_some_and(|(first, last)| inside(first, last))
        {
            from = times.partition_point(|at| *at < self.range.0);
            to = times.partition_point(|at| *at < self.range.1);
        }
        if from >= to {
            return ControlFlow::Continue(());
        }
        let (times, values) = (&times[from..to], &values[from..to]);
        if let Some(fold) = &mut self.fold {
            fold.add(self.series, times, values, self.visit)
        } else {
            self.stamps.clear();
            self.stamps.extend(times.iter().map(|at| Timestamp(*at)));
            (self.visit)(self.series, self.stamps, values)
        }
    }
}

/// Receives the parts after overlaps are resolved.
pub(crate) trait Receiver {
    /// A part that does not overlap another.
    fn single(&mut self, part: &Part, columns: &mut Columns) -> ControlFlow<()>;

    /// Merged samples of overlapping parts, in chunks of at most [`CHUNK`].
    fn merged(&mut self, times: &[i64], values: &[f64]) -> ControlFlow<()>;
}

impl Receiver for Sink<'_, '_> {
    fn single(&mut self, part: &Part, columns: &mut Columns) -> ControlFlow<()> {
        match &part.data {
            PartData::Sealed(block, column) => {
                if self.maximum_will_do(part) {
                    return self.maximum(part.start, part.maximum);
                }
                if let Some(fold) = &mut self.fold
                    && let Some(flow) = fold.add_even(self.series, (block, *column), self.range, columns, self.visit)
                {
                    return flow;
                }
                let (times, values) = block.read(*column, columns);
                self.samples(times, values)
            }
            PartData::Open(times, values) => self.samples(times, values),
            PartData::Maximum(maximum) => self.maximum(part.start, *maximum),
        }
    }

    fn merged(&mut self, times: &[i64], values: &[f64]) -> ControlFlow<()> {
        self.samples(times, values)
    }
}

impl Sink<'_, '_> {
    /// Whether only the maximum of the part is needed, and it is known.
    fn maximum_will_do(&mut self, part: &Part) -> bool {
        let inside = part.start >= self.range.0 && part.end < self.range.1;
        inside
            && !part.maximum.is_nan()
            && self
                .maxima
                .as_mut()
                .is_some_and(|steps| steps.same(part.start, part.end))
    }

    fn maximum(&mut self, start: i64, maximum: f64) -> ControlFlow<()> {
        match &mut self.fold {
            Some(fold) => fold.maximum(self.series, start, maximum, self.visit),
            None => ControlFlow::Continue(()),
        }
    }
}

/// Runs of parts that overlap in time, most of them one part long. `parts` must be sorted by
/// start.
pub(crate) fn clusters(mut parts: &[Part]) -> impl Iterator<Item = &[Part]> {
    std::iter::from_fn(move || {
        let mut end = parts.first()?.end;
        let overlaps = |part: &&Part| {
            let overlaps = part.start <= end;
            end = end.max(part.end);
            overlaps
        };
        let len = 1 + parts[1..].iter().take_while(overlaps).count();
        let (cluster, rest) = parts.split_at(len);
        parts = rest;
        Some(cluster)
    })
}

/// Passes on single parts unchanged, and merges parts that overlap in time. `parts` must be sorted
/// by start.
pub(crate) fn merge_overlaps(parts: &[Part], columns: &mut Columns, to: &mut impl Receiver) -> ControlFlow<()> {
    for cluster in clusters(parts) {
        if let [single] = cluster {
            to.single(single, columns)?;
        } else {
            merge(cluster, columns, to)?;
        }
    }
    ControlFlow::Continue(())
}

/// Merges parts in time order; of equal timestamps, the highest rank wins.
fn merge(parts: &[Part], columns: &mut Columns, to: &mut impl Receiver) -> ControlFlow<()> {
    let mut samples: Vec<(i64, u64, f64)> = Vec::new();
    for part in parts {
        let mut add = |times: &[i64], values: &[f64]| {
            let pairs = times.iter().zip(values);
            samples.extend(pairs.map(|(at, value)| (*at, part.rank, *value)));
        };
        match &part.data {
            PartData::Sealed(block, column) => {
                let (times, values) = block.read(*column, columns);
                add(times, values);
            }
            PartData::Open(times, values) => add(times, values),
            // Does not occur: a maximum is only used for parts without overlap.
            PartData::Maximum(_) => {}
        }
    }
    samples.sort_by_key(|(at, rank, _)| (*at, *rank));
    let (mut times, mut values): (Vec<i64>, Vec<f64>) = (Vec::new(), Vec::new());
    for (at, _, value) in samples {
        if times.last() == Some(&at) {
            values.pop();
        } else {
            times.push(at);
        }
        values.push(value);
    }
    for (times, values) in times.chunks(CHUNK).zip(values.chunks(CHUNK)) {
        to.merged(times, values)?;
    }
    ControlFlow::Continue(())
}

/// Maximum number of samples per visit.
const CHUNK: usize = 1024;
