//! Answers a query for one series: parts are taken under the extent's lock, then decoded,
//! merged and folded without it.

use std::ops::ControlFlow;

use tsb_core::{SeriesId, Timestamp};

use super::block::Columns;
use super::extent::Extent;
use super::resample::Fold;
use super::tile::{Held, Parts};
use crate::error::Result;
use crate::store::Visitor;

/// Buffers of a query, kept from series to series.
#[derive(Debug, Default)]
pub(super) struct Reader {
    columns: Columns,
    stamps: Vec<Timestamp>,
    held: Vec<Held>,
}

impl Reader {
    /// Visits the samples of one series in `range`, or the rows that `fold` makes of them.
    pub(super) fn series(
        &mut self,
        extent: &Extent,
        series: SeriesId,
        range: (i64, i64),
        mut fold: Option<&mut Fold>,
        visit: &mut Visitor<'_>,
    ) -> Result<ControlFlow<()>> {
        let mut held = std::mem::take(&mut self.held);
        let (tile, column) = extent.place(series.0);
        let mut maxima = fold.as_ref().and_then(|fold| fold.maxima());
        let whole = |start: i64, end: i64| {
            let inside = start >= range.0 && end < range.1;
            inside && maxima.as_mut().is_some_and(|steps| steps.same(start, end))
        };
        extent.lock()?[tile].take(column, range, whole, &mut held);
        touch(&held);
        let mut sink = Sink {
            series,
            range,
            fold: fold.as_deref_mut(),
            stamps: &mut self.stamps,
            visit,
        };
        let mut flow = each_cluster(&held, &mut self.columns, &mut sink);
        if flow.is_continue()
            && let Some(fold) = fold
        {
            flow = fold.finish(series, visit);
        }
        held.clear();
        self.held = held;
        Ok(flow)
    }
}

/// Brings the columns that will be decoded into the cache, all misses at once.
fn touch(held: &[Held]) {
    let mut touched = 0;
    for held in held {
        if let Parts::Sealed(block, column) = &held.parts {
            touched |= block.touch_column(*column);
        }
    }
    std::hint::black_box(touched);
}

/// Where the samples go: to the visitor, or into a fold.
struct Sink<'a, 'v> {
    series: SeriesId,
    range: (i64, i64),
    fold: Option<&'a mut Fold>,
    stamps: &'a mut Vec<Timestamp>,
    visit: &'a mut Visitor<'v>,
}

impl Sink<'_, '_> {
    /// Takes samples in time order; what lies outside the range is left out.
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

/// Parts that overlap in time are merged; a part on its own is passed on as it is.
fn each_cluster(held: &[Held], columns: &mut Columns, sink: &mut Sink<'_, '_>) -> ControlFlow<()> {
    let mut from = 0;
    while from < held.len() {
        let mut end = held[from].end;
        let mut to = from + 1;
        while to < held.len() && held[to].start <= end {
            end = end.max(held[to].end);
            to += 1;
        }
        if to == from + 1 {
            single(&held[from], columns, sink)?;
        } else {
            merged(&held[from..to], columns, sink)?;
        }
        from = to;
    }
    ControlFlow::Continue(())
}

fn single(held: &Held, columns: &mut Columns, sink: &mut Sink<'_, '_>) -> ControlFlow<()> {
    match &held.parts {
        Parts::Sealed(block, column) => {
            let (times, values) = block.read(*column, columns);
            sink.samples(times, values)
        }
        Parts::Open(times, values) => sink.samples(times, values),
        Parts::Maximum(maximum) => match &mut sink.fold {
            Some(fold) => fold.maximum(sink.series, held.start, *maximum, sink.visit),
            None => ControlFlow::Continue(()),
        },
    }
}

/// Merges parts: in time order, of equal timestamps that of the highest rank.
fn merged(held: &[Held], columns: &mut Columns, sink: &mut Sink<'_, '_>) -> ControlFlow<()> {
    let mut samples: Vec<(i64, u32, f64)> = Vec::new();
    for held in held {
        let mut add = |times: &[i64], values: &[f64]| {
            let pairs = times.iter().zip(values);
            samples.extend(pairs.map(|(at, value)| (*at, held.rank, *value)));
        };
        match &held.parts {
            Parts::Sealed(block, column) => {
                let (times, values) = block.read(*column, columns);
                add(times, values);
            }
            Parts::Open(times, values) => add(times, values),
            // A maximum is only taken where nothing overlaps.
            Parts::Maximum(_) => {}
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
        sink.samples(times, values)?;
    }
    ControlFlow::Continue(())
}

/// Samples that are visited at once, at most.
const CHUNK: usize = 1024;
