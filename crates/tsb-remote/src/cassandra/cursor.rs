//! The rows of a query, read chunk by chunk: bucket after bucket of each series, in pages. The first
//! pages of the series that follow are asked for ahead.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use scylla::response::PagingState;
use tsb_core::{SeriesId, Timestamp};

use super::client::Shared;
use super::requests::bucket;
use crate::{Chunk, QueryCursor};
use tsb_stores::error::Result;
use tsb_stores::parts::Resampler;
use tsb_stores::store::{Query, Resample, TimeRange};

const ACTION: &str = "read samples";
/// Number of series that are asked for ahead.
const AHEAD: usize = 16;

/// The part of a query that has not been read yet.
pub struct CassandraCursor {
    resample: Option<Resample>,
    series: Pin<Box<dyn Stream<Item = Result<SeriesReader>> + Send>>,
    current: Option<SeriesReader>,
}

impl CassandraCursor {
    pub(super) fn new(shared: &Arc<Shared>, query: &Query<'_>, numbers: Vec<u32>) -> Self {
        let range = query.range;
        // A range that ends before it starts is empty: the server need not be asked.
        let is_empty = range.start >= range.end;
        let series: Vec<_> = query.series.iter().copied().zip(numbers).collect();
        let series = series.into_iter().filter(move |_| !is_empty);
        let shared = Arc::clone(shared);
        let readers = futures_util::stream::iter(series)
            .map(move |(series, number)| SeriesReader::begin(Arc::clone(&shared), series, number as i32, range))
            .buffered(AHEAD);
        Self {
            resample: query.resample,
            series: Box::pin(readers),
            current: None,
        }
    }
}

impl fmt::Debug for CassandraCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CassandraCursor").finish_non_exhaustive()
    }
}

impl QueryCursor for CassandraCursor {
    async fn next(&mut self) -> Result<Option<Chunk>> {
        loop {
            if self.current.is_none() {
                self.current = self.series.next().await.transpose()?;
            }
            let Some(mut reader) = self.current.take() else {
                return Ok(None);
            };
            let chunk = if let Some(resample) = self.resample {
                reader.resampled(resample).await?
            } else {
                let chunk = reader.next().await?;
                self.current = chunk.is_some().then_some(reader);
                chunk
            };
            if let Some(chunk) = chunk.filter(|chunk| !chunk.times.is_empty()) {
                return Ok(Some(chunk));
            }
        }
    }
}

/// The rest of one series.
struct SeriesReader {
    shared: Arc<Shared>,
    series: SeriesId,
    number: i32,
    /// The first timestamp, and the last one.
    bounds: (i64, i64),
    /// Buckets that have not been read to their end.
    buckets: VecDeque<i64>,
    /// Where the next page of the first of them begins.
    from: PagingState,
    /// A page that was asked for ahead.
    ready: Option<Chunk>,
}

impl SeriesReader {
    /// Asks for the buckets of a series and for the first page.
    async fn begin(shared: Arc<Shared>, series: SeriesId, number: i32, range: TimeRange) -> Result<Self> {
        // The end is exclusive, and greater than the start.
        let bounds = (range.start.0, range.end.0 - 1);
        let of = |at| bucket(at, shared.bucket_ns);
        let buckets = shared
            .connection
            .pages::<(i64,)>(ACTION, &shared.buckets, (number, of(bounds.0), of(bounds.1)))
            .await?;
        let mut reader = Self {
            shared,
            series,
            number,
            bounds,
            buckets: buckets.into_iter().map(|(bucket,)| bucket).collect(),
            from: PagingState::start(),
            ready: None,
        };
        reader.ready = reader.page().await?;
        Ok(reader)
    }

    /// The next page; `None` at the end.
    async fn next(&mut self) -> Result<Option<Chunk>> {
        match self.ready.take() {
            Some(chunk) => Ok(Some(chunk)),
            None => self.page().await,
        }
    }

    async fn page(&mut self) -> Result<Option<Chunk>> {
        let Some(bucket) = self.buckets.front().copied() else {
            return Ok(None);
        };
        let from = std::mem::replace(&mut self.from, PagingState::start());
        let values = (self.number, bucket, self.bounds.0, self.bounds.1);
        let connection = &self.shared.connection;
        let (rows, next) = connection
            .page::<(i64, f64)>(ACTION, &self.shared.samples, values, from)
            .await?;
        match next {
            Some(next) => self.from = next,
            None => drop(self.buckets.pop_front()),
        }
        let (times, values) = rows.into_iter().map(|(at, value)| (Timestamp(at), value)).unzip();
        Ok(Some(Chunk {
            series: self.series,
            times,
            values,
        }))
    }

    /// All rows, resampled here: the server groups rows by columns, and not by steps of a number.
    async fn resampled(&mut self, resample: Resample) -> Result<Option<Chunk>> {
        let mut resampler = Resampler::new(resample);
        while let Some(chunk) = self.next().await? {
            for (at, value) in chunk.times.iter().zip(&chunk.values) {
                resampler.push(*at, *value);
            }
        }
        let (times, values) = resampler.finish();
        Ok(Some(Chunk {
            series: self.series,
            times,
            values,
        }))
    }
}
