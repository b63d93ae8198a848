//! Answers a query for one series: collects its parts under the extent's lock; without the lock,
//! [`Answer`](crate::block) decodes and merges them, and a fold consolidates.

use std::ops::ControlFlow;

use tsb_core::SeriesId;

use super::extent::Extent;
use crate::block::{Answer, Fold, Part, Wanted, touch};
use crate::error::Result;
use crate::store::Visitor;

/// Room for parts at first: an hour of blocks at one sample per second, and some more.
const FIRST_PARTS: usize = 24;

/// The buffers of a query, reused for every series.
#[derive(Debug, Default)]
pub(super) struct QueryBuffers {
    answer: Answer,
    parts: Vec<Part>,
}

impl QueryBuffers {
    /// Visits the samples of one series in `range`, or the rows that `fold` computes from them.
    pub(super) fn series(
        &mut self,
        extent: &Extent,
        series: SeriesId,
        range: (i64, i64),
        fold: Option<&mut Fold>,
        visit: &mut Visitor<'_>,
    ) -> Result<ControlFlow<()>> {
        self.parts.clear();
        self.parts.reserve(FIRST_PARTS);
        let (tile, column) = extent.place(series.0);
        let wanted = Wanted::of(fold.as_deref());
        extent.lock()?[tile].take(column, range, wanted, &mut self.parts);
        touch(&self.parts);
        Ok(self.answer.visit(series, &self.parts, range, fold, visit))
    }
}
