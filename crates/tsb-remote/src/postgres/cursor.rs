//! The rows of a query, read chunk by chunk: one series after the other, in pages.
//!
//! A page is a request of its own, so that no connection is held while the reader works.

use std::sync::Arc;

use tsb_core::{SeriesId, Timestamp};

use super::client::Shared;
use super::connection::Effect;
use crate::{Chunk, QueryCursor};
use tsb_stores::error::Result;
use tsb_stores::parts::Resampler;
use tsb_stores::store::{Query, Resample, TimeRange};

/// Maximum number of rows per page.
const ROWS_MAX: usize = 8_192;
const ACTION: &str = "read samples";

/// The part of a query that has not been read yet.
#[derive(Debug)]
pub struct PostgresCursor {
    shared: Arc<Shared>,
    statement: String,
    range: TimeRange,
    resample: Option<Resample>,
    remaining: std::vec::IntoIter<(SeriesId, u32)>,
    /// The series that is being read, and the first timestamp that was not read yet.
    current: Option<(SeriesId, u32, i64)>,
}

/// One page, and where the next begins.
struct Page {
    times: Vec<Timestamp>,
    values: Vec<f64>,
    next: Option<i64>,
}

impl PostgresCursor {
    pub(super) fn new(shared: &Arc<Shared>, query: &Query<'_>, numbers: Vec<u32>) -> Self {
        let remaining = query.series.iter().copied().zip(numbers);
        // A range that ends before it starts is empty: the server need not be asked.
        let remaining: Vec<_> = remaining.filter(|_| query.range.start < query.range.end).collect();
        Self {
            statement: shared.schema.samples(),
            shared: Arc::clone(shared),
            range: query.range,
            resample: query.resample,
            remaining: remaining.into_iter(),
            current: None,
        }
    }

    async fn page(&self, number: u32, from: i64) -> Result<Page> {
        let mut checkout = self.shared.pool.checkout(ACTION).await?;
        // The end is exclusive, and greater than the start.
        let bounds = (number as i32, from, self.range.end.0 - 1, ROWS_MAX as i64);
        let asked = async {
            let statement = checkout.session.prepared(&self.statement).await?;
            let (number, from, to, limit) = &bounds;
            let rows = checkout
                .session
                .client
                .query(&statement, &[number, from, to, limit])
                .await?;
            let samples = rows
                .iter()
                .map(|row| Ok((Timestamp(row.try_get(0)?), row.try_get::<_, f64>(1)?)));
            samples.collect::<std::result::Result<(Vec<Timestamp>, Vec<f64>), _>>()
        };
        let (times, values) = self.shared.pool.answer(ACTION, Effect::Reads, asked).await?;
        checkout.give_back();
        let is_full = times.len() == ROWS_MAX;
        let next = times.last().filter(|_| is_full).and_then(|last| last.0.checked_add(1));
        Ok(Page { times, values, next })
    }

    /// All rows of a series, resampled here. The server's sums fail where they overflow, and its
    /// arithmetic of timestamps does at their ends.
    async fn resampled(&self, series: SeriesId, number: u32, resample: Resample) -> Result<Chunk> {
        let mut resampler = Resampler::new(resample);
        let mut from = Some(self.range.start.0);
        while let Some(start) = from.filter(|start| *start < self.range.end.0) {
            let page = self.page(number, start).await?;
            for (at, value) in page.times.iter().zip(&page.values) {
                resampler.push(*at, *value);
            }
            from = page.next;
        }
        let (times, values) = resampler.finish();
        Ok(Chunk { series, times, values })
    }
}

impl QueryCursor for PostgresCursor {
    async fn next(&mut self) -> Result<Option<Chunk>> {
        loop {
            let current = match self.current.take() {
                Some(current) => Some(current),
                None => self
                    .remaining
                    .next()
                    .map(|(series, number)| (series, number, self.range.start.0)),
            };
            let Some((series, number, from)) = current else {
                return Ok(None);
            };
            let chunk = if let Some(resample) = self.resample {
                self.resampled(series, number, resample).await?
            } else {
                let page = self.page(number, from).await?;
                let next = page.next.filter(|next| *next < self.range.end.0);
                self.current = next.map(|next| (series, number, next));
                Chunk {
                    series,
                    times: page.times,
                    values: page.values,
                }
            };
            if !chunk.times.is_empty() {
                return Ok(Some(chunk));
            }
        }
    }
}
