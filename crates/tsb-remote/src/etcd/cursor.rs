//! The rows of a query, read page by page, one series after the other.

use std::sync::Arc;

use tsb_core::{SeriesId, Timestamp};

use super::connection::EtcdConnection;
use super::key_space::{KeySpace, after};
use super::message::{KeyValue, Range};
use crate::{Chunk, QueryCursor};
use tsb_stores::error::Result;
use tsb_stores::parts::Resampler;
use tsb_stores::store::{Query, Resample};

/// Maximum number of rows per page.
pub(super) const ROWS_MAX: i64 = 4_096;
const ACTION: &str = "read samples";

/// The part of a query that has not been read yet.
#[derive(Debug)]
pub struct EtcdCursor {
    connection: Arc<EtcdConnection>,
    key_space: KeySpace,
    resample: Option<Resample>,
    remaining: std::vec::IntoIter<(SeriesId, Range)>,
    /// A series of which a page has been read, and more pages follow.
    rest: Option<(SeriesId, Range)>,
}

impl EtcdCursor {
    pub(super) fn new(
        connection: &Arc<EtcdConnection>,
        key_space: &KeySpace,
        query: &Query<'_>,
        numbers: &[u32],
    ) -> Self {
        let range_of = |number: u32| Range {
            end: key_space.sample(number, query.range.end),
            limit: ROWS_MAX,
            ..key_space.samples_from(number, query.range.start)
        };
        let remaining = query.series.iter().copied().zip(numbers);
        // etcd returns an error for a range that ends before it starts.
        let remaining: Vec<_> = remaining
            .filter(|_| query.range.start < query.range.end)
            .map(|(series, number)| (series, range_of(*number)))
            .collect();
        Self {
            connection: Arc::clone(connection),
            key_space: key_space.clone(),
            resample: query.resample,
            remaining: remaining.into_iter(),
            rest: None,
        }
    }

    /// Reads a page. Also returns where the next one starts, if there is one.
    async fn page(&self, range: Range) -> Result<(Vec<KeyValue>, Option<Range>)> {
        let reply = self.connection.ask(ACTION, range.clone()).await?;
        let last = reply.pairs.last().filter(|_| reply.more);
        let rest = last.map(|last| Range {
            key: after(&last.key),
            ..range
        });
        Ok((reply.pairs, rest))
    }

    fn row(&self, pair: &KeyValue) -> Result<(Timestamp, f64)> {
        let at = self.key_space.sample_of(&pair.key).map(|(_, at)| at);
        let value = pair.value.as_ref().try_into().map(f64::from_le_bytes);
        match (at, value) {
            (Some(at), Ok(value)) => Ok((at, value)),
            _ => Err(self
                .connection
                .failed(ACTION, "a key or value came that is not a sample")),
        }
    }

    async fn rows(&mut self, series: SeriesId, range: Range) -> Result<Chunk> {
        let (pairs, rest) = self.page(range).await?;
        self.rest = rest.map(|rest| (series, rest));
        let rows: Result<Vec<_>> = pairs.iter().map(|pair| self.row(pair)).collect();
        let (times, values) = rows?.into_iter().unzip();
        Ok(Chunk { series, times, values })
    }

    /// All rows of a series. Only one page of samples is in memory at a time.
    async fn resampled(&self, series: SeriesId, range: Range, resample: Resample) -> Result<Chunk> {
        let mut resampler = Resampler::new(resample);
        let mut next = Some(range);
        while let Some(range) = next {
            let (pairs, rest) = self.page(range).await?;
            for pair in &pairs {
                let (at, value) = self.row(pair)?;
                resampler.push(at, value);
            }
            next = rest;
        }
        let (times, values) = resampler.finish();
        Ok(Chunk { series, times, values })
    }
}

impl QueryCursor for EtcdCursor {
    async fn next(&mut self) -> Result<Option<Chunk>> {
        loop {
            let Some((series, range)) = self.rest.take().or_else(|| self.remaining.next()) else {
                return Ok(None);
            };
            let chunk = match self.resample {
                Some(resample) => self.resampled(series, range, resample).await?,
                None => self.rows(series, range).await?,
            };
            if !chunk.times.is_empty() {
                return Ok(Some(chunk));
            }
        }
    }
}
