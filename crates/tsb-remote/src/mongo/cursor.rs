//! The rows of a query, read chunk by chunk: one series after the other, one pipeline each.

use std::sync::Arc;

use mongodb::Cursor;
use mongodb::bson::{RawBsonRef, RawDocument, RawDocumentBuf};
use tsb_core::{SeriesId, Timestamp};

use super::connection::MongoConnection;
use super::consolidate::stages;
use super::layout::{Layout, ticks};
use super::options::LayoutKind;
use crate::{Chunk, QueryCursor};
use tsb_stores::error::Result;
use tsb_stores::parts::Resampler;
use tsb_stores::store::{Query, Resample, TimeRange};

/// Maximum number of rows per chunk, except in the ticks layout, where a series is one chunk.
const ROWS_MAX: usize = 4_096;
const ACTION: &str = "read samples";

/// The part of a query that has not been read yet.
#[derive(Debug)]
pub struct MongoCursor {
    parameters: QueryParameters,
    remaining: std::vec::IntoIter<(SeriesId, u32)>,
    current: Option<(SeriesId, Cursor<RawDocumentBuf>)>,
}

/// The parameters of the query. Kept apart from the cursor, which needs exclusive access.
#[derive(Debug)]
struct QueryParameters {
    connection: Arc<MongoConnection>,
    layout: Arc<Layout>,
    range: TimeRange,
    resample: Option<Resample>,
}

impl MongoCursor {
    pub(super) fn new(
        connection: &Arc<MongoConnection>,
        layout: &Arc<Layout>,
        query: &Query<'_>,
        numbers: Vec<u32>,
    ) -> Self {
        let remaining = query.series.iter().copied().zip(numbers);
        // A range that ends before it starts is empty: the server need not be asked.
        let remaining: Vec<_> = remaining.filter(|_| query.range.start < query.range.end).collect();
        Self {
            parameters: QueryParameters {
                connection: Arc::clone(connection),
                layout: Arc::clone(layout),
                range: query.range,
                resample: query.resample,
            },
            remaining: remaining.into_iter(),
            current: None,
        }
    }
}

impl QueryParameters {
    async fn begin(&self, number: u32) -> Result<Cursor<RawDocumentBuf>> {
        let mut aggregation = self.layout.samples(number, self.range);
        let is_ours = self.layout.kind() != LayoutKind::Ticks;
        if let Some(resample) = self.resample.filter(|_| is_ours) {
            aggregation.pipeline.extend(stages(resample));
        }
        self.connection
            .aggregate(ACTION, &aggregation.collection, aggregation.pipeline)
            .await
    }

    /// Reads rows until the chunk is full or the cursor ends.
    async fn rows(&self, series: SeriesId, cursor: &mut Cursor<RawDocumentBuf>) -> Result<Chunk> {
        let mut chunk = Chunk {
            series,
            times: Vec::new(),
            values: Vec::new(),
        };
        while chunk.times.len() < ROWS_MAX && self.connection.advance(ACTION, cursor).await? {
            let (at, value) = row(cursor.current()).map_err(|what| self.connection.failed(ACTION, what))?;
            chunk.times.push(at);
            chunk.values.push(value);
        }
        Ok(chunk)
    }

    /// All rows of a series in the ticks layout. Documents may overlap in time, so all must be
    /// read before the first row is known.
    async fn columns(&self, series: SeriesId, number: u32, mut cursor: Cursor<RawDocumentBuf>) -> Result<Chunk> {
        let mut samples: Vec<(Timestamp, u64, f64)> = Vec::new();
        while self.connection.advance(ACTION, &mut cursor).await? {
            let document = cursor.current();
            let failed = |what: String| self.connection.failed(ACTION, what);
            let key = ticks::DocumentKey::of(document);
            let order = key
                .ok_or_else(|| failed("a document has no key of ours".to_owned()))?
                .order;
            ticks::read(document, |sample| {
                if sample.number == number && self.range.contains(sample.at) {
                    samples.push((sample.at, order, sample.value));
                }
            })
            .map_err(failed)?;
        }
        // The sort must be stable: within a document, the order is that of writing.
        samples.sort_by_key(|(at, order, _)| (*at, *order));
        let (times, values) = match self.resample {
            None => samples.iter().map(|(at, _, value)| (*at, *value)).unzip(),
            Some(resample) => {
                let mut resampler = Resampler::new(resample);
                for (at, _, value) in &samples {
                    resampler.push(*at, *value);
                }
                resampler.finish()
            }
        };
        Ok(Chunk { series, times, values })
    }
}

impl QueryCursor for MongoCursor {
    async fn next(&mut self) -> Result<Option<Chunk>> {
        loop {
            let chunk = if let Some((series, mut cursor)) = self.current.take() {
                let chunk = self.parameters.rows(series, &mut cursor).await?;
                if chunk.times.len() == ROWS_MAX {
                    self.current = Some((series, cursor));
                }
                chunk
            } else {
                let Some((series, number)) = self.remaining.next() else {
                    return Ok(None);
                };
                let cursor = self.parameters.begin(number).await?;
                if self.parameters.layout.kind() != LayoutKind::Ticks {
                    self.current = Some((series, cursor));
                    continue;
                }
                self.parameters.columns(series, number, cursor).await?
            };
            if !chunk.times.is_empty() {
                return Ok(Some(chunk));
            }
        }
    }
}

/// Decodes a document `{n, v}`. The start of a step that lies before all timestamps is a double,
/// and the value of a step without numbers is absent.
fn row(document: &RawDocument) -> std::result::Result<(Timestamp, f64), String> {
    let at = match document.get("n") {
        Ok(Some(RawBsonRef::Int64(at))) => at,
        Ok(Some(RawBsonRef::Int32(at))) => i64::from(at),
        Ok(Some(RawBsonRef::Double(at))) => at as i64,
        _ => return Err("a row without a timestamp came".to_owned()),
    };
    let value = match document.get("v") {
        Ok(Some(RawBsonRef::Double(value))) => value,
        Ok(Some(RawBsonRef::Null) | None) => f64::NAN,
        _ => return Err("a row whose value is not a double came".to_owned()),
    };
    Ok((Timestamp(at), value))
}
